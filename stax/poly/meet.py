"""Two accesses of different stages to one cell, in the loops that both stand in.

Each is said as a box of its variables over those loops, so that loops which only one of them has do not matter: the
boxes may be larger than what is run, and an answer "they do not meet" holds all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from stax.bounds.accesses import Fact
from stax.expr.affine import Affine, Interval
from stax.expr.nodes import Expr
from stax.poly.isl import TooHard, library, limited, smallest
from stax.poly.words import Words, all_of

MOST_OPERATIONS = 400_000


@dataclass(frozen=True, slots=True)
class Event:
    """An access: the loops around, by name, the variables of its stage, each in its range, and the cell it touches.

    Of `cell`, what isl has no words for may be anything.
    """

    loops: Mapping[str, Interval]
    variables: Mapping[str, Interval]
    facts: Iterable[Fact]
    cell: Sequence[Affine]

    def holds(self, words: Words, known: Mapping[str, str]) -> list[str]:
        """Return what is known of loops and variables, called as `known` says; what has no words is left out."""
        said: list[str] = []
        for name, found in (*self.loops.items(), *self.variables.items()):
            for end, op in ((found.lo, "<="), (found.hi, ">=")):
                word = None if end is None else words.sum(end, known)
                said += [] if word is None else [f"{word} {op} {known[name]}"]
        for fact in self.facts:
            word = words.sum(fact.sum, known)
            said += [] if word is None else [f"{word} {'!=' if fact.unequal else '>='} 0"]
        return said


@dataclass(frozen=True, slots=True)
class Question:
    """May two events touch one cell, in one of `cases`? As text, which is what the answer is remembered by."""

    text: str
    cases: tuple[str, ...]
    counts: tuple[int, int, int, int]
    parameters: tuple[Expr, ...] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Met:
    """They do, in case number `case`: for these sizes, iterations of the loops, points of the stages, and this cell."""

    case: int
    sizes: tuple[int, ...]
    loops: tuple[tuple[int, ...], tuple[int, ...]]
    points: tuple[tuple[int, ...], tuple[int, ...]]
    cell: tuple[int, ...]


def question(words: Words, first: Event, second: Event, cases: Sequence[Sequence[tuple[int, str]]]) -> Question:
    """Return the question. A case compares the counts of some loops, by place: the first's to the second's."""
    rank = len(first.cell)
    said: list[str] = []
    names: list[str] = []
    for event, (t, i) in ((first, ("a", "i")), (second, ("b", "j"))):
        known = {name: f"{t}{k}" for k, name in enumerate(event.loops)}
        known |= {name: f"{i}{k}" for k, name in enumerate(event.variables)}
        names += list(known.values())
        said += event.holds(words, known)
        for d, index in enumerate(event.cell):
            word = words.sum(index, known)
            said += [] if word is None else [f"c{d} = {word}"]
    cells = [f"c{d}" for d in range(rank)]
    whole = f"{words.prefix()}{{ [{', '.join([*names, *cells])}] : {words.context()} and {all_of(said)} "
    counts = (len(first.loops), len(first.variables), len(second.loops), len(second.variables))
    texts = tuple("".join(f"and a{k} {op} b{k} " for k, op in case) + "}" for case in cases)
    return Question(whole, texts, counts, tuple(words.parameters))


def meet(asked: Question, operations: int = MOST_OPERATIONS) -> Met | None:
    """Return the smallest meeting of the first case that has one, or None; TooHard where it was not found out."""
    isl = library()
    try:
        sets = [isl.Set(asked.text + case) for case in asked.cases]
    except isl.Error as error:
        raise TooHard(str(error)) from None
    with limited(operations):
        for case, points in enumerate(sets):
            if not points.is_empty():
                return _met(asked, case, smallest(isl, points))
    return None


def _met(asked: Question, case: int, values: list[int]) -> Met:
    parts: list[tuple[int, ...]] = []
    at = 0
    for n in (len(asked.parameters), *asked.counts):
        parts.append(tuple(values[at : at + n]))
        at += n
    return Met(case, parts[0], (parts[1], parts[3]), (parts[2], parts[4]), tuple(values[at:]))
