"""Sizes and regions, evaluated at the call."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stax import dtypes
from stax.errors import InternalError
from stax.expr import build
from stax.expr.nodes import Binary, BinaryOp, Call, Cast, Const, Expr, Fn, Param, Select, Size, Unary, UnaryOp, Var
from stax.runtime.formula import formula

INT = dtypes.int64
N, K = Size(INT, "a", 0), Param(INT, "k")


def value(expr: Expr, n: int = 0, k: float = 0) -> int | float | bool:
    return formula([expr])({"a": (n,)}, {"k": k})[0]


def op(which: BinaryOp, a: Expr, b: Expr) -> Expr:
    return Binary(a.dtype, which, a, b)


@given(st.integers(-(2**40), 2**40), st.integers(-(2**40), 2**40))
def test_integers_floor_and_division_by_zero_is_zero(n: int, k: int) -> None:
    assert value(op(BinaryOp.FLOORDIV, N, K), n, k) == (n // k if k else 0)
    assert value(op(BinaryOp.MOD, N, K), n, k) == (n % k if k else 0)


@given(st.integers(-100, 100), st.integers(-100, 100))
def test_it_agrees_with_constant_folding(n: int, k: int) -> None:
    """Every operator of integers, against `build`, which has its own definition of them."""
    a, b = Const(INT, n), Const(INT, k)
    for which in BinaryOp:
        if which is not BinaryOp.DIV and not (which is BinaryOp.SHL and k > 50):
            folded = build.integer(build.binary(which, a, b))
            assert value(op(which, N, K), n, k) == folded, which


def test_narrow_integers_wrap_and_wide_ones_are_exact() -> None:
    """So that a region that leaves 64 bits is refused, and does not seem to fit."""
    short = Param(dtypes.uint8, "k")
    assert value(op(BinaryOp.ADD, short, short), k=200) == 144
    assert value(Unary(dtypes.int8, UnaryOp.NEG, Param(dtypes.int8, "k")), k=-128) == -128
    assert value(op(BinaryOp.ADD, K, K), k=2**63 - 1) == 2**64 - 2
    assert value(Cast(dtypes.int32, K), k=2**31) == -(2**31)
    assert value(Cast(dtypes.uint16, K), k=-1) == 65535


def test_selects_and_conditions() -> None:
    cond = op(BinaryOp.AND, build.less(N, 5), build.less(K, 5))
    chosen = Select(INT, cond, N, Const(INT, -1))
    assert [value(chosen, 3, k) for k in (4, 5)] == [3, -1]
    assert value(Unary(dtypes.bool_, UnaryOp.NOT, cond), 3, 4) is False


def test_floats_saturate_and_nan_is_zero() -> None:
    real = Param(dtypes.float32, "k")
    whole = Cast(dtypes.uint8, Call(dtypes.float32, Fn.FLOOR, (real,)))
    assert [value(whole, k=k) for k in (3.9, -2.5, 1e9, float("nan"), float("inf"))] == [3, 0, 255, 0, 255]
    third = Binary(dtypes.float32, BinaryOp.DIV, real, Const(dtypes.float32, 3.0))
    assert value(third, k=1.0) == float(np.float32(1) / np.float32(3))
    assert value(Binary(dtypes.float32, BinaryOp.DIV, real, Const(dtypes.float32, 0.0)), k=1.0) == float("inf")


def test_deep_and_shared_expressions_cost_their_nodes() -> None:
    """A tree walk of these 60 levels would take 2**60 steps; 5,000 levels would leave Python's stack."""
    shared: Expr = N
    for _ in range(60):
        shared = op(BinaryOp.ADD, shared, shared)
    assert value(shared, 1) == 2**60
    deep: Expr = N
    for k in range(5000):
        deep = op(BinaryOp.MAX, op(BinaryOp.SUB, deep, Const(INT, 1)), Const(INT, k % 2))
    start = time.process_time()
    assert value(deep, 10) == 1
    assert time.process_time() - start < 5


def test_nothing_costs_nothing() -> None:
    assert formula([])({}, {}) == ()


def test_an_expression_of_loops_is_a_fault_of_stax() -> None:
    with pytest.raises(InternalError, match="Var"):
        formula([Var(INT, "x")])
