# ruff: noqa: D401
"""Small programs that use each construct of the language, each with the same thing in plain NumPy.

A program is a function that gives a `Case`: Funcs, arguments, and what NumPy makes of the arguments. The NumPy side
uses nothing of stax. Integers, bools, and floats without `rtol` are to agree to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import stax as sx

F32 = 1e-6
F64 = 4e-15


@dataclass(frozen=True)
class Case:
    """`outputs` is a Func or a tuple of them, `expected` an array or a tuple of them, of the same dtypes.

    `rtol` bounds the relative error of floats, and `atol` the absolute one. `shaped` says that the shapes of the
    outputs follow from the program, so that a call need not give them.
    """

    outputs: Any
    arguments: dict[str, Any]
    expected: Any
    rtol: float = 0.0
    atol: float = 0.0
    shaped: bool = True


def ints(seed: int, shape: Any, dtype: str, low: int | None = None, high: int | None = None) -> np.ndarray:
    info = np.iinfo(dtype)
    low, high = info.min if low is None else low, info.max if high is None else high
    return np.random.default_rng(seed).integers(low, high, shape, dtype=dtype, endpoint=True)


def floats(seed: int, shape: Any, dtype: str = "float32", low: float = -1.0, high: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


# ------------------------------------------------------------------------------------------------ values (LANGUAGE 1)


def transpose() -> Case:
    """Axis order is NumPy's; an index may be any Var."""
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.int32, 2)
    f = sx.Func("f")
    f[y, x] = a[x, y] - 1
    v = ints(1, (5, 9), "int32", -99, 99)
    return Case(f, {"a": v}, v.T - np.int32(1))


def negative_indices() -> Case:
    """An intermediate lives on all integers: -1 is never the end."""
    x = sx.Var("x")
    n = sx.Param("n", sx.int64, low=1)
    square, f = sx.Func("square"), sx.Func("f", shape=(n,))
    square[x] = x * x * x
    f[x] = square[x - 7] + square[-x]
    i = np.arange(19)
    return Case(f, {"n": 19}, (i - 7) ** 3 + (-i) ** 3)


def leading_dims() -> Case:
    """`...` stands for all dims before those written."""
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.int16, 4)
    f, g = sx.Func("f"), sx.Func("g")
    f[..., y, x] = a[..., y, x + 1] - a[..., y, x]
    g[..., x] = f[..., x] * 2
    v = ints(2, (2, 3, 4, 7), "int16")
    with np.errstate(over="ignore"):
        return Case(g, {"a": v}, (v[..., 1:] - v[..., :-1]) * np.int16(2))


def uint8_wraps() -> Case:
    x = sx.Var("x")
    a, b = sx.Input("a", sx.uint8, 1), sx.Input("b", sx.uint8, 1)
    f = sx.Func("f")
    f[x] = (a[x] + b[x]) * 3 - a[x] // 2
    u, v = ints(3, 40, "uint8"), ints(4, 40, "uint8")
    return Case(f, {"a": u, "b": v}, (u + v) * np.uint8(3) - u // np.uint8(2))


def promotion() -> Case:
    """Types meet as in NumPy 2: Python numbers are weak, NumPy's are not."""
    x = sx.Var("x")
    a, b = sx.Input("a", sx.uint8, 1), sx.Input("b", sx.int8, 1)
    c, d = sx.Input("c", sx.int32, 1), sx.Input("d", sx.float32, 1)
    names = ("p", "q", "r", "s", "t", "u", "v")
    fs = tuple(sx.Func(n) for n in names)
    values = (
        lambda a, b, c, d: a + b,
        lambda a, b, c, d: a + 2,
        lambda a, b, c, d: np.int64(2) + a,
        lambda a, b, c, d: a * d,
        lambda a, b, c, d: c * d,
        lambda a, b, c, d: np.float32(2) * d + 1,
        lambda a, b, c, d: (a > 7) + c,
    )
    for f, value in zip(fs, values, strict=True):
        f[x] = value(a[x], b[x], c[x], d[x])
    v = (ints(5, 30, "uint8", 0, 99), ints(6, 30, "int8"), ints(7, 30, "int32", -999, 999), floats(8, 30))
    return Case(fs, dict(zip("abcd", v, strict=True)), tuple(value(*v) for value in values), rtol=F32, atol=1e-7)


def true_division() -> Case:
    """`/` is true division, in NumPy's result type."""
    x = sx.Var("x")
    a, b = sx.Input("a", sx.int32, 1), sx.Input("b", sx.uint8, 1)
    f, g = sx.Func("f"), sx.Func("g")
    f[x] = a[x] / b[x]
    g[x] = b[x] / 3
    u, v = ints(9, 30, "int32"), ints(10, 30, "uint8", 1)
    return Case((f, g), {"a": u, "b": v}, (u / v, v / 3))


def index_numbers() -> Case:
    """A Var is an int64 among integers and takes the type of a float that it meets."""
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.float32, 2)
    b = sx.Input("b", sx.uint8, 2)
    f, g, h = sx.Func("f"), sx.Func("g"), sx.Func("h")
    f[y, x] = a[y, x] * x - y
    g[y, x] = b[y, x] + x
    h[y, x] = x / a.shape[1] + 0 * y
    v, w = floats(11, (6, 11)), ints(12, (6, 11), "uint8")
    j, i = np.mgrid[:6, :11]
    wide = v.astype(np.float64) * i - j
    return Case(
        (f, g, h), {"a": v, "b": w}, (wide.astype(np.float32), w + i, i / 11), rtol=F32, atol=1e-6, shaped=False
    )


def floor_division() -> Case:
    """`//` and `%` floor; by zero they give 0, and the smallest integer by -1 wraps."""
    x = sx.Var("x")
    a, b = sx.Input("a", sx.int32, 1), sx.Input("b", sx.int32, 1)
    f, g = sx.Func("f"), sx.Func("g")
    f[x] = a[x] // b[x]
    g[x] = a[x] % b[x]
    u = np.array([7, -7, 7, -7, 5, 0, -(2**31), -(2**31), 2**31 - 1], np.int32)
    v = np.array([3, 3, -3, -3, 0, 0, -1, 2, -2], np.int32)
    q = [p // d if d else 0 for p, d in zip(u.tolist(), v.tolist(), strict=True)]
    m = [p % d if d else 0 for p, d in zip(u.tolist(), v.tolist(), strict=True)]
    return Case((f, g), {"a": u, "b": v}, (np.array(q, np.int64).astype(np.int32), np.array(m, np.int32)))


def division_by_a_number() -> Case:
    x = sx.Var("x")
    a = sx.Input("a", sx.int8, 1)
    f = sx.Func("f")
    f[x] = (a[x] // 7 + a[x] % 7) ^ (a[x] // -4)
    v = np.arange(-128, 128).astype(np.int8)
    return Case(f, {"a": v}, (v // np.int8(7) + v % np.int8(7)) ^ (v // np.int8(-4)))


def shifts() -> Case:
    """A shift by the width or more gives 0, or the sign."""
    x = sx.Var("x")
    a, b, n = sx.Input("a", sx.int16, 1), sx.Input("b", sx.uint16, 1), sx.Input("n", sx.int16, 1)
    f, g, h = sx.Func("f"), sx.Func("g"), sx.Func("h")
    f[x] = a[x] >> n[x]
    g[x] = a[x] << n[x]
    h[x] = (b[x] << 3) | (b[x] >> 13)
    u, w, m = ints(13, 60, "int16"), ints(14, 60, "uint16"), ints(15, 60, "int16", 0, 20)
    right = np.array([p >> k for p, k in zip(u.tolist(), m.tolist(), strict=True)], np.int16)
    left = np.array([p << k for p, k in zip(u.tolist(), m.tolist(), strict=True)], np.int64).astype(np.int16)
    both = (w << np.uint16(3)) | (w >> np.uint16(13))
    return Case((f, g, h), {"a": u, "b": w, "n": m}, (right, left, both))


def smallest_integer() -> Case:
    """Abs and - of the smallest integer wrap."""
    x = sx.Var("x")
    a = sx.Input("a", sx.int8, 1)
    f, g = sx.Func("f"), sx.Func("g")
    f[x] = abs(a[x])
    g[x] = -a[x]
    v = np.arange(-128, 128).astype(np.int8)
    return Case((f, g), {"a": v}, (np.abs(v), -v))


def bools() -> Case:
    """Of bools `+` is or, `*` is and, `~` is logical."""
    x = sx.Var("x")
    a, b = sx.Input("a", sx.bool_, 1), sx.Input("b", sx.int32, 1)
    f, g = sx.Func("f"), sx.Func("g")
    p = b[x] > 3
    f[x] = (a[x] + p) * ~(a[x] ^ p) | (b[x] == 0)
    g[x] = sx.cast(p & a[x], sx.uint8) + sx.cast(b[x], sx.bool_)
    u, v = ints(16, 50, "uint8", 0, 1).astype(bool), ints(17, 50, "int32", -2, 9)
    q = v > 3
    return Case((f, g), {"a": u, "b": v}, (((u | q) & ~(u ^ q)) | (v == 0), (q & u).astype(np.uint8) + (v != 0)))


def unsigned_and_signed_compare() -> Case:
    x = sx.Var("x")
    a, b = sx.Input("a", sx.uint64, 1), sx.Input("b", sx.int64, 1)
    f = sx.Func("f")
    f[x] = (a[x] < b[x]) | (a[x] == b[x])
    u = np.array([0, 2**63, 2**64 - 1, 5, 5, 2**63 - 1], np.uint64)
    v = np.array([-1, -(2**63), -1, 5, 6, 2**63 - 1], np.int64)
    return Case(f, {"a": u, "b": v}, np.array([p <= q for p, q in zip(u.tolist(), v.tolist(), strict=True)]))


def float_to_integer() -> Case:
    """A float saturates and NaN gives 0; integers wrap."""
    x = sx.Var("x")
    a, b = sx.Input("a", sx.float64, 1), sx.Input("b", sx.int32, 1)
    f, g, h = sx.Func("f"), sx.Func("g"), sx.Func("h")
    f[x] = sx.cast(a[x], sx.int32)
    g[x] = sx.cast(a[x], sx.uint8)
    h[x] = sx.cast(b[x], sx.uint8)
    v = np.array([0.9, -0.9, 1e30, -1e30, np.nan, np.inf, -np.inf, 255.7, 2147483647.0, -7.5])
    w = ints(18, 10, "int32")

    def saturated(low: int, high: int) -> list[int]:
        return [0 if math.isnan(p) else high if p >= high else low if p <= low else int(p) for p in v.tolist()]

    narrow = np.array(saturated(0, 255), np.uint8)
    return Case(
        (f, g, h), {"a": v, "b": w}, (np.array(saturated(-(2**31), 2**31 - 1), np.int32), narrow, w.astype(np.uint8))
    )


def minimum_and_maximum() -> Case:
    """They carry NaN and order -0 below +0."""
    x = sx.Var("x")
    a, b = sx.Input("a", sx.float32, 1), sx.Input("b", sx.float32, 1)
    f, g, h = sx.Func("f"), sx.Func("g"), sx.Func("h")
    f[x] = sx.minimum(a[x], b[x])
    g[x] = sx.maximum(a[x], b[x])
    h[x] = sx.clip(a[x], -1, 1)
    u = np.array([1, np.nan, 2, 0.0, -0.0, np.inf, -3], np.float32)
    v = np.array([2, 1, np.nan, -0.0, 0.0, -np.inf, -3], np.float32)
    low = np.array([1, np.nan, np.nan, -0.0, -0.0, -np.inf, -3], np.float32)
    high = np.array([2, np.nan, np.nan, 0.0, 0.0, np.inf, -3], np.float32)
    return Case((f, g, h), {"a": u, "b": v}, (low, high, np.clip(u, np.float32(-1), np.float32(1))))


def fixed_point() -> Case:
    """Words of fixed-point arithmetic, on all pairs of bytes that matter."""
    y, x = sx.vars("y x")
    a, b = sx.Input("a", sx.uint8, 1), sx.Input("b", sx.uint8, 1)
    p, q = a[y], b[x]
    made = (
        sx.saturating_add(p, q), sx.saturating_sub(p, q), sx.absd(p, q), sx.widening_mul(p, q),
        sx.rounding_average(p, q), sx.mul_high(p, q),
        sx.saturating_cast(sx.cast(p, sx.int32) * 3 - sx.cast(q, sx.int32), sx.uint8),
    )  # fmt: skip
    fs = tuple(sx.Func(f"f{k}") for k in range(len(made)))
    for f, value in zip(fs, made, strict=True):
        f[y, x] = value
    v = np.array([0, 1, 2, 127, 128, 200, 254, 255], np.uint8)
    i, j = np.meshgrid(v.astype(np.int32), v.astype(np.int32), indexing="ij")
    wanted = (
        np.minimum(i + j, 255).astype(np.uint8), np.maximum(i - j, 0).astype(np.uint8), abs(i - j).astype(np.uint8),
        (i * j).astype(np.uint16), ((i + j + 1) // 2).astype(np.uint8), (i * j // 256).astype(np.uint8),
        np.clip(i * 3 - j, 0, 255).astype(np.uint8),
    )  # fmt: skip
    return Case(fs, {"a": v, "b": v}, wanted)


def signed_fixed_point() -> Case:
    y, x = sx.vars("y x")
    a, b = sx.Input("a", sx.int16, 1), sx.Input("b", sx.int16, 1)
    p, q = a[y], b[x]
    made = (sx.saturating_add(p, q), sx.saturating_sub(p, q), sx.absd(p, q), sx.widening_mul(p, q), sx.mul_high(p, q))
    fs = tuple(sx.Func(f"f{k}") for k in range(len(made)))
    for f, value in zip(fs, made, strict=True):
        f[y, x] = value
    v = np.array([-(2**15), -(2**15) + 1, -300, -1, 0, 1, 299, 2**15 - 1], np.int16)
    i, j = np.meshgrid(v.astype(np.int64), v.astype(np.int64), indexing="ij")

    def saturated(e: np.ndarray) -> np.ndarray:
        return np.clip(e, -(2**15), 2**15 - 1).astype(np.int16)

    wanted = (
        saturated(i + j), saturated(i - j), abs(i - j).astype(np.uint16), (i * j).astype(np.int32),
        (i * j >> 16).astype(np.int16),
    )  # fmt: skip
    return Case(fs, {"a": v, "b": v}, wanted)


def half_precision() -> Case:
    """float16 is evaluated in float32 and rounded once, at the definition."""
    x = sx.Var("x")
    a, b = sx.Input("a", sx.float16, 1), sx.Input("b", sx.float16, 1)
    f = sx.Func("f")
    f[x] = a[x] * b[x] + a[x]
    u, v = floats(19, 64, "float16", -9, 9), floats(20, 64, "float16")
    return Case(f, {"a": u, "b": v}, (u.astype(np.float64) * v + u).astype(np.float32).astype(np.float16))


def select_of_many() -> Case:
    """The first condition that holds says the value; Python numbers are weak against the other arms."""
    x = sx.Var("x")
    a = sx.Input("a", sx.int16, 1)
    f, g = sx.Func("f"), sx.Func("g")
    f[x] = sx.select(a[x] < -50, a[x] + 100, a[x] > 50, 50, a[x] % 2 == 0, 0, a[x])
    g[x] = sx.where(a[x] > 0, 1.5, -1)
    v = ints(21, 99, "int16", -120, 120)
    wanted = np.select([v < -50, v > 50, v % 2 == 0], [v + np.int16(100), np.int16(50), np.int16(0)], v)
    return Case((f, g), {"a": v}, (wanted.astype(np.int16), np.where(v > 0, 1.5, -1.0)))


def choose_of_tuples() -> Case:
    """`choose` picks one of several; tuples may be arms of `select`."""
    c, x = sx.vars("c x")
    a = sx.Input("a", sx.int32, 1)
    f, g = sx.Func("f", shape=(3, a.shape[0])), sx.Func("g")
    f[c, x] = sx.choose(c, [a[x], a[x] * a[x], -a[x]])
    g[x] = sx.select(a[x] < 0, (a[x], x), (x, a[x]))
    v = ints(22, 17, "int32", -9, 9)
    i = np.arange(17)
    wanted = (np.stack([v, v * v, -v]), np.where(v < 0, v, i), np.where(v < 0, i, v))
    return Case((f, g), {"a": v}, (wanted[0], wanted[1].astype(np.int64), wanted[2].astype(np.int64)))


def arms_bound_reads() -> Case:
    """An arm is needed only where the affine part of its condition holds: no clamp is wanted at the edges."""
    x = sx.Var("x")
    a = sx.Input("a", sx.int32, 1)
    n = a.shape[0]
    f = sx.Func("f", shape=(n,))
    f[x] = sx.select(x == 0, a[x], x >= n - 1, a[x] * 10, a[x - 1] + a[x + 1])
    v = ints(23, 21, "int32", -99, 99)
    wanted = v.copy()
    wanted[1:-1] = v[:-2] + v[2:]
    wanted[-1] = v[-1] * 10
    return Case(f, {"a": v}, wanted)


def interleave() -> Case:
    """Two Funcs woven by `% 2` and `// 2`."""
    x = sx.Var("x")
    a, b = sx.Input("a", sx.uint8, 1), sx.Input("b", sx.uint8, 1)
    f = sx.Func("f")
    f[x] = sx.select(x % 2 == 0, a[x // 2], b[x // 2])
    u, v = ints(24, 12, "uint8"), ints(25, 12, "uint8")
    return Case(f, {"a": u, "b": v}, np.stack([u, v], 1).reshape(-1), shaped=False)


def powers() -> Case:
    """`e ** 2` is `e * e`."""
    x = sx.Var("x")
    a, b = sx.Input("a", sx.float32, 1), sx.Input("b", sx.int32, 1)
    f, g, h = sx.Func("f"), sx.Func("g"), sx.Func("h")
    f[x] = a[x] ** 2
    g[x] = b[x] ** 2 + b[x] ** 3
    h[x] = sx.pow(abs(a[x]) + 1, 1.5)
    u, v = floats(26, 33), ints(27, 33, "int32", -99, 99)
    return Case(
        (f, g, h), {"a": u, "b": v}, (u * u, v**2 + v**3, (abs(u) + np.float32(1)) ** np.float32(1.5)), rtol=F32
    )


def _functions(dtype: str, rtol: float) -> Case:
    x = sx.Var("x")
    a = sx.Input("a", dtype, 1)
    p = a[x]
    made = (
        sx.sqrt(p), sx.rsqrt(p), sx.exp(p), sx.exp2(p), sx.expm1(p), sx.log(p), sx.log2(p), sx.log10(p), sx.log1p(p),
        sx.sin(p), sx.cos(p), sx.tan(p / 4), sx.asin(p / 8), sx.acos(p / 8), sx.atan(p), sx.atan2(p, 2 - p), sx.sinh(p),
        sx.cosh(p), sx.tanh(p), sx.erf(p), sx.pow(p, 2.5), sx.hypot(p, 3), sx.sigmoid(p),
    )  # fmt: skip
    fs = tuple(sx.Func(f"f{k}") for k in range(len(made)))
    for f, value in zip(fs, made, strict=True):
        f[x] = value
    v = floats(28, 65, dtype, 0.125, 6)
    d = v.astype(np.float64)
    wanted = (
        np.sqrt(d), 1 / np.sqrt(d), np.exp(d), np.exp2(d), np.expm1(d), np.log(d), np.log2(d), np.log10(d), np.log1p(d),
        np.sin(d), np.cos(d), np.tan(d / 4), np.arcsin(d / 8), np.arccos(d / 8), np.arctan(d),
        np.arctan2(d, (np.asarray(2, dtype) - v).astype(np.float64)), np.sinh(d), np.cosh(d), np.tanh(d),
        np.array([math.erf(e) for e in d.tolist()]), d**2.5, np.hypot(d, 3), 1 / (1 + np.exp(-d)),
    )  # fmt: skip
    return Case(fs, {"a": v}, tuple(w.astype(dtype) for w in wanted), rtol=rtol, atol=rtol / 8)


def functions_of_float32() -> Case:
    return _functions("float32", F32)


def functions_of_float64() -> Case:
    return _functions("float64", F64)


def functions_of_bytes() -> Case:
    """Math functions of 8- and 16-bit integers give float32."""
    x = sx.Var("x")
    a, b = sx.Input("a", sx.uint8, 1), sx.Input("b", sx.int32, 1)
    f, g = sx.Func("f"), sx.Func("g")
    f[x] = sx.sqrt(a[x])
    g[x] = sx.sqrt(b[x])
    v = np.arange(256).astype(np.uint8)
    w = ints(29, 256, "int32", 0)
    return Case((f, g), {"a": v, "b": w}, (np.sqrt(v.astype(np.float32)), np.sqrt(w.astype(np.float64))))


def rounding() -> Case:
    x = sx.Var("x")
    a = sx.Input("a", sx.float32, 1)
    names = ("floor", "ceil", "trunc", "rint", "sign")
    fs = tuple(sx.Func(n) for n in names)
    for f, n in zip(fs, names, strict=True):
        f[x] = getattr(sx, n)(a[x])
    v = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 3.49, -3.51, 1e10, -1e10, 8388609.0, np.inf, -np.inf, np.nan], np.float32)
    return Case(fs, {"a": v}, tuple(getattr(np, n)(v) for n in names))


def kinds_of_floats() -> Case:
    x = sx.Var("x")
    a = sx.Input("a", sx.float64, 1)
    names = ("isnan", "isinf", "isfinite")
    fs = tuple(sx.Func(n) for n in names)
    for f, n in zip(fs, names, strict=True):
        f[x] = getattr(sx, n)(a[x])
    v = np.array([0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, 5e-324, 1.7e308])
    return Case(fs, {"a": v}, tuple(getattr(np, n)(v) for n in names))


def bits() -> Case:
    x = sx.Var("x")
    a = sx.Input("a", sx.uint32, 1)
    f, g = sx.Func("f"), sx.Func("g")
    f[x] = sx.cast(sx.popcount(a[x]), sx.int32)
    g[x] = sx.cast(sx.clz(a[x]), sx.int32)
    v = np.array([0, 1, 2, 3, 255, 2**31, 2**32 - 1, 12345678], np.uint32)
    ones = np.array([bin(e).count("1") for e in v.tolist()], np.int32)
    return Case((f, g), {"a": v}, (ones, np.array([32 - e.bit_length() for e in v.tolist()], np.int32)))


def strict_floats() -> Case:
    """Under `fp="strict"` nothing is contracted: the bits are NumPy's."""
    x = sx.Var("x")
    a, b, c = (sx.Input(n, sx.float32, 1) for n in "abc")
    f = sx.Func("f", fp="strict")
    f[x] = a[x] * b[x] + c[x] * a[x] - b[x] / c[x]
    u, v, w = floats(30, 200), floats(31, 200), floats(32, 200, low=0.5, high=2.0)
    return Case(f, {"a": u, "b": v, "c": w}, u * v + w * u - v / w)


def contraction() -> Case:
    """Under the default mode a product that meets a sum is rounded once, with it."""
    x = sx.Var("x")
    a, b, c = (sx.Input(n, sx.float32, 1) for n in "abc")
    f = sx.Func("f")
    f[x] = a[x] * b[x] + c[x]
    u, v, w = (ints(k, 200, "int32", -99999, 99999).astype(np.float32) for k in (33, 34, 35))
    return Case(f, {"a": u, "b": v, "c": w}, (u.astype(np.float64) * v + w).astype(np.float32))


# ------------------------------------------------------------------------------------- definitions (LANGUAGE 2.1-2.4)


def declared_dtype() -> Case:
    """A value is converted to a declared dtype under `same_kind`."""
    x = sx.Var("x")
    a, b = sx.Input("a", sx.float64, 1), sx.Input("b", sx.int32, 1)
    f, g = sx.Func("f", dtype=sx.float32), sx.Func("g", dtype=sx.uint8)
    f[x] = a[x] * 2
    g[x] = sx.cast(b[x], sx.uint8) + 1
    u, v = floats(36, 20, "float64"), ints(37, 20, "int32")
    return Case((f, g), {"a": u, "b": v}, ((u * 2).astype(np.float32), v.astype(np.uint8) + np.uint8(1)))


def weak_definition() -> Case:
    """A definition of Python numbers takes the type of the first typed update."""
    i = sx.Var("i")
    a = sx.Input("a", sx.float32, 2)
    r = sx.RDom("r", k=a.shape[1])
    f = sx.Func("f")
    f[i] = 0
    f[i] += a[i, r.k]
    v = ints(38, (7, 12), "int32", -99, 99).astype(np.float32)
    return Case(f, {"a": v}, v.sum(1, dtype=np.float32))


def prefix_sum() -> Case:
    """A start value, and a recurrence along the only dim."""
    x = sx.Var("x")
    a = sx.Input("a", sx.int64, 1)
    c = sx.Func("c", shape=(a.shape[0],))
    c[0] = a[0]
    c[x] = c[x - 1] + a[x]
    v = ints(39, 37, "int64", -(2**40), 2**40)
    return Case(c, {"a": v}, np.cumsum(v))


def suffix_product() -> Case:
    """A recurrence that runs downwards, from a start at the last index."""
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.uint32, 2)
    h = a.shape[0]
    b = sx.Func("b", shape=(h, a.shape[1]))
    b[h - 1, x] = a[h - 1, x]
    b[y, x] = b[y + 1, x] * a[y, x]
    v = ints(40, (9, 5), "uint32")
    return Case(b, {"a": v}, np.cumprod(v[::-1], axis=0, dtype=np.uint32)[::-1])


def fibonacci() -> Case:
    """Two start values; a recurrence two steps back."""
    t = sx.Var("t")
    f = sx.Func("f", dtype=sx.uint64, shape=(95,))
    f[0] = 0
    f[1] = 1
    f[t] = f[t - 1] + f[t - 2]
    wanted = [0, 1]
    while len(wanted) < 95:
        wanted.append((wanted[-1] + wanted[-2]) % 2**64)
    return Case(f, {}, np.array(wanted, np.uint64))


def edit_distance() -> Case:
    """A recurrence in two dims, with start values that overlap: the first that matches wins."""
    i, j = sx.vars("i j")
    a, b = sx.Input("a", sx.uint8, 1), sx.Input("b", sx.uint8, 1)
    d = sx.Func("d", dtype=sx.int32, shape=(a.shape[0] + 1, b.shape[0] + 1))
    d[0, j] = sx.cast(j, sx.int32)
    d[i, 0] = sx.cast(i, sx.int32)
    cost = sx.select(a[i - 1] == b[j - 1], 0, 1)
    d[i, j] = sx.minimum(sx.minimum(d[i - 1, j], d[i, j - 1]) + 1, d[i - 1, j - 1] + cost)
    out = sx.Func("out")
    out[()] = d[a.shape[0], b.shape[0]]
    u, v = ints(41, 13, "uint8", 0, 3), ints(42, 10, "uint8", 0, 3)
    w = np.zeros((14, 11), np.int32)
    w[0], w[:, 0] = np.arange(11), np.arange(14)
    for p in range(1, 14):
        for q in range(1, 11):
            w[p, q] = min(w[p - 1, q] + 1, w[p, q - 1] + 1, w[p - 1, q - 1] + (u[p - 1] != v[q - 1]))
    return Case((d, out), {"a": u, "b": v}, (w, w[13, 10]))


def heat() -> Case:
    """Steps of a stencil; the edges keep their values; how many steps is a Param."""
    t, y, x = sx.vars("t y x")
    a = sx.Input("a", sx.float64, 2)
    steps = sx.Param("steps", sx.int64, low=0, high=1000)
    h, w = a.shape
    u, out = sx.Func("u", shape=(steps + 1, h, w)), sx.Func("out")
    u[0, y, x] = a[y, x]
    c = u[t - 1, y, x]
    around = u[t - 1, y - 1, x] + u[t - 1, y + 1, x] + u[t - 1, y, x - 1] + u[t - 1, y, x + 1]
    u[t, y, x] = sx.select((y > 0) & (y < h - 1) & (x > 0) & (x < w - 1), c + 0.125 * (around - 4 * c), c)
    out[y, x] = u[steps, y, x]
    v = floats(43, (8, 11), "float64")
    g = v.copy()
    for _ in range(5):
        k = g[1:-1, 1:-1]
        g[1:-1, 1:-1] = k + 0.125 * (g[:-2, 1:-1] + g[2:, 1:-1] + g[1:-1, :-2] + g[1:-1, 2:] - 4 * k)
    return Case(out, {"a": v, "steps": 5}, g, rtol=1e-13, atol=1e-15)


def seidel() -> Case:
    """A recurrence that reads this step and the last one, forwards and backwards."""
    t, x = sx.vars("t x")
    a = sx.Input("a", sx.int64, 1)
    n = a.shape[0]
    u, out = sx.Func("u", shape=(7, n)), sx.Func("out")
    u[0, x] = a[x]
    u[t, x] = sx.select((x > 0) & (x < n - 1), (u[t, x - 1] + u[t - 1, x] + u[t - 1, x + 1]) // 3, u[t - 1, x])
    out[x] = u[6, x]
    v = ints(44, 23, "int64", -999, 999)
    g = v.copy()
    for _ in range(6):
        for k in range(1, 22):
            g[k] = (g[k - 1] + g[k] + g[k + 1]) // 3
    return Case(out, {"a": v}, g)


def filter_both_ways() -> Case:
    """A recursive filter down and up again; the second recurrence reads the first."""
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.float32, 2)
    h, w = a.shape
    f, b = sx.Func("f", shape=(h, w)), sx.Func("b", shape=(h, w))
    f[0, x] = a[0, x]
    f[y, x] = 0.75 * f[y - 1, x] + 0.25 * a[y, x]
    b[h - 1, x] = f[h - 1, x]
    b[y, x] = 0.75 * b[y + 1, x] + 0.25 * f[y, x]
    v = floats(45, (12, 7))
    p = v.astype(np.float64)
    for k in range(1, 12):
        p[k] = 0.75 * p[k - 1] + 0.25 * p[k]
    for k in range(10, -1, -1):
        p[k] = 0.75 * p[k + 1] + 0.25 * p[k]
    return Case(b, {"a": v}, p.astype(np.float32), rtol=1e-5, atol=1e-6)


def leapfrog() -> Case:
    """Two Funcs that read each other step by step."""
    t, x = sx.vars("t x")
    a = sx.Input("a", sx.int64, 1)
    n = a.shape[0]
    e = sx.Func("e", dtype=sx.int64, shape=(9, n))
    h = sx.Func("h", dtype=sx.int64, shape=(9, n))
    e[0, x] = 0
    h[0, x] = a[x]
    e[t, x] = sx.select(x > 0, e[t - 1, x] + (h[t - 1, x] - h[t - 1, x - 1]) // 2, e[t - 1, x])
    h[t, x] = sx.select(x < n - 1, h[t - 1, x] + (e[t, x + 1] - e[t, x]) // 2, h[t - 1, x])
    out = sx.Func("out")
    out[x] = e[8, x] * 1000 + h[8, x]
    v = ints(46, 18, "int64", -500, 500)
    p, q = np.zeros(18, np.int64), v.copy()
    for _ in range(8):
        p[1:] += (q[1:] - q[:-1]) // 2
        q[:-1] += (p[1:] - p[:-1]) // 2
    return Case(out, {"a": v}, p * 1000 + q)


# ------------------------------------------------------------------------------------ updates and RDoms (2.5 and 2.6)


def histogram() -> Case:
    """A scatter: the index of the update is data, bounded by its type."""
    i = sx.Var("i")
    a = sx.Input("a", sx.uint8, 2)
    r = sx.RDom("r", y=a.shape[0], x=a.shape[1])
    h = sx.Func("h", shape=(256,))
    h[i] = 0
    h[a[r.y, r.x]] += 1
    v = ints(47, (11, 19), "uint8")
    return Case(h, {"a": v}, np.bincount(v.reshape(-1), minlength=256))


def histogram_in_part() -> Case:
    """A predicate that compares the index tightens it: what lies outside is dropped."""
    i = sx.Var("i")
    a = sx.Input("a", sx.int32, 1)
    r = sx.RDom("r", x=a.shape[0], where=lambda r: (a[r.x] >= 0) & (a[r.x] < 16))
    h = sx.Func("h", dtype=sx.int32, shape=(16,))
    h[i] = 0
    h[a[r.x]] += 1
    v = ints(48, 200, "int32", -30, 30)
    return Case(h, {"a": v}, np.bincount(v[(v >= 0) & (v < 16)], minlength=16).astype(np.int32))


def hashed_scatter() -> Case:
    """`%` and `&` bound an index, too; a later write wins."""
    i = sx.Var("i")
    a = sx.Input("a", sx.uint32, 1)
    r = sx.RDom("r", x=a.shape[0])
    f = sx.Func("f", shape=(8, 7))
    j = sx.Var("j")
    f[i, j] = -1
    f[a[r.x] & 7, a[r.x] % 7] = r.x
    v = ints(49, 60, "uint32")
    wanted = np.full((8, 7), -1, np.int64)
    for k, e in enumerate(v.tolist()):
        wanted[e & 7, e % 7] = k
    return Case(f, {"a": v}, wanted)


def pure_update() -> Case:
    """An update over all of a Func, in every form of assignment."""
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.int32, 2)
    f = sx.Func("f")
    f[y, x] = a[y, x]
    f[y, x] += 10
    f[y, x] *= a[y, x]
    f[y, x] -= y
    f[y, x] = f[y, x] // 3
    v = ints(50, (6, 9), "int32", -99, 99)
    return Case(f, {"a": v}, ((v + 10) * v - np.arange(6, dtype=np.int32)[:, None]) // np.int32(3))


def row_update() -> Case:
    """Updates of one row and one column, in order."""
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.int16, 2)
    f = sx.Func("f", shape=a.shape)
    f[y, x] = a[y, x]
    f[0, x] = sx.int16(7)
    f[y, 2] = f[y, 2] + f[y, 3]
    v = ints(51, (5, 6), "int16", -99, 99)
    w = v.copy()
    w[0] = 7
    w[:, 2] += w[:, 3]
    return Case(f, {"a": v}, w)


def scan_in_place() -> Case:
    """An update that reads what it has just written."""
    x = sx.Var("x")
    a = sx.Input("a", sx.int32, 1)
    f = sx.Func("f", shape=a.shape)
    r = sx.RDom("r", x=(1, a.shape[0]))
    f[x] = a[x]
    f[r.x] = sx.maximum(f[r.x - 1] - 3, a[r.x])
    v = ints(52, 50, "int32", -99, 99)
    w = v.copy()
    for k in range(1, 50):
        w[k] = max(w[k - 1] - 3, v[k])
    return Case(f, {"a": v}, w)


def two_updates() -> Case:
    """Each update runs over all of its RDom before the next begins."""
    i = sx.Var("i")
    a = sx.Input("a", sx.int64, 1)
    n = a.shape[0]
    r, q = sx.RDom("r", k=n), sx.RDom("q", k=(0, n - 1))
    f = sx.Func("f", shape=(n,))
    f[i] = 0
    f[n - 1 - r.k] += a[r.k]
    f[q.k] += 2 * f[q.k + 1]
    v = ints(53, 15, "int64", -9, 9)
    w = v[::-1].copy()
    for k in range(14):
        w[k] += 2 * w[k + 1]
    return Case(f, {"a": v}, w)


def largest_and_where() -> Case:
    """An update of a tuple sees all its old parts."""
    a = sx.Input("a", sx.int32, 1)
    r = sx.RDom("r", x=a.shape[0])
    best = sx.Func("best", dtype=(sx.int32, sx.int64))
    best[()] = (-(2**31), -1)
    value, at = best[()]
    best[()] = (sx.select(a[r.x] > value, a[r.x], value), sx.select(a[r.x] > value, r.x, at))
    v = ints(54, 77, "int32", -50, 50)
    return Case(best, {"a": v}, (v.max(), np.argmax(v)))


def swap_of_tuple() -> Case:
    """Parts that swap, over and over."""
    x = sx.Var("x")
    a = sx.Input("a", sx.int32, 1)
    r = sx.RDom("r", k=5)
    f = sx.Func("f")
    f[x] = (a[x], a[x] * 2)
    p, q = f[x]
    f[x] = (q, p + r.k)
    v = ints(55, 9, "int32", -99, 99)
    u, w = v.astype(np.int64), v.astype(np.int64) * 2
    for k in range(5):
        u, w = w, u + k
    return Case(f, {"a": v}, (u.astype(np.int32), w.astype(np.int32)))


def window_sum() -> Case:
    """An RDom with ranges that begin below 0; a stencil as an update."""
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.int32, 2)
    r = sx.RDom("r", y=(-1, 2), x=(-2, 3))
    f = sx.Func("f")
    f[y, x] = 0
    f[y, x] += a[y + 1 + r.y, x + 2 + r.x] * (r.y + 2) * (r.x - 5)
    v = ints(56, (9, 13), "int32", -9, 9)
    w = np.zeros((7, 9), np.int64)
    for p in range(-1, 2):
        for q in range(-2, 3):
            w += v[1 + p : 8 + p, 2 + q : 11 + q] * (p + 2) * (q - 5)
    return Case(f, {"a": v}, w)


def predicate_keeps_reads_inside() -> Case:
    """A predicate bounds what is read: the window is cut at the far edges."""
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.int32, 2)
    h, w = a.shape
    r = sx.RDom("r", y=3, x=3, where=lambda r: (y + r.y < h) & (x + r.x < w))
    f = sx.Func("f", shape=(h, w))
    f[y, x] = 0
    f[y, x] += a[y + r.y, x + r.x]
    v = ints(57, (7, 8), "int32", -99, 99)
    wanted = np.array([[v[p : p + 3, q : q + 3].sum() for q in range(8)] for p in range(7)], np.int32)
    return Case(f, {"a": v}, wanted)


def triangle() -> Case:
    """The range of one variable of an RDom depends on another."""
    i = sx.Var("i")
    a = sx.Input("a", sx.int64, 2)
    n = a.shape[0]
    r = sx.RDom("r", p=n, q=(0, lambda r: r.p + 1))
    f = sx.Func("f", shape=(n,))
    f[i] = 0
    f[r.q] += a[r.p, r.q]
    v = ints(58, (9, 9), "int64", -99, 99)
    return Case(f, {"a": v}, np.tril(v).sum(0))


def range_up_to_a_var() -> Case:
    """The range of an RDom depends on a Var of the definition."""
    x = sx.Var("x")
    a = sx.Input("a", sx.int64, 1)
    r = sx.RDom("r", k=(0, x + 1))
    f = sx.Func("f", shape=a.shape)
    f[x] = sx.sum(a[r.k] * (x - r.k), over=r)
    v = ints(59, 20, "int64", -99, 99)
    return Case(f, {"a": v}, np.array([sum(v[k] * (i - k) for k in range(i + 1)) for i in range(20)]))


def matrix_product() -> Case:
    """An RDom of one variable stands for it; sizes of one Input are those of another."""
    i, j = sx.vars("i j")
    a = sx.Input("a", sx.int32, 2)
    b = sx.Input("b", sx.int32, (a.shape[1], None))
    k = sx.RDom("k", k=a.shape[1])
    c, out = sx.Func("c"), sx.Func("out")
    c[i, j] = 0
    c[i, j] += a[i, k] * b[k, j]
    out[i, j] = sx.maximum(c[i, j], 0)
    u, v = ints(60, (7, 12), "int32"), ints(61, (12, 10), "int32")
    return Case(out, {"a": u, "b": v}, np.maximum(u @ v, 0))


def matrix_product_of_floats() -> Case:
    i, j = sx.vars("i j")
    a, b = sx.Input("a", sx.float32, 2), sx.Input("b", sx.float32, 2)
    k = sx.RDom("k", k=a.shape[1])
    c = sx.Func("c")
    c[i, j] = sx.sum(a[i, k] * b[k, j], over=k)
    u, v = floats(62, (6, 40)), floats(63, (40, 9))
    return Case(c, {"a": u, "b": v}, (u.astype(np.float64) @ v).astype(np.float32), rtol=1e-5, atol=1e-5)


def sieve() -> Case:
    """A scatter whose ranges are those of a nested loop, with a predicate on data-free indices."""
    i = sx.Var("i")
    r = sx.RDom("r", p=(2, 10), q=(2, 50), where=lambda r: r.p * r.q < 97)
    f = sx.Func("f", shape=(97,))
    f[i] = i >= 2
    f[sx.clip(r.p * r.q, 0, 96)] = sx.select(r.p * r.q < 97, False, True)
    prime = [n >= 2 and all(n % d for d in range(2, n)) for n in range(97)]
    return Case(f, {}, np.array(prime))


# ------------------------------------------------------------------------------- reductions and Monoids (2.7 and 2.8)


def sums() -> Case:
    """Result types are NumPy's: a sum of bytes is a uint64."""
    i = sx.Var("i")
    a, b = sx.Input("a", sx.uint8, 2), sx.Input("b", sx.int16, 2)
    r, q = sx.RDom("r", k=a.shape[1]), sx.RDom("q", k=b.shape[1])
    fs = tuple(sx.Func(n) for n in ("s", "p", "t", "n"))
    fs[0][i] = sx.sum(a[i, r.k], over=r)
    fs[1][i] = sx.prod(b[i, q.k], over=q)
    fs[2][i] = sx.sum(b[i, q.k], over=q, dtype=sx.int16)
    fs[3][i] = sx.sum(b[i, q.k] > 0, over=q)
    u, v = ints(64, (6, 33), "uint8"), ints(65, (6, 5), "int16")
    return Case(fs, {"a": u, "b": v}, (u.sum(1), v.prod(1), v.sum(1, dtype=np.int16), (v > 0).sum(1)))


def extremes() -> Case:
    """Ties go to the first; NaN wins."""
    i = sx.Var("i")
    a = sx.Input("a", sx.float32, 2)
    r = sx.RDom("r", k=(0, 31))
    names = ("min", "max", "argmin", "argmax")
    fs = tuple(sx.Func(f"f_{n}") for n in names)
    for f, n in zip(fs, names, strict=True):
        f[i] = getattr(sx, n)(a[i, r.k], over=r)
    v = ints(66, (8, 31), "int32", -4, 4).astype(np.float32)
    v[3, 7] = v[3, 20] = np.nan
    v[5, 0] = np.inf
    return Case(fs, {"a": v}, tuple(getattr(np, n)(v, axis=1) for n in names))


def argmin_of_two_variables() -> Case:
    """Over several variables a position is a tuple."""
    a = sx.Input("a", sx.int16, (9, 14))
    r = sx.RDom("r", y=9, x=14)
    f = sx.Func("f")
    f[()] = sx.argmin(a[r.y, r.x], over=r)
    v = ints(67, (9, 14), "int16", -40, 40)
    y, x = np.unravel_index(np.argmin(v), v.shape)
    return Case(f, {"a": v}, (np.int64(y), np.int64(x)))


def any_and_all() -> Case:
    i = sx.Var("i")
    a = sx.Input("a", sx.int32, 2)
    r = sx.RDom("r", k=a.shape[1])
    f, g = sx.Func("f"), sx.Func("g")
    f[i] = sx.any(a[i, r.k] == 0, over=r)
    g[i] = sx.all(a[i, r.k] > -4, over=r)
    v = ints(68, (20, 9), "int32", -4, 40)
    v[:5] = abs(v[:5])
    return Case((f, g), {"a": v}, ((v == 0).any(1), (v > -4).all(1)))


def mean_and_variance() -> Case:
    i = sx.Var("i")
    a, b = sx.Input("a", sx.float64, 2), sx.Input("b", sx.uint8, 2)
    r, q = sx.RDom("r", k=a.shape[1]), sx.RDom("q", k=b.shape[1])
    f, g, h = sx.Func("f"), sx.Func("g"), sx.Func("h")
    f[i] = sx.mean(a[i, r.k], over=r)
    g[i] = sx.var(a[i, r.k], over=r)
    h[i] = sx.mean(b[i, q.k], over=q)
    u, v = floats(69, (5, 41), "float64", 3, 5), ints(70, (5, 20), "uint8")
    return Case((f, g, h), {"a": u, "b": v}, (u.mean(1), u.var(1), v.mean(1)), rtol=1e-13)


def empty_reduction() -> Case:
    """A range that may be empty needs `initial`."""
    n = sx.Param("n", sx.int64, low=0, high=30)
    a = sx.Input("a", sx.int32, (30,))
    r = sx.RDom("r", k=n)
    f, g = sx.Func("f"), sx.Func("g")
    f[()] = sx.max(a[r.k], over=r, initial=-5)
    g[()] = sx.sum(a[r.k], over=r)
    v = ints(71, 30, "int32")
    return Case((f, g), {"a": v, "n": 0}, (np.int32(-5), np.int64(0)))


def softmax() -> Case:
    """Reductions inside a larger expression, each over the row."""
    i, j = sx.vars("i j")
    a = sx.Input("a", sx.float32, (None, 37))
    r = sx.RDom("r", j=37)
    top, e, f = sx.Func("top"), sx.Func("e"), sx.Func("f")
    top[i] = sx.max(a[i, r.j], over=r)
    e[i, j] = sx.exp(a[i, j] - top[i])
    f[i, j] = e[i, j] / sx.sum(e[i, r.j], over=r)
    v = floats(72, (5, 37), low=-5, high=5)
    d = np.exp(v.astype(np.float64) - v.max(1, keepdims=True))
    return Case(f, {"a": v}, (d / d.sum(1, keepdims=True)).astype(np.float32), rtol=1e-5)


def monoid_of_four_parts() -> Case:
    """A Monoid of tuples: the largest sum of a run of neighbours, in one pass."""
    i = sx.Var("i")
    a = sx.Input("a", sx.int64, 2)
    r = sx.RDom("r", k=a.shape[1])

    def combine(p: Any, q: Any) -> Any:
        (total, head, tail, best), (t, h, e, b) = p, q
        return (
            total + t,
            sx.maximum(head, total + h),
            sx.maximum(e, t + tail),
            sx.maximum(sx.maximum(best, b), tail + h),
        )

    none = sx.int64(-(10**12))
    runs = sx.Monoid("runs", combine, (sx.int64(0), none, none, none))
    one = a[i, r.k]
    f = sx.Func("f")
    f[i] = runs((one, one, one, one), over=r)[3]
    v = ints(73, (6, 40), "int64", -99, 99)
    wanted = [max(sum(row[p:q]) for p in range(40) for q in range(p + 1, 41)) for row in v.tolist()]
    return Case(f, {"a": v}, np.array(wanted, np.int64))


def monoid_of_affine_maps() -> Case:
    """A Monoid that does not commute keeps the order."""
    a = sx.Input("a", sx.uint32, (24, 2))
    r = sx.RDom("r", k=24)
    after = sx.Monoid(
        "after", lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (sx.uint32(1), sx.uint32(0)), commutes=False
    )
    f = sx.Func("f")
    f[()] = after((a[r.k, 0], a[r.k, 1]), over=r)
    v = ints(74, (24, 2), "uint32")
    m, c = 1, 0
    for p, q in v.tolist():
        m, c = m * p % 2**32, (c * p + q) % 2**32
    return Case(f, {"a": v}, (np.uint32(m), np.uint32(c)))


# -------------------------------------------------------------------------- inputs, tables, names, outputs (2.9-2.11)


def sizes_as_values() -> Case:
    """A size may stand in an index, a clip and a value."""
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.int32, 2)
    h, w = a.shape
    f = sx.Func("f", shape=(h, w))
    f[y, x] = a[h - 1 - y, sx.clip(x + 3, 0, w - 1)] + w
    v = ints(75, (6, 10), "int32", -99, 99)
    return Case(f, {"a": v}, v[::-1, np.minimum(np.arange(10) + 3, 9)] + np.int64(10))


def window_of_a_param() -> Case:
    """A Param that is a size, and one with a default."""
    x = sx.Var("x")
    n = sx.Param("n", sx.int64, low=2, high=4096)
    gain = sx.Param("gain", sx.float64, default=0.5)
    f = sx.Func("f", shape=(n,))
    f[x] = gain - 0.5 * sx.cos(2 * np.pi * x / (n - 1))
    return Case(f, {"n": 33}, np.hanning(33), rtol=1e-13, atol=1e-15)


def _padded(mode: str) -> Case:
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.int16, 2)
    h, w = a.shape
    p = sx.pad(a, mode)
    f = sx.Func("f", shape=(h + 4, w + 5))
    f[y, x] = p[y - 2, x - 3]
    v = ints(76, (5, 6), "int16")
    return Case(f, {"a": v}, np.pad(v, ((2, 2), (3, 2)), mode=mode))  # type: ignore[call-overload]


def pad_constant() -> Case:
    return _padded("constant")


def pad_edge() -> Case:
    return _padded("edge")


def pad_reflect() -> Case:
    return _padded("reflect")


def pad_symmetric() -> Case:
    return _padded("symmetric")


def pad_wrap() -> Case:
    return _padded("wrap")


def pad_one_axis() -> Case:
    """Only the named axes are extended; a value other than 0."""
    c, x = sx.vars("c x")
    a = sx.Input("a", sx.uint8, 2)
    p = sx.pad(a, "constant", axes=(1,), value=9)
    f = sx.Func("f", shape=(a.shape[0], a.shape[1] + 2))
    f[c, x] = p[c, x - 1] + p[c, x]
    v = ints(77, (3, 8), "uint8")
    w = np.pad(v, ((0, 0), (2, 2)), constant_values=9)
    return Case(f, {"a": v}, w[:, 1:-1] + w[:, 2:])


def lookup_table() -> Case:
    """A table that is a Func, read at data of one byte."""
    y, x, i = sx.vars("y x i")
    a = sx.Input("a", sx.uint8, 2)
    lut, f = sx.Func("lut"), sx.Func("f")
    lut[i] = sx.cast(i * i // 255, sx.uint8)
    f[y, x] = lut[a[y, x]]
    v = ints(78, (9, 13), "uint8")
    return Case(f, {"a": v}, (np.arange(256) ** 2 // 255).astype(np.uint8)[v])


def constant_table() -> Case:
    """An array that is part of the program, read at a clipped index."""
    x = sx.Var("x")
    a = sx.Input("a", sx.int32, 1)
    t = np.array([[1, -2, 3], [40, 50, -60]], np.int16)
    table = sx.Const("table", t)
    f = sx.Func("f")
    f[x] = table[x % 2, sx.clip(a[x], 0, 2)] * 3
    v = ints(79, 31, "int32", -5, 6)
    return Case(f, {"a": v}, t[np.arange(31) % 2, np.clip(v, 0, 2)] * np.int16(3))


def gather_of_a_float() -> Case:
    """A float cast to an index, NaN and all, bounded by a clip."""
    x = sx.Var("x")
    a, t = sx.Input("a", sx.float32, 1), sx.Input("t", sx.int32, (11,))
    f = sx.Func("f")
    f[x] = t[sx.clip(sx.cast(a[x] * 10, sx.int32), 0, 10)]
    v = np.append(floats(80, 40, low=-0.5, high=1.5), np.float32(np.nan)).astype(np.float32)
    w = ints(81, 11, "int32")
    scaled = np.nan_to_num(v * np.float32(10))
    return Case(f, {"a": v, "t": w}, w[np.clip(scaled.astype(np.int32), 0, 10)])


def one_name_for_two() -> Case:
    """Two Funcs may have one name, and an Input that of a Func or a Var."""
    x = sx.Var("x")
    a = sx.Input("x", sx.int32, 1)
    f, g = sx.Func("f"), sx.Func("f")
    f[x] = a[x] + 1
    g[x] = f[x] * a[x]
    v = ints(82, 14, "int32", -99, 99)
    return Case(g, {"x": v}, (v + 1) * v)


def odd_names() -> Case:
    """A name is text: what it says is no matter."""
    x = sx.Var("for")
    a = sx.Input("a", sx.int32, 1)
    f, g = sx.Func("a b"), sx.Func('déjà\n"vu"')
    f[x] = a[x] + 1
    g[x] = f[x] + f[x + 1]
    v = ints(83, 14, "int32", -99, 99)
    return Case(g, {"a": v}, v[:-1] + v[1:] + np.int32(2))


def several_outputs() -> Case:
    """Outputs of other types, sizes and ranks; one is read by another."""
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.int32, 2)
    r = sx.RDom("r", y=a.shape[0], x=a.shape[1])
    total, p, q = sx.Func("total"), sx.Func("p"), sx.Func("q")
    total[()] = sx.sum(a[r.y, r.x], over=r)
    p[y, x] = a[y, x] * 2
    q[x, y] = p[y, x] + p[y, x + 1]
    v = ints(84, (5, 8), "int32", -99, 99)
    w = v * 2
    return Case((total, p, q), {"a": v}, (v.sum(), w, (w[:, :-1] + w[:, 1:]).T))


def histogram_equalisation() -> Case:
    """Scatter, recurrence and gather in one program."""
    y, x, i = sx.vars("y x i")
    a = sx.Input("a", sx.uint8, 2)
    h, w = a.shape
    r = sx.RDom("r", y=h, x=w)
    count, total, f = sx.Func("count", shape=(256,)), sx.Func("total", shape=(256,)), sx.Func("f")
    count[i] = 0
    count[a[r.y, r.x]] += 1
    total[0] = count[0]
    total[i] = total[i - 1] + count[i]
    f[y, x] = sx.cast(total[a[y, x]] * 255 // (h * w), sx.uint8)
    v = ints(85, (12, 15), "uint8", 30, 90)
    c = np.cumsum(np.bincount(v.reshape(-1), minlength=256))
    return Case(f, {"a": v}, (c * 255 // v.size).astype(np.uint8)[v])


def blur_of_bytes() -> Case:
    """The first program of everybody: two passes of three taps."""
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.uint16, 2)
    bx, by = sx.Func("bx"), sx.Func("by")
    bx[y, x] = (a[y, x] + a[y, x + 1] + a[y, x + 2]) // 3
    by[y, x] = (bx[y, x] + bx[y + 1, x] + bx[y + 2, x]) // 3
    v = ints(86, (14, 21), "uint16")
    h = (v[:, :-2] + v[:, 1:-1] + v[:, 2:]) // np.uint16(3)
    return Case(by, {"a": v}, (h[:-2] + h[1:-1] + h[2:]) // np.uint16(3))


def pyramid() -> Case:
    """Halve twice and read up again, at floored indices."""
    x = sx.Var("x")
    a = sx.Input("a", sx.int32, 1)
    d1, d2, f = sx.Func("d1"), sx.Func("d2"), sx.Func("f", shape=(20,))
    d1[x] = a[2 * x] + a[2 * x + 1]
    d2[x] = d1[2 * x] - d1[2 * x + 1]
    f[x] = d2[x // 4] * 100 + d1[x // 2]
    v = ints(87, 20, "int32", -99, 99)
    p = v[::2] + v[1::2]
    q = p[::2] - p[1::2]
    return Case(f, {"a": v}, np.repeat(q, 4) * np.int32(100) + np.repeat(p, 2))


def mandelbrot() -> Case:
    """A recurrence of three parts, and how long it stays small."""
    t, y, x = sx.vars("t y x")
    z = sx.Func("z", dtype=(sx.float64, sx.float64, sx.int32), shape=(25, 12, 16), fp="strict")
    cr, ci = x / 8 - 1.5, y / 6 - 1.0
    z[0, y, x] = (0.0, 0.0, 0)
    re, im, n = z[t - 1, y, x]
    out = re * re + im * im > 4
    z[t, y, x] = (
        sx.select(out, re, re * re - im * im + cr),
        sx.select(out, im, 2 * re * im + ci),
        sx.select(out, n, n + 1),
    )
    f = sx.Func("f", shape=(12, 16))
    f[y, x] = z[24, y, x][2]
    j, i = np.mgrid[:12, :16]
    c = (i / 8 - 1.5, j / 6 - 1.0)
    p, q, k = np.zeros((12, 16)), np.zeros((12, 16)), np.zeros((12, 16), np.int32)
    for _ in range(24):
        stay = p * p + q * q <= 4
        p, q, k = np.where(stay, p * p - q * q + c[0], p), np.where(stay, 2 * p * q + c[1], q), k + stay
    return Case(f, {}, k.astype(np.int32))


def empty_array() -> Case:
    """No elements in, none out."""
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.int32, 2)
    f = sx.Func("f")
    f[y, x] = a[y, x] + 1
    return Case(f, {"a": np.zeros((0, 5), np.int32)}, np.zeros((0, 5), np.int32))


def strided_arrays() -> Case:
    """Negative, zero and Fortran strides are only layout."""
    y, x = sx.vars("y x")
    a, b, c = (sx.Input(n, sx.int32, 2) for n in "abc")
    f = sx.Func("f")
    f[y, x] = a[y, x] * 100 + b[y, x] * 10 + c[y, x]
    v = ints(88, (6, 9), "int32", 0, 9)
    args = {"a": v[::-1, ::-1], "b": np.broadcast_to(v[0], (6, 9)), "c": np.asfortranarray(v)}
    return Case(f, args, args["a"] * 100 + args["b"] * 10 + args["c"])


PROGRAMS: tuple[Callable[[], Case], ...] = (
    transpose, negative_indices, leading_dims, uint8_wraps, promotion, true_division, index_numbers, floor_division,
    division_by_a_number, shifts, smallest_integer, bools, unsigned_and_signed_compare, float_to_integer,
    minimum_and_maximum, fixed_point, signed_fixed_point, half_precision, select_of_many, choose_of_tuples,
    arms_bound_reads, interleave, powers, functions_of_float32, functions_of_float64, functions_of_bytes, rounding,
    kinds_of_floats, bits, strict_floats, contraction, declared_dtype, weak_definition, prefix_sum, suffix_product,
    fibonacci, edit_distance, heat, seidel, filter_both_ways, leapfrog, histogram, histogram_in_part, hashed_scatter,
    pure_update, row_update, scan_in_place, two_updates, largest_and_where, swap_of_tuple, window_sum,
    predicate_keeps_reads_inside, triangle, range_up_to_a_var, matrix_product, matrix_product_of_floats, sieve, sums,
    extremes, argmin_of_two_variables, any_and_all, mean_and_variance, empty_reduction, softmax, monoid_of_four_parts,
    monoid_of_affine_maps, sizes_as_values, window_of_a_param, pad_constant, pad_edge, pad_reflect, pad_symmetric,
    pad_wrap, pad_one_axis, lookup_table, constant_table, gather_of_a_float, one_name_for_two, odd_names,
    several_outputs, histogram_equalisation, blur_of_bytes, pyramid, mandelbrot, empty_array, strided_arrays,
)  # fmt: skip
