"""Orders of recurrences."""

from __future__ import annotations

import pytest

import stax as sx
from stax.algorithm.nodes import Pipeline
from stax.lang.freeze import freeze

T, Y, X = sx.vars("t y x")


def recurrence(*steps: tuple[int, ...]) -> Pipeline:
    dims = sx.vars("t y x")[: len(steps[0])]
    f = sx.Func("f", dtype=sx.int64, shape=(9,) * len(dims))
    f[dims] = sum(f[tuple(d + s for d, s in zip(dims, step, strict=True))] for step in steps)
    return freeze(f)


@pytest.mark.parametrize(
    ("steps", "backwards"),
    [
        ([(-1,)], set()),
        ([(1,)], {"t"}),
        ([(-1, 5), (-1, -5), (0, -1)], set()),
        ([(-1, 0), (0, 1)], {"y"}),
        ([(1, -1), (0, -1)], {"t"}),
        ([(-2, 7, 7), (0, -1, 3), (0, 0, 1)], {"x"}),
    ],
)
def test_an_order_by_dims_is_found(steps: list[tuple[int, ...]], backwards: set[str]) -> None:
    assert recurrence(*steps).funcs[0].backwards == backwards


@pytest.mark.parametrize(
    ("steps", "order", "backwards"),
    [
        ([(1, -1), (-1, -1)], ("y", "t"), set()),
        ([(1, 1), (-1, 1)], ("y", "t"), {"y"}),
        ([(0, 1, -1), (0, -1, -1), (-1, 3, 2)], ("t", "x", "y"), set()),
        ([(5, 1, -1), (-4, 1, 0), (2, 0, 1), (1, 0, 0)], ("y", "t", "x"), {"y", "t"}),
    ],
)
def test_dims_may_be_compared_in_another_order(
    steps: list[tuple[int, ...]], order: object, backwards: set[str]
) -> None:
    f = recurrence(*steps).funcs[0]
    assert f.order is not None
    assert tuple(d for ((d, _),) in f.order) == order
    assert {d for ((d, way),) in f.order if way < 0} == f.backwards == backwards


@pytest.mark.parametrize("steps", [[(-1,), (1,)], [(1, -1), (-2, 2)], [(-1, 2), (1, -3)]])
def test_what_no_dims_tell_is_left_open(steps: list[tuple[int, ...]]) -> None:
    assert recurrence(*steps).funcs[0].order is None


def test_a_step_of_a_param_counts_by_its_least_value() -> None:
    for low, fine in ((1, True), (0, False)):
        n = sx.Param("n", sx.int64, low=low)
        f = sx.Func("f", dtype=sx.int64, shape=(9,))
        f[X] = f[X - n]
        assert freeze(f).funcs[0].order == (() if fine else None)


def test_start_values_may_read_each_other() -> None:
    a = sx.Input("a", sx.int64, 1)
    f = sx.Func("f", shape=(9,))
    f[0] = a[0]
    f[1] = f[0] * 2
    f[X] = f[X - 1] + f[X - 2]
    assert not freeze(f).funcs[0].backwards


def test_a_transposed_read_one_step_earlier_is_in_order() -> None:
    f = sx.Func("f", dtype=sx.int64, shape=(9, 9, 9))
    f[T, Y, X] = f[T - 1, X, Y] + f[T, Y, X - 1]
    assert not freeze(f).funcs[0].backwards
    g = sx.Func("g", dtype=sx.int64, shape=(9, 9))
    g[Y, X] = g[X, Y]
    assert freeze(g).funcs[0].order is None


def test_a_group_may_run_downwards_together() -> None:
    f, g = (sx.Func(n, dtype=sx.int64, shape=(9, None)) for n in "fg")
    f[T, X] = g[T + 1, X] + 1
    g[T, X] = f[T, X] * f[T + 1, X]
    assert all(m.backwards == {"t"} for m in freeze(g).funcs)
    h = sx.Func("h", dtype=sx.int64, shape=(9, None))
    k = sx.Func("k", dtype=sx.int64, shape=(9, None))
    h[T, X] = h[T + 1, X] + k[T + 1, X]
    k[T, X] = h[T, X] * 2
    found = freeze(k)
    assert found.groups == (("h", "k"),)
    assert all(f.backwards == {"t"} for f in found.funcs)


def test_a_group_of_three_is_put_in_the_order_of_a_step() -> None:
    a, b, c = (sx.Func(n, dtype=sx.int64, shape=(9,)) for n in "abc")
    a[T] = c[T - 1]
    b[T] = c[T] + a[T]
    c[T] = a[T] * 2
    out = sx.Func("out")
    a2 = sx.Func("d", dtype=sx.int64, shape=(9,))
    a2[T] = b[T]
    out[X] = a2[X] + a[3]
    assert freeze(out).groups == (("a", "c"),)


def test_funcs_that_need_each_other_in_a_step_take_the_next_dim_in() -> None:
    """A row of one needs the row of the other, each value the one before it."""
    a, b = (sx.Func(n, dtype=sx.int64, shape=(9, 9)) for n in "ab")
    a[T, X] = b[T, X - 1] + a[T - 1, X + 1]
    b[T, X] = a[T, X] * 2
    found = freeze(b)
    assert found.groups == (("a", "b"),)
    assert [f.together for f in found.funcs] == [2, 2]
    c, d = (sx.Func(n, dtype=sx.int64, shape=(9, 9)) for n in "cd")
    c[T, X] = d[T, X - 1] + d[T, X + 1]
    d[T, X] = c[T, X] * 2
    assert [f.together for f in freeze(d).funcs] == [0, 0]


@pytest.mark.parametrize(
    ("ahead", "behind", "lags"), [(1, -2, (0, 1)), (1, -1, None), (2, -5, (0, 2)), (-1, -1, (0, 0))]
)
def test_a_member_may_lag_behind_another(ahead: int, behind: int, lags: tuple[int, int] | None) -> None:
    u, v = (sx.Func(n, dtype=sx.int64, shape=(9, None)) for n in "uv")
    u[T, X] = v[T + behind, X] + 1
    v[T, X] = u[T + ahead, X] * 2
    found = freeze(v).funcs
    if lags is None:
        assert [f.together for f in found] == [0, 0]
    else:
        assert [(f.name, f.lag) for f in found] == [("u", lags[0]), ("v", lags[1])]
