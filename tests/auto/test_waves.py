"""Bands that isl finds, said as ordinary directives: the check accepts them by itself, and no bit changes."""

from __future__ import annotations

import importlib
from random import Random
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.auto.waves import wavefronts
from stax.errors import LegalityError, ScheduleError
from stax.lang.freeze import freeze
from stax.schedule.schedule import Schedule
from stax.testing import interpret
from tests.legality.test_sequence import gotoh, has_cycle, recurrence

t, y, x = sx.vars("t y x")


def heat1d() -> tuple[Any, dict[str, Any]]:
    a, steps = sx.Input("a", sx.float32, 1), sx.Param("steps", sx.int64, low=0)
    n = a.shape[0]
    u, out = sx.Func("u", shape=(steps + 1, n)), sx.Func("out")
    u[0, x] = a[x]
    u[t, x] = sx.select((x > 0) & (x < n - 1), 0.25 * (u[t - 1, x - 1] + u[t - 1, x + 1]), u[t - 1, x])
    out[x] = u[steps, x]
    return out, {"a": np.random.default_rng(0).random(101, np.float32), "steps": 19}


def example(name: str, output: str, size: int) -> tuple[Any, dict[str, Any]]:
    module = importlib.import_module(f"examples.{name}")
    return getattr(module, output), module.inputs(size)


PROGRAMS = {
    "heat1d": (heat1d, "u"),
    "heat2d": (lambda: example("heat2d", "heat", 53), "u"),
    "seidel2d": (lambda: example("gauss_seidel", "smooth", 57), "u"),
    "smith_waterman": (lambda: example("smith_waterman", "best", 99), "score"),
    "fdtd2d": (lambda: example("fdtd2d", "fields", 45), "hz"),
    "iir": (lambda: example("iir", "back", 80), "back"),
}
LINES = {
    "heat1d": """
s["u"].skew("x", "t", 1).tile(("t", "x"), ("t.o", "x.o"), ("t.i", "x.i"), (64, 64)).skew("t.o", "x.o", 1)
.parallel("x.o").vectorize("x.i", 16).fold_storage("t", 2)""",
    "heat2d": """
s["u"].skew("y", "t", 1).skew("x", "t", 1)
.tile(("t", "y", "x"), ("t.o", "y.o", "x.o"), ("t.i", "y.i", "x.i"), (8, 32, 128))
.skew("t.o", "y.o", 1).parallel("y.o").vectorize("x.i", 16).fold_storage("t", 2)""",
    "seidel2d": """
s["u"].skew("i", "t", 1).skew("j", "t", 1)
.tile(("t", "i", "j"), ("t.o", "i.o", "j.o"), ("t.i", "i.i", "j.i"), (8, 32, 128))
.skew("t.o", "i.o", 1).parallel("i.o").fold_storage("t", 1)""",
    "smith_waterman": """
s["score"].tile(("i", "j"), ("i.o", "j.o"), ("i.i", "j.i"), (64, 64)).skew("i.o", "j.o", 1).parallel("j.o")""",
    "fdtd2d": """
s["hz"].parallel("i").vectorize("j", 16)""",
    "iir": """
s["back"].tile(("y", "x"), ("y.o", "x.o"), ("y.i", "x.i"), (64, 64)).parallel("y.o")""",
}


def same(outputs: Any, schedule: Schedule, given: dict[str, Any]) -> None:
    got, want = sx.compile(outputs, schedule, strict_native=True)(**given, threads=2), interpret(outputs, given)
    many = isinstance(got, tuple)
    for g, w in zip(got if many else (got,), want if many else (want,), strict=True):
        assert np.asarray(g).tobytes() == np.asarray(w).tobytes()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_band_of_a_recurrence_becomes_tiles_in_wavefronts(name: str) -> None:
    make, func = PROGRAMS[name]
    outputs, given = make()
    schedule = Schedule.of(outputs, wavefronts(freeze(outputs), func))
    text = "\n".join(str(schedule).splitlines()[2:]).strip()
    assert text == LINES[name].replace("\n", "")
    again = Schedule.parse(str(schedule), outputs)
    sx.check(outputs, again)
    same(outputs, again, given)


@pytest.mark.parametrize("name", ["heat1d", "heat2d", "seidel2d", "smith_waterman"])
def test_without_its_wave_such_a_schedule_is_refused(name: str) -> None:
    """The check trusts nobody: it is the last skew that makes the loop of tiles parallel."""
    make, func = PROGRAMS[name]
    outputs, _ = make()
    lines = wavefronts(freeze(outputs), func)
    last = max(k for k, line in enumerate(lines) if type(line.directive).__name__ == "Skew")
    with pytest.raises(LegalityError):
        sx.check(outputs, Schedule.of(outputs, (*lines[:last], *lines[last + 1 :])))


@pytest.mark.parametrize("seed", range(24))
def test_any_recurrence_by_constants_has_tiles_in_wavefronts(seed: int) -> None:
    r = Random(f"waves {seed}")
    shape = tuple(r.choice((5, 6, 7, 11)) for _ in range(r.choice((1, 2, 2, 3))))
    steps = [tuple(r.randint(-1, 1) for _ in shape) for _ in range(r.choice((1, 2, 2, 3)))]
    steps = [s for s in steps if any(s)] or [(-1,) * len(shape)]
    if has_cycle(shape, steps):
        steps = [tuple(-abs(d) for d in s) for s in steps]
    f = recurrence(shape, steps)
    sizes = (r.choice((2, 3, 4)),) * len(shape)
    try:
        lines = wavefronts(freeze(f), "f", sizes)
    except ScheduleError as error:
        assert "sizes are given" in error.message  # noqa: PT017  a band of fewer rows
        lines = wavefronts(freeze(f), "f")
    same(f, Schedule.of(f, lines), {})


def test_what_is_no_recurrence_has_no_wavefronts() -> None:
    a, f = sx.Input("a", sx.int64, 1), sx.Func("f")
    f[x] = a[x] + a[x + 1]
    with pytest.raises(ScheduleError, match="no recurrence"):
        wavefronts(freeze(f), "f")
    with pytest.raises(ScheduleError, match="no recurrence"):
        wavefronts(freeze(f), "g")
    with pytest.raises(ScheduleError, match="2 rows, and 3 sizes"):
        wavefronts(freeze(heat1d()[0]), "u", (2, 2, 2))


def test_a_group_keeps_its_steps() -> None:
    f = gotoh()
    assert wavefronts(freeze(f), "score") == ()
