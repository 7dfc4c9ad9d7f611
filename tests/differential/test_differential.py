"""Random programs under random schedules agree with the oracle to the bit; the full size is `python -m`."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest

from tests.differential.compare import difference, run
from tests.differential.generate import ALL, draw
from tests.differential.mutants import MUTANTS, find
from tests.differential.seen import expected, table
from tests.differential.work import Job, quick, work
from tests.differential.workers import Died, run_all

CI_PROGRAMS = 300
CI_RECURRENCES = 40
PER_TEST = 15
CI_SCHEDULES = 2
TABLE_PROGRAMS = 60


@pytest.mark.parametrize("first", range(0, CI_PROGRAMS, PER_TEST))
def test_programs_agree_with_the_oracle_to_the_bit(first: int) -> None:
    bad = []
    for seed in range(first, first + PER_TEST):
        outcome = quick(Job(seed, CI_SCHEDULES))
        if outcome.status not in ("ok", "refused"):
            bad.append(f"seed {seed}: {outcome.status}: {outcome.message}\n{outcome.schedule}")
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("first", range(0, CI_RECURRENCES, 4))
def test_recurrences_in_other_orders_and_in_place_agree_to_the_bit(first: int) -> None:
    """Skewed, reversed, mapped, tiled in time, folded, in place; the full size is `--recurrences --programs 3000`."""
    bad = []
    for seed in range(first, first + 4):
        outcome = quick(Job(seed, CI_SCHEDULES, recurrences=True))
        if outcome.status not in ("ok", "refused"):
            bad.append(f"seed {seed}: {outcome.status}: {outcome.message}\n{outcome.schedule}")
    assert not bad, "\n".join(bad)


def test_few_programs_are_refused_and_most_constructs_are_seen() -> None:
    """A part of the full table: what is drawn must come through to machine code."""
    seen: Counter[str] = Counter()
    refused = 0
    for seed in range(TABLE_PROGRAMS):
        outcome = work(Job(1000 + seed, 2))
        refused += outcome.status == "refused"
        seen.update(outcome.seen)
    assert refused <= TABLE_PROGRAMS // 8
    for dtype in ALL:
        assert seen[f"dtype {dtype}"] > 0
    found = [word for word in expected() if seen[word]]
    assert len(found) >= 0.7 * len(expected()), table(Counter(), seen, 1)


def test_a_seed_gives_one_program() -> None:
    assert [draw(k).text() for k in range(20)] == [draw(k).text() for k in range(20)]
    assert len({draw(k).text() for k in range(200)}) == 200


def test_an_outcome_is_the_same_again() -> None:
    first, second = (run(draw(7), 3) for _ in range(2))
    assert (first.status, first.drawn, first.refusals) == (second.status, second.drawn, second.refusals)


def test_a_difference_of_one_bit_is_told_and_any_nan_is_any_other() -> None:
    want = np.array([0.0, np.nan, 1.0], np.float32)
    assert difference(np.array([0.0, -np.nan, 1.0], np.float32), want) is None
    assert difference(np.array([-0.0, np.nan, 1.0], np.float32), want) is not None
    text = difference(np.array([0.0, np.nan, np.nextafter(np.float32(1), np.float32(2))], np.float32), want)
    assert text is not None
    assert text.startswith("at (2,)")
    assert difference(want.astype(np.float64), want) is not None


def _ends(job: Job) -> int:
    if job.seed == 1:
        os.abort()
    return job.seed


def test_a_process_that_dies_is_reported_with_its_job_and_the_others_go_on() -> None:
    found = list(run_all(_ends, [Job(k, 1) for k in range(3)], 1))
    assert sorted(r for r in found if isinstance(r, int)) == [0, 2]
    assert [r.job.seed for r in found if isinstance(r, Died)] == [1]


def test_there_are_twenty_mutants_or_more() -> None:
    assert len({m.name for m in MUTANTS}) == len(MUTANTS) >= 20


@pytest.mark.slow
@pytest.mark.parametrize("name", [m.name for m in MUTANTS])
def test_each_mutant_is_found(name: str) -> None:
    assert find(name, CI_PROGRAMS, 3, 0, 2).programs is not None
