"""select, cast, clip and the functions of mathematics, under NumPy's names."""

from __future__ import annotations

import math as python
from collections.abc import Sequence
from functools import partial
from typing import Any

from stax import dtypes
from stax.dtypes import DType
from stax.expr.nodes import BinaryOp, Call, Const, Expr, Fn
from stax.lang import promote
from stax.lang.terms import LITERAL, refuse, scalar_type, settled
from stax.lang.value import Value, apply, value_of

Op = BinaryOp
inf = python.inf
nan = python.nan
pi = python.pi


def select(*cases: object) -> Any:
    """Return the value after the first condition that holds, else the last: `select(c1, a1, c2, a2, ..., otherwise)`.

    Values may be tuples of one length. An index inside an arm need only be right where its condition holds.

    >>> import stax as sx
    >>> x = sx.Var("x")
    >>> a = sx.Input("a", sx.uint8, 1)
    >>> sx.select(x < 3, 0, a[x] > 9, a[x], 9).dtype
    uint8
    """
    if len(cases) < 3 or len(cases) % 2 == 0:
        refuse(f"select has {len(cases)} arguments", hint="select(condition, value, ..., otherwise)")
    arms = [*cases[1::2], cases[-1]]
    lengths = {len(a) if isinstance(a, tuple) else None for a in arms}  # pyright: ignore[reportUnknownArgumentType]
    if len(lengths) > 1:
        refuse("the arms of a select are tuples of different lengths", hint="give each arm the same parts")
    (length,) = lengths
    if length is None:
        return _chain(cases[:-1:2], arms)
    return tuple(_chain(cases[:-1:2], [a[k] for a in arms]) for k in range(length))  # type: ignore[index]


def where(condition: object, yes: object, no: object) -> Any:
    """Return `yes` where `condition`, else `no`: select of three arguments.

    >>> import stax as sx
    >>> x = sx.Var("x")
    >>> sx.where(x > 0, x, 0).dtype
    int64
    """
    return select(condition, yes, no)


def choose(index: object, values: Sequence[object]) -> Any:
    """Return `values[index]`; the last one for an index that is none.

    >>> import stax as sx
    >>> c, x = sx.vars("c x")
    >>> a = sx.Input("a", sx.float32, 1)
    >>> sx.choose(c, [a[x], a[x + 1], 0]).dtype
    float32
    """
    if not values:
        refuse("choose has no values")
    chosen = value_of(index, "an index")
    if len(values) == 1:
        return values[0] if isinstance(values[0], tuple) else value_of(values[0])  # pyright: ignore[reportUnknownVariableType]
    cases: list[object] = []
    for k, value in enumerate(values[:-1]):
        cases += [chosen == k, value]
    return select(*cases, values[-1])


def cast(value: object, dtype: Any) -> Value:
    """Return `value` as `dtype`: integers wrap, a float saturates to an integer type and NaN gives 0, bool is != 0.

    >>> import stax as sx
    >>> x = sx.Var("x")
    >>> sx.cast(x / 3, sx.uint8).dtype
    uint8
    """
    if isinstance(dtype, Value):
        refuse("`cast` takes the value first, then the type", hint="sx.cast(value, sx.int32)")
    target = scalar_type(dtype)
    return apply(partial(promote.convert, dtype=target), value)


def clip(value: object, low: object, high: object) -> Value:
    """Return `minimum(maximum(value, low), high)`.

    >>> import stax as sx
    >>> x = sx.Var("x")
    >>> a = sx.Input("a", sx.float32, 1)
    >>> sx.clip(a[x], 0, 1).dtype
    float32
    """
    return minimum(maximum(value, low), high)


def minimum(a: object, b: object) -> Value:
    """Return the smaller of the two; NaN where either is.

    >>> import stax as sx
    >>> sx.minimum(sx.Var("x"), 3).dtype
    int64
    """
    return apply(partial(promote.operate, Op.MIN), a, b)


def maximum(a: object, b: object) -> Value:
    """Return the greater of the two; NaN where either is.

    >>> import stax as sx
    >>> sx.maximum(sx.Var("x"), 3).dtype
    int64
    """
    return apply(partial(promote.operate, Op.MAX), a, b)


def sqrt(e: object) -> Value:
    """Return the square root, correctly rounded; NaN below 0.

    >>> import stax as sx
    >>> sx.sqrt(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.SQRT, e)


def rsqrt(e: object) -> Value:
    """Return 1 / sqrt(e).

    >>> import stax as sx
    >>> sx.rsqrt(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.RSQRT, e)


def exp(e: object) -> Value:
    """Return e to this power.

    >>> import stax as sx
    >>> sx.exp(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.EXP, e)


def exp2(e: object) -> Value:
    """Return 2 to this power.

    >>> import stax as sx
    >>> sx.exp2(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.EXP2, e)


def expm1(e: object) -> Value:
    """Return exp(e) - 1, exact near 0.

    >>> import stax as sx
    >>> sx.expm1(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.EXPM1, e)


def log(e: object) -> Value:
    """Return the natural logarithm.

    >>> import stax as sx
    >>> sx.log(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.LOG, e)


def log2(e: object) -> Value:
    """Return the logarithm to base 2.

    >>> import stax as sx
    >>> sx.log2(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.LOG2, e)


def log10(e: object) -> Value:
    """Return the logarithm to base 10.

    >>> import stax as sx
    >>> sx.log10(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.LOG10, e)


def log1p(e: object) -> Value:
    """Return log(1 + e), exact near 0.

    >>> import stax as sx
    >>> sx.log1p(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.LOG1P, e)


def sin(e: object) -> Value:
    """Return the sine of an angle in radians.

    >>> import stax as sx
    >>> sx.sin(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.SIN, e)


def cos(e: object) -> Value:
    """Return the cosine of an angle in radians.

    >>> import stax as sx
    >>> sx.cos(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.COS, e)


def tan(e: object) -> Value:
    """Return the tangent of an angle in radians.

    >>> import stax as sx
    >>> sx.tan(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.TAN, e)


def asin(e: object) -> Value:
    """Return the angle whose sine is `e`.

    >>> import stax as sx
    >>> sx.asin(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.ASIN, e)


def acos(e: object) -> Value:
    """Return the angle whose cosine is `e`.

    >>> import stax as sx
    >>> sx.acos(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.ACOS, e)


def atan(e: object) -> Value:
    """Return the angle whose tangent is `e`.

    >>> import stax as sx
    >>> sx.atan(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.ATAN, e)


def sinh(e: object) -> Value:
    """Return the hyperbolic sine.

    >>> import stax as sx
    >>> sx.sinh(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.SINH, e)


def cosh(e: object) -> Value:
    """Return the hyperbolic cosine.

    >>> import stax as sx
    >>> sx.cosh(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.COSH, e)


def tanh(e: object) -> Value:
    """Return the hyperbolic tangent.

    >>> import stax as sx
    >>> sx.tanh(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.TANH, e)


def erf(e: object) -> Value:
    """Return the error function.

    >>> import stax as sx
    >>> sx.erf(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.ERF, e)


def sigmoid(e: object) -> Value:
    """Return 1 / (1 + exp(-e)).

    >>> import stax as sx
    >>> sx.sigmoid(sx.uint8(1)).dtype
    float32
    """
    return _float(Fn.SIGMOID, e)


def atan2(a: object, b: object) -> Value:
    """Return the angle of the point (b, a), in (-pi, pi].

    >>> import stax as sx
    >>> sx.atan2(sx.float32(1), 2).dtype
    float32
    """
    return _float(Fn.ATAN2, a, b)


def hypot(a: object, b: object) -> Value:
    """Return sqrt(a * a + b * b), not overflowing on the way.

    >>> import stax as sx
    >>> sx.hypot(sx.float32(1), 2).dtype
    float32
    """
    return _float(Fn.HYPOT, a, b)


def copysign(a: object, b: object) -> Value:
    """Return the magnitude of `a` with the sign of `b`.

    >>> import stax as sx
    >>> sx.copysign(sx.float32(1), 2).dtype
    float32
    """
    return _float(Fn.COPYSIGN, a, b)


def pow(a: object, b: object) -> Value:
    """Return `a ** b`: a product where `b` is a small whole constant.

    >>> import stax as sx
    >>> sx.pow(sx.float32(3), 0.5).dtype
    float32
    """
    return apply(promote.power, a, b)


def floor(e: object) -> Value:
    """Return the greatest whole number not above `e`; integers are left as they are.

    >>> import stax as sx
    >>> sx.floor(sx.float32(1)).dtype
    float32
    """
    return apply(partial(_whole, Fn.FLOOR), e)


def ceil(e: object) -> Value:
    """Return the least whole number not below `e`; integers are left as they are.

    >>> import stax as sx
    >>> sx.ceil(sx.float32(1)).dtype
    float32
    """
    return apply(partial(_whole, Fn.CEIL), e)


def trunc(e: object) -> Value:
    """Return `e` without its fraction; integers are left as they are.

    >>> import stax as sx
    >>> sx.trunc(sx.float32(1)).dtype
    float32
    """
    return apply(partial(_whole, Fn.TRUNC), e)


def rint(e: object) -> Value:
    """Return the nearest whole number, halves to even.

    >>> import stax as sx
    >>> sx.rint(sx.float32(1)).dtype
    float32
    """
    return _float(Fn.RINT, e)


def abs(e: object) -> Value:
    """Return the magnitude; that of the least integer wraps to itself.

    >>> import stax as sx
    >>> sx.abs(sx.int8(-3)).dtype
    int8
    """
    return apply(promote.absolute, e)


def sign(e: object) -> Value:
    """Return -1, 0 or 1, in the type of `e`; NaN for NaN.

    >>> import stax as sx
    >>> sx.sign(sx.int8(-3)).dtype
    int8
    """
    return apply(_sign, e)


def isnan(e: object) -> Value:
    """Return whether `e` is NaN.

    >>> import stax as sx
    >>> sx.isnan(sx.float32(1)).dtype
    bool
    """
    return apply(partial(_asked, Fn.ISNAN), e)


def isinf(e: object) -> Value:
    """Return whether `e` is infinite.

    >>> import stax as sx
    >>> sx.isinf(sx.float32(1)).dtype
    bool
    """
    return apply(partial(_asked, Fn.ISINF), e)


def isfinite(e: object) -> Value:
    """Return whether `e` is neither infinite nor NaN.

    >>> import stax as sx
    >>> sx.isfinite(sx.float32(1)).dtype
    bool
    """
    return apply(partial(_asked, Fn.ISFINITE), e)


def popcount(e: object) -> Value:
    """Return how many bits are set, in the type of `e`.

    >>> import stax as sx
    >>> sx.popcount(sx.uint8(7)).dtype
    uint8
    """
    return apply(partial(_bits, Fn.POPCOUNT), e)


def clz(e: object) -> Value:
    """Return how many bits are 0 before the first that is set, in the type of `e`; its width for 0.

    >>> import stax as sx
    >>> sx.clz(sx.uint8(7)).dtype
    uint8
    """
    return apply(partial(_bits, Fn.CLZ), e)


def saturating_cast(e: object, dtype: Any) -> Value:
    """Return `e` as `dtype`, the nearest value that it has; NaN gives 0 in an integer type.

    >>> import stax as sx
    >>> sx.saturating_cast(sx.int16(300), sx.uint8).dtype
    uint8
    """
    target = scalar_type(dtype)
    return apply(partial(_saturated, target=target), e)


def saturating_add(a: object, b: object) -> Value:
    """Return `a + b`, kept in the range of its integer type.

    >>> import stax as sx
    >>> sx.saturating_add(sx.uint8(200), 100).dtype
    uint8
    """
    return apply(partial(_fixed, Fn.SATURATING_ADD), a, b)


def saturating_sub(a: object, b: object) -> Value:
    """Return `a - b`, kept in the range of its integer type.

    >>> import stax as sx
    >>> sx.saturating_sub(sx.uint8(2), 100).dtype
    uint8
    """
    return apply(partial(_fixed, Fn.SATURATING_SUB), a, b)


def absd(a: object, b: object) -> Value:
    """Return `abs(a - b)` without overflow, in the unsigned type of that width.

    >>> import stax as sx
    >>> sx.absd(sx.int8(-100), sx.int8(100)).dtype
    uint8
    """
    return apply(partial(_fixed, Fn.ABSD), a, b)


def widening_mul(a: object, b: object) -> Value:
    """Return `a * b` in the integer type twice as wide.

    >>> import stax as sx
    >>> sx.widening_mul(sx.int8(-100), sx.int8(100)).dtype
    int16
    """
    return apply(partial(_fixed, Fn.WIDENING_MUL), a, b)


def rounding_average(a: object, b: object) -> Value:
    """Return `(a + b + 1) >> 1` without overflow.

    >>> import stax as sx
    >>> sx.rounding_average(sx.uint8(200), sx.uint8(255)).dtype
    uint8
    """
    return apply(partial(_fixed, Fn.ROUNDING_AVERAGE), a, b)


def mul_high(a: object, b: object) -> Value:
    """Return the upper half of the product of two integers, in their type.

    >>> import stax as sx
    >>> sx.mul_high(sx.int16(300), sx.int16(300)).dtype
    int16
    """
    return apply(partial(_fixed, Fn.MUL_HIGH), a, b)


power = pow


def _chain(conditions: Sequence[object], arms: Sequence[object]) -> Value:
    result = value_of(arms[-1])
    for condition, arm in zip(reversed(conditions), reversed(arms[:-1]), strict=True):
        result = apply(promote.choose_between, condition, arm, result)
    return result


def _float(fn: Fn, *given: object) -> Value:
    return apply(partial(promote.call, fn), *given)


def _whole(fn: Fn, node: Expr) -> Expr:
    return promote.call(fn, node) if node.dtype.is_float else node


def _sign(node: Expr) -> Expr:
    if node.dtype.is_float:
        return Call(node.dtype, Fn.SIGN, (node,))
    if node.dtype.is_bool:
        refuse("sign of a bool", hint="cast it")
    zero = Const(LITERAL, 0)
    below = promote.operate(Op.LT, node, zero)
    above = promote.operate(Op.LT, zero, node)
    one, none = Const(LITERAL, 1), Const(LITERAL, 0)
    if not node.dtype.is_signed:
        return _same(promote.choose_between(above, one, none), node.dtype)
    negative = promote.choose_between(below, Const(LITERAL, -1), none)
    return _same(promote.choose_between(above, one, negative), node.dtype)


def _same(node: Expr, dtype: DType) -> Expr:
    return promote.meet(node, settled(dtype))


def _asked(fn: Fn, node: Expr) -> Expr:
    if not node.dtype.is_float:
        return Const(dtypes.bool_, fn is Fn.ISFINITE)
    return Call(dtypes.bool_, fn, (promote.meet(node, settled(node.dtype)),))


def _bits(fn: Fn, node: Expr) -> Expr:
    if not node.dtype.is_integer:
        refuse(f"{fn.value} needs an integer, not {settled(node.dtype)}")
    typed = promote.meet(node, settled(node.dtype))
    return Call(typed.dtype, fn, (typed,))


def _saturated(node: Expr, target: DType) -> Expr:
    typed = promote.meet(node, settled(node.dtype))
    if target.is_bool or typed.dtype.is_bool or (target.is_float and not typed.dtype.is_float):
        return promote.convert(typed, target)
    return typed if typed.dtype.name == target.name else Call(target, Fn.SATURATING_CAST, (typed,))


def _fixed(fn: Fn, left: Expr, right: Expr) -> Expr:
    dtype = settled(promote.join((left.dtype, right.dtype)))
    a, b = promote.meet(left, dtype), promote.meet(right, dtype)
    if dtype.is_float and fn is Fn.ABSD:
        return promote.absolute(promote.operate(Op.SUB, a, b))
    if not dtype.is_integer:
        refuse(f"{fn.value} needs integers, not {dtype}")
    result = dtype
    if fn is Fn.ABSD and dtype.is_signed:
        result = dtypes.as_dtype(f"uint{dtype.bits}")
    if fn is Fn.WIDENING_MUL:
        if dtype.bits == 64:
            refuse("widening_mul of 64-bit integers", hint="mul_high gives the upper half, `*` the lower")
        result = dtypes.as_dtype(f"{dtype.kind.name.lower()}{2 * dtype.bits}")
    return Call(result, fn, (a, b))
