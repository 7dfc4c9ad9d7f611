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


def test_a_later_and_an_earlier_step_along_one_dim_are_a_cycle() -> None:
    with pytest.raises(sx.errors.DefinitionError, match="needs itself"):
        recurrence((-1,), (1,))
    with pytest.raises(sx.errors.DefinitionError, match="needs itself"):
        recurrence((1, -1), (-2, 2))


def test_orders_that_need_a_skew_come_later() -> None:
    """f[t, y] from f[t - 1, y + 2] and f[t + 1, y - 3] has an order, of no dim by itself."""
    with pytest.raises(sx.errors.UnsupportedError, match="later version"):
        recurrence((-1, 2), (1, -3))


def test_a_step_of_a_param_counts_by_its_least_value() -> None:
    for low, fine in ((1, True), (0, False)):
        n = sx.Param("n", sx.int64, low=low)
        f = sx.Func("f", dtype=sx.int64, shape=(9,))
        f[X] = f[X - n]
        if fine:
            assert not freeze(f).funcs[0].backwards
        else:
            with pytest.raises(sx.errors.UnsupportedError, match="no fixed step"):
                freeze(f)


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
    with pytest.raises(sx.errors.UnsupportedError, match="no fixed step"):
        freeze(g)


def test_a_group_may_run_downwards_together() -> None:
    f, g = (sx.Func(n, dtype=sx.int64, shape=(9, None)) for n in "fg")
    f[T, X] = g[T + 1, X] + 1
    g[T, X] = f[T, X] * f[T + 1, X]
    with pytest.raises(sx.errors.UnsupportedError, match="another step"):
        freeze(g)
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
