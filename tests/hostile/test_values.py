"""Values at the edges: NaN, infinities, signed zeros, the ends of integer types; nothing traps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stax as sx
from tests.oracle import oracle

Array = np.ndarray[Any, Any]
x = sx.Var("x")
nan, inf = float("nan"), float("inf")


def both(f: sx.Func, **arguments: Any) -> Array:
    """Return what machine code makes, having checked that the oracle says the same to the bit, NaN being NaN."""
    found = sx.compile(f, strict_native=True)(**arguments)
    (meant,) = oracle(f, {"f": found.shape}, arguments)
    np.testing.assert_array_equal(found, meant)
    if found.dtype.kind == "f":
        known = ~np.isnan(found)
        np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(meant)[known])
    return found


SPECIAL = [
    nan,
    -nan,
    inf,
    -inf,
    0.0,
    -0.0,
    1.0,
    -1.0,
    5e-324,
    1e-40,
    3.4e38,
    -3.4e38,
    0.5,
    -0.5,
    2**31,
    -(2**63),
    1e300,
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_minimum_and_maximum_carry_nan_and_order_zeros(dtype: str) -> None:
    values = np.array([nan, inf, -inf, 0.0, -0.0, 1.5, -1.5], dtype)
    u, v = (m.ravel() for m in np.meshgrid(values, values))
    a, b = sx.Input("a", dtype, 1), sx.Input("b", dtype, 1)
    for name in ("minimum", "maximum"):
        f = sx.Func("f")
        f[x] = getattr(sx, name)(a[x], b[x])
        found = both(f, a=u, b=v)
        np.testing.assert_array_equal(found, getattr(np, name)(u, v))
        zeros = (u == 0) & (v == 0) & (np.signbit(u) != np.signbit(v))
        assert (np.signbit(found[zeros]) == (name == "minimum")).all()


@pytest.mark.parametrize("fp", ["strict", "default"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_comparisons_with_nan_are_as_numpys(dtype: str, fp: Any) -> None:
    values = np.array([nan, inf, -inf, 0.0, -0.0, 1.0], dtype)
    u, v = (m.ravel() for m in np.meshgrid(values, values))
    a, b = sx.Input("a", dtype, 1), sx.Input("b", dtype, 1)
    for op in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
        f = sx.Func("f", fp=fp)
        f[x] = getattr(a[x], op)(b[x])
        np.testing.assert_array_equal(both(f, a=u, b=v), getattr(u, op)(v))
    f = sx.Func("f", fp=fp)
    f[x] = sx.select(sx.isnan(a[x]), 1, sx.isinf(a[x]), 2, sx.isfinite(a[x]), 3, 4)
    assert both(f, a=values).tolist() == [1, 2, 2, 3, 3, 3]
    f = sx.Func("f", fp=fp)
    f[x] = a[x] != a[x]
    assert both(f, a=values).tolist() == [True, False, False, False, False, False]


@pytest.mark.parametrize("to", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float_to_int_saturates_and_nan_gives_0(dtype: str, to: str) -> None:
    with np.errstate(over="ignore"):
        values = np.array(
            [*SPECIAL, 127.9, 128.0, -128.9, -129.0, 255.9, 256.0, 2.0**32, 2.0**63, 2.0**64, 1e10], dtype
        )
    a, f = sx.Input("a", dtype, 1), sx.Func("f")
    f[x] = sx.cast(a[x], to)
    found = both(f, a=values)
    if to == "bool":
        np.testing.assert_array_equal(found, values != 0)
        return
    info = np.iinfo(to)
    for got, v in zip(found.tolist(), values.tolist(), strict=True):
        assert got == (0 if v != v else info.max if v >= info.max else info.min if v <= info.min else int(v)), v


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"])
def test_integers_wrap_and_division_never_traps(dtype: str) -> None:
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 7] + ([-1, -7] if info.min else [])
    u, v = (m.ravel() for m in np.meshgrid(np.array(ends, dtype), np.array(ends, dtype)))
    a, b = sx.Input("a", dtype, 1), sx.Input("b", dtype, 1)
    span = 1 << info.bits

    def wrap(n: int) -> int:
        n %= span
        return n - span if n > info.max else n

    rules = {
        "add": (lambda p, q: p + q, lambda p, q: p + q),
        "sub": (lambda p, q: p - q, lambda p, q: p - q),
        "mul": (lambda p, q: p * q, lambda p, q: p * q),
        "floordiv": (lambda p, q: p // q, lambda p, q: p // q if q else 0),
        "mod": (lambda p, q: p % q, lambda p, q: p % q if q else 0),
        "neg": (lambda p, q: -p, lambda p, q: -p),
        "abs": (lambda p, q: sx.abs(p), lambda p, q: abs(p)),
        "by a constant": (lambda p, q: p // 7 + p % 7, lambda p, q: p // 7 + p % 7),
        "left": (lambda p, q: p << q, lambda p, q: p << q if 0 <= q < info.bits else 0),
        "right": (lambda p, q: p >> q, lambda p, q: p >> q if 0 <= q < info.bits else -1 if p < 0 else 0),
    }
    for name, (make, rule) in rules.items():
        f = sx.Func("f")
        f[x] = make(a[x], b[x])
        given = {"a": u, "b": v} if name not in ("neg", "abs", "by a constant") else {"a": u}
        wanted = [wrap(rule(p, q)) for p, q in zip(u.tolist(), v.tolist(), strict=True)]
        found = both(f, **given)
        if name in ("left", "right"):
            fits = v >= 0
            assert found[fits].tolist() == np.array(wanted, dtype)[fits].tolist(), name
        else:
            assert found.tolist() == wanted, name


def test_nan_in_reductions() -> None:
    a = sx.Input("a", sx.float32, (None, 13))
    r, y = sx.RDom("r", x=a.shape[1]), sx.Var("y")
    rows = np.random.default_rng(0).standard_normal((9, 13)).astype(np.float32)
    rows[1, 4] = rows[2, 0] = rows[3, -1] = nan
    rows[4] = nan
    rows[5, 5], rows[6, 5] = inf, -inf
    for name in ("min", "max", "sum", "any", "all", "argmin", "argmax"):
        f = sx.Func("f")
        value = a[y, r] > 0 if name in ("any", "all") else a[y, r]
        f[y] = getattr(sx, name)(value, over=r)
        given = rows > 0 if name in ("any", "all") else rows
        wanted = getattr(np, name)(given, 1)
        found = both(f, a=rows)
        if name == "sum":
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(found, wanted)


def test_subnormals_are_kept() -> None:
    a, f = sx.Input("a", sx.float32, 1), sx.Func("f")
    f[x] = a[x] * np.float32(0.5)
    v = np.array([1e-38, -1e-38, 1e-44, 3e-45], np.float32)
    np.testing.assert_array_equal(both(f, a=v), v * np.float32(0.5))
    assert (both(f, a=v)[:2] != 0).all()
