"""float64 functions as sequences of IEEE operations: no table, no call, no branch, so that they vectorise.

What must be known better than float64 is a pair: a value and what it lacks, `high + low` (Dekker, "A floating-point
technique for extending the available precision", 1971). Coefficients are Chebyshev fits. Each result is the sum of a
pair whose low part is far smaller than the high one, so that about one rounding is left: within 1 ulp of the true value
(`rsqrt` 1.5), for every argument, subnormal, huge and special ones included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from stax import dtypes
from stax.expr.nodes import Fn
from stax.expr.term import Term, fma, polynomial, select

Pair: TypeAlias = tuple[Term, Term]

_ROUNDER = 6755399441055744.0  # 1.5 * 2**52: adding it leaves the nearest integer in the low bits
_LN2_SHORT, _LN2_REST = float.fromhex("0x1.62e42fefap-1"), float.fromhex("0x1.cf79abc9e3b3ap-40")
_LN2 = (float.fromhex("0x1.62e42fefa39efp-1"), float.fromhex("0x1.abc9e3b39803fp-56"))
_TWO_LOG2_E = (float.fromhex("0x1.71547652b82fep+1"), float.fromhex("0x1.777d0ffda0d24p-55"))
_LOG10_2 = (float.fromhex("0x1.34413509f79ffp-2"), float.fromhex("-0x1.9dc1da994fd21p-59"))
_HALF_PI = (float.fromhex("0x1.921fb54442d18p+0"), float.fromhex("0x1.1a62633145c07p-54"))
_THIRD = (float.fromhex("0x1.5555555555555p-2"), float.fromhex("0x1.5555555555555p-56"))
_ROOT_HALF_BITS = 0x3FE6A09E667F3BCD
_EXP = (  # (exp(r) - 1 - r) / r**2 for |r| <= log(2) / 2
    2.09147553258932e-09, 2.5105312729622103e-08, 2.755727347871858e-07, 2.755725517000089e-06, 2.480158732567746e-05,
    0.0001984126987500228, 0.0013888888888883711, 0.008333333333326084, 0.04166666666666667, 0.1666666666666667, 0.5,
)  # fmt: skip
_LOG = (  # (atanh(s) * 2 / s - 2) / s**2, in s**2
    0.1461916613488797, 0.1533150161114533, 0.18182895750119193, 0.22222211043776857, 0.2857142862653362,
    0.3999999999989827, 0.666666666666667,
)  # fmt: skip
_LOG_REST = (  # (atanh(s) / s - 1 - s**2 / 3) / s**4, in s**2
    0.058628022682377066, 0.058530020640084085, 0.06667406686843506, 0.07692297401386, 0.09090909168444662,
    0.11111111110824638, 0.14285714285714687, 0.2,
)  # fmt: skip
_SIN = (  # (sin(r) / r - 1) / r**2, in r**2
    -7.586576588171073e-13, 1.6058529572267877e-10, -2.5052106219521895e-08, 2.755731921930192e-06,
    -0.00019841269841265017, 0.008333333333333331, -0.16666666666666666,
)  # fmt: skip
_COS = (  # (cos(r) - 1 + r**2 / 2) / r**4, in r**2
    4.745804889760674e-14, -1.1470459749675607e-11, 2.087675578389404e-09, -2.7557319221382114e-07,
    2.4801587301584618e-05, -0.0013888888888888887, 0.041666666666666664,
)  # fmt: skip
_ATAN = (  # (atan(z) / z - 1) / z**2, in z**2, for z up to tan(pi / 8)
    -0.013905374533113234, 0.030622995553735516, -0.04103887546862687, 0.04719259188242093, -0.05258020272656758,
    0.058819230561140225, -0.06666641869131183, 0.07692306729194896, -0.0909090906681608, 0.11111111110751482,
    -0.1428571428571149, 0.19999999999999993, -0.3333333333333333,
)  # fmt: skip
_ERF = (  # erf(x) / x - 1, in x**2, for x up to 0.84375
    -8.876838157794318e-10, 1.4204523030520312e-08, -1.6302922290506107e-07, 1.6457898646015626e-06,
    -1.492546268651671e-05, 0.00012055327389429714, -0.0008548326913516344, 0.005223977624070216,
    -0.026866170645030125, 0.1128379167095474, -0.3761263890318375, 0.1283791670955126,
)  # fmt: skip
_ERFC = (  # erfc(x) * exp(x**2), in (x - 3) / (x + 3), for x from 0.84 to 6
    2.4268974523948613e-08, 1.0509241046444166e-08, -2.3192025054973853e-07, -2.8633173445017407e-07,
    1.253813914712676e-06, 2.118764437567132e-06, -7.978525337265636e-06, -1.2860399914131411e-05,
    6.405660018311576e-05, 4.5255295162463704e-05, -0.0005970619511281063, 0.0007077464389306408,
    0.004269136332918911, -0.024392499318669696, 0.07166583719797698, -0.15011593650077726, 0.2456038017123309,
    -0.3262335600430372, 0.17900115118138996,
)  # fmt: skip


_PARTS, _FIRST, _STEP, _SCALED, _SCALE = 5, 148, 95, 528, 400
_TWO_OVER_PI_BITS = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921cfe1deb1cb129a73e"
    "e88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b7"
    "4f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6bab",
    16,
)


def _window(exponent: int) -> tuple[float, ...]:
    """Return the bits of 2 / pi that sizes from 2**exponent on need, as the sum of five numbers.

    Earlier bits add multiples of 4 to the product; later ones are below 2**-117, for sizes up to the next window.
    """
    width = _TWO_OVER_PI_BITS.bit_length()
    dropped = max(0, exponent - 54)
    rest = Fraction(_TWO_OVER_PI_BITS % (1 << (width - dropped)), 1 << width)
    rest *= 1 << (_SCALE if exponent >= _SCALED else 0)
    parts: list[float] = []
    for _ in range(_PARTS):
        parts.append(float(rest))
        rest -= Fraction(parts[-1])
    return tuple(parts)


_WINDOWS = tuple((2.0**e, _window(e)) for e in range(_FIRST, 1024, _STEP))
_WHOLE = _window(0)


# Pairs


def _fast_sum(a: Term, b: Term) -> Pair:
    """Return a + b as a pair, for |a| >= |b| or a = 0."""
    total = a + b
    return total, b - (total - a)


def _sum(a: Term, b: Term) -> Pair:
    """Return a + b as a pair."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product(a: Term, b: Term) -> Pair:
    """Return a * b as a pair."""
    product = a * b
    return product, fma(a, b, -product)


def _quotient(a: Pair, b: Pair) -> Pair:
    """Return a / b as a pair."""
    (a_high, a_low), (b_high, b_low) = a, b
    whole = a_high / b_high
    return whole, (fma(-whole, b_high, a_high) + fma(-whole, b_low, a_low)) / b_high


def _times(a: Pair, b: tuple[float, float]) -> Pair:
    """Return a * b as a pair, `b` a constant."""
    (high, low), (first, second) = a, (a[0].like(b[0]), b[1])
    product, error = _product(high, first)
    return product, error + fma(high, second, low * first)


def _plus(a: Pair, b: float) -> Pair:
    """Return a + b as a pair."""
    high, low = _sum(a[0].like(b), a[0])
    return high, low + a[1]


def _either(cond: Term, a: Pair, b: Pair) -> Pair:
    return select(cond, a[0], b[0]), select(cond, a[1], b[1])


def _joined(a: Pair) -> Term:
    return a[0] + a[1]


def _power_of_two(n: Term) -> Term:
    """Return 2**n for a whole n from -1022 to 1023."""
    return ((n + (_ROUNDER + 1023.0)).bits() << 52).floats()


def _scaled(x: Term, n: Term) -> Term:
    """Return x * 2**n, rounded once where it is subnormal, for a whole n from -2044 to 2046."""
    half = (n * 0.5).rint()
    return x * _power_of_two(half) * _power_of_two(n - half)


def _within(x: Term, low: float, high: float) -> Term:
    """Return x, but at least `low` and at most `high`; a NaN stays one."""
    x = select(x > high, x.like(high), x)
    return select(x < low, x.like(low), x)


# Exponentials


def _power_parts(r: Term, low: Term) -> Pair:
    """Return exp(r + low) - 1 as a pair, for |r| <= log(2) / 2."""
    return r, fma(polynomial(r, _EXP), r * r, low)


def _exp_parts(x: Term, low: Term | None = None) -> tuple[Pair, Term]:
    """Return (t, n) with exp(x + low) = (1 + t) * 2**n, t a pair."""
    n = (x * 1.4426950408889634).rint()
    near, lost = fma(n, -_LN2_SHORT, x), n * _LN2_REST
    r = near - lost
    rest = (near - r) - lost
    return _power_parts(r, rest if low is None else rest + low), n


def _exp2_parts(x: Pair) -> tuple[Pair, Term]:
    """Return (t, n) with 2**x = (1 + t) * 2**n."""
    n = x[0].rint()
    return _power_parts(*_times(_sum(x[0] - n, x[1]), _LN2)), n


def _finished(t: Pair, n: Term) -> Term:
    """Return (1 + t) * 2**n."""
    high, low = _fast_sum(t[0].like(1.0), t[0])
    return _scaled(high + (low + t[1]), n)


def _exp(x: Term) -> Term:
    return _finished(*_exp_parts(_within(x, -746.0, 710.0)))


def _exp2(x: Term) -> Term:
    x = _within(x, -1076.0, 1025.0)
    return _finished(*_exp2_parts((x, x.like(0.0))))


def _expm1(x: Term) -> Term:
    t, n = _exp_parts(_within(x, -40.0, 709.9))
    power = _power_of_two(n - 1.0)
    high, low = _sum(power - 0.5, power * t[0])
    return select(x.abs() < 2.0**-54, x, (high + fma(power, t[1], low)) * 2.0)


def _sinh(x: Term) -> Term:
    """Return half of e - 1 and (e - 1) / e together, e = exp(|x|): for n = 0 nothing cancels."""
    size = x.abs()
    t, n = _exp_parts(_within(size, 0.0, 711.0))
    small = _power_of_two(_within(n * -2.0, -1022.0, 0.0))
    t = _fast_sum(*t)
    part = _quotient(t, _plus(t, 1.0))
    less = 1.0 - small
    high, low = _sum(less, t[0])
    more = fma(small, part[0], fma(small, part[1], low + t[1]) + ((1.0 - less) - small))
    result = _scaled(high + more, n - 1.0)
    return select(size < 2.0**-28, x, result.with_sign_of(x))


def _cosh(x: Term) -> Term:
    t, n = _exp_parts(_within(x.abs(), 0.0, 711.0))
    small = _power_of_two(_within(n * -2.0, -1022.0, 0.0))
    high, low = _plus(_fast_sum(*t), 1.0)
    inverse = small / high
    high, more = _fast_sum(high, inverse)
    return _scaled(high + (more + low), n - 1.0)


def _tanh(x: Term) -> Term:
    size = x.abs()
    t, n = _exp_parts(_within(size + size, 0.0, 45.0))
    power = _power_of_two(n)
    high, low = _sum(power - 1.0, power * t[0])
    less = _fast_sum(high, fma(power, t[1], low))
    result = _joined(_quotient(less, _plus(less, 2.0)))
    return select(size < 2.0**-28, x, result.with_sign_of(x))


def _sigmoid(x: Term) -> Term:
    """Return 1 / (1 + exp(-x)), small results without overflow on the way."""
    e = _exp(-x.abs())
    top = select(x < 0, e, 1.0)
    return _joined(_quotient((top, x.like(0.0)), _fast_sum(x.like(1.0), e)))


# Logarithms


def _mantissa(x: Term) -> tuple[Term, Term]:
    """Return (m, e) with x = m * 2**e and sqrt(1/2) <= m < sqrt(2), for a positive finite x."""
    small = x < 2.0**-1022
    bits = select(small, x * 2.0**54, x).bits() - _ROOT_HALF_BITS
    m = ((bits & ((1 << 52) - 1)) + _ROOT_HALF_BITS).floats()
    steps = ((bits + (1023 << 52)).to(dtypes.uint64) >> 52).to(dtypes.int64)
    whole = (steps + 0x4338000000000000).floats() - (_ROUNDER + 1023.0)
    return m, whole - select(small, x.like(54.0), 0.0)


def _log_specials(x: Term, result: Term) -> Term:
    result = select(x.equals(0), result.like(-math.inf), result)
    result = select((x < 0) | x.differs(x), result.like(math.nan), result)
    return select(x.equals(math.inf), result.like(math.inf), result)


def _log_of(f: Term, e: Term, more: Term) -> Term:
    """Return log((1 + f) * 2**e) + more, `more` far smaller than the rest."""
    s = f / (f + 2.0)
    square, half = s * s, f * f * 0.5
    high, low = _fast_sum(e * _LN2_SHORT, f)
    rest = fma(s, fma(polynomial(square, _LOG), square, half), fma(e, _LN2_REST, more))
    return high + (low + (rest - half))


def _log(x: Term) -> Term:
    m, e = _mantissa(x)
    return _log_specials(x, _log_of(m - 1.0, e, x.like(0.0)))


def _log1p(x: Term) -> Term:
    total, lost = _sum(x.like(1.0), x)
    m, e = _mantissa(total)
    near = e.equals(0)
    f, more = select(near, x, m - 1.0), select(near, x.like(0.0), lost / total)
    return select(x.equals(0), x, _log_specials(total, _log_of(f, e, more)))


def _log2_pair(x: Term) -> Pair:
    """Return log2(x) to about 2**-64 of its size, for a positive finite x."""
    m, e = _mantissa(x)
    f = m - 1.0
    zero = f.like(0.0)
    s, s_low = _quotient((f, zero), _fast_sum(f.like(2.0), f))
    z, z_low = _product(s, s)
    z_low = fma(s + s, s_low, z_low)
    c, c_low = _fast_sum(z.like(_THIRD[0]), z * polynomial(z, _LOG_REST))
    w, w_low = _product(z, c)
    w_low = w_low + fma(z, c_low + _THIRD[1], z_low * c)
    v, v_low = _product(s, w)
    v_low = v_low + fma(s, w_low, s_low * w)
    high, low = _fast_sum(s, v)
    log = _times((high, low + (v_low + s_low)), _TWO_LOG2_E)
    high, low = _fast_sum(e, log[0])
    return high, low + log[1]


def _log2(x: Term) -> Term:
    return _log_specials(x, _joined(_log2_pair(x)))


def _log10(x: Term) -> Term:
    return _log_specials(x, _joined(_times(_log2_pair(x), _LOG10_2)))


def _pow(x: Term, y: Term) -> Term:
    """Return x ** y with all of C's special cases."""
    size = x.abs()
    log, log_low = _log2_pair(select((size > 0) & (size < math.inf), size, 1.0))
    power = _within(y, -(2.0**66), 2.0**66)
    high, low = _product(power, log)
    low = fma(power, log_low, low)
    far = high.abs() > 1100.0
    high, low = select(far, high.like(1100.0).with_sign_of(high), high), select(far, low.like(0.0), low)
    result = _finished(*_exp2_parts((high, low)))
    result = select(size.equals(0), select(y < 0, y.like(math.inf), 0.0), result)
    result = select(size.equals(math.inf), select(y < 0, y.like(0.0), math.inf), result)
    result = select(x.differs(x) | y.differs(y), x + y, result)
    whole, half = y.rint().equals(y), y * 0.5
    odd = whole & half.rint().differs(half)
    negative = x.like(1.0).with_sign_of(x) < 0
    result = select(negative & odd, -result, result)
    result = select((x < 0) & (size < math.inf) & whole.equals(False), x.like(math.nan), result)
    one = x.equals(1.0) | y.equals(0.0) | (x.equals(-1.0) & y.abs().equals(math.inf))
    return select(one, x.like(1.0), result)


# Angles


def _modulo_four(x: Term) -> Term:
    return fma((x * 0.25).rint(), -4.0, x)


def _reduce(size: Term) -> tuple[Pair, Term]:
    """Return (r, n): size = r + n * pi / 2 up to whole turns, |r| <= pi / 4, n in the low two bits of an int64.

    The product with 2 / pi is taken with the window of bits that the size leaves below 4 (Payne and Hanek, "Radian
    reduction for trigonometric functions", 1983), and summed twice over, so that 60 leading bits may cancel.
    """
    parts = [size.like(part) for part in _WHOLE]
    for least, window in _WINDOWS:
        smaller = size < least
        parts = [select(smaller, part, new) for part, new in zip(parts, window, strict=True)]
    size = select(size < 2.0**_SCALED, size, size * 2.0**-_SCALE)
    terms: list[Term] = []
    for k, part in enumerate(parts):
        product, error = _product(size, part)
        terms += (product, error) if k < _PARTS - 1 else (product,)
    terms = [_modulo_four(t) if k < _PARTS else t for k, t in enumerate(terms)]
    total, errors = _distilled(terms)
    n = total.rint()
    high, rest = _distilled([total - n, *errors])
    low = rest[0]
    for error in rest[1:]:
        low = low + error
    return _times(_fast_sum(high, low), _HALF_PI), (n + _ROUNDER).bits()


def _distilled(terms: list[Term]) -> tuple[Term, list[Term]]:
    """Return the sum of `terms`, from the last on, and what each step lost, the first step last."""
    total, errors = terms[-1], list[Term]()
    for term in reversed(terms[:-1]):
        total, error = _sum(term, total)
        errors.insert(0, error)
    return total, errors


def _sine_pair(r: Pair) -> Pair:
    square = r[0] * r[0]
    tail = r[1] - r[1] * square * 0.5
    return r[0], fma(polynomial(square, _SIN) * square, r[0], tail)


def _cosine_pair(r: Pair) -> Pair:
    square, lost = _product(r[0], r[0])
    half = square * 0.5
    high, low = _fast_sum(half.like(1.0), -half)
    rest = fma(polynomial(square, _COS), square * square, -(r[0] * r[1]) - lost * 0.5)
    return high, low + rest


def _circular(x: Term, shift: int) -> Term:
    """Return sin(|x| + shift * pi / 2)."""
    size = x.abs()
    r, n = _reduce(select(size < 2.0**-27, size.like(0.0), size))
    n = n + shift
    result = _joined(_either((n & 1).differs(0), _cosine_pair(r), _sine_pair(r)))
    return (result.bits() ^ ((n & 2) << 62)).floats()


def _signed(result: Term, x: Term) -> Term:
    """Return `result`, its sign turned where x is negative."""
    return (result.bits() ^ (x.bits() & -(1 << 63))).floats()


def _sin(x: Term) -> Term:
    return select(x.abs() < 2.0**-27, x, _signed(_circular(x, 0), x))


def _cos(x: Term) -> Term:
    return _circular(x, 1)


def _tan(x: Term) -> Term:
    size = x.abs()
    tiny = size < 2.0**-27
    r, n = _reduce(select(tiny, size.like(0.0), size))
    sine, cosine = _fast_sum(*_sine_pair(r)), _fast_sum(*_cosine_pair(r))
    odd = (n & 1).differs(0)
    ratio = _joined(_quotient(_either(odd, (-cosine[0], -cosine[1]), sine), _either(odd, sine, cosine)))
    return select(tiny, x, _signed(ratio, x))


def _angle(y: Pair, x: Pair) -> Term:
    """Return the angle of (x, y), with all of C's special cases; the low parts are those of |x| and |y|."""
    up, across = (y[0].abs(), y[1]), (x[0].abs(), x[1])
    steep = up[0] > across[0]
    small, large = _either(steep, across, up), _either(steep, up, across)
    endless = large[0].equals(math.inf)
    none, one = small[0].like(0.0), small[0].like(1.0)
    small = _either(endless, (select(small[0].equals(math.inf), one, 0.0), none), small)
    large = _either(endless | large[0].equals(0), (one, none), large)
    scale = select(large[0] > 2.0**960, one.like(2.0**-60), select(large[0] < 2.0**-900, one.like(2.0**120), 1.0))
    small, large = (small[0] * scale, small[1] * scale), (large[0] * scale, large[1] * scale)
    far = small[0] > large[0] * 0.41421356237309503  # tan(pi / 8)
    less, more = _sum(large[0], -small[0]), _sum(large[0], small[0])
    top = _either(far, (-less[0], small[1] - large[1] - less[1]), small)
    bottom = _either(far, (more[0], more[1] + (small[1] + large[1])), large)
    z, z_low = _quotient(top, bottom)
    square = z * z
    angle: Pair = z, fma(z * square, polynomial(square, _ATAN), z_low)
    angle = _either(far, _turned(angle, 0.5), angle)
    angle = _either(steep, _turned((-angle[0], -angle[1]), 1.0), angle)
    angle = _either(x[0].like(1.0).with_sign_of(x[0]) < 0, _turned((-angle[0], -angle[1]), 2.0), angle)
    result = _joined(angle)
    result = select(x[0].differs(x[0]), x[0], result)
    return select(y[0].differs(y[0]), y[0], result.with_sign_of(y[0]))


def _turned(angle: Pair, quarters: float) -> Pair:
    """Return `angle` and a number of quarters of a turn, which is the larger."""
    high, low = _fast_sum(angle[0].like(_HALF_PI[0] * quarters), angle[0])
    return high, low + (angle[1] + _HALF_PI[1] * quarters)


def _atan2(y: Term, x: Term) -> Term:
    return _angle((y, y.like(0.0)), (x, x.like(0.0)))


def _across(x: Term) -> Pair:
    """Return sqrt(1 - x**2) as a pair."""
    square, lost = _product(x, x)
    high, low = _fast_sum(x.like(1.0), -square)
    root = high.sqrt()
    return root, select(root.equals(0), root, (fma(-root, root, high) + (low - lost)) / (root + root))


def _asin(x: Term) -> Term:
    return _angle((x, x.like(0.0)), _across(x))


def _acos(x: Term) -> Term:
    return _angle(_across(x), (x, x.like(0.0)))


def _atan(x: Term) -> Term:
    return _atan2(x, x.like(1.0))


# Others


def _erf(x: Term) -> Term:
    """Return erf(x): a polynomial near 0, else 1 - exp(-x**2) * polynomial."""
    size = _within(x.abs(), 0.0, 6.0)
    small = fma(polynomial(x * x, _ERF), x, x)
    square, lost = _product(size, size)
    t, n = _exp_parts(-square, -lost)
    tail = _finished(t, n) * polynomial((size - 3.0) / (size + 3.0), _ERFC)
    return select(size < 0.84375, small, (1.0 - tail).with_sign_of(x))


def _hypot(x: Term, y: Term) -> Term:
    a, b = x.abs(), y.abs()
    swapped = b > a
    large, small = select(swapped, b, a), select(swapped, a, b)
    back = select(large > 2.0**500, x.like(2.0**600), select(large < 2.0**-400, x.like(2.0**-600), 1.0))
    scale = 1.0 / back
    large, small = large * scale, small * scale
    first, second = _product(large, large), _product(small, small)
    high, low = _fast_sum(first[0], second[0])
    root = high.sqrt()
    more = (fma(-root, root, high) + (low + (first[1] + second[1]))) / (root + root)
    result = select(root.equals(0), root, root + more) * back
    result = select(x.differs(x) | y.differs(y), x + y, result)
    return select(a.equals(math.inf) | b.equals(math.inf), x.like(math.inf), result)


def _rsqrt(x: Term) -> Term:
    return 1.0 / x.sqrt()


ONE: dict[Fn, Callable[[Term], Term]] = {
    Fn.EXP: _exp, Fn.EXP2: _exp2, Fn.EXPM1: _expm1, Fn.LOG: _log, Fn.LOG2: _log2, Fn.LOG10: _log10, Fn.LOG1P: _log1p,
    Fn.SIN: _sin, Fn.COS: _cos, Fn.TAN: _tan, Fn.ASIN: _asin, Fn.ACOS: _acos, Fn.ATAN: _atan, Fn.SINH: _sinh,
    Fn.COSH: _cosh, Fn.TANH: _tanh, Fn.ERF: _erf, Fn.SIGMOID: _sigmoid, Fn.RSQRT: _rsqrt,
}  # fmt: skip
TWO: dict[Fn, Callable[[Term, Term], Term]] = {Fn.ATAN2: _atan2, Fn.HYPOT: _hypot, Fn.POW: _pow}
