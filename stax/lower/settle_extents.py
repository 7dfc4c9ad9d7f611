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
from stax.expr.nodes import Binary, BinaryOp, Expr, Size
from stax.loops.nodes import Program
from stax.loops.walk import as_block, rewrite_expressions


def settle_extents(program: Program, checks: Sequence[RegionCheck], algebra: Algebra) -> Program:
    """Return `program` with extents that `checks` settle in place of the larger of several."""
    known: dict[Affine, Expr] = {}
    for check in checks:
        count, size = algebra.of(check.hi) + 1, algebra.of(check.size)
        if check.reads and build.integer(check.lo) == 0 and size in _larger(count, algebra):
            known[count] = check.size

    def settled(node: Expr) -> Expr:
        if not (isinstance(node, Binary) and node.op is BinaryOp.MAX and node.dtype.name == "index" and not node.axes):
            return node
        return known.get(algebra.of(node), node)

    return replace(program, body=as_block(rewrite_expressions(program.body, settled))) if known else program


def _larger(count: Affine, algebra: Algebra) -> list[Affine]:
    """Return the extents that `count` is the largest of; none where it is anything else."""
    if count.const or len(count.terms) != 1 or count.terms[0][1] != 1:
        return []
    arms, ahead = list[Affine](), [algebra.atom(count.terms[0][0])]
    while ahead:
        match ahead.pop():
            case Binary(op=BinaryOp.MAX, left=left, right=right):
                ahead += [left, right]
            case Size() as size:
                arms.append(algebra.of(size))
            case _:
                return []
    return arms
