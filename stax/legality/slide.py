"""Sliding windows: a Func kept outside the loop where it is computed computes what that loop has not computed before.

Along a serial loop where only one dim of what is needed moves, and moves upwards, an iteration needs some rows that the
one before computed. They are still there, so only those above are new; the first iteration computes all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stax.bounds.infer import Box
from stax.expr import build
from stax.expr.affine import Affine, Algebra, Interval, Prover
from stax.expr.nodes import Binary, BinaryOp, Const, Local
from stax.expr.walk import names, substitute
from stax.loops.nodes import LoopKind
from stax.schedule.points import Counted


@dataclass(frozen=True, slots=True)
class Slide:
    """`new` is what an iteration computes of a box of which dim `dim` moves along the loop at place `at`."""

    at: int
    dim: int
    new: Box


def slide(box: Box, loops: Sequence[Counted], algebra: Algebra, prover: Prover) -> Slide | None:
    """Return how `box`, needed in one iteration of `loops`, slides along the outermost of them that it can.

    `loops` are those inside the one where the values are kept, outermost first.
    """
    for at, loop in enumerate(loops):
        if loop.loop.kind not in (LoopKind.SERIAL, LoopKind.UNROLL) or loop.down:
            continue
        if any(loop.var.name in names((inner.start, inner.extent)) for inner in loops[at + 1 :]):
            continue
        found = _along(box, loop, algebra, prover)
        if found is not None:
            return replace(found, at=at)
    return None


def _along(box: Box, loop: Counted, algebra: Algebra, prover: Prover) -> Slide | None:
    moving = [d for d, i in enumerate(box) if loop.var.name in names_of(i, algebra)]
    if len(moving) != 1:
        return None
    (d,) = moving
    lo, hi = box[d].first, box[d].last
    if not all(_rises(end, loop.var, algebra) for end in (lo, hi)):
        return None
    before = substitute(algebra.expr(hi), {loop.var.name: build.sub(loop.var, 1)})
    done = algebra.of(before)
    if not prover.less_equal(lo, done):
        return None
    first = build.binary(BinaryOp.EQ, loop.var, loop.start)
    begin = algebra.of(build.select(first, algebra.expr(lo), algebra.expr(done + 1)))
    return Slide(0, d, (*box[:d], Interval(begin, hi), *box[d + 1 :]))


def names_of(i: Interval, algebra: Algebra) -> set[str]:
    """Return the names that the ends of an interval use."""
    return names(algebra.atom(t) for end in (i.lo, i.hi) if end is not None for t, _ in end.terms)


def _rises(a: Affine, var: Local, algebra: Algebra) -> bool:
    """Return whether `a` is seen never to fall as `var` grows."""
    pending = [a]
    while pending:
        for number, factor in pending.pop().terms:
            atom = algebra.atom(number)
            if var.name not in names((atom,)):
                continue
            if factor < 0:
                return False
            match atom:
                case Local():
                    pass
                case Binary(op=BinaryOp.MIN | BinaryOp.MAX, left=left, right=right):
                    pending += [algebra.of(left), algebra.of(right)]
                case Binary(op=BinaryOp.FLOORDIV, left=left, right=Const(value=int(by))) if by > 0:
                    pending.append(algebra.of(left))
                case _:
                    return False
    return True


def at_first(a: Affine, ranges: Mapping[str, Interval], algebra: Algebra) -> int | None:
    """Return what `a` is in the first iteration of all loops, where that is known."""
    total = a.const
    for number, factor in a.terms:
        atom = algebra.atom(number)
        if not isinstance(atom, Local) or atom.name not in ranges:
            return None
        first = ranges[atom.name].lo
        if first is None or first.terms:
            return None
        total += factor * first.const
    return total
