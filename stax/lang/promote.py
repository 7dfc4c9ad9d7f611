"""Which type an operation is computed in: NumPy 2's, with Python numbers and index numbers weak."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stax import dtypes
from stax.dtypes import DType
from stax.expr.nodes import COMPARES, Binary, BinaryOp, Call, Cast, Const, Expr, Fn, Select, Unary, UnaryOp
from stax.lang.terms import LITERAL, NUMBER, REAL, is_weak, refuse, settled

Op = BinaryOp
_SHIFTS = frozenset({Op.SHL, Op.SHR})
_BITS = frozenset({Op.AND, Op.OR, Op.XOR})
_ORDER = {LITERAL.name: 0, NUMBER.name: 1, REAL.name: 2}
_ON_BOOL = {Op.ADD: Op.OR, Op.MUL: Op.AND, Op.MIN: Op.AND, Op.MAX: Op.OR}


def join(types: Iterable[DType]) -> DType:
    """Return the type in which values of `types` meet; weak only where all are."""
    strong: DType | None = None
    weak: DType | None = None
    for t in types:
        if is_weak(t):
            weak = t if weak is None or _ORDER[t.name] > _ORDER[weak.name] else weak
        elif strong is None or strong.name == t.name:
            strong = t
        else:
            strong = _promoted(strong, t)
    if strong is None:
        assert weak is not None
        return weak
    if weak is None or strong.is_float:
        return strong
    if weak is REAL:
        return dtypes.float64
    if strong.is_bool:
        return dtypes.int64
    return strong if weak is LITERAL else dtypes.as_dtype(np.promote_types(strong.dtype, np.int64))


def _promoted(a: DType, b: DType) -> DType:
    """Return the type that holds both: bfloat16 meets others as float16 does, and float16 in float32."""
    if dtypes.bfloat16.name not in (a.name, b.name):
        return dtypes.as_dtype(np.promote_types(a.dtype, b.dtype))
    other = b if a.name == dtypes.bfloat16.name else a
    if other.is_half:
        return dtypes.float32
    found = dtypes.as_dtype(np.promote_types(np.float16, other.dtype))
    return dtypes.bfloat16 if found.is_half else found


def fits(value: float, dtype: DType) -> bool:
    """Return whether the integer `value` lies in the range of the integer type `dtype`."""
    return dtype.low <= value <= dtype.high


def meet(node: Expr, dtype: DType) -> Expr:
    """Return `node` as an operand of type `dtype`: a weak one is computed in it, or left where `dtype` is weak."""
    if node.dtype.name == dtype.name or is_weak(dtype):
        return node
    if isinstance(node, Const) and node.dtype is LITERAL and dtype.is_integer:
        if not fits(node.value, dtype):
            does_not_fit(node.value, dtype)
        return Const(dtype, node.value)
    return Cast(dtype, node)


def does_not_fit(value: float, dtype: DType) -> None:
    """Refuse a literal, as NumPy does."""
    refuse(
        f"the Python integer {value} does not fit {dtype}",
        facts=[f"{dtype} holds {dtype.low} .. {dtype.high}"],
        hint="cast the other operand to a wider type, or write the number as one, such as sx.int32(...)",
    )


def convert(node: Expr, dtype: DType) -> Expr:
    """Return `node` converted to `dtype` as `cast` does: any kind to any other."""
    if node.dtype.name == dtype.name:
        return node
    if is_weak(node.dtype) and not (dtype.is_float or (node.dtype is LITERAL and _literal_fits(node, dtype))):
        node = Cast(settled(node.dtype), node)
    return Cast(dtype, node) if node.dtype.name != dtype.name else node


def converts(value: Expr, dtype: DType) -> bool:
    """Return whether `value` becomes a `dtype` by itself: as NumPy's same_kind; a literal where it fits."""
    if value.dtype is LITERAL and dtype.is_integer:
        if isinstance(value, Const) and not fits(value.value, dtype):
            does_not_fit(value.value, dtype)
        return True
    kinds = (dtypes.float16 if t.is_half else t for t in (settled(value.dtype), dtype))
    source, target = (t.dtype for t in kinds)
    return bool(np.can_cast(source, target, "same_kind"))


def index_of(node: Expr, what: str) -> Expr:
    """Return `node` as an int64; `what` says what it is where it is no integer."""
    dtype = node.dtype
    if dtype.is_float:
        refuse(f"{what} is a float", hint="use `//` instead of `/`, or sx.cast(..., sx.int64)")
    if dtype.is_bool:
        refuse(f"{what} is a bool", hint="sx.cast(..., sx.int64), or sx.select")
    return meet(node, dtypes.int64)


def operate(op: BinaryOp, left: Expr, right: Expr) -> Expr:
    """Return `left op right`."""
    if op in COMPARES:
        return _compare(op, left, right)
    dtype = join((left.dtype, right.dtype))
    if op is Op.ADD and isinstance(left, Const) and left.dtype is LITERAL and left.value == 0 and dtype.is_integer:
        return meet(right, dtype)
    if dtype.is_float:
        if op in _SHIFTS or op in _BITS:
            refuse(f"`{op.value}` needs integers, not {settled(dtype)}")
    elif op is Op.DIV:
        dtype = REAL if is_weak(dtype) else dtypes.float64
    elif dtype.is_bool:
        if op is Op.SUB:
            refuse("`-` of two bools", hint="use `^`, or cast one")
        if op in _ON_BOOL:
            op = _ON_BOOL[op]
        elif op not in _BITS:
            dtype = dtypes.int8
    return Binary(dtype, op, meet(left, dtype), meet(right, dtype))


def _compare(op: BinaryOp, left: Expr, right: Expr) -> Expr:
    dtype = settled(join((left.dtype, right.dtype)))
    if dtype.is_integer:
        for literal, on_left in ((left, True), (right, False)):
            if isinstance(literal, Const) and literal.dtype is LITERAL and not fits(literal.value, dtype):
                less = (literal.value > 0) is not on_left
                return Const(dtypes.bool_, {Op.EQ: False, Op.NE: True}.get(op, less))
    signed = [n.dtype.is_signed for n in (left, right)]
    if dtype.is_float and not left.dtype.is_float and not right.dtype.is_float and signed[0] != signed[1]:
        return _mixed_signs(op, left, right, signed[0])
    return Binary(dtypes.bool_, op, meet(left, dtype), meet(right, dtype))


def _mixed_signs(op: BinaryOp, left: Expr, right: Expr, left_signed: bool) -> Expr:
    """Compare a signed integer with a uint64 exactly, as NumPy does."""
    signed = meet(left if left_signed else right, dtypes.int64)
    zero = Const(dtypes.int64, 0)
    negative = Binary(dtypes.bool_, Op.LT, signed, zero)
    if left_signed:
        same = Binary(dtypes.bool_, op, Cast(dtypes.uint64, signed), right)
    else:
        same = Binary(dtypes.bool_, op, left, Cast(dtypes.uint64, signed))
    when_negative = {Op.EQ: False, Op.NE: True}.get(op, left_signed)
    return Select(dtypes.bool_, negative, Const(dtypes.bool_, when_negative), same)


def negate(node: Expr) -> Expr:
    """Return `-node`."""
    if node.dtype.is_bool:
        refuse("`-` of a bool", hint="use `~`, or cast it")
    return Unary(node.dtype, UnaryOp.NEG, node)


def invert(node: Expr) -> Expr:
    """Return `~node`."""
    if node.dtype.is_float:
        refuse(f"`~` needs integers or bools, not {settled(node.dtype)}")
    return Unary(node.dtype, UnaryOp.NOT, node)


def absolute(node: Expr) -> Expr:
    """Return the magnitude of `node`, in its type."""
    return node if node.dtype.is_bool else Unary(node.dtype, UnaryOp.ABS, node)


def choose_between(cond: Expr, yes: Expr, no: Expr) -> Expr:
    """Return `yes` where `cond`, else `no`."""
    if not cond.dtype.is_bool:
        refuse(f"a condition is {settled(cond.dtype)}, not bool", hint="compare it: `... != 0`")
    dtype = join((yes.dtype, no.dtype))
    return Select(dtype, cond, meet(yes, dtype), meet(no, dtype))


def floating(dtype: DType) -> DType:
    """Return the type in which a function of mathematics takes values of `dtype`."""
    if dtype.is_float:
        return dtype
    if is_weak(dtype):
        return REAL
    return dtypes.float32 if dtype.bits <= 16 else dtypes.float64


def call(fn: Fn, *args: Expr) -> Expr:
    """Return `fn` of floats, in the type where they meet."""
    dtype = floating(join(a.dtype for a in args))
    return Call(dtype, fn, tuple(meet(a, dtype) for a in args))


def power(base: Expr, exponent: Expr) -> Expr:
    """Return `base ** exponent`; a product where the exponent is a small whole constant."""
    whole = isinstance(exponent, Const) and exponent.value == int(exponent.value) if _finite(exponent) else False
    if whole and isinstance(exponent, Const) and (is_weak(exponent.dtype) or exponent.dtype.name == base.dtype.name):
        n = int(exponent.value)
        dtype = join((base.dtype, exponent.dtype))
        if 0 <= n <= (8 if dtype.is_float else 64):
            return _product(meet(base, dtype), n, dtype)
    dtype = join((base.dtype, exponent.dtype))
    if not dtype.is_float:
        refuse(
            "a power of integers needs a constant exponent of 0 .. 64",
            hint="cast the base to a float, or multiply",
        )
    return call(Fn.POW, base, exponent)


def _product(base: Expr, n: int, dtype: DType) -> Expr:
    result: Expr | None = None
    square = base
    while n:
        if n & 1:
            result = square if result is None else operate(Op.MUL, result, square)
        n >>= 1
        if n:
            square = operate(Op.MUL, square, square)
    return result if result is not None else meet(Const(LITERAL, 1), dtype)


def _finite(node: Expr) -> bool:
    return isinstance(node, Const) and not node.dtype.is_bool and abs(node.value) < 2**53


def _literal_fits(node: Expr, dtype: DType) -> bool:
    return isinstance(node, Const) and dtype.is_integer and fits(node.value, dtype)
