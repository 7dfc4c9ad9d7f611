"""The loops of one stage inside the loops that it is computed in: which become lanes, and what registers hold.

a definition            lanes along the last dim
c += a[m, k] * b[k, n]  a tile of rows and lanes in registers, over all of k
s += x[m, k]            lanes along k, joined at the end, where sums may be taken in another order
h += w[r, x]            lanes along x, results in registers over all of r
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from stax.auto.features import FuncFacts, ProgramFacts, Reach, StageFacts
from stax.auto.group import lane_of, reused_dims
from stax.auto.machine import Machine
from stax.auto.sizes import Numbers
from stax.expr import build
from stax.schedule.directives import Directive, Reassociate, Reorder, Split, Tail, Unroll, Vectorize

TILE_ROWS = 6
PARTIALS = 4
HELD_VECTORS = 4
MASKED_BYTES = 4
LIGHT = 40


@dataclass(frozen=True, slots=True)
class Nested:
    """Directives for the loops of a stage, and why; `outer` are loops that no directive has touched yet."""

    directives: tuple[Directive, ...]
    why: str
    outer: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """What the loops of stages are chosen by."""

    facts: ProgramFacts
    numbers: Numbers
    machine: Machine
    reassociates: bool

    def extent(self, f: FuncFacts, dim: str) -> int:
        """Return how long a dim of `f` is taken to be."""
        return self.numbers.extents[f.name][f.dims.index(dim)]

    def spans(self, f: FuncFacts, stage: StageFacts) -> list[int]:
        """Return how many values each variable of an RDom is taken to have."""
        ranges = f.func.updates[stage.stage - 1].domain if stage.stage else ()
        return self.numbers.spans([build.sub(r.hi, r.lo) for r in ranges])

    def points(self, f: FuncFacts, stage: StageFacts) -> int:
        """Return how many points a stage is taken to have."""
        plain = prod(self.extent(f, d) for d in stage.plain)
        return plain * prod(self.spans(f, stage))


def inside(choice: Choice, f: FuncFacts, stage: int, still: str | None = None) -> Nested:
    """Return the loops of a stage that nothing outside them shares; the dim `still` has a single value."""
    return _definition(choice, f, still) if stage == 0 else _update(choice, f, f.stages[stage], still)


def _definition(choice: Choice, f: FuncFacts, still: str | None) -> Nested:
    at = lane_of(f)
    if not f.dims or f.dims[at] == still:
        return Nested((), "", ())
    lane = f.dims[at]
    made = lanes(choice, f, f.stages[0], lane, ())
    return Nested(tuple(made), "", f.dims[:at])


def lanes(
    choice: Choice, f: FuncFacts, stage: StageFacts, lane: str, domain: Sequence[str], vectors: int = 1
) -> list[Directive]:
    """Return lanes along `lane` inside the loops of `domain`.

    Channels of pixels are written out, and so are the steps after which divided positions repeat.
    """
    n = stage.lanes
    last = f.dims[-1]
    if lane != last and f.channels is not None:
        return [
            Vectorize(lane, n),
            Unroll(last, f.channels),
            Reorder((last, lane, *domain, f"{last}.in", f"{lane}.in")),
        ]
    period = stage.periods.get(lane, 1)
    if period > 1:
        step = f"{lane}.step"
        return [
            Split(lane, lane, step, period),
            Unroll(step),
            Vectorize(lane, n),
            Reorder((lane, *domain, step, f"{lane}.in")),
        ]
    out = [*in_lanes(choice, f, stage, lane, n * vectors)]
    return [*out, Reorder((lane, *domain, f"{lane}.in"))] if domain else out


def in_lanes(choice: Choice, f: FuncFacts, stage: StageFacts, var: str, n: int) -> list[Directive]:
    """Return `n` lanes of `var`.

    Lanes that are left over are masked, unless masks cost something, or most of the loop is free of conditions that its
    ends have: then the loop is cut.
    """
    smallest = min((t.size_bytes for t in f.func.dtypes), default=8)
    if smallest < max(MASKED_BYTES, choice.machine.masks_bytes) or stage.edges:
        return [Vectorize(var, n)]
    inner = f"{var}.in"
    return [Split(var, var, inner, n, Tail.PREDICATE), Vectorize(inner)]


def _update(choice: Choice, f: FuncFacts, stage: StageFacts, still: str | None) -> Nested:
    plain = tuple(d for d in stage.plain if d != still)
    domain = [r.name for r in stage.domain]
    if not plain and not domain:
        return Nested((), "", ())
    others = [r for r in stage.reaches if r.source != f.name]
    along = bool(plain) and plain[-1] == f.dims[lane_of(f)] and not _along_domain(others, stage)
    if along:
        lane = plain[-1]
        held = domain if not stage.ragged and stage.ops <= LIGHT and not stage.where else []
        reused = next((d for d in reused_dims(stage, lane) if d != still), None) if held else None
        if reused is not None and stage.joins is not None and lane == f.dims[-1]:
            return tile(choice, f, stage, reused, lane)
        made = lanes(choice, f, stage, lane, held, HELD_VECTORS if held else 1)
        return Nested(tuple(made), "results stay in registers" if held else "", plain[:-1])
    if domain and stage.joins is not None and not stage.ragged and (stage.joins.exact or choice.reassociates):
        return _partials(choice, f, stage, plain)
    return Nested((), "", plain)


def _partials(choice: Choice, f: FuncFacts, stage: StageFacts, plain: tuple[str, ...]) -> Nested:
    """Return lanes along the last variable of the RDom, each with a partial result."""
    assert stage.joins is not None
    last = stage.domain[-1]
    n = stage.lanes * (PARTIALS if last.extent is None or last.extent >= stage.lanes * PARTIALS else 1)
    inner = f"{last.name}.in"
    free: list[Directive] = [] if stage.joins.exact else [Reassociate()]
    made = [*free, Split(last.name, last.name, inner, n, Tail.PREDICATE), Vectorize(inner)]
    why = f"{n} partial results along {last.name}, which lies in rows in memory"
    return Nested(tuple(made), why, plain)


def tile(choice: Choice, f: FuncFacts, stage: StageFacts, row: str, lane: str) -> Nested:
    """Return a tile of rows and lanes whose results stay in registers over the whole RDom."""
    machine = choice.machine
    width = machine.lanes(max(t.size_bytes for t in f.func.dtypes))
    rows, vectors = _tile_size(choice, f, row, lane, width)
    n = vectors * width
    domain = [r.name for r in stage.domain]
    row_in, lane_in = f"{row}.in", f"{lane}.in"
    made: list[Directive] = [
        Split(row, row, row_in, rows, Tail.PREDICATE),
        Split(lane, lane, lane_in, n, Tail.PREDICATE),
        Reorder((lane, row, *domain, row_in, lane_in)),
        Unroll(row_in),
        Vectorize(lane_in),
    ]
    why = (
        f"{rows} rows of {vectors} vectors stay in {rows * vectors} of {machine.vector_registers} registers; "
        f"what is read along {lane} serves {rows} rows"
    )
    return Nested(tuple(made), why, tuple(d for d in stage.plain if d not in (row, lane)))


def _tile_size(choice: Choice, f: FuncFacts, row: str, lane: str, width: int) -> tuple[int, int]:
    """Return how many rows, and vectors of each, fit the registers, with one for each vector and one to spare."""
    most = -(-choice.extent(f, lane) // width) if choice.numbers.given or _fixed(f, lane) else 4
    vectors = max(1, min(4 if choice.machine.vector_registers >= 32 else 2, most))
    rows = (choice.machine.vector_registers - vectors - 1) // vectors
    most = choice.extent(f, row) if choice.numbers.given or _fixed(f, row) else rows
    return max(1, min(rows, TILE_ROWS if vectors > 1 else 2 * TILE_ROWS, most)), vectors


def _fixed(f: FuncFacts, dim: str) -> bool:
    return f.extents[f.dims.index(dim)] is not None


def _along_domain(others: Sequence[Reach], stage: StageFacts) -> bool:
    """Return whether what an update reads lies side by side along its RDom, and not along its own dims."""
    domain, plain = {r.name for r in stage.domain}, set(stage.plain)
    ends = [r.last for r in others if r.index]
    return any(e & domain and not e & plain for e in ends) and not any(e & plain for e in ends)
