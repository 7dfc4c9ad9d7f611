"""What was found of Funcs under other schedules is what would be found anew."""

from __future__ import annotations

from random import Random

import pytest

from stax.algorithm.nodes import Pipeline
from stax.bounds.infer import Regions, infer
from stax.errors import LegalityError, ScheduleError, UnsupportedError
from stax.legality.check import check
from stax.legality.known import Known
from stax.loops.show import show
from stax.lower.passes import lower
from stax.schedule.directives import Line
from tests.legality.programs import program, schedule


def verdict(pipeline: Pipeline, lines: tuple[Line, ...], regions: Regions, known: Known | None) -> str:
    """Return the loops, or why there are none."""
    try:
        return show(lower(check(pipeline, lines, regions, known)))
    except (LegalityError, ScheduleError, UnsupportedError) as error:
        return str(error)


@pytest.mark.parametrize("seed", range(40))
def test_verdicts_do_not_depend_on_what_was_judged_before(seed: int) -> None:
    rng, known = Random(seed), Known()
    made = program(rng, ("chain", "placed", "taken", "kept"))
    regions = infer(made.pipeline)
    for _ in range(3):
        lines = schedule(rng, made.pipeline, made.kind)
        for some in (lines, lines[: len(lines) - 1], lines):
            assert verdict(made.pipeline, some, regions, known) == verdict(made.pipeline, some, regions, None)
