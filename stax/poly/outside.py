"""A point of a stage at which a sum that should be at least 0 is less: the first one, of the smallest sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stax.bounds.accesses import Facts
from stax.expr.affine import Affine, Algebra, Interval
from stax.expr.nodes import Expr
from stax.poly.isl import TooHard, library, limited, smallest
from stax.poly.words import Words, all_of

MOST_OPERATIONS = 400_000


@dataclass(frozen=True, slots=True)
class Outside:
    """The values of the variables of a stage, and `sizes`: each parameter with its value; `cell` is what it touches."""

    point: tuple[int, ...]
    cell: tuple[int, ...]
    sizes: tuple[tuple[Expr, int], ...]


def outside(
    ranges: Mapping[str, Interval], facts: Facts, short: Affine, index: Sequence[Affine], algebra: Algebra,
    at_least: Mapping[int, int],
) -> Outside | None:  # fmt: skip
    """Return where `short` is below 0 while `facts` hold, and the cell `index` there; None where it is never.

    TooHard where it was not found out.
    """
    words = Words(algebra, at_least)
    names = {name: f"i{k}" for k, name in enumerate(ranges)}
    said: list[str] = []
    for name, i in ranges.items():
        lo, hi = (None if end is None else words.sum(end, names) for end in (i.lo, i.hi))
        said += ([f"{lo} <= {names[name]}"] if lo else []) + ([f"{names[name]} <= {hi}"] if hi else [])
    for fact in sorted(facts, key=lambda f: (f.unequal, f.sum.terms, f.sum.const)):
        held = words.sum(fact.sum, names)
        said += [f"{held} {'!=' if fact.unequal else '>='} 0"] if held else []
    gap = words.sum(short, names)
    cells = [words.sum(i, names) for i in index]
    if gap is None or None in cells:
        raise TooHard("a position depends on data")
    said.append(f"{gap} < 0")
    everything = [*names.values(), *(f"c{d}" for d in range(len(cells)))]
    said += [f"c{d} = {c}" for d, c in enumerate(cells)]
    isl = library()
    try:
        context = isl.Set(f"{words.prefix()}{{ : {words.context()} }}")
        points = isl.Set(f"{words.prefix()}{{ [{', '.join(everything)}] : {all_of(said)} }}").intersect_params(context)
    except isl.Error as error:
        raise TooHard(str(error)) from None
    with limited(MOST_OPERATIONS):
        if points.is_empty():
            return None
        values = smallest(isl, points)
    count = len(words.parameters)
    sizes = tuple(zip(words.parameters, values[:count], strict=True))
    return Outside(tuple(values[count : count + len(names)]), tuple(values[count + len(names) :]), sizes)
