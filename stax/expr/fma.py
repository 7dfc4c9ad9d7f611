"""Exact fused multiply-add in NumPy: `a * b + c` rounded once, as the hardware does it.

float32 goes through float64, where the product is exact and the sum is rounded to odd, so that the last rounding sees
on which side the exact sum lies. float64 uses error-free transforms (Boldo and Melquiond, "Emulation of FMA and
correctly rounded sums", IEEE TC 2008), and rational numbers where these could overflow or underflow.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

_SMALL, _LARGE = 2.0**-450, 2.0**450
_TINY, _HUGE = 2.0**-900, 2.0**900


def fma(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c with one rounding; the three have one dtype. float16 is computed in float32, then rounded.

    >>> one = np.float32(1)
    >>> x = np.float32(1 + 2**-12)
    >>> float(fma(x, x, -one) - (x * x - one)) == 2.0**-24
    True
    """
    a, b, c = np.asarray(a), np.asarray(b), np.asarray(c)
    with np.errstate(all="ignore"):
        if a.dtype == np.float64:
            return _fma64(a, b, c)
        wide = _fma32(a.astype(np.float32), b.astype(np.float32), c.astype(np.float32))
        return wide.astype(a.dtype)


def _fma32(a: Array, b: Array, c: Array) -> Array:
    product = a.astype(np.float64) * b.astype(np.float64)
    high, low = _two_sum(product, c.astype(np.float64))
    return np.asarray(_to_odd(high, low)).astype(np.float32)


def _fma64(a: Array, b: Array, c: Array) -> Array:
    a, b, c = np.broadcast_arrays(a, b, c)
    finite = np.isfinite(a) & np.isfinite(b)
    plain = (a == 0) | (b == 0) | ~finite | ~np.isfinite(c)
    # An infinite c wins over a product of finite factors, even one that overflows.
    result = np.where(finite & ~np.isfinite(c), c, a * b + c)
    size_a, size_b, size_c = np.abs(a), np.abs(b), np.abs(c)
    safe = (size_a > _SMALL) & (size_a < _LARGE) & (size_b > _SMALL) & (size_b < _LARGE) & (size_c < _HUGE)
    safe &= (c == 0) | (size_c > _TINY)
    if np.all(plain):
        return np.asarray(result)
    high, low = _two_product(np.where(safe, a, 1.0), np.where(safe, b, 1.0))
    c_safe = np.where(safe, c, 1.0)
    middle, last = _two_sum(c_safe, low)
    top, rest = _two_sum(high, middle)
    result = np.where(plain, result, top + _to_odd(*_two_sum(last, rest)))
    hard = ~plain & ~safe
    if np.any(hard):
        result[hard] = [_exact(*xs) for xs in zip(a[hard].tolist(), b[hard].tolist(), c[hard].tolist(), strict=True)]
    return np.asarray(result)


def _exact(a: float, b: float, c: float) -> float:
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if not total:
        return 0.0
    try:
        value = total.numerator / total.denominator  # correctly rounded, also where it is subnormal
    except OverflowError:
        value = math.copysign(math.inf, 1 if total > 0 else -1)
    return value if value else math.copysign(0.0, 1 if total > 0 else -1)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _split(a: Array) -> tuple[Array, Array]:
    scaled = a * 134217729.0  # 2**27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def _to_odd(high: Array, low: Array) -> Array:
    """Return high + low rounded to odd, where `high` is that sum rounded to nearest and `low` the error."""
    high, low = np.asarray(high, np.float64), np.asarray(low, np.float64)
    bits = high.view(np.int64)
    move = np.isfinite(low) & (low != 0) & ((bits & 1) == 0) & np.isfinite(high)
    away = np.where((low > 0) == (high > 0), 1, -1)
    return np.where(move, bits + away, bits).view(np.float64)
