"""Turn a product that meets a sum into one rounding.

before: a * b + c        a * b - c         c - a * b
after:  fma(a, b, c)     fma(a, b, -c)     fma(-a, b, c)

Of two products the left one. Needs: exact types, no float16. Within one definition, before anything is inlined.
"""

from __future__ import annotations

from stax.expr import build
from stax.expr.nodes import Binary, BinaryOp, Expr, Fn, UnaryOp
from stax.expr.walk import rewrite_all


def contract(roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return `roots` with fma calls."""
    return rewrite_all(roots, _rule)


def _rule(node: Expr) -> Expr:
    match node:
        case Binary(op=BinaryOp.ADD | BinaryOp.SUB, left=Binary(op=BinaryOp.MUL, left=a, right=b), right=c) if (
            node.dtype.is_float
        ):
            c = build.unary(UnaryOp.NEG, c) if node.op is BinaryOp.SUB else c
            return build.call(Fn.FMA, (a, b, c), node.dtype)
        case Binary(op=BinaryOp.ADD | BinaryOp.SUB, left=c, right=Binary(op=BinaryOp.MUL, left=a, right=b)) if (
            node.dtype.is_float
        ):
            a = build.unary(UnaryOp.NEG, a) if node.op is BinaryOp.SUB else a
            return build.call(Fn.FMA, (a, b, c), node.dtype)
        case _:
            return node
