"""The benchmarks measure what they say; their figures are for the README, not for tests."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import stax as sx
from examples.apps import bench, by_hand, stax_suite


def run(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "examples.apps.bench", *args]
    return subprocess.run(command, capture_output=True, text=True, cwd=bench.ROOT, check=False, timeout=300)


def test_a_program_is_timed_in_a_fresh_process_without_its_kernel():
    cpu, wall = bench._fresh("blur", 2)
    assert 0 < cpu < 60
    assert 0 < wall < 60


def test_limits_are_shown_with_what_was_measured():
    done = run("b5", "--repeat", "1", "--only", "blur")
    assert "at most 0.2 s" in done.stdout
    assert done.returncode in (0, 1)
    assert ("MISSED" in done.stdout) == (done.returncode == 1)


@pytest.mark.parametrize("name", ["blur", "harris", "chain62", "deep"])
def test_what_is_timed_gives_the_right_values(name):
    arguments, expected, make = bench._program(name) if name != "deep" else bench._deep(600)
    output, schedule = make()
    got = sx.compile(output, schedule, strict_native=True)(*arguments)
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-5)


def test_every_stage_of_a_chain_is_stored():
    _, _, make = bench._program("chain62")
    output, schedule = make()
    assert str(sx.compile(output, schedule).schedule).count("compute_root") == 61


def test_each_line_of_the_hand_schedules_has_one():
    for line in by_hand.LINES:
        assert line.ours in stax_suite.by_hand(line.app), line.name


def test_a_product_is_checked_and_timed_in_a_process_of_its_own():
    for system in ("stax", "numpy"):
        command = [sys.executable, "-m", "examples.apps.by_hand", "product", system, "37", "--threads", "1"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=bench.ROOT, check=True, timeout=300)
        found = json.loads(done.stdout)
        assert 0 < found["min_s"] < 1
        assert (found["kernel"] != "") == (system == "numpy")
