"""The meaning of every value node, in NumPy, to the bit.

What NumPy leaves open or does otherwise is fixed here (LANGUAGE 1.4, 1.5, 1.8), in words that a printer can follow:

- Integers wrap. `//` and `%` floor, and give 0 where the divisor is 0. A shift count below 0 or of the width or more
  shifts everything out: 0, or the sign for `>>` of a signed integer.
- `min` and `max` carry NaN, and order -0 below +0.
- `a % b` of floats is `m = fmod(a, b)` (exact), then `m + b` where `m != 0` and `(m < 0) != (b < 0)`, and a zero of b's
  sign where `m == 0`. `a // b` is `a / b` where `b == 0`; else `q = (a - m) / b` of that first m, less 1 where m was
  moved, then `f = floor(q)`, plus 1 where `q - f > 0.5`; where `q == 0`, a zero of the sign of `a / b`. As in NumPy.
- A float becomes an integer by truncation, saturating, NaN giving 0. An integer becomes a half through float32.
- Arithmetic of float16 and bfloat16 is done in float32 and rounded once, a whole `//`, `%` or fma being one operation.
  Values of bfloat16 are float32 arrays here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, TypeAlias, assert_never

import numpy as np

from stax.dtypes import DType
from stax.errors import InternalError
from stax.expr import bfloat16, intrinsics
from stax.expr.fma import fma
from stax.expr.nodes import (
    COMPARES,
    Binary,
    BinaryOp,
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    Fn,
    Local,
    Param,
    Select,
    Size,
    Unary,
    UnaryOp,
)  # fmt: skip
from stax.expr.walk import children, postorder

Array: TypeAlias = np.ndarray[Any, Any]
Pure: TypeAlias = Unary | Binary | Select | Cast | Bitcast | Call


def evaluate_sizes(
    exprs: Iterable[Expr], sizes: Mapping[tuple[str, int], int], scalars: Mapping[str, Any],
    at: Mapping[str, int] = MappingProxyType({}),
) -> list[int]:  # fmt: skip
    """Return what `exprs` are where Sizes, Params and Locals have these values; KeyError where they use anything else.

    >>> from stax.expr import build, nodes
    >>> evaluate_sizes([build.add(Size(nodes.INDEX, "a", 0), 1)], {("a", 0): 7}, {})
    [8]
    """

    def leaf(node: Expr) -> Array:
        match node:
            case Size(array=array, dim=dim):
                return np.asarray(sizes[array, dim], np.int64)
            case Param(name=name):
                return np.asarray(scalars[name]).astype(node.dtype.dtype)
            case Local(name=name):
                return np.asarray(at[name], np.int64)
            case _:
                raise KeyError(f"{type(node).__name__} is no size")

    return [int(value.reshape(-1)[0]) for value in map(np.asarray, evaluate(exprs, leaf))]


def evaluate(roots: Iterable[Expr], leaf: Callable[[Expr], Array]) -> tuple[Array, ...]:
    """Return the values of `roots`, each node computed once, elementwise over what `leaf` gives.

    `leaf` is asked for every node that is not a pure function of values, a Read or a Load included, and never about
    what is below it; constants it is not asked for.

    >>> from stax import dtypes
    >>> from stax.expr import build
    >>> x = Local(dtypes.uint8, "x")
    >>> evaluate([build.add(x, 250)], lambda _: np.arange(4, 8, dtype=np.uint8))[0].tolist()
    [254, 255, 0, 1]
    """
    kept = tuple(roots)
    values: dict[int, Array] = {}
    with np.errstate(all="ignore"):
        for root in kept:
            stack = [root]
            while stack:
                node = stack[-1]
                if id(node) in values:
                    stack.pop()
                    continue
                below = children(node) if isinstance(node, Pure) else ()
                new = [child for child in reversed(below) if id(child) not in values]
                if new:
                    stack += new
                    continue
                stack.pop()
                if isinstance(node, Pure):
                    values[id(node)] = np.asarray(_value(node, [values[id(child)] for child in below]))
                else:
                    values[id(node)] = constant(node) if isinstance(node, Const) else leaf(node)
    return tuple(values[id(root)] for root in kept)


def primitive(node: Expr, args: list[Array]) -> Array:
    """Return the value of `node`, a pure function of the values `args` of its children.

    The arrays have the children's dtypes, and shapes that spread over each other. Calls that are no primitives are
    spelled out by `intrinsics.expand`.
    """
    if not isinstance(node, Pure):
        raise InternalError(f"{type(node).__name__} is no function of values")
    with np.errstate(all="ignore"):
        return np.asarray(_value(node, args))


def constant(node: Const) -> Array:
    """Return the value of a constant, of rank 0; an integer out of range wraps."""
    if node.dtype.is_integer:
        wrapped = int(node.value) & ((1 << node.dtype.bits) - 1)
        return np.array(wrapped, f"u{node.dtype.size_bytes}").view(node.dtype.dtype)
    with np.errstate(all="ignore"):
        return (
            convert(np.array(float(node.value)), node.dtype)
            if node.dtype.is_half
            else np.array(node.value).astype(node.dtype.dtype)
        )


def _value(node: Pure, args: list[Array]) -> Array:
    match node:
        case Unary(op=op):
            return _unary(op, args[0])
        case Binary(op=op):
            return _binary(op, args[0], args[1], node.left.dtype)
        case Select():
            return np.where(args[0], args[1], args[2])
        case Cast(dtype=dtype):
            return convert(args[0], dtype)
        case Bitcast(dtype=dtype, value=value):
            bits = np.ascontiguousarray(args[0] if value.dtype.name != "bfloat16" else bfloat16.bits_of(args[0]))
            found = bfloat16.values_of(bits) if dtype.name == "bfloat16" else bits.view(dtype.dtype)
            return found.reshape(np.shape(args[0]))
        case Call():
            return _call(node, args)
        case _:
            assert_never(node)


def _unary(op: UnaryOp, a: Array) -> Array:
    if a.dtype == np.bool_:
        return np.logical_not(a) if op is UnaryOp.NOT else a
    match op:
        case UnaryOp.NEG:
            return np.negative(a)
        case UnaryOp.NOT:
            return np.invert(a)
        case UnaryOp.ABS:
            return np.abs(a)
        case _:
            assert_never(op)


def _binary(op: BinaryOp, a: Array, b: Array, dtype: DType) -> Array:
    if op in COMPARES:
        return _compare(op, a, b)
    if dtype.is_bool:
        return _logic(op, a, b)
    if dtype.is_float:
        if dtype.bits > 16 or op in (BinaryOp.MIN, BinaryOp.MAX):
            return _float(op, a, b)
        return convert(_float(op, a.astype(np.float32), b.astype(np.float32)), dtype)
    return _integer(op, a, b)


def _compare(op: BinaryOp, a: Array, b: Array) -> Array:
    if op is BinaryOp.LT:
        return np.less(a, b)
    if op is BinaryOp.LE:
        return np.less_equal(a, b)
    return np.equal(a, b) if op is BinaryOp.EQ else np.not_equal(a, b)


def _logic(op: BinaryOp, a: Array, b: Array) -> Array:
    match op:
        case BinaryOp.ADD | BinaryOp.OR | BinaryOp.MAX:
            return a | b
        case BinaryOp.MUL | BinaryOp.AND | BinaryOp.MIN | BinaryOp.FLOORDIV:
            return a & b
        case BinaryOp.XOR | BinaryOp.SUB:
            return a ^ b
        case BinaryOp.SHL | BinaryOp.SHR:
            return a & ~b
        case BinaryOp.MOD:
            return np.zeros_like(a & b)
        case _:
            raise InternalError(f"{op.value} of bool")


def _integer(op: BinaryOp, a: Array, b: Array) -> Array:
    match op:
        case BinaryOp.ADD:
            return np.add(a, b)
        case BinaryOp.SUB:
            return np.subtract(a, b)
        case BinaryOp.MUL:
            return np.multiply(a, b)
        case BinaryOp.FLOORDIV:
            return np.floor_divide(a, b)
        case BinaryOp.MOD:
            return np.remainder(a, b)
        case BinaryOp.MIN:
            return np.minimum(a, b)
        case BinaryOp.MAX:
            return np.maximum(a, b)
        case BinaryOp.AND:
            return np.bitwise_and(a, b)
        case BinaryOp.OR:
            return np.bitwise_or(a, b)
        case BinaryOp.XOR:
            return np.bitwise_xor(a, b)
        case BinaryOp.SHL:
            return np.left_shift(a, b)
        case BinaryOp.SHR:
            return np.right_shift(a, b)
        case _:
            raise InternalError(f"{op.value} of integers")


def _float(op: BinaryOp, a: Array, b: Array) -> Array:
    match op:
        case BinaryOp.ADD:
            return np.add(a, b)
        case BinaryOp.SUB:
            return np.subtract(a, b)
        case BinaryOp.MUL:
            return np.multiply(a, b)
        case BinaryOp.DIV:
            return np.divide(a, b)
        case BinaryOp.FLOORDIV:
            return _floor_divide(a, b)
        case BinaryOp.MOD:
            return _modulo(a, b)
        case BinaryOp.MIN:
            return _signed_zeros(np.minimum(a, b), a, b, np.bitwise_or)
        case BinaryOp.MAX:
            return _signed_zeros(np.maximum(a, b), a, b, np.bitwise_and)
        case _:
            raise InternalError(f"{op.value} of floats")


def _signed_zeros(result: Array, a: Array, b: Array, join: Callable[[Array, Array], Array]) -> Array:
    zeros = (a == 0) & (b == 0)
    if not np.any(zeros):
        return result
    bits = f"u{a.dtype.itemsize}"
    joined = join(np.asarray(a).view(bits), np.asarray(b).view(bits))
    return np.where(zeros, np.asarray(joined).view(a.dtype), result)


def _modulo(a: Array, b: Array) -> Array:
    rest = np.fmod(a, b)
    moved = np.where((rest < 0) != (b < 0), rest + b, rest)
    result = np.where(rest != 0, moved, np.copysign(a.dtype.type(0), b))
    return np.where(b == 0, rest, result)


def _floor_divide(a: Array, b: Array) -> Array:
    one = a.dtype.type(1)
    rest = np.fmod(a, b)
    quotient = (a - rest) / b
    quotient = np.where((rest != 0) & ((rest < 0) != (b < 0)), quotient - one, quotient)
    whole = np.floor(quotient)
    whole = np.where(quotient - whole > a.dtype.type(0.5), whole + one, whole)
    plain = a / b
    return np.where(b == 0, plain, np.where(quotient == 0, np.copysign(a.dtype.type(0), plain), whole))


def convert(a: Array, dtype: DType) -> Array:
    """Return `a` as `dtype`, by the rules of Cast."""
    if dtype.name == "bfloat16":
        return bfloat16.rounded(a)
    target = dtype.dtype
    if a.dtype == target:
        return a
    if dtype.is_bool:
        return np.not_equal(a, a.dtype.type(0))
    if a.dtype.kind == "f" and dtype.is_integer:
        return _saturated(a.astype(np.float64), dtype)
    if a.dtype.kind != "f" and target == np.float16:
        return a.astype(np.float32).astype(np.float16)
    return a.astype(target)


def _saturated(a: Array, dtype: DType) -> Array:
    low, end = float(dtype.low), float(dtype.high + 1)  # both are powers of two, so exact
    inside = (a > low - 1) & (a < end) if dtype.bits < 64 else (a >= low) & (a < end)
    whole = np.where(inside, a, 0.0).astype(dtype.dtype)
    whole = np.where(a >= end, dtype(dtype.high), whole)
    return np.where((a <= low) & ~inside, dtype(dtype.low), whole)


def _call(node: Call, args: list[Array]) -> Array:
    if not intrinsics.is_primitive(node):
        names, body = _spelled(node.fn, node.dtype, tuple(arg.dtype for arg in node.args))
        values = dict(zip(map(id, names), args, strict=True))
        for step in body:
            if id(step) not in values:
                step_args = [values[id(child)] for child in children(step)]
                values[id(step)] = constant(step) if isinstance(step, Const) else primitive(step, step_args)
        return values[id(body[-1])]
    if node.dtype.is_half and node.fn in (Fn.SQRT, Fn.FMA):
        wide = [arg.astype(np.float32) for arg in args]
        return convert(np.sqrt(wide[0]) if node.fn is Fn.SQRT else fma(*wide), node.dtype)
    match node.fn:
        case Fn.FMA:
            return fma(*args)
        case Fn.SQRT:
            return np.sqrt(args[0])
        case Fn.FLOOR:
            return np.floor(args[0])
        case Fn.CEIL:
            return np.ceil(args[0])
        case Fn.TRUNC:
            return np.trunc(args[0])
        case Fn.RINT:
            return np.rint(args[0])
        case Fn.ISNAN:
            return np.not_equal(args[0], args[0])
        case Fn.COPYSIGN:
            return np.copysign(args[0], args[1])
        case Fn.POPCOUNT:
            return np.bitwise_count(_unsigned(args[0])).astype(node.dtype.dtype)
        case Fn.CLZ:
            return _leading_zeros(_unsigned(args[0])).astype(node.dtype.dtype)
        case Fn.SATURATING_CAST:
            return _saturating_cast(args[0], node.args[0].dtype, node.dtype)
        case Fn.SATURATING_ADD:
            return _saturating_add(args[0], args[1], node.dtype)
        case Fn.SATURATING_SUB:
            return _saturating_sub(args[0], args[1], node.dtype)
        case Fn.ABSD:
            return _absolute_difference(args[0], args[1], node.dtype)
        case Fn.WIDENING_MUL:
            return convert(args[0], node.dtype) * convert(args[1], node.dtype)
        case Fn.ROUNDING_AVERAGE:
            return (args[0] | args[1]) - ((args[0] ^ args[1]) >> args[0].dtype.type(1))
        case Fn.MUL_HIGH:
            return _mul_high(args[0], args[1], node.dtype)
        case _:
            raise InternalError(f"{node.fn.value} of {node.dtype} is no primitive")


def _unsigned(a: Array) -> Array:
    return np.asarray(a).view(f"u{a.dtype.itemsize}")


def _leading_zeros(a: Array) -> Array:
    bits = 8 * a.dtype.itemsize
    a = np.array(a)
    step = 1
    while step < bits:  # fill every bit below the highest one
        a |= a >> a.dtype.type(step)
        step *= 2
    return bits - np.bitwise_count(a).astype(np.int64)


def _saturating_cast(a: Array, source: DType, dtype: DType) -> Array:
    if not (source.is_integer and dtype.is_integer):
        return convert(a, dtype)
    low, high = max(source.low, dtype.low), min(source.high, dtype.high)
    return np.clip(a, source(low), source(high)).astype(dtype.dtype)


def _saturating_add(a: Array, b: Array, dtype: DType) -> Array:
    total = np.add(a, b)
    if not dtype.is_signed:
        return np.where(total < a, dtype(dtype.high), total)
    over = np.less((a ^ total) & (b ^ total), 0)
    return np.where(over, _edge(a, dtype), total)


def _saturating_sub(a: Array, b: Array, dtype: DType) -> Array:
    total = np.subtract(a, b)
    if not dtype.is_signed:
        return np.where(a < b, dtype(0), total)
    over = np.less((a ^ b) & (a ^ total), 0)
    return np.where(over, _edge(a, dtype), total)


def _edge(a: Array, dtype: DType) -> Array:
    return np.where(np.less(a, 0), np.array(dtype.low, dtype.dtype), np.array(dtype.high, dtype.dtype))


def _absolute_difference(a: Array, b: Array, dtype: DType) -> Array:
    if dtype.is_float:
        wide = np.float32 if dtype.bits == 16 else dtype.dtype
        return convert(np.abs(a.astype(wide) - b.astype(wide)), dtype)
    return np.asarray(np.maximum(a, b) - np.minimum(a, b)).view(f"u{a.dtype.itemsize}").astype(dtype.dtype)


def _mul_high(a: Array, b: Array, dtype: DType) -> Array:
    if dtype.bits < 64:
        wide = np.int64 if dtype.is_signed else np.uint64
        return ((a.astype(wide) * b.astype(wide)) >> wide(dtype.bits)).astype(dtype.dtype)
    x, y = np.asarray(a).view(np.uint64), np.asarray(b).view(np.uint64)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    cross = (x & low) * (y >> half) + (((x & low) * (y & low)) >> half)
    other = (x >> half) * (y & low) + (cross & low)
    top = (x >> half) * (y >> half) + (cross >> half) + (other >> half)
    if dtype.is_signed:
        top = top - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return np.asarray(top).view(dtype.dtype)


@cache
def _spelled(fn: Fn, dtype: DType, args: tuple[DType, ...]) -> tuple[tuple[Local, ...], list[Expr]]:
    names = tuple(Local(arg, f"x{k}") for k, arg in enumerate(args))
    body = postorder([intrinsics.expand(Call(dtype, fn, names))])
    return names, body
