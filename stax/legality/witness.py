"""Two points that collide, in the user's words: the cell they share, the sizes, and the loop that is to blame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stax.algorithm.nodes import Func
from stax.bounds.accesses import Access
from stax.bounds.infer import stage_name
from stax.errors import LegalityError, Place
from stax.expr.nodes import Expr, Param, Size
from stax.expr.show import show
from stax.poly.clash import Clash, How, Kind, Problem
from stax.schedule.directives import Overwrite, StageRef
from stax.schedule.points import Points
from stax.source import Span


@dataclass(frozen=True, slots=True)
class Witness:
    """Two points that collide: `kind` is flow, anti, output, fold, in place or again, `how` order, parallel or lanes.

    The algorithm runs the first before the second. `points` have the variables of each by name, `cell` the place in
    `array` that both touch, `sizes` the extents by array and dimension, `loop` the loop to blame.
    """

    kind: str
    how: str
    stages: tuple[StageRef, StageRef]
    points: tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]
    array: str
    cell: tuple[int, ...]
    sizes: tuple[tuple[str, int, int], ...]
    loop: str | None = None


class Clashed(LegalityError):
    """A LegalityError with what a remedy needs: the loop and those outside it, and how far apart the points are."""

    def __init__(
        self, message: str, places: Sequence[Place], facts: Sequence[str], hint: str | None, stage: StageRef,
        clash: Clash, loop: str, outer: tuple[str, ...], distance: dict[str, int],
    ) -> None:  # fmt: skip
        super().__init__(message, places, facts, hint)
        self.stage, self.clash, self.loop, self.outer, self.distance = stage, clash, loop, outer, distance
        self.over: str | None = None


def clashed(
    f: Func, stage: int, points: Points, own: Sequence[Access], asked: Problem, bad: Clash, hint: str | None,
    fold: tuple[int, int] | None = None,
) -> Clashed:  # fmt: skip
    """Return the refusal for `bad`, in storage that is folded where `fold` says so.

    `own` are the accesses of the stage to its own Func, as the problem has them.
    """
    who = stage_name(f.name, stage)
    loop = points.loops[bad.place].loop.name
    outer = tuple(counted.loop.name for counted in points.loops[: bad.place])
    roots = [root.name for root in points.roots]
    kept = "" if fold is None else f" of the {fold[1]} kept along `{f.dims[fold[0]]}`"
    cell = f"{f.name}[{', '.join(map(str, bad.cell))}]{kept}"
    first, second = point(roots, bad.first), point(roots, bad.second)
    match bad.how:
        case How.ORDER:
            message = f"the loops of `{who}` would run in an order that changes its values"
            end = f"but loop `{loop}` runs {second} first"
        case How.PARALLEL:
            message = f"parallel({loop!r}) would change the values of `{who}`"
            end = f"but loop `{loop}` runs both at the same time"
        case How.LANES:
            message = f"vectorize({loop!r}) would change the values of `{who}`"
            end = f"but they are lanes of loop `{loop}`, in step"
    does = {Kind.FLOW: ("writes", "reads it after"), Kind.ANTI: ("reads", "writes it after"),
            Kind.OUTPUT: ("writes", "writes it after")}[bad.kind]  # fmt: skip
    distance = {r: b - a for r, a, b in zip(roots, bad.first, bad.second, strict=True)}
    sizes = sizes_of(asked.parameters, bad.sizes)
    facts = [
        f"{first} {does[0]} {cell} and {second} {does[1]} that, {end}",
        f"{bad.kind.value} dependence at distance {_tuple(list(distance.values()))}{sizes}",
    ]
    spans = [
        access.read.span if access is not None and access.read is not None else _written(f, stage)
        for access in (own[n] if n < len(own) else None for n in bad.accesses)
    ]
    verbs = [does[0].removesuffix("s"), does[1].split("s ")[0]]
    places: list[Place] = [
        (span, f"{which} {verb}s here")
        for span, which, verb in zip(spans, ("the first", "the second"), verbs, strict=True)
    ]
    if spans[0] == spans[1]:
        places = [(spans[0], "both do so here")]
    elif bad.kind is Kind.FLOW:
        places.reverse()
    error = Clashed(message, places, facts, hint, StageRef(f.name, stage), bad, loop, outer, distance)
    error.witness = _witness("fold" if fold else bad.kind.value, error.stage, roots, f.name, asked, bad, loop)
    return error


def overwritten(
    f: Func, stage: int, target: str, points: Points, own: Sequence[Access], asked: Problem, bad: Clash, line: Overwrite
) -> Clashed:  # fmt: skip
    """Return the refusal of storage that is taken over before another point of the stage has read it."""
    roots = [root.name for root in points.roots]
    loop = points.loops[bad.place].loop.name if points.loops else ""
    reader, writer = point(roots, bad.first), point(roots, bad.second)
    match bad.how:
        case How.ORDER:
            end = f"as loop `{loop}` runs {writer} first"
        case How.PARALLEL:
            end = f"or before, as loop `{loop}` runs both at the same time"
        case How.LANES:
            end = f"or before, as they are lanes of loop `{loop}`"
    cell = f"[{', '.join(map(str, bad.cell))}]"
    distance = {r: b - a for r, a, b in zip(roots, bad.first, bad.second, strict=True)}
    facts = [
        f"{writer} writes {f.name}{cell} over {target}{cell}, which {reader} reads after that, {end}",
        f"anti dependence at distance {_tuple(list(distance.values()))}{sizes_of(asked.parameters, bad.sizes)}",
    ]
    read = own[bad.accesses[0]].read
    places: list[Place] = [
        (None if read is None else read.span, "read here"),
        (_written(f, stage), "written over here"),
        (line.span, "asked for here"),
    ]
    who = stage_name(f.name, stage)
    message = f"`{who}` would write over cells of `{target}` that it is still to read"
    outer = tuple(counted.loop.name for counted in points.loops[: bad.place])
    error = Clashed(message, places, facts, None, StageRef(f.name, stage), bad, loop, outer, distance)
    error.over = target
    error.witness = _witness("in place", error.stage, roots, target, asked, bad, loop)
    return error


def _witness(
    kind: str, ref: StageRef, roots: Sequence[str], array: str, asked: Problem, bad: Clash, loop: str
) -> Witness:  # fmt: skip
    points = tuple(zip(roots, bad.first, strict=True)), tuple(zip(roots, bad.second, strict=True))
    return Witness(kind, bad.how.value, (ref, ref), points, array, bad.cell, extents(asked.parameters, bad.sizes), loop)


def extents(parameters: Sequence[Expr], sizes: Sequence[int]) -> tuple[tuple[str, int, int], ...]:
    """Return which extents are meant by the values of parameters."""
    found = zip(parameters, sizes, strict=True)
    return tuple((e.array, e.dim, v) for e, v in found if isinstance(e, Size))


def _written(f: Func, stage: int) -> Span | None:
    return f.updates[stage - 1].span if stage else f.span


def point(roots: Sequence[str], values: Sequence[int]) -> str:
    """Return a point as users see it.

    >>> point(["y", "x"], [0, 3])
    '(y = 0, x = 3)'
    """
    return f"({', '.join(f'{r} = {v}' for r, v in zip(roots, values, strict=True))})"


def _tuple(values: Sequence[int]) -> str:
    return f"({', '.join(map(str, values))}{',' * (len(values) == 1)})"


def sizes_of(parameters: Sequence[Expr], sizes: Sequence[int]) -> str:
    """Return for which sizes two points collide, to follow what was said; nothing where there are none."""
    known = [f"{_named(e)} = {v}" for e, v in zip(parameters, sizes, strict=True) if not isinstance(e, Param) or v]
    return f", for {', '.join(known)}" if known else ""


def _named(e: object) -> str:
    return show(e).removeprefix("index(").removesuffix(")")  # type: ignore[arg-type]
