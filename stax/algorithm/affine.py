"""Integer expressions as sums: leaves times ints, and a constant."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from stax.expr.nodes import Binary, BinaryOp, Cast, Const, Expr, Param, Size, Unary, UnaryOp, Var

Limits = Mapping[str, tuple[float, float]]
"""What is known of Params, by name: the least and the greatest value."""

_BUDGET = 400


@dataclass(frozen=True, slots=True)
class Affine:
    """`constant` plus each leaf times its factor. A leaf is a Var, Param or Size, or anything else as a whole."""

    constant: int
    terms: dict[object, tuple[Expr, int]]

    def minus(self, other: Affine) -> Affine:
        """Return the difference."""
        terms = dict(self.terms)
        for key, (leaf, factor) in other.terms.items():
            terms[key] = (leaf, terms.get(key, (leaf, 0))[1] - factor)
        return Affine(self.constant - other.constant, {k: t for k, t in terms.items() if t[1]})

    def range(self, limits: Limits) -> tuple[float, float]:
        """Return what it is never below and never above, sizes being at least 0.

        >>> from stax import dtypes
        >>> affine(Size(dtypes.int64, "a", 0)).range({})
        (0.0, inf)
        """
        low = high = float(self.constant)
        for leaf, factor in self.terms.values():
            lo, hi = _range(leaf, limits)
            low += factor * (lo if factor > 0 else hi)
            high += factor * (hi if factor > 0 else lo)
        return low, high


def affine(expr: Expr) -> Affine:
    """Return the integer `expr` as a sum; whatever is none, or too long, is a leaf."""
    terms: dict[object, tuple[Expr, int]] = {}
    constant = 0
    stack: list[tuple[Expr, int]] = [(expr, 1)]
    steps = 0
    while stack:
        steps += 1
        node, factor = stack.pop()
        if steps > _BUDGET:
            return Affine(0, {("other", id(expr)): (expr, 1)})
        match node:
            case Cast(value=value) if node.dtype.is_integer and _wider(value, node):
                stack.append((value, factor))
            case Const(value=value) if not node.dtype.is_float:
                constant += factor * int(value)
            case Binary(op=BinaryOp.ADD, left=left, right=right) if _wide(node):
                stack += [(left, factor), (right, factor)]
            case Binary(op=BinaryOp.SUB, left=left, right=right) if _wide(node):
                stack += [(left, factor), (right, -factor)]
            case Binary(op=BinaryOp.MUL, left=left, right=right) if _wide(node):
                known, other = (left, right) if isinstance(left, Const) else (right, left)
                if isinstance(known, Const):
                    stack.append((other, factor * int(known.value)))
                else:
                    _add(terms, ("other", id(node)), node, factor)
            case Unary(op=UnaryOp.NEG, value=value) if _wide(node):
                stack.append((value, -factor))
            case Var(name=name):
                _add(terms, ("var", name), node, factor)
            case Param(name=name):
                _add(terms, ("param", name), node, factor)
            case Size(array=array, dim=dim):
                _add(terms, ("size", array, dim), node, factor)
            case _:
                _add(terms, ("other", id(node)), node, factor)
    return Affine(constant, {key: term for key, term in terms.items() if term[1]})


def _add(terms: dict[object, tuple[Expr, int]], key: object, leaf: Expr, factor: int) -> None:
    terms[key] = (leaf, terms.get(key, (leaf, 0))[1] + factor)


def _wide(node: Expr) -> bool:
    """Return whether `node` is computed in 64 bits, where indices do not wrap."""
    return node.dtype.is_signed and node.dtype.bits == 64


def _wider(value: Expr, node: Expr) -> bool:
    """Return whether the cast keeps every value."""
    return value.dtype.is_integer and node.dtype.low <= value.dtype.low and value.dtype.high <= node.dtype.high


def _range(leaf: Expr, limits: Limits) -> tuple[float, float]:
    match leaf:
        case Size():
            return 0, math.inf
        case Param(name=name):
            lo, hi = limits.get(name, (-math.inf, math.inf))
            return math.ceil(lo) if math.isfinite(lo) else lo, math.floor(hi) if math.isfinite(hi) else hi
        case _ if leaf.dtype.is_integer and leaf.dtype.bits < 64:
            return leaf.dtype.low, leaf.dtype.high
        case _:
            return -math.inf, math.inf
