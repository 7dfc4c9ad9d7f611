"""Does a schedule change a value? Worked out by running every instance in the order the schedule says.

It shares no code with what it judges: no bounds, no nest, no legality. Directives have a numeric twin here, regions are
the boxes of what is seen to be read, storage is a dictionary for each time a Func is kept. Cells hold hashes of the
instance and of all that it read, so that every other order of two accesses to a cell shows; a reduction by an integer
operation that commutes really combines, and so may run in any order. Parallel loops are interleaved at random between
the reads and the write of each statement; the lanes of a vector loop all read before any writes, or run in turn, since
code does either. Cells that nobody wrote hold poison. Lanes that combine into one cell keep partial results.
Storage that is taken over is one dictionary. `regions` may say which box of a Func is computed in an iteration, as the
compiler means to; else it is what is seen to be read there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from stax.algorithm.nodes import Func, Pipeline, Update
from stax.dtypes import int64
from stax.expr.nodes import Binary, BinaryOp, Cast, Const, Expr, Local, Param, Read, Select, Size, Unary, UnaryOp, Var
from stax.expr.walk import children, postorder, reads
from stax.schedule import directives as said
from stax.schedule.directives import Line, StageRef

Cell = tuple[int, ...]
Point = dict[str, int]
Memory = dict[Cell, int]
Time = tuple[int, ...]
Box = list[tuple[int, int]]
Around = Mapping[tuple[StageRef, str], int]
"""What the loops around count, by stage and name."""
Regions = Callable[["Truth", str, Around], Box]
MASK = 2**64 - 1
WIDE = 10**6
COMMUTING: dict[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: lambda a, b: (a + b) & MASK,
    BinaryOp.MUL: lambda a, b: (a * b) & MASK,
    BinaryOp.MIN: min,
    BinaryOp.MAX: max,
    BinaryOp.AND: lambda a, b: a & b,
    BinaryOp.OR: lambda a, b: a | b,
    BinaryOp.XOR: lambda a, b: a ^ b,
}


def differs(
    pipeline: Pipeline, lines: Iterable[Line], sizes: Mapping[str, Cell], tries: int = 4, seed: int = 0,
    dead: bool = False, regions: Regions | None = None,
) -> str:  # fmt: skip
    """Return what differs when `lines` are followed, "" where nothing does in `tries` runs.

    `lines` place every Func that is not at root; `sizes` are the extents of inputs and outputs. With `dead`, what is
    written to a cell must be the same in turn, even where nobody reads it before it is written again.
    """
    said = tuple(lines)
    for k in range(tries if any(_may_differ(line) for line in said) else 2):
        run = Run(
            pipeline, said, Truth(pipeline, sizes, seed + k), Random(seed * 1000 + k), calm=k == 0, regions=regions
        )
        found = run.differs()
        if found or (dead and run.odd):
            return found or run.odd[0]
    return ""


def _may_differ(line: Line) -> bool:
    return isinstance(line.directive, said.Parallel | said.Vectorize)


@dataclass(slots=True)
class Turn:
    """A loop: its name, whether it is parallel or of lanes, and whether it runs downwards."""

    name: str
    kind: str = "serial"
    down: bool = False


class Twin:
    """The loops of a stage as directives change them, and the numbers they count for a point."""

    def __init__(self, roots: Sequence[str], down: frozenset[str]) -> None:
        self.turns = [Turn(r, down=r in down) for r in roots]
        self.steps: list[Callable[[Point], Iterator[Point]]] = []
        self.atomic = False
        self.rounded: dict[str, int] = {}

    def place(self, name: str) -> int:
        return next(k for k, turn in enumerate(self.turns) if turn.name == name)

    def counts(self, point: Point) -> Iterator[Time]:
        """Yield what the loops count, each downward one negated: more than once where runs are repeated.

        With the values, `point` has the extents of roots, as `extent_name` calls them.
        """
        found = [dict(point)]
        for step in self.steps:
            found = [values for one in found for values in step(one)]
        for values in found:
            yield tuple(-values[t.name] if t.down else values[t.name] for t in self.turns)

    def split(self, var: str, outer: str, inner: str, n: int, tail: said.Tail = said.Tail.GUARD) -> None:
        def step(values: Point) -> Iterator[Point]:
            whole, extent = values.pop(var), values.pop(extent_name(var), 0)
            values = {**values, extent_name(outer): -(-extent // n), extent_name(inner): n}
            last, left = extent // n * n, extent % n
            moved = tail is said.Tail.SHIFT and left and extent >= n
            if not moved or whole < last:
                yield {**values, outer: whole // n, inner: whole % n}
            if moved and whole >= extent - n:
                yield {**values, outer: last // n, inner: whole - last}

        at = self.place(var)
        old = self.turns[at]
        self.turns[at : at + 1] = [Turn(outer, old.kind, old.down), Turn(inner, "serial", old.down)]
        self.steps.append(step)

    def fuse(self, outer: str, inner: str, fused: str) -> None:
        def step(values: Point) -> Iterator[Point]:
            one, other = values.pop(outer), values.pop(inner)
            extents = values.pop(extent_name(outer), 1), values.pop(extent_name(inner), WIDE)
            yield {**values, fused: one * extents[1] + other, extent_name(fused): extents[0] * extents[1]}

        at = self.place(outer)
        self.turns[at : at + 2] = [Turn(fused, self.turns[at].kind, self.turns[at].down)]
        self.steps.append(step)

    def affine(self, matrix: Sequence[Sequence[int]], names: Sequence[str], new: Sequence[str]) -> None:
        def step(values: Point) -> Iterator[Point]:
            old = [values.pop(name) for name in names]
            yield values | {
                n: sum(f * v for f, v in zip(row, old, strict=True)) for n, row in zip(new, matrix, strict=True)
            }

        for turn in [self.turns[self.place(name)] for name in names]:
            turn.name = new[names.index(turn.name)]
        self.steps.append(step)

    def reorder(self, names: Sequence[str]) -> None:
        places = sorted(self.place(n) for n in names)
        chosen = [self.turns[self.place(n)] for n in names]
        for at, turn in zip(places, chosen, strict=True):
            self.turns[at] = turn

    def apply(self, directive: said.Directive) -> None:
        match directive:
            case said.Split(var=v, outer=outer, inner=inner, factor=n, tail=tail):
                if tail is said.Tail.ROUND_UP:
                    self.rounded[v] = n
                self.split(v, outer, inner, n, tail)
            case said.Fuse(outer=outer, inner=inner, fused=fused):
                self.fuse(outer, inner, fused)
            case said.Affine(matrix=matrix, vars=names, new=new):
                self.affine(matrix, names, names if new is None else new)
            case said.Atomic():
                self.atomic = True
            case said.Tile(vars=names, outers=outers, inners=inners, sizes=sizes):
                for v, outer, inner, n in zip(names, outers, inners, sizes, strict=True):
                    self.split(v, outer, inner, n)
                self.reorder((*outers, *inners))
            case said.Reorder(vars=names):
                self.reorder(names)
            case said.Reverse(var=v):
                turn = self.turns[self.place(v)]
                turn.down = not turn.down
            case said.Skew(var=v, along=w, factor=n, new=new):
                name = new or v

                def step(values: Point) -> Iterator[Point]:
                    rest = {k: c for k, c in values.items() if k not in (v, extent_name(v))}
                    yield {**rest, name: values[v] + n * values[w]}

                self.turns[self.place(v)].name = name
                self.steps.append(step)
            case said.Vectorize(var=v, n=n) | said.Unroll(var=v, n=n) | said.Parallel(var=v, n=n):
                if n is not None:
                    self.split(v, v, f"{v}.in", n)
                    v = v if isinstance(directive, said.Parallel) else f"{v}.in"
                kinds = {said.Vectorize: "vector", said.Parallel: "parallel", said.Unroll: "serial"}
                self.turns[self.place(v)].kind = kinds[type(directive)]
            case _:
                raise AssertionError(f"the oracle knows no {directive}")


def extent_name(loop: str) -> str:
    """Return under which name a point has the extent of a loop."""
    return f"{loop} extent"


@dataclass(frozen=True, slots=True)
class Instance:
    """A point of a stage, and when it runs; one that is `past` an end loads nothing, and stores what nobody wants."""

    point: Point
    time: Time
    past: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a Func is computed, and at which loop it is kept; None at root."""

    stage: StageRef
    loop: str
    kept: tuple[StageRef, str] | None


class Run:
    """One execution of a scheduled program."""

    def __init__(
        self, pipeline: Pipeline, lines: Sequence[Line], truth: Truth, rng: Random | None, calm: bool,
        regions: Regions | None = None,
    ) -> None:  # fmt: skip
        self.pipeline, self.truth, self.rng, self.calm = pipeline, truth, rng or Random(0), calm
        self.regions = regions
        self.over: dict[str, str] = {}
        self.funcs = {f.name: f for f in pipeline.funcs}
        self.twins: dict[StageRef, Twin] = {}
        self.places: dict[str, Place] = {}
        self.folds: dict[str, tuple[int, int]] = {}
        self.hoists: dict[str, tuple[StageRef, str]] = {}
        self.guests: dict[str, tuple[str, str, int]] = {}
        self.wrong: list[str] = []
        self.odd: list[str] = []
        self.turns: dict[int, dict[Cell, list[int]]] = {}
        for f in pipeline.funcs:
            for k in range(len(f.updates) + 1):
                self.twins[StageRef(f.name, k)] = Twin(_roots(f, k), f.backwards if k == 0 else frozenset())
        for line in lines:
            match line.directive:
                case said.ComputeAt(consumer=g, stage=stage, loop=loop, store=store):
                    assert stage is not None
                    at = StageRef(g, stage)
                    self.places[line.at.func] = Place(at, loop, (at, store or loop))
                case said.StoreRoot():
                    old = self.places[line.at.func]
                    self.places[line.at.func] = Place(old.stage, old.loop, None)
                case said.FoldStorage(dim=dim, n=n):
                    self.folds[line.at.func] = (self.funcs[line.at.func].dims.index(dim), n)
                case said.HoistStorage(consumer=g, stage=stage, loop=loop):
                    assert stage is not None
                    self.hoists[line.at.func] = (StageRef(g, stage), loop)
                case said.ComputeWith(consumer=g, loop=loop, shift=shift):
                    self.guests[line.at.func] = (g, loop, shift)
                case said.Overwrite(target=target):
                    self.over[line.at.func] = target
                case said.ComputeRoot():
                    pass
                case _:
                    self.twins[line.at].apply(line.directive)

    def differs(self) -> str:
        for name, target in self.over.items():
            kept = self.places[target].kept if target in self.places else None
            if kept is not None and not self._ends_in_output(name) and not self._lasts_within(name, kept):
                self.wrong.append(f"{name} lasts longer than the storage of {target}")
        memory = {i.name: Memory() for i in self.pipeline.inputs if i.name in self.over.values()}
        self._keep([f.name for f in self.pipeline.funcs if self._at_root(f.name)], memory)
        self.truth.shared = frozenset(memory) - self.funcs.keys()
        hosts = {g for g, _, _ in self.guests.values()}
        for f in self.pipeline.funcs:
            if f.name in self.guests:
                for _ in self._together(f, memory):
                    pass
            elif f.name not in self.places and f.name not in hosts:
                for _ in self._realize(f, self.truth.boxes[f.name], memory, {}):
                    pass
        for name in self.pipeline.outputs:
            for cell, value in self.truth.memory[name].items():
                if memory[name].get(cell) != value:
                    self.wrong.append(f"{name}{list(cell)} at the end")
        return self.wrong[0] if self.wrong else ""

    def _together(self, f: Func, memory: dict[str, Memory]) -> Iterator[None]:
        """Run a Func in the loops of another; both are at root, without updates."""
        name, loop, shift = self.guests[f.name]
        both = [(self.funcs[name], 0), (f, shift)]
        depth = self.twins[StageRef(f.name)].place(loop) + 1
        if self.twins[StageRef(name)].place(loop) + 1 != depth:
            self.wrong.append(f"{f.name} and {name} have no such loops in common")
            return
        found: list[list[Instance]] = []
        for g, later in both:
            memory[g.name] = Memory()
            self.turns[id(memory[g.name])] = {}
            box = self.truth.boxes[g.name]
            mine = self.instances(g, 0, box, self.truth.points(g, 0, box))
            at = depth - 1
            found.append([Instance(i.point, (*i.time[:at], i.time[at] + later, *i.time[at + 1 :])) for i in mine])
        yield from self._shared([g for g, _ in both], found, depth, 0, memory)

    def _shared(
        self, both: list[Func], found: list[list[Instance]], depth: int, level: int, memory: dict[str, Memory]
    ) -> Iterator[None]:
        if level == depth:
            for g, mine in zip(both, found, strict=True):
                order = list(range(len(self.twins[StageRef(g.name)].turns)))
                yield from self._loops(g, 0, mine, order, [], depth, memory, {})
            return
        steps = sorted({i.time[level] for mine in found for i in mine})
        bodies = [
            self._shared(both, [[i for i in mine if i.time[level] == z] for mine in found], depth, level + 1, memory)
            for z in steps
        ]
        if self.twins[StageRef(both[0].name)].turns[level].kind != "parallel" or self.calm:
            for body in bodies:
                yield from body
            return
        yield from self._interleaved(bodies)

    def _ends_in_output(self, name: str) -> bool:
        taker = {target: taker for taker, target in self.over.items()}
        while name in taker:
            name = taker[name]
        return name in self.pipeline.outputs

    def _lasts_within(self, name: str, loop: tuple[StageRef, str]) -> bool:
        while name in self.places:
            kept = self.places[name].kept
            if kept is None:
                return False
            twin = self.twins[loop[0]]
            if kept[0] == loop[0] and twin.place(kept[1]) >= twin.place(loop[1]):
                return True
            name = kept[0].func
        return False

    def _keep(self, names: Iterable[str], memory: dict[str, Memory]) -> None:
        """Give each of `names` storage: new, or that of another which is there."""
        left = list(names)
        for name in left:
            if self.over.get(name, name) == name:
                memory[name] = Memory()
        while left := [n for n in left if n not in memory or self.over.get(n, n) != n]:
            ready = [n for n in left if self.over[n] in memory and self.over[n] not in left]
            for name in ready or left:
                memory[name] = memory.get(self.over[name], Memory())
            left = [n for n in left if n not in (ready or left)]

    def _at_root(self, name: str) -> bool:
        return name not in self.places or self.places[name].kept is None

    def _realize(self, f: Func, box: Box, memory: dict[str, Memory], around: Around) -> Iterator[None]:
        if f.name not in memory:
            self.wrong.append(f"{f.name} is kept nowhere where it is computed")
            return
        turns = self.turns[id(memory[f.name])] = {}
        for k in range(len(f.updates) + 1):
            yield from self._stage(f, k, box, memory, around)
        for cell, values in turns.items():
            if values != self.truth.turns[f.name].get(cell, values):
                self.odd.append(f"{f.name}{list(cell)} in between")
        whole = [] if f.name in self.folds else [range(lo, hi + 1) for lo, hi in box]
        for cell in itertools.product(*whole) if whole else []:
            if cell in self.truth.memory[f.name] and memory[f.name].get(cell) != self.truth.memory[f.name][cell]:
                self.wrong.append(f"{f.name}{list(cell)} when it is done")

    def _stage(self, f: Func, k: int, box: Box, memory: dict[str, Memory], around: Around) -> Iterator[None]:
        twin = self.twins[StageRef(f.name, k)]
        found = self.instances(f, k, box, self.truth.points(f, k, box))
        found += [replace(i, past=True) for i in self.instances(f, k, box, self._past_points(f, k, box))]
        order = list(range(len(twin.turns)))
        lanes = [d for d in order if twin.turns[d].kind == "vector"]
        if not self.calm and lanes and self.rng.random() < 0.7:
            gone = lanes if self.rng.random() < 0.5 else lanes[-1:]
            order = [d for d in order if d not in gone] + gone
            lanes = gone
        else:
            lanes = []
        yield from self._loops(f, k, found, order, lanes, 0, memory, around)

    def instances(self, f: Func, k: int, box: Box, points: Iterable[Point]) -> list[Instance]:
        """Return when each of `points` runs, twice perhaps."""
        found: list[Instance] = []
        for point in points:
            start, extents = self._starts(f, k, box, point), self._extents(f, k, box, point)
            counted = {r: point[r] - start[r] for r in _roots(f, k)}
            found += [Instance(point, counts) for counts in self.twins[StageRef(f.name, k)].counts(counted | extents)]
        return found

    def _past_points(self, f: Func, k: int, box: Box) -> list[Point]:
        """Return the points that lie past an end and are run all the same."""
        rounded = self.twins[StageRef(f.name, k)].rounded
        if not rounded:
            return []
        inside = self.truth.points(f, k, box)
        for point in inside:
            extents = self._extents(f, k, box, point)
            if any(r not in f.dims and extents[extent_name(r)] % n for r, n in rounded.items()):
                self.wrong.append(f"{f.name} reduces more than there is")
        wide = [
            (lo, lo - 1 + -(-(hi - lo + 1) // rounded.get(d, 1)) * rounded.get(d, 1))
            for d, (lo, hi) in zip(f.dims, box, strict=True)
        ]
        return [point for point in self.truth.points(f, k, wide) if point not in inside]

    def _starts(self, f: Func, k: int, box: Box, point: Point) -> Point:
        starts = {d: lo for d, (lo, _) in zip(f.dims, box, strict=True)}
        if k:
            starts |= {r.name: self.truth.value(r.lo, point, None) for r in f.updates[k - 1].domain}
        return starts

    def _extents(self, f: Func, k: int, box: Box, point: Point) -> Point:
        found = {extent_name(d): hi - lo + 1 for d, (lo, hi) in zip(f.dims, box, strict=True)}
        for r in f.updates[k - 1].domain if k else ():
            found[extent_name(r.name)] = self.truth.value(r.hi, point, None) - self.truth.value(r.lo, point, None)
        return found

    def _loops(
        self, f: Func, k: int, found: list[Instance], order: list[int], lanes: list[int], depth: int,
        memory: dict[str, Memory], around: Around,
    ) -> Iterator[None]:  # fmt: skip
        if depth == len(order) - len(lanes):
            found = sorted(found, key=lambda i: tuple(i.time[d] for d in order[depth:]))
            chunk = self.rng.choice([1, 2, 4, 64]) if lanes else 1
            for at in range(0, len(found), chunk):
                yield from self._statement(f, k, found[at : at + chunk], memory)
            return
        groups: dict[int, list[Instance]] = {}
        for instance in found:
            groups.setdefault(instance.time[order[depth]], []).append(instance)
        turn = self.twins[StageRef(f.name, k)].turns[order[depth]]
        here = (StageRef(f.name, k), turn.name)
        bodies = [
            self._body(
                f, k, groups[at], order, lanes, depth, turn.name, memory,
                {**around, here: -at if turn.down else at},
            )
            for at in sorted(groups)
        ]  # fmt: skip
        if turn.kind != "parallel" or self.calm:
            for body in bodies:
                yield from body
            return
        yield from self._interleaved(bodies)

    def _interleaved(self, bodies: list[Iterator[None]]) -> Iterator[None]:
        """Run bodies at the same time, one now and then long after the others."""
        slow = self.rng.random() < 0.3
        if slow:
            self.rng.shuffle(bodies)
        while bodies:
            at = 0 if slow else self.rng.randrange(len(bodies))
            try:
                next(bodies[at])
            except StopIteration:
                bodies.pop(at)
                continue
            yield

    def _body(
        self, f: Func, k: int, found: list[Instance], order: list[int], lanes: list[int], depth: int, loop: str,
        memory: dict[str, Memory], around: Around,
    ) -> Iterator[None]:  # fmt: skip
        here = (StageRef(f.name, k), loop)
        kept = [g for g, p in self.places.items() if p.kept == here]
        memory = dict(memory)
        new = [g for g in kept if g not in self.hoists] + [g for g, at in self.hoists.items() if at == here]
        self._keep(new, memory)
        for g in kept:
            if g in self.hoists:  # each of its runs begins with nothing in it
                memory.get(g, Memory()).clear()
        needed = {f.name: [(k, i.point) for i in found]}
        todo = [g for g in self.pipeline.funcs if g.name in self.places and self._inside(g.name, here, order)]
        boxes: dict[str, Box] = {}
        for g in reversed(todo):
            cells = self._asked(g.name, needed)
            box = self.truth.box(g, cells)
            if self.regions is not None and (self.places[g.name].stage, self.places[g.name].loop) == here:
                box = self.regions(self.truth, g.name, around)
            boxes[g.name] = box
            needed[g.name] = [(j, p) for j in range(len(g.updates) + 1) for p in self.truth.points(g, j, box)]
        for g in todo:
            if (self.places[g.name].stage, self.places[g.name].loop) == here:
                yield from self._realize(g, boxes[g.name], memory, around)
        yield from self._loops(f, k, found, order, lanes, depth + 1, memory, around)

    def _inside(self, name: str, here: tuple[StageRef, str], order: list[int]) -> bool:
        """Return whether a Func is computed somewhere inside the loop `here`."""
        while name in self.places:
            place = self.places[name]
            if place.stage == here[0]:
                twin = self.twins[place.stage]
                return order.index(twin.place(place.loop)) >= order.index(twin.place(here[1]))
            name = place.stage.func
        return False

    def _asked(self, name: str, needed: Mapping[str, list[tuple[int, Point]]]) -> set[Cell]:
        found: set[Cell] = set()
        for reader, points in needed.items():
            for k, point in points:
                found |= self.truth.asked(self.funcs[reader], k, point, name)
        return found

    def _slot(self, name: str, cell: Cell) -> Cell:
        """Return where a cell lies in storage."""
        if name not in self.folds:
            return cell
        d, n = self.folds[name]
        return (*cell[:d], cell[d] % n, *cell[d + 1 :])

    def _statement(self, f: Func, k: int, lanes: list[Instance], memory: dict[str, Memory]) -> Iterator[None]:
        def load(source: str, cell: Cell) -> int:
            missing = hash(("poison", source, cell)) if source in self.funcs else self.truth.given(source, cell)
            value = memory.get(source, Memory()).get(self._slot(source, cell), missing)
            if source not in self.funcs:
                if value != missing:
                    self.wrong.append(f"{source}{list(cell)} as {f.name} reads it")
                return value
            if source != f.name and cell in self.truth.memory[source] and value != self.truth.memory[source][cell]:
                self.wrong.append(f"{source}{list(cell)} as {f.name} reads it")
            return value

        for lane in [lane for lane in lanes if lane.past]:
            memory[f.name][self._slot(f.name, self._past(f, k, lane.point))] = hash(("past", f.name))
        lanes = [lane for lane in lanes if not lane.past]
        if self._joins(f, k, lanes):
            yield from self._joined(f, k, lanes, memory, load)
            return
        writes = [self.truth.effect(f, k, lane.point, load) for lane in lanes]
        yield
        self.rng.shuffle(writes)
        for write in writes:
            if write is not None:
                memory[f.name][self._slot(f.name, write[0])] = write[1]
                if not (k and commuting(f, f.updates[k - 1])):
                    self.turns[id(memory[f.name])].setdefault(write[0], []).append(write[1])
        yield

    def _past(self, f: Func, k: int, point: Point) -> Cell:
        """Return the cell that a point past an end writes."""
        index = [Var(int64, d) for d in f.dims] if k == 0 else f.updates[k - 1].index
        cell = tuple(self.truth.value(i, point, lambda source, at: 0) for i in index)
        if f.name in self.pipeline.outputs:
            self.wrong.append(f"{f.name}{list(cell)} lies beyond the array")
        return cell

    def _joins(self, f: Func, k: int, lanes: list[Instance]) -> bool:
        """Return whether lanes combine into a cell one at a time: those of one cell, or all where it is `atomic`."""
        if not k or commuting(f, f.updates[k - 1]) is None:
            return False
        return len(lanes) > 1 or self.twins[StageRef(f.name, k)].atomic

    def _joined(
        self, f: Func, k: int, lanes: list[Instance], memory: dict[str, Memory], load: Callable[[str, Cell], int]
    ) -> Iterator[None]:  # fmt: skip
        """Combine lanes into their cells: partial results of lanes that differ in what does not name the cell.

        Those whose cells only happen to be the same read it before any writes, but for where it is `atomic`.
        """
        self.rng.shuffle(lanes)
        named = sorted({v.name for v in postorder(f.updates[k - 1].index) if isinstance(v, Var)})
        atomic = self.twins[StageRef(f.name, k)].atomic
        written: dict[object, dict[Cell, int]] = {}
        for lane in lanes:
            own = written.setdefault(() if atomic else tuple(lane.point.get(v) for v in named), {})

            def latest(source: str, cell: Cell, own: dict[Cell, int] = own) -> int:
                return own[cell] if source == f.name and cell in own else load(source, cell)

            write = self.truth.effect(f, k, lane.point, latest)
            if write is not None:
                own[write[0]] = write[1]
        if not atomic:
            yield
        for own in written.values():
            memory[f.name] |= {self._slot(f.name, cell): value for cell, value in own.items()}
        yield


class Truth:
    """What the program means: every cell of every Func, computed in the order of the algorithm."""

    def __init__(self, pipeline: Pipeline, sizes: Mapping[str, Cell], salt: int) -> None:
        self.pipeline, self.sizes, self.salt = pipeline, sizes, salt
        self.funcs = {f.name: f for f in pipeline.funcs}
        self.boxes: dict[str, Box] = {}
        self.memory: dict[str, Memory] = {}
        self.turns: dict[str, dict[Cell, list[int]]] = {}
        self.shared: frozenset[str] = frozenset()
        asked: dict[str, set[Cell]] = {f.name: set() for f in pipeline.funcs}
        for name in pipeline.outputs:
            asked[name] |= set(itertools.product(*(range(n) for n in sizes[name])))
        for f in reversed(pipeline.funcs):
            self.boxes[f.name] = self.box(f, asked[f.name])
            for k in range(len(f.updates) + 1):
                for point in self.points(f, k, self.boxes[f.name]):
                    for source in {r.source for r in reads(exprs(f, k))} & self.funcs.keys() - {f.name}:
                        asked[source] |= self.asked(f, k, point, source)
        for f in pipeline.funcs:
            self.memory[f.name] = self._run(f)

    def _run(self, f: Func) -> Memory:
        memory = Memory()
        turns = self.turns[f.name] = {}
        waiting: set[Cell] = set()
        box = self.boxes[f.name]

        def load(source: str, cell: Cell) -> int:
            if source != f.name:
                return self.memory[source].get(cell, hash(("poison", source, cell)))
            if cell not in memory and all(lo <= c <= hi for c, (lo, hi) in zip(cell, box, strict=True)):
                define(cell)
            return memory.get(cell, hash(("poison", source, cell)))

        def define(cell: Cell) -> None:
            assert cell not in waiting, "no order"
            waiting.add(cell)
            effect = self.effect(f, 0, dict(zip(f.dims, cell, strict=True)), load)
            assert effect is not None
            memory[cell] = effect[1]
            turns[cell] = [effect[1]]

        for cell in itertools.product(*(range(lo, hi + 1) for lo, hi in box)):
            if cell not in memory:
                define(cell)
        for k in range(1, len(f.updates) + 1):
            for point in self.points(f, k, box):
                effect = self.effect(f, k, point, lambda source, cell: self._of(source, cell, memory, f))
                if effect is not None:
                    memory[effect[0]] = effect[1]
                    if not commuting(f, f.updates[k - 1]):
                        turns.setdefault(effect[0], []).append(effect[1])
        return memory

    def _of(self, source: str, cell: Cell, memory: Memory, f: Func) -> int:
        held = memory if source == f.name else self.memory[source]
        return held.get(cell, hash(("poison", source, cell)))

    def points(self, f: Func, k: int, box: Box) -> list[Point]:
        """Return the points of a stage, whether or not its predicate holds there."""
        own = _roots(f, k)
        ranges = {d: range(lo, hi + 1) for d, (lo, hi) in zip(f.dims, box, strict=True) if d in own}
        found: list[Point] = [dict(zip(ranges, p, strict=True)) for p in itertools.product(*ranges.values())]
        for r in f.updates[k - 1].domain if k else ():
            found = [
                {**p, r.name: v}
                for p in found
                for v in range(self.value(r.lo, p, None), self.value(r.hi, p, None))
            ]  # fmt: skip
        return found

    def box(self, f: Func, cells: set[Cell]) -> Box:
        """Return the box that `f` is computed over where `cells` are asked for."""
        box: Box = []
        for d in range(len(f.dims)):
            seen = [c[d] for c in cells]
            lo, hi = (min(seen), max(seen)) if seen else (0, -1)
            if f.shape and f.shape[d] is not None and (f.updates or self._moves(f, d)):
                declared = f.shape[d]
                assert declared is not None
                lo, hi = 0, self.value(declared, {}, None) - 1
            box.append((lo, hi))
        for k in range(1, len(f.updates) + 1):
            for point in self.points(f, k, box) if all(lo <= hi for lo, hi in box) else []:
                for cell in self.asked(f, k, point, f.name):
                    for d, c in enumerate(cell):
                        if not (f.shape and f.shape[d] is not None):
                            box[d] = (min(box[d][0], c), max(box[d][1], c))
        return box

    def _moves(self, f: Func, d: int) -> bool:
        """Return whether the definition reads its own Func elsewhere along dim `d`."""
        own = [r.index[d] for r in reads(f.values) if r.source == f.name]
        return any(not (isinstance(i, Var) and i.name == f.dims[d]) for i in own)

    def asked(self, f: Func, k: int, point: Point, source: str) -> set[Cell]:
        """Return the cells of `source` that one instance reads, or writes where `source` is `f`."""
        found: set[Cell] = set()

        def load(name: str, cell: Cell) -> int:
            if name == source:
                found.add(cell)
            return self.given(name, cell) if name not in self.funcs else 0

        effect = self.effect(f, k, point, load)
        if source == f.name and effect is not None:
            found.add(effect[0])
        return found

    def read(self, f: Func, k: int, point: Point, source: str) -> set[Cell]:
        """Return the cells of a Func or an input that one instance reads, in arms that are taken."""
        found: set[Cell] = set()

        def load(name: str, cell: Cell) -> int:
            found.update({cell} if name == source else set())
            return self.given(name, cell) if name not in self.funcs else 0

        shared, self.shared = self.shared, self.shared | {source}
        self.effect(f, k, point, load)
        self.shared = shared
        return found

    def effect(self, f: Func, k: int, point: Point, load: Callable[[str, Cell], int]) -> tuple[Cell, int] | None:
        """Return the cell an instance writes and the hash it writes there; None where its predicate fails."""
        where = tuple(sorted(point.items()))
        if k == 0:
            return tuple(point[d] for d in f.dims), hash((f.name, where, self.value(f.values[0], point, load)))
        update = f.updates[k - 1]
        if update.where is not None and not self.value(update.where, point, load):
            return None
        cell = tuple(self.value(i, point, load) for i in update.index)
        rest = commuting(f, update)
        if rest is not None:
            op, other = rest
            more = hash((f.name, k, where, self.value(other, point, load))) & MASK
            return cell, COMMUTING[op](load(f.name, cell) & MASK, more)
        return cell, hash((f.name, k, where, *(self.value(v, point, load) for v in update.values)))

    def given(self, source: str, cell: Cell) -> int:
        """Return what an input holds."""
        return hash((self.salt, len(source), *(c + 7 for c in cell))) % 1009

    def value(self, expr: Expr, point: Mapping[str, int], load: Callable[[str, Cell], int] | None) -> int:
        """Return an expression's value: numbers for positions, hashes for what was read of Funcs."""
        match expr:
            case Const(value=value):
                return int(value)
            case Var(name=name) | Local(name=name):
                return point[name]
            case Size(array=array, dim=dim):
                return self.sizes[array][dim]
            case Param():
                return 3
            case Cast(value=value):
                return self.value(value, point, load)
            case Select(cond=cond, yes=yes, no=no):
                return self.value(yes if self.value(cond, point, load) else no, point, load)
            case Read(source=source, index=index):
                cell = tuple(self.value(i, point, load) for i in index)
                if source not in self.funcs and (load is None or source not in self.shared):
                    return self.given(source, cell)
                assert load is not None
                return load(source, cell)
            case Unary(op=UnaryOp.NOT, value=value):
                return int(not self.value(value, point, load))
            case Unary(op=UnaryOp.NEG, value=value):
                return -self.value(value, point, load)
            case Binary(op=op, left=left, right=right):
                a, b = self.value(left, point, load), self.value(right, point, load)
                return _binary(op, a, b)
            case _:
                return hash((type(expr).__name__, *(self.value(c, point, load) for c in children(expr))))


def _binary(op: BinaryOp, a: int, b: int) -> int:
    match op:
        case BinaryOp.ADD:
            return a + b
        case BinaryOp.SUB:
            return a - b
        case BinaryOp.MUL:
            return a * b
        case BinaryOp.FLOORDIV:
            return a // b if b else 0
        case BinaryOp.MOD:
            return a % b if b else 0
        case BinaryOp.MIN:
            return min(a, b)
        case BinaryOp.MAX:
            return max(a, b)
        case BinaryOp.LT:
            return int(a < b)
        case BinaryOp.LE:
            return int(a <= b)
        case BinaryOp.EQ:
            return int(a == b)
        case BinaryOp.NE:
            return int(a != b)
        case BinaryOp.AND:
            return a & b
        case BinaryOp.OR:
            return a | b
        case _:
            return hash((op.name, a, b))


def commuting(f: Func, update: Update) -> tuple[BinaryOp, Expr] | None:
    """Return the operation and the operand of an update `cell = cell op e` that may run in any order."""
    if len(update.values) != 1 or not isinstance(whole := update.values[0], Binary):
        return None
    integer = whole.dtype.is_integer and whole.op in COMMUTING
    if not integer and whole.op not in (BinaryOp.MIN, BinaryOp.MAX):
        return None
    for cell, rest in ((whole.left, whole.right), (whole.right, whole.left)):
        own = isinstance(cell, Read) and cell.source == f.name and _same(cell.index, update.index)
        more = (rest, *(() if update.where is None else (update.where,)), *update.index)
        if own and not any(r.source == f.name for r in reads(more)):
            return whole.op, rest
    return None


def _same(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    return [_text(i) for i in a] == [_text(i) for i in b]


def _text(e: Expr) -> str:
    name = getattr(e, "name", getattr(e, "source", getattr(e, "value", "")))
    op = getattr(e, "op", "")
    return f"{type(e).__name__}:{name if isinstance(name, str | int) else ''}:{op}({','.join(map(_text, children(e)))})"


def _roots(f: Func, k: int) -> tuple[str, ...]:
    if k == 0:
        return f.dims
    update = f.updates[k - 1]
    own = (d for d, i in zip(f.dims, update.index, strict=True) if isinstance(i, Var) and i.name == d)
    return (*own, *(r.name for r in update.domain))


def exprs(f: Func, k: int) -> tuple[Expr, ...]:
    if k == 0:
        return f.values
    update = f.updates[k - 1]
    return (*update.values, *update.index, *(() if update.where is None else (update.where,)))
