"""What a loop program means, in NumPy: the fallback where nothing can be compiled, and the test of each pass.

Scratch that was not written and lanes that a mask excludes are poison (NaN, or a strange integer), every index is
checked, and parallel loops run backwards: a program that leans on order, padding or luck gives a wrong answer here.

Speed comes from running many iterations in step: every value has a leading dimension over *lanes*, the iterations being
run together, or of 1 where it is the same in all. A parallel loop becomes lanes; so does any other loop without carries
whose iterations touch no cell that another one writes. Where the text does not show that, an innermost loop is tried:
the cells it touches are noted, and where two iterations meet, its writes are taken back and it runs one by one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, assert_never

import numpy as np

from stax.dtypes import DType
from stax.errors import InternalError
from stax.expr import bfloat16, evaluate
from stax.expr.build import identity
from stax.expr.nodes import (
    COMPARES,
    Axes,
    Axis,
    Binary,
    BinaryOp,
    Broadcast,
    Cast,
    Const,
    Dot,
    Expr,
    Load,
    Local,
    Param,
    Ramp,
    Read,
    Reduce,
    Size,
    Var,
)  # fmt: skip
from stax.expr.walk import children, names, postorder
from stax.expr.watch import Watch
from stax.loops import walk
from stax.loops.nodes import Allocate, Block, For, If, Let, LoopKind, Prefetch, Program, Role, Stmt, Store, Timed

Array: TypeAlias = np.ndarray[Any, Any]

_AT_ONCE = 1 << 16
_SCRATCH_BYTES = 1 << 26
_FAST: dict[BinaryOp, Callable[[Array, Array], Array]] = {
    BinaryOp.ADD: np.add, BinaryOp.SUB: np.subtract, BinaryOp.MUL: np.multiply, BinaryOp.LT: np.less,
    BinaryOp.LE: np.less_equal, BinaryOp.EQ: np.equal, BinaryOp.NE: np.not_equal,
}  # fmt: skip
_FAST_INTEGER: dict[BinaryOp, Callable[[Array, Array], Array]] = {
    BinaryOp.FLOORDIV: np.floor_divide, BinaryOp.MOD: np.remainder, BinaryOp.MIN: np.minimum, BinaryOp.MAX: np.maximum,
}  # fmt: skip


def interpret(
    program: Program,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, float | bool],
    sizes: Mapping[tuple[str, int], int],
    watch: Watch | None = None,
) -> None:
    """Run `program` on `arrays`, by the name of its buffers; outputs are written in place.

    `watch` is told of loads, stores and scratch; then every loop runs one iteration after the other, in order.

    `scalars` are the values of its Params, `sizes` the extents of dimension `dim` of array `name`. Raises InternalError
    where an index leaves its buffer.
    """
    machine = _Machine(program, arrays, scalars, sizes, watch)
    with np.errstate(all="ignore"):
        machine.block(program.body, _Lanes(1, {}))
        machine.finish(program, arrays)


def poison(dtype: DType) -> Any:
    """Return a value that no right program reads, as a NumPy scalar."""
    return dtype.computed.type(np.nan) if dtype.is_float else dtype(True) if dtype.is_bool else dtype(dtype.high - 2)


@dataclass(slots=True)
class _Lanes:
    """Iterations run in step. Names that begin with `#` tell which lane of an outer set each one belongs to."""

    count: int
    env: dict[str, Array]


@dataclass(slots=True)
class _Log:
    """The cells that the iterations of one loop have touched, with the iterations, for some buffers."""

    key: str
    buffers: frozenset[str]
    loaded: dict[str, list[tuple[Array, Array]]] = field(default_factory=dict[str, list[tuple[Array, Array]]])
    stored: dict[str, list[tuple[Array, Array]]] = field(default_factory=dict[str, list[tuple[Array, Array]]])

    def meets(self) -> bool:
        """Return whether an iteration has touched a cell that another one wrote."""
        for buffer, stores in self.stored.items():
            cells = np.concatenate([c for c, _ in stores])
            lanes = np.concatenate([k for _, k in stores])
            order = np.argsort(cells, kind="stable")
            cells, lanes = cells[order], lanes[order]
            if np.any((cells[1:] == cells[:-1]) & (lanes[1:] != lanes[:-1])):
                return True
            for read, by in self.loaded.get(buffer, ()):
                place = np.minimum(np.searchsorted(cells, read), len(cells) - 1)
                if len(cells) and np.any((cells[place] == read) & (lanes[place] != by)):
                    return True
        return False


@dataclass(slots=True)
class _Step:
    """One node of a statement's values: where its operands are, and which values nobody needs after it."""

    node: Expr
    args: tuple[int, ...]
    done: list[int]
    fast: Callable[..., Array] | None


_Plan: TypeAlias = tuple[list[_Step], list[int]]


class _Machine:
    def __init__(
        self,
        program: Program,
        arrays: Mapping[str, Array],
        scalars: Mapping[str, float | bool],
        sizes: Mapping[tuple[str, int], int],
        watch: Watch | None,
    ) -> None:
        self._by, self._watcher = "", watch
        self._params = {
            s.name: evaluate.constant(Const(s.dtype, scalars[s.name])).reshape(1)
            for s in program.scalars
            if isinstance(s, Param)
        }
        self._sizes = {key: np.array([n], np.int64) for key, n in sizes.items()}
        self._arrays: dict[str, Array] = {}
        self._private: set[str] = set()
        self._plans: dict[object, _Plan] = {}
        self._free: dict[int, frozenset[str]] = {}
        self._watch: dict[int, frozenset[str] | None] = {}
        self._one_by_one: set[int] = set()
        self._logs: list[_Log] = []
        self._undo: list[tuple[Array, tuple[Array | int, ...], Array]] = []
        for buffer in program.buffers:
            array = arrays[buffer.name]
            wanted = tuple(int(n[0]) for n in self._values(buffer.name, buffer.shape, _Lanes(1, {})))
            if array.shape != wanted or not buffer.dtype.fits(array.dtype):
                raise InternalError(
                    f"`{buffer.name}` is {buffer.dtype} of shape {wanted}, given {array.dtype} of shape {array.shape}"
                )
            array = bfloat16.values_of(array) if buffer.dtype.name == "bfloat16" else array
            self._arrays[buffer.name] = array if array.ndim else array.reshape(1)

    def finish(self, program: Program, arrays: Mapping[str, Array]) -> None:
        """Write out what is computed with in another type than it has in memory."""
        for buffer in program.buffers:
            if buffer.role is Role.OUTPUT and buffer.dtype.name == "bfloat16":
                array = arrays[buffer.name]
                array.view(np.uint16)[...] = bfloat16.bits_of(self._arrays[buffer.name]).reshape(array.shape)

    def block(self, block: Block, lanes: _Lanes) -> None:
        for k, stmt in enumerate(block.stmts):
            if self._watcher is not None:
                later = (s.stage for other in block.stmts[k:] for s in walk.stores(other))
                self._by = next(later, self._by)
            self._stmt(stmt, lanes)

    def _stmt(self, stmt: Stmt, lanes: _Lanes) -> None:
        match stmt:
            case Let(name=name, value=value):
                (lanes.env[name.name],) = self._values(id(stmt), (value,), lanes)
            case Store():
                self._store(stmt, lanes)
            case Prefetch():
                pass
            case For():
                self._loop(stmt, lanes)
            case If(cond=cond, then=then, orelse=orelse):
                (on,) = self._values(id(stmt), (cond,), lanes)
                if on.all():
                    self.block(then, lanes)
                elif not on.any():
                    self.block(orelse, lanes)
                else:
                    for branch, chosen in ((then, on), (orelse, ~on)):
                        self.block(branch, self._some(branch, np.nonzero(chosen)[0], lanes))
            case Allocate(buffer=buffer):
                shape = [_uniform(n) for n in self._values(id(stmt), buffer.shape, lanes)]
                name = buffer.name
                own = (max(shape, default=1),) if not shape else tuple(max(0, n) for n in shape)
                self._private.discard(name)
                if lanes.count > 1:
                    self._private.add(name)
                    lanes.env["#" + name] = np.arange(lanes.count)
                    own = (lanes.count, *own)
                self._arrays[name] = np.full(own, poison(buffer.dtype))
                if self._watcher is not None:
                    self._watcher.realized(name, tuple((0, n - 1) for n in shape))
            case Timed(buffer=buffer, row=row, body=body):
                array, start = self._arrays[buffer], time.perf_counter_ns()
                if self._logs:
                    self._undo.append((array, (row,), array[row].copy()))
                self.block(body, lanes)
                array[row] += (time.perf_counter_ns() - start, lanes.count)
            case Block():
                self.block(stmt, lanes)
            case _:
                assert_never(stmt)

    # Loops.

    def _loop(self, loop: For, lanes: _Lanes) -> None:
        roots = (loop.start, loop.extent, *(c.init for c in loop.carries))
        start, extent, *inits = self._values(id(loop), roots, lanes)
        if not loop.carries and id(loop) not in self._one_by_one and self._watcher is None:
            watched = self._watched(loop)
            if watched is not None and not watched:
                self._together(loop, start, extent, lanes, None)
                return
            if watched is not None and self._tried(loop, start, extent, lanes, watched):
                return
        self._in_turn(loop, start, extent, inits, lanes)

    def _tried(self, loop: For, start: Array, extent: Array, lanes: _Lanes, watched: frozenset[str]) -> bool:
        """Run all iterations together and return True; or, where they meet, leave memory as it was."""
        log, mark = _Log(f"#{id(loop)}", watched), len(self._undo)
        self._logs.append(log)
        try:
            self._together(loop, start, extent, lanes, log)
            met = log.meets()
        except InternalError:
            met = True  # what an earlier iteration should have written may have been taken for an index
        self._logs.pop()
        if met:
            for array, where, old in reversed(self._undo[mark:]):
                array[where] = old
            self._one_by_one.add(id(loop))
        if met or not self._logs:
            del self._undo[mark:]
        return not met

    def _watched(self, loop: For) -> frozenset[str] | None:
        """Return buffers in which iterations of `loop` may meet, or None where it is better not to try."""
        if id(loop) not in self._watch:
            bound = {local.name for local in walk.bound_locals(loop)}
            if any(names(b.shape) & bound for b in walk.allocated(loop.body)):
                self._watch[id(loop)] = None  # scratch of several extents
                return None
            if loop.kind is LoopKind.PARALLEL:
                self._watch[id(loop)] = frozenset()
                return frozenset()
            inside = {b.name for b in walk.allocated(loop.body)}
            stored = [s.buffer for s in walk.stores(loop.body) if s.buffer not in inside]
            nested = [s for s in walk.statements(loop.body) if isinstance(s, For)]
            meet = {b for b, n in Counter(stored).items() if n > 1} | (walk.buffers_loaded(loop.body) & set(stored))
            for inner in nested:
                if inner.carries or walk.buffers_loaded(inner.body) & walk.buffers_stored(inner.body):
                    meet |= walk.buffers_stored(inner.body) - inside
            hopeless = meet and nested and loop.kind is LoopKind.SERIAL
            self._watch[id(loop)] = None if hopeless else frozenset(meet)
        return self._watch[id(loop)]

    def _together(self, loop: For, start: Array, extent: Array, lanes: _Lanes, log: _Log | None) -> None:
        """Run the iterations of all lanes as lanes of their own, so many at once as memory allows."""
        counts = np.maximum(extent, 0)
        if len(counts) == 1:
            each = int(counts[0])
            owner = np.repeat(np.arange(lanes.count), each) if lanes.count > 1 else None
            step = np.arange(each) if owner is None else np.tile(np.arange(each), lanes.count)
        else:
            owner = np.repeat(np.arange(lanes.count), counts)
            step = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        total = len(step)
        if loop.down or loop.kind is LoopKind.PARALLEL:
            step = (counts[owner] if len(counts) > 1 and owner is not None else counts) - 1 - step
        at_once = self._at_once(loop, lanes)
        parts = range(0, total, at_once)
        for first in reversed(parts) if loop.kind is LoopKind.PARALLEL and owner is not None else parts:
            part = slice(first, first + at_once)
            env = self._gathered(loop.body, None if owner is None else owner[part], lanes)
            base = start if len(start) == 1 or owner is None else start[owner[part]]
            env[loop.var.name] = base + step[part]
            if log is not None:
                env[log.key] = np.arange(total)[part]
            self.block(loop.body, _Lanes(len(step[part]), env))

    def _at_once(self, loop: For, lanes: _Lanes) -> int:
        """Return how many iterations may run in step, each having scratch of its own."""
        memory = 1
        for stmt in loop.body.stmts:
            if isinstance(stmt, Allocate):
                shape = self._values(id(stmt), stmt.buffer.shape, lanes)
                memory += stmt.buffer.dtype.size_bytes * int(np.prod([max(1, _uniform(n)) for n in shape]))
        return max(1, min(_AT_ONCE, _SCRATCH_BYTES // memory))

    def _in_turn(self, loop: For, start: Array, extent: Array, inits: list[Array], lanes: _Lanes) -> None:
        """Run one iteration after the other, in step with the other lanes."""
        carried = [c.name.name for c in loop.carries]
        after = [c.next for c in loop.carries]
        state = dict(zip(carried, inits, strict=True))
        last = extent - 1
        every = lanes.count if len(extent) > 1 else 1
        env = dict(lanes.env)
        for k in range(int(extent.max(initial=0))):
            at = start + (last - k if loop.down else k)
            active = np.nonzero(extent > k)[0]
            if len(active) == every:
                env.update(state)
                env[loop.var.name] = at
                inner = _Lanes(lanes.count, env)
                self.block(loop.body, inner)
                state = dict(zip(carried, self._values((id(loop), "next"), after, inner), strict=True))
                continue
            chosen = {n: _pick(v, active) for n, v in state.items()}
            inner = self._some(loop, active, lanes)
            inner.env.update(chosen)
            inner.env[loop.var.name] = _pick(at, active)
            self.block(loop.body, inner)
            for n, value in zip(carried, self._values((id(loop), "next"), after, inner), strict=True):
                held = np.array(np.broadcast_to(state[n], (lanes.count, *state[n].shape[1:])))
                held[active] = value
                state[n] = held
        lanes.env.update(state)

    def _some(self, stmt: Stmt, active: Array, lanes: _Lanes) -> _Lanes:
        return _Lanes(len(active), self._gathered(stmt, active, lanes))

    def _gathered(self, stmt: Stmt, owner: Array | None, lanes: _Lanes) -> dict[str, Array]:
        """Return what `stmt` needs of the values of `lanes`, for lanes that belong to `owner`."""
        free = self._free.get(id(stmt))
        if free is None:
            free = self._free[id(stmt)] = frozenset(walk.free_locals(stmt))
        kept = {n: v for n, v in lanes.env.items() if n in free or n.startswith("#")}
        return kept if owner is None else {n: _pick(v, owner) for n, v in kept.items()}

    # Memory.

    def _reach(
        self, name: str, index: Sequence[Array], mask: Sequence[Array], shape: tuple[int, ...], lanes: _Lanes
    ) -> tuple[Array, tuple[Array, ...], Array | None]:
        """Return the array, the indices and which lanes are on (None for all); indices of the others are 0."""
        array = self._arrays[name]
        where = tuple(index) if index else (np.zeros((1,) * (1 + len(shape)), np.int64),)
        if name in self._private:
            owner = lanes.env["#" + name]
            where = (owner.reshape(-1, *(1,) * len(shape)), *where)
        on: Array | None = None
        for m in mask:
            on = m if on is None else on & m
        if on is not None and on.all():
            on = None
        if on is not None:
            where = tuple(np.where(on, i, 0) for i in where)
        for d, (i, n) in enumerate(zip(where, array.shape, strict=True)):
            low, high = (i[0], i[0]) if i.shape == (1,) else (i.min(initial=n), i.max(initial=-1))
            if low < 0 or (high >= n and (on is None or on.any())):
                d -= name in self._private
                raise InternalError(f"index {low} to {high} in dimension {d} of `{name}`, of extent {n}")
        return array, where, on

    def _note(self, name: str, where: tuple[Array, ...], on: Array | None, lanes: _Lanes, *, stored: bool) -> None:
        if on is not None and not on.any():
            return
        for log in self._logs:
            if name in log.buffers:
                lane = lanes.env[log.key]
                cells = np.ravel_multi_index(np.broadcast_arrays(*where), self._arrays[name].shape)
                by = lane.reshape(-1, *(1,) * (cells.ndim - 1))
                cells, by = np.broadcast_arrays(cells, by)
                chosen = slice(None) if on is None else np.broadcast_to(on, cells.shape).reshape(-1)
                kept = log.stored if stored else log.loaded
                kept.setdefault(name, []).append((cells.reshape(-1)[chosen], by.reshape(-1)[chosen]))

    def _load(self, node: Load, args: list[Array], lanes: _Lanes) -> Array:
        rank, shape = len(node.index), _shape(node.axes)
        places = [_spread(a, i.axes, node.axes) for a, i in zip(args, (*node.index, *node.mask), strict=True)]
        array, where, on = self._reach(node.buffer, places[:rank], places[rank:], shape, lanes)
        if self._logs:
            self._note(node.buffer, where, on, lanes, stored=False)
        if on is None:
            value = array[where]
        else:
            other = poison(node.dtype) if node.other is None else evaluate.constant(node.other)
            value = np.where(on, array[where], other) if on.any() else np.full((1, *shape), other)
        value = value if value.shape[1:] == shape else np.broadcast_to(value, (len(value), *shape))
        if self._watcher is not None:
            self._watcher.loaded(node.buffer, self._by, where[: len(node.index)], value, on)
        return value

    def _store(self, stmt: Store, lanes: _Lanes) -> None:
        rank, axes = len(stmt.index), stmt.value.axes
        *args, value = self._values(id(stmt), (*stmt.index, *stmt.mask, stmt.value), lanes)
        places = [_spread(a, i.axes, axes) for a, i in zip(args, (*stmt.index, *stmt.mask), strict=True)]
        array, where, on = self._reach(stmt.buffer, places[:rank], places[rank:], _shape(axes), lanes)
        if on is not None and not on.any():
            return
        if self._logs:
            self._note(stmt.buffer, where, on, lanes, stored=True)
        if self._watcher is not None:
            self._watcher.stored(stmt.buffer, stmt.stage, where[: len(stmt.index)], value, on)
        if on is not None or stmt.atomic is not None or len(value) > 1:
            # Each lane writes, in order: numpy keeps the last value given for a cell.
            shape = np.broadcast_shapes(value.shape, *(i.shape for i in where), on.shape if on is not None else ())
            if stmt.atomic is not None:
                shape = (lanes.count, *shape[1:])
            chosen = slice(None) if on is None else np.broadcast_to(on, shape).reshape(-1)
            where = tuple(np.broadcast_to(i, shape).reshape(-1)[chosen] for i in where)
            value = np.broadcast_to(value, shape).reshape(-1)[chosen]
        if self._logs:
            self._undo.append((array, where, array[where]))
        if stmt.atomic is None:
            array[where] = value
        else:
            _combine(stmt.atomic, stmt.value.dtype, array, where, value)

    # Values.

    def _values(self, key: object, roots: Sequence[Expr], lanes: _Lanes) -> list[Array]:
        """Return the values of `roots`, which belong to `key`, each node computed once."""
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = _plan(roots)
        steps, tops = plan
        values: list[Any] = [None] * len(steps)
        for k, step in enumerate(steps):
            if step.fast is not None:
                values[k] = step.fast(*[values[a] for a in step.args])
            else:
                values[k] = self._node(step.node, [values[a] for a in step.args], lanes)
            for gone in step.done:
                values[gone] = None
        return [values[k] for k in tops]

    def _node(self, node: Expr, args: list[Array], lanes: _Lanes) -> Array:
        match node:
            case Local(name=name):
                return lanes.env[name]
            case Const():
                return evaluate.constant(node).reshape(1)
            case Param(name=name):
                return self._params[name]
            case Size(array=array, dim=dim):
                return self._sizes[array, dim]
            case Load():
                return self._load(node, args, lanes)
            case Ramp(axes=axes):
                return np.arange(axes[0].size)[None]
            case Broadcast(value=value, axes=axes):
                return np.broadcast_to(_spread(args[0], value.axes, axes), (len(args[0]), *_shape(axes)))
            case Reduce():
                return _reduce(node, args)
            case Dot():
                return _dot(node, args)
            case Var() | Read():
                raise InternalError("a Var or Read of an algorithm is in a loop program")
            case _:
                return evaluate.primitive(node, args)


def _plan(roots: Sequence[Expr]) -> _Plan:
    nodes = postorder(roots)
    place = {id(node): k for k, node in enumerate(nodes)}
    tops = [place[id(root)] for root in roots]
    last: dict[int, int] = {}
    for k, node in enumerate(nodes):
        for c in children(node):
            last[place[id(c)]] = k
    done: list[list[int]] = [[] for _ in nodes]
    for used, k in last.items():
        if used not in tops:
            done[k].append(used)
    return [
        _Step(node, tuple(place[id(c)] for c in children(node)), done[k], _fast(node)) for k, node in enumerate(nodes)
    ], tops


def _fast(node: Expr) -> Callable[..., Array] | None:
    """Return what computes `node` with nothing looked up, for what is frequent."""
    match node:
        case Const():
            value = evaluate.constant(node).reshape(1)
            return lambda: value
        case Binary(op=op, left=left) if op in _FAST and (
            op in COMPARES or left.dtype.is_integer or left.dtype.bits > 16
        ):
            return _FAST[op]
        case Binary(op=op, left=left) if op in _FAST_INTEGER and left.dtype.is_integer:
            return _FAST_INTEGER[op]
        case Cast(dtype=dtype):
            return partial(evaluate.convert, dtype=dtype)
        case _:
            return None


def _reduce(node: Reduce, args: list[Array]) -> Array:
    axes, dtype = node.value.axes, node.dtype
    value = np.broadcast_to(args[0], (len(args[0]), *_shape(axes)))
    start = evaluate.constant(identity(node.op, dtype))
    for w, on in zip(node.where, args[1:], strict=True):
        value = np.where(_spread(on, w.axes, axes), value, start)
    value = np.moveaxis(value, 1 + axes.index(node.axis), 0)
    step = Binary(dtype, node.op, Local(dtype, "a"), Local(dtype, "b"))
    total = np.array(value[0])
    for lane in value[1:]:
        total = evaluate.primitive(step, [total, lane])
    return total


def _dot(node: Dot, args: list[Array]) -> Array:
    acc, left, right = args
    letters: dict[Axis, str] = {}
    for a in (*node.left.axes, *node.right.axes):
        letters.setdefault(a, chr(ord("a") + len(letters)))
    words = ["Z" + "".join(letters[a] for a in e.axes) for e in (node.left, node.right, node.acc)]
    lanes = max(len(left), len(right))
    wide = (np.broadcast_to(x.astype(acc.dtype), (lanes, *x.shape[1:])) for x in (left, right))
    return acc + np.einsum(f"{words[0]},{words[1]}->{words[2]}", *wide)


def _combine(op: BinaryOp, dtype: DType, array: Array, where: tuple[Array, ...], value: Array) -> None:
    step = Binary(dtype, op, Local(dtype, "a"), Local(dtype, "b"))
    cells = np.ravel_multi_index(where, array.shape)
    if dtype.bits > 8 and op is BinaryOp.ADD and dtype.bits != 16:
        np.add.at(array, where, value)
    elif len(np.unique(cells)) == len(cells):
        array[where] = evaluate.primitive(step, [array[where], value])
    else:
        for k, new in enumerate(value):
            at = tuple(i[k] for i in where)
            array[at] = evaluate.primitive(step, [array[at].reshape(1), new.reshape(1)])[0]


def _shape(axes: Axes) -> tuple[int, ...]:
    return tuple(a.size for a in axes)


def _spread(value: Array, own: Axes, axes: Axes) -> Array:
    """Return `value` with a dimension of 1 for each of `axes` that it lacks."""
    if own == axes:
        return value
    return value.reshape(len(value), *(a.size if a in own else 1 for a in axes))


def _pick(value: Array, owner: Array) -> Array:
    return value if len(value) == 1 else value[owner]


def _uniform(value: Array) -> int:
    if len(value) > 1 and np.any(value != value[0]):
        raise InternalError("scratch whose extent differs among iterations run in step")
    return int(value[0])
