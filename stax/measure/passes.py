"""What a program moves to and from memory, pass by pass: a pass is a nest of loops that no other nest is around.

In a pass each cell that is read of an array in memory is read once, and each cell that is written is written once:
rows and tiles that are used again stay in caches. In memory are arrays of the caller, Funcs that are kept as long as
the kernel runs, and whatever is kept in planes: storage of more than two MiB, or, where sizes are not known, with two
dims or more that are as long as those of arrays. What is read in the pass that makes it is in a cache, but where a
plane lies between.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from stax.algorithm.nodes import Func, Pipeline
from stax.bounds.accesses import Access
from stax.bounds.infer import Box, Regions, finite, hull, stage_ranges
from stax.expr.affine import Interval, Prover
from stax.measure.extents import Extents
from stax.measure.polynomial import Polynomial
from stax.schedule.directives import StageRef
from stax.schedule.legal import Legal

NOTHING = Polynomial()
MOST_BOXES = 8


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes that a pass reads and writes: `name` is the stage whose loops are outermost, `stages` are all of them."""

    name: str
    stages: tuple[str, ...]
    read: Polynomial
    written: Polynomial


def scheduled(legal: Legal, extents: Extents) -> tuple[Moved, ...]:
    """Return what each pass of a schedule moves."""
    near, far = set[str](), set[str]()
    algebra = legal.regions.context.algebra
    for f in legal.pipeline.funcs:
        placed, cell = legal.placed[f.name], sum(t.size_bytes for t in f.dtypes)
        inner = f.name not in legal.pipeline.outputs and (placed.store is not None or any(placed.fold))
        kept = [dim for dim, n in zip(placed.kept, placed.fold, strict=True) if n is None]
        if inner and not extents.is_large(kept, cell * math.prod(n or 1 for n in placed.fold), algebra):
            near.add(f.name)
        elif placed.compute is not None and extents.is_large(placed.new, cell, algebra):
            far.add(f.name)
    counter = _Counter(legal.pipeline, legal.regions, extents, frozenset(near), frozenset(far))
    hosts = {guest: t.host for t in legal.together for guest, _ in t.guests}
    return counter.passes((ref, _head(ref, hosts, legal)) for ref in _stages(legal.pipeline))


def one_by_one(pipeline: Pipeline, regions: Regions, extents: Extents) -> tuple[Moved, ...]:
    """Return what each Func moves where each is computed by itself, whole, before what reads it."""
    counter = _Counter(pipeline, regions, extents, frozenset())
    return counter.passes((ref, StageRef(ref.func)) for ref in _stages(pipeline))


def least(pipeline: Pipeline, regions: Regions, extents: Extents) -> Moved:
    """Return what no schedule can go below: cells of inputs that are read, once, and those of outputs, once."""
    stages = _stages(pipeline)
    inner = frozenset(f.name for f in pipeline.funcs if f.name not in pipeline.outputs)
    made = _Counter(pipeline, regions, extents, inner).moved(stages[0], stages, frozenset())
    return Moved("least", made.stages, made.read, made.written)


def _stages(pipeline: Pipeline) -> list[StageRef]:
    return [StageRef(f.name, k) for f in pipeline.funcs for k in range(len(f.updates) + 1)]


def _head(ref: StageRef, hosts: dict[StageRef, StageRef], legal: Legal) -> StageRef:
    """Return the stage whose outermost loops `ref` runs in."""
    while True:
        around = hosts.get(ref)
        level = legal.placed[ref.func].compute
        if around is None and level is not None:
            around = level.stage
        if around is None:
            return ref
        ref = around


@dataclass(slots=True)
class _Counter:
    """Counts the bytes of passes; Funcs `near` never leave the caches, Funcs `far` do before they are read."""

    pipeline: Pipeline
    regions: Regions
    extents: Extents
    near: frozenset[str]
    far: frozenset[str] = frozenset()
    types: dict[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])
    lengths: dict[Interval, Polynomial] = field(default_factory=dict[Interval, Polynomial])

    def __post_init__(self) -> None:
        self.types = {f.name: tuple(t.size_bytes for t in f.dtypes) for f in self.pipeline.funcs}
        self.types |= {a.name: (a.dtype.size_bytes,) for a in (*self.pipeline.inputs, *self.pipeline.tables)}

    def passes(self, stages: Iterable[tuple[StageRef, StageRef]]) -> tuple[Moved, ...]:
        """Return what passes move, each being the stages that have one head."""
        found: dict[StageRef, list[StageRef]] = {}
        for ref, head in stages:
            found.setdefault(head, []).append(ref)
        earlier: set[str] = set()
        out: list[Moved] = []
        for head, members in found.items():
            out.append(self.moved(head, members, earlier))
            earlier |= {ref.func for ref in members}
        return tuple(out)

    def moved(self, head: StageRef, members: Sequence[StageRef], earlier: Iterable[str]) -> Moved:
        """Return what one pass moves, after others wrote the Funcs `earlier`."""
        before, here = frozenset(earlier), frozenset(ref.func for ref in members)
        read: dict[tuple[str, int], list[Box]] = {}
        written: dict[tuple[str, int], list[Box]] = {}
        for ref in members:
            f = self.pipeline.func(ref.func)
            found = self.regions.context.accesses[f.name][ref.stage]
            for access in found:
                if access.read is None or access.source in self.near:
                    continue
                if access.source in here and access.source not in before and not self._far(access, found):
                    continue
                self._join(read.setdefault((access.source, access.read.part), []), self._box(f, access))
            for part in range(0 if f.name in self.near else len(f.dtypes)):
                box = self._box(f, found[-1]) if ref.stage else self.regions.boxes[f.name]
                self._join(written.setdefault((f.name, part), []), box)
        return Moved(str(head), tuple(str(ref) for ref in members), self._bytes(read), self._bytes(written))

    def _far(self, access: Access, found: Sequence[Access]) -> bool:
        """Return whether a read of what its own pass makes goes back over a plane or more."""
        if access.source in self.far and access.source != access.func:
            return True
        context = self.regions.context
        source = self.pipeline.func(access.source)
        group = next((g for g in self.pipeline.groups if access.func in g), (access.func,))
        if access.source not in group:
            return False
        here = found[-1].index if access.stage else tuple(None for _ in source.dims)
        for d, (index, dim) in enumerate(zip(access.index, source.dims, strict=True)):
            moved = index != here[d] if access.stage else context.algebra.name(index) != dim
            if moved:
                inner = self.regions.boxes[source.name][d + 1 :]
                return self.extents.is_large(inner, sum(self.types[source.name]), context.algebra)
        return False

    def _box(self, f: Func, access: Access) -> Box:
        """Return the hull of what `access` touches."""
        context = self.regions.context
        dims = dict(zip(f.dims, self.regions.boxes[f.name], strict=True))
        ranges = stage_ranges(f, access.stage, dims, context.algebra, context.at_least)
        bounder = context.bounder(ranges, self._prover())
        boxes = self.regions.boxes.get(access.source)
        if boxes is None:
            return tuple(finite(f, access, d, bounder.interval(i, access.facts)) for d, i in enumerate(access.index))
        whole = [bounder.interval(i, access.facts) for i in access.index]
        return tuple(box if i.lo is None or i.hi is None else i for i, box in zip(whole, boxes, strict=True))

    def _join(self, boxes: list[Box], new: Box) -> None:
        """Add `new` to `boxes`: with each whose hull has no more cells than both, or where there are many."""
        for k, box in enumerate(boxes):
            both = tuple(hull(self._prover(), a, b) for a, b in zip(box, new, strict=True))
            if len(boxes) > MOST_BOXES or self._cells(both).at_most(self._cells(box) + self._cells(new)):
                del boxes[k]
                self._join(boxes, both)
                return
        boxes.append(new)

    def _prover(self) -> Prover:
        context = self.regions.context
        return Prover(context.algebra, {}, dict(context.at_least))

    def _bytes(self, touched: dict[tuple[str, int], list[Box]]) -> Polynomial:
        total = NOTHING
        for (name, part), boxes in touched.items():
            for box in boxes:
                total += self._cells(box) * self.types[name][part]
        return total

    def _cells(self, box: Box) -> Polynomial:
        total = Polynomial.of(1)
        for interval in box:
            if interval not in self.lengths:
                self.lengths[interval] = self.extents.length(interval, self.regions.context.algebra)
            total *= self.lengths[interval]
        return total
