"""Reductions along an axis, in whatever order is cheapest: the only place where floats are reassociated."""

from __future__ import annotations

from stax import dtypes
from stax.backends.llvm import arith, memory, types
from stax.backends.llvm.convert import cast
from stax.backends.llvm.lanes import Part, Point, Run, vector
from stax.backends.llvm.state import State
from stax.dtypes import DType
from stax.errors import InternalError
from stax.expr.nodes import Axes, BinaryOp, Dot, Reduce

_WORDS = {
    BinaryOp.ADD: "add", BinaryOp.MUL: "mul", BinaryOp.AND: "and", BinaryOp.OR: "or", BinaryOp.XOR: "xor",
    BinaryOp.MIN: "min", BinaryOp.MAX: "max",
}  # fmt: skip
_BOOL = {BinaryOp.ADD: "or", BinaryOp.MAX: "or", BinaryOp.MUL: "and", BinaryOp.MIN: "and"}


def identity(op: BinaryOp, dtype: DType) -> float | bool:
    """Return what changes nothing when combined by `op`."""
    low, high = (float("-inf"), float("inf")) if dtype.is_float else (dtype.low, dtype.high)
    match op:
        case BinaryOp.ADD | BinaryOp.OR | BinaryOp.XOR:
            return -0.0 if dtype.is_float else 0
        case BinaryOp.MUL:
            return 1
        case BinaryOp.AND:
            return dtype.high if not dtype.is_signed else -1
        case BinaryOp.MIN:
            return high
        case BinaryOp.MAX:
            return low
        case _:
            raise InternalError(f"a reduction by {op.value}")


def reduce(s: State, node: Reduce, value: list[Part], wheres: list[list[Part]]) -> list[Part]:
    """Return the components of a Reduce, from those of its value and of its predicates, along the value's axes."""
    layout, axes, dtype = s.context.layout, node.value.axes, node.value.dtype
    at = axes.index(node.axis)
    is_lane = layout.lane(axes) == node.axis
    totals: dict[tuple[Point, int], tuple[str, Run]] = {}
    for k, (point, run) in enumerate(zip(layout.points(axes), layout.widths(axes), strict=True)):
        text = vector(s.f, value[k], dtype, run.width)
        m = memory.mask(s, [w[k] for w in wheres], run.width)
        if m.whole is not None or m.lanes is not None:
            by_lane = m.lanes is not None
            on = memory.joined(s, m, run.width) if by_lane else m.whole
            nothing = types.constant(identity(node.op, dtype), dtype, run.width)
            text = arith.select(s.f, on or "", text, nothing, dtype, run.width, by_lane=by_lane)
        key = (point[:at] + point[at + 1 :], run.width if is_lane else 0)
        old = totals.get(key)
        if old is not None:
            text = arith.binary(s.f, node.op, old[0], text, dtype, run.width)
        totals[key] = (text, run)
    if not is_lane:
        return [Part(text, None if run.width else 0) for text, run in totals.values()]
    out: dict[Point, str] = {}
    for (point, _), (text, run) in totals.items():
        one = across(s, node.op, text, dtype, run.width)
        out[point] = one if point not in out else arith.binary(s.f, node.op, out[point], one, dtype, 0)
    return [Part(out[point]) for point in layout.points(node.axes)]


def across(s: State, op: BinaryOp, text: str, dtype: DType, lanes: int) -> str:
    """Return the lanes of one vector combined."""
    f, kind, element = s.f, types.value(dtype, lanes), types.element(dtype)
    if lanes == 1:
        return f.put(f"extractelement {kind} {text}, i64 0")
    if dtype.is_float and dtype.bits == 16:
        wide = across(s, op, cast(f, text, dtype, dtypes.float32, lanes), dtypes.float32, lanes)
        return cast(f, wide, dtypes.float32, dtype, 0)
    word = _WORDS[op]
    name = types.mangled(element, lanes)
    if dtype.is_bool:
        return f.intrinsic(f"vector.reduce.{_BOOL.get(op, word)}.{name}", "i1", [(kind, text)])
    if dtype.is_float and op in (BinaryOp.ADD, BinaryOp.MUL):
        start = types.literal(identity(op, dtype), dtype)
        call = f"@llvm.vector.reduce.f{word}.{name}"
        f.module.declare(f"{element} {call}({element}, {kind})")
        return f.put(f"call reassoc {element} {call}({element} {start}, {kind} {text})")
    if op in (BinaryOp.MIN, BinaryOp.MAX):
        word = f"f{word}imum" if dtype.is_float else f"{'s' if dtype.is_signed else 'u'}{word}"
    return f.intrinsic(f"vector.reduce.{word}.{name}", element, [(kind, text)])


def dot(s: State, node: Dot, acc: list[Part], left: list[Part], right: list[Part], order: Axes) -> list[Part]:
    """Return the components of a Dot; `left` and `right` are spread along `order`, the axes of all three."""
    layout, dtype, axes = s.context.layout, node.dtype, node.axes
    at, is_lane = order.index(node.axis), layout.lane(order) == node.axis
    mine = {p: k for k, p in enumerate(layout.points(axes))}
    places = [order.index(a) for a in axes]
    totals: dict[tuple[int, int], str] = {}
    if not is_lane:
        totals = {
            (k, 0): vector(s.f, a, dtype, run.width)
            for k, (a, run) in enumerate(zip(acc, layout.widths(axes), strict=True))
        }
    points = zip(layout.points(order), layout.widths(order), strict=True)
    for k, (point, run) in sorted(enumerate(points), key=lambda row: (row[1][0][at], row[0])):
        a = _factor(s, left[k], node.left.dtype, dtype, run.width)
        b = _factor(s, right[k], node.right.dtype, dtype, run.width)
        key = (mine[tuple(point[p] for p in places)], run.width if is_lane else 0)
        totals[key] = _fused(s, a, b, totals.get(key), dtype, run.width)
    if not is_lane:
        runs = layout.widths(axes)
        return [Part(text, None if runs[k].width else 0) for (k, _), text in totals.items()]
    out = [vector(s.f, a, dtype, 0) for a in acc]
    for (k, width), text in totals.items():
        out[k] = arith.binary(s.f, BinaryOp.ADD, out[k], across(s, BinaryOp.ADD, text, dtype, width), dtype, 0)
    return [Part(text) for text in out]


def _factor(s: State, part: Part, source: DType, dtype: DType, lanes: int) -> str:
    if part.slope == 0:  # what lanes share is converted once
        text = cast(s.f, vector(s.f, part, source, 0), source, dtype, 0)
        return s.f.splat(text, types.element(dtype), lanes)
    return cast(s.f, vector(s.f, part, source, lanes), source, dtype, lanes)


def _fused(s: State, a: str, b: str, total: str | None, dtype: DType, lanes: int) -> str:
    if total is None:
        return arith.binary(s.f, BinaryOp.MUL, a, b, dtype, lanes)
    if dtype.is_float and dtype.bits > 16 and (s.f.module.target.has("fma") or not s.f.module.target.is_x86):
        return s.f.over("fma", types.element(dtype), lanes, a, b, total)
    product = arith.binary(s.f, BinaryOp.MUL, a, b, dtype, lanes)
    return arith.binary(s.f, BinaryOp.ADD, total, product, dtype, lanes)
