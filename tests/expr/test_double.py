"""float64 functions against mpmath, on bit patterns from the whole range and where a function is hard."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from stax import dtypes
from stax.expr import double
from stax.expr.evaluate import primitive
from stax.expr.nodes import Call, Fn, Local

BOUND = {Fn.POW: 1.0, Fn.RSQRT: 1.5}
MPMATH: dict[Fn, Callable[..., Any]] = {
    Fn.EXP: mpmath.exp, Fn.EXP2: lambda x: mpmath.power(2, x), Fn.EXPM1: mpmath.expm1, Fn.LOG: mpmath.log,
    Fn.LOG2: lambda x: mpmath.log(x) / mpmath.log(2), Fn.LOG10: mpmath.log10, Fn.LOG1P: mpmath.log1p,
    Fn.SIN: mpmath.sin, Fn.COS: mpmath.cos, Fn.TAN: mpmath.tan, Fn.ASIN: mpmath.asin, Fn.ACOS: mpmath.acos,
    Fn.ATAN: mpmath.atan, Fn.SINH: mpmath.sinh, Fn.COSH: mpmath.cosh, Fn.TANH: mpmath.tanh, Fn.ERF: mpmath.erf,
    Fn.RSQRT: lambda x: 1 / mpmath.sqrt(x), Fn.SIGMOID: lambda x: 1 / (1 + mpmath.exp(-x)),
    Fn.ATAN2: mpmath.atan2, Fn.POW: mpmath.power, Fn.HYPOT: mpmath.hypot,
}  # fmt: skip
POSITIVE = {Fn.LOG, Fn.LOG2, Fn.LOG10, Fn.RSQRT}
FLAT = {
    Fn.EXP: 746.0, Fn.EXP2: 1076.0, Fn.EXPM1: 711.0, Fn.SINH: 711.0, Fn.COSH: 711.0, Fn.TANH: 25.0, Fn.ERF: 7.0,
    Fn.SIGMOID: 746.0, Fn.ASIN: 1.0, Fn.ACOS: 1.0,
}  # fmt: skip


def value(fn: Fn, *args: Any) -> np.ndarray:
    arrays = [np.array(a, np.float64) for a in args]
    return primitive(Call(dtypes.float64, fn, tuple(Local(dtypes.float64, "x") for _ in args)), arrays)


def ulps(found: float, exact: Any) -> float:
    """Return how far `found` is from `exact`, in units of the last place of the float64 nearest to `exact`."""
    size = abs(exact)
    if size >= mpmath.mpf(2) ** 1024 - mpmath.mpf(2) ** 970:
        return 0.0 if found == mpmath.sign(exact) * math.inf else math.inf
    exponent = -1074 if not exact else max(mpmath.frexp(size)[1] - 53, -1074)
    return math.inf if not math.isfinite(found) else float(abs(mpmath.mpf(found) - exact) / mpmath.mpf(2) ** exponent)


def wild(rng: np.random.Generator, count: int) -> np.ndarray:
    found = rng.integers(0, 2**64, count, np.uint64).view(np.float64)
    return found[np.isfinite(found)]


def arguments(fn: Fn) -> np.ndarray:
    rng = np.random.default_rng(7)
    reach = FLAT.get(fn)
    x = [rng.uniform(-r, r, 700) for r in (0.36, 1.2, reach or 10.0, reach or 1e5)]
    x += [1 + rng.standard_normal(300) * s for s in (1e-3, 1e-9)] + [10.0 ** rng.uniform(-320, -1, 200)]
    x.append(wild(rng, 600))
    if fn in (Fn.SIN, Fn.COS, Fn.TAN):
        k = rng.integers(1, 2**40, 300).astype(np.float64)
        x += [k * (math.pi / 2), np.array([6381956970095103.0 * 2.0**797, 2.0**1023, 1.5e300, 2.0**148, 2.0**243])]
        x += [2.0 ** rng.uniform(40, 1024, 500)]
    found = np.concatenate(x)
    found = np.abs(found) if fn in POSITIVE else found
    if fn in (Fn.ASIN, Fn.ACOS):
        found = found[np.abs(found) <= 1]
    if fn is Fn.LOG1P:
        found = found[found > -1]
    if reach is not None:
        found = found[np.abs(found) <= 2 * reach]
    return found


@pytest.mark.parametrize("fn", list(double.ONE))
def test_functions_are_within_an_ulp_or_so(fn: Fn) -> None:
    """Subnormal, huge and nearly singular arguments included; the bound of the language is 1.5."""
    x = arguments(fn)
    found = value(fn, x)
    # Cancelling 60 bits of a number of 1024 takes more digits than that.
    with mpmath.workprec(1300 if fn in (Fn.SIN, Fn.COS, Fn.TAN) else 200):
        off = [ulps(f, MPMATH[fn](mpmath.mpf(a))) for f, a in zip(found.tolist(), x.tolist(), strict=True)]
    worst = int(np.argmax(off))
    print(f"{fn.value}: {off[worst]:.3f} ulp at {x[worst]!r}")
    assert (off[worst], x[worst].hex()) < (BOUND.get(fn, 1.0),)


@pytest.mark.parametrize("fn", list(double.TWO))
def test_functions_of_two_values_are_within_an_ulp_or_so(fn: Fn) -> None:
    rng = np.random.default_rng(8)
    some = rng.standard_normal(600) * 10.0 ** rng.uniform(-3, 3, 600)
    wide, other = wild(rng, 500), wild(rng, 500)
    n = min(len(wide), len(other))
    x = np.concatenate([some, wide[:n], 1 + rng.standard_normal(400) * 1e-6, rng.uniform(0, 9, 400)])
    y = np.concatenate(
        [rng.integers(-30, 30, 600), other[:n], rng.standard_normal(400) * 1e8, rng.uniform(-300, 300, 400)]
    )
    if fn is Fn.POW:
        whole = np.rint(y) == y
        x = np.where((x < 0) & ~whole, -x, x)
        with np.errstate(all="ignore"):
            seen = np.abs(np.log2(np.abs(x)) * y) < 1100  # the rest is 0 or infinite, and slow to work out
        x, y = x[seen], y[seen]
    found = value(fn, x, y)
    with mpmath.workprec(300):
        off = [
            ulps(f, MPMATH[fn](mpmath.mpf(a), mpmath.mpf(b)))
            for f, a, b in zip(found.tolist(), x.tolist(), y.tolist(), strict=True)
        ]
    worst = int(np.argmax(off))
    print(f"{fn.value}: {off[worst]:.3f} ulp at {x[worst]!r}, {y[worst]!r}")
    assert (off[worst], x[worst].hex(), y[worst].hex()) < (BOUND.get(fn, 1.0),)


SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    0.5,
    3.0,
    -3.0,
    math.inf,
    -math.inf,
    math.nan,
    5e-324,
    -5e-324,
    1e308,
    -1e308,
]
NUMPY = {
    Fn.EXP: np.exp, Fn.EXP2: np.exp2, Fn.EXPM1: np.expm1, Fn.LOG: np.log, Fn.LOG2: np.log2, Fn.LOG10: np.log10,
    Fn.LOG1P: np.log1p, Fn.SIN: np.sin, Fn.COS: np.cos, Fn.TAN: np.tan, Fn.ASIN: np.arcsin, Fn.ACOS: np.arccos,
    Fn.ATAN: np.arctan, Fn.SINH: np.sinh, Fn.COSH: np.cosh, Fn.TANH: np.tanh, Fn.ATAN2: np.arctan2, Fn.POW: np.power,
    Fn.HYPOT: np.hypot, Fn.ERF: np.vectorize(math.erf), Fn.RSQRT: lambda x: 1 / np.sqrt(x),
    Fn.SIGMOID: lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip


@pytest.mark.parametrize("fn", list(NUMPY))
def test_special_values_are_those_of_c(fn: Fn) -> None:
    """Infinities, NaN, and the signs of zeros, for each pair of special values where there are two."""
    grid = np.meshgrid(SPECIAL, SPECIAL) if fn in double.TWO else [np.array(SPECIAL)]
    args = [g.ravel() for g in grid]
    with np.errstate(all="ignore"):
        wanted = NUMPY[fn](*args)
    found = value(fn, *args)
    near = np.isclose(found, wanted, rtol=1e-15, atol=0, equal_nan=True)
    kinds = (np.signbit(found) == np.signbit(wanted)) | np.isnan(wanted)
    bad = ~(near & kinds)
    assert not bad.any(), [(*(a[bad][0] for a in args), found[bad][0], wanted[bad][0])]


def test_powers_of_whole_numbers_that_are_exact_stay_exact() -> None:
    assert value(Fn.POW, [3.0, -2.0, 10.0, 7.0, 0.5], [5.0, 31.0, 22.0, 2.0, -10.0]).tolist() == [
        243.0, -(2.0**31), 1e22, 49.0, 1024.0,
    ]  # fmt: skip
    assert value(Fn.EXP2, np.arange(-1074, 1024)).tolist() == [2.0**k for k in range(-1074, 1024)]
    assert value(Fn.LOG2, [2.0**k for k in range(-1074, 1024)]).tolist() == list(range(-1074, 1024))
