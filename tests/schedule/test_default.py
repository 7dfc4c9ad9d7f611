"""The default schedule: what it keeps, and how it fits around what the user says."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx

y, x = sx.vars("y x")


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
    assert str(sx.auto_schedule(f)).count("compute_root") >= 5


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
