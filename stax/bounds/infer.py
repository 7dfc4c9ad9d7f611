"""How much of each Func is needed: output shapes, the box of every Func, and what must hold of the inputs.

Boxes are sums over `Size(output, dim)`, sizes of inputs and Params, so one kernel serves all shapes. Producers take the
hull of what their readers need; a declared shape, and whatever an update may write, is inside the box.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from stax.algorithm.nodes import Func, Pipeline, Table, origin_name
from stax.bounds.accesses import Access, accesses
from stax.bounds.interval import Bounder, plain_read
from stax.bounds.solve import limits
from stax.dtypes import int64
from stax.errors import BoundsError
from stax.expr import build
from stax.expr.affine import Affine, Algebra, Interval, Prover, Ranges
from stax.expr.nodes import INDEX, Const, Expr, Param, Read, Size
from stax.expr.show import show
from stax.expr.value_range import ValueRange, value_ranges
from stax.expr.walk import reads
from stax.source import Span

Box = tuple[Interval, ...]

NO_CELLS = Interval(Affine(0), Affine(-1))
"""What a Func that nothing reads is computed over, in each dim."""


@dataclass(frozen=True, slots=True)
class RegionCheck:
    """`cond` over sizes and Params must hold before anything runs: `stage` needs `lo..hi` of a dimension of `source`.

    `size` is the extent there is; `reads` is false where the stage writes there.
    """

    cond: Expr
    source: str
    dim: int
    lo: Expr
    hi: Expr
    size: Expr
    stage: str
    span: Span | None
    reads: bool = True


@dataclass(frozen=True, slots=True)
class SizeCheck:
    """Two limits on dimension `dim` of output `output` must agree: one from each of two inputs."""

    output: str
    dim: int
    first: Expr
    second: Expr
    sources: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Promise:
    """What somebody says that is needed of a Func along a dim: the `n` values from `lo` on.

    Where `lo` is None, whole runs of `n`: the first value and how many there are are multiples of it.
    """

    lo: int | None
    n: int

    def interval(self, needed: Interval, algebra: Algebra) -> Interval:
        """Return what is needed where the promise is kept."""
        if self.lo is not None:
            return Interval(Affine(self.lo), Affine(self.lo + self.n - 1))
        first = algebra.divided(needed.first, self.n) * self.n
        return Interval(first, first + algebra.divided(needed.last - needed.first + 1, self.n) * self.n - 1)


@dataclass(frozen=True, slots=True)
class Promised:
    """A promise about dim `dim` of `func`, and what is needed in truth."""

    func: str
    dim: int
    promise: Promise
    needed: Interval


Promises = Mapping[tuple[str, int], Promise]
NONE: Promises = {}


@dataclass(frozen=True, slots=True)
class Regions:
    """What `infer` found. `shapes` holds None in a dimension that the call must give.

    `fixed` are outputs, dims and the extents they must have: a declared shape in a dim that is computed whole.
    `promised` is taken for granted, and must be checked.
    """

    boxes: Mapping[str, Box]
    shapes: Mapping[str, tuple[Expr | None, ...]]
    checks: tuple[RegionCheck, ...]
    agreements: tuple[SizeCheck, ...]
    fixed: tuple[tuple[str, int, Expr], ...]
    context: Context
    promised: tuple[Promised, ...] = ()


def infer(pipeline: Pipeline, promises: Promises = NONE) -> Regions:
    """Return the regions of `pipeline`, taking `promises` for granted.

    Raises BoundsError where an index has no bound, where index 0 of an output cannot be served, or where a scatter may
    leave its Func; what depends on sizes becomes a check for the call.
    """
    return _Inference(pipeline, promises).run()


@dataclass(slots=True)
class _Inference:
    pipeline: Pipeline
    promises: Promises
    algebra: Algebra = field(default_factory=Algebra)
    demand: dict[str, list[Interval | None]] = field(default_factory=dict[str, "list[Interval | None]"])
    boxes: dict[str, Box] = field(default_factory=dict[str, Box])
    needs: list[tuple[Access, int, Interval, Ranges]] = field(
        default_factory=list[tuple[Access, int, Interval, Ranges]]
    )
    at_least: dict[int, int] = field(default_factory=dict[int, int])
    found: dict[str, tuple[tuple[Access, ...], ...]] = field(
        default_factory=dict[str, "tuple[tuple[Access, ...], ...]"]
    )
    values: dict[tuple[str, int], ValueRange] = field(default_factory=dict[tuple[str, int], ValueRange])
    promised: list[Promised] = field(default_factory=list[Promised])

    def run(self) -> Regions:
        pipeline, promises = self.pipeline, self.promises
        for scalar in pipeline.scalars:
            if scalar.low is not None and scalar.dtype.is_integer:
                self.at_least[self._symbol(Param(scalar.dtype, scalar.name))] = int(scalar.low)
            elif scalar.dtype.is_integer and not scalar.dtype.is_signed:
                self.at_least[self._symbol(Param(scalar.dtype, scalar.name))] = 0
        for f in pipeline.funcs:
            self._value_ranges(f)
            self.found[f.name] = tuple(tuple(accesses(f, stage, self.algebra)) for stage in range(len(f.updates) + 1))
        for name in pipeline.outputs:
            f = pipeline.func(name)
            self.demand[name] = [output_interval(self.context(), f, d) for d in range(len(f.dims))]
            for d in range(len(f.dims)):
                if (name, d) in promises:
                    needed = asked_interval(self.context(), f, d)
                    self.promised.append(Promised(name, d, promises[name, d], needed))
        member_of = {name: group for group in pipeline.groups for name in group}
        done: set[str] = set()
        for f in reversed(pipeline.funcs):
            if f.name not in done:
                together = [pipeline.func(n) for n in member_of.get(f.name, (f.name,))]
                self._place(together)
                done |= {g.name for g in together}
        shapes, agreements = self._shapes()
        context = self.context()
        fixed = tuple(
            (name, d, self.algebra.expr(extent))
            for name in pipeline.outputs
            for d in range(len(pipeline.func(name).dims))
            if (extent := whole_extent(context, pipeline.func(name), d)) is not None
        )
        return Regions(self.boxes, shapes, tuple(self._checks()), agreements, fixed, context, tuple(self.promised))

    def size(self, array: str, dim: int) -> Affine:
        return self.algebra.of(Size(INDEX, array, dim))

    def _symbol(self, expr: Expr) -> int:
        return self.algebra.of(expr).terms[0][0]

    def _of_read(self, read: Read) -> ValueRange:
        return self.values.get((read.source, read.part), plain_read(read))

    def _value_ranges(self, f: Func) -> None:
        if not f.updates and not any(r.source == f.name for r in reads(f.values)):
            for part, found in enumerate(value_ranges(f.values, self._of_read)):
                if not f.dtypes[part].is_float:
                    self.values[f.name, part] = found

    def _place(self, funcs: list[Func]) -> None:
        """Fix the boxes of Funcs that read only each other, and pass on what they need."""
        names = {f.name for f in funcs}
        if len(funcs) > 1:
            self._ask_each_other(funcs)
        needed = [f for f in funcs if not self._is_unread(f)]
        for f in funcs:
            self.boxes[f.name] = (NO_CELLS,) * len(f.dims)
        for f in needed:
            self._box(f)
        for f in needed:
            for stage, made in enumerate(self.found[f.name]):
                ranges = self.ranges(f, stage)
                bounder = Bounder(self.algebra, ranges, Prover(self.algebra, {}, self.at_least), self._of_read)
                for access in made:
                    self._pass_on(f, access, ranges, bounder, access.source in names)

    def _is_unread(self, f: Func) -> bool:
        """Return whether no read of `f` is left, expressions being simplified, and nothing says how far it goes."""
        open_ = any(f.shape[d] is None if f.shape else True for d in range(len(f.dims)))
        return open_ and f.name not in self.demand

    def _ask_each_other(self, funcs: list[Func]) -> None:
        """Let each member of a group be asked for what the others need of it."""
        members = {f.name: f for f in funcs}
        for f in [f for _ in funcs for f in funcs]:
            for access in (a for made in self.found[f.name] for a in made):
                source = members.get(access.source)
                if source is None or source is f:
                    continue
                asked = self.demand.setdefault(source.name, [None] * len(source.dims))
                for d, index in enumerate(access.index):
                    name = self.algebra.name(index)
                    here = name is not None and name == source.dims[d] and name in f.dims
                    needed = self._asked(f, f.dims.index(name)) if here and name else self._whole(source, d)
                    if needed is not None:
                        asked[d] = self._hull(asked[d], needed)

    def _asked(self, f: Func, d: int) -> Interval | None:
        extent = whole_extent(self.context(), f, d)
        asked = self.demand.get(f.name)
        return Interval(Affine(0), extent - 1) if extent is not None else asked[d] if asked else None

    def _whole(self, f: Func, d: int) -> Interval | None:
        extent = f.shape[d] if f.shape else None
        return None if extent is None else Interval(Affine(0), self.algebra.of(extent) - 1)

    def _box(self, f: Func) -> None:
        asked = self.demand.get(f.name, [None] * len(f.dims))
        box = box_of(self.context(), f, asked, Prover(self.algebra, {}, self.at_least), {})
        if f.name not in self.pipeline.outputs:
            for d, needed in enumerate(box):
                if (f.name, d) in self.promises:
                    promise = self.promises[f.name, d]
                    self.promised.append(Promised(f.name, d, promise, needed))
                    box = (*box[:d], promise.interval(needed, self.algebra), *box[d + 1 :])
        self.boxes[f.name] = box

    def context(self) -> Context:
        return Context(self.pipeline, self.algebra, self.at_least, self.found, self.values, self.promises)

    def ranges(self, f: Func, stage: int) -> dict[str, Interval]:
        """Return the box of each variable of a stage, its dims first."""
        return stage_ranges(f, stage, dict(zip(f.dims, self.boxes[f.name], strict=True)), self.algebra, self.at_least)

    def _hull(self, a: Interval | None, b: Interval) -> Interval:
        return hull(Prover(self.algebra, {}, self.at_least), a, b)

    def _pass_on(self, f: Func, access: Access, ranges: Ranges, bounder: Bounder, inside: bool) -> None:
        source = next((g for g in self.pipeline.funcs if g.name == access.source), None)
        for d, index in enumerate(access.index):
            if source is not None and inside and self.algebra.name(index) == source.dims[d]:
                continue
            found = bounder.interval(index, access.facts)
            if found.lo is None or found.hi is None:
                found = finite(f, access, d, found)
            if source is None or inside or (source.shape and source.shape[d] is not None):
                self.needs.append((access, d, found, ranges))
            if source is not None and not inside:
                asked = self.demand.setdefault(source.name, [None] * len(source.dims))
                asked[d] = self._hull(asked[d], found)

    def _extent(self, access: Access, d: int) -> Affine | None:
        """Return the extent that dimension `d` of what is accessed must stay in."""
        for array in (*self.pipeline.inputs, *self.pipeline.tables):
            if array.name == access.source:
                if isinstance(array, Table):
                    return Affine(array.array.shape[d])
                declared = array.sizes[d]
                return self.algebra.of(declared) if isinstance(declared, Const) else self.size(array.name, d)
        f = self.pipeline.func(access.source)
        if f.shape and f.shape[d] is not None:
            shape = f.shape[d]
            assert shape is not None
            return self.algebra.of(shape)
        if f.name in self.pipeline.outputs and access.read is None:
            return self.size(f.name, d)
        return None

    def _shapes(self) -> tuple[dict[str, tuple[Expr | None, ...]], tuple[SizeCheck, ...]]:
        shapes: dict[str, tuple[Expr | None, ...]] = {}
        agreements: list[SizeCheck] = []
        served = self._served()
        given = dict(zip(self.pipeline.outputs, self.pipeline.shapes, strict=False))
        for name in self.pipeline.outputs:
            f = self.pipeline.func(name)
            symbolic = given.get(name)
            shape: list[Expr | None] = []
            for d in range(len(f.dims)):
                declared = symbolic[d] if symbolic else f.shape[d] if f.shape else None
                if declared is not None:
                    shape.append(self.algebra.simplify(declared))
                    continue
                found = served.get((name, d), {})
                firsts = list(found.items())
                shape.append(self.algebra.expr(firsts[0][1]) if firsts else None)
                for source, limit in firsts[1:]:
                    if limit != firsts[0][1]:
                        agreements.append(
                            SizeCheck(
                                name,
                                d,
                                self.algebra.expr(firsts[0][1]),
                                self.algebra.expr(limit),
                                (firsts[0][0], source),
                            )
                        )
            shapes[name] = tuple(shape)
        return shapes, tuple(agreements)

    def _served(self) -> dict[tuple[str, int], dict[str, Affine]]:
        """Return, per output dimension, the largest extent that each input can serve."""
        out: dict[tuple[str, int], dict[str, Affine]] = {}
        outputs = frozenset(self.pipeline.outputs)
        prover = Prover(self.algebra, {}, self.at_least)
        for access, d, found, _ in self.needs:
            extent = self._extent(access, d)
            if access.read is not None and extent is not None and found.hi is not None:
                for (output, dim), limit in limits(self.algebra, prover, found.hi, extent - 1, outputs):
                    mine = out.setdefault((output, dim), {})
                    mine[access.source] = prover.minimum(mine[access.source], limit) if access.source in mine else limit
        return out

    def _checks(self) -> Iterable[RegionCheck]:
        prover = Prover(self.algebra, {}, self.at_least)
        kept: dict[tuple[str, int, str, int], list[RegionCheck]] = {}
        seen: set[tuple[str, int, str, int, Affine, Affine]] = set()
        for access, d, found, ranges in sorted(self.needs, key=lambda n: n[0].read is not None):
            extent = self._extent(access, d)
            if extent is None or found.lo is None or found.hi is None:
                continue
            key = (access.func, access.stage, access.source, d)
            if (*key, found.lo, found.hi) in seen:
                continue
            seen.add((*key, found.lo, found.hi))
            below, above = prover.nonnegative(found.lo), prover.less_equal(found.hi, extent - 1)
            if below and above:
                continue
            check = self._check(access, d, found, extent, ranges)
            if not found.hi.terms and not extent.terms and found.hi.const >= extent.const:
                raise self._outside(check, access)
            kept.setdefault(key, []).append(check)
        for checks in kept.values():
            yield from checks

    def _check(self, access: Access, d: int, found: Interval, extent: Affine, ranges: Ranges) -> RegionCheck:
        assert found.lo is not None
        assert found.hi is not None
        of = self.algebra.expr
        inside = build.both(build.less_equal(build.index(0), of(found.lo)), build.less(of(found.hi), of(extent)))
        empty = build.less(of(found.hi), of(found.lo))
        cond = build.binary(build.Op.OR, inside, empty)
        for r in ranges.values():
            if r.lo is not None and r.hi is not None:
                cond = build.binary(build.Op.OR, cond, build.less(of(r.hi), of(r.lo)))
        f = self.pipeline.func(access.func)
        return RegionCheck(
            cond,
            access.source,
            d,
            of(found.lo),
            of(found.hi),
            of(extent),
            stage_name(f.name, access.stage),
            _span(f, access),
            access.read is not None,
        )

    def _outside(self, check: RegionCheck, access: Access) -> BoundsError:
        f = next((g for g in self.pipeline.funcs if g.name == check.source), None)
        dim = f"dimension {check.dim}" if f is None else f"dimension {check.dim} ({f.dims[check.dim]})"
        does, reaches = ("reads", "needs") if access.read is not None else ("may write", "reaches")
        last = self.algebra.expr(self.algebra.of(check.size) - 1)
        return BoundsError(
            f"`{check.stage}` {does} `{check.source}` outside its {dim}: it {reaches} {show(check.lo)} to "
            f"{show(check.hi)}, there is 0 to {show(last)}",
            [(check.span, "this read" if access.read is not None else "this index")],
            hint="clip the index, or declare a larger shape" if f is not None else "clip the index",
        )


@dataclass(frozen=True, slots=True)
class Context:
    """What is known of a pipeline before any region of it is."""

    pipeline: Pipeline
    algebra: Algebra
    at_least: Mapping[int, int]
    accesses: Mapping[str, tuple[tuple[Access, ...], ...]]
    values: Mapping[tuple[str, int], ValueRange]
    promises: Promises

    def of_read(self, read: Read) -> ValueRange:
        """Return the range of what `read` can give."""
        return self.values.get((read.source, read.part), plain_read(read))

    def bounder(self, ranges: Ranges, prover: Prover) -> Bounder:
        """Return what finds intervals over `ranges`."""
        return Bounder(self.algebra, ranges, prover, self.of_read)


def box_of(context: Context, f: Func, asked: Sequence[Interval | None], prover: Prover, outer: Ranges) -> Box:
    """Return the box that `f` is computed over where its readers ask for `asked`.

    A declared shape is the box in the dims that a recurrence moves in and of what has updates; what updates write, and
    read of their own Func, is inside. `outer` are the ranges of loops around, `prover` knows them. What no point reads,
    as inlining may show, is empty.
    """
    output = f.name in context.pipeline.outputs
    if not output and all(a is None for a in asked) and not _is_read(context, f):
        return (NO_CELLS,) * len(f.dims)
    box: list[Interval] = []
    for d, dim in enumerate(f.dims):
        wanted = asked[d]
        extent = whole_extent(context, f, d, wanted is None)
        if extent is not None:
            wanted = Interval(Affine(0), extent - 1)
        if wanted is None:
            raise BoundsError(
                f"dimension `{dim}` of `{f.name}` has no extent: nothing that reads it bounds it",
                [(f.span, "defined here")],
                hint=f"declare it: Func({f.name!r}, shape=...)",
            )
        box.append(wanted)
    for stage in range(1, len(f.updates) + 1):
        dims = dict(zip(f.dims, box, strict=True))
        bounder = context.bounder(stage_ranges(f, stage, {**outer, **dims}, context.algebra, context.at_least), prover)
        for access in context.accesses[f.name][stage]:
            if access.source == f.name:
                for d, index in enumerate(access.index):
                    declared = f.shape and f.shape[d] is not None
                    if context.algebra.name(index) == f.dims[d] or declared or (output and access.read is None):
                        continue
                    found = bounder.interval(index, access.facts)
                    box[d] = hull(prover, box[d], finite(f, access, d, found))
    return tuple(box)


def _is_read(context: Context, f: Func) -> bool:
    others = (stages for name, stages in context.accesses.items() if name != f.name)
    return any(access.source == f.name for stages in others for found in stages for access in found)


def whole_extent(context: Context, f: Func, d: int, unread: bool = False) -> Affine | None:
    """Return the declared extent of a dim that is computed whole: a recurrence moves in it, or updates may write it."""
    shape = f.shape[d] if f.shape else None
    if shape is None:
        return None
    moved = f.dims[d] in _moved_dims(f, context.accesses[f.name], context.algebra, context.pipeline)
    return context.algebra.of(shape) if moved or f.updates or unread else None


def output_interval(context: Context, f: Func, d: int) -> Interval:
    """Return the interval of an output that is asked for, or promised to be."""
    found, promise = asked_interval(context, f, d), context.promises.get((f.name, d))
    return found if promise is None else promise.interval(found, context.algebra)


def asked_interval(context: Context, f: Func, d: int) -> Interval:
    """Return the interval of an output: what the call says, or the declared one where the dim is computed whole."""
    whole = whole_extent(context, f, d)
    if whole is not None:
        return Interval(Affine(0), whole - 1)
    first = Affine(0)
    if context.pipeline.origins:
        first = context.algebra.of(Param(int64, origin_name(f.name, d)))
    return Interval(first, first + context.algebra.of(Size(INDEX, f.name, d)) - 1)


def finite(f: Func, access: Access, d: int, found: Interval) -> Interval:
    """Return `found`; raise BoundsError where a side of it is not known."""
    if found.lo is not None and found.hi is not None:
        return found
    does = "writes" if access.read is None else "reads"
    text = show(access.read.index[d]) if access.read else show(f.updates[access.stage - 1].index[d])
    raise BoundsError(
        f"`{stage_name(f.name, access.stage)}` {does} `{access.source}` at `{text}` in dimension {d} without bound",
        [(_span(f, access), "has no bound here")],
        hint="clip the index, or compare it in the RDom's where=",
    )


def stage_ranges(
    f: Func, stage: int, dims: Mapping[str, Interval], algebra: Algebra, at_least: Mapping[int, int]
) -> dict[str, Interval]:
    """Return the intervals of a stage's variables: `dims` as given, then those of its RDom."""
    ranges = dict(dims)
    if stage:
        for r in f.updates[stage - 1].domain:
            bounder = Bounder(algebra, ranges, Prover(algebra, {}, at_least), plain_read)
            lo = bounder.interval(algebra.of(r.lo), frozenset()).lo
            hi = bounder.interval(algebra.of(r.hi), frozenset()).hi
            ranges[r.name] = Interval(lo, None if hi is None else hi - 1)
    return ranges


def hull(prover: Prover, a: Interval | None, b: Interval) -> Interval:
    """Return the smallest interval known to hold both."""
    if a is None:
        return b
    lo = None if a.lo is None or b.lo is None else prover.minimum(a.lo, b.lo)
    hi = None if a.hi is None or b.hi is None else prover.maximum(a.hi, b.hi)
    return Interval(lo, hi)


def stage_name(func: str, stage: int) -> str:
    """Return how users see a stage: `f`, or `f.update(0)`."""
    return func if stage == 0 else f"{func}.update({stage - 1})"


def _span(f: Func, access: Access) -> Span | None:
    if access.read is not None and access.read.span is not None:
        return access.read.span
    return f.updates[access.stage - 1].span if access.stage else f.span


def _moved_dims(f: Func, found: tuple[tuple[Access, ...], ...], algebra: Algebra, pipeline: Pipeline) -> frozenset[str]:
    """Return the dims in which the definition reads its own Func, or its group, elsewhere."""
    group = next((g for g in pipeline.groups if f.name in g), (f.name,))
    moved: set[str] = set()
    for access in found[0]:
        if access.source in group and access.read is not None:
            other = pipeline.func(access.source)
            for d, index in enumerate(access.index):
                if algebra.name(index) != other.dims[d] or (d < len(f.dims) and f.dims[d] != other.dims[d]):
                    if d < len(f.dims):
                        moved.add(f.dims[d])
    return frozenset(moved)
