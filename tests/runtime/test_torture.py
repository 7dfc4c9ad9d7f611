"""A small part of `python -m tests.runtime.torture`."""

from __future__ import annotations

from pathlib import Path

from tests.runtime.torture import flipped, killed, together


def test_processes_that_start_together_build_once(tmp_path: Path) -> None:
    assert together(tmp_path, 3) == ""


def test_killed_processes_leave_a_cache_that_is_right(tmp_path: Path) -> None:
    assert killed(tmp_path, 3, 1) == ""


def test_no_bit_of_an_entry_may_be_another(tmp_path: Path) -> None:
    assert flipped(tmp_path) == ""
