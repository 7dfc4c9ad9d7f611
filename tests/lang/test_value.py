"""Values beside NumPy: its scalars meet them by operators, its functions are refused with ours."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import stax as sx
import stax.testing

OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.and_,
    operator.or_, operator.xor, operator.lshift, operator.rshift, operator.lt, operator.le, operator.gt, operator.ge,
    operator.eq, operator.ne,
]  # fmt: skip


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("left", [np.int16(9), np.uint8(200), np.int64(-7)])
def test_an_operator_of_a_numpy_scalar_and_a_value_is_numpys(op, left):
    x, a, f = sx.Var("x"), sx.Input("a", sx.int32, 1), sx.Func("f")
    f[x] = op(left, a[x])
    given = np.array([1, 2, 3, 5], np.int32)
    wanted = op(left, given)
    got = sx.testing.interpret(f, {"a": given})
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)


def test_a_power_of_a_numpy_scalar_is_one_of_the_program():
    x, a, f = sx.Var("x"), sx.Input("a", sx.float64, 1), sx.Func("f")
    f[x] = np.float64(2) ** a[x]
    assert sx.testing.interpret(f, {"a": np.array([1.0, 3.0])}).tolist() == [2, 8]


@pytest.mark.parametrize("function", [np.sqrt, np.exp, np.absolute, lambda v: np.maximum(v, 3), lambda v: np.add(v, 1)])
def test_a_function_of_numpy_is_refused_with_where_ours_are(function):
    x, a = sx.Var("x"), sx.Input("a", sx.float32, 1)
    with pytest.raises(sx.errors.DefinitionError, match=r"NumPy's `\w+` is given a value") as caught:
        function(a[x])
    assert "sx.sqrt" in str(caught.value)


def test_an_array_meets_no_value():
    x, a = sx.Var("x"), sx.Input("a", sx.float32, 1)
    for given in (lambda: np.ones(3) * a[x], lambda: a[x] * np.ones(3), lambda: np.ones(3) < a[x]):
        with pytest.raises(sx.errors.DefinitionError, match="array"):
            given()
