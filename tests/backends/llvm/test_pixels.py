"""Arrays whose last dimension is a few channels: lanes are points, and all channels are stored at once."""

from __future__ import annotations

import re

import numpy as np
import pytest

import stax as sx

y, x, c = sx.vars("y x c")


def shifted(dtype: sx.dtypes.DType, channels: int) -> sx.Func:  # pyright: ignore
    a, f = sx.Input("a", dtype, (None, None, channels)), sx.Func("f")
    f[y, x, c] = a[y, x, c] + a[y, x + 1, c]
    return f


@pytest.mark.parametrize("channels", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "int64"])
def test_channels_are_stored_at_once(channels: int, dtype: str) -> None:
    kernel = sx.compile(shifted(getattr(sx, dtype), channels), strict_native=True)
    a = np.arange(5 * 150 * channels).reshape(5, 150, channels).astype(dtype)
    np.testing.assert_array_equal(kernel(a), a[:, :-1] + a[:, 1:])
    wide = [int(n) for n in re.findall(r"store <(\d+) x ", kernel.source("llvm"))]
    assert any(n % channels == 0 and n > 8 for n in wide)


def test_arrays_that_are_not_packed_have_a_version_of_their_own() -> None:
    kernel = sx.compile(shifted(sx.uint8, 3), strict_native=True)
    whole = np.arange(7 * 90 * 4, dtype=np.uint8).reshape(7, 90, 4)
    for a in (whole[..., :3], whole[..., :3].copy(), whole[:, ::2, 1:], whole[:, :, ::-1][..., 1:], whole[:0, :, 1:]):
        np.testing.assert_array_equal(kernel(a), a[:, :-1] + a[:, 1:])
    assert any("last dimension of a has 3" in guard for guard in kernel.guards)
    assert not all("last dimension of a has 3" in guard for guard in kernel.guards)


@pytest.mark.parametrize("width", range(1, 40, 3))
def test_rows_that_do_not_fill_lanes_are_whole(width: int) -> None:
    a = np.random.default_rng(width).integers(0, 256, (3, width, 3), dtype=np.uint8)
    out = np.full((3, width + 1, 3), 7, np.uint8)
    sx.compile(shifted(sx.uint8, 3), strict_native=True)(a, out=out[:, : width - 1])
    np.testing.assert_array_equal(out[:, : width - 1], a[:, :-1] + a[:, 1:])
    assert (out[:, width - 1 :] == 7).all()


def test_a_smaller_box_leaves_channels_out() -> None:
    """The channels of an output that declares no shape are what the call asks for."""
    a = np.arange(4 * 70 * 3, dtype=np.uint8).reshape(4, 70, 3)
    got = sx.compile(shifted(sx.uint8, 3), strict_native=True)(a, shape=(4, 69, 2))
    np.testing.assert_array_equal(got, (a[:, :-1] + a[:, 1:])[..., :2])


def test_channels_that_read_each_other_are_stored_in_order() -> None:
    """An update in place reads what the channel before has written: nothing is stored at once."""
    f, r = sx.Func("f", shape=(3, 40, 3)), sx.RDom("r", k=(1, 3))
    f[y, x, c] = sx.cast(x + c, sx.int32)
    f[y, x, r.k] = f[y, x, r.k] + f[y, x, r.k - 1]
    s = sx.Schedule(f)
    s[f].update(0).vectorize(x, 8).unroll("r.k").reorder("x", "r.k", "x.in")
    got = sx.compile(f, s, strict_native=True)()
    want = np.broadcast_to(np.arange(40)[:, None] + np.arange(3), (3, 40, 3)).cumsum(-1)
    np.testing.assert_array_equal(got, want)
