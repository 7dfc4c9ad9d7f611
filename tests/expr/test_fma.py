"""The reference is exact rational arithmetic, rounded once."""

import math
from fractions import Fraction

import numpy as np
import pytest

from stax.expr.fma import fma


def rounded(total: Fraction, dtype: type[np.floating]) -> float:
    """Round to nearest even by hand: integer arithmetic on the target's grid."""
    info = np.finfo(dtype)
    digits, least = info.nmant + 1, int(info.minexp) - info.nmant
    if not total:
        return 0.0
    size = abs(total)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    step = Fraction(2) ** max(exponent - digits + 1, least)
    value = round(size / step) * step  # round() of a Fraction is to nearest even
    sign = 1.0 if total > 0 else -1.0
    if value >= Fraction(2) ** int(info.maxexp):
        return sign * math.inf
    return sign * float(value)


def reference(a: float, b: float, c: float, dtype: type[np.floating]) -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        with np.errstate(all="ignore"):
            return float(np.float64(a) * np.float64(b) + np.float64(c))
    if not math.isfinite(c):
        return c
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if not total:
        sign = math.copysign(1, a) * math.copysign(1, b)
        if a == 0 or b == 0:
            return math.copysign(0.0, -1.0) if sign < 0 and math.copysign(1, c) < 0 else 0.0
        return 0.0
    return rounded(total, dtype)


def operands(dtype: type[np.floating], rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    bits = np.uint32 if dtype is np.float32 else np.uint64
    info = np.finfo(dtype)
    special = np.array(
        [0, 1, 1.5, 3, info.tiny, info.smallest_subnormal, info.max, np.inf, np.nan, 1 + info.eps, 2.0**-30], dtype
    )
    special = np.concatenate([special, -special])
    grid = [x.ravel() for x in np.meshgrid(special, special, special)]
    wild = [rng.integers(0, np.iinfo(bits).max, 3000, bits, endpoint=True).view(dtype) for _ in range(3)]
    near = [rng.standard_normal(3000).astype(dtype) for _ in range(2)]
    cancel = -(near[0] * near[1]) * (1 + rng.integers(-4, 5, 3000).astype(dtype) * info.eps)
    tiny = [np.ldexp(x, int(info.minexp) // 2).astype(dtype) for x in near]
    low = np.ldexp(rng.standard_normal(3000), int(info.minexp) + rng.integers(-60, 30, 3000)).astype(dtype)
    parts = [grid, wild, [*near, cancel.astype(dtype)], [*tiny, low], [*near, low]]
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_rounding_of_the_exact_sum_whatever_the_bits(dtype: type[np.floating]) -> None:
    """Specials against each other, random bit patterns, near cancellation, and results below the normal range."""
    a, b, c = operands(dtype, np.random.default_rng(3))
    found = fma(a, b, c)
    wanted = np.array([reference(*map(float, xs), dtype) for xs in zip(a, b, c, strict=True)], dtype)
    same = (found == wanted) & (np.signbit(found) == np.signbit(wanted)) | (np.isnan(found) & np.isnan(wanted))
    assert found.dtype == dtype
    assert [(a[k], b[k], c[k], found[k], wanted[k]) for k in np.flatnonzero(~same)[:3]] == []


def test_it_differs_from_two_roundings() -> None:
    rng = np.random.default_rng(4)
    for dtype in (np.float32, np.float64):
        a, b, c = (rng.standard_normal(1000).astype(dtype) for _ in range(3))
        assert np.any(fma(a, b, c) != a * b + c)


def test_operands_are_spread_over_each_other() -> None:
    assert fma(np.ones((3, 1)), np.ones(2), np.float64(2)).shape == (3, 2)
    assert fma(np.float32(2), np.float32(3), np.float32(4)).shape == ()
