"""Whether all that a stage reads of a Func is inside the box that is computed of it, in every iteration around.

The box, the loops and the variables of the stage are sums over sizes and loops; that no cell lies outside is put to
isl. Boxes are taken as they are, whatever made them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stax.expr.affine import Interval
from stax.expr.nodes import Expr
from stax.poly.isl import TooHard, library, limited, smallest
from stax.poly.meet import Event
from stax.poly.words import Words, all_of

MOST_OPERATIONS = 400_000


@dataclass(frozen=True, slots=True)
class Escape:
    """The question as text: one set for each end of the box, of the cells beyond it; all must be empty."""

    texts: tuple[str, ...]
    counts: tuple[int, int]
    parameters: tuple[Expr, ...] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Uncovered:
    """For these sizes, in this iteration of the loops, the point reads `cell`, outside the box in `dim`."""

    dim: int
    sizes: tuple[int, ...]
    loops: tuple[int, ...]
    point: tuple[int, ...]
    cell: tuple[int, ...]


def escape(words: Words, event: Event, box: Sequence[Interval]) -> Escape:
    """Return the question; TooHard where an end of the box has no words."""
    known = {name: f"a{k}" for k, name in enumerate(event.loops)}
    known |= {name: f"i{k}" for k, name in enumerate(event.variables)}
    said = event.holds(words, known)
    for d, index in enumerate(event.cell):
        word = words.sum(index, known)
        if word is None:
            raise TooHard("data say which cell is read")
        said.append(f"c{d} = {word}")
    beyond: list[str] = []
    for d, whole in enumerate(box):
        for end, op in ((whole.lo, "<"), (whole.hi, ">")):
            word = None if end is None else words.sum(end, known)
            if word is None:
                raise TooHard("an end of the box has no words")
            beyond.append(f"c{d} {op} {word}")
    names = [*known.values(), *(f"c{d}" for d in range(len(box)))]
    head = f"{words.prefix()}{{ [{', '.join(names)}] : {words.context()} and {all_of(said)} and "
    counts = (len(event.loops), len(event.variables))
    return Escape(tuple(f"{head}{cond} }}" for cond in beyond), counts, tuple(words.parameters))


def uncovered(asked: Escape, operations: int = MOST_OPERATIONS) -> Uncovered | None:
    """Return the smallest read outside the box, None where there is none; TooHard where it was not found out."""
    isl = library()
    try:
        sets = [isl.Set(text) for text in asked.texts]
    except isl.Error as error:
        raise TooHard(str(error)) from None
    with limited(operations):
        for k, points in enumerate(sets):
            if not points.is_empty():
                values = smallest(isl, points)
                first = len(asked.parameters)
                second, third = first + asked.counts[0], first + sum(asked.counts)
                parts = values[:first], values[first:second], values[second:third], values[third:]
                return Uncovered(k // 2, *(tuple(part) for part in parts))
    return None
