"""Which box each Func is computed over."""

from __future__ import annotations

import numpy as np

import stax as sx

y, x = sx.vars("y x")


def test_members_of_a_group_are_computed_where_the_others_need_them() -> None:
    """`e` is asked for nothing by `f`, and for whole rows by `m`."""
    e, m, f = sx.Func("e", sx.int32, (3, 5)), sx.Func("m", sx.int32, (3, 5)), sx.Func("f", sx.int32, (4,))
    e[0, x], m[0, x] = 1, 2
    e[y, x] = e[y - 1, x] + m[y - 1, x]
    m[y, x] = m[y - 1, x] + e[y, x]
    r = sx.RDom("r", j=(0, 0))
    f[x] = 7
    f[e[r.j, r.j] % 4] += 1
    g = sx.Func("g")
    g[x] = m[2, x]
    found = sx.compile((f, g), strict_native=True)(shape=((4,), (2,)))
    assert [a.tolist() for a in found] == [[7] * 4, [13] * 2]


def test_members_of_a_group_that_are_read_beside_themselves_are_computed_whole() -> None:
    e, m, f = sx.Func("e", sx.int32, (3, 5)), sx.Func("m", sx.int32, (3, 5)), sx.Func("f")
    e[0, x], m[0, x] = sx.cast(x, sx.int32), 2
    e[y, x] = e[y - 1, x] + m[y - 1, x]
    m[y, x] = m[y - 1, x] + sx.select(x < 4, e[y, x + 1], 0)
    f[x] = e[2, x]
    start = np.arange(5)
    one = start + 2
    wanted = one + 2 + np.append(one[1:], 0)
    assert sx.compile(f, strict_native=True)(shape=(2,)).tolist() == wanted[:2].tolist()


def test_a_func_whose_last_read_folds_away_is_not_computed() -> None:
    """`true | any(...)` is true, and the reduction in it has no reader left."""
    a, f = sx.Input("a", sx.uint8, 1), sx.Func("f")
    r = sx.RDom("r", j=(0, x))
    f[x] = sx.any(a[r.j + 5] > 3, over=r) | True
    assert sx.compile(f, strict_native=True)(np.uint8([]), shape=(3,)).tolist() == [True] * 3
