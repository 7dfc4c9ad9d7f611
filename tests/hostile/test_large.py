"""Programs and arrays larger than usual: no recursion limit, nothing exponential, no 32-bit index."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.errors import DeviceError, StaxError

y, x = sx.vars("y x")


def within(seconds: float, work: Callable[[], Any]) -> Any:
    """Return what `work` gives, in at most so many seconds of CPU time; twice the bar, as machines are shared."""
    start = time.process_time()
    found = work()
    assert time.process_time() - start < 2 * seconds
    return found


def uncached() -> sx.Options:
    return sx.Options(cache=False, strict_native=True)


def test_an_expression_5000_deep() -> None:
    a, f = sx.Input("a", sx.float32, 1), sx.Func("f", fp="strict")
    e = a[x]
    for k in range(5000):
        e = e * np.float32(0.999) + np.float32(k % 3)
    f[x] = e
    v = np.arange(20, dtype=np.float32)
    found = within(4, lambda: sx.compile(f, options=uncached())(v))
    for k in range(5000):
        v = v * np.float32(0.999) + np.float32(k % 3)
    np.testing.assert_array_equal(found, v)


@pytest.mark.slow
def test_a_sum_of_2000_terms() -> None:
    a, f = sx.Input("a", sx.int32, 1), sx.Func("f")
    e: Any = 0
    for k in range(2000):
        e = e + a[x + k] * k
    f[x] = e
    v = np.arange(2100, dtype=np.int32)
    wanted = np.asarray(sum(v[k : k + 101] * k for k in range(2000)), np.int32)
    np.testing.assert_array_equal(within(8, lambda: sx.compile(f, options=uncached())(v)), wanted)


def test_a_select_of_1000_arms() -> None:
    a, f = sx.Input("a", sx.int64, 1), sx.Func("f")
    arms: list[Any] = []
    for k in range(1000):
        arms += [a[x] == k, k * k]
    f[x] = sx.select(*arms, -1)
    v = np.arange(-3, 1003)
    wanted = np.where((v >= 0) & (v < 1000), v * v, -1)
    np.testing.assert_array_equal(within(8, lambda: sx.compile(f, options=uncached())(v)), wanted)


def test_a_chain_of_5000_funcs() -> None:
    a, f = sx.Input("a", sx.int32, 1), sx.Func("f0")
    f[x] = a[x]
    for k in range(5000):
        g = sx.Func(f"f{k + 1}")
        g[x] = f[x] ^ k
        f = g
    v = np.arange(33, dtype=np.int32)
    wanted = v.copy()
    for k in range(5000):
        wanted ^= k
    np.testing.assert_array_equal(within(12, lambda: sx.compile(f, options=uncached())(v)), wanted)


def test_2000_funcs_read_by_one() -> None:
    a, out = sx.Input("a", sx.int32, 1), sx.Func("out")
    e: Any = 0
    for k in range(2000):
        f = sx.Func(f"f{k}")
        f[x] = a[x] * k + 1
        e = e ^ f[x]
    out[x] = e
    v = np.arange(40, dtype=np.int32)
    wanted = np.bitwise_xor.reduce([v * k + 1 for k in range(2000)]).astype(np.int32)
    np.testing.assert_array_equal(within(15, lambda: sx.compile(out, options=uncached())(v)), wanted)


@pytest.mark.slow
def test_200_stored_stages() -> None:
    a, f = sx.Input("a", sx.int32, 2), sx.Func("f0")
    f[y, x] = a[y, x]
    for k in range(200):
        g = sx.Func(f"f{k + 1}")
        g[y, x] = f[y, x] + 3 * f[y, x + 1] ^ f[y + 1, x]
        f = g
    s = sx.Schedule(f)
    for k in range(200):
        s[f"f{k}"].compute_root()
    v = np.arange(210 * 215, dtype=np.int32).reshape(210, 215)
    wanted = v
    for _ in range(200):
        wanted = wanted[:-1, :-1] + 3 * wanted[:-1, 1:] ^ wanted[1:, :-1]
    np.testing.assert_array_equal(within(6, lambda: sx.compile(f, s, options=uncached())(v)), wanted)


def test_a_doubling_chain_of_24_stages_in_2_dims() -> None:
    a, f = sx.Input("a", sx.int32, 2), sx.Func("f0")
    f[y, x] = a[y, x] * 3 + 1
    for k in range(24):
        g = sx.Func(f"f{k + 1}")
        g[y, x] = f[y, x] + (f[y, x + 1] if k % 2 else f[y + 1, x])
        f = g
    v = np.arange(40 * 50, dtype=np.int32).reshape(40, 50)
    wanted = v * 3 + 1
    for k in range(24):
        wanted = wanted[:, :-1] + wanted[:, 1:] if k % 2 else wanted[:-1] + wanted[1:]
    np.testing.assert_array_equal(within(8, lambda: sx.compile(f, options=uncached())(v)), wanted)


def test_a_shared_expression_is_not_a_tree() -> None:
    """2**64 leaves as a tree, 64 nodes as it is written."""
    a, f = sx.Input("a", sx.uint32, 1), sx.Func("f")
    e = a[x]
    for _ in range(64):
        e = e * e + e
    f[x] = e
    v = wanted = np.arange(20, dtype=np.uint32)
    for _ in range(64):
        wanted = wanted * wanted + wanted
    np.testing.assert_array_equal(within(2, lambda: sx.compile(f, options=uncached())(v)), wanted)


def test_many_dims_inputs_and_outputs() -> None:
    names = sx.vars(" ".join(f"i{k}" for k in range(12)))
    a, f = sx.Input("a", sx.int16, 12), sx.Func("f")
    f[names] = a[names] + 1
    v = np.arange(2**12, dtype=np.int16).reshape((2,) * 12)
    np.testing.assert_array_equal(sx.compile(f, strict_native=True)(v), v + 1)
    inputs = [sx.Input(f"a{k}", sx.int32, 1) for k in range(40)]
    outs = tuple(sx.Func(f"o{k}") for k in range(40))
    for k, out in enumerate(outs):
        out[x] = inputs[k][x] - inputs[-1 - k][x]
    given = [np.arange(9, dtype=np.int32) * k for k in range(40)]
    found = sx.compile(outs, strict_native=True)(*given)
    assert all((o == given[k] - given[-1 - k]).all() for k, o in enumerate(found))


def test_the_recursion_limit_is_never_reached_or_moved() -> None:
    limit = sys.getrecursionlimit()
    f = sx.Func("f")
    e = sx.cast(x, sx.int32)
    for k in range(1000):
        e = sx.select(e > k, e - 1, e + 2) if k % 2 else -e
    f[x] = e
    assert sx.compile(f, options=uncached())(shape=(3,)).shape == (3,)
    assert len(repr(e)) < 100_000
    assert sys.getrecursionlimit() == limit


def test_an_output_that_memory_cannot_hold_is_refused_before_anything_runs() -> None:
    f = sx.Func("f")
    f[y, x] = sx.cast(y + x, sx.uint8)
    kernel = sx.compile(f, strict_native=True)
    for shape in ((2**40, 2**10), (2**62, 1), (2**31, 2**31), (2**63 - 1, 2)):
        with pytest.raises(DeviceError, match="there is no memory for output `f`"):
            kernel(shape=shape)


def test_storage_that_memory_cannot_hold_is_an_error_and_no_signal() -> None:
    """A stage of 2**60 elements behind an output of one."""
    n, f, g = sx.Param("n", sx.int64), sx.Func("f"), sx.Func("g")
    f[x] = x * 3
    g[y] = f[0] + f[n]
    s = sx.Schedule(g)
    s[f].compute_root()
    kernel = sx.compile(g, s, strict_native=True)
    assert kernel(7, shape=(1,)).tolist() == [21]
    for size in (2**60 - 1, 2**61, 2**62, 2**63 - 1):
        with pytest.raises(StaxError):
            kernel(size, shape=(1,))


def test_zero_strides_of_2_to_the_31_elements() -> None:
    """An input that claims 2**31 + 5 columns in one row of memory; its last are read."""
    a, f = sx.Input("a", sx.uint8, 2), sx.Func("f")
    n = 2**31 + 5
    f[y, x] = a[y, a.shape[1] - 1 - x] + 1
    wide = np.lib.stride_tricks.as_strided(np.arange(3, dtype=np.uint8), (3, n), (1, 0))
    found = sx.compile(f, strict_native=True)(wide, shape=(3, 4))
    assert found.tolist() == [[1] * 4, [2] * 4, [3] * 4]
    r, s = sx.RDom("r", x=(n - 3, a.shape[1])), sx.Func("s")
    s[y] = sx.int64(0)
    s[y] += a[y, r]
    assert sx.compile(s, strict_native=True)(wide).tolist() == [0, 3, 6]


@pytest.mark.slow
def test_arrays_of_more_than_2_to_the_31_elements() -> None:
    """One dim of 2**31 + 5000, and two dims whose product is more; 4.5 GB."""
    a, f = sx.Input("a", sx.uint8, 1), sx.Func("f")
    f[x] = a[x] ^ 0x5A
    n = 2**31 + 5000
    v = np.zeros(n, np.uint8)
    v[[0, 1, 2**31 - 1, 2**31, n - 1]] = [1, 2, 3, 4, 5]
    found = sx.compile(f, strict_native=True)(v)
    assert found[[0, 1, 2**31 - 1, 2**31, n - 1]].tolist() == [k ^ 0x5A for k in (1, 2, 3, 4, 5)]
    assert found[2**31 - 5000 : 2**31 - 1].tolist() == [0x5A] * 4999
    b, g = sx.Input("b", sx.uint8, 2), sx.Func("g")
    g[y, x] = b[y, x] + 1
    w = v[: 46341 * 46341].reshape(46341, 46341)
    sx.compile(g, strict_native=True)(w, out=found[: 46341 * 46341].reshape(46341, 46341))
    assert found[[0, 1, 5000]].tolist() == [2, 3, 1]
    assert found[: 46341 * 46341][-1] == w[-1, -1] + 1
