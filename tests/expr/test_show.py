"""Expressions as text."""

from __future__ import annotations

import pytest

from stax import dtypes
from stax.expr.nodes import Binary, BinaryOp, Const, Expr, Select, Unary, UnaryOp, Var
from stax.expr.show import show

X, Y = Var(dtypes.int64, "x"), Var(dtypes.int64, "y")


def op(o: BinaryOp, a: Expr, b: Expr) -> Expr:
    return Binary(dtypes.int64, o, a, b)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (op(BinaryOp.MUL, op(BinaryOp.ADD, X, Y), X), "(x + y) * x"),
        (op(BinaryOp.ADD, op(BinaryOp.MUL, X, Y), X), "x * y + x"),
        (op(BinaryOp.SUB, X, op(BinaryOp.SUB, Y, X)), "x - (y - x)"),
        (op(BinaryOp.SUB, op(BinaryOp.SUB, X, Y), X), "x - y - x"),
        (op(BinaryOp.MUL, Unary(dtypes.int64, UnaryOp.NEG, X), Y), "-x * y"),
        (Unary(dtypes.int64, UnaryOp.NEG, Unary(dtypes.int64, UnaryOp.NEG, X)), "-(-x)"),
        (op(BinaryOp.AND, op(BinaryOp.LT, X, Y), op(BinaryOp.LE, Y, X)), "(x < y) & (y <= x)"),
        (op(BinaryOp.MIN, X, Const(dtypes.int64, -3)), "min(x, -3)"),
        (Select(dtypes.int64, op(BinaryOp.EQ, X, Y), X, Y), "select(x == y, x, y)"),
    ],
)
def test_no_bracket_stands_that_is_not_needed(expr: Expr, text: str) -> None:
    assert show(expr) == text


def test_an_enormous_expression_is_cut() -> None:
    e: Expr = X
    for _ in range(5000):
        e = op(BinaryOp.ADD, e, e)
    assert len(show(e, limit=50)) <= 50
