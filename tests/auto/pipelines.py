"""Random programs of the differential test under automatic schedules, beside the oracle and the default schedule."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from random import Random

from stax.auto.choose import choose
from stax.auto.machine import Machine
from stax.errors import BoundsError, StaxError
from stax.schedule.schedule import Schedule
from tests.differential.compare import Built, Refused, build, call, compare, kernel_of, oracle
from tests.differential.generate import draw

MACHINES = (Machine(), Machine(64, 32, 1, 2, 48 << 10, 1 << 20, 32 << 20))
FIRST_NS, CALLS, ROUNDS = 2_000_000, 300, 5


@dataclass(frozen=True, slots=True)
class Tried:
    """A program under its automatic schedule: its text, what was refused, and times in ns where they were asked for."""

    text: str
    refused: tuple[str, ...]
    auto_ns: float = 0.0
    default_ns: float = 0.0


def tried(seed: int, timed: bool = False) -> Tried | None:
    """Return what became of the program `seed`; None where it is no program. Wrong and StaxError are raised."""
    try:
        built = build(draw(seed))
        wanted = oracle(built)
    except (StaxError, Refused):
        return None
    machine = MACHINES[seed % len(MACHINES)]
    known = {name: a.shape for name, a in built.arrays.items()} | built.shapes if seed % 3 else {}
    chosen = choose(built.pipeline, machine, known, reassociates=False)
    again = choose(built.pipeline, machine, known, reassociates=False)
    text = str(Schedule.of(built.pipeline, chosen.lines))
    assert str(Schedule.of(built.pipeline, again.lines)) == text
    assert Schedule.parse(text, built.pipeline).lines == chosen.lines
    kernel, _, _, _ = kernel_of(built, chosen.lines)
    try:
        found = call(built, kernel, Random(seed))
    except BoundsError as error:
        raise AssertionError(f"a call is refused: {error}") from error
    compare("the automatic schedule", found, wanted)
    if not timed:
        return Tried(text, chosen.refused)
    plain, _, _, _ = kernel_of(built, ())
    runs = [lambda k=k: k(**built.arrays, **built.scalars, shape=built.asked, threads=2) for k in (kernel, plain)]
    best = [math.inf, math.inf]
    for run in runs:
        run()
    count = max(3, min(CALLS, int(FIRST_NS / max(1, _once(runs[1], 1)))))
    for _ in range(ROUNDS):
        for k, run in enumerate(runs):
            best[k] = min(best[k], _once(run, count))
    return Tried(text, chosen.refused, best[0], best[1])


def _once(run: object, count: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(count):
        run()  # type: ignore[operator]
    return (time.perf_counter_ns() - start) / count


__all__ = ["Built", "Tried", "tried"]
