"""Reductions against NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.algorithm.interpret import interpret
from stax.lang.freeze import freeze

Array = np.ndarray[Any, Any]


def run(make: Callable[[sx.Value, sx.RDom], Any], data: Array, where: Any = None) -> tuple[Array, ...]:
    a = sx.Input("a", data.dtype, data.ndim)
    r = sx.RDom("r", where=where, **{f"v{k}": n for k, n in enumerate(a.shape)})
    f = sx.Func("f")
    f[()] = make(a[tuple(r.variables.values())], r)
    pipeline = freeze(f)
    return interpret(pipeline, {"a": data}, {}, {g.name: () for g in pipeline.funcs})["f"]


INTEGERS = np.array([[7, 250, 3], [250, 0, 0]], np.uint8)
FLOATS = np.array([[1.5, -2, 8], [8, -2, 0]], np.float32)


@pytest.mark.parametrize("data", [INTEGERS, FLOATS], ids=["uint8", "float32"])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "any", "all"])
def test_a_reduction_is_numpys(name: str, data: Array) -> None:
    (found,) = run(lambda e, r: getattr(sx, name)(e, over=r), data)
    wanted = getattr(np, name)(data)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("data", [INTEGERS, FLOATS, FLOATS > 0], ids=["uint8", "float32", "bool"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_an_extreme_is_numpys_with_initial(name: str, data: Array) -> None:
    for initial in (data.dtype.type(0), data.dtype.type(1)):
        (found,) = run(lambda e, r, i=initial: getattr(sx, name)(e, over=r, initial=i), data)
        assert found == getattr(np, name)(data, initial=initial)


@pytest.mark.parametrize("name", ["argmin", "argmax"])
@pytest.mark.parametrize(
    "data",
    [INTEGERS, FLOATS, np.full((2, 2), -np.inf, np.float32), np.full((2, 2), 255, np.uint8), np.zeros((3, 1), bool)],
)
def test_positions_are_of_the_first_also_of_the_worst_value(name: str, data: Array) -> None:
    found = run(lambda e, r: getattr(sx, name)(e, over=r, initial=(-1, -1)), data)
    wanted = np.unravel_index(getattr(np, name)(data), data.shape)
    assert tuple(map(int, found)) == tuple(map(int, wanted))


def test_nan_wins_and_the_first_one_does() -> None:
    data = np.array([3, np.nan, 9, np.nan], np.float32)
    assert int(run(lambda e, r: sx.argmax(e, over=r, initial=-1), data)[0]) == 1
    assert int(run(lambda e, r: sx.argmin(e, over=r, initial=-1), data)[0]) == 1
    assert np.isnan(run(lambda e, r: sx.max(e, over=r, initial=0), data)[0])


def test_over_nothing_initial_is_given() -> None:
    data = np.zeros((0,), np.float32)
    assert int(run(lambda e, r: sx.argmax(e, over=r, initial=-7), data)[0]) == -7
    assert run(lambda e, r: sx.max(e, over=r, initial=-7), data)[0] == -7
    assert run(lambda e, r: sx.sum(e, over=r), data)[0] == 0


def test_a_mean_under_a_condition_divides_by_the_points_taken() -> None:
    data = np.arange(10, dtype=np.float32)
    (found,) = run(lambda e, r: sx.mean(e, over=r), data, where=lambda r: r.v0 % 3 == 0)
    assert found == data[::3].mean()


def test_float16_accumulates_in_float32_and_divides_before_it_rounds() -> None:
    data = np.full(5000, 1.001, np.float16)
    (total,) = run(lambda e, r: sx.sum(e, over=r), data)
    assert total.dtype == np.float16
    assert abs(float(total) - 5000 * float(data[0])) <= 4
    (mean,) = run(lambda e, r: sx.mean(e, over=r), np.full(1000, 60000, np.float16))
    assert mean == 60000


def test_the_least_extent_is_proved_by_constants_and_params() -> None:
    a, n = sx.Input("a", sx.float32, (None, 4)), sx.Param("n", sx.int64, low=1)
    for hi in (a.shape[1], n, 2 * n - 1, a.shape[0] + 1):
        r = sx.RDom("r", k=hi)
        sx.max(a[0, r], over=r)
    for hi in (a.shape[0], n - 1, sx.Param("m", sx.int32)):
        r = sx.RDom("r", k=hi)
        with pytest.raises(sx.errors.DefinitionError, match="no point"):
            sx.max(a[0, r], over=r)


def test_a_ragged_mean_counts_its_points() -> None:
    a = sx.Input("a", sx.float64, 2)
    r = sx.RDom("r", i=3, j=lambda r: r.i + 1)
    f = sx.Func("f")
    f[()] = sx.mean(a[r.i, r.j], over=r)
    pipeline = freeze(f)
    data = np.arange(9.0).reshape(3, 3)
    (found,) = interpret(pipeline, {"a": data}, {}, {g.name: () for g in pipeline.funcs})["f"]
    assert found == data[np.tril_indices(3)].mean()
