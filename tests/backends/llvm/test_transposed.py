"""Copies that turn an array over: tiles are loaded row by row, turned in registers and stored row by row."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx


def packed(dtype: sx.DType, side: int) -> tuple[sx.Func, sx.Schedule]:
    """Return sums along columns, of a copy whose columns are rows."""
    y, x = sx.vars("y x")
    a, f = sx.Input("a", dtype, 2), sx.Func("f")
    f[y, x] = a[y, x] + a[y + 1, x]
    s = sx.Schedule(f)
    s[a].cache_read("turned", f)
    turned = s["turned"].compute_root().layout(("d1", "d0"))
    turned.split("d0", "d0", "di", side).split("d1", "d1", "dj", side).reorder("d0", "d1", "dj", "di")
    turned.unroll("dj").vectorize("di")
    return f, s


@pytest.mark.parametrize("dtype", [sx.float32, sx.int16, sx.float64])
@pytest.mark.parametrize("side", [4, 8, 16])
def test_values_stay_at_every_size(dtype: sx.DType, side: int) -> None:
    k = sx.compile(*packed(dtype, side), strict_native=True)
    rng = np.random.default_rng(0)
    for shape in ((2, 1), (17, 16), (33, 48), (40, 37)):
        a = rng.integers(0, 99, shape).astype(dtype.name)
        np.testing.assert_array_equal(k(a), a[:-1] + a[1:])


def test_a_tile_is_loaded_by_rows() -> None:
    """As many loads of whole vectors as the tile has rows, and shuffles, not lanes put in one by one."""
    text = sx.compile(*packed(sx.float32, 8), strict_native=True).source("llvm")
    assert text.count("shufflevector <8 x float>") >= 24
    assert text.count("load <8 x float>") >= 8


def test_what_the_loop_stores_to_is_not_loaded_ahead() -> None:
    """Each column depends on the one before, in the same array: tiles would see what is not there yet."""
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.float32, 2)
    f = sx.Func("f", shape=a.shape)
    f[y, 0] = a[y, 0]
    f[y, x] = f[y, x - 1] + a[y, x]
    s = sx.Schedule(f)
    s[f].split("y", "yo", "yi", 8).split("x", "xo", "xi", 8).reorder("yo", "xo", "xi", "yi").unroll("xi").vectorize(
        "yi"
    )
    v = np.random.default_rng(1).integers(0, 9, (19, 43)).astype(np.float32)
    np.testing.assert_array_equal(sx.compile(f, s, strict_native=True)(v), np.cumsum(v, axis=1))
