"""Values as components, each node once however deep or shared.

What depends on memory is kept apart from the rest, and forgotten when memory changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from stax.backends.llvm import arith, calls, memory, reduce, types
from stax.backends.llvm.convert import cast
from stax.backends.llvm.lanes import NO_RUN, Part, exact, is_linear, number, ramp, scalar, vector
from stax.backends.llvm.state import Place, State
from stax.backends.llvm.tiles import Tile
from stax.backends.llvm.writer import Function
from stax.dtypes import DType
from stax.errors import InternalError
from stax.expr import intrinsics
from stax.expr.nodes import (
    COMPARES,
    Axes,
    Binary,
    BinaryOp,
    Bitcast,
    Broadcast,
    Call,
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
    Select,
    Size,
    Unary,
    UnaryOp,
    Var,
)  # fmt: skip
from stax.expr.walk import children


def emit(s: State, root: Expr) -> list[Part]:
    """Return the components of `root`."""
    found = s.value(root)
    if found is not None:
        return found
    when, reads = s.f.module.clock, s.context.reads
    stack = [root]
    while stack:
        node = stack[-1]
        if s.value(node) is not None:
            stack.pop()
            continue
        below = _below(s, node)
        new = [c for c in reversed(below) if s.value(c) is None]
        if new:
            stack += new
            continue
        stack.pop()
        from_: frozenset[str] | None = frozenset((node.buffer,)) if isinstance(node, Load) else None
        for c in below:
            more = reads.get(id(c))
            if more is not None and more is not from_:
                from_ = more if from_ is None or from_ <= more else from_ | more
        s.keep(node, _one(s, node), from_, when)
    result = s.value(root)
    assert result is not None
    return result


def emit_scalar(s: State, root: Expr) -> str:
    """Return the value of `root`, which has no axes."""
    return scalar(s.f, emit(s, root)[0], root.dtype)


def _below(s: State, node: Expr) -> Sequence[Expr]:
    if isinstance(node, Call) and not intrinsics.is_primitive(node):
        made = s.context.expanded.get(id(node))
        if made is None:
            made = s.context.expanded[id(node)] = (node, intrinsics.expand(node))
        return (made[1],)
    near = s.context.beside.get(id(node))
    return children(node) if near is None else (*children(node), near.base)


def _parts(s: State, node: Expr, axes: Axes) -> list[Part]:
    """Return the components of `node`, already known, as those of a value with `axes`."""
    found = s.value(node)
    assert found is not None
    return s.context.layout.spread(found, node.axes, axes)


def _one(s: State, node: Expr) -> list[Part]:
    f, runs = s.f, s.context.layout.widths(node.axes)
    match node:
        case Const(value=value, dtype=dtype):
            return [number(int(value), dtype) if is_linear(dtype) else Part(types.literal(value, dtype))]
        case Local(name=name):
            return s.local(name).parts
        case Param():
            return [Part(s.param(node))]
        case Size():
            return [Part(s.size(node))]
        case Ramp(axes=(axis,)):
            if axis.name in s.context.layout.runs:
                return [Part("0", 1, run.start) for run in runs]
            return [Part("0", 0, k) for k in range(axis.size)]
        case Broadcast(value=value):
            return _parts(s, value, node.axes)
        case Unary(op=op, value=value):
            return [
                _unary(f, op, a, node.dtype, r.width) for a, r in zip(_parts(s, value, node.axes), runs, strict=True)
            ]
        case Binary(op=op, left=left, right=right):
            pairs = zip(_parts(s, left, node.axes), _parts(s, right, node.axes), runs, strict=True)
            return [binary(f, op, a, b, left.dtype, r.width) for a, b, r in pairs]
        case Select(cond=cond, yes=yes, no=no):
            three = zip(*(_parts(s, e, node.axes) for e in (cond, yes, no)), runs, strict=True)
            return [_select(f, c, a, b, node.dtype, r.width) for c, a, b, r in three]
        case Cast(value=value):
            rows = zip(_parts(s, value, node.axes), runs, strict=True)
            return [convert(f, a, value.dtype, node.dtype, r.width) for a, r in rows]
        case Bitcast(value=value):
            rows = zip(_parts(s, value, node.axes), runs, strict=True)
            return [_bitcast(f, a, value.dtype, node.dtype, r.width) for a, r in rows]
        case Call(args=args):
            below = _below(s, node)
            if below != args:
                return _parts(s, below[0], node.axes)
            rows = zip(*(_parts(s, a, node.axes) for a in args), strict=True)
            return [calls.call(f, node, list(row), r.width) for row, r in zip(rows, runs, strict=True)]
        case Load():
            return _load(s, node)
        case Reduce(value=value, where=where):
            wheres = [_parts(s, w, value.axes) for w in where]
            return reduce.reduce(s, node, _parts(s, value, value.axes), wheres)
        case Dot(acc=acc, left=left, right=right, axis=axis):
            order = s.context.layout.union((acc.axes, left.axes, right.axes, (axis,)))
            factors = [_parts(s, e, order) for e in (left, right)]
            return reduce.dot(s, node, _parts(s, acc, node.axes), factors[0], factors[1], order)
        case Var() | Read() | Ramp():
            raise InternalError(f"{type(node).__name__} in a loop program")
        case _:
            assert_never(node)


def _load(s: State, node: Load) -> list[Part]:
    layout = s.context.layout
    place = s.place(node.buffer)
    index = [_parts(s, e, node.axes) for e in node.index]
    tile = s.context.tiles.get(id(node))
    if tile is not None and place.strides[-1] == str(place.dtype.size_bytes):
        return _column(s, node, tile, place, [parts[0] for parts in index])
    near = s.context.beside.get(id(node))
    if near is not None and place.strides[-1] == str(place.dtype.size_bytes):
        rows = zip(*index, _parts(s, near.base, node.axes), layout.widths(node.axes), strict=True)
        return [memory.beside(s, place, list(at), text.text, near.by, run.width) for *at, text, run in rows]
    masks = [_parts(s, e, node.axes) for e in node.mask]
    other = None
    if node.other is not None:
        other = str(int(node.other.value)) if place.dtype.is_bool else types.literal(node.other.value, place.dtype)
    out: list[Part] = []
    for k, run in enumerate(layout.widths(node.axes)):
        m = memory.mask(s, [p[k] for p in masks], run.width)
        out.append(memory.load(s, place, [p[k] for p in index], m, other, run.width))
    return out


def _column(s: State, node: Load, tile: Tile, place: Place, index: list[Part]) -> list[Part]:
    """Return a column of `tile`, all of which is loaded here and kept for its other loads."""
    here = tile.column(node)
    first = [*index[:-1], replace(index[-1], offset=index[-1].offset - here)]
    when, reads = s.f.module.clock, frozenset((node.buffer,))
    columns = memory.tile(s, place, first, len(tile.columns))
    for text, loads in zip(columns, tile.columns, strict=True):
        for one in loads:
            s.keep(one, [Part(text, None)], reads, when)
    return [Part(columns[here], None)]


def _unary(f: Function, op: UnaryOp, a: Part, dtype: DType, lanes: int) -> Part:
    if a.slope == 0:
        return Part(arith.unary(f, op, scalar(f, a, dtype), dtype, 0))
    return Part(arith.unary(f, op, vector(f, a, dtype, lanes), dtype, lanes), None)


def binary(f: Function, op: BinaryOp, a: Part, b: Part, dtype: DType, lanes: int) -> Part:
    """Return one component of `a op b`: a scalar where both are."""
    if is_linear(dtype) and a.slope is not None and b.slope is not None:
        found = _linear(f, op, a, b, dtype)
        if found is None and op in COMPARES and dtype.name == "index" and a.slope != b.slope:
            found = _lanes_left(f, op, a, b, lanes)
        if found is not None:
            return found
    if a.slope == 0 and b.slope == 0:
        return Part(arith.binary(f, op, scalar(f, a, dtype), scalar(f, b, dtype), dtype, 0))
    return Part(arith.binary(f, op, vector(f, a, dtype, lanes), vector(f, b, dtype, lanes), dtype, lanes), None)


def _linear(f: Function, op: BinaryOp, a: Part, b: Part, dtype: DType) -> Part | None:
    """Return sums and multiples of positions, with what is constant in them apart."""
    assert a.slope is not None
    assert b.slope is not None
    sure = exact(dtype)
    match op:
        case BinaryOp.ADD:
            return Part(f.add(a.text, b.text, sure), a.slope + b.slope, a.offset + b.offset)
        case BinaryOp.SUB:
            return Part(f.sub(a.text, b.text, sure), a.slope - b.slope, a.offset - b.offset)
        case BinaryOp.MUL if b.text == "0" and b.slope == 0:
            return Part(f.mul(a.text, str(b.offset), sure), a.slope * b.offset, a.offset * b.offset)
        case BinaryOp.MUL if a.text == "0" and a.slope == 0:
            return Part(f.mul(b.text, str(a.offset), sure), b.slope * a.offset, b.offset * a.offset)
        case _:
            return None


def _lanes_left(f: Function, op: BinaryOp, a: Part, b: Part, lanes: int) -> Part | None:
    """Return a comparison of positions that differ by lane, in few bits: lane numbers against how many are left."""
    assert a.slope is not None
    assert b.slope is not None
    slope = a.slope - b.slope
    one = 1 if op is BinaryOp.LE else 0
    if slope == 1:
        left = f.add(f.sub(b.text, a.text), str(b.offset - a.offset + one))
    else:
        left = f.add(f.sub(a.text, b.text), str(a.offset - b.offset - one))
    match op, slope:
        case ((BinaryOp.LT | BinaryOp.LE), 1):
            word, bound = "slt", f.clamp(left, 0, lanes)
        case ((BinaryOp.LT | BinaryOp.LE), -1):
            word, bound = "sgt", f.clamp(left, -1, lanes - 1)
        case ((BinaryOp.EQ | BinaryOp.NE), (1 | -1)):
            word, bound = op.name.lower(), f.clamp(left, -1, lanes)
        case _:
            return None
    known = types.known(bound)
    if known is not None:
        flags = [{"slt": k < known, "sgt": k > known, "eq": k == known, "ne": k != known}[word] for k in range(lanes)]
        if len(set(flags)) == 1:
            return Part("true" if flags[0] else "false")
        return Part(f"<{', '.join(f'i1 {str(flag).lower()}' for flag in flags)}>", None)
    bits = min(32, max(8, 8 * f.module.target.vector_bytes // lanes))
    element = f"i{bits}"
    kept = f.splat(f.put(f"trunc i64 {bound} to {element}"), element, lanes)
    return Part(f.put(f"icmp {word} <{lanes} x {element}> {types.row(list(range(lanes)), element)}, {kept}"), None)


def _select(f: Function, c: Part, a: Part, b: Part, dtype: DType, lanes: int) -> Part:
    if c.text in ("true", "false"):
        return a if c.text == "true" else b
    if c.slope == 0 and a.slope == 0 and b.slope == 0:
        return Part(arith.select(f, c.text, scalar(f, a, dtype), scalar(f, b, dtype), dtype, 0, by_lane=False))
    yes, no = vector(f, a, dtype, lanes), vector(f, b, dtype, lanes)
    return Part(arith.select(f, c.text, yes, no, dtype, lanes, by_lane=c.slope is None), None)


def convert(f: Function, a: Part, source: DType, dtype: DType, lanes: int) -> Part:
    """Return one component of a Cast; positions stay scalar where they can."""
    if a.slope is None:
        return Part(cast(f, a.text, source, dtype, lanes), None)
    if is_linear(source) and is_linear(dtype):
        return a if dtype.name == "int64" else Part(scalar(f, a, source), a.slope)
    if a.slope == 0:
        return Part(cast(f, scalar(f, a, source), source, dtype, 0))
    if dtype.is_integer:
        first = cast(f, scalar(f, a, source), source, dtype, 0)
        return Part(ramp(f, first, a.slope, dtype, lanes), None)
    return Part(cast(f, vector(f, a, source, lanes), source, dtype, lanes), None)


def _bitcast(f: Function, a: Part, source: DType, dtype: DType, lanes: int) -> Part:
    if a.slope == 0:
        lanes = 0
    from_, to = types.value(source, lanes), types.value(dtype, lanes)
    text = vector(f, a, source, lanes)
    made = text if from_ == to else f.put(f"bitcast {from_} {text} to {to}")
    return Part(made, a.slope if a.slope == 0 else None)


def concrete(s: State, parts: list[Part], dtype: DType, axes: Axes) -> list[Part]:
    """Return `parts` as plain scalars where there is no lane axis, and plain vectors where there is."""
    out: list[Part] = []
    for part, run in zip(parts, s.context.layout.widths(axes), strict=True):
        text = vector(s.f, part, dtype, run.width)
        out.append(Part(text, 0 if run is NO_RUN or not run.width else None))
    return out
