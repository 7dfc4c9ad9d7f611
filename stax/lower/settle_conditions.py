"""Decide conditions that became the same in all iterations and lanes when loops were written out.

before                                                   after
    g[x*2] = select((x*2) % 2 == 0, a[x], b[x])              g[x*2] = a[x]
    g[x*2 + 1] = select((x*2 + 1) % 2 == 0, a[x], b[x])      g[x*2 + 1] = b[x]

Needs: `unroll_loops`. Gives: the same program; no value that is selected by a condition on positions that always holds,
or never does, and no remainder that is one number.
"""

from __future__ import annotations

from dataclasses import replace

from stax.expr import build
from stax.expr.affine import Algebra, whole
from stax.expr.nodes import Binary, BinaryOp, Broadcast, Expr, Select, Unary, UnaryOp
from stax.expr.walk import postorder
from stax.loops.nodes import Program
from stax.loops.walk import all_expressions, as_block, rewrite_expressions


def settle_conditions(program: Program) -> Program:
    """Return `program` without values that are never selected."""
    if not any(_is_settled(node) for node in postorder(all_expressions(program.body))):
        return program
    settler = _Settler()
    body = rewrite_expressions(program.body, settler.expr)
    return replace(program, body=as_block(body))


def _is_settled(node: Expr) -> bool:
    return isinstance(node, Select) or (isinstance(node, Binary) and node.op is BinaryOp.MOD)


class _Settler:
    def __init__(self) -> None:
        self.algebra = Algebra()

    def expr(self, node: Expr) -> Expr:
        match node:
            case Select(cond=cond, yes=yes, no=no):
                known = self._known(cond)
                return node if known is None else yes if known else no
            case Binary(op=BinaryOp.MOD) if whole(node):
                found = self.algebra.of(node)
                return node if found.terms else build.const(found.const, node.dtype, node.axes)
            case _:
                return node

    def _known(self, cond: Expr) -> bool | None:
        """Return what `cond` is everywhere, if its operands are sums that differ by a constant."""
        match cond:
            case Broadcast(value=value):
                return self._known(value)
            case Unary(op=UnaryOp.NOT, value=value):
                known = self._known(value)
                return None if known is None else not known
            case Binary(op=BinaryOp.EQ | BinaryOp.NE | BinaryOp.LT | BinaryOp.LE as op, left=left, right=right) if (
                whole(left)
            ):
                gap = self.algebra.of(left) - self.algebra.of(right)
                if gap.terms:
                    return None
                return bool(build.integer(build.binary(op, build.index(gap.const), build.index(0))))
            case _:
                known = build.integer(cond)
                return None if known is None else bool(known)
