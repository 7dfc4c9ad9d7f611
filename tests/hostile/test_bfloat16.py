"""bfloat16 from end to end: hostile values, conversions, layouts, and programs without the package that knows it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax import dtypes
from stax.errors import ArgumentError, StaxError
from stax.expr import bfloat16
from stax.loops.interpret import interpret as run_loops
from stax.testing import interpret

ml_dtypes = pytest.importorskip("ml_dtypes")
BF16 = np.dtype(ml_dtypes.bfloat16)
x, y = sx.vars("x y")
EVERY = np.arange(2**16, dtype=np.uint32).astype(np.uint16)
OTHERS = [t for t in dtypes.ALL if t != dtypes.bfloat16]


def hostile(dtype: dtypes.DType) -> np.ndarray[Any, Any]:
    """Return values of a type at the edges of ranges and of rounding, 1,003 of them."""
    rng = np.random.default_rng(dtype.bits)
    if dtype.is_bool:
        return rng.integers(0, 2, 1003).astype(bool)
    if dtype.is_integer:
        edges = [dtype.low, dtype.high, 0, 1, min(dtype.high, 257), min(dtype.high, 2**24 + 1)]
        found = rng.integers(dtype.low, dtype.high, 1003, dtype=dtype.dtype, endpoint=True)
        found[: len(edges)] = edges
        return found
    wild = rng.integers(0, 2**dtype.bits, 1003, np.uint64).astype(f"u{dtype.bits // 8}").view(dtype.dtype)
    with np.errstate(all="ignore"):
        ties = (1 + (np.arange(64) * 2 + 1) * 2.0**-8 + np.tile([-(2.0**-30), 0, 2.0**-30, 0], 16)).astype(dtype.dtype)
        wild[:64] = ties
        wild[64:74] = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3.39e38, 1e-40, 65504, 2**31, -(2.0**63)]).astype(
            dtype.dtype
        )
    return wild


def same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if not dtypes.as_dtype(a.dtype).is_float:
        return np.array_equal(a, b)
    bits = f"u{a.dtype.itemsize}"
    return bool(((a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))).all())


def everywhere(f: sx.Func, **given: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return what the oracle gives, after machine code and the loop interpreter have given the same."""
    wanted = interpret(f, given)
    kernel = sx.compile(f, strict_native=True)
    found = kernel(**given)
    assert same(found, wanted), (found, wanted)
    assert kernel.build.program is not None
    program = kernel.build.program()
    out = np.zeros_like(wanted)
    arrays = {**given, f.name: out}
    sizes = {(name, d): n for name, array in arrays.items() for d, n in enumerate(array.shape)}
    run_loops(program, arrays, {}, sizes)
    assert same(out, wanted)
    return wanted


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_conversions_from_every_type(other: dtypes.DType) -> None:
    a, f = sx.Input("a", other, 1), sx.Func("f")
    f[x] = sx.cast(a[x], sx.bfloat16)
    found = everywhere(f, a=hostile(other))
    if other.is_float:
        assert same(found, bfloat16.bits_of(hostile(other).astype(np.float64)).view(BF16))


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_conversions_to_every_type_of_all_there_are(other: dtypes.DType) -> None:
    a, f = sx.Input("a", sx.bfloat16, 1), sx.Func("f")
    f[x] = sx.cast(a[x], other)
    everywhere(f, a=EVERY.view(BF16))


@pytest.mark.parametrize(
    "word",
    [
        lambda a, b: a + b, lambda a, b: a * b - a, lambda a, b: a / b, lambda a, b: a // b, lambda a, b: a % b,
        sx.minimum, sx.maximum, lambda a, b: abs(a) - -b, lambda a, b: sx.select(a < b, a, b), sx.copysign,
        lambda a, b: sx.floor(a) + sx.rint(b), lambda a, b: sx.sqrt(a) + sx.exp(b), sx.pow, sx.absd,
        lambda a, b: sx.select((a == b) | sx.isnan(a), 1.5, b),
    ],
)  # fmt: skip
@pytest.mark.parametrize("fp", ["default", "strict"])
def test_operators_on_hostile_values(word: Any, fp: str) -> None:
    a, b, f = sx.Input("a", sx.bfloat16, 1), sx.Input("b", sx.bfloat16, 1), sx.Func("f", fp=fp)
    f[x] = word(a[x], b[x])
    given = hostile(dtypes.bfloat16)
    everywhere(f, a=given, b=np.roll(given, 7))


def test_a_definition_is_computed_in_float32_and_rounded_once() -> None:
    a, once, each = sx.Input("a", sx.bfloat16, 1), sx.Func("once"), sx.Func("each", fp="strict")
    once[x] = a[x] * a[x] * a[x] - a[x]
    each[x] = a[x] * a[x] * a[x] - a[x]
    given = np.linspace(0.1, 3, 50).astype(BF16)
    wide = given.astype(np.float32)
    assert same(everywhere(once, a=given), (wide * wide * wide - wide).astype(BF16))
    assert same(everywhere(each, a=given), given * given * given - given)


def test_sums_accumulate_in_float32() -> None:
    a, f, r = sx.Input("a", sx.bfloat16, 2), sx.Func("f"), sx.RDom("r", k=5000)
    f[y] = sx.sum(a[y, r], over=r)
    assert everywhere(f, a=np.full((3, 5000), 1.0, BF16)).astype(np.float32).tolist() == [4992.0] * 3
    top = sx.Func("top")
    top[y] = sx.max(a[y, r], over=r, initial=-sx.inf)
    everywhere(top, a=np.resize(hostile(dtypes.bfloat16)[100:], (3, 5000)))


def test_updates_tuples_and_recurrences() -> None:
    a = sx.Input("a", sx.bfloat16, 1)
    r, h = sx.RDom("r", i=a.shape[0]), sx.Func("h", dtype=sx.bfloat16, shape=(8,))
    h[x] = 0
    h[r.i % 8] += a[r.i]
    everywhere(h, a=np.linspace(-3, 9, 100).astype(BF16))
    u = sx.Func("u", shape=a.shape)
    u[0] = a[0]
    u[x] = u[x - 1] * 0.5 + a[x]
    everywhere(u, a=np.linspace(-3, 9, 100).astype(BF16))


def test_layouts_params_and_tables() -> None:
    a, k = sx.Input("a", sx.bfloat16, 2), sx.Param("k", sx.bfloat16)
    t, f = sx.Const("t", np.linspace(0, 1, 4).astype(BF16)), sx.Func("f")
    f[y, x] = a[y, x] * k + t[x % 4]
    kernel = sx.compile(f, strict_native=True)
    plain = np.linspace(-2, 7, 11 * 13).astype(BF16).reshape(11, 13)
    wanted = interpret(f, {"a": plain, "k": 0.3})
    room = np.zeros(2 * plain.nbytes + 3, np.uint8)
    odd = room[1 : 1 + plain.nbytes].view(BF16).reshape(plain.shape)
    odd[...] = plain
    wide = np.repeat(np.repeat(plain, 2, 0), 3, 1)[::2, ::3]
    for given in (plain, odd, wide, np.asfortranarray(plain), plain[::-1][::-1]):
        assert same(kernel(given, k=0.3), wanted)
        assert same(kernel(given.view(np.uint16) if given.flags.c_contiguous else given, k=0.3), wanted)
    assert same(kernel(plain[::-1, ::-1], k=0.3), interpret(f, {"a": plain[::-1, ::-1], "k": 0.3}))


def test_bits_in_uint16_go_in_and_out() -> None:
    a, f = sx.Input("a", sx.bfloat16, 1), sx.Func("f")
    f[x] = a[x] * 2
    kernel, out = sx.compile(f, strict_native=True), np.zeros(3, np.uint16)
    assert kernel(np.array([0x3F80, 0xC000, 0x7F80], np.uint16), out=out) is out
    assert [hex(v) for v in out.tolist()] == ["0x4000", "0xc080", "0x7f80"]
    with pytest.raises(ArgumentError, match="`a` has type float16, and the kernel takes bfloat16"):
        kernel(np.zeros(3, np.float16))
    with pytest.raises(ArgumentError, match="has type uint8"):
        kernel(np.zeros(3, np.uint8))


def test_types_meet_as_the_package_says_and_as_float16_where_it_does_not() -> None:
    a = sx.Input("a", sx.bfloat16, 1)
    for other in OTHERS:
        b = sx.Input("b", other, 1)
        found = (a[x] * b[x]).dtype
        try:
            assert found == np.promote_types(BF16, other.dtype)
        except TypeError:
            half = np.promote_types(np.float16, other.dtype)
            assert found == (np.float32 if other == np.float16 or half == np.float16 else half)
    assert (a[x] + 1).dtype == (a[x] * 2.5).dtype == (a[x] / 3).dtype == sx.bfloat16
    assert (a[x] * BF16.type(2)).dtype == sx.bfloat16
    assert (a[x] * np.float32(2)).dtype == sx.float32
    assert sx.sqrt(a[x]).dtype == sx.bfloat16


def test_the_type_equals_what_names_it_and_nothing_else() -> None:
    assert sx.bfloat16 == BF16
    assert np.dtype(sx.bfloat16) == BF16
    assert sx.bfloat16 not in (np.uint16, np.float16, sx.float16, "uint16")
    assert dtypes.as_dtype("bfloat16") is dtypes.as_dtype(BF16) is sx.bfloat16
    assert len({sx.bfloat16, BF16, sx.uint16}) == 2
    assert repr(sx.bfloat16(1.5)) == repr(BF16.type(1.5))


def test_what_does_not_convert_by_itself_is_refused() -> None:
    a, f = sx.Input("a", sx.bfloat16, 1), sx.Func("f", dtype=sx.int32)
    with pytest.raises(StaxError, match="bfloat16"):
        f[x] = a[x]
    k = sx.Param("k", sx.bfloat16)
    g = sx.Func("g")
    g[x] = a[x] * k
    with pytest.raises(ArgumentError, match="does not fit into bfloat16"):
        sx.compile(g)(np.zeros(2, BF16), k=10**39)


def test_without_the_package_arrays_are_bits() -> None:
    code = """
import sys
sys.modules["ml_dtypes"] = None
import numpy as np, stax as sx
from stax.testing import interpret
x, a, f = sx.Var("x"), sx.Input("a", sx.bfloat16, 1), sx.Func("f")
f[x] = a[x] + 1
bits = np.array([0x3F80, 0x4000], np.uint16)
for found in (interpret(f, {"a": bits}), sx.compile(f, strict_native=True)(bits)):
    print(found.dtype, [hex(v) for v in found.tolist()], end=" ")
print(sx.bfloat16 == np.uint16, hash(sx.bfloat16) is not None)
try:
    sx.bfloat16(1)
except TypeError as error:
    print(error)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == (
        "uint16 ['0x4000', '0x4040'] uint16 ['0x4000', '0x4040'] False True\n"
        "NumPy has no bfloat16 without the package ml_dtypes; sx.cast(..., sx.bfloat16) makes one\n"
    )


def test_importing_stax_does_not_load_the_package() -> None:
    code = "import sys, stax; print('ml_dtypes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
