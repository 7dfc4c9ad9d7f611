"""Which box each Func is computed over."""

from __future__ import annotations

import numpy as np
import pytest

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


@pytest.mark.parametrize("dtype", [sx.int64, sx.int32, sx.int16, sx.uint8])
def test_a_sum_of_params_is_what_it_is_at_the_call_whatever_its_type(dtype) -> None:
    """It was taken for anything that its type can hold, so that no call was served."""
    t, x = sx.vars("t x")
    a, steps = sx.Input("a", sx.int64, 1), sx.Param("steps", dtype)
    u, last = sx.Func("u", shape=(steps, a.shape[0])), sx.Func("last")
    u[0, x] = a[x]
    u[t, x] = u[t - 1, x] * 2
    last[x] = u[steps - 1, x] + a[x]
    kernel = sx.compile(last, strict_native=True)
    for many in (1, 2, 9):
        assert kernel(np.arange(5), steps=many).tolist() == [k * 2 ** (many - 1) + k for k in range(5)]
    with pytest.raises(sx.errors.BoundsError, match="outside its dimension 0"):
        kernel(np.arange(5), steps=0)


def test_a_sum_of_narrow_params_moves_the_end_of_an_output() -> None:
    x = sx.Var("x")
    a, k, f = sx.Input("a", sx.int64, 1), sx.Param("k", sx.int32), sx.Func("f")
    f[x] = a[x + (k - 1)]
    kernel = sx.compile(f, strict_native=True)
    assert str(kernel.signature).endswith("f: int64[max(0, a.shape[0] - (k - 1))]")
    assert kernel(np.arange(9), k=4).tolist() == [3, 4, 5, 6, 7, 8]
    with pytest.raises(sx.errors.BoundsError):
        kernel(np.arange(9), k=0)


@pytest.mark.parametrize("inlined", [False, True])
@pytest.mark.parametrize("rows", [1, 9])
def test_what_no_point_reads_after_inlining_is_not_computed(inlined: bool, rows: int) -> None:
    x = sx.Var("x")
    a, b = sx.Input("a", sx.int32, 1), sx.Input("b", sx.int32, 1)
    far, q, f = sx.Func("far"), sx.Func("q"), sx.Func("f")
    far[x] = a[3] - a[sx.clip(x + 2, 0, a.shape[0] - 1)]
    q[x] = sx.select(x < 7, b[x], sx.select(far[x] > 0, 1, 2))
    f[()] = q[0]
    s = sx.Schedule(f)
    s[far].compute_root()
    s[q].inline() if inlined else s[q].compute_root()
    kernel = sx.compile(f, s, strict_native=True)
    assert kernel(np.zeros(rows, np.int32), np.arange(5, 14, dtype=np.int32)) == 5
    if inlined:
        assert "far: int32[0]" in kernel.source("nests")
