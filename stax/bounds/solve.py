"""The largest output extents for which a position stays inside an input: inference run backwards."""

from __future__ import annotations

from stax.expr.affine import Affine, Algebra, Prover
from stax.expr.nodes import Binary, BinaryOp, Const, Size
from stax.expr.walk import postorder

Limit = tuple[tuple[str, int], Affine]


def limits(algebra: Algebra, prover: Prover, top: Affine, bound: Affine, outputs: frozenset[str]) -> list[Limit]:
    """Return `((output, dim), extent)` for each output size that `top <= bound` limits.

    `top` grows with output sizes. An index made of several output sizes limits none.
    Method: peel sums, floor divisions, minima and maxima off until one size is left.
    """
    out: list[Limit] = []
    stack = [(top, bound)]
    while stack:
        here, most = stack.pop()
        open_terms = [(n, f) for n, f in here.terms if _sizes(algebra, n, outputs)]
        if len(open_terms) != 1 or open_terms[0][1] < 0:
            continue
        number, factor = open_terms[0]
        room = algebra.divided(most - here.without(number), factor)
        match algebra.atom(number):
            case Size(array=array, dim=dim):
                out.append(((array, dim), prover.maximum(room, Affine(0))))
            case Binary(op=BinaryOp.FLOORDIV, left=left, right=Const(value=int(by))) if by > 0:
                stack.append((algebra.of(left), room * by + (by - 1)))
            case Binary(op=BinaryOp.MAX, left=left, right=right):
                stack += [(algebra.of(left), room), (algebra.of(right), room)]
            case Binary(op=BinaryOp.MIN, left=left, right=right):
                arms = [algebra.of(left), algebra.of(right)]
                if not any(prover.less_equal(arm, room) for arm in arms):
                    stack += [(arm, room) for arm in arms]
            case _:
                pass
    return out


def _sizes(algebra: Algebra, atom: int, outputs: frozenset[str]) -> bool:
    return any(isinstance(node, Size) and node.array in outputs for node in postorder((algebra.atom(atom),)))
