"""What a worker does for a seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.differential import recurrences
from tests.differential.compare import Outcome, run
from tests.differential.generate import draw
from tests.differential.schedules import OF_SUMS


@dataclass(frozen=True, slots=True)
class Job:
    seed: int
    schedules: int
    recurrences: bool = False
    enough: frozenset[str] = frozenset()
    aim: str = ""


def work(job: Job) -> Outcome:
    """Return what became of the program of a seed, and what was seen in it."""
    return _run(job, True)


def quick(job: Job) -> Outcome:
    """Return what became of the program of a seed."""
    return _run(job, False)


def _run(job: Job, count: bool) -> Outcome:
    with np.errstate(all="ignore"):
        try:
            drawn = (recurrences.draw if job.recurrences else draw)(job.seed)
            drawn.aim = job.aim
            if job.aim in OF_SUMS and not drawn.whole:
                return Outcome(job.seed, "refused", f"a program without a place for {job.aim}")
        except Exception as error:
            return Outcome(job.seed, "error", f"drawing: {type(error).__name__}: {error}")
        return run(drawn, job.schedules, count=count, enough=job.enough)
