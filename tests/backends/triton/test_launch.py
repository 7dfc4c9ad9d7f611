"""Printed kernels, in Triton's interpreter against NumPy and the loop interpreter, and compiled for sm_90."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.loops import programs

ROOT = Path(__file__).parents[3]
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed: pip install 'stax[gpu]'"
)
CASES = (
    "pointwise", "row_sum", "blur", "blur_folded", "blur in scratch", "matmul", "matmul of small blocks", "histogram",
    "heat",
)  # fmt: skip


def child(what: str, **env: str) -> list[dict[str, Any]]:
    """Return what a Triton process prints; Triton asks at its import whether it interprets."""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.backends.triton.child", what], cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-4000:]
    return [json.loads(line) for line in found.stdout.splitlines()]


@pytest.fixture(scope="module")
def ran() -> list[dict[str, Any]]:
    """Return differences in Triton's interpreter, on arrays between bands of strange values."""
    return child("run", TRITON_INTERPRET="1")


@pytest.fixture(scope="module")
def compiled() -> list[dict[str, Any]]:
    """Return what each kernel uses on sm_90."""
    return child("compile")


@needs_triton
def test_programs_give_what_numpy_gives(ran: list[dict[str, Any]]) -> None:
    """Masked pointwise, row sums, the blur carried, rolled and in scratch, a product in place with a relu, and more."""
    found = {line["name"]: line for line in ran if "tolerance" in line}
    assert tuple(found) == CASES
    assert [line for line in found.values() if line["gap"] > line["tolerance"]] == []


@needs_triton
def test_every_operator_of_every_type_gives_what_the_loop_interpreter_gives(ran: list[dict[str, Any]]) -> None:
    """Integers and bools to the bit; floats within a few roundings, NaN for NaN."""
    found = [line for line in ran if "float" in line]
    assert len(found) > 600
    assert [line for line in found if line["gap"] > (1e-6 if line["float"] else 0)] == []


@needs_triton
def test_each_kernel_compiles_for_sm_90(compiled: list[dict[str, Any]]) -> None:
    """Without spills, inside the shared memory of one block: the interpreter hides what the compiler refuses."""
    assert {line["name"] for line in compiled} >= {*CASES, "all float16", "all uint64", "all bool"}
    assert [line for line in compiled if line["spilled"] or line["shared"] > 232448] == []


@needs_triton
def test_a_large_contraction_uses_the_matrix_unit(compiled: list[dict[str, Any]]) -> None:
    """From a bare Dot node."""
    assert next(line for line in compiled if line["name"] == "large matmul f16")["wgmma"] > 0


def test_the_programs_are_those_that_run_on_the_cpu() -> None:
    """No node is for one machine only."""
    assert {c.name for c in programs.CASES} <= set(CASES)
