"""Every extent from 0 to 17 in every dim: below a vector, below a tile, and just above both.

Each program is compiled once a schedule and called on every shape; nothing but machine code is asked.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.testing import interpret

EXTENTS = range(18)
Array = np.ndarray[Any, Any]
y, x, k = sx.vars("y x k")


def ints(*shape: int) -> Array:
    return (np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape) * 7919 % 1009 - 500).astype(np.int32)


def kernels(f: Any, *schedules: Callable[[sx.Schedule], object]) -> list[sx.Kernel]:
    made: list[sx.Kernel] = [sx.compile(f, strict_native=True)]
    for schedule in schedules:
        said = sx.Schedule(f)
        schedule(said)
        made.append(sx.compile(f, said, strict_native=True))
    return made


def same(found: Any, expected: Any, *where: Any) -> None:
    for one, wanted in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
        assert (one.dtype, one.shape) == (wanted.dtype, wanted.shape), where
        assert np.array_equal(one, wanted, equal_nan=wanted.dtype.kind == "f"), where


def test_pointwise() -> None:
    a, f = sx.Input("a", sx.int32, 2), sx.Func("f")
    f[y, x] = a[y, x] * 3 - 1
    for kernel in kernels(
        f,
        lambda s: s["f"].vectorize("x", 8).parallel("y"),
        lambda s: s["f"].tile(("y", "x"), ("yo", "xo"), ("yi", "xi"), (4, 8)).vectorize("xi").parallel("yo"),
        lambda s: s["f"].fuse("y", "x", "t").parallel("t", 5).vectorize("t.in"),
        lambda s: s["f"].split("x", "xo", "xi", 5).reorder("xi", "y", "xo").unroll("xi"),
    ):
        for h, w in itertools.product(EXTENTS, EXTENTS):
            same(kernel(v := ints(h, w)), (v * 3 - 1,), h, w)


def test_a_stencil_of_two_stages() -> None:
    a, bx, by = sx.Input("a", sx.int32, 2), sx.Func("bx"), sx.Func("by")
    bx[y, x] = a[y, x] + a[y, x + 1] + a[y, x + 2]
    by[y, x] = bx[y, x] + bx[y + 1, x] + bx[y + 2, x]

    def strips(s: sx.Schedule) -> None:
        s["by"].split("y", "yo", "yi", 4).parallel("yo").vectorize("x", 8)
        s["bx"].compute_at("by", "yo").vectorize("x", 8)

    def slid(s: sx.Schedule) -> None:
        s["by"].split("y", "yo", "yi", 8).parallel("yo").vectorize("x", 4)
        s["bx"].compute_at("by", "yi", store="yo").vectorize("x", 8)

    def tiles(s: sx.Schedule) -> None:
        s["by"].tile(("y", "x"), ("yo", "xo"), ("yi", "xi"), (4, 8)).vectorize("xi")
        s["bx"].compute_at("by", "xo").vectorize("x", 8)

    def rooted(s: sx.Schedule) -> None:
        s["bx"].compute_root().vectorize("x", 8).unroll("y", 3)

    for kernel in kernels(by, strips, slid, tiles, rooted):
        for h, w in itertools.product(EXTENTS, EXTENTS):
            v = ints(h, w)
            b = v[:, :-2] + v[:, 1:-1] + v[:, 2:] if w > 2 else np.zeros((h, 0), np.int32)
            c = b[:-2] + b[1:-1] + b[2:] if h > 2 else np.zeros((0, b.shape[1]), np.int32)
            same(kernel(v), (c,), h, w)


def test_a_row_sum_and_a_column_sum() -> None:
    a = sx.Input("a", sx.int32, 2)
    rows, columns = sx.Func("rows"), sx.Func("columns")
    r, q = sx.RDom("r", x=a.shape[1]), sx.RDom("q", y=a.shape[0])
    rows[y] = sx.int32(0)
    rows[y] += a[y, r]
    columns[x] = sx.int32(0)
    columns[x] += a[q, x]

    def lanes(s: sx.Schedule) -> None:
        s["rows"].update(0).vectorize("y", 8)
        s["columns"].vectorize("x", 4).update(0).vectorize("x", 8).parallel("x")

    def outside(s: sx.Schedule) -> None:
        s["columns"].update(0).reorder("q.y", "x").vectorize("x", 8)
        s["rows"].update(0).unroll("r.x", 4)

    for kernel in kernels((rows, columns), lanes, outside):
        for h, w in itertools.product(EXTENTS, EXTENTS):
            v = ints(h, w)
            same(kernel(v), (v.sum(1, dtype=np.int32), v.sum(0, dtype=np.int32)), h, w)


def test_a_matrix_product() -> None:
    a, b, c = sx.Input("a", sx.int32, 2), sx.Input("b", sx.int32, 2), sx.Func("c")
    r = sx.RDom("r", k=a.shape[1])
    c[y, x] = sx.int32(0)
    c[y, x] += a[y, r] * b[r, x]

    def blocked(s: sx.Schedule) -> None:
        u = s["c"].update(0)
        u.tile(("y", "x"), ("yo", "xo"), ("yi", "xi"), (4, 8)).reorder("yo", "xo", "r.k", "yi", "xi")
        u.unroll("yi").vectorize("xi").parallel("yo")

    sizes = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17]
    for kernel in kernels(c, blocked):
        for m, n, depth in itertools.product(sizes, sizes, (0, 1, 3, 8, 17)):
            u, v = ints(m, depth), ints(depth, n)
            same(kernel(u, v), (u @ v,), m, depth, n)


def test_a_recurrence_along_each_dim() -> None:
    a = sx.Input("a", sx.int32, 2)
    h, w = a.shape
    along, down = sx.Func("along", shape=(h, w)), sx.Func("down", shape=(h, w))
    along[y, 0] = a[y, 0]
    along[y, x] = along[y, x - 1] + a[y, x]
    down[0, x] = a[0, x]
    down[y, x] = down[y - 1, x] + a[y, x]

    def lanes(s: sx.Schedule) -> None:
        s["along"].vectorize("y", 8)
        s["down"].split("x", "xo", "xi", 8).reorder("xo", "y", "xi").vectorize("xi").parallel("xo")

    for kernel in kernels((along, down), lanes):
        for height, width in itertools.product(EXTENTS, EXTENTS):
            v = ints(height, width)
            same(kernel(v), (v.cumsum(1, dtype=np.int32), v.cumsum(0, dtype=np.int32)), height, width)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_a_padded_stencil(mode: str) -> None:
    """What lies around an image of one row or column; of an empty one there is nothing around."""
    a, f = sx.Input("a", sx.int32, 2), sx.Func("f")
    p = sx.pad(a, mode)
    f[y, x] = p[y - 1, x] + 2 * p[y, x - 1] + 4 * p[y, x] + 8 * p[y, x + 1] + 16 * p[y + 1, x]
    for kernel in kernels(f, lambda s: s["f"].vectorize("x", 8).parallel("y")):
        for h, w in itertools.product((1, 2, 3, 7, 8, 9, 17), (1, 2, 3, 7, 8, 9, 16, 17)):
            v = ints(h, w)
            q = np.pad(v, 1, mode=mode)  # type: ignore[call-overload]
            wanted = q[:-2, 1:-1] + 2 * q[1:-1, :-2] + 4 * v + 8 * q[1:-1, 2:] + 16 * q[2:, 1:-1]
            same(kernel(v, shape=(h, w)), (wanted.astype(np.int32),), mode, h, w)
        same(kernel(ints(0, 5), shape=(0, 5)), (ints(0, 5),))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "uint32", "int64", "float16", "float32", "float64"])
def test_every_width_in_one_dim(dtype: str) -> None:
    """A vector holds more of the narrow types, so their tails are longer."""
    a, b, f = sx.Input("a", dtype, 1), sx.Input("b", dtype, 1), sx.Func("f")
    f[x] = a[x] + b[x]
    for kernel in kernels(f, lambda s: s["f"].vectorize("x", 16), lambda s: s["f"].vectorize("x", 64)):
        for n in [*range(18), 31, 33, 63, 64, 65, 127, 129, 200]:
            u, v = ints(n).astype(dtype), ints(n)[::-1].astype(dtype)
            same(kernel(u, v), (u + v,), n)


def test_three_dims_and_a_histogram() -> None:
    a, f, h = sx.Input("a", sx.uint8, 3), sx.Func("f"), sx.Func("h", shape=(16,))
    r = sx.RDom("r", k=a.shape[0], y=a.shape[1], x=a.shape[2])
    f[k, y, x] = a[k, y, x] ^ 0x55
    h[x] = sx.int32(0)
    h[a[r.k, r.y, r.x] & 15] += 1
    for kernel in kernels((f, h)):
        for shape in itertools.product((0, 1, 2, 5, 17), (0, 1, 3, 16), (0, 1, 7, 8, 9, 17)):
            v = ints(*shape).astype(np.uint8)
            same(kernel(v), (v ^ 0x55, np.bincount((v & 15).ravel(), minlength=16).astype(np.int32)), shape)


def test_a_fixed_read_that_only_a_condition_on_the_size_allows_is_masked():
    """The fourth row of a padded array of one row is padding: once inlined, the read is of a constant index."""
    y, x = sx.vars("y x")
    a, f, g = sx.Input("a", sx.int32, 2), sx.Func("f"), sx.Func("g")
    f[y, x] = sx.pad(a, "constant", axes=(0,), value=-5)[y + 1, x + 3]
    g[()] = f[2, 3]
    kernel = sx.compile(g, strict_native=True)
    for rows, want in ((0, -5), (1, -5), (3, -5), (4, 4 * 7 - 1)):
        assert kernel(a=np.arange(rows * 7, dtype=np.int32).reshape(rows, 7)) == want
    assert "a[3, 6 if" in kernel.source("loops")


def test_a_fixed_read_that_a_variable_and_a_size_allow_is_masked():
    """Row 3 is read where 3 + x lies inside: of an array of one row, nowhere."""
    y, x = sx.vars("y x")
    a, f, g = sx.Input("a", sx.int32, 1), sx.Func("f"), sx.Func("g")
    f[y, x] = sx.select(x + y < a.shape[0], a[y], -5)
    g[x] = f[3, x]
    s = sx.Schedule(g)
    s[f].inline()
    kernel = sx.compile(g, s, strict_native=True)
    for rows in (0, 1, 3, 4, 9):
        given = {"a": np.arange(rows, dtype=np.int32)}
        np.testing.assert_array_equal(kernel(**given, shape=(7,)), interpret(g, given, shape=(7,)))
    assert "a[3 if" in kernel.source("loops")
