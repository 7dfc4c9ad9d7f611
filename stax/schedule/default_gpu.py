"""The schedule of who writes none, for machines that run blocks: programs that share nothing, each on tiles of lanes.

Inline what is cheaper to compute again than to read; a sum of a row is computed in the program that needs it, all else
that is kept goes to memory, a kernel a stage. Lanes are tiles of the innermost dims, or the iterations of a reduced
loop that runs along memory, where sums may be taken in another order.

Where the sizes of a call are known to be so, rows are kept whole as lanes, read and computed once; and what a point
needs of a few rows is rolled: a program takes a strip of rows, and each row of it is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stax.algorithm.combine import combine
from stax.algorithm.domain import plain_dims
from stax.algorithm.nodes import Func, Pipeline, Update
from stax.bounds.accesses import Access
from stax.dtypes import int64
from stax.expr import build
from stax.expr.nodes import BinaryOp, Read, Var
from stax.expr.walk import names, postorder
from stax.schedule.default import Default, Unnamed, operations, unnamed
from stax.schedule.directives import (
    Atomic,
    ComputeAt,
    ComputeRoot,
    Directive,
    Line,
    MatrixUnit,
    Parallel,
    Reassociate,
    Reorder,
    Split,
    StageRef,
    StoreAt,
    Swizzle,
    Vectorize,
    Warps,
)
from stax.schedule.products import Product, product
from stax.schedule.transform import ordered

LINE = 1024
ROW = 256
ROWS, COLUMNS = 4, 512
CHUNK = 1024
CHEAP = 12
MOST_COPIED = 256
FEW = 32
GROUP = 8
UNIT_WARPS = 8
COSTLY = 10
ATOMS = (BinaryOp.ADD, BinaryOp.MIN, BinaryOp.MAX, BinaryOp.AND, BinaryOp.OR, BinaryOp.XOR)
STRIP = 32
LEAST_ROLLED = 3
MOST_ROLLED = 8
MOST_TRIED = 8
BYTES_A_THREAD = 64
MOST_WARPS = 16


@dataclass(frozen=True, slots=True)
class Extents:
    """What holds of the sizes of a call.

    `row`: rows have at most so many elements, where it is not 0. `many`: there are points enough for all programs when
    each takes a strip of them.
    """

    row: int = 0
    many: bool = False


def complete(
    pipeline: Pipeline, lines: Iterable[Line], *, bitwise: bool = False, extents: Extents | None = None
) -> tuple[Line, ...]:
    """Return `lines` with a choice for every Func they do not name; sums keep their order where it is `bitwise`.

    The schedule is for calls of `extents`: those of longer rows are refused.
    """
    said, known = tuple(lines), extents or Extents()
    left, once = unnamed(pipeline, said), frozenset[str]()
    chosen = _Blocks(pipeline, left, bitwise, known, once)
    made = chosen.lines()
    for name in chosen.worth_keeping()[:MOST_TRIED]:
        tried = _Blocks(pipeline, left, bitwise, known, once | {name})
        other = tried.lines()
        if name in tried.kept or name in tried.rolled:
            once, made = once | {name}, other
    return (*said, *made)


class _Blocks(Default):
    cheap, most_copied = CHEAP, MOST_COPIED

    def __init__(
        self, pipeline: Pipeline, left: Unnamed, bitwise: bool, extents: Extents, once: frozenset[str]
    ) -> None:
        super().__init__(pipeline, left, once=once)
        self.bitwise, self.extents = bitwise, extents
        self.rows: dict[str, str] = {}
        self.kept: set[str] = set()
        self.rolled: dict[str, str] = {}
        self.fused: dict[str, str] = {}
        self.cheap_ones: list[str] = []

    def _inlined(self) -> list[str]:
        found = super()._inlined()
        self.cheap_ones = [f for f in reversed(found) if self._worth_keeping(self.funcs[f])]
        return found

    def worth_keeping(self) -> list[str]:
        """Return Funcs that are inlined and might rather be computed once, readers first."""
        return self.cheap_ones

    def _worth_keeping(self, f: Func) -> bool:
        found = self.readers.get(f.name, [])
        costly = bool(self.extents.row) and operations(f.values, {}) >= COSTLY and len(found) > 1
        return costly or (self.extents.many and len({a.index for a in found}) >= LEAST_ROLLED)

    def _strip(self, f: Func) -> None:
        """Compute a value of each row in the program that needs it, and rows of it once in the strip that does."""
        taken = {*self.left.named, *self.left.whole, *self.pipeline.outputs}
        if f.name in taken or not self._local(f) or not f.dims:
            return
        if f.name in self.once:
            self._keep(f)
            return
        head = self._fused_into(f)
        if head is not None:
            self.fused[f.name] = head
            return
        heads = {self._row_of(f, access.func, access.stage, access.index) for access in self.readers.get(f.name, [])}
        if len(heads) == 1 and None not in heads:
            (head,) = heads
            if head is not None and head not in self.left.whole:
                self.rows[f.name] = head

    def _product(self, f: Func, stage: int) -> Product | None:
        if self.bitwise or f.fp == "strict":
            return None
        return product(f, stage)

    def _fused_into(self, f: Func) -> str | None:
        """Return the Func that alone reads a product of matrices, each cell at its own: it takes its tiles."""
        if len(f.updates) != 1 or self._product(f, 1) is None:
            return None
        found = self.readers.get(f.name, [])
        readers = {a.func for a in found}
        if len(readers) != 1:
            return None
        one = self.funcs[readers.pop()]
        busy = one.name in self.left.named | self.left.whole or one.name in {*self.fused.values(), *self.rows.values()}
        here = all(tuple(self.algebra.name(i) for i in a.index) == one.dims and not a.stage for a in found)
        return one.name if here and not busy and self._pure(one) else None

    def _keep(self, f: Func) -> None:
        """Keep a row of `f` as lanes of the program whose row it is, or roll rows of it."""
        found = self.readers.get(f.name, [])
        heads = {self.rows.get(a.func, a.func) for a in found}
        if len(heads) != 1 or f.name in self.channels:
            return
        one = self.funcs[heads.pop()]
        if one.name in self.left.named | self.left.whole or one.name in self.channels or not self._pure(one):
            return
        lane = self._lane(one)
        if self.extents.row and any(a.func in self.rows for a in found) and len(f.dims) == len(one.dims) == lane + 1:
            outer = one.dims[:lane]
            at = [tuple(self.algebra.name(i) for i in a.index) for a in found]
            if all(i[:-1] == outer and i[-1] is not None for i in at):
                self.rows[f.name] = one.name
                self.kept.add(f.name)
        elif self.extents.many and {a.func for a in found} == {one.name} and self._rolls(f, one, found):
            self.rolled[f.name] = one.name

    def _rolls(self, f: Func, one: Func, found: list[Access]) -> bool:
        """Return whether `one` reads each column of `f` in a few rows around its own."""
        if len(one.dims) < 2 or len(f.dims) != len(one.dims) or one.name in {*self.rows.values(), *self.fused.values()}:
            return False
        gaps = [
            tuple(i - self.algebra.of(Var(int64, d)) for i, d in zip(a.index, one.dims, strict=True)) for a in found
        ]
        if any(gap.terms for each in gaps for gap in each):
            return False
        steps = {each[-2].const for each in gaps}
        still = (
            all(gap.const == 0 for each in gaps for gap in each[:-2]) and len({each[-1].const for each in gaps}) == 1
        )
        return still and len(steps) >= LEAST_ROLLED and max(steps) - min(steps) <= MOST_ROLLED

    def _row_of(self, f: Func, reader: str, stage: int, index: tuple[object, ...]) -> str | None:
        """Return the Func in whose rows `reader` reads `f`; None where it reads at anything but its own row."""
        one = self.funcs[reader]
        head = self.rows.get(reader)
        outer = one.dims if head is not None and reader not in self.kept else one.dims[: self._lane(one)]
        if head is None and (stage or not self._pure(one) or reader in self.left.named):
            return None
        if head is None and len(f.dims) == len(one.dims):
            outer = one.dims
        at = tuple(self.algebra.name(i) for i in index)  # pyright: ignore[reportArgumentType]
        if at != outer or (not self._is_row_sum(f) and head is None and len(f.dims) == len(one.dims)):
            return None
        return head or reader

    def _is_row_sum(self, f: Func) -> bool:
        return bool(f.updates) and all(self._reduced(f, k + 1) is not None for k in range(len(f.updates)))

    def _reduced(self, f: Func, stage: int) -> str | None:
        """Return the loop that runs along memory and whose values may be combined in any order, if it is long."""
        update = f.updates[stage - 1]
        how = combine(f, update)
        if how is None or (not how.exact and (self.bitwise or f.fp == "strict")) or not update.domain:
            return None
        if plain_dims(f, update) != f.dims:
            return None
        last = update.domain[-1]
        extent = build.integer(last.hi) if build.integer(last.lo) == 0 else None
        if extent is not None and extent < FEW:
            return None
        return last.name if self._runs_along_domain(f, stage) else None

    def _runs_along_domain(self, f: Func, stage: int) -> bool:
        """Return whether all that moves with the innermost variable of the domain moves along memory."""
        last = f.updates[stage - 1].domain[-1].name
        moving = [
            [{n for n in names(self.algebra.atom(t) for t, _ in i.terms)} for i in a.index]
            for a in self.own[f.name, stage]
            if a.read is not None and a.source != f.name
        ]
        moving = [used for used in moving if any(last in u for u in used)]
        return bool(moving) and all(last in used[-1] for used in moving)

    def _placed(self, f: Func) -> list[Line]:
        into = self.fused.get(f.name)
        made = self._product(f, 1) if into is not None else None
        if into is not None and made is not None:
            return [Line(StageRef(f.name), ComputeAt(into, 0, self.funcs[into].dims[f.dims.index(made.j)]))]
        if f.name in self.rolled:
            head = self.rolled[f.name]
            y, x = self.funcs[head].dims[-2:]
            return [Line(StageRef(f.name), d) for d in (StoreAt(head, 0, x), ComputeAt(head, 0, f"{y}.in"))]
        head = self.rows.get(f.name)
        if head is None:
            return [] if f.name in self.pipeline.outputs else [Line(StageRef(f.name), ComputeRoot())]
        one = self.funcs[head]
        outer = len(f.dims) - (1 if f.name in self.kept else 0)
        return [Line(StageRef(f.name), ComputeAt(head, 0, one.dims[outer - 1]))]

    def _around_guests(self, f: Func, stage: int, chosen: list[Directive]) -> list[Directive]:
        if f.order and not stage and any(host == f.name for host, _ in self.left.hosts):
            return ordered(f)[0]
        if any(host == f.name for host, _ in self.left.hosts):
            return [d for d in chosen if isinstance(d, Parallel) and d.n is None and f.name not in self.left.serial]
        return chosen

    def _pure_loops(self, f: Func, lanes: int) -> list[Directive]:
        if f.name in self.kept:
            return [Vectorize(f.dims[-1], upto=self.extents.row)]
        if f.name in self.rolled:
            return [Vectorize(f.dims[-1], upto=ROW)]
        if not f.dims or f.name in self.rows:
            return []
        if f.name in self.fused:
            made = self._product(f, 1)
            return [] if made is None else _lanes(made)
        for name in (n for n, head in self.fused.items() if head == f.name):
            inner = self.funcs[name]
            made = self._product(inner, 1)
            if made is not None:
                i, j = (f.dims[inner.dims.index(d)] for d in (made.i, made.j))
                return [*_grid(f.dims, i, j, made), Swizzle(GROUP), Warps(UNIT_WARPS)]
        guests = [
            len(self.funcs[name].dims) for name, head in self.rows.items() if head == f.name and name not in self.kept
        ]
        if guests:
            return self._row_loops(f, max(guests))
        if f.name in self.rolled.values():
            return self._strip_loops(f.dims)
        return self._tile(f.dims)

    def _row_loops(self, f: Func, outer: int) -> list[Directive]:
        """Return one program for each row, on chunks of its lanes."""
        made: list[Directive] = [Parallel(d) for d in f.dims[:outer]]
        rest = f.dims[outer:]
        if rest and self.extents.row:
            guests = [name for name, head in self.rows.items() if head == f.name]
            made += [Vectorize(rest[-1], upto=self.extents.row), self._row_warps((f.name, *guests), f.dims[:outer])]
        elif rest:
            lane = rest[-1]
            made += [Split(lane, lane, f"{lane}.in", CHUNK), Vectorize(f"{lane}.in")]
        return made

    def _row_warps(self, many: Iterable[str], outer: tuple[str, ...]) -> Warps:
        """Return as many warps as give each thread some bytes of the widest row that is read along its lanes."""
        computed = [self.funcs[name] for name in many]
        roots = [v for f in computed for values in (f.values, *(u.values for u in f.updates)) for v in values]
        found = [n for n in postorder(roots) if isinstance(n, Read) and not names(n.index) <= {*outer}]
        widest = max([1, *(n.dtype.size_bytes for n in found)])
        return Warps(min(MOST_WARPS, max(4, self.extents.row * widest // (32 * BYTES_A_THREAD))))

    def _strip_loops(self, dims: tuple[str, ...]) -> list[Directive]:
        """Return strips of rows as programs, each column a lane, one row at a time."""
        *outer, y, x = dims
        tile = [Parallel(y, STRIP), Parallel(x, ROW), Reorder((y, x, f"{y}.in", f"{x}.in")), Vectorize(f"{x}.in")]
        return [*(Parallel(d) for d in outer), *tile]

    def _tile(self, dims: tuple[str, ...]) -> list[Directive]:
        """Return tiles of the two innermost of `dims` as programs, each point a lane."""
        *outer, x = dims
        made: list[Directive] = [Parallel(d) for d in outer]
        if not outer:
            return [Parallel(x, LINE), Vectorize(f"{x}.in")]
        y = outer[-1]
        made[-1] = Parallel(y, ROWS)
        made += [Parallel(x, COLUMNS), Reorder((y, x, f"{y}.in", f"{x}.in"))]
        return [*made, Vectorize(f"{y}.in"), Vectorize(f"{x}.in")]

    def _recurrence_loops(self, f: Func, lanes: int, moved: list[tuple[str, ...]]) -> list[Directive]:
        if f.order:
            made, loops = ordered(f)
            free = [d for d in f.dims if all(d not in dims for dims in moved)]
            if len(loops) == 1 or not free:
                return made
            return [*made, *(Parallel(d) for d in free)][: len(made) + 1]
        still = tuple(d for d in f.dims if all(d not in dims for dims in moved))
        rest = tuple(d for d in f.dims if d not in still)
        if any(f.name in group for group in self.pipeline.groups):
            inner = f.dims[f.together :]
            return self._tile(inner) if inner and set(inner) <= set(still) else []
        if still:
            tile = self._tile(still)
            loops = [d for d in still if f"{d}.in" not in _made(tile)]
            split = [d for d in still if f"{d}.in" in _made(tile)]
            return [*tile, Reorder((*loops, *split, *(f"{d}.in" for d in split), *rest))]
        leads = {dims[0] for dims in moved}
        if len(leads) == 1 and f.dims[0] in leads and len(f.dims) > 1:
            return self._tile(f.dims[1:])
        return []

    def _update_loops(self, f: Func, stage: int, lanes: int) -> list[Directive]:
        update = f.updates[stage - 1]
        plain = plain_dims(f, update)
        domain = tuple(r.name for r in update.domain)
        made = self._product(f, stage)
        if made is not None:
            return self._product_loops(f, plain, domain, made)
        inside = f.name in self.rows
        along = self._reduced(f, stage)
        if along is not None and not _ragged(f, update):
            how = combine(f, update)
            free: list[Directive] = [] if how is None or how.exact else [Reassociate()]
            programs: list[Directive] = [] if inside else [Parallel(d) for d in plain]
            if self.extents.row:
                warps = [] if inside else [self._row_warps((f.name,), plain)]
                return [*free, *programs, Vectorize(along, upto=self.extents.row), *warps]
            return [*free, *programs, Split(along, along, f"{along}.in", CHUNK), Vectorize(f"{along}.in")]
        if inside:
            return []
        if plain:
            tile = self._tile(plain)
            split = [d for d in plain if f"{d}.in" in _made(tile)]
            order = (*plain, *(f"{d}.in" for d in split), *domain)
            return [*tile, *([Reorder(order)] if domain and not _ragged(f, update) else [])]
        return self._scatter_loops(f, update)

    def _product_loops(
        self, f: Func, plain: tuple[str, ...], domain: tuple[str, ...], made: Product
    ) -> list[Directive]:
        i, j, k = made.i, made.j, made.k
        exact = f.dtypes[0].is_integer
        free: list[Directive] = [] if exact else [Reassociate()]
        more = tuple(r for r in domain if r != k)
        chunk = Split(k, k, f"{k}.in", sizes(made)[2])
        if f.name in self.fused:
            rest = tuple(d for d in plain if d not in (i, j))
            order = Reorder((*rest, *more, k, i, j, f"{k}.in"))
            return [*free, chunk, order, *_lanes(made), Vectorize(f"{k}.in"), MatrixUnit(i, j, f"{k}.in")]
        ends = (f"{i}.in", f"{j}.in", f"{k}.in")
        rest = tuple(d for d in plain if d not in (i, j))
        return [
            *free, *_grid(plain, i, j, made), chunk, Reorder((*rest, i, j, *more, k, *ends)), Vectorize(ends[2]),
            MatrixUnit(*ends), Swizzle(GROUP), Warps(UNIT_WARPS),
        ]  # fmt: skip

    def _scatter_loops(self, f: Func, update: Update) -> list[Directive]:
        """Return lanes that meet in cells, where those can be combined one at a time."""
        how = combine(f, update)
        if how is None or not how.exact or f.dtypes[0].bits < 32 or not update.domain or not f.dims:
            return []
        if how.op not in ATOMS or _ragged(f, update):
            return []
        return [Atomic(), *self._tile(tuple(r.name for r in update.domain))]


def sizes(made: Product) -> tuple[int, int, int]:
    """Return the tile of a product that one program takes."""
    return (128, 256, 64) if made.halves else (128, 128, 32)


def _lanes(made: Product) -> list[Directive]:
    """Return the lanes of a tile whose extents its reader gives."""
    return [Vectorize(d, upto=n) for d, n in zip((made.i, made.j), sizes(made), strict=False)]


def _grid(dims: tuple[str, ...], i: str, j: str, made: Product) -> list[Directive]:
    """Return a program for each tile of `i` and `j`."""
    rows, columns, _ = sizes(made)
    rest = tuple(d for d in dims if d not in (i, j))
    tile = [Parallel(i, rows), Parallel(j, columns), Reorder((*rest, i, j, f"{i}.in", f"{j}.in"))]
    return [*(Parallel(d) for d in rest), *tile, Vectorize(f"{i}.in"), Vectorize(f"{j}.in")]


def _made(directives: Iterable[Directive]) -> set[str]:
    return {d.var for d in directives if isinstance(d, Vectorize)}


def _ragged(f: Func, update: Update) -> bool:
    """Return whether a range of the domain depends on where the update is."""
    inner = {r.name for r in update.domain} | set(f.dims)
    return any(names((r.lo, r.hi)) & inner for r in update.domain)
