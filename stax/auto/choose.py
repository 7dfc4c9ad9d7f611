"""The scheduler: Funcs are inlined and grouped, each group gets its lines, and the check judges the whole.

What is refused is taken back piece by piece, for the next form of it or for the default schedule: the result is legal.
No choice depends on time, so that the same program has the same text on every run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stax.algorithm.inline import inline
from stax.algorithm.nodes import Pipeline
from stax.auto.features import ProgramFacts, facts_of
from stax.auto.group import Group, groups_of
from stax.auto.heads import lines_of
from stax.auto.inlining import Inlined, cheap_heads, inlined
from stax.auto.loops import Choice
from stax.auto.machine import Machine
from stax.auto.partial import privatised
from stax.auto.recur import chained, forms
from stax.auto.sizes import Numbers, numbers
from stax.errors import LegalityError, ScheduleError, UnsupportedError
from stax.legality.check import check
from stax.legality.known import Known
from stax.legality.sequence import in_sequence
from stax.schedule.default import complete
from stax.schedule.directives import Inline, Line, StageRef
from stax.schedule.resolve import rewritten

MOST_ROUNDS = 2
BUDGET = 100


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines that stand or fall together, in several forms, the best first; `name` says of what."""

    name: str
    forms: tuple[tuple[Line, ...], ...]

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines of the first form."""
        return self.forms[0]

    def rest(self) -> list[Piece]:
        """Return the piece without its first form; nothing where that was the last one."""
        return [Piece(self.name, self.forms[1:])] if len(self.forms) > 1 else []


@dataclass(frozen=True, slots=True)
class Chosen:
    """A legal schedule, and in words what was tried and not taken."""

    lines: tuple[Line, ...]
    refused: tuple[str, ...]


def choose(
    pipeline: Pipeline,
    machine: Machine,
    shapes: Mapping[str, Sequence[int]],
    reassociates: bool = True,
    budget: int = BUDGET,
) -> Chosen:
    """Return a schedule of `pipeline` for `machine`; `shapes` are those of Inputs and outputs that are known.

    With `reassociates`, sums of floats may be taken in another order. At most `budget` whole schedules are proved.
    """
    pipeline = in_sequence(pipeline)
    gone = [*inlined(facts_of(pipeline))]
    facts, sizes, groups = _grouped(pipeline, gone, machine, shapes)
    for _ in range(MOST_ROUNDS):
        more = cheap_heads(facts, groups, sizes, machine)
        if not more:
            break
        gone += more
        facts, sizes, groups = _grouped(pipeline, gone, machine, shapes)
    choice = Choice(facts, sizes, machine, reassociates)
    pieces = [Piece("what is inlined", (tuple(Line(StageRef(g.name), Inline(), g.why) for g in gone),))] if gone else []
    known = Known()
    taken: set[str] = set()
    for group in groups:
        if group.head not in taken:
            pieces += _pieces(choice, pipeline, group, known, taken)
    return _legal(pipeline, pieces, known, budget)


def _grouped(
    pipeline: Pipeline, gone: Sequence[Inlined], machine: Machine, shapes: Mapping[str, Sequence[int]]
) -> tuple[ProgramFacts, Numbers, tuple[Group, ...]]:
    """Return what is left without the Funcs that are inlined: its facts, its sizes, its groups."""
    facts = facts_of(inline(pipeline, frozenset(g.name for g in gone)))
    sizes = numbers(facts.pipeline, facts.regions, shapes)
    return facts, sizes, groups_of(facts, sizes, machine)


def _pieces(choice: Choice, pipeline: Pipeline, group: Group, known: Known, taken: set[str]) -> list[Piece]:
    head = choice.facts.funcs[group.head]
    if head.moved:
        chain = chained(choice, head)
        found = tuple(tuple(form) for form in forms(choice, pipeline, head, chain, known))
        taken |= {g.name for g in chain} if found else set()
        return [Piece(f"the recurrence {head.name}", found)] if found else []
    reads = [choice.facts.funcs.get(r.source) for r in head.stages[0].reaches]
    slice_of_steps = not head.ops and not group.members and any(f is not None and f.moved for f in reads)
    scatters = any(s.scatters for s in head.stages)
    if not (head.pure or head.local or scatters) or slice_of_steps:
        return []
    lines = [lines_of(choice, group)]
    apart = None if head.pure else privatised(choice, head)
    found = tuple(tuple(form) for form in ([apart, *lines] if apart else lines) if form)
    return [Piece(f"the group of {head.name}", found)] if found else []


def _legal(pipeline: Pipeline, pieces: Sequence[Piece], known: Known, budget: int) -> Chosen:
    """Return the lines of as many `pieces` as are legal together, the others being left to the default schedule.

    Once `budget` candidates have been proved or refused, those that are not known to be legal are left to it too.
    """
    kept, refused, left = list(pieces), list[str](), budget
    while left > 0 and (error := _error(pipeline, kept, known)) is not None:
        low, high, left = 0, len(kept), left - 1  # the pieces before `low` are legal, those before `high` are not
        while high - low > 1 and left > 0:
            middle, left = (low + high) // 2, left - 1
            found = _error(pipeline, kept[:middle], known)
            low, high, error = (middle, high, error) if found is None else (low, middle, found)
        if left <= 0:
            refused += [f"{piece.name}: {budget} candidates were tried, and no more" for piece in kept[low:]]
            del kept[low:]
            break
        refused.append(f"{kept[low].name}: {error}")
        kept[low : low + 1] = kept[low].rest()
    lines = tuple(line for piece in kept for line in piece.lines)
    return Chosen(complete(rewritten(pipeline, lines), lines), tuple(refused))


def _error(pipeline: Pipeline, pieces: Sequence[Piece], known: Known) -> str | None:
    """Return why the lines of `pieces` are no schedule, in a sentence; None where they are one."""
    try:
        check(pipeline, tuple(line for piece in pieces for line in piece.lines), None, known)
    except (LegalityError, ScheduleError, UnsupportedError) as error:
        return error.message
    return None
