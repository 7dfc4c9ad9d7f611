"""Math functions spelled out: one sequence of IEEE operations each, the same for every evaluator and printer.

Functions become arithmetic that vectorises and calls nothing. Of float32, `exp log sin cos tanh erf sigmoid` end in
float32, with fused multiply-adds; the others run in float64 and are rounded once. All are within 1.5 ulp (`pow` 2) of
the true value for every argument, subnormal, huge and special ones included. Functions of float16 and bfloat16 are
those of float32, rounded; those of float64 are in `double`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from stax import dtypes
from stax.errors import InternalError
from stax.expr import build, double
from stax.expr.nodes import Call, Expr, Fn
from stax.expr.term import Term, fma, polynomial, select

PRIMITIVES = frozenset(
    {
        Fn.FMA, Fn.SQRT, Fn.FLOOR, Fn.CEIL, Fn.TRUNC, Fn.RINT, Fn.ISNAN, Fn.COPYSIGN, Fn.POPCOUNT, Fn.CLZ,
        Fn.SATURATING_CAST, Fn.SATURATING_ADD, Fn.SATURATING_SUB, Fn.ABSD, Fn.WIDENING_MUL, Fn.ROUNDING_AVERAGE,
        Fn.MUL_HIGH,
    }
)  # fmt: skip


def is_primitive(call: Call) -> bool:
    """Return whether evaluators and printers take `call` as it is; any other must be expanded first."""
    return call.fn in PRIMITIVES


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
    args = [Term(arg) for arg in call.args]
    if call.fn in (Fn.ISINF, Fn.ISFINITE, Fn.SIGN):
        return _PLAIN[call.fn](args[0]).expr
    match call.dtype.name:
        case "float16" | "bfloat16":
            return _call(call.fn, *(arg.to(dtypes.float32) for arg in args)).to(call.dtype).expr
        case "float32" | "float64":
            return _call(call.fn, *args).expr
        case _:
            raise InternalError(f"{call.fn.value} of {call.dtype}")


def _call(fn: Fn, *args: Term) -> Term:
    """Return `fn` of float32 or float64 values, spelled out where it is no primitive."""
    if fn in PRIMITIVES:
        return Term(build.call(fn, tuple(arg.expr for arg in args), args[0].dtype))
    wide = args[0].dtype.name == "float64"
    two, one = (double.TWO, double.ONE) if wide else (_TWO, _ONE)
    return two[fn](args[0], args[1]) if fn in two else one[fn](args[0])


def _is_infinite(x: Term) -> Term:
    return x.abs().equals(math.inf) if x.dtype.is_float else x.differs(x)


def _is_finite(x: Term) -> Term:
    return x.abs() < math.inf if x.dtype.is_float else x.equals(x)


def _sign(x: Term) -> Term:
    """Return 1, 0 or -1, a NaN for a NaN; a zero is +0."""
    other = select(x.equals(0), x.like(0), x) if x.dtype.is_float else x.like(0)
    other = select(x < 0, x.like(-1), other) if x.dtype.is_float or x.dtype.is_signed else other
    return select(x > 0, x.like(1), other)


def _rsqrt(x: Term) -> Term:
    return 1.0 / x.sqrt()


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


def _exp_parts(x: Term, low: float, high: float) -> tuple[Term, Term]:
    """Return (t, n) with exp(x) = (1 + t) * 2**n for x clamped to [low, high]; a NaN stays in t."""
    x = select(x > high, x.like(high), x)
    x = select(x < low, x.like(low), x)
    z = fma(x, 1.44269504088896341, _ROUNDER)
    n = z.bits() - 0x4B400000
    whole = z - _ROUNDER
    r = fma(whole, -_LN2_LOW, fma(whole, -_LN2_HIGH, x))
    return fma(polynomial(r, _EXP), r * r, r), n


def _exp(x: Term) -> Term:
    """Return exp(x); scaled in two steps, so that only the last one rounds a subnormal result."""
    t, n = _exp_parts(x, -104.0, 89.0)
    half = n >> 1
    result = t + 1.0
    for part in (half, n - half):
        result = result * ((part + 127) << 23).floats()
    return result


def _sigmoid(x: Term) -> Term:
    """Return exp(-|x|) over 1 + exp(-|x|), or 1 over it, the small one in float64 to its last step."""
    t, n = _exp_parts(-x.abs(), -104.0, 0.0)
    wide = t.to(dtypes.float64) + 1.0
    scale = ((n.to(dtypes.int64) + 1023) << 52).floats()
    e = wide * scale
    return (select(x < 0, e, 1.0) / (e + 1.0)).to(dtypes.float32)


def _mantissa(x: Term) -> tuple[Term, Term]:
    """Return (m, e) with x = m * 2**e and sqrt(1/2) <= m < sqrt(2), for a positive finite x."""
    small = x < 2.0**-126
    bits = select(small, x * 2.0**23, x).bits() - 0x3F3504F3
    e = (bits >> 23).to(dtypes.float32) + select(small, x.like(-23.0), 0.0)
    return ((bits & 0x7FFFFF) + 0x3F3504F3).floats(), e


def _log_specials(x: Term, result: Term) -> Term:
    result = select(x.equals(0), result.like(-math.inf), result)
    result = select((x < 0) | x.differs(x), result.like(math.nan), result)
    return select(x.equals(math.inf), result.like(math.inf), result)


def _log(x: Term) -> Term:
    m, e = _mantissa(x)
    f = m - 1.0
    square = f * f
    y = f * square * polynomial(f, _LOG)
    y = fma(square, -0.5, fma(e, -2.12194440e-4, y))
    return _log_specials(x, fma(e, 0.693359375, f + y))


def _tanh(x: Term) -> Term:
    a, square = x.abs(), x * x
    small = fma(polynomial(square, _TANH) * square, x, x)
    large = 1.0 - 2.0 / (_exp(a + a) + 1.0)
    return select(a < 0.625, small, large).with_sign_of(x)


def _erf(x: Term) -> Term:
    """Return erf(x): a polynomial near 0, else 1 - exp(polynomial) (after N. Juffa)."""
    a, square = x.abs(), x * x
    upper = fma(a, -1.72853470e-5, 3.83197126e-4)
    lower = fma(a, -3.88396438e-3, 2.42546219e-2)
    r = fma(upper, square, lower)
    for c in _ERF_LARGE:
        r = fma(r, a, c)
    large = 1.0 - _exp(fma(r, a, -a))
    large = select(a > 4.0, x.like(1.0), large).with_sign_of(x)
    large = select(x.differs(x), x, large)
    return select(a > 0.921875, large, fma(polynomial(square, _ERF_SMALL), x, x))


# 2 / pi without the bits that only add multiples of 4 to the product: from which size on, and the number in two parts
_QUADRANTS = (
    (2.0**40, float.fromhex("0x1.836e4e44152a0p-16"), float.fromhex("-0x1.ec54170565912p-71")),
    (2.0**63, float.fromhex("0x1.220a94fe13abfp-39"), float.fromhex("-0x1.c1596447e493bp-93")),
    (2.0**86, float.fromhex("0x1.fc2757d1f534ep-64"), float.fromhex("-0x1.1f924eb53361ep-119")),
    (2.0**109, float.fromhex("0x1.f47d4d377036ep-86"), float.fromhex("-0x1.d6a66c3bc6fbep-140")),
)
_TWO_OVER_PI = (float.fromhex("0x1.45f306dc9c883p-1"), float.fromhex("-0x1.6b01ec5417056p-55"))


def _reduce(x: Term) -> tuple[Term, Term]:
    """Return (r, n): |x| = r + n * pi / 2 up to whole turns, |r| <= pi / 4 in float64, n an int32 (its low two bits).

    The product with 2 / pi is exact to 2**-59 for every float32: an fma gives the error of its leading part, and of
    2 / pi only the window of bits is used that the size of x leaves below 4 (after Payne and Hanek).
    """
    a = x.abs().to(dtypes.float64)
    high, low = a.like(_TWO_OVER_PI[0]), a.like(_TWO_OVER_PI[1])
    for least, next_high, next_low in _QUADRANTS:
        smaller = a < least
        high, low = select(smaller, high, next_high), select(smaller, low, next_low)
    product = a * high
    error = fma(a, high, -product)
    turns = (product * 0.25).rint()
    top, rest = fma(turns, -4.0, product), a * low
    n = (top + (error + rest)).rint()
    fraction = ((top - n) + error) + rest
    quadrant = (n.to(dtypes.float32) + _ROUNDER).bits()
    return fraction * (math.pi / 2), quadrant


def _sine(x: Term, shift: int) -> Term:
    """Return sin(|x| + shift * pi / 2)."""
    wide, n = _reduce(x)
    n = n + shift
    r = wide.to(dtypes.float32)
    lost = (wide - r.to(dtypes.float64)).to(dtypes.float32)  # a whole ulp where the sine is in the binade below r
    square = r * r
    sine = r + fma(polynomial(square, _SIN) * square, r, lost)
    cosine = fma(polynomial(square, _COS), square, 1.0)
    size = select((n & 1).differs(0), cosine, sine)
    return (size.bits() ^ ((n & 2) << 30)).floats()


def _sin(x: Term) -> Term:
    return (_sine(x, 0).bits() ^ (x.bits() & -(1 << 31))).floats()


def _cos(x: Term) -> Term:
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


def _exp2_parts(t: Term) -> tuple[Term, Term]:
    """Return (p, s) with 2**t = (1 + p) * s, s a power of two, for t clamped to what float32 results need."""
    t = select(t > 160.0, t.like(160.0), t)
    t = select(t < -160.0, t.like(-160.0), t)
    z = t + _ROUNDER64
    f = t - (z - _ROUNDER64)
    return f * polynomial(f, _EXP2_64), ((z.bits() << 52) + (1023 << 52)).floats()


def _exp2_wide(t: Term) -> Term:
    p, scale = _exp2_parts(t)
    return fma(p, scale, scale)


def _expm1_wide(x: Term) -> Term:
    p, scale = _exp2_parts(x * _LOG2_E)
    return fma(p, scale, scale - 1.0)


def _log2_wide(x: Term) -> Term:
    """Return log2(x) in float64, for a positive finite float32 x."""
    m, e = _mantissa(x)
    wide = m.to(dtypes.float64)
    s = (wide - 1.0) / (wide + 1.0)
    return fma(s, polynomial(s * s, _LOG2_64), e.to(dtypes.float64))


def _atan2_wide(y: Term, x: Term) -> Term:
    """Return the angle of (x, y) in float64, with all of C's special cases."""
    across, up = x.abs(), y.abs()
    steep = up > across
    small, large = select(steep, across, up), select(steep, up, across)
    endless = small.equals(math.inf)
    far = (small > large * 0.41421356237309503) | endless  # tan(pi / 8)
    top, bottom = select(far, small - large, small), select(far, small + large, large)
    z = select(large.equals(0) | endless, small.like(0.0), top / bottom)
    angle = z * polynomial(z * z, _ATAN_64)
    angle = select(far, angle + math.pi / 4, angle)
    angle = select(steep, math.pi / 2 - angle, angle)
    angle = select(x.like(1.0).with_sign_of(x) < 0, math.pi - angle, angle)
    angle = select(x.differs(x), x, angle)
    return select(y.differs(y), y, angle.with_sign_of(y))


def _in_float64(function: Callable[[Term], Term]) -> Callable[[Term], Term]:
    return lambda x: function(x.to(dtypes.float64)).to(dtypes.float32)


def _sinh_wide(x: Term) -> Term:
    e = _expm1_wide(x.abs())
    return ((e + e / (e + 1.0)) * 0.5).with_sign_of(x)


def _cosh_wide(x: Term) -> Term:
    e = _exp2_wide(x.abs() * _LOG2_E)
    return (e + 1.0 / e) * 0.5


def _expm1(x: Term) -> Term:
    return _in_float64(_expm1_wide)(x).with_sign_of(x)


def _log2(x: Term) -> Term:
    return _log_specials(x, _log2_wide(x).to(dtypes.float32))


def _log10(x: Term) -> Term:
    return _log_specials(x, (_log2_wide(x) * _LOG10_2).to(dtypes.float32))


def _log1p(x: Term) -> Term:
    """Return log(1 + x): of the rounded sum, and of what the rounding lost by two terms of the series."""
    total = x + 1.0
    wide = total.to(dtypes.float64)
    lost = (x.to(dtypes.float64) - (wide - 1.0)) / wide
    result = fma(_log2_wide(total), _LN_2, fma(lost * lost, -0.5, lost)).to(dtypes.float32)
    return select(x.equals(0), x, _log_specials(total, result))


def _tan(x: Term) -> Term:
    r, n = _reduce(x)
    square = r * r
    sine, cosine = r * polynomial(square, _SIN_64), polynomial(square, _COS_64)
    odd = (n & 1).differs(0)
    ratio = (select(odd, -cosine, sine) / select(odd, sine, cosine)).to(dtypes.float32)
    return (ratio.bits() ^ (x.bits() & -(1 << 31))).floats()


def _across(x: Term) -> Term:
    return ((1.0 - x) * (x + 1.0)).sqrt()


def _asin_wide(x: Term) -> Term:
    return _atan2_wide(x, _across(x))


def _acos_wide(x: Term) -> Term:
    return _atan2_wide(_across(x), x)


def _atan_wide(x: Term) -> Term:
    return _atan2_wide(x, x.like(1.0))


def _atan2(y: Term, x: Term) -> Term:
    return _atan2_wide(y.to(dtypes.float64), x.to(dtypes.float64)).to(dtypes.float32)


def _hypot(x: Term, y: Term) -> Term:
    a, b = x.to(dtypes.float64), y.to(dtypes.float64)
    result = fma(a, a, b * b).sqrt().to(dtypes.float32)
    return select(_is_infinite(x) | _is_infinite(y), x.like(math.inf), result)


def _pow(x: Term, y: Term) -> Term:
    """Return x ** y with all of C's special cases."""
    a, power = x.abs(), y.to(dtypes.float64)
    log = _log_specials(a, _log2_wide(a).to(dtypes.float64))
    size = _exp2_wide(log * power).to(dtypes.float32)
    whole, half = y.rint().equals(y), y * 0.5
    odd = whole & half.rint().differs(half)
    negative = x.like(1.0).with_sign_of(x) < 0
    size = select(negative & odd, -size, size)
    size = select((x < 0) & (a < math.inf) & whole.equals(False), x.like(math.nan), size)
    one = x.equals(1.0) | y.equals(0.0) | (x.equals(-1.0) & _is_infinite(y))
    return select(one, x.like(1.0), size)


_PLAIN: dict[Fn, Callable[[Term], Term]] = {Fn.ISINF: _is_infinite, Fn.ISFINITE: _is_finite, Fn.SIGN: _sign}
_TWO: dict[Fn, Callable[[Term, Term], Term]] = {Fn.ATAN2: _atan2, Fn.HYPOT: _hypot, Fn.POW: _pow}
_ONE: dict[Fn, Callable[[Term], Term]] = {
    Fn.EXP: _exp, Fn.LOG: _log, Fn.SIN: _sin, Fn.COS: _cos, Fn.TANH: _tanh, Fn.ERF: _erf,
    Fn.RSQRT: _rsqrt, Fn.SIGMOID: _sigmoid,
    Fn.EXP2: _in_float64(_exp2_wide), Fn.EXPM1: _expm1, Fn.LOG2: _log2, Fn.LOG10: _log10, Fn.LOG1P: _log1p,
    Fn.TAN: _tan, Fn.ASIN: _in_float64(_asin_wide), Fn.ACOS: _in_float64(_acos_wide), Fn.ATAN: _in_float64(_atan_wide),
    Fn.SINH: _in_float64(_sinh_wide), Fn.COSH: _in_float64(_cosh_wide),
}  # fmt: skip
