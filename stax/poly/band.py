"""Orders for the points of a recurrence: sums of its dims by which they may be compared, found by isl.

Each point comes after those whose values it reads. An order by one dim after the other is looked for first; then isl's
scheduler is asked for rows of a band, which may be tiled where it is permutable (Bondhugula et al., PLDI 2008). What it
proposes is an order only if it is proved here to put no point before one that it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stax.algorithm.nodes import Func, Order, Row
from stax.bounds.accesses import Access
from stax.bounds.infer import Box
from stax.expr.affine import Algebra
from stax.poly.isl import TooHard, library, limited
from stax.poly.words import Words, all_of
from stax.schedule.unimodular import determinant

MOST_OPERATIONS = 600_000


@dataclass(frozen=True, slots=True)
class Reads:
    """A recurrence as text: its points, and for each read of itself the relation from a point to the one it reads."""

    dims: tuple[str, ...]
    domain: str
    reads: tuple[str, ...]
    context: str


@dataclass(frozen=True, slots=True)
class Band:
    """Rows that compare points, outermost first. The first `permutable` may be tiled together.

    Points that differ in `coincident` rows alone, the rows before them being equal, do not need each other.
    """

    rows: Order
    permutable: int
    coincident: frozenset[int]


def reads_of(f: Func, found: Sequence[Access], box: Box, algebra: Algebra, at_least: Mapping[int, int]) -> Reads:
    """Return what `f` reads of itself over `box`; TooHard where that has no words."""
    words = Words(algebra, at_least)
    names = {dim: f"i{k}" for k, dim in enumerate(f.dims)}
    point = f"S[{', '.join(names.values())}]"
    inside: list[str] = []
    for dim, i in zip(f.dims, box, strict=True):
        ends = [(None if end is None else words.sum(end, names)) for end in (i.lo, i.hi)]
        inside += ([f"{ends[0]} <= {names[dim]}"] if ends[0] else []) + (
            [f"{names[dim]} <= {ends[1]}"] if ends[1] else []
        )
    reads: list[str] = []
    for access in found:
        if access.source != f.name:
            continue
        index = [words.sum(i, names) for i in access.index]
        said = [f"j{d} = {i}" for d, i in enumerate(index) if i]
        if None in index:
            raise TooHard("a read lies at data")
        facts = sorted(access.facts, key=lambda fact: (fact.unequal, fact.sum.terms, fact.sum.const))
        held = [(words.sum(fact.sum, names), "!=" if fact.unequal else ">=") for fact in facts]
        said += [f"{w} {op} 0" for w, op in held if w]
        cell = f"S[{', '.join(f'j{d}' for d in range(len(index)))}]"
        reads.append(f"{{ {point} -> {cell} : {all_of(said)} }}")
    prefix = words.prefix()
    return Reads(
        f.dims,
        f"{prefix}{{ {point} : {all_of(inside)} }}",
        tuple(dict.fromkeys(prefix + text for text in reads)),
        f"{prefix}{{ : {words.context()} }}",
    )


def order(asked: Reads) -> Order | None:
    """Return rows by which every point comes after those that it reads; None where none were found."""
    with _asked(asked) as sets:
        found = sets.by_dims()
        if found is not None:
            return found
        band = sets.band()
    return None if band is None else band.rows


def band(asked: Reads) -> Band | None:
    """Return the band of isl's scheduler, proved; None where it has none that loops could have."""
    with _asked(asked) as sets:
        return sets.band()


class _asked:
    def __init__(self, asked: Reads) -> None:
        self.asked, self.isl = asked, library()
        try:
            self.sets = _Sets(self.isl, asked)
        except self.isl.Error as error:
            raise TooHard(str(error)) from None
        self.limit = limited(MOST_OPERATIONS)

    def __enter__(self) -> _Sets:
        self.limit.__enter__()
        return self.sets

    def __exit__(self, *error: Any) -> Any:
        return self.limit.__exit__(*error)


class _Sets:
    def __init__(self, isl: Any, asked: Reads) -> None:
        self.isl: Any = isl
        self.dims = asked.dims
        self.in_, self.out = isl.dim_type.in_, isl.dim_type.out
        self.domain = isl.Set(asked.domain).intersect_params(isl.Set(asked.context))
        reads = [isl.Map(text) for text in asked.reads]
        whole = reads[0]
        for other in reads[1:]:
            whole = whole.union(other)
        self.reads: Any = whole.intersect_domain(self.domain).intersect_range(self.domain).coalesce()

    def by_dims(self) -> Order | None:
        """Return an order that compares one dim after another, each upwards or downwards."""
        left, dims, rows = self.reads, list(range(len(self.dims))), list[Row]()
        while dims:
            chosen = next(((k, sign) for k in dims for sign in (1, -1) if self._behind(left, k, sign)), None)
            if chosen is None:
                return None
            k, sign = chosen
            rows.append(((self.dims[k], sign),))
            left = left.equate(self.in_, k, self.out, k)
            dims.remove(k)
        return tuple(rows) if left.is_empty() else None

    def _behind(self, reads: Any, k: int, sign: int) -> bool:
        """Return whether all of `reads` lie behind, or level, along dim `k`."""
        ahead = reads.order_lt(self.in_, k, self.out, k) if sign > 0 else reads.order_gt(self.in_, k, self.out, k)
        return bool(ahead.is_empty())

    def band(self) -> Band | None:
        """Return what isl's scheduler proposes, where its rows count every point once and keep the order; else None."""
        try:
            return self._proposed()
        except self.isl.Error as error:
            if "maximal number of operations" in str(error):
                raise
            return None

    def _proposed(self) -> Band | None:
        needs = self.reads.reverse().to_union_map()
        constraints = self.isl.ScheduleConstraints.on_domain(self.domain.to_union_set())
        constraints = constraints.set_validity(needs).set_coincidence(needs).set_proximity(needs)
        node = constraints.compute_schedule().get_root()
        rows: list[tuple[int, ...]] = []
        permutable, coincident = 0, set[int]()
        while node.n_children():
            node = node.child(0)
            if node.get_type() != self.isl.schedule_node_type.band:
                continue
            count = node.band_n_member()
            if not rows and node.band_get_permutable():
                permutable = count
            coincident |= {len(rows) + k for k in range(count) if node.band_member_get_coincident(k)}
            rows += self._rows(node, count)
        kept = _basis(rows, len(self.dims))
        if kept is None or not self._keeps(kept):
            return None
        made = tuple(tuple((d, n) for d, n in zip(self.dims, row, strict=True) if n) for row in kept)
        return Band(made, min(permutable, len(rows)), frozenset(k for k in coincident if k < len(kept)))

    def _rows(self, node: Any, count: int) -> Iterator[tuple[int, ...]]:
        partial = self.isl.Map.from_union_map(node.band_get_partial_schedule_union_map())
        for k in range(count):
            one = partial.project_out(self.out, k + 1, count - k - 1).project_out(self.out, 0, k)
            pieces = one.as_pw_multi_aff().get_pw_aff(0).get_pieces()
            sums = {
                tuple(int(aff.get_coefficient_val(self.in_, d).to_python()) for d in range(len(self.dims)))
                for _, aff in pieces
            }
            if len(sums) == 1:
                yield next(iter(sums))

    def _keeps(self, rows: Sequence[Sequence[int]]) -> bool:
        """Return whether no point comes before one that it reads, or with it, by `rows`."""
        names = [f"i{k}" for k in range(len(self.dims))]
        sums = [" + ".join(f"{n}*{name}" for n, name in zip(row, names, strict=True)) for row in rows]
        when = self.isl.Map(f"{{ S[{', '.join(names)}] -> [{', '.join(sums)}] }}")
        return bool(self.reads.intersect(when.lex_le_map(when)).is_empty())


def _basis(rows: Sequence[Sequence[int]], count: int) -> list[tuple[int, ...]] | None:
    """Return `rows` with more of single dims, so that they count every point once; None where they do not."""
    found = [tuple(row) for row in rows if any(row)][:count]
    units = [tuple(int(j == k) for j in range(count)) for k in range(count)]
    for unit in units:
        if len(found) == count:
            break
        if _rank([*found, unit]) == len(found) + 1:
            found.append(unit)
    return found if len(found) == count and abs(determinant(found)) == 1 else None


def _rank(rows: Sequence[Sequence[int]]) -> int:
    left, rank = [list(row) for row in rows], 0
    for k in range(len(rows[0])):
        pivot = next((row for row in left[rank:] if row[k]), None)
        if pivot is None:
            continue
        left.remove(pivot)
        left.insert(rank, pivot)
        for row in left[rank + 1 :]:
            factor, whole = row[k], pivot[k]
            row[:] = [v * whole - p * factor for v, p in zip(row, pivot, strict=True)]
        rank += 1
    return rank
