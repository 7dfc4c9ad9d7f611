"""Printed kernels, in Triton's interpreter against NumPy and the loop interpreter, and compiled for sm_90."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stax.expr.nodes import Param
from tests.backends.llvm import harness as llvm
from tests.backends.triton import public
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
    found = {line["name"]: line for line in ran if "tolerance" in line and not {"pipeline", "public"} & line.keys()}
    assert tuple(found) == CASES
    assert [line for line in found.values() if line["gap"] > line["tolerance"]] == []


@needs_triton
def test_programs_compiled_for_gpus_give_what_the_oracle_gives(ran: list[dict[str, Any]]) -> None:
    """To the bit but for sums, through `sx.compile(target="cuda")`."""
    found = {line["name"]: line for line in ran if "public" in line}
    assert tuple(found) == tuple(public.PROGRAMS)
    assert [line for line in found.values() if line["gap"] > line["tolerance"]] == []


@needs_triton
def test_every_operator_of_every_type_gives_what_the_loop_interpreter_gives(ran: list[dict[str, Any]]) -> None:
    """Integers and bools to the bit; floats within a few roundings, sums in any order; NaN for NaN."""
    found = [line for line in ran if "float" in line]
    assert len(found) > 600
    bounds = {True: 1e-6, False: 0.0}
    wrong = [line for line in found if line["gap"] > bounds[line["float"]]]
    assert [line for line in wrong if "reduce" not in line["name"] or not line["float"] or line["gap"] > 1e-4] == []


@needs_triton
def test_random_pipelines_give_what_the_loop_interpreter_gives(ran: list[dict[str, Any]]) -> None:
    """From the language, by the default schedule of the CPU and its lowering, unchanged."""
    found = [line for line in ran if "pipeline" in line]
    assert len(found) == 20
    assert sum(line["values"] for line in found) > 500
    assert [line for line in found if line["gap"] > line["tolerance"]] == []


@needs_triton
def test_each_kernel_compiles_for_sm_90(compiled: list[dict[str, Any]]) -> None:
    """Without spills, inside the shared memory of one block: the interpreter hides what the compiler refuses."""
    assert {line["name"] for line in compiled} >= {*CASES, "all float16", "all uint64", "all bool", *public.PROGRAMS}
    assert [line for line in compiled if line["shared"] > 232448] == []
    plain = [
        line
        for line in compiled
        if line["name"] in CASES or "public" in line or line["name"].startswith(("all", "large"))
    ]
    assert [line for line in plain if line["spilled"]] == []


@needs_triton
def test_a_large_contraction_uses_the_matrix_unit(compiled: list[dict[str, Any]]) -> None:
    """From a bare Dot node."""
    assert next(line for line in compiled if line["name"] == "large matmul f16")["wgmma"] > 0


@pytest.mark.parametrize("extents", [(1, 1), (5, 7), (9, 33)])
@pytest.mark.parametrize("case", programs.CASES, ids=lambda c: c.name)
def test_the_same_programs_run_on_the_cpu(case: programs.Case, extents: tuple[int, int]) -> None:
    """No node is for one machine only."""
    assert case.name in CASES
    arrays, scalars, right = case.data(np.random.default_rng(2), *extents)
    types = {s.name: s.dtype.dtype for s in case.program.scalars if isinstance(s, Param)}
    llvm.run(case.program, arrays, {name: types[name].type(value) for name, value in scalars.items()})
    for name, want in right.items():
        np.testing.assert_allclose(arrays[name], want, rtol=case.tolerance, atol=case.tolerance)
