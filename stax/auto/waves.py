"""A recurrence in tiles that run in wavefronts, along the band of rows that isl's scheduler finds for it.

for u[t, x] of u[t - 1, x - 1], u[t - 1, x] and u[t - 1, x + 1]
    s["u"].skew("x", "t", 1).tile(("t", "x"), ("t.o", "x.o"), ("t.i", "x.i"), (16, 64)).skew("t.o", "x.o", 1)
    s["u"].parallel("x.o").vectorize("x.i").fold_storage("t", 2)

Rows become loops by `skew`, `reorder` or `affine`; those that may change places are tiled. Where a loop of tiles needs
no other, it is parallel; else the first one counts the wave, and the one inside it is parallel. Lanes and folds
of storage are kept where the check accepts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stax.algorithm.nodes import Func, Pipeline
from stax.errors import LegalityError, ScheduleError, UnsupportedError
from stax.legality.check import check
from stax.legality.known import Known
from stax.legality.sequence import in_sequence
from stax.poly.band import Band, band, reads_of
from stax.poly.isl import TooHard
from stax.schedule.default import lanes_of
from stax.schedule.directives import (
    Directive,
    FoldStorage,
    Line,
    Parallel,
    Skew,
    StageRef,
    Tile,
    Vectorize,
)
from stax.schedule.legal import Legal
from stax.schedule.transform import directives_of

SIZES = {1: (256,), 2: (64, 64), 3: (8, 32, 128)}
MOST_MORE = 2


def wavefronts(
    pipeline: Pipeline, name: str, sizes: Sequence[int] | None = None, known: Known | None = None
) -> tuple[Line, ...]:
    """Return lines that run the recurrence `name` in tiles of `sizes`, one for each row of its band.

    A Func that steps together with others keeps those steps: its other dims are parallel where they may be.
    Raises ScheduleError where the Func is no recurrence, or no band was found.
    """
    pipeline = in_sequence(pipeline)
    known = known or Known()
    plain = check(pipeline, (), None, known)
    f = next((g for g in plain.pipeline.funcs if g.name == name), None)
    found = () if f is None else plain.regions.context.accesses[name][0]
    grouped = any(name in group for group in pipeline.groups)
    if f is None or f.updates or not (grouped or any(a.source == name for a in found)):
        raise ScheduleError(f"Func {name!r} is no recurrence, so that it has no wavefronts")
    if grouped:
        return _kept(pipeline, f, [[Parallel(d)] for d in f.dims[f.together :][:1]], _lanes(f, f.dims[-1], None), known)
    made = _band(f, plain)
    steps, loops = directives_of(made.rows, f.dims, f.backwards)
    if made.permutable < 2:
        free = [d for k, d in enumerate(loops) if k in made.coincident]
        return _kept(pipeline, f, [steps, *([Parallel(d)] for d in free[:1])], [], known)
    tiled = loops[: made.permutable]
    chosen = tuple(sizes or SIZES.get(len(tiled), (16,) * len(tiled)))
    if len(chosen) != len(tiled):
        raise ScheduleError(f"the band of {name!r} has {len(tiled)} rows, and {len(chosen)} sizes are given")
    outers, inners = tuple(f"{d}.o" for d in tiled), tuple(f"{d}.i" for d in tiled)
    waves = _waves(outers, made, [d in f.backwards for d in tiled])
    first = [*steps, Tile(tiled, outers, inners, chosen), *waves]
    more = [*_lanes(f, inners[-1], chosen[-1]), *_folds(f, plain)]
    return _kept(pipeline, f, [first], more, known)


@dataclass(frozen=True, slots=True)
class Slanted:
    """Directives after which `loops` may be tiled; `sign` moves tiles of the first against those of the second.

    `folds` are foldings of storage to try.
    """

    directives: tuple[Directive, ...]
    loops: tuple[str, ...]
    sign: int
    folds: tuple[tuple[Directive, ...], ...]


def slanted(pipeline: Pipeline, name: str, known: Known) -> Slanted:
    """Return the band of the recurrence `name` as directives.

    Raises ScheduleError where no band was found, or only loops that may not be tiled.
    """
    plain = check(pipeline, (), None, known)
    f = plain.pipeline.func(name)
    made = _band(f, plain)
    if made.permutable < 2:
        raise ScheduleError(f"the loops of {name!r} may not be tiled")
    steps, loops = directives_of(made.rows, f.dims, f.backwards)
    tiled = loops[: made.permutable]
    down = [d in f.backwards for d in tiled]
    folds = tuple(tuple(one) for one in _folds(f, plain))
    return Slanted(tuple(steps), tiled, -1 if down[0] != down[1] else 1, (*folds, ()))


def _band(f: Func, plain: Legal) -> Band:
    context = plain.regions.context
    try:
        asked = reads_of(f, context.accesses[f.name][0], plain.regions.boxes[f.name], context.algebra, context.at_least)
        found = band(asked)
    except TooHard as error:
        raise ScheduleError(f"no band of {f.name!r} was found: {error}") from None
    if found is None:
        raise ScheduleError(f"no band of {f.name!r} was found that loops could have")
    return found


def _waves(outers: Sequence[str], made: Band, down: Sequence[bool]) -> list[Directive]:
    """Return what makes a loop of tiles parallel: it needs no other tile, or stands inside a wave."""
    alone = next((k for k in range(len(outers)) if k in made.coincident), None)
    if alone is not None:
        return [Parallel(outers[alone])]
    return [Skew(outers[0], outers[1], -1 if down[0] != down[1] else 1), Parallel(outers[1])]


def _lanes(f: Func, loop: str, extent: int | None) -> list[list[Directive]]:
    n = lanes_of(f, 0)
    return [[Vectorize(loop, n)] if extent is None or (extent % n == 0 and extent > n) else [Vectorize(loop)]]


def _folds(f: Func, plain: Legal) -> list[list[Directive]]:
    """Return foldings to try, the smallest that the default schedule has first."""
    fold = plain.placed[f.name].fold
    return [
        [FoldStorage(dim, n + more)]
        for dim, n in zip(f.dims, fold, strict=True)
        if n is not None
        for more in range(MOST_MORE)
    ]


def _kept(
    pipeline: Pipeline,
    f: Func,
    wanted: Sequence[Sequence[Directive]],
    more: Sequence[Sequence[Directive]],
    known: Known,
) -> tuple[Line, ...]:
    """Return the lines of `wanted`, and of each of `more` that is legal with those before it, once a kind."""
    at = StageRef(f.name)
    lines = tuple(Line(at, d) for one in wanted for d in one)
    check(pipeline, lines, None, known)
    for one in more:
        if any(type(line.directive) is type(d) for line in lines for d in one if isinstance(d, FoldStorage)):
            continue
        longer = (*lines, *(Line(at, d) for d in one))
        try:
            check(pipeline, longer, None, known)
        except (LegalityError, ScheduleError, UnsupportedError):
            continue
        lines = longer
    return lines
