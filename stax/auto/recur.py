"""Recurrences: which of their loops may be lanes or threads, and tiles of their steps.

    up[c, y, x] of up[c, y + 1, x]        columns side by side are lanes, blocks of columns threads
    u[t, y, x] of u[t - 1, y + 1, x - 1]  tiles of steps and rows, moved against each other; lanes along whole rows
    v[t, y, x] of v[t, y - 1, x], ...     the same, with some rows in step, each one cell behind the one before
    w[t, x] of w[t - 1, x + 1]            tiles of steps and many cells, lanes in each

Each form is one that the check may refuse; then the next one is tried, and in the end the default schedule is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stax.algorithm.nodes import Pipeline
from stax.auto.features import FuncFacts
from stax.auto.loops import Choice
from stax.auto.waves import Slanted, slanted, wavefronts
from stax.errors import LegalityError, ScheduleError, UnsupportedError
from stax.legality.known import Known
from stax.schedule.directives import (
    ComputeAt,
    ComputeRoot,
    Directive,
    Line,
    Parallel,
    Reorder,
    Skew,
    Split,
    StageRef,
    Tail,
    Tile,
    Unroll,
    Vectorize,
)  # fmt: skip

COLUMN_VECTORS = 4
STEPS, ROWS = 16, 32
LEAST_STEPS = 4
LONG_STEPS, LEAST_WIDTH, LEAST_TILES = 32, 64, 8
FEW_STEPS, IN_STEP = 2, 8


def forms(
    choice: Choice, pipeline: Pipeline, f: FuncFacts, chain: Sequence[FuncFacts], known: Known
) -> Iterator[list[Line]]:
    """Yield the lines that a recurrence may have, the best first; `chain` are those that it alone reads, in columns."""
    if f.grouped or f.func.updates or f.func.where is not None or not f.moved:
        return
    if not f.func.order and f.dims[-1] not in f.moved:
        yield _columns(f, chain)
        return
    try:
        slant = slanted(pipeline, f.name, known)
    except (LegalityError, ScheduleError, UnsupportedError):
        return
    if len(f.dims) > 2 and len(slant.loops) == len(f.dims) and not f.func.order:
        yield from _rows_of_steps(choice, f, slant)
        yield from _rows_in_step(f, slant)
    if len(f.dims) == len(slant.loops) == 2:
        wide = _width(choice, f)
        lines = _in_waves(pipeline, f, known, (LONG_STEPS, wide))
        if any(isinstance(line.directive, Vectorize) for line in lines):
            yield _with_reason(lines, f"tiles of {LONG_STEPS} steps and {wide} cells stay in the first cache of a core")
            return
    lines = _in_waves(pipeline, f, known)
    if lines:
        skewed = any(isinstance(line.directive, Skew) for line in lines)
        how = "which run in wavefronts" if skewed else "which are independent along a loop"
        yield _with_reason(lines, f"isl found that these loops may be cut into tiles, {how}")


def _in_waves(
    pipeline: Pipeline, f: FuncFacts, known: Known, sizes: tuple[int, ...] | None = None
) -> tuple[Line, ...]:  # fmt: skip
    """Return the lines of tiles in wavefronts; none, where there are no such tiles."""
    try:
        return wavefronts(pipeline, f.name, sizes, known)
    except (LegalityError, ScheduleError, UnsupportedError):
        return ()


def _with_reason(lines: Sequence[Line], why: str) -> list[Line]:
    return [Line(line.at, line.directive, "" if k else why) for k, line in enumerate(lines)]


def _width(choice: Choice, f: FuncFacts) -> int:
    """Return how many cells of a row a tile has: as many as half of the first cache holds, but some tiles a row."""
    most = min(choice.machine.l1_bytes // 2 // f.cell_bytes, choice.extent(f, f.dims[-1]) // LEAST_TILES)
    return max(LEAST_WIDTH, 1 << (max(1, most).bit_length() - 1))


def chained(choice: Choice, f: FuncFacts) -> list[FuncFacts]:
    """Return the recurrences that `f` alone reads, or one of them, along the same columns: readers first."""
    out: list[FuncFacts] = []
    facts = choice.facts
    for name in [r.source for one in (f, *out) for r in one.stages[0].reaches]:
        g = facts.funcs.get(name)
        if g is None or g is f or g in out or g.output or g.dims[-1:] != f.dims[-1:] or g.moved != f.moved:
            continue
        readers = facts.readers[name]
        alike = all(
            s.func == f.name
            and all(
                m.root == d and m.scale == 1 and not m.lo and not m.hi
                for m, d in zip(r.moves, g.dims, strict=True)
                if d not in f.moved
            )
            for s, r in readers
        )
        if alike and not g.func.updates and not g.func.order and not g.grouped and g.dims == f.dims:
            out.append(g)
    return out


def _columns(f: FuncFacts, chain: Sequence[FuncFacts]) -> list[Line]:
    lane = f.dims[-1]
    n = COLUMN_VECTORS * f.stages[0].lanes
    outer = [d for d in f.dims[:-1] if d not in f.moved]
    at = StageRef(f.name)
    out = [] if f.output else [Line(at, ComputeRoot())]
    loops = _column_loops(f, n)
    threads = [*(Parallel(d) for d in outer), Parallel(lane)]
    why = f"blocks of {n} columns on threads: along {' and '.join(f.moved)}, each cell needs the one before"
    out += [Line(at, d, "" if k else why) for k, d in enumerate((*loops, *threads))]
    for g in chain:
        out.append(Line(StageRef(g.name), ComputeAt(f.name, 0, lane), "its columns are those that its reader needs"))
        out += [Line(StageRef(g.name), d) for d in _column_loops(g, n)]
    return out


def _column_loops(f: FuncFacts, n: int) -> list[Directive]:
    lane = f.dims[-1]
    outer = [d for d in f.dims[:-1] if d not in f.moved]
    return [
        Split(lane, lane, f"{lane}.in", n, Tail.PREDICATE),
        Reorder((*outer, lane, *f.moved, f"{lane}.in")),
        Vectorize(f"{lane}.in"),
    ]


def _slanted_tile(f: FuncFacts, slant: Slanted, steps: int, rows: int) -> list[Directive]:
    """Return tiles of the first two loops, the last one left whole, that run in waves."""
    last = f.dims[-1]
    skews = [d for d in slant.directives if not (isinstance(d, Skew) and d.var == last)]
    tiled = slant.loops[:-1]
    sizes = (steps, *(rows for _ in tiled[1:]))
    outers, inners = tuple(f"{d}.o" for d in tiled), tuple(f"{d}.i" for d in tiled)
    return [*skews, Tile(tiled, outers, inners, sizes), Skew(outers[0], outers[1], slant.sign), Parallel(outers[1])]


def _rows_of_steps(choice: Choice, f: FuncFacts, slant: Slanted) -> Iterator[list[Line]]:
    """Yield tiles of steps and rows, with lanes along whole rows, where those stay in the cache of a core."""
    row_bytes = choice.extent(f, f.dims[-1]) * f.cell_bytes
    steps, rows = STEPS, ROWS
    while steps > LEAST_STEPS and (steps + rows) * row_bytes * 2 > choice.machine.l2_bytes:
        steps, rows = steps // 2, rows // 2
    lanes = Vectorize(f.dims[-1], 2 * f.stages[0].lanes)
    why = f"tiles of {steps} steps and {rows} rows stay in the cache of a core, and run in waves"
    for fold in slant.folds:
        made = [*_slanted_tile(f, slant, steps, rows), lanes, *fold]
        yield [Line(StageRef(f.name), d, "" if k else why) for k, d in enumerate(made)]


def _rows_in_step(f: FuncFacts, slant: Slanted) -> Iterator[list[Line]]:
    """Yield tiles in which some rows run in step, each behind the one before: so many cells are worked on at once."""
    first, last = slant.loops[0], f.dims[-1]
    row = f"{slant.loops[-2]}.i"
    block, inner, along = f"{row}.block", f"{row}.row", f"{last}.wave"
    outer = [f"{d}.o" for d in slant.loops[:-1]]
    why = f"{IN_STEP} rows in step, each some cells behind the one before, since a cell needs the one beside it"
    for behind in (1, 2):
        for fold in slant.folds:
            made: list[Directive] = [
                *_slanted_tile(f, slant, FEW_STEPS, ROWS),
                Split(row, block, inner, IN_STEP),
                Skew(last, inner, behind, along),
                Reorder((*outer, f"{first}.i", block, along, inner)),
                Unroll(inner),
                *fold,
            ]
            yield [Line(StageRef(f.name), d, "" if k else why) for k, d in enumerate(made)]
