"""A printed value: its text, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass

from stax.expr.nodes import Axis, BinaryOp

ATOM = 20
UNARY = 14
COMPARE = 6
TIGHT = {
    BinaryOp.MUL: 13, BinaryOp.DIV: 13, BinaryOp.FLOORDIV: 13, BinaryOp.MOD: 13, BinaryOp.ADD: 12, BinaryOp.SUB: 12,
    BinaryOp.SHL: 11, BinaryOp.SHR: 11, BinaryOp.AND: 10, BinaryOp.XOR: 9, BinaryOp.OR: 8, BinaryOp.LT: COMPARE,
    BinaryOp.LE: COMPARE, BinaryOp.EQ: COMPARE, BinaryOp.NE: COMPARE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Value:
    """Text, how tightly it holds together, and the axes along which it really extends.

    A value that extends along none is a scalar, whatever its node's axes. A `weak` one may be a Python number.
    """

    text: str
    tight: int
    have: frozenset[Axis]
    weak: bool = False


def inside(value: Value, around: int) -> str:
    """Return the text, in brackets where what stands around it binds more tightly."""
    return f"({value.text})" if value.tight < around else value.text


def atom(value: Value) -> str:
    """Return the text so that a method or index may follow."""
    return inside(value, ATOM)
