"""How large and small a value can be, from its type and the operations that made it; numbers only."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from stax.dtypes import DType
from stax.expr.nodes import (
    Binary,
    BinaryOp,
    Broadcast,
    Call,
    Cast,
    Const,
    Expr,
    Fn,
    Ramp,
    Read,
    Select,
    Size,
    Unary,
    UnaryOp,
)  # fmt: skip
from stax.expr.walk import children, postorder

ValueRange: TypeAlias = tuple[float, float]


def of_dtype(dtype: DType) -> ValueRange:
    """Return the range of a type; 64-bit integers count as unbounded."""
    if dtype.is_float or (dtype.bits == 64 and not dtype.is_bool):
        return (0 if not dtype.is_float and not dtype.is_signed else -math.inf, math.inf)
    return (dtype.low, dtype.high)


def value_ranges(roots: tuple[Expr, ...], of_read: Callable[[Read], ValueRange]) -> tuple[ValueRange, ...]:
    """Return the range of each of `roots`; NaN counts as no number, and becomes 0 in a conversion to integer.

    >>> from stax import dtypes
    >>> byte = Read(dtypes.uint8, "a", ())
    >>> value_ranges((Binary(dtypes.uint8, BinaryOp.SHR, byte, Const(dtypes.uint8, 4)),), lambda r: of_dtype(r.dtype))
    ((0, 15),)
    """
    known: dict[int, ValueRange] = {}
    for node in postorder(roots):
        below = [known[id(c)] for c in children(node)] if not isinstance(node, Read) else []
        known[id(node)] = _fitted(_one(node, below, of_read), node.dtype)
    return tuple(known[id(root)] for root in roots)


def _fitted(found: ValueRange | None, dtype: DType) -> ValueRange:
    whole = of_dtype(dtype)
    if found is None or math.isnan(found[0]) or math.isnan(found[1]):
        return whole
    if not dtype.is_float and (found[0] < whole[0] or found[1] > whole[1]):
        return whole
    return found


def _one(node: Expr, below: list[ValueRange], of_read: Callable[[Read], ValueRange]) -> ValueRange | None:
    match node:
        case Const(value=value):
            return (value, value)
        case Read():
            return of_read(node)
        case Size():
            return (0, math.inf)
        case Ramp(axes=(axis,)):
            return (0, axis.size - 1)
        case Broadcast():
            return below[0]
        case Cast(value=value):
            return _converted(below[0], value.dtype, node.dtype)
        case Select():
            return _hull(below[1], below[2])
        case Unary(op=UnaryOp.NEG):
            return (-below[0][1], -below[0][0])
        case Unary(op=UnaryOp.ABS):
            lo, hi = below[0]
            return (0 if lo <= 0 <= hi else min(abs(lo), abs(hi)), max(abs(lo), abs(hi)))
        case Binary(op=op):
            return _combined(op, below[0], below[1], node.dtype)
        case Call(fn=Fn.SATURATING_CAST):
            lo, hi = of_dtype(node.dtype)
            return (min(max(below[0][0], lo), hi), min(max(below[0][1], lo), hi))
        case Call(fn=Fn.FLOOR | Fn.CEIL | Fn.RINT | Fn.TRUNC):
            return (math.floor(below[0][0]), math.ceil(below[0][1])) if _finite(below[0]) else below[0]
        case Call(fn=Fn.POPCOUNT | Fn.CLZ, args=args):
            return (0, args[0].dtype.bits)
        case Call(fn=Fn.SIN | Fn.COS | Fn.TANH | Fn.ERF):
            return (-1.0, 1.0)
        case Call(fn=Fn.SIGMOID):
            return (0.0, 1.0)
        case _:
            return None


def _finite(found: ValueRange) -> bool:
    return not (math.isinf(found[0]) or math.isinf(found[1]))


def _hull(a: ValueRange, b: ValueRange) -> ValueRange:
    return (min(a[0], b[0]), max(a[1], b[1]))


def _converted(found: ValueRange, source: DType, dtype: DType) -> ValueRange | None:
    if dtype.is_bool:
        return (0, 1)
    if source.is_float and not dtype.is_float:
        lo, hi = of_dtype(dtype)
        ends = [e if math.isinf(e) else math.trunc(e) for e in found]
        return _hull((min(max(ends[0], lo), hi), min(max(ends[1], lo), hi)), (0, 0))
    if dtype.is_float and dtype.bits < 64 and _finite(found):
        slack = _slack(dtype)
        return (found[0] - abs(found[0]) * slack, found[1] + abs(found[1]) * slack)
    return found


def _slack(dtype: DType) -> float:
    """Return by how much of its size rounding may move a float."""
    return 2.0 ** (-7 if dtype.name == "bfloat16" else -10 if dtype.is_half else -23)


def _combined(op: BinaryOp, a: ValueRange, b: ValueRange, dtype: DType) -> ValueRange | None:
    if dtype.is_bool:
        return (0, 1)
    slack = _slack(dtype) if dtype.is_float else 0.0
    match op:
        case BinaryOp.MIN:
            return (min(a[0], b[0]), min(a[1], b[1]))
        case BinaryOp.MAX:
            return (max(a[0], b[0]), max(a[1], b[1]))
        case BinaryOp.ADD:
            return _widened((a[0] + b[0], a[1] + b[1]), slack)
        case BinaryOp.SUB:
            return _widened((a[0] - b[1], a[1] - b[0]), slack)
        case BinaryOp.MUL:
            if not (_finite(a) and _finite(b)):
                return None
            ends = [x * y for x in a for y in b]
            return _widened((min(ends), max(ends)), slack)
        case BinaryOp.FLOORDIV if not dtype.is_float and b[0] == b[1] and b[0] > 0:
            return (_floordiv(a[0], b[0]), _floordiv(a[1], b[0]))
        case BinaryOp.MOD if not dtype.is_float and b[0] > 0 and not math.isinf(b[1]):
            return a if a[0] >= 0 and a[1] < b[0] else (0, b[1] - 1)
        case BinaryOp.AND if b[0] >= 0 and not dtype.is_float:
            return (0, min(b[1], a[1]) if a[0] >= 0 else b[1])
        case BinaryOp.AND if a[0] >= 0 and not dtype.is_float:
            return (0, a[1])
        case BinaryOp.OR | BinaryOp.XOR if a[0] >= 0 and b[0] >= 0 and not (math.isinf(a[1]) or math.isinf(b[1])):
            return (0, (1 << max(int(a[1]), int(b[1])).bit_length()) - 1)
        case BinaryOp.SHR if a[0] >= 0 and b[0] == b[1] and 0 <= b[0] < 64 and not math.isinf(a[1]):
            return (int(a[0]) >> int(b[0]), int(a[1]) >> int(b[0]))
        case _:
            return None


def _widened(found: ValueRange, slack: float) -> ValueRange:
    if not slack:
        return found
    return (found[0] - abs(found[0]) * slack, found[1] + abs(found[1]) * slack)


def _floordiv(a: float, b: float) -> float:
    return a if math.isinf(a) else a // b
