"""Weak values are computed in the type that they meet, and values are NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.expr.nodes import Cast, Const
from stax.expr.walk import postorder
from stax.lang.freeze import freeze

Values = Callable[..., np.ndarray[Any, Any]]
X = sx.Var("x")
I = np.arange(8)  # noqa: E741


def test_index_arithmetic_is_int64_and_then_a_float(values: Values) -> None:
    a = sx.Input("a", sx.float32, 1)
    data = np.linspace(-1, 1, 8, dtype=np.float32)
    found = values((X // 3 - 5) * a[X], a=data)
    np.testing.assert_array_equal(found, (I // 3 - 5).astype(np.float32) * data)


def test_a_weak_quotient_is_taken_in_the_float_it_meets(values: Values) -> None:
    a = sx.Input("a", sx.float32, 1)
    data = np.full(8, 1, np.float32)
    found = values(X / 7 * a[X], a=data)
    np.testing.assert_array_equal(found, I.astype(np.float32) / np.float32(7))
    np.testing.assert_array_equal(values(X / 7), I / 7)


def test_weak_arms_take_the_type_of_the_other_operand(values: Values) -> None:
    a = sx.Input("a", sx.int32, 1)
    data = np.array([5, 1, 5, 0, 5, 5, 5, 2], np.int32)
    found = values(a[X] + sx.select(a[X] == 5, 2, -1), a=data)
    np.testing.assert_array_equal(found, data + np.where(data == 5, 2, -1).astype(np.int32))


def test_a_cast_of_weak_values_wraps_as_int64_does(values: Values) -> None:
    np.testing.assert_array_equal(values(sx.cast(X * 100, sx.uint8)), (I * 100).astype(np.uint8))
    np.testing.assert_array_equal(values(sx.cast(300, sx.uint8), n=1), [44])


def test_comparisons_of_uint64_and_signed_are_exact(values: Values) -> None:
    """Through float64 they would take 2**63 + 1 for 2**63."""
    a, b = sx.Input("a", sx.uint64, 1), sx.Input("b", sx.int64, 1)
    u = np.array([0, 1, 2**63, 2**63 + 1, 2**64 - 1, 5, 2**53 + 1, 7], np.uint64)
    s = np.array([0, -1, 5, 2**63 - 1, -1, 5, 2**53, 8], np.int64)
    for name in ("less", "less_equal", "equal", "not_equal", "greater", "greater_equal"):
        op = {"less": "__lt__", "less_equal": "__le__", "equal": "__eq__", "not_equal": "__ne__", "greater": "__gt__",
              "greater_equal": "__ge__"}[name]  # fmt: skip
        np.testing.assert_array_equal(values(getattr(a[X], op)(b[X]), a=u, b=s), getattr(np, name)(u, s))
        np.testing.assert_array_equal(values(getattr(b[X], op)(a[X]), a=u, b=s), getattr(np, name)(s, u))


def test_a_literal_out_of_range_is_compared_as_a_number(values: Values) -> None:
    a = sx.Input("a", sx.uint8, 1)
    data = np.arange(8, dtype=np.uint8)
    assert values((a[X] < 300) & (a[X] > -1) & (a[X] <= 300) & (a[X] != 256), a=data).all()
    assert not values((a[X] == 300) | (a[X] > 255 + 1) | (a[X] <= -1), a=data).any()


@pytest.mark.parametrize("n", range(9))
def test_small_powers_are_products(values: Values, n: int) -> None:
    a = sx.Input("a", sx.float32, 1)
    data = np.linspace(-2, 2, 8, dtype=np.float32)
    np.testing.assert_allclose(values(a[X] ** n, a=data), data**n, rtol=1e-6)
    np.testing.assert_array_equal(values((X - 3) ** n), (I - 3) ** n)


def test_zero_plus_a_float_folds_but_not_under_strict(values: Values) -> None:
    """Python's sum starts with 0; 0 + -0.0 is 0.0."""
    a = sx.Input("a", sx.float32, 1)
    data = np.full(8, -0.0, np.float32)
    assert np.signbit(values(sum([a[X]]), a=data)).all()
    assert not np.signbit(values(sum([a[X]]), fp="strict", a=data)).any()
    assert not np.signbit(values(0.0 + a[X], a=data)).any()


def test_the_constants_of_a_float32_program_are_float32() -> None:
    f, a = sx.Func("f"), sx.Input("a", sx.float32, 1)
    f[X] = 0.1 * a[X] + (X % 4) / 3
    nodes = postorder(freeze(f).funcs[0].values)
    assert all(node.dtype != np.float64 for node in nodes)
    assert Const in {type(n) for n in nodes}
    assert Cast in {type(n) for n in nodes}


def test_depth_and_sharing_cost_no_more_than_they_have_nodes(values: Values) -> None:
    e: Any = X / 7
    for _ in range(3000):
        e = e * e - e
    weak = values(e * sx.float32(1) + sx.cast(e, sx.float64), n=2)
    assert weak.shape == (2,)
    e = sx.cast(X, sx.uint32)
    v = np.arange(5, dtype=np.uint32)
    for i in range(5000):
        e = (e * 3 + (i % 7)) ^ (i & 1)
        v = (v * np.uint32(3) + np.uint32(i % 7)) ^ np.uint32(i & 1)
    np.testing.assert_array_equal(values(e, n=5), v)
