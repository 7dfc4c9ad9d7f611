"""Math functions spelled out: one sequence of IEEE operations each, the same for every evaluator and printer.

float32 functions become arithmetic that vectorises and calls nothing. `exp log sin cos tanh erf sigmoid` end in
float32, with fused multiply-adds; the others run in float64 and are rounded once. All are within 1.5 ulp (`pow` 2) of
the true value for every argument, subnormal, huge and special ones included. float16 functions are those of float32,
rounded. float64 functions stay calls of the C library: `LIBM` names the symbols. A printer must keep its compiler from
folding those calls, which it would do with another library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stax import dtypes
from stax.dtypes import DType
from stax.errors import InternalError
from stax.expr import build
from stax.expr.nodes import BinaryOp, Bitcast, Call, Expr, Fn, UnaryOp

PRIMITIVES = frozenset(
    {
        Fn.FMA, Fn.SQRT, Fn.FLOOR, Fn.CEIL, Fn.TRUNC, Fn.RINT, Fn.ISNAN, Fn.COPYSIGN, Fn.POPCOUNT, Fn.CLZ,
        Fn.SATURATING_CAST, Fn.SATURATING_ADD, Fn.SATURATING_SUB, Fn.ABSD, Fn.WIDENING_MUL, Fn.ROUNDING_AVERAGE,
        Fn.MUL_HIGH,
    }
)  # fmt: skip

LIBM = {
    Fn.EXP: "exp", Fn.EXP2: "exp2", Fn.EXPM1: "expm1", Fn.LOG: "log", Fn.LOG2: "log2", Fn.LOG10: "log10",
    Fn.LOG1P: "log1p", Fn.SIN: "sin", Fn.COS: "cos", Fn.TAN: "tan", Fn.ASIN: "asin", Fn.ACOS: "acos", Fn.ATAN: "atan",
    Fn.ATAN2: "atan2", Fn.SINH: "sinh", Fn.COSH: "cosh", Fn.TANH: "tanh", Fn.ERF: "erf", Fn.POW: "pow",
    Fn.HYPOT: "hypot",
}  # fmt: skip


def is_primitive(call: Call) -> bool:
    """Return whether evaluators and printers take `call` as it is; any other must be expanded first."""
    return call.fn in PRIMITIVES or (call.fn in LIBM and call.dtype.name == "float64")


def expand(call: Call) -> Expr:
    """Return `call` in primitives, a graph over its very arguments; `call` itself where it is primitive.

    >>> from stax.expr.nodes import Local
    >>> x = Local(dtypes.float32, "x")
    >>> root = expand(Call(dtypes.float32, Fn.RSQRT, (x,)))
    >>> type(root).__name__, root.dtype
    ('Binary', float32)
    """
    if is_primitive(call):
        return call
    args = [_Term(arg) for arg in call.args]
    if call.fn in (Fn.ISINF, Fn.ISFINITE, Fn.SIGN):
        return _PLAIN[call.fn](args[0]).expr
    match call.dtype.name:
        case "float16":
            return _call(call.fn, *(arg.to(dtypes.float32) for arg in args)).to(dtypes.float16).expr
        case "float32" | "float64":
            return _call(call.fn, *args).expr
        case _:
            raise InternalError(f"{call.fn.value} of {call.dtype}")


def _call(fn: Fn, *args: _Term) -> _Term:
    """Return `fn` of float32 or float64 values, spelled out where it is no primitive."""
    if fn in _GENERIC:
        return _GENERIC[fn](args[0])
    if args[0].dtype.name == "float64" or fn in PRIMITIVES:
        return _Term(build.call(fn, tuple(arg.expr for arg in args), args[0].dtype))
    if fn in _TWO:
        return _TWO[fn](args[0], args[1])
    return _ONE[fn](args[0])


Number: TypeAlias = "_Term | float"


@dataclass(frozen=True, slots=True)
class _Term:
    """An expression with operators; numbers take the type and axes of what they meet."""

    expr: Expr

    @property
    def dtype(self) -> DType:
        return self.expr.dtype

    def like(self, value: Number) -> _Term:
        return value if isinstance(value, _Term) else _Term(build.const(value, self.dtype, self.expr.axes))

    def _binary(self, op: BinaryOp, other: Number) -> _Term:
        return _Term(build.binary(op, self.expr, self.like(other).expr))

    def __add__(self, other: Number) -> _Term:
        return self._binary(BinaryOp.ADD, other)

    def __sub__(self, other: Number) -> _Term:
        return self._binary(BinaryOp.SUB, other)

    def __rsub__(self, other: float) -> _Term:
        return self.like(other) - self

    def __mul__(self, other: Number) -> _Term:
        return self._binary(BinaryOp.MUL, other)

    def __truediv__(self, other: Number) -> _Term:
        return self._binary(BinaryOp.DIV, other)

    def __rtruediv__(self, other: float) -> _Term:
        return self.like(other) / self

    def __and__(self, other: Number) -> _Term:
        return self._binary(BinaryOp.AND, other)

    def __or__(self, other: Number) -> _Term:
        return self._binary(BinaryOp.OR, other)

    def __xor__(self, other: Number) -> _Term:
        return self._binary(BinaryOp.XOR, other)

    def __lshift__(self, other: int) -> _Term:
        return self._binary(BinaryOp.SHL, other)

    def __rshift__(self, other: int) -> _Term:
        return self._binary(BinaryOp.SHR, other)

    def __lt__(self, other: Number) -> _Term:
        return self._binary(BinaryOp.LT, other)

    def __gt__(self, other: Number) -> _Term:
        return self.like(other) < self

    def __neg__(self) -> _Term:
        return _Term(build.unary(UnaryOp.NEG, self.expr))

    def equals(self, other: Number) -> _Term:
        return self._binary(BinaryOp.EQ, other)

    def differs(self, other: Number) -> _Term:
        return self._binary(BinaryOp.NE, other)

    def abs(self) -> _Term:
        return _Term(build.unary(UnaryOp.ABS, self.expr))

    def sqrt(self) -> _Term:
        return _call(Fn.SQRT, self)

    def rint(self) -> _Term:
        return _call(Fn.RINT, self)

    def with_sign_of(self, other: _Term) -> _Term:
        return _call(Fn.COPYSIGN, self, other)

    def to(self, dtype: DType) -> _Term:
        return _Term(build.cast(self.expr, dtype))

    def bits(self) -> _Term:
        to = dtypes.int32 if self.dtype.bits == 32 else dtypes.int64
        return _Term(Bitcast(to, self.expr, axes=self.expr.axes))

    def floats(self) -> _Term:
        to = dtypes.float32 if self.dtype.bits == 32 else dtypes.float64
        return _Term(Bitcast(to, self.expr, axes=self.expr.axes))


def _fma(a: _Term, b: Number, c: Number) -> _Term:
    return _call(Fn.FMA, a, a.like(b), a.like(c))


def _select(cond: _Term, yes: _Term, no: Number) -> _Term:
    return _Term(build.select(cond.expr, yes.expr, yes.like(no).expr))


def _polynomial(x: _Term, coefficients: Sequence[float]) -> _Term:
    """Return the polynomial in `x`, highest coefficient first, by Horner's rule."""
    total = x.like(coefficients[0])
    for c in coefficients[1:]:
        total = _fma(total, x, c)
    return total


def _is_infinite(x: _Term) -> _Term:
    return x.abs().equals(math.inf) if x.dtype.is_float else x.differs(x)


def _is_finite(x: _Term) -> _Term:
    return x.abs() < math.inf if x.dtype.is_float else x.equals(x)


def _sign(x: _Term) -> _Term:
    """Return 1, 0 or -1, a NaN for a NaN; a zero is +0."""
    other = _select(x.equals(0), x.like(0), x) if x.dtype.is_float else x.like(0)
    other = _select(x < 0, x.like(-1), other) if x.dtype.is_float or x.dtype.is_signed else other
    return _select(x > 0, x.like(1), other)


def _rsqrt(x: _Term) -> _Term:
    return 1.0 / x.sqrt()


def _sigmoid(x: _Term) -> _Term:
    """Return 1 / (1 + exp(-x)), small results without overflow on the way."""
    if x.dtype.name == "float32":
        return _sigmoid_f32(x)
    e = _call(Fn.EXP, -x.abs())
    return _select(x < 0, e, 1.0) / (e + 1.0)


# float32 arithmetic

_ROUNDER = 12582912.0  # 1.5 * 2**23: adding it leaves the nearest integer in the low bits
_LN2_HIGH, _LN2_LOW = 0.693145751953125, 1.42860682030941723212e-6
_EXP = (1.37805939e-3, 8.37312452e-3, 4.16695364e-2, 1.66664720e-1, 4.99999851e-1)
_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_SIN = (2.86567956e-6, -1.98559923e-4, 8.33338592e-3, -1.66666672e-1)
_COS = (2.44677067e-5, -1.38877297e-3, 4.16666567e-2, -5.00000000e-1)
_TANH = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
_ERF_SMALL = (-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1)
_ERF_LARGE = (-1.06777877e-1, -6.34846687e-1, -1.28717512e-1)


def _exp_parts(x: _Term, low: float, high: float) -> tuple[_Term, _Term]:
    """Return (t, n) with exp(x) = (1 + t) * 2**n for x clamped to [low, high]; a NaN stays in t."""
    x = _select(x > high, x.like(high), x)
    x = _select(x < low, x.like(low), x)
    z = _fma(x, 1.44269504088896341, _ROUNDER)
    n = z.bits() - 0x4B400000
    whole = z - _ROUNDER
    r = _fma(whole, -_LN2_LOW, _fma(whole, -_LN2_HIGH, x))
    return _fma(_polynomial(r, _EXP), r * r, r), n


def _exp(x: _Term) -> _Term:
    """Return exp(x); scaled in two steps, so that only the last one rounds a subnormal result."""
    t, n = _exp_parts(x, -104.0, 89.0)
    half = n >> 1
    result = t + 1.0
    for part in (half, n - half):
        result = result * ((part + 127) << 23).floats()
    return result


def _sigmoid_f32(x: _Term) -> _Term:
    """Return exp(-|x|) over 1 + exp(-|x|), or 1 over it, the small one in float64 to its last step."""
    t, n = _exp_parts(-x.abs(), -104.0, 0.0)
    wide = t.to(dtypes.float64) + 1.0
    scale = ((n.to(dtypes.int64) + 1023) << 52).floats()
    e = wide * scale
    return (_select(x < 0, e, 1.0) / (e + 1.0)).to(dtypes.float32)


def _mantissa(x: _Term) -> tuple[_Term, _Term]:
    """Return (m, e) with x = m * 2**e and sqrt(1/2) <= m < sqrt(2), for a positive finite x."""
    small = x < 2.0**-126
    bits = _select(small, x * 2.0**23, x).bits() - 0x3F3504F3
    e = (bits >> 23).to(dtypes.float32) + _select(small, x.like(-23.0), 0.0)
    return ((bits & 0x7FFFFF) + 0x3F3504F3).floats(), e


def _log_specials(x: _Term, result: _Term) -> _Term:
    result = _select(x.equals(0), result.like(-math.inf), result)
    result = _select((x < 0) | x.differs(x), result.like(math.nan), result)
    return _select(x.equals(math.inf), result.like(math.inf), result)


def _log(x: _Term) -> _Term:
    m, e = _mantissa(x)
    f = m - 1.0
    square = f * f
    y = f * square * _polynomial(f, _LOG)
    y = _fma(square, -0.5, _fma(e, -2.12194440e-4, y))
    return _log_specials(x, _fma(e, 0.693359375, f + y))


def _tanh(x: _Term) -> _Term:
    a, square = x.abs(), x * x
    small = _fma(_polynomial(square, _TANH) * square, x, x)
    large = 1.0 - 2.0 / (_exp(a + a) + 1.0)
    return _select(a < 0.625, small, large).with_sign_of(x)


def _erf(x: _Term) -> _Term:
    """Return erf(x): a polynomial near 0, else 1 - exp(polynomial) (after N. Juffa)."""
    a, square = x.abs(), x * x
    upper = _fma(a, -1.72853470e-5, 3.83197126e-4)
    lower = _fma(a, -3.88396438e-3, 2.42546219e-2)
    r = _fma(upper, square, lower)
    for c in _ERF_LARGE:
        r = _fma(r, a, c)
    large = 1.0 - _exp(_fma(r, a, -a))
    large = _select(a > 4.0, x.like(1.0), large).with_sign_of(x)
    large = _select(x.differs(x), x, large)
    return _select(a > 0.921875, large, _fma(_polynomial(square, _ERF_SMALL), x, x))


# 2 / pi without the bits that only add multiples of 4 to the product: from which size on, and the number in two parts
_QUADRANTS = (
    (2.0**40, float.fromhex("0x1.836e4e44152a0p-16"), float.fromhex("-0x1.ec54170565912p-71")),
    (2.0**63, float.fromhex("0x1.220a94fe13abfp-39"), float.fromhex("-0x1.c1596447e493bp-93")),
    (2.0**86, float.fromhex("0x1.fc2757d1f534ep-64"), float.fromhex("-0x1.1f924eb53361ep-119")),
    (2.0**109, float.fromhex("0x1.f47d4d377036ep-86"), float.fromhex("-0x1.d6a66c3bc6fbep-140")),
)
_TWO_OVER_PI = (float.fromhex("0x1.45f306dc9c883p-1"), float.fromhex("-0x1.6b01ec5417056p-55"))


def _reduce(x: _Term) -> tuple[_Term, _Term]:
    """Return (r, n): |x| = r + n * pi / 2 up to whole turns, |r| <= pi / 4 in float64, n an int32 (its low two bits).

    The product with 2 / pi is exact to 2**-59 for every float32: an fma gives the error of its leading part, and of
    2 / pi only the window of bits is used that the size of x leaves below 4 (after Payne and Hanek).
    """
    a = x.abs().to(dtypes.float64)
    high, low = a.like(_TWO_OVER_PI[0]), a.like(_TWO_OVER_PI[1])
    for least, next_high, next_low in _QUADRANTS:
        smaller = a < least
        high, low = _select(smaller, high, next_high), _select(smaller, low, next_low)
    product = a * high
    error = _fma(a, high, -product)
    turns = (product * 0.25).rint()
    top, rest = _fma(turns, -4.0, product), a * low
    n = (top + (error + rest)).rint()
    fraction = ((top - n) + error) + rest
    quadrant = (n.to(dtypes.float32) + _ROUNDER).bits()
    return fraction * (math.pi / 2), quadrant


def _sine(x: _Term, shift: int) -> _Term:
    """Return sin(|x| + shift * pi / 2)."""
    wide, n = _reduce(x)
    n = n + shift
    r = wide.to(dtypes.float32)
    lost = (wide - r.to(dtypes.float64)).to(dtypes.float32)  # a whole ulp where the sine is in the binade below r
    square = r * r
    sine = r + _fma(_polynomial(square, _SIN) * square, r, lost)
    cosine = _fma(_polynomial(square, _COS), square, 1.0)
    size = _select((n & 1).differs(0), cosine, sine)
    return (size.bits() ^ ((n & 2) << 30)).floats()


def _sin(x: _Term) -> _Term:
    return (_sine(x, 0).bits() ^ (x.bits() & -(1 << 31))).floats()


def _cos(x: _Term) -> _Term:
    return _sine(x, 1)


# float64 arithmetic for float32 results: 2**-40 or better before the one rounding

_ROUNDER64 = 6755399441055744.0  # 1.5 * 2**52
_LOG2_E, _LN_2, _LOG10_2 = 1.4426950408889634, 0.6931471805599453, 0.3010299956639812
_EXP2_64 = (
    1.0203121063391729e-07, 1.3255224878668817e-06, 1.525268684626772e-05, 0.00015403455852453838,
    0.0013333558179043112, 0.009618129159402558, 0.055504108664760424, 0.2402265069581299, 0.6931471805599453,
)  # fmt: skip
_LOG2_64 = (
    0.24291612189078507, 0.26144424639994, 0.32061638822106603, 0.41219840204705605, 0.577078017246336,
    0.9617966939243345, 2.885390081777927,
)  # fmt: skip
_SIN_64 = (
    1.586741547995419e-10, -2.505021474703466e-08, 2.7557309936118e-06, -0.0001984126981787579, 0.008333333333305269,
    -0.1666666666666654, 1.0,
)  # fmt: skip
_COS_64 = (
    2.0589529725050623e-09, -2.755448159038707e-07, 2.4801573385273657e-05, -0.00138888888538391, 0.0416666666662462,
    -0.49999999999998107, 1.0,
)  # fmt: skip
_ATAN_64 = (
    -0.025313713232439115, 0.05024559956890233, -0.06505921605870474, 0.07673525420602918, -0.09089529009171479,
    0.11111048801310983, -0.14285712660062908, 0.19999999978367689, -0.3333333333322129, 1.0,
)  # fmt: skip


def _exp2_parts(t: _Term) -> tuple[_Term, _Term]:
    """Return (p, s) with 2**t = (1 + p) * s, s a power of two, for t clamped to what float32 results need."""
    t = _select(t > 160.0, t.like(160.0), t)
    t = _select(t < -160.0, t.like(-160.0), t)
    z = t + _ROUNDER64
    f = t - (z - _ROUNDER64)
    return f * _polynomial(f, _EXP2_64), ((z.bits() << 52) + (1023 << 52)).floats()


def _exp2_wide(t: _Term) -> _Term:
    p, scale = _exp2_parts(t)
    return _fma(p, scale, scale)


def _expm1_wide(x: _Term) -> _Term:
    p, scale = _exp2_parts(x * _LOG2_E)
    return _fma(p, scale, scale - 1.0)


def _log2_wide(x: _Term) -> _Term:
    """Return log2(x) in float64, for a positive finite float32 x."""
    m, e = _mantissa(x)
    wide = m.to(dtypes.float64)
    s = (wide - 1.0) / (wide + 1.0)
    return _fma(s, _polynomial(s * s, _LOG2_64), e.to(dtypes.float64))


def _atan2_wide(y: _Term, x: _Term) -> _Term:
    """Return the angle of (x, y) in float64, with all of C's special cases."""
    across, up = x.abs(), y.abs()
    steep = up > across
    small, large = _select(steep, across, up), _select(steep, up, across)
    endless = small.equals(math.inf)
    far = (small > large * 0.41421356237309503) | endless  # tan(pi / 8)
    top, bottom = _select(far, small - large, small), _select(far, small + large, large)
    z = _select(large.equals(0) | endless, small.like(0.0), top / bottom)
    angle = z * _polynomial(z * z, _ATAN_64)
    angle = _select(far, angle + math.pi / 4, angle)
    angle = _select(steep, math.pi / 2 - angle, angle)
    angle = _select(x.like(1.0).with_sign_of(x) < 0, math.pi - angle, angle)
    angle = _select(x.differs(x), x, angle)
    return _select(y.differs(y), y, angle.with_sign_of(y))


def _in_float64(function: Callable[[_Term], _Term]) -> Callable[[_Term], _Term]:
    return lambda x: function(x.to(dtypes.float64)).to(dtypes.float32)


def _sinh_wide(x: _Term) -> _Term:
    e = _expm1_wide(x.abs())
    return ((e + e / (e + 1.0)) * 0.5).with_sign_of(x)


def _cosh_wide(x: _Term) -> _Term:
    e = _exp2_wide(x.abs() * _LOG2_E)
    return (e + 1.0 / e) * 0.5


def _expm1(x: _Term) -> _Term:
    return _in_float64(_expm1_wide)(x).with_sign_of(x)


def _log2(x: _Term) -> _Term:
    return _log_specials(x, _log2_wide(x).to(dtypes.float32))


def _log10(x: _Term) -> _Term:
    return _log_specials(x, (_log2_wide(x) * _LOG10_2).to(dtypes.float32))


def _log1p(x: _Term) -> _Term:
    """Return log(1 + x): of the rounded sum, and of what the rounding lost by two terms of the series."""
    total = x + 1.0
    wide = total.to(dtypes.float64)
    lost = (x.to(dtypes.float64) - (wide - 1.0)) / wide
    result = _fma(_log2_wide(total), _LN_2, _fma(lost * lost, -0.5, lost)).to(dtypes.float32)
    return _select(x.equals(0), x, _log_specials(total, result))


def _tan(x: _Term) -> _Term:
    r, n = _reduce(x)
    square = r * r
    sine, cosine = r * _polynomial(square, _SIN_64), _polynomial(square, _COS_64)
    odd = (n & 1).differs(0)
    ratio = (_select(odd, -cosine, sine) / _select(odd, sine, cosine)).to(dtypes.float32)
    return (ratio.bits() ^ (x.bits() & -(1 << 31))).floats()


def _across(x: _Term) -> _Term:
    return ((1.0 - x) * (x + 1.0)).sqrt()


def _asin_wide(x: _Term) -> _Term:
    return _atan2_wide(x, _across(x))


def _acos_wide(x: _Term) -> _Term:
    return _atan2_wide(_across(x), x)


def _atan_wide(x: _Term) -> _Term:
    return _atan2_wide(x, x.like(1.0))


def _atan2(y: _Term, x: _Term) -> _Term:
    return _atan2_wide(y.to(dtypes.float64), x.to(dtypes.float64)).to(dtypes.float32)


def _hypot(x: _Term, y: _Term) -> _Term:
    a, b = x.to(dtypes.float64), y.to(dtypes.float64)
    result = _fma(a, a, b * b).sqrt().to(dtypes.float32)
    return _select(_is_infinite(x) | _is_infinite(y), x.like(math.inf), result)


def _pow(x: _Term, y: _Term) -> _Term:
    """Return x ** y with all of C's special cases."""
    a, power = x.abs(), y.to(dtypes.float64)
    log = _log_specials(a, _log2_wide(a).to(dtypes.float64))
    size = _exp2_wide(log * power).to(dtypes.float32)
    whole, half = y.rint().equals(y), y * 0.5
    odd = whole & half.rint().differs(half)
    negative = x.like(1.0).with_sign_of(x) < 0
    size = _select(negative & odd, -size, size)
    size = _select((x < 0) & (a < math.inf) & whole.equals(False), x.like(math.nan), size)
    one = x.equals(1.0) | y.equals(0.0) | (x.equals(-1.0) & _is_infinite(y))
    return _select(one, x.like(1.0), size)


_PLAIN: dict[Fn, Callable[[_Term], _Term]] = {Fn.ISINF: _is_infinite, Fn.ISFINITE: _is_finite, Fn.SIGN: _sign}
_GENERIC: dict[Fn, Callable[[_Term], _Term]] = {Fn.RSQRT: _rsqrt, Fn.SIGMOID: _sigmoid}
_TWO: dict[Fn, Callable[[_Term, _Term], _Term]] = {Fn.ATAN2: _atan2, Fn.HYPOT: _hypot, Fn.POW: _pow}
_ONE: dict[Fn, Callable[[_Term], _Term]] = {
    Fn.EXP: _exp, Fn.LOG: _log, Fn.SIN: _sin, Fn.COS: _cos, Fn.TANH: _tanh, Fn.ERF: _erf,
    Fn.EXP2: _in_float64(_exp2_wide), Fn.EXPM1: _expm1, Fn.LOG2: _log2, Fn.LOG10: _log10, Fn.LOG1P: _log1p,
    Fn.TAN: _tan, Fn.ASIN: _in_float64(_asin_wide), Fn.ACOS: _in_float64(_acos_wide), Fn.ATAN: _in_float64(_atan_wide),
    Fn.SINH: _in_float64(_sinh_wide), Fn.COSH: _in_float64(_cosh_wide),
}  # fmt: skip
