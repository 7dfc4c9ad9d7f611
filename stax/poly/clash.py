"""Two points of a stage that touch one cell, and that its loops run in another order than the algorithm.

Dependences are those of memory: of every two accesses to a cell one of which writes, the one that the algorithm makes
first comes first. A recurrence writes each cell once, so that a read needs the point it reads, and nothing else does.
Method: relations between points composed with moments; what is left must be empty for every loop (Feautrier, 1992;
Pugh, 1992). The smallest clash is the lexicographic minimum over sizes, then points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from stax.algorithm.nodes import Func
from stax.bounds.accesses import Access
from stax.expr.affine import Algebra
from stax.expr.nodes import Expr
from stax.loops.nodes import LoopKind
from stax.poly.isl import TooHard, library, limited, smallest
from stax.poly.moments import Moment, Moments, moments
from stax.poly.words import Words, all_of
from stax.schedule.nest import Nest
from stax.schedule.points import Points

MOST_OPERATIONS = 400_000


class Kind(Enum):
    """What the second of two accesses does to the first: reads what it wrote, overwrites what it read, or wrote."""

    FLOW = "flow"
    ANTI = "anti"
    OUTPUT = "output"


class How(Enum):
    """How a loop breaks a dependence: it runs the second first, both at once, or both as lanes."""

    ORDER = "order"
    PARALLEL = "parallel"
    LANES = "lanes"


@dataclass(frozen=True, slots=True)
class Problem:
    """The question as text, which is what its answer is remembered by, and the Exprs behind p0, p1, ...

    `accesses` are relations from points to cells, each with whether it writes; with `once` each cell is written once,
    by the point of its own index; else points come in lexicographic order, numbers that are `down` from the last on.
    `free` says that the order does not matter, though no two may meet. With `over`, the writes go over what the reads
    read, in the storage of another: at every other point than the one that writes there, it is read before.
    """

    domain: str
    accesses: tuple[tuple[bool, str], ...]
    once: bool
    free: bool
    down: tuple[bool, ...]
    moments: Moments
    prefix: str
    context: str
    parameters: tuple[Expr, ...] = field(compare=False, repr=False)
    over: bool = False


@dataclass(frozen=True, slots=True)
class Clash:
    """The algorithm runs `first` before `second`, and loop `place` of the nest does not; both touch `cell`.

    `accesses` are their numbers in the problem, `sizes` the values of its parameters.
    """

    kind: Kind
    how: How
    place: int
    first: tuple[int, ...]
    second: tuple[int, ...]
    cell: tuple[int, ...]
    accesses: tuple[int, int]
    sizes: tuple[int, ...]


def problem(
    f: Func, stage: int, nest: Nest, points: Points, found: Sequence[Access], free: bool, algebra: Algebra,
    at_least: Mapping[int, int], unequal: bool, fold: tuple[int, int] | None = None, over: str | None = None,
    same: Mapping[str, str] | None = None,
) -> Problem:  # fmt: skip
    """Return whether `points` keep the order of a stage, as a question; TooHard where it cannot be put.

    With `fold`, cells along that dim are kept where those so many before them lay. With `over`, the question is whether
    what is read of that array is read before the stage writes over it.

    Without `unequal`, what is said with `!=` is left out: each such condition doubles the pieces of a set, and few
    answers depend on it.
    """
    words = Words(algebra, at_least, same)
    names = {root.name: f"i{k}" for k, root in enumerate(points.roots)}
    inside: list[str] = []
    for root in points.roots:
        lo = words.sum(algebra.of(root.lo), names)
        hi = words.sum(algebra.of(root.lo) + algebra.of(root.extent) - 1, names)
        inside += [f"{side} {names[root.name]}" for side in ([f"{lo} <="] if lo else [])]
        inside += [f"{names[root.name]} <= {hi}"] if hi else []
    point = f"[{', '.join(names.values())}]"
    accesses: list[tuple[bool, str]] = []
    for access in found:
        if access.source == (f.name if over is None or access.read is None else over):
            cell = f"[{', '.join(f'c{d}' for d in range(len(f.dims)))}]"
            known = [(f"c{d}", _kept(words.sum(i, names), d, fold)) for d, i in enumerate(access.index)]
            held = [
                (words.sum(fact.sum, names), "!=" if fact.unequal else ">=")
                for fact in access.facts
                if unequal or not fact.unequal
            ]
            said = sorted([f"{c} = {w}" for c, w in known if w] + [f"{w} {op} 0" for w, op in held if w])
            accesses.append((access.read is None, f"{{ {point} -> {cell} : {all_of(said)} }}"))
    if not stage:
        own = [_kept(name, d, fold) for d, name in enumerate(names.values())]
        accesses.append((True, f"{{ {point} -> [{', '.join(filter(None, own))}] }}"))
    down = tuple(not stage and root.name in f.backwards for root in points.roots)
    when = moments(nest, points.roots, points.loops, words)
    domain = f"{{ {point} : {all_of(inside)} }}"
    return Problem(
        domain,
        tuple(accesses),
        stage == 0 and fold is None,
        free,
        down,
        when,
        words.prefix(),
        words.context(),
        tuple(words.parameters),
        over is not None,
    )


def _kept(said: str | None, d: int, fold: tuple[int, int] | None) -> str | None:
    return said if said is None or fold is None or fold[0] != d else f"(({said}) mod {fold[1]})"


def replaced(asked: Problem, folded: Problem, operations: int = MOST_OPERATIONS) -> tuple[tuple[int, ...], ...] | None:
    """Return three points, where the third reads what the first wrote and the second has replaced in folded storage.

    The points run in the order of the algorithm. None where there are none; TooHard where it was not found out.
    """
    isl = library()
    try:
        plain, sets = _Sets(isl, asked), _Sets(isl, folded)
    except isl.Error as error:
        raise TooHard(str(error)) from None
    with limited(operations):
        return sets.replaced(plain)


def clash(asked: Problem, operations: int = MOST_OPERATIONS) -> Clash | None:
    """Return the smallest clash, None where there is none; TooHard where it was not found out."""
    isl = library()
    try:
        sets = _Sets(isl, asked)
    except isl.Error as error:
        raise TooHard(str(error)) from None
    with limited(operations):
        return sets.clash()


@dataclass(slots=True)
class _Pair:
    kind: Kind
    accesses: tuple[int, int]
    points: Any


class _Sets:
    """The sets of a problem; everything is parsed when this is made."""

    def __init__(self, isl: Any, asked: Problem) -> None:
        self.isl: Any = isl
        self.asked = asked
        self.out, self.in_ = isl.dim_type.out, isl.dim_type.in_
        context = isl.Set(f"{asked.prefix}{{ : {asked.context} }}")
        self.domain = isl.Set(asked.prefix + asked.domain).intersect_params(context)
        self.touched: list[tuple[bool, Any]] = [
            (writes, isl.Map(asked.prefix + text)) for writes, text in asked.accesses
        ]
        self.when = isl.Map(asked.prefix + asked.moments.text)
        self.loops = asked.moments.loops

    def clash(self) -> Clash | None:
        self.touched = [(w, m.intersect_domain(self.domain)) for w, m in self.touched]
        when = self.when.intersect_range(self.domain)
        pairs = list(self._pairs())
        for kind in Kind:
            mine = [p for p in pairs if p.kind is kind]
            if not mine:
                continue
            whole = mine[0].points
            for p in mine[1:]:
                whole = whole.union(p.points)
            pair = when.apply_range(whole.coalesce()).apply_range(when.reverse())
            for how, place, bad in self._broken(pair, kind):
                if not bad.is_empty():
                    if how is How.PARALLEL and any(loop.rough for loop in self.loops if loop.place == place):
                        raise TooHard("parts of a fused loop run at the same time")
                    return self._witness(when, how, place, bad, mine)
        return None

    def _pairs(self) -> Iterator[_Pair]:
        """Yield the dependences, those that say the same once."""
        seen: list[tuple[Kind, Any]] = []
        earlier = self._earlier()
        for a, (first_writes, first) in enumerate(self.touched):
            for b, (second_writes, second) in enumerate(self.touched):
                if not (first_writes or second_writes):
                    continue
                if self.asked.over:
                    if first_writes or not second_writes:
                        continue
                elif self.asked.once and not (first_writes and not second_writes):
                    continue
                kind = Kind.OUTPUT if second_writes and first_writes else Kind.FLOW if first_writes else Kind.ANTI
                points = first.apply_range(second.reverse())
                apart = self.asked.once or self.asked.over
                points = points.subtract(_same(self.isl, points)) if apart else points.intersect(earlier)
                if points.is_empty() or any(k is kind and p.plain_is_equal(points) for k, p in seen):
                    continue
                seen.append((kind, points))
                yield _Pair(kind, (a, b), points)

    def _earlier(self) -> Any:
        """Return the pairs of points that the algorithm runs in this order."""
        space = self.domain.get_space().map_from_set()
        whole, left = self.isl.Map.empty(space), self.isl.Map.universe(space)
        for k, down in enumerate(self.asked.down):
            step = left.order_gt if down else left.order_lt
            whole = whole.union(step(self.in_, k, self.out, k))
            left = left.equate(self.in_, k, self.out, k)
        return whole

    def replaced(self, plain: _Sets) -> tuple[tuple[int, ...], ...] | None:
        """Return who wrote, who replaced it, and who reads it after that."""
        write = self.touched[-1][1].intersect_domain(self.domain)
        later = self._earlier()
        instead = write.apply_range(write.reverse()).intersect(later)
        for writes, touched in plain.touched:
            if writes:
                continue
            flow = touched.intersect_domain(self.domain).intersect_range(self.domain).reverse()
            lost = flow.reverse().apply_range(instead).intersect(later.reverse())
            if not lost.is_empty():
                values = smallest(self.isl, _flat(lost))[len(self.asked.parameters) :]
                half = len(values) // 2
                reader, second = tuple(values[:half]), tuple(values[half:])
                first = smallest(self.isl, _flat(flow.intersect_range(_at(self.domain, reader, self.isl))))
                return tuple(first[len(self.asked.parameters) :][:half]), second, reader
        return None

    def _broken(self, pair: Any, kind: Kind) -> Iterator[tuple[How, int, Any]]:
        """Yield pairs of moments of dependent points that the loops do not keep apart, in order."""
        if not self.asked.free:
            for order in self._orders():
                left = pair
                for k in order:
                    yield How.ORDER, self.loops[k].place, self._after(left, k)
                    left = left.equate(self.in_, k, self.out, k)
                yield How.ORDER, self.loops[order[-1]].place if order else 0, left
        left = pair
        for k, loop in enumerate(self.loops):
            if loop.kind is LoopKind.PARALLEL:
                yield How.PARALLEL, loop.place, left.order_gt(self.in_, k, self.out, k)
                yield How.PARALLEL, loop.place, left.order_lt(self.in_, k, self.out, k)
            if loop.kind is not LoopKind.VECTOR:
                left = left.equate(self.in_, k, self.out, k)
        lanes = [loop for loop in self.loops if loop.kind is LoopKind.VECTOR]
        if lanes and (kind is not Kind.ANTI or self.asked.free or any(loop.down for loop in lanes)):
            yield How.LANES, lanes[-1].place, left

    def _orders(self) -> list[tuple[int, ...]]:
        """Return the orders of loops that code may have: lanes are in step, or run in turn."""
        every = tuple(range(len(self.loops)))
        lanes = tuple(k for k in every if self.loops[k].kind is LoopKind.VECTOR)
        orders = [every]
        for gone in (lanes, lanes[-1:]):
            order = (*(k for k in every if k not in gone), *gone)
            if order not in orders:
                orders.append(order)
        return orders

    def _after(self, left: Any, k: int) -> Any:
        if self.loops[k].down:
            return left.order_lt(self.in_, k, self.out, k)
        return left.order_gt(self.in_, k, self.out, k)

    def _witness(self, when: Any, how: How, place: int, bad: Any, pairs: Sequence[_Pair]) -> Clash:
        points = bad.apply_domain(when).apply_range(when)
        best: tuple[list[int], _Pair] | None = None
        for pair in pairs:
            both = points.intersect(pair.points)
            if not both.is_empty():
                found = smallest(self.isl, _flat(both))
                if best is None or found < best[0]:
                    best = found, pair
        assert best is not None
        values, pair = best
        sizes, rest = values[: len(self.asked.parameters)], values[len(self.asked.parameters) :]
        half = len(rest) // 2
        first, second = tuple(rest[:half]), tuple(rest[half:])
        cell = self._cell(pair.accesses, sizes, first, second)
        return Clash(pair.kind, how, place, first, second, cell, pair.accesses, tuple(sizes))

    def _cell(
        self, accesses: tuple[int, int], sizes: Sequence[int], first: Sequence[int], second: Sequence[int]
    ) -> tuple[int, ...]:
        dim = self.isl.dim_type
        cells: list[Any] = []
        for number, point in zip(accesses, (first, second), strict=True):
            touched: Any = self.touched[number][1]
            for k, size in enumerate(sizes):
                touched = touched.fix_val(dim.param, k, self.isl.Val.int_from_si(touched.get_ctx(), size))
            for k, at in enumerate(point):
                touched = touched.fix_val(dim.in_, k, self.isl.Val.int_from_si(touched.get_ctx(), at))
            cells.append(touched.range())
        both = cells[0].intersect(cells[1])
        point = both.sample_point()
        return tuple(point.get_coordinate_val(dim.set, k).to_python() for k in range(both.dim(dim.set)))


def _at(points: Any, values: Sequence[int], isl: Any) -> Any:
    for k, value in enumerate(values):
        points = points.fix_val(isl.dim_type.set, k, isl.Val.int_from_si(points.get_ctx(), value))
    return points


def _flat(pairs: Any) -> Any:
    return pairs.wrap().flatten()


def _same(isl: Any, pairs: Any) -> Any:
    return isl.Map.identity(pairs.get_space())


__all__ = ["Clash", "How", "Kind", "Moment", "Problem", "TooHard", "clash", "problem"]
