"""Runs that are repeated: only where computing a point again gives the same, with nothing in between."""

from __future__ import annotations

from collections.abc import Sequence

from stax.algorithm.combine import combine
from stax.algorithm.nodes import Func, Update
from stax.bounds.accesses import Access
from stax.bounds.infer import stage_name
from stax.errors import LegalityError
from stax.expr.nodes import BinaryOp, Var
from stax.loops.nodes import LoopKind
from stax.schedule.points import Points

_SAME_TWICE = frozenset({BinaryOp.MIN, BinaryOp.MAX, BinaryOp.AND, BinaryOp.OR})


def check_once(f: Func, stage: int, points: Points, own: Sequence[Access]) -> None:
    """Raise LegalityError where a shifted tail repeats points of a stage that reads its own Func, or shares cells."""
    moved = next((loop for loop in points.loops if loop.shift is not None), None)
    if moved is None:
        return
    if stage and _same_twice(f, f.updates[stage - 1], points):
        return
    who, span = stage_name(f.name, stage), f.updates[stage - 1].span if stage else f.span
    if any(a.source == f.name and a.read is not None for a in own):
        why = "reads its own Func"
    elif stage and not _each_its_own(f.updates[stage - 1]):
        why = "may write a cell at several points"
    else:
        return
    raise LegalityError(
        f"`{who}` {why}, so that no run of it may be repeated",
        [(span, "defined here")],
        [f"the last run of loop `{moved.loop.name}` repeats points of the one before, where it is not full"],
        'tail="guard" or "predicate": a shifted tail is for what gives the same when it is computed again',
    )


def _same_twice(f: Func, update: Update, points: Points) -> bool:
    """Return whether the terms of a cell are combined one at a time, and count once however often they are."""
    how = combine(f, update)
    kinds = {counted.loop.kind for counted in points.loops}
    return how is not None and how.op in _SAME_TWICE and not kinds & {LoopKind.PARALLEL, LoopKind.VECTOR}


def _each_its_own(update: Update) -> bool:
    """Return whether every variable of the domain names a dim of the cell, so that no two points write one."""
    named = {i.name for i in update.index if isinstance(i, Var)}
    return all(r.name in named for r in update.domain)
