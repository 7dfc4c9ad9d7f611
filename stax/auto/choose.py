"""The scheduler: Funcs are inlined and grouped, each group gets its lines, and the check judges the whole.

What is refused is taken back piece by piece, for the next form of it or for the default schedule: the result is legal.
No choice depends on time, so that the same program has the same text on every run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stax.algorithm.inline import inline
from stax.algorithm.nodes import Pipeline
from stax.auto.features import facts_of
from stax.auto.group import Group, groups_of
from stax.auto.heads import lines_of
from stax.auto.inlining import inlined
from stax.auto.loops import Choice
from stax.auto.machine import Machine
from stax.auto.sizes import numbers
from stax.errors import LegalityError, ScheduleError, UnsupportedError
from stax.legality.check import check
from stax.legality.known import Known
from stax.legality.sequence import in_sequence
from stax.schedule.default import complete
from stax.schedule.directives import Inline, Line, StageRef
from stax.schedule.resolve import rewritten


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines that stand or fall together, `name` says of what."""

    name: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A legal schedule, and in words what was tried and not taken."""

    lines: tuple[Line, ...]
    refused: tuple[str, ...]


def choose(
    pipeline: Pipeline, machine: Machine, shapes: Mapping[str, Sequence[int]], reassociates: bool = True
) -> Chosen:
    """Return a schedule of `pipeline` for `machine`; `shapes` are those of Inputs and outputs that are known.

    With `reassociates`, sums of floats may be taken in another order.
    """
    pipeline = in_sequence(pipeline)
    first = facts_of(pipeline)
    gone = inlined(first)
    smaller = inline(pipeline, frozenset(g.name for g in gone))
    facts = facts_of(smaller) if gone else first
    sizes = numbers(smaller, facts.regions, shapes)
    choice = Choice(facts, sizes, machine, reassociates)
    pieces = [Piece("what is inlined", tuple(Line(StageRef(g.name), Inline(), g.why) for g in gone))]
    pieces += [_piece(choice, group) for group in groups_of(facts, sizes, machine)]
    return _legal(pipeline, [p for p in pieces if p.lines])


def _piece(choice: Choice, group: Group) -> Piece:
    head = choice.facts.funcs[group.head]
    if not head.pure and not head.local:
        return Piece(group.head, ())
    return Piece(f"the group of {group.head}", tuple(lines_of(choice, group)))


def _legal(pipeline: Pipeline, pieces: Sequence[Piece]) -> Chosen:
    """Return the lines of as many `pieces` as are legal together, the others being left to the default schedule."""
    kept, refused = list(pieces), list[str]()
    known = Known()
    while (error := _error(pipeline, kept, known)) is not None:
        low, high = 0, len(kept)  # the pieces before `low` are legal, those before `high` are not
        while high - low > 1:
            middle = (low + high) // 2
            found = _error(pipeline, kept[:middle], known)
            low, high, error = (middle, high, error) if found is None else (low, middle, found)
        refused.append(f"{kept[low].name}: {error}")
        del kept[low]
    lines = tuple(line for piece in kept for line in piece.lines)
    return Chosen(complete(rewritten(pipeline, lines), lines), tuple(refused))


def _error(pipeline: Pipeline, pieces: Sequence[Piece], known: Known) -> str | None:
    """Return why the lines of `pieces` are no schedule, in a sentence; None where they are one."""
    try:
        check(pipeline, tuple(line for piece in pieces for line in piece.lines), None, known)
    except (LegalityError, ScheduleError, UnsupportedError) as error:
        return error.message
    return None
