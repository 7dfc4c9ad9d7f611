"""Take the larger of two extents for that of an array, where the call has checked that it is no larger.

before                                       after, where `x` is read at 0 .. max(x.shape[1], out.shape[1]) - 1
    x[i, v if v < max(x.shape[1],                x[i, v if v < x.shape[1]]
                      out.shape[1])]

So that a read that other readers share has the same mask for all of them, and is loaded once. A stage whose box is
empty is not checked, and not run either.

Needs: nothing. Gives: the same program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stax.bounds.infer import RegionCheck
from stax.expr import build
from stax.expr.affine import Affine, Algebra
from stax.expr.nodes import INDEX, Binary, BinaryOp, Expr, Size
from stax.loops.nodes import Program
from stax.loops.walk import as_block, rewrite_expressions


def settle_extents(program: Program, checks: Sequence[RegionCheck], algebra: Algebra) -> Program:
    """Return `program` with extents that `checks` settle in place of the larger of several."""
    known: dict[Affine, Expr] = {}
    for check in checks:
        count = algebra.of(check.hi) + 1
        arms = algebra.arms(BinaryOp.MAX, count)
        sizes = len(arms) > 1 and all(isinstance(algebra.expr(arm), Size) for arm in arms)
        if check.reads and build.integer(check.lo) == 0 and sizes and algebra.of(check.size) in arms:
            known[count] = check.size

    def settled(node: Expr) -> Expr:
        larger = isinstance(node, Binary) and node.op is BinaryOp.MAX and node.dtype is INDEX and not node.axes
        return known.get(algebra.of(node), node) if larger else node

    return replace(program, body=as_block(rewrite_expressions(program.body, settled))) if known else program
