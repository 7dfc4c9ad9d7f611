"""Typed constructors that fold integer constants and drop integer identities; floats are left as written."""

from __future__ import annotations

from stax import dtypes
from stax.dtypes import DType
from stax.expr.nodes import (
    COMPARES,
    INDEX,
    Axes,
    Binary,
    BinaryOp,
    Broadcast,
    Call,
    Cast,
    Const,
    Expr,
    Fn,
    Local,
    Select,
    Unary,
    UnaryOp,
)  # fmt: skip
from stax.source import Span

Op = BinaryOp


def const(value: float | bool, dtype: DType, axes: Axes = ()) -> Expr:
    """Return a constant of `dtype`, spread along `axes`."""
    made = Const(dtype, value)
    return Broadcast(dtype, made, axes=axes) if axes else made


def index(value: int) -> Const:
    """Return a position."""
    return Const(INDEX, value)


def local(name: str, dtype: DType = INDEX, axes: Axes = ()) -> Local:
    """Return a name bound in a loop program."""
    return Local(dtype, name, axes=axes)


def wrap(value: int, dtype: DType) -> int:
    """Return `value` reduced to the range of the integer type `dtype`.

    >>> wrap(300, dtypes.uint8), wrap(200, dtypes.int8)
    (44, -56)
    """
    low = value & ((1 << dtype.bits) - 1)
    return low - (1 << dtype.bits) if dtype.is_signed and low > dtype.high else low


def integer(expr: Expr) -> int | None:
    """Return the value of an integer or bool constant, spread or not; None for anything else."""
    while isinstance(expr, Broadcast):
        expr = expr.value
    return int(expr.value) if isinstance(expr, Const) and not expr.dtype.is_float else None


def binary(op: BinaryOp, left: Expr, right: Expr, span: Span | None = None) -> Expr:
    """Return `left op right`; the two have one dtype and the same axes."""
    result = dtypes.bool_ if op in COMPARES else left.dtype
    a, b = integer(left), integer(right)
    if a is not None and b is not None:
        return const(_folded(op, a, b, left.dtype), result, left.axes)
    if left.dtype.is_integer:
        if b is not None and _right_identity(op, b, left.dtype):
            return left
        if a is not None and ((op is Op.ADD and a == 0) or (op is Op.MUL and a == 1)):
            return right
        if op is Op.MUL and 0 in (a, b):
            return const(0, result, left.axes)
    elif left.dtype.is_bool:
        known, other = (b, left) if b is not None else (a, right)
        if known is not None and op in (Op.AND, Op.MUL):
            return other if known else const(False, result, left.axes)
        if known is not None and op in (Op.OR, Op.ADD):
            return const(True, result, left.axes) if known else other
    return Binary(result, op, left, right, axes=left.axes, span=span)


def add(left: Expr, right: Expr | int) -> Expr:
    """Return left + right."""
    return binary(Op.ADD, left, _like(right, left))


def sub(left: Expr, right: Expr | int) -> Expr:
    """Return left - right."""
    return binary(Op.SUB, left, _like(right, left))


def mul(left: Expr, right: Expr | int) -> Expr:
    """Return left * right."""
    return binary(Op.MUL, left, _like(right, left))


def floordiv(left: Expr, right: Expr | int) -> Expr:
    """Return left // right."""
    return binary(Op.FLOORDIV, left, _like(right, left))


def mod(left: Expr, right: Expr | int) -> Expr:
    """Return left % right."""
    return binary(Op.MOD, left, _like(right, left))


def minimum(left: Expr, right: Expr | int) -> Expr:
    """Return the smaller of the two."""
    return binary(Op.MIN, left, _like(right, left))


def maximum(left: Expr, right: Expr | int) -> Expr:
    """Return the larger of the two."""
    return binary(Op.MAX, left, _like(right, left))


def less(left: Expr, right: Expr | int) -> Expr:
    """Return left < right."""
    return binary(Op.LT, left, _like(right, left))


def less_equal(left: Expr, right: Expr | int) -> Expr:
    """Return left <= right."""
    return binary(Op.LE, left, _like(right, left))


def both(left: Expr, right: Expr) -> Expr:
    """Return the conjunction of two bools."""
    return binary(Op.AND, left, right)


def negate(cond: Expr) -> Expr:
    """Return the opposite of a bool; comparisons of integers are turned around."""
    turned = {Op.EQ: Op.NE, Op.NE: Op.EQ}
    match cond:
        case Binary(op=BinaryOp.LT, left=left, right=right) if left.dtype.is_integer:
            return binary(Op.LE, right, left)
        case Binary(op=BinaryOp.LE, left=left, right=right) if left.dtype.is_integer:
            return binary(Op.LT, right, left)
        case Binary(op=(BinaryOp.EQ | BinaryOp.NE) as op, left=left, right=right) if left.dtype.is_integer:
            return binary(turned[op], left, right)
        case Unary(op=UnaryOp.NOT, value=value):
            return value
        case _:
            known = integer(cond)
            return const(not known, cond.dtype, cond.axes) if known is not None else unary(UnaryOp.NOT, cond)


def unary(op: UnaryOp, value: Expr, span: Span | None = None) -> Expr:
    """Return `op value`."""
    return Unary(value.dtype, op, value, axes=value.axes, span=span)


def call(fn: Fn, args: tuple[Expr, ...], dtype: DType, span: Span | None = None) -> Expr:
    """Return `fn(*args)`, a value of `dtype`; the arguments have the same axes."""
    return Call(dtype, fn, args, axes=args[0].axes, span=span)


def select(cond: Expr, yes: Expr, no: Expr, span: Span | None = None) -> Expr:
    """Return `yes` where `cond`, else `no`; an arm alone where the condition is constant."""
    known = integer(cond)
    if known is not None:
        return yes if known else no
    return yes if yes is no else Select(yes.dtype, cond, yes, no, axes=yes.axes, span=span)


def cast(value: Expr, dtype: DType, span: Span | None = None) -> Expr:
    """Return `value` as `dtype`."""
    if value.dtype.name == dtype.name:
        return value
    known = integer(value)
    if known is not None and dtype.is_integer:
        return const(wrap(known, dtype), dtype, value.axes)
    if known is not None and dtype.is_bool:
        return const(known != 0, dtype, value.axes)
    return Cast(dtype, value, axes=value.axes, span=span)


def identity(op: BinaryOp, dtype: DType) -> Const:
    """Return the value that `op` leaves alone: what excluded lanes of a reduction hold.

    >>> identity(BinaryOp.MIN, dtypes.uint8).value, identity(BinaryOp.MAX, dtypes.float32).value
    (255, -inf)
    """
    ones = -1 if dtype.is_signed else dtype.high
    match op:
        case BinaryOp.ADD | BinaryOp.OR | BinaryOp.XOR:
            value: float = -0.0 if dtype.is_float else 0
        case BinaryOp.MUL:
            value = 1
        case BinaryOp.AND:
            value = ones
        case BinaryOp.MIN:
            value = float("inf") if dtype.is_float else dtype.high
        case BinaryOp.MAX:
            value = float("-inf") if dtype.is_float else dtype.low
        case _:
            raise ValueError(f"`{op.value}` leaves no value alone")
    return Const(dtype, bool(value) if dtype.is_bool else float(value) if dtype.is_float else int(value))


def spread(value: Expr, axes: Axes) -> Expr:
    """Return `value` with axes `axes`."""
    if value.axes == axes:
        return value
    return Broadcast(value.dtype, value.value if isinstance(value, Broadcast) else value, axes=axes)


def _like(value: Expr | int, other: Expr) -> Expr:
    return const(value, other.dtype, other.axes) if isinstance(value, int) else value


def _right_identity(op: BinaryOp, b: int, dtype: DType) -> bool:
    return (b == 0 and op in (Op.ADD, Op.SUB, Op.OR, Op.XOR, Op.SHL, Op.SHR)) or (
        b == 1 and op in (Op.MUL, Op.FLOORDIV)
    )


def _folded(op: BinaryOp, a: int, b: int, dtype: DType) -> int | bool:
    shift = b if 0 <= b < dtype.bits else dtype.bits
    match op:
        case BinaryOp.ADD:
            value = a + b if not dtype.is_bool else a | b
        case BinaryOp.SUB:
            value = a - b
        case BinaryOp.MUL:
            value = a * b
        case BinaryOp.FLOORDIV | BinaryOp.DIV:
            value = a // b if b else 0
        case BinaryOp.MOD:
            value = a % b if b else 0
        case BinaryOp.MIN:
            value = min(a, b)
        case BinaryOp.MAX:
            value = max(a, b)
        case BinaryOp.AND:
            value = a & b
        case BinaryOp.OR:
            value = a | b
        case BinaryOp.XOR:
            value = a ^ b
        case BinaryOp.SHL:
            value = a << shift
        case BinaryOp.SHR:
            value = a >> shift
        case BinaryOp.LT:
            return a < b
        case BinaryOp.LE:
            return a <= b
        case BinaryOp.EQ:
            return a == b
        case BinaryOp.NE:
            return a != b
    return wrap(value, dtype) if dtype.is_integer else bool(value)
