"""Primitive functions as Triton expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stax import dtypes
from stax.backends.triton.value import ATOM, TIGHT, Value, atom, inside
from stax.errors import InternalError
from stax.expr.nodes import BinaryOp, Call, Expr, Fn

if TYPE_CHECKING:
    from stax.backends.triton.expr import Expressions

_SUB, _MUL = TIGHT[BinaryOp.SUB], TIGHT[BinaryOp.MUL]


def call(to: Expressions, node: Call, args: list[Value]) -> Value:
    """Return a primitive call of `args`, each with a type of its own."""
    fn, dtype = node.fn, node.dtype
    pairs: list[tuple[Expr, Value]] = list(zip(node.args, args, strict=True))
    a, source = args[0], node.args[0].dtype
    if source.is_float and source.bits == 16 and fn not in (Fn.ISNAN, Fn.SATURATING_CAST):
        pairs = [(n, to.to(n, v, dtypes.float32)) for n, v in pairs]
        found = _call(to, node, pairs)
        return to.to(node, found, dtype) if dtype.is_float and dtype.bits == 16 else found
    if fn is Fn.SATURATING_CAST:
        if not (source.is_integer and dtype.is_integer):
            return to.cast(node.args[0], a, dtype)
        limits = f"{max(source.low, dtype.low)}, {min(source.high, dtype.high)}, {to.type_of(dtype)}"
        return to.called(to.use("clamp_to"), pairs[0], limits)
    return _call(to, node, pairs)


def _call(to: Expressions, node: Call, pairs: list[tuple[Expr, Value]]) -> Value:
    fn, dtype = node.fn, node.dtype
    source = node.args[0].dtype
    limits = f"{dtype.low}, {dtype.high}" if not dtype.is_float else ""
    match fn:
        case Fn.FMA:
            return to.called("tl.fma", *pairs)
        case Fn.SQRT:
            return to.called(to.use("sqrt_rn"), *pairs)
        case Fn.FLOOR | Fn.CEIL:
            return to.called(f"tl.{fn.value}", *pairs)
        case Fn.TRUNC:
            return to.called(to.use("truncate"), *pairs)
        case Fn.RINT:
            return to.called(to.use("round_even"), *pairs)
        case Fn.ISNAN:
            return to.called(to.use("is_nan"), *pairs)
        case Fn.COPYSIGN:
            return to.called(to.use("copysign"), *pairs)
        case Fn.POPCOUNT:
            return _narrow(to, Value(f"{to.use('count_ones')}({_bits(to, *pairs[0])})", ATOM, pairs[0][1].have), node)
        case Fn.CLZ:
            below = f"{to.use('count_ones')}({to.use('bits_below_first')}({_bits(to, *pairs[0])}))"
            return _narrow(to, Value(f"({source.bits} - {below})", ATOM, pairs[0][1].have), node)
        case Fn.SATURATING_ADD | Fn.SATURATING_SUB:
            return to.called(to.use(fn.value), *pairs, limits)
        case Fn.ABSD if source.is_float:
            (_, a), (_, b) = pairs
            return Value(f"tl.abs({inside(a, _SUB)} - {inside(b, _SUB + 1)})", ATOM, a.have | b.have)
        case Fn.ABSD:
            high, low = (to.called(f"tl.{w}imum", *pairs) for w in ("max", "min"))
            return Value(f"({high.text} - {low.text}).to({to.type_of(dtype)})", ATOM, high.have)
        case Fn.WIDENING_MUL:
            a, b = (to.cast(n, v, dtype) for n, v in pairs)
            return Value(f"{inside(a, _MUL)} * {inside(b, _MUL + 1)}", _MUL, a.have | b.have)
        case Fn.ROUNDING_AVERAGE:
            return to.called(to.use("rounding_average"), *pairs)
        case Fn.MUL_HIGH if dtype.bits < 64:
            wide = dtypes.int64 if dtype.is_signed else dtypes.uint64
            a, b = (to.to(n, v, wide) for n, v in pairs)
            return Value(f"(({a.text} * {b.text}) >> {dtype.bits}).to({to.type_of(dtype)})", ATOM, a.have | b.have)
        case Fn.MUL_HIGH:
            return to.called(to.use("signed_high_of_product" if dtype.is_signed else "high_of_product"), *pairs)
        case _:
            raise InternalError(f"`{fn.value}` of {source} is no primitive")


def _bits(to: Expressions, node: Expr, value: Value) -> str:
    own = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}[node.dtype.bits]
    return f"{atom(value)}.to({to.type_of(own)}).to(tl.uint64)"


def _narrow(to: Expressions, value: Value, node: Call) -> Value:
    return Value(f"{atom(value)}.to({to.type_of(node.dtype)})", ATOM, value.have)
