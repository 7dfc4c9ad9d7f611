"""64-bit integers that wrap, where positions are computed: in indices, conditions and clips."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.testing import interpret

x = sx.Var("x")
LAST = 2**63 - 1
VALUES = (LAST, -LAST - 1, LAST - 2, -LAST + 3, 0, 1, -1, 7, 2**62, -(2**62), 2**61 + 1)
FORMS = {
    "(u * 6) // 3": lambda u: (u * 6) // 3,
    "(-u) % 7": lambda u: (-u) % 7,
    "minimum(u + 1, u)": lambda u: sx.minimum(u + 1, u),
    "maximum(u - 3, -3)": lambda u: sx.maximum(u - 3, -3),
    "(u + x) // 4": lambda u: (u + x) // 4,
    "(u * 8 + 5) % 4": lambda u: (u * 8 + 5) % 4,
    "x + 1 < u": lambda u: sx.select(x + 1 < u, 1, 2),
    "x - 1 < u": lambda u: sx.select(x - 1 < u, 1, 2),
    "u + 1 < u": lambda u: sx.select(u + 1 < u, 1, 2),
    "2 * x < u": lambda u: sx.select(2 * x < u, 1, 2),
    "clip(u - x, 0, 9)": lambda u: sx.clip(u - x, 0, 9),
    "minimum(u, -3)": lambda u: sx.minimum(u, -3),
    "minimum(u - x, 5 - x) + x": lambda u: sx.minimum(u - x, 5 - x) + x,
    "x * u // 2": lambda u: (x * u) // 2,
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", ["value", "index"])
def test_data_that_wraps_is_taken_as_the_oracle_takes_it(form, place):
    """Sums of positions are exact, those of data are not: (-a) % 7 is not (6 * a) % 7."""
    a, c, f = sx.Input("a", sx.int64, 1), sx.Input("c", sx.int64, 1), sx.Func("f")
    e = FORMS[form](a[0])
    f[x] = e if place == "value" else c[sx.clip(e, 0, 15)] + c[e % 16]
    kernel = sx.compile(f, strict_native=True)
    for value in VALUES:
        given = {"a": np.array([value], np.int64)} | ({} if place == "value" else {"c": np.arange(16)})
        np.testing.assert_array_equal(kernel(**given, shape=(40,)), interpret(f, given, shape=(40,)))


@pytest.mark.parametrize("dtype", [sx.int64, sx.uint64])
def test_a_remainder_of_data_is_a_position(dtype):
    """It lies below its divisor, whatever the data are; so does a sum of it."""
    a, b, f = sx.Input("a", dtype, 1), sx.Input("b", sx.int32, 1), sx.Func("f")
    e = sx.cast(a[x] % 6, sx.int64)
    f[x] = (
        b[e + 1]
        + b[sx.cast(a[x] & 3, sx.int64) + 2]
        + sx.pad(b, "reflect")[e - 1]
        + b[sx.cast(a[x], sx.int64) % b.shape[0]]
    )
    given = {"a": np.array([v % 2**64 if dtype is sx.uint64 else v for v in VALUES]).astype(dtype.dtype)}
    given["b"] = np.arange(10, 17, dtype=np.int32)
    np.testing.assert_array_equal(sx.compile(f, strict_native=True)(**given), interpret(f, given))


def test_a_param_that_positions_are_computed_from_stays_small():
    """Loops are cut at n - 1, and arrays end there: it has to be that number."""
    n, f = sx.Param("n", sx.int64), sx.Func("f")
    f[x] = sx.select(x + 1 < n, 1, 2)
    kernel = sx.compile(f, strict_native=True)
    for value in (2**47, -(2**47), 3):
        np.testing.assert_array_equal(kernel(n=value, shape=(5,)), interpret(f, {"n": value}, shape=(5,)))
    with pytest.raises(sx.errors.ArgumentError, match="positions that are computed from it could wrap"):
        kernel(n=-LAST - 1, shape=(5,))


def test_a_param_that_is_a_number_only_may_be_any():
    """Times in nanoseconds are far above the largest position."""
    a, p, f = sx.Input("a", sx.int64, 1), sx.Param("p", sx.int64), sx.Func("f")
    f[x] = sx.select(a[x] < p, a[x] - p, p)
    given = np.array(VALUES, np.int64)
    for value in VALUES:
        got = sx.compile(f, strict_native=True)(a=given, p=value)
        np.testing.assert_array_equal(got, interpret(f, {"a": given, "p": value}))
