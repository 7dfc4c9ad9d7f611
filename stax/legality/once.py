"""Runs that are repeated: only where computing a point again gives the same, with nothing in between."""

from __future__ import annotations

from collections.abc import Sequence

from stax.algorithm.nodes import Func
from stax.bounds.accesses import Access
from stax.bounds.infer import stage_name
from stax.errors import LegalityError
from stax.schedule.points import Points


def check_once(f: Func, stage: int, points: Points, own: Sequence[Access]) -> None:
    """Raise LegalityError where a shifted tail repeats points of a stage that reads its own Func."""
    moved = next((loop for loop in points.loops if loop.shift is not None), None)
    if moved is None or not (stage or any(a.source == f.name for a in own)):
        return
    raise LegalityError(
        f"`{stage_name(f.name, stage)}` reads its own Func, so that no run of it may be repeated",
        [(f.updates[stage - 1].span if stage else f.span, "defined here")],
        [f"the last run of loop `{moved.loop.name}` repeats points of the one before, where it is not full"],
        'tail="guard" or "predicate": a shifted tail is for plain definitions',
    )
