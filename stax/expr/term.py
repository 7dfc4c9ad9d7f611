"""Expressions with operators, to spell math functions out in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stax import dtypes
from stax.dtypes import DType
from stax.expr import build
from stax.expr.nodes import BinaryOp, Bitcast, Expr, Fn, UnaryOp

Number: TypeAlias = "Term | float"


@dataclass(frozen=True, slots=True)
class Term:
    """An expression with operators; numbers take the type and axes of what they meet."""

    expr: Expr

    @property
    def dtype(self) -> DType:
        """Its type."""
        return self.expr.dtype

    def like(self, value: Number) -> Term:
        """Return a number as a constant of this type."""
        return value if isinstance(value, Term) else Term(build.const(value, self.dtype, self.expr.axes))

    def _binary(self, op: BinaryOp, other: Number) -> Term:
        return Term(build.binary(op, self.expr, self.like(other).expr))

    def __add__(self, other: Number) -> Term:
        return self._binary(BinaryOp.ADD, other)

    def __sub__(self, other: Number) -> Term:
        return self._binary(BinaryOp.SUB, other)

    def __rsub__(self, other: float) -> Term:
        return self.like(other) - self

    def __mul__(self, other: Number) -> Term:
        return self._binary(BinaryOp.MUL, other)

    def __truediv__(self, other: Number) -> Term:
        return self._binary(BinaryOp.DIV, other)

    def __rtruediv__(self, other: float) -> Term:
        return self.like(other) / self

    def __and__(self, other: Number) -> Term:
        return self._binary(BinaryOp.AND, other)

    def __or__(self, other: Number) -> Term:
        return self._binary(BinaryOp.OR, other)

    def __xor__(self, other: Number) -> Term:
        return self._binary(BinaryOp.XOR, other)

    def __lshift__(self, other: int) -> Term:
        return self._binary(BinaryOp.SHL, other)

    def __rshift__(self, other: int) -> Term:
        return self._binary(BinaryOp.SHR, other)

    def __lt__(self, other: Number) -> Term:
        return self._binary(BinaryOp.LT, other)

    def __gt__(self, other: Number) -> Term:
        return self.like(other) < self

    def __neg__(self) -> Term:
        return Term(build.unary(UnaryOp.NEG, self.expr))

    def equals(self, other: Number) -> Term:
        """Return where the two are equal."""
        return self._binary(BinaryOp.EQ, other)

    def differs(self, other: Number) -> Term:
        """Return where the two are unequal, or one is a NaN."""
        return self._binary(BinaryOp.NE, other)

    def abs(self) -> Term:
        """Return the size."""
        return Term(build.unary(UnaryOp.ABS, self.expr))

    def _call(self, fn: Fn, *others: Term) -> Term:
        return Term(build.call(fn, (self.expr, *(other.expr for other in others)), self.dtype))

    def sqrt(self) -> Term:
        """Return the square root."""
        return self._call(Fn.SQRT)

    def rint(self) -> Term:
        """Return the nearest integer, ties to even."""
        return self._call(Fn.RINT)

    def with_sign_of(self, other: Term) -> Term:
        """Return this size with another sign."""
        return self._call(Fn.COPYSIGN, other)

    def to(self, dtype: DType) -> Term:
        """Return this as another type."""
        return Term(build.cast(self.expr, dtype))

    def bits(self) -> Term:
        """Return the bits as a signed integer."""
        to = dtypes.int32 if self.dtype.bits == 32 else dtypes.int64
        return Term(Bitcast(to, self.expr, axes=self.expr.axes))

    def floats(self) -> Term:
        """Return what these bits are as a float."""
        to = dtypes.float32 if self.dtype.bits == 32 else dtypes.float64
        return Term(Bitcast(to, self.expr, axes=self.expr.axes))


def fma(a: Term, b: Number, c: Number) -> Term:
    """Return a * b + c, rounded once."""
    return Term(build.call(Fn.FMA, (a.expr, a.like(b).expr, a.like(c).expr), a.dtype))


def select(cond: Term, yes: Term, no: Number) -> Term:
    """Return `yes` where `cond`, else `no`."""
    return Term(build.select(cond.expr, yes.expr, yes.like(no).expr))


def polynomial(x: Term, coefficients: Sequence[float]) -> Term:
    """Return the polynomial in `x`, highest coefficient first, by Horner's rule."""
    total = x.like(coefficients[0])
    for c in coefficients[1:]:
        total = fma(total, x, c)
    return total
