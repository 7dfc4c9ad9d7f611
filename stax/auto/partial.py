"""Partial results of a whole RDom, a run of rows each: for scatters into few cells, and sums that leave no loop free.

for count[level[r.y, r.x]] += 1
    s["count"].update(0).split("r.y", "r.y", "r.y.in", 64).rfactor("r.y", "u", "count_part")
    s["count_part"].compute_root().parallel("u").vectorize("i", 16)
    s["count_part"].update(0).parallel("u")
"""

from __future__ import annotations

from math import prod

from stax.auto.features import FuncFacts, StageFacts
from stax.auto.loops import PARTIALS, Choice, in_lanes
from stax.schedule.directives import (
    ComputeRoot,
    Directive,
    Line,
    Parallel,
    Reassociate,
    Reorder,
    Rfactor,
    Split,
    StageRef,
    Tail,
    Unroll,
    Vectorize,
)  # fmt: skip

MOST_CELLS = 1 << 16
LEAST_POINTS = 1 << 14
POINTS = 1 << 17
UNROLLED = 4


def privatised(choice: Choice, f: FuncFacts) -> list[Line] | None:
    """Return lines with which threads reduce runs of rows to partial results; None where that is no use."""
    if len(f.stages) != 2:
        return None
    stage = f.stages[1]
    last_plain = not stage.plain and (stage.scatters or not f.dims)
    if not last_plain or len(stage.domain) < 1 or stage.joins is None or stage.ragged or stage.where:
        return None
    if not (stage.joins.exact or choice.reassociates) or len(f.func.dtypes) != 1:
        return None
    cells = prod(choice.numbers.extents[f.name])
    points = choice.points(f, stage)
    if cells > MOST_CELLS or any(n is None for n in f.extents) or points < LEAST_POINTS:
        return None
    return _lines(choice, f, stage, points)


def _lines(choice: Choice, f: FuncFacts, stage: StageFacts, points: int) -> list[Line]:
    first, last = stage.domain[0].name, stage.domain[-1].name
    new, part = f"{f.name}_of", f"{f.name}_part"
    run = max(1, POINTS * choice.spans(f, stage)[0] // points)
    cells = prod(choice.numbers.extents[f.name])
    update = StageRef(f.name, 1)
    why = f"{run} steps of {first} make a partial result of {cells} cells, which no other thread writes"
    out = [] if f.output else [Line(StageRef(f.name), ComputeRoot())]
    out += [
        Line(update, Split(first, first, f"{first}.in", run), why),
        Line(update, Rfactor(first, new, part)),
        Line(StageRef(part), ComputeRoot()),
        Line(StageRef(part), Parallel(new)),
    ]
    lanes = in_lanes(choice, f, stage, f.dims[-1], stage.lanes) if f.dims else []
    out += [Line(StageRef(part), d) for d in lanes]
    out += [Line(StageRef(part, 1), d) for d in _inner(stage, new, f"{first}.in" if last == first else last)]
    out += [Line(StageRef(f.name), d) for d in lanes]
    joined: list[Directive] = [Reorder((new, f.dims[-1])), *lanes] if f.dims else []
    out += [Line(update, d) for d in joined]
    return out


def _inner(stage: StageFacts, new: str, last: str) -> list[Directive]:
    """Return the loops of a partial result: lanes where all of them combine into one cell."""
    assert stage.joins is not None
    if stage.scatters:
        return [Parallel(new), Unroll(last, UNROLLED)]
    free: list[Directive] = [] if stage.joins.exact else [Reassociate()]
    inner = f"{last}.lanes"
    return [Parallel(new), *free, Split(last, last, inner, PARTIALS * stage.lanes, Tail.PREDICATE), Vectorize(inner)]
