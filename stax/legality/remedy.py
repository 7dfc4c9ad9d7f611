"""What to say instead of a directive that would change values: only what was tried and is legal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stax.legality.witness import Clashed
from stax.poly.clash import How
from stax.schedule.directives import Line, Parallel, Reassociate, Reverse, Skew, Vectorize
from stax.schedule.script import show_directive

MOST_SKEW = 3
Lines = tuple[Line, ...]


def remedy(said: Lines, blamed: int, error: Clashed, legal: Callable[[Lines], bool]) -> str | None:
    """Return a hint with which `said` is legal up to the line to blame; None where none is known."""
    for lines, hint in _tries(said, blamed, error):
        if legal(lines):
            return hint
    return None


def _tries(said: Lines, blamed: int, error: Clashed) -> Iterator[tuple[Lines, str]]:
    stage, distance = error.stage, error.distance
    directive = said[blamed].directive
    if error.over is not None:
        if error.clash.how is How.ORDER:
            new = Line(stage, Reverse(error.loop))
            hint = f"say {show_directive(new.directive)} too, so that each cell is read before it is written over"
            yield (*said[: blamed + 1], new), hint
        return
    if stage.stage:
        free = Line(stage, Reassociate())
        yield (
            (*said[:blamed], free, said[blamed]),
            "say reassociate() before it, if its sums may be taken in another order",
        )
    if error.clash.how is How.ORDER:
        roots = list(distance)
        ahead = [r for r, d in distance.items() if d > 0]
        behind = [r for r, d in distance.items() if d < 0]
        if not ahead or not behind:
            return
        along = ahead[0]
        others = [r for r in roots if r != along]
        at = next((k for k, line in enumerate(said) if line.at == stage), blamed)
        least = max((-distance[v] + distance[along] - 1) // distance[along] for v in behind)
        for factor in range(least, least + MOST_SKEW):
            for skewed in (behind, others) if others != behind else (behind,):
                new = tuple(Line(stage, Skew(v, along, factor)) for v in skewed)
                words = ", ".join(show_directive(line.directive) for line in new)
                yield (
                    (*said[:at], *new, *said[at : blamed + 1]),
                    f"say {words} before it, so that what is read lies behind in every loop",
                )
        return
    if isinstance(directive, Parallel | Vectorize) and directive.n is None and said[blamed].at == stage:
        tries = [_still(said, blamed, error), _wavefront(said, blamed, error)]
        for found in tries if all(line.at != stage for line in said[:blamed]) else reversed(tries):
            yield from found


def _still(said: Lines, blamed: int, error: Clashed) -> Iterator[tuple[Lines, str]]:
    if isinstance(said[blamed].directive, Parallel):
        for still in (v for v, d in error.distance.items() if not d and v != error.loop):
            new = Line(error.stage, Parallel(still))
            yield (
                (*said[:blamed], new),
                f"say {show_directive(new.directive)}, the loop of a dim that it does not move in",
            )


def _wavefront(said: Lines, blamed: int, error: Clashed) -> Iterator[tuple[Lines, str]]:
    for loop in error.outer:
        for factor in range(1, MOST_SKEW):
            new = Line(error.stage, Skew(loop, error.loop, factor))
            yield (
                (*said[:blamed], new, *said[blamed : blamed + 1]),
                f"say {show_directive(new.directive)} before it, so that the loop runs along a wavefront",
            )
