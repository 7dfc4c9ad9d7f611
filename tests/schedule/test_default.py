"""The default schedule: what it keeps, and how it fits around what the user says."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.lang.freeze import freeze
from stax.legality.sequence import in_sequence
from stax.schedule.default import complete
from stax.schedule.schedule import Schedule

y, x = sx.vars("y x")


def default(f: sx.Func) -> Schedule:
    """Return the default schedule, written out."""
    return Schedule.of(f, complete(in_sequence(freeze(f)), ()))


def pair() -> tuple[sx.Func, sx.Func]:
    a, f, g = sx.Input("a", sx.int32, 2), sx.Func("f"), sx.Func("g")
    f[y, x] = a[y, x] * 3 + 1
    g[y, x] = f[y, x] + f[y + 1, x]
    return f, g


def test_integer_work_is_work_so_a_doubling_chain_is_kept_in_between() -> None:
    f = sx.Func("f0")
    f[x] = x
    for i in range(24):
        g = sx.Func(f"f{i + 1}")
        g[x] = f[2 * x] + f[3 * x + 1]
        f = g
    assert str(default(f)).count("compute_root") >= 5


@pytest.mark.parametrize(
    ("loop", "store"), [("y", None), ("x", None), ("y", "root"), ("x", "root"), ("x", "y")], ids=str
)
def test_a_func_placed_in_the_loops_of_one_that_is_left_to_the_default_is_legal(loop: str, store: str | None) -> None:
    """What is left to the default makes nothing illegal: no lanes around a guest, no threads over its storage."""
    f, g = pair()
    s = sx.Schedule(g)
    placed = s[f].compute_at(g, loop, store="y") if store == "y" else s[f].compute_at(g, loop)
    if store == "root":
        placed.store_root()
    a = np.arange(20 * 33, dtype=np.int32).reshape(20, 33)
    expected = (a[:-1] + a[1:]) * 3 + 2
    np.testing.assert_array_equal(sx.compile(g, s, strict_native=True)(a), expected)


def test_ranges_that_depend_on_a_dim_stay_inside_it() -> None:
    """A tile would put the loops of the RDom outside some of those of `y`."""
    a, f, r = sx.Input("a", sx.int32, 2), sx.Func("f"), sx.RDom("r", j=(0, y))
    f[y, x] = 0
    f[y, x] += a[r.j, x]
    given = np.arange(35, dtype=np.int32).reshape(5, 7)
    got = sx.compile(f, strict_native=True)(given, shape=(5, 7))
    assert got.tolist() == [given[:k].sum(0).tolist() for k in range(5)]


def test_lanes_run_along_pixels_not_along_their_channels() -> None:
    """Three channels fill no register; strips are of the rows of the picture."""
    c = sx.Var("c")
    img = sx.Input("img", sx.uint8, (None, None, 3))
    padded, rows, soft = sx.pad(img, "edge", axes=(0, 1)), sx.Func("rows"), sx.Func("soft", shape=img.shape)
    rows[y, x, c] = sx.sqrt(sx.cast(padded[y - 1, x, c], sx.float32) + padded[y, x, c] + padded[y + 1, x, c])
    soft[y, x, c] = rows[y, x - 1, c] + rows[y, x + 1, c]
    text = str(default(soft))
    assert 's["rows"].compute_at(s["soft"], "y").vectorize("x", 16).unroll("c", 3)' in text
    assert 's["soft"].parallel("y", 32).vectorize("x", 16).unroll("c", 3).reorder("c", "x", "c.in", "x.in")' in text
    given = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    p = np.pad(given, ((1, 1), (1, 1), (0, 0)), mode="edge").astype(np.float32)
    r = np.sqrt(p[:-2] + p[1:-1] + p[2:])
    got = sx.compile(soft, strict_native=True)(given)
    np.testing.assert_allclose(got, r[:, :-2] + r[:, 2:], rtol=1e-6)


def test_sums_and_recurrences_of_pixels_are_run_by_lanes_too() -> None:
    c = sx.Var("c")
    img = sx.Input("img", sx.float32, (None, None, 3))
    h, w, _ = img.shape
    r = sx.RDom("r", j=3, k=3)
    box, down, along, total = (
        sx.Func("box"),
        sx.Func("down", shape=(h, w, 3)),
        sx.Func("along", shape=(h, w, 3)),
        sx.Func("total"),
    )
    box[y, x, c] = sx.sum(img[y + r.j, x + r.k, c], over=r)
    down[0, x, c] = img[0, x, c]
    down[y, x, c] = down[y - 1, x, c] + img[y, x, c]
    along[y, 0, c] = img[y, 0, c]
    along[y, x, c] = along[y, x - 1, c] + img[y, x, c]
    every = sx.RDom("e", j=h, k=w)
    total[c] = sx.sum(img[every.j, every.k, c], over=every)
    a = np.random.default_rng(0).integers(0, 9, (34, 37, 3)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3), axis=(0, 1)).sum((-1, -2))
    for f, want in ((box, windows), (down, a.cumsum(0)), (along, a.cumsum(1)), (total, a.sum((0, 1)))):
        np.testing.assert_array_equal(sx.compile(f, strict_native=True)(a), want)


def test_points_in_rows_of_three_are_pixels_too() -> None:
    p, i, k = sx.Input("p", sx.float64, (None, 3)), sx.Var("i"), sx.RDom("k", k=3)
    turn = sx.Const("turn", np.array([[0.0, 1, 0], [-1, 0, 0], [0, 0, 1]]))
    f = sx.Func("f")
    f[i, x] = sx.sum(p[i, k] * turn[x, k], over=k)
    a = np.arange(99.0).reshape(33, 3)
    np.testing.assert_array_equal(sx.compile(f, strict_native=True)(a), a @ turn_matrix().T)


def turn_matrix() -> np.ndarray:
    return np.array([[0.0, 1, 0], [-1, 0, 0], [0, 0, 1]])


def test_products_in_strips_are_made_in_register_tiles() -> None:
    """A product that is read at once, by a bias and a relu, is as fast as one that is kept whole."""
    a, b = sx.Input("a", sx.float32, 2), sx.Input("b", sx.float32, 2)
    k = sx.RDom("k", k=a.shape[1])
    product, layer = sx.Func("product"), sx.Func("layer")
    product[y, x] = sx.sum(a[y, k] * b[k, x], over=k)
    layer[y, x] = sx.maximum(product[y, x] - 1, 0)
    assert 'update(0).split("y", "y", "y.tile", 4).vectorize("x", 32)' in str(default(layer))
    rng = np.random.default_rng(0)
    m, n = rng.integers(0, 5, (37, 19)).astype(np.float32), rng.integers(0, 5, (19, 70)).astype(np.float32)
    np.testing.assert_array_equal(sx.compile(layer, strict_native=True)(m, n), np.maximum(m @ n - 1, 0))
