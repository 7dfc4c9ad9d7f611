"""Random programs under automatic schedules."""

from __future__ import annotations

import pytest

from tests.auto.pipelines import tried

RUNS = 6


@pytest.mark.parametrize("first", range(1000, 1000 + 5 * RUNS, RUNS))
def test_random_programs_keep_their_bits_under_automatic_schedules(first: int) -> None:
    """30 of them; `python -m tests.auto` goes through as many as one likes, and times them."""
    found = [tried(seed) for seed in range(first, first + RUNS)]
    assert any(found)
