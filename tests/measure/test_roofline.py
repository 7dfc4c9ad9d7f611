"""Bandwidth and peak are the best of two runs, and runs that differ are told."""

import pytest

from stax.compiler import host
from stax.measure.roofline import Rate, Roofline, measured


def test_capability_is_the_better_run_and_unsteady_runs_are_flagged() -> None:
    found = Roofline("cpu", 2, 64 << 20, Rate(10e9, 16e9), Rate(12e9, 12.1e9), Rate(14e9, 15e9), Rate(190e9, 192e9))
    assert (found.bandwidth, found.peak, found.ridge) == (16e9, 192e9, 12)
    assert [r.is_steady for r in (found.read, found.copy, found.stream, found.work)] == [False, True, True, True]
    assert not found.is_steady
    assert str(found).count("UNSTEADY") == 1
    assert "16.0   10.0   16.0  UNSTEADY" in str(found)


def test_a_copy_that_reads_the_lines_it_writes_says_so() -> None:
    """At B = 15, where all three of read, read for ownership and write count, a copy seems to go at 10."""
    found = Roofline("cpu", 2, 64 << 20, Rate(15e9, 15e9), Rate(10e9, 10e9), Rate(18e9, 18e9), Rate(1e9, 1e9))
    assert found.write_factor == pytest.approx(2)
    assert found.bandwidth == 18e9


def test_it_can_be_measured_small() -> None:
    found = measured(host(), 1, 2, 1 << 20, 64)
    assert found.size_bytes == 1 << 20
    assert min(found.bandwidth, found.copy.best, found.peak, found.ridge) > 0
