"""What the check accepts of programs that order can break is the same in machine code."""

from __future__ import annotations

import warnings
from random import Random

import numpy as np
import pytest

import stax as sx
from stax.errors import ScheduleError, StaxWarning, UnsupportedError
from stax.schedule.schedule import Schedule
from stax.testing import interpret
from tests.legality.programs import program, schedule


@pytest.mark.parametrize("start", range(0, 90, 30))
def test_a_schedule_that_is_accepted_runs_to_the_same_integers(start: int) -> None:
    ran = 0
    for seed in range(start, start + 30):
        rng = Random(seed)
        made = program(rng)
        lines = schedule(rng, made.pipeline)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", StaxWarning)
                kernel = sx.compile(made.outputs, Schedule.of(made.outputs, lines), strict_native=True)
        except (ScheduleError, UnsupportedError):
            continue
        shape = made.sizes[made.pipeline.outputs[0]]
        given = np.random.default_rng(seed).integers(-50, 50, made.sizes["a"])
        assert (kernel(given, shape=shape) == interpret(made.outputs, {"a": given}, shape=shape)).all(), seed
        ran += 1
    assert ran > 5


def test_lanes_read_before_any_of_them_writes_over_it() -> None:
    """So a shift towards the start runs in lanes, and one towards the end does not."""
    x, a = sx.Var("x"), sx.Input("a", sx.int64, 1)
    f = sx.Func("f", shape=a.shape)
    r = sx.RDom("r", k=a.shape[0] - 3)
    f[x] = a[x]
    f[r] = f[r + 3] * 2 + f[r + 1]
    s = sx.Schedule(f)
    s[f].update(0).vectorize(r, 8)
    given = np.arange(29)
    want = given.copy()
    want[:-3] = given[3:] * 2 + given[1:-2]
    assert (sx.compile(f, s, strict_native=True)(given) == want).all()
    assert "ramp(f.update(0).r.k.in" in sx.explain(f, s, cut=True)
