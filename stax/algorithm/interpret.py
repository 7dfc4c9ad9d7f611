"""What a Pipeline means, plainly, in NumPy: the oracle that everything else is tested against.

Every Func is computed over its box, stage by stage, in the order in which the language defines it: a definition all
at once, or point by point along the dims in which it reads itself, or, where their order is another one, each cell
once those are there that it needs; an update point by point of its domain, over the
whole box of its plain Vars. Nothing is assumed of the boxes: a read that is needed, as `conditions` says, must be
inside what it reads and computed already, else InternalError; a read that is not needed gives a poison value, which
no result may show.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from stax import dtypes
from stax.algorithm.conditions import Part, affine_parts
from stax.algorithm.nodes import Func, Pipeline, Range
from stax.dtypes import DType
from stax.errors import InternalError
from stax.expr import bfloat16
from stax.expr.evaluate import constant, evaluate, primitive
from stax.expr.nodes import Binary, BinaryOp, Const, Expr, Param, Read, Select, Size, Var
from stax.expr.walk import children, postorder, reads
from stax.expr.watch import Watch

Array: TypeAlias = np.ndarray[Any, Any]
Box: TypeAlias = tuple[tuple[int, int], ...]
Mask: TypeAlias = Array | None

_CHUNK = 1 << 17  # values of one node held at once


def interpret(
    pipeline: Pipeline,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, float],
    boxes: Mapping[str, Box],
    sizes: Mapping[tuple[str, int], int] | None = None,
    watch: Watch | None = None,
) -> dict[str, tuple[Array, ...]]:
    """Return for each output Func its parts over its box.

    arrays: the Inputs by name. scalars: the Params by name. boxes: for every Func, inclusive `(lo, hi)` a dim; empty
    where hi < lo. sizes: extents of outputs, by name and dim, where they are not those of the boxes. watch: who is told
    of loads, stores and realizations, many points at once.
    Raises `InternalError` where a needed read or a write lies outside an array or a box.
    """
    with np.errstate(all="ignore"):
        run = _Run(pipeline, arrays, scalars, boxes, sizes or {}, watch)
        run.pipeline()
        return {
            name: tuple(map(_given, run.stored[name].parts, pipeline.func(name).dtypes)) for name in pipeline.outputs
        }


@dataclass(frozen=True, slots=True, eq=False)
class _Stored:
    """An array with its origin; `done` are the cells that have a value, `there` those of its domain; None is all."""

    parts: list[Array]
    low: tuple[int, ...]
    done: Array | None = None
    there: Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """The nodes of some roots in order, and what to know of each: by id."""

    roots: tuple[Expr, ...]
    order: list[Expr]
    affine: tuple[Expr, ...]
    parts: dict[int, tuple[Part, Part]]
    reading: set[int]
    moving: set[int]
    later: list[Expr]
    drops: dict[int, list[int]]


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """One stage: `values` go to `index`, the dims `lanes` of which are whole slices, for each point of a domain.

    With `every`, its cells are computed one by one, as they are needed.
    """

    func: Func
    number: int
    lanes: tuple[int, ...]
    index: tuple[Expr, ...]
    body: _Plan
    where: _Plan | None
    every: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Points:
    """Points of a domain in order, one entry a point in each of `columns`; `active` per point and lane."""

    count: int
    columns: dict[str, Array]
    active: Mask


class _Run:
    def __init__(
        self,
        pipeline: Pipeline,
        arrays: Mapping[str, Array],
        scalars: Mapping[str, float],
        boxes: Mapping[str, Box],
        sizes: Mapping[tuple[str, int], int],
        watch: Watch | None,
    ) -> None:
        self.program, self.boxes, self.watch = pipeline, boxes, watch
        self.sizes = dict(sizes)
        self.stored: dict[str, _Stored] = {}
        for item in pipeline.inputs:
            array = np.asarray(arrays[item.name])
            if not item.dtype.fits(array.dtype) or array.ndim != len(item.dims):
                raise InternalError(f"`{item.name}` is {array.dtype} of rank {array.ndim}")
            self.stored[item.name] = _Stored([_computed(array, item.dtype)], (0,) * array.ndim)
        for table in pipeline.tables:
            self.stored[table.name] = _Stored([_computed(table.array, table.dtype)], (0,) * table.array.ndim)
        self.scalars = {s.name: constant(Const(s.dtype, scalars[s.name])) for s in pipeline.scalars}

    def pipeline(self) -> None:
        """Compute every Func, groups as one, as soon as what they read is there."""
        group_of = {name: group for group in self.program.groups for name in group}
        units = list(dict.fromkeys(group_of.get(f.name, (f.name,)) for f in self.program.funcs))
        by_name = {f.name: f for f in self.program.funcs}
        while units:
            ready = [u for u in units if all(self._has(by_name[name], u) for name in u)]
            if not ready:
                raise InternalError(f"no order to compute {', '.join(name for u in units for name in u)}")
            for unit in ready:
                if unit in self.program.groups:
                    self.group([by_name[name] for name in unit])
                else:
                    self.func(by_name[unit[0]])
            units = [u for u in units if u not in ready]

    def _has(self, func: Func, unit: Sequence[str]) -> bool:
        return all(r.source in self.stored or r.source in unit for r in reads(_roots(func)))

    def func(self, func: Func) -> None:
        """Compute all stages of a Func that is in no group."""
        self.allocate(func)
        if _is_empty(self.boxes[func.name]):
            return
        if func.order != ():
            self.as_needed([func])
        else:
            self.run(_definition(func, grouped=False), None)
        if func.updates:
            self.finish(func)
        for k in range(len(func.updates)):
            self.run(_update(func, k), None)
        self.finish(func)

    def group(self, funcs: list[Func]) -> None:
        """Step dim 0 of all members together; in a step, each member's stages in order."""
        for f in funcs:
            self.allocate(f)
        if any(f.together != 1 or f.lag or f.order != () for f in funcs):
            self.as_needed(funcs)
            for f in funcs:
                self.finish(f)
            return
        members = [f for f in funcs if not _is_empty(self.boxes[f.name])]
        stages = {
            f.name: [_definition(f, grouped=True), *(_update(f, k) for k in range(len(f.updates)))] for f in members
        }
        down = any(f.dims[0] in f.backwards for f in members)
        low = min((self.boxes[f.name][0][0] for f in members), default=0)
        high = max((self.boxes[f.name][0][1] for f in members), default=-1)
        for step in range(high, low - 1, -1) if down else range(low, high + 1):
            for f in members:
                if self.boxes[f.name][0][0] <= step <= self.boxes[f.name][0][1]:
                    for stage in stages[f.name]:
                        self.run(stage, step)
        for f in funcs:
            self.finish(f)

    def as_needed(self, funcs: list[Func]) -> None:
        """Compute each cell of Funcs that read each other once those that it needs are there, in whatever order."""
        members = {f.name for f in funcs}
        stages = {f.name: _definition(f, grouped=True, every=True) for f in funcs}
        for f in funcs:
            cells = np.ndindex(*(max(0, hi - lo + 1) for lo, hi in self.boxes[f.name]))
            for offset in cells:
                stack = [(f.name, tuple(lo + k for k, (lo, _) in zip(offset, self.boxes[f.name], strict=True)))]
                waiting = set(stack)
                while stack:
                    name, cell = stack[-1]
                    kept = self.stored[name]
                    at = tuple(c - lo for c, lo in zip(cell, kept.low, strict=True))
                    missing = None if kept.done is None or kept.done[at] else self.cell(stages[name], cell)
                    if missing is None:
                        waiting.discard(stack.pop())
                        continue
                    if missing in waiting or missing[0] not in members:
                        raise InternalError(f"`{missing[0]}` needs itself at {missing[1]}")
                    stack.append(missing)
                    waiting.add(missing)

    def cell(self, stage: _Stage, cell: tuple[int, ...]) -> tuple[str, tuple[int, ...]] | None:
        """Compute one cell of a definition; return another one where that is needed first."""
        names = {d: np.array([c]) for d, c in zip(stage.func.dims, cell, strict=True)}
        try:
            _Batch(self, stage, names, 1, [names[d] for d in stage.func.dims]).run(None, False)
        except _Missing as missing:
            return missing.name, missing.cell
        return None

    def allocate(self, func: Func) -> None:
        """Make the storage of a Func, full of poison."""
        box = self.boxes[func.name]
        if self.watch is not None:
            self.watch.realized(func.name, tuple(box))
        shape = tuple(max(0, hi - lo + 1) for lo, hi in box)
        parts = [np.full(shape, _poison(dtype), dtype.computed) for dtype in func.dtypes]
        there: Mask = None
        if func.where is not None:
            rank = len(box)
            names = {
                d: _along(np.arange(lo, hi + 1), k, rank)
                for k, (d, (lo, hi)) in enumerate(zip(func.dims, box, strict=True))
            }
            (there,) = evaluate((func.where,), lambda node: self.leaf(node, names))
            there = np.broadcast_to(there, shape)
        self.stored[func.name] = _Stored(parts, tuple(lo for lo, _ in box), np.zeros(shape, np.bool_), there)

    def finish(self, func: Func) -> None:
        """Take all cells of a Func as computed."""
        kept = self.stored[func.name]
        self.stored[func.name] = _Stored(kept.parts, kept.low, None, kept.there)

    def run(self, stage: _Stage, step: int | None) -> None:
        """Run one stage, with dim 0 at `step` alone where it is given."""
        func, box = stage.func, self.boxes[stage.func.name]
        if step is not None and stage.number and 0 not in stage.lanes:
            raise InternalError(f"an update of `{func.name}` does not keep to its step of `{func.dims[0]}`")
        spans = [np.arange(lo, hi + 1) if d or step is None else np.array([step]) for d, (lo, hi) in enumerate(box)]
        rank = 1 + len(stage.lanes)
        lanes = {func.dims[d]: _along(spans[d], k + 1, rank) for k, d in enumerate(stage.lanes)}
        width = math.prod(len(spans[d]) for d in stage.lanes)
        if stage.number == 0:
            points = self.box_points(stage, spans)
        else:
            points = self.domain_points(func.updates[stage.number - 1].domain, lanes, rank)
        # A predicate that reads its own Func must be asked when its point comes.
        one_by_one = stage.where is not None and bool(stage.where.moving)
        size = 1 if one_by_one else max(1, _CHUNK // max(1, width))
        for start in range(0, points.count, size):
            part = slice(start, start + size)
            columns = {name: _along(column[part], 0, rank) for name, column in points.columns.items()}
            active = points.active if points.active is None or len(points.active) == 1 else points.active[part]
            _Batch(self, stage, {**lanes, **columns}, min(size, points.count - start), spans).run(active, one_by_one)

    def box_points(self, stage: _Stage, spans: list[Array]) -> _Points:
        """Return the points of the dims along which a definition reads itself, in its order."""
        func = stage.func
        serial = [d for d in range(len(func.dims)) if d not in stage.lanes]
        runs = [spans[d][::-1] if func.dims[d] in func.backwards else spans[d] for d in serial]
        grid: Sequence[Array] = np.meshgrid(*runs, indexing="ij") if runs else ()
        columns = {func.dims[d]: column.ravel() for d, column in zip(serial, grid, strict=True)}
        return _Points(math.prod(len(r) for r in runs), columns, None)

    def domain_points(self, domain: tuple[Range, ...], lanes: dict[str, Array], rank: int) -> _Points:
        """Return the points of an update's domain; where bounds vary among lanes, their hull, and who is active."""
        columns: dict[str, Array] = {}
        count, ragged = 1, list[Range]()
        for r in domain:
            lo, hi = self.bounds(r, columns, lanes, rank)
            across = tuple(range(1, rank))
            first, end = (np.broadcast_to(b.min(across) if b.ndim else b, count) for b in (lo, -hi))
            if any(b.ndim and b.size != len(b) for b in (lo, hi)):
                ragged.append(r)
            extents = np.maximum(-end - first, 0)
            origin = np.repeat(np.arange(count), extents)
            inside = np.arange(len(origin)) - np.repeat(np.cumsum(extents) - extents, extents)
            columns = {name: column[origin] for name, column in columns.items()}
            columns[r.name] = first[origin] + inside
            count = len(origin)
        active: Mask = None
        for r in ragged:
            lo, hi = self.bounds(r, columns, lanes, rank)
            here = _along(columns[r.name], 0, rank)
            active = _meet(active, np.asarray((lo <= here) & (here < hi)))
        return _Points(count, columns, active)

    def bounds(self, r: Range, columns: dict[str, Array], lanes: dict[str, Array], rank: int) -> tuple[Array, Array]:
        """Return the bounds of a variable for all points so far."""
        names = {**lanes, **{name: _along(column, 0, rank) for name, column in columns.items()}}
        lo, hi = evaluate((r.lo, r.hi), lambda node: self.leaf(node, names))
        return lo.astype(np.int64), hi.astype(np.int64)

    def leaf(self, node: Expr, names: Mapping[str, Array]) -> Array:
        """Return the value of a Var, Param or Size."""
        match node:
            case Const():
                return constant(node)
            case Var(name=name) if name in names:
                return names[name]
            case Param(name=name):
                return self.scalars[name]
            case Size(array=array, dim=dim):
                return np.asarray(self.size(array, dim), node.dtype.dtype)
            case _:
                raise InternalError(f"nothing gives a value to {node}")

    def size(self, array: str, dim: int) -> int:
        """Return an extent: of an input, or of an output, which is its box unless said otherwise."""
        if (array, dim) in self.sizes:
            return self.sizes[array, dim]
        if array in self.boxes:
            lo, hi = self.boxes[array][dim]
            return max(0, hi - lo + 1)
        return self.stored[array].parts[0].shape[dim]


class _Missing(Exception):
    """A cell that is not computed yet."""

    def __init__(self, name: str, cell: tuple[int, ...]) -> None:
        self.name, self.cell = name, cell


class _Batch:
    """Some points of one stage: what depends on no earlier point of them is computed for all of them at once.

    Arrays have rank 0, or an axis of points and then one for each lane.
    """

    def __init__(self, run: _Run, stage: _Stage, names: dict[str, Array], count: int, spans: list[Array]) -> None:
        self.up, self.stage, self.names, self.count, self.spans = run, stage, names, count, spans
        self.values: dict[int, Array] = {}
        self.masks: dict[int, Mask] = {}

    def run(self, active: Mask, one_by_one: bool) -> None:
        """Evaluate and write; `active` says which points and lanes exist."""
        stage = self.stage
        if stage.where is not None:
            self.together(stage.where, active, all_nodes=True)
            active = _meet(active, self.values[id(stage.where.roots[0])])
        self.together(stage.body, active, all_nodes=one_by_one)
        for p in range(self.count):
            mask = None if active is None else _at(active, p)
            if mask is None or mask.any():
                values = self.alone(stage.body, p) if stage.body.later and not one_by_one else self.values
                self.write(values, p, mask)

    def together(self, plan: _Plan, active: Mask, all_nodes: bool) -> None:
        """Evaluate `plan` for all points; without `all_nodes`, not what may depend on an earlier point."""
        self.mark(plan, active)
        for node in plan.order:
            if id(node) not in self.values and (all_nodes or id(node) not in plan.moving):
                self.values[id(node)] = self.value(node, [self.values[id(c)] for c in children(node)], None)
                for dead in plan.drops.get(id(node), ()):
                    del self.values[dead]

    def mark(self, plan: _Plan, active: Mask) -> None:
        """Find where each read is needed: pushed down from the roots, narrowed by the arms of selects."""
        found = evaluate(plan.affine, lambda node: self.up.leaf(node, self.names))
        parts = {id(node): value for node, value in zip(plan.affine, found, strict=True)}
        needed: dict[int, Mask] = {}
        for root in plan.roots:
            _join(needed, root, active)
        for node in reversed(plan.order):
            if id(node) not in plan.reading:
                continue
            here = needed[id(node)]
            yes, no = plan.parts.get(id(node), (None, None))
            for k, child in enumerate(children(node)):
                part = (None, yes, no)[k] if isinstance(node, Select) else None
                if id(child) in plan.reading:
                    _join(needed, child, here if part is None else _meet(here, parts[id(part)]))
        self.masks.update(needed)

    def alone(self, plan: _Plan, p: int) -> dict[int, Array]:
        """Return the values of `plan` at point `p`, without an axis of points."""
        values: dict[int, Array] = {}
        for node in plan.later:
            for child in children(node):
                if id(child) not in values:
                    values[id(child)] = _at(self.values[id(child)], p)
            values[id(node)] = self.value(node, [values[id(child)] for child in children(node)], p)
        for root in plan.roots:
            if id(root) not in values:
                values[id(root)] = _at(self.values[id(root)], p)
        return values

    def value(self, node: Expr, args: list[Array], p: int | None) -> Array:
        match node:
            case Read():
                mask = self.masks[id(node)]
                mask = mask if mask is None or p is None else _at(mask, p)
                values = self.read(node, args, mask)
                if self.up.watch is not None:
                    self.up.watch.loaded(node.source, self.name(), tuple(args), values, mask)
                return values
            case Const() | Var() | Param() | Size():
                return self.up.leaf(node, self.names)
            case _:
                return primitive(node, args)

    def read(self, node: Read, index: list[Array], mask: Mask) -> Array:
        """Return what is read where `mask` holds, poison elsewhere."""
        kept = self.up.stored[node.source]
        array, done = kept.parts[node.part], kept.done
        at = [i.astype(np.int64) - lo for i, lo in zip(index, kept.low, strict=True)]
        if mask is None or mask.all():
            if any(_leaves(i, n) for i, n in zip(at, array.shape, strict=True)):
                self.outside(node, index, None)
            if done is not None and not done[tuple(at)].all():
                self.undone(node, index)
            if kept.there is not None and not kept.there[tuple(at)].all():
                raise self.error(node, "outside its domain")
            return np.asarray(array[tuple(at)])
        if any(np.any(mask & ((i < 0) | (i >= n))) for i, n in zip(at, array.shape, strict=True)):
            self.outside(node, index, mask)
        shape = np.broadcast_shapes(mask.shape, *(i.shape for i in at))
        poison = np.full(shape, _poison(node.dtype), node.dtype.computed)
        if array.size == 0:
            return poison
        near = tuple(np.clip(i, 0, n - 1) for i, n in zip(at, array.shape, strict=True))
        if done is not None and not np.all(done[near] | ~mask):
            self.undone(node, index)
        if kept.there is not None and not np.all(kept.there[near] | ~mask):
            raise self.error(node, "outside its domain")
        return np.where(mask, array[near], poison)

    def undone(self, node: Read, index: list[Array]) -> None:
        """Say that a cell is missing: another one is computed first where points come one by one."""
        if self.stage.every:
            raise _Missing(node.source, tuple(int(i.item()) for i in index))
        raise self.error(node, "before it is computed")

    def outside(self, node: Read, index: list[Array], mask: Mask) -> None:
        kept = self.up.stored[node.source]
        ends = [(lo, lo + n - 1) for lo, n in zip(kept.low, kept.parts[0].shape, strict=True)]
        bad = np.any(
            np.broadcast_arrays(*((i < lo) | (i > hi) for i, (lo, hi) in zip(index, ends, strict=True))), axis=0
        )
        bad = np.asarray(bad if mask is None else bad & mask)
        first = np.unravel_index(int(np.argmax(bad)), bad.shape)
        cell = tuple(int(np.broadcast_to(i, bad.shape)[first]) for i in index)
        raise self.error(node, f"at {cell}, outside {ends}")

    def name(self) -> str:
        """Return the stage, as schedules call it."""
        return self.stage.func.name + (f".update({self.stage.number - 1})" if self.stage.number else "")

    def error(self, node: Read, what: str) -> InternalError:
        """Return the error of a read that finds nothing."""
        return InternalError(f"`{self.name()}` reads `{node.source}` {what}", [(node.span, "read here")])

    def write(self, values: dict[int, Array], p: int, mask: Mask) -> None:
        """Write the parts of point `p`, where `mask` holds."""
        stage = self.stage
        kept = self.up.stored[stage.func.name]
        shape = tuple(len(self.spans[d]) for d in stage.lanes)
        single = values is not self.values
        new = [values[id(root)] if single else _at(values[id(root)], p) for root in stage.body.roots]
        parts, places = new[: len(kept.parts)], iter(new[len(kept.parts) :])
        at: list[Array | slice] = []
        for d, lo in enumerate(kept.low):
            if d in stage.lanes:
                first = int(self.spans[d][0]) - lo
                at.append(slice(first, first + len(self.spans[d])))
            else:
                at.append(next(places).astype(np.int64) - lo)
        key: tuple[Any, ...]
        if at and (mask is not None or any(not isinstance(i, slice) and i.size != 1 for i in at)):
            key = self.cells(at, shape, mask)
            chosen = np.ones(shape, np.bool_) if mask is None else np.broadcast_to(mask, shape)
            parts = [np.broadcast_to(part, shape)[chosen] for part in parts]
        else:
            key = tuple(i if isinstance(i, slice) else i.item() for i in at)
        for i, n in zip(key, kept.parts[0].shape, strict=True):
            if not isinstance(i, slice) and _leaves(np.asarray(i), n):
                raise InternalError(f"`{stage.func.name}` writes outside its box", [(stage.func.span, "defined here")])
        for part, value, dtype in zip(kept.parts, parts, stage.func.dtypes, strict=True):
            if value.dtype != dtype.computed:
                raise InternalError(f"`{stage.func.name}` of {dtype} is given {value.dtype}")
            part[key] = value
        if self.up.watch is not None:
            whole = kept.parts[0].shape
            spans: list[Array] = [np.arange(lo, lo + n) for lo, n in zip(kept.low, whole, strict=True)]
            cells = (np.broadcast_to(_along(span, d, len(whole)), whole)[key] for d, span in enumerate(spans))
            self.up.watch.stored(stage.func.name, self.name(), tuple(cells), np.asarray(kept.parts[0][key]), None)
        if kept.done is not None:
            kept.done[key] = True

    def cells(self, at: list[Array | slice], shape: tuple[int, ...], mask: Mask) -> tuple[Array, ...]:
        """Return the cells that lanes write, one index array a dim, where `mask` holds."""
        chosen = np.ones(shape, np.bool_) if mask is None else np.broadcast_to(mask, shape)
        out: list[Array] = []
        for d, place in enumerate(at):
            if isinstance(place, slice):
                span = self.spans[d] - self.spans[d][0] + place.start
                out.append(np.broadcast_to(_along(span, self.stage.lanes.index(d), len(shape)), shape)[chosen])
            else:
                out.append(np.broadcast_to(place, shape)[chosen])
        return tuple(out)


def _definition(func: Func, grouped: bool, every: bool = False) -> _Stage:
    serial = len(func.dims) if every else max(_serial_dims(func), 1 if grouped else 0)
    index = tuple(Var(dtypes.int64, name) for name in func.dims)
    lanes = tuple(range(serial, len(func.dims)))
    return _Stage(func, 0, lanes, index, _plan((*func.values, *index[:serial]), func.name), None, every)


def _update(func: Func, k: int) -> _Stage:
    update = func.updates[k]
    lanes = tuple(d for d, i in enumerate(update.index) if isinstance(i, Var) and i.name == func.dims[d])
    places = tuple(i for d, i in enumerate(update.index) if d not in lanes)
    where = None if update.where is None else _plan((update.where,), func.name)
    return _Stage(func, k + 1, lanes, update.index, _plan((*update.values, *places), func.name), where)


def _serial_dims(func: Func) -> int:
    """Return how many leading dims must be stepped: in them every self-read is earlier, whatever the other dims."""
    needed = 0
    for read in reads(func.values):
        if read.source == func.name:
            needed = max(needed, _earlier_at(func, read) + 1)
    return min(needed, len(func.dims))


def _earlier_at(func: Func, read: Read) -> int:
    """Return the dim in which `read` is a constant earlier, those before it unmoved; the last one if unknown."""
    for d, (name, place) in enumerate(zip(func.dims, read.index, strict=True)):
        sign = -1 if name in func.backwards else 1
        match place:
            case Var(name=found) if found == name:
                continue
            case Binary(op=BinaryOp.SUB, left=Var(name=found), right=Const(value=c)) if found == name and sign * c > 0:
                return d
            case Binary(op=BinaryOp.ADD, left=Var(name=found), right=Const(value=c)) if found == name and sign * c < 0:
                return d
            case _:
                break
    return len(func.dims) - 1


def _plan(roots: tuple[Expr, ...], own: str) -> _Plan:
    order = postorder(roots)
    reading, moving = set[int](), set[int]()
    selects = list[Select]()
    for node in order:
        below = children(node)
        if isinstance(node, Read) or any(id(c) in reading for c in below):
            reading.add(id(node))
        if (isinstance(node, Read) and node.source == own) or any(id(c) in moving for c in below):
            moving.add(id(node))
        if isinstance(node, Select) and (id(node.yes) in reading or id(node.no) in reading):
            selects.append(node)
    parts = dict(zip(map(id, selects), affine_parts(s.cond for s in selects), strict=True))
    affine = {id(part): part for pair in parts.values() for part in pair if part is not None}
    later = [node for node in order if id(node) in moving]
    # Values may go when their last reader is there, but for roots and what is computed again at each point.
    kept = {id(root) for root in roots} | {id(c) for node in later for c in children(node)} | moving
    last = {id(c): node for node in order for c in children(node) if id(node) not in moving}
    drops: dict[int, list[int]] = {}
    for dead, node in last.items():
        if dead not in kept:
            drops.setdefault(id(node), []).append(dead)
    return _Plan(roots, order, tuple(affine.values()), parts, reading, moving, later, drops)


def _roots(func: Func) -> Iterable[Expr]:
    yield from func.values
    for update in func.updates:
        yield from (*update.values, *update.index)
        if update.where is not None:
            yield update.where


def _is_empty(box: Box) -> bool:
    return any(hi < lo for lo, hi in box)


def _along(values: Array, axis: int, rank: int) -> Array:
    return values.reshape((1,) * axis + (-1,) + (1,) * (rank - axis - 1))


def _at(values: Array, p: int) -> Array:
    """Return `values` at one point, the axis of points gone."""
    return values if values.ndim == 0 else values[p if len(values) > 1 else 0]


def _leaves(index: Array, extent: int) -> bool:
    if index.size == 1:
        return not 0 <= index.item() < extent
    return bool(index.size) and bool(index.min() < 0 or index.max() >= extent)


def _meet(a: Mask, b: Array) -> Array:
    return b if a is None else a & b


def _join(needed: dict[int, Mask], node: Expr, mask: Mask) -> None:
    if id(node) in needed:
        old = needed[id(node)]
        mask = None if old is None or mask is None else old | mask
    needed[id(node)] = mask


def _computed(array: Array, dtype: DType) -> Array:
    return bfloat16.values_of(array) if dtype.name == "bfloat16" else array


def _given(part: Array, dtype: DType) -> Array:
    return bfloat16.bits_of(part).view(dtype.dtype) if dtype.name == "bfloat16" else part


def _poison(dtype: DType) -> Any:
    """Return what no program means: NaN, or an odd number of many bits."""
    if dtype.is_float:
        return math.nan
    return True if dtype.is_bool else dtype.high - dtype.high // 3
