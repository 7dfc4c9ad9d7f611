"""Types of operations: NumPy's, but for index numbers and functions of small integers."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax import dtypes
from stax.dtypes import DType

X = sx.Var("x")
OWN = tuple(t for t in dtypes.ALL if t != dtypes.bfloat16)  # the types that are NumPy's own
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod]
WORDS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


def of(dtype: DType) -> sx.Value:
    return sx.Input("a", dtype, 1)[X]


def ones(dtype: DType) -> np.ndarray[Any, Any]:
    return np.ones(1, dtype.dtype)


@pytest.mark.parametrize("op", [*ARITHMETIC, *WORDS], ids=lambda op: op.__name__)
def test_two_types_meet_as_in_numpy(op: Callable[[Any, Any], Any]) -> None:
    for a, b in itertools.product(OWN, OWN):
        try:
            wanted = op(ones(a), ones(b)).dtype
        except TypeError:
            with pytest.raises(sx.errors.DefinitionError):
                op(of(a), of(b))
            continue
        assert op(of(a), of(b)).dtype == wanted, (a, b)


@pytest.mark.parametrize("op", ARITHMETIC, ids=lambda op: op.__name__)
@pytest.mark.parametrize("number", [1, 1.5])
def test_python_numbers_are_weak(op: Callable[[Any, Any], Any], number: float) -> None:
    for a in OWN:
        try:
            wanted = op(ones(a), number).dtype
        except TypeError:
            continue
        assert op(of(a), number).dtype == wanted, a
        assert op(number, of(a)).dtype == wanted, a


@pytest.mark.parametrize("scalar", [np.float32(2), np.float64(2), np.int8(2), np.uint64(2), np.array(2, np.int16)])
def test_numpy_scalars_are_strong_on_either_side(scalar: Any) -> None:
    for a in OWN:
        wanted = (ones(a) + np.asarray([scalar])).dtype
        assert (of(a) + scalar).dtype == wanted
        assert (scalar + of(a)).dtype == wanted


def test_index_numbers_are_int64_among_integers_and_weak_among_floats() -> None:
    """An index array of NumPy would make float64 of every float32 that it meets."""
    a = sx.Input("a", sx.float32, 1)
    n = a.shape[0]
    for index in (X, n, X + n, (X % 8) * 2, sx.select(X > 3, X, 0), sx.RDom("r", k=3) + 1, abs(X - n)):
        assert index.dtype == np.int64
        assert (index + of(dtypes.uint8)).dtype == np.int64
        assert (index * of(dtypes.float32)).dtype == np.float32
        assert (index / 3).dtype == np.float64
        assert (index / 3 * of(dtypes.float32)).dtype == np.float32
        assert (sx.exp(index / 3) * of(dtypes.float16)).dtype == np.float16
        assert (index / 3 * of(dtypes.int8)).dtype == np.float64


def test_a_select_of_python_numbers_is_weak() -> None:
    match = sx.select(of(dtypes.uint8) == 3, 2, -1)
    assert match.dtype == np.int64
    assert (of(dtypes.int32) + match).dtype == np.int32
    assert (of(dtypes.float32) * match).dtype == np.float32


def test_a_comparison_with_a_literal_out_of_range_is_decided() -> None:
    """As in NumPy 2, where np.uint8(3) < 300 holds and nothing raises."""
    assert (of(dtypes.uint8) < 300).dtype == np.bool_
    assert (of(dtypes.uint8) == -1).dtype == np.bool_


def test_functions_of_small_integers_give_float32() -> None:
    for t, wanted in ((dtypes.uint8, np.float32), (dtypes.int16, np.float32), (dtypes.int32, np.float64)):
        assert sx.sqrt(of(t)).dtype == wanted
    assert sx.sqrt(of(dtypes.float16)).dtype == np.float16
    assert sx.atan2(of(dtypes.uint8), of(dtypes.float32)).dtype == np.float32


@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "mean", "var"])
def test_reductions_have_the_types_of_numpy(name: str) -> None:
    r = sx.RDom("r", k=3)
    for t in OWN:
        wanted = getattr(np, name)(ones(t)).dtype
        assert getattr(sx, name)(sx.Input("a", t, 1)[r], over=r).dtype == wanted, t
