"""The schedule of who writes none: the same text on every machine, never exponential.

Inline what is cheaper to compute again than to read; keep the rest, in strips of the rows of the Func that reads it
where the halo stays small; vectorise the innermost dim that may run in step, run the outermost in parallel.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from stax.algorithm.domain import plain_dims
from stax.algorithm.nodes import Func, Pipeline
from stax.bounds.accesses import Access, accesses, at_data, kept_inside
from stax.dtypes import int64 as _INT
from stax.expr.affine import Algebra
from stax.expr.nodes import Binary, Call, Const, Expr, Fn, Read, Select, Unary, Var
from stax.expr.walk import children, names, postorder, reads
from stax.schedule.channels import channels
from stax.schedule.directives import (
    CacheRead,
    Clone,
    ComputeAt,
    ComputeRoot,
    Directive,
    FoldStorage,
    Inline,
    Line,
    Overwrite,
    Parallel,
    Reorder,
    Split,
    StageRef,
    StoreAt,
    StoreRoot,
    Unroll,
    Vectorize,
)  # fmt: skip
from stax.schedule.transform import ordered

REGISTER_BYTES = 64
STRIP_ROWS = 32
MOST_HALO = 8
CHEAP = 2
MOST_COPIED = 64
CHUNK = 16384
BLOCK = 128
LIGHT = 40
MOST_SIDE = 8
ROWS_A_TASK = 256
TILE_ROWS = 4
_PLAIN = frozenset({Fn.FMA, Fn.FLOOR, Fn.CEIL, Fn.TRUNC, Fn.RINT, Fn.ISNAN, Fn.COPYSIGN, Fn.ABSD, Fn.SATURATING_CAST})


def complete(pipeline: Pipeline, lines: Iterable[Line]) -> tuple[Line, ...]:
    """Return `lines` with a choice for every Func they do not name."""
    said = tuple(lines)
    return (*said, *Default(pipeline, unnamed(pipeline, said)).lines())


@dataclass(frozen=True, slots=True)
class Unnamed:
    """What lines leave to a default schedule.

    `named` Funcs have their lines; in loops of `hosts` others are placed, and those of `serial` stay in order; `copies`
    are Funcs that lines make; the storage of `whole` ones is not cut.
    """

    named: set[str]
    hosts: list[tuple[str, str]]
    serial: set[str]
    copies: set[str]
    whole: set[str]


def unnamed(pipeline: Pipeline, said: tuple[Line, ...]) -> Unnamed:
    """Return what `said` leaves to a default schedule."""
    named = {line.at.func for line in said if not isinstance(line.directive, FoldStorage | Overwrite)}
    over = {line.at.func: line.directive.target for line in said if isinstance(line.directive, Overwrite)}
    named |= {f.name for f in pipeline.funcs if f.name in over and _reads_around(f, over[f.name])}
    hosts = [(d.consumer, d.loop) for line in said if isinstance(d := line.directive, ComputeAt)]
    copies = {d.name for line in said if isinstance(d := line.directive, CacheRead | Clone)}
    serial = {c for c, _ in hosts} if _stores(said) else set[str]()
    whole = {*over, *over.values()}
    whole |= {f.name for f in pipeline.funcs if over and any(r.source in over.values() for r in _all_reads(f))}
    return Unnamed(named, hosts, serial, copies, whole)


def _reads_around(f: Func, target: str) -> bool:
    """Return whether `f` reads cells of `target` other than that of its own index: its loops then keep their order."""
    found = [r for r in reads(f.values) if r.source == target]
    return any(not isinstance(i, Var) or i.name != d for r in found for i, d in zip(r.index, f.dims, strict=True))


def _all_reads(f: Func) -> list[Read]:
    return reads(
        (*f.values, *(v for u in f.updates for v in (*u.values, *u.index, *([] if u.where is None else [u.where]))))
    )


def _stores(said: tuple[Line, ...]) -> bool:
    """Return whether a Func is kept further out than it is computed."""
    return any(
        isinstance(d := line.directive, StoreAt | StoreRoot) or (isinstance(d, ComputeAt) and d.store is not None)
        for line in said
    )


@dataclass(frozen=True, slots=True)
class _Strip:
    """A Func computed in strips of rows of `head`: its dim `row` moves with them, `lo..hi` rows around."""

    head: str
    row: int
    lo: int
    hi: int


@dataclass(slots=True)
class Default:
    """Chooses for the Funcs that nobody named; what differs on other machines is in methods of their own.

    Those of `once` are not inlined, though they are cheap.
    """

    cheap: ClassVar[int] = CHEAP
    most_copied: ClassVar[int] = MOST_COPIED

    pipeline: Pipeline
    left: Unnamed
    algebra: Algebra = field(default_factory=Algebra)
    readers: dict[str, list[Access]] = field(default_factory=dict[str, list[Access]])
    own: dict[tuple[str, int], list[Access]] = field(default_factory=dict[tuple[str, int], list[Access]])
    funcs: dict[str, Func] = field(default_factory=dict[str, Func])
    strips: dict[str, _Strip] = field(default_factory=dict[str, _Strip])
    channels: dict[str, int] = field(default_factory=dict[str, int])
    once: frozenset[str] = frozenset()

    def lines(self) -> list[Line]:
        """Return a choice for every Func that is not named."""
        self.funcs = {f.name: f for f in self.pipeline.funcs}
        for f in self.pipeline.funcs:
            for stage in range(len(f.updates) + 1):
                found = accesses(f, stage, self.algebra)
                self.own[f.name, stage] = found
                for access in found:
                    if access.source != f.name:
                        self.readers.setdefault(access.source, []).append(access)
        inlined = self._inlined()
        kept = [f for f in self.pipeline.funcs if f.name not in inlined]
        if inlined:
            self._look_through(inlined)
            kept = [f for f in kept if f.name in self.funcs]
        self.channels = channels(self.pipeline, self.own, self.algebra)
        for f in reversed(kept):
            self._strip(f)
        out = [Line(StageRef(name), Inline()) for name in inlined if name not in self.left.named]
        for f in reversed(kept):  # readers first: what is placed at a loop is placed at it as it then is
            if f.name not in self.left.named:
                out += self._placed(f)
                for stage in range(len(f.updates) + 1):
                    out += [
                        Line(StageRef(f.name, stage), d) for d in self._around_guests(f, stage, self._loops(f, stage))
                    ]
        return out

    def _around_guests(self, f: Func, stage: int, chosen: list[Directive]) -> list[Directive]:
        """Leave out what the Funcs that are placed in the loops of `f` do not bear; its order stays."""
        if f.order and not stage and any(host == f.name for host, _ in self.left.hosts):
            return ordered(f)[0]
        loops = {loop for host, loop in self.left.hosts if host == f.name}
        if loops & {*f.dims[self._lane(f) :], *(f"{d}.in" for d in f.dims)}:
            return [d for d in chosen if isinstance(d, Parallel) and d.n is None and f.name not in self.left.serial]
        if f.name in self.left.serial:
            return [d for d in chosen if isinstance(d, Vectorize) and "." not in d.var]
        return chosen

    def _pure(self, f: Func) -> bool:
        grouped = any(f.name in group for group in self.pipeline.groups)
        return not f.updates and not grouped and all(a.source != f.name for a in self.own[f.name, 0])

    def _inlined(self) -> list[str]:
        """Return the Funcs to inline, producers first."""
        costs: dict[str, int] = {}
        sizes: dict[str, int] = {}
        out: list[str] = []
        narrow: set[str] = set()  # inlined, and conditions on their positions keep reads inside: not at data
        for f in self.pipeline.funcs:
            if (
                f.name in self.left.named | self.left.copies | self.left.whole | self.once
                or f.name in self.pipeline.outputs
                or not self._pure(f)
            ):
                continue
            cost = operations(f.values, costs)
            size = node_count(f.values, sizes)
            found = self.readers.get(f.name, [])
            sites = {(a.func, a.stage, a.index) for a in found}
            repeated = any(self._repeats(f, a) for a in found)
            mine = self.own[f.name, 0]
            narrows = kept_inside(mine) or any(a.source in narrow for a in mine)
            if narrows and any(at_data(a, self.algebra) for a in found):
                continue
            if (cost <= self.cheap and size <= self.most_copied) or (len(sites) == 1 and not repeated):
                costs[f.name], sizes[f.name] = cost, size
                narrow |= {f.name} if narrows else set()
                out.append(f.name)
        return out

    def _repeats(self, f: Func, access: Access) -> bool:
        """Return whether the reader asks for the same cell in several iterations."""
        reader = self.funcs[access.func]
        roots = set(reader.dims)
        if access.stage:
            roots = names(reader.updates[access.stage - 1].index) & set(reader.dims)
            roots |= {r.name for r in reader.updates[access.stage - 1].domain}
        used = {n for i in access.index for n in names(self.algebra.atom(t) for t, _ in i.terms)}
        return not roots <= used

    def _look_through(self, inlined: list[str]) -> None:
        """Find the readers anew, as they are once `inlined` are gone."""
        from stax.algorithm.inline import inline

        self.pipeline = inline(self.pipeline, frozenset(inlined))
        self.funcs = {f.name: f for f in self.pipeline.funcs}
        self.readers, self.own = {}, {}
        for f in self.pipeline.funcs:
            for stage in range(len(f.updates) + 1):
                found = accesses(f, stage, self.algebra)
                self.own[f.name, stage] = found
                for access in found:
                    if access.source != f.name:
                        self.readers.setdefault(access.source, []).append(access)

    def _strip(self, f: Func) -> None:
        """Compute `f` in strips of its readers' rows, where all of them move with the same ones."""
        if f.name in self.left.named | self.left.whole or f.name in self.pipeline.outputs or not self._local(f):
            return
        found: _Strip | None = None
        for access in self.readers.get(f.name, []):
            one = self._follows(access)
            if one is None or (found is not None and (one.head, one.row) != (found.head, found.row)):
                return
            found = one if found is None else _Strip(one.head, one.row, min(one.lo, found.lo), max(one.hi, found.hi))
        if found is not None and found.hi - found.lo <= MOST_HALO and found.head not in self.left.whole:
            self.strips[f.name] = found

    def _local(self, f: Func) -> bool:
        """Return whether each cell needs only its own position: no recurrence, no group, no scatter."""
        grouped = any(f.name in group for group in self.pipeline.groups)
        if grouped or any(a.source == f.name for a in self.own[f.name, 0]):
            return False
        return all(
            all(self.algebra.name(i) == d for i, d in zip(a.index, f.dims, strict=True))
            for stage in range(1, len(f.updates) + 1)
            for a in self.own[f.name, stage]
            if a.source == f.name
        )

    def _follows(self, access: Access) -> _Strip | None:
        reader = self.funcs[access.func]
        strip = self.strips.get(reader.name)
        if strip is None:
            if self._lane(reader) < 1 or access.stage or not self._pure(reader) or reader.name in self.left.named:
                return None
            strip = _Strip(reader.name, self._lane(reader) - 1, 0, 0)
        row = reader.dims[strip.row]
        rows = [d for d, i in enumerate(access.index) if row in names(self.algebra.atom(n) for n, _ in i.terms)]
        if len(rows) != 1:
            return None
        gap = access.index[rows[0]] - self.algebra.of(Var(_INT, row))
        if gap.terms or abs(gap.const) > MOST_HALO:
            return None
        return _Strip(strip.head, rows[0], strip.lo + gap.const, strip.hi + gap.const)

    def _members(self, head: str) -> list[str]:
        return [name for name, strip in self.strips.items() if strip.head == head]

    def _placed(self, f: Func) -> list[Line]:
        strip = self.strips.get(f.name)
        if strip is None:
            return [] if f.name in self.pipeline.outputs else [Line(StageRef(f.name), ComputeRoot())]
        head = self.funcs[strip.head]
        return [Line(StageRef(f.name), ComputeAt(head.name, 0, head.dims[self._lane(head) - 1]))]

    def _lane(self, f: Func) -> int:
        """Return which dim becomes lanes: the last, but that of pixels where the last is their channels."""
        return len(f.dims) - (2 if f.name in self.channels and len(f.dims) > 1 else 1)

    def _in_lanes(self, f: Func, var: str, lanes: int, domain: Iterable[str] = ()) -> list[Directive]:
        """Return lanes along `var`, all channels of as many pixels at a time, inside the loops of `domain`."""
        last = f.dims[-1]
        if self._lane(f) == len(f.dims) - 1:
            return [Vectorize(var, lanes)]
        return [
            Vectorize(var, lanes),
            Unroll(last, self.channels[f.name]),
            Reorder((last, var, *domain, f"{last}.in", f"{var}.in")),
        ]

    def _loops(self, f: Func, stage: int) -> list[Directive]:
        lanes = lanes_of(f, stage)
        if stage == 0 and self._pure(f):
            return self._pure_loops(f, lanes)
        if stage == 0:
            moved = self._moved(f)
            return self._pure_loops(f, lanes) if not moved else self._recurrence_loops(f, lanes, moved)
        return self._update_loops(f, stage, lanes)

    def _pure_loops(self, f: Func, lanes: int) -> list[Directive]:
        inside = f.name in self.strips
        if not f.dims:
            return []
        at = self._lane(f)
        lane = f.dims[at]
        if inside:
            return self._in_lanes(f, lane, lanes)
        if at == 0:
            return [Parallel(lane, CHUNK), *self._in_lanes(f, f"{lane}.in", lanes)]
        members = self._members(f.name)
        row, outer = f.dims[at - 1], f.dims[: at - 1]
        if members:
            out: list[Directive] = [Parallel(row, STRIP_ROWS)]
            if outer:
                out.append(Reorder((row, *outer, f"{row}.in")))
            return [*out, *self._in_lanes(f, lane, lanes)]
        wide = 2 * lanes if operations(f.values, {}) <= LIGHT else lanes
        return [*(Parallel(d) for d in outer), Parallel(row, STRIP_ROWS), *self._in_lanes(f, lane, wide)]

    def _moved(self, f: Func) -> list[tuple[str, ...]]:
        """Return, for each read of its own Func, the dims it lies elsewhere in; of a group, that those it steps are."""
        out = [
            tuple(d for d, i in zip(f.dims, a.index, strict=True) if self.algebra.name(i) != d)
            for a in self.own[f.name, 0]
            if a.source == f.name
        ]
        if any(f.name in group for group in self.pipeline.groups):
            out += [(d,) for d in f.dims[: f.together]]
        return [dims for dims in out if dims]

    def _recurrence_loops(self, f: Func, lanes: int, moved: list[tuple[str, ...]]) -> list[Directive]:
        if f.order:
            made, _ = ordered(f)
            return [*made, *(Parallel(d) for d in f.dims if all(d not in dims for dims in moved))][: len(made) + 1]
        leads = {dims[0] for dims in moved}
        still = [d for d in f.dims if all(d not in dims for dims in moved)]
        grouped = any(f.name in group for group in self.pipeline.groups)
        last = f.dims[-1]
        if self._lane(f) < len(f.dims) - 1 and last in still:
            lane = f.dims[self._lane(f)]
            free = [Parallel(d) for d in still if d not in (lane, last)][:1]
            return (
                [*free, *self._in_lanes(f, lane, lanes)]
                if lane in still
                else [*free, Unroll(last, self.channels[f.name])]
            )
        if last in still and len(leads) == 1 and not grouped and f.dims[0] not in leads:
            others = [d for d in f.dims if d != last and d in still]
            rest = [d for d in f.dims if d not in still]
            order = (*others, last, *rest, f"{last}.in")
            return [
                Parallel(last, BLOCK), Reorder(order), *(Parallel(d) for d in others), Vectorize(f"{last}.in", lanes),
            ]  # fmt: skip
        out: list[Directive] = []
        if last not in leads:
            free = [d for d in f.dims[:-1] if d not in leads]
            out += [Parallel(d) for d in free[:1]]
            return [*out, Vectorize(last, lanes)]
        return [Parallel(d) for d in still[:1]]

    def _update_loops(self, f: Func, stage: int, lanes: int) -> list[Directive]:
        update = f.updates[stage - 1]
        plain = list(plain_dims(f, update))
        if not plain:
            return []
        inside = f.name in self.strips
        last, domain = plain[-1], [r.name for r in update.domain]
        contiguous = last == f.dims[-1] and not self._runs_along_domain(f, stage)
        light = operations(update.values, {}) <= LIGHT
        ragged = any(names((r.lo, r.hi)) & set(f.dims) for r in update.domain)
        if f.name in self.channels and (last,) == f.dims:
            n = self.channels[f.name]
            return [Unroll(last, n), *([] if ragged else [Reorder((last, *domain, f"{last}.in"))])]
        if self._lane(f) < len(f.dims) - 1 and tuple(plain[-2:]) == f.dims[-2:]:
            return self._pixel_update_loops(f, plain, () if ragged else domain, lanes, inside)
        if not contiguous:
            side = min(lanes, MOST_SIDE)
            turned = [Unroll(domain[-1], side)] if light and domain else []
            if inside:
                return [Vectorize(last, side), *turned]
            return [
                *(Parallel(d) for d in plain[:-1]), Parallel(last, ROWS_A_TASK), Vectorize(f"{last}.in", side), *turned,
            ]  # fmt: skip
        if len(plain) == 1:
            return [Vectorize(last, lanes)] if inside else [Parallel(last, CHUNK), Vectorize(f"{last}.in", lanes)]
        row = plain[-2]
        threads = [] if inside else [*(Parallel(d) for d in plain[:-2]), Parallel(row, STRIP_ROWS)]
        if not light or not domain or ragged:
            return [*threads, Vectorize(last, lanes)]
        rows = row if inside else f"{row}.in"
        return [
            *threads,
            Split(rows, rows, f"{row}.tile", TILE_ROWS),
            Vectorize(last, 2 * lanes),
            Reorder((last, rows, *domain, f"{row}.tile", f"{last}.in")),
            Unroll(f"{row}.tile"),
        ]

    def _pixel_update_loops(
        self, f: Func, plain: list[str], domain: Iterable[str], lanes: int, inside: bool
    ) -> list[Directive]:
        *rows, lane, _ = plain
        if inside:
            return self._in_lanes(f, lane, lanes, domain)
        if not rows:
            return [Parallel(lane, CHUNK), *self._in_lanes(f, f"{lane}.in", lanes, domain)]
        outer = [Parallel(d) for d in rows[:-1]]
        return [*outer, Parallel(rows[-1], STRIP_ROWS), *self._in_lanes(f, lane, lanes, domain)]

    def _runs_along_domain(self, f: Func, stage: int) -> bool:
        """Return whether what the update reads lies side by side along its domain, not along its own dims."""
        domain = {r.name for r in f.updates[stage - 1].domain}
        found = [a for a in self.own[f.name, stage] if a.read is not None and a.source != f.name and a.index]
        ends = [{n for n in names(self.algebra.atom(t) for t, _ in a.index[-1].terms)} for a in found]
        plain = set(f.dims)
        return any(e & domain and not e & plain for e in ends) and not any(e & plain for e in ends)


def operations(roots: Iterable[Expr], inlined: dict[str, int]) -> int:
    """Return how many operations `roots` take, those of inlined Funcs included."""
    total = 0
    for node in postorder(roots):
        match node:
            case Call(fn=fn):
                total += 1 if fn in _PLAIN else 10
            case Binary() | Unary() | Select() if node.dtype.name != "int64":
                total += 1
            case Read(source=source):
                total += inlined.get(source, 0)
            case _:
                pass
    return total


def node_count(roots: Iterable[Expr], inlined: dict[str, int]) -> int:
    """Return how many nodes `roots` have, with a copy of each inlined Func at each read of it."""
    return sum(1 + inlined.get(n.source, 0) if isinstance(n, Read) else 1 for n in postorder(roots))


def lanes_of(f: Func, stage: int) -> int:
    """Return how many values of the widest type that a stage computes fit a register; positions do not count."""
    widest = max(t.size_bytes for t in f.dtypes)
    stack: list[Expr] = list(f.values if stage == 0 else f.updates[stage - 1].values)
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen or isinstance(node, Const | Var):
            continue
        seen.add(id(node))
        if node.dtype.name != "int64" or isinstance(node, Read):
            widest = max(widest, node.dtype.size_bytes)
        if not isinstance(node, Read):
            stack += children(node)
    return max(8, REGISTER_BYTES // widest)
