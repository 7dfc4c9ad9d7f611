"""Programs of `programs.py` under random schedules: proved and then the same, or refused."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest

import stax as sx
from stax.errors import ScheduleError, StaxWarning, UnsupportedError
from stax.schedule import directives as said
from stax.schedule.directives import Directive, Line, StageRef
from tests.meaning.programs import PROGRAMS
from tests.meaning.test_programs import assert_as_numpy, expected

SIZES = (1, 2, 3, 4, 5, 8, 16)


def loop_directive(rng: random.Random, loops: list[str]) -> Directive:
    v, w, n = rng.choice(loops), rng.choice(loops), rng.choice(SIZES)
    made: list[Directive] = [
        said.Split(v, v + "o", v + "i", n),
        said.Tile((v, w), ("a1", "b1"), ("a2", "b2"), (n, 3)),
        said.Fuse(v, w, v + w),
        said.Reorder(tuple(rng.sample(loops, rng.randint(1, len(loops))))),
        said.Vectorize(v, n),
        said.Unroll(v, n),
        said.Parallel(v, n),
        said.Parallel(v),
    ]
    if v.endswith(("i", ".in", "2")) and len(v) > 1:
        made += [said.Vectorize(v), said.Unroll(v)]
    return rng.choice(made)


def place_directive(rng: random.Random, s: sx.Schedule, func: str) -> Directive:
    g = rng.choice(s.pipeline.funcs)
    loops = [loop.name for k in range(len(g.updates) + 1) for loop in s.nest(StageRef(g.name, k)).loops]
    if not loops or rng.random() < 0.4:
        return said.Inline() if rng.random() < 0.4 and not s.pipeline.func(func).updates else said.ComputeRoot()
    return said.ComputeAt(g.name, None, rng.choice(loops), rng.choice([None, None, *loops]))


def random_schedule(rng: random.Random, outputs: object) -> sx.Schedule:
    """Return a schedule of directives that each were taken; the whole may be illegal."""
    s = sx.Schedule(outputs)
    for f in s.pipeline.funcs:
        for at in (StageRef(f.name, k) for k in range(len(f.updates) + 1)):
            for _ in range(rng.randint(0, 4)):
                loops = [loop.name for loop in s.nest(at).loops]
                if loops:
                    _say(s, at, loop_directive(rng, loops))
        if f.name not in s.pipeline.outputs:
            _say(s, StageRef(f.name), place_directive(rng, s, f.name))
    return s


def _say(s: sx.Schedule, at: StageRef, directive: Directive) -> None:
    before = s.lines
    try:
        s.say(Line(at, directive))
    except ScheduleError:
        assert s.lines == before


@pytest.mark.parametrize("seed", range(8))
def test_a_schedule_that_is_proved_changes_nothing(seed):
    """Eight times ten schedules, of which about half are proved."""
    rng = random.Random(seed)
    proved = 0
    for _ in range(10):
        case = rng.choice(PROGRAMS)()
        s = random_schedule(rng, case.outputs)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", StaxWarning)
                kernel = sx.compile(case.outputs, s, strict_native=True)
        except (ScheduleError, UnsupportedError):
            continue
        proved += 1
        shapes = tuple(e.shape for e in expected(case))
        extra = {} if case.shaped else {"shape": shapes if isinstance(case.outputs, tuple) else shapes[0]}
        found = kernel(**case.arguments, **extra)
        nested = found if isinstance(found, tuple) else (found,)
        flat = tuple(np.asarray(p) for f in nested for p in (f if isinstance(f, tuple) else (f,)))
        try:
            assert_as_numpy(flat, case)
        except AssertionError as error:
            raise AssertionError(f"under this schedule:\n{s}") from error
    assert proved >= 2
