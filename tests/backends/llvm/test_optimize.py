"""Compiling: errors are LLVM's words, time is linear, and loop passes run where they have something to do."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from stax import dtypes
from stax.backends.artifact import Facts
from stax.backends.llvm.build import build as compiled
from stax.backends.llvm.module import emit
from stax.backends.llvm.optimize import SHORT, assembled, compile_text
from stax.errors import BackendError
from stax.expr import build
from stax.expr.nodes import Expr, Load
from stax.loops.nodes import Program, Role, Store
from stax.target import Target
from tests.backends.llvm.harness import HOST, buffer, elementwise, loop, program, run, size

F32 = dtypes.float32


def dense(p: Program) -> Facts:
    names = frozenset(b.name for b in p.buffers)
    return Facts(names, names)


def test_text_that_is_wrong_is_an_error_in_the_words_of_llvm() -> None:
    with pytest.raises(BackendError, match="does not take") as caught:
        compile_text("define i32 @f() { ret i64 0 }", HOST)
    assert "ret" in "".join(caught.value.facts)


def test_only_known_intrinsics_reach_llvm() -> None:
    text = "declare <vscale x 4 x float> @llvm.stepvector.nxv4i32()\ndefine void @f() {\n ret void\n}"
    with pytest.raises(BackendError, match=r"llvm\.stepvector"):
        compile_text(text, HOST)


def test_a_target_that_llvm_lacks_is_an_error() -> None:
    with pytest.raises(BackendError, match="no target"):
        compile_text("define void @f() {\n ret void\n}", Target("nonsense-none-none", "", "", 16, 1))


@pytest.mark.parametrize("lanes", [0, 16])
def test_a_deep_chain_takes_two_seconds_at_most(lanes: int) -> None:
    def chain(a: Expr, b: Expr) -> Expr:
        for k in range(2500):
            a = build.add(build.mul(a, b), build.const(float(k % 7), F32, a.axes))
        return a

    p = elementwise(F32, [F32, F32], chain, lanes)
    start = time.process_time()
    compiled(p, dense(p), HOST)
    assert time.process_time() - start < 2


def test_a_chain_of_doublings_is_as_long_as_its_graph() -> None:
    """As a tree it would have 2**2000 nodes."""

    def doubled(a: Expr) -> Expr:
        for _ in range(2000):
            a = build.mul(build.add(a, a), build.const(0.5, F32, a.axes))
        return a

    p = elementwise(F32, [F32], doubled, 16)
    assert emit(p, dense(p), HOST).count("\n") < 4200
    a = np.arange(16, dtype=np.float32)
    arrays = {"a0": a, "out": np.zeros(16, np.float32)}
    run(p, arrays)
    np.testing.assert_array_equal(arrays["out"], a)


def accumulated() -> Program:
    x, k = build.local("x"), build.local("k")
    total = build.add(Load(F32, "out", (x,)), build.mul(Load(F32, "a", (x, k)), Load(F32, "a", (k, x))))
    buffers = [buffer("a", F32, 2), buffer("out", F32, role=Role.OUTPUT)]
    return program(buffers, loop("x", size("out"), loop("k", size("a", 1), Store("out", (x,), total))))


def weighted() -> Program:
    x = build.local("x")
    value = build.mul(Load(F32, "a", (x,)), Load(F32, "w", (build.index(3),)))
    buffers = [buffer("a", F32), buffer("w", F32), buffer("out", F32, role=Role.OUTPUT)]
    return program(buffers, loop("x", size("out"), Store("out", (x,), value)))


def copied() -> Program:
    return elementwise(F32, [F32], lambda a: a, 16)


@pytest.mark.parametrize(("make", "short"), [(accumulated, False), (weighted, False), (copied, True)])
def test_loop_passes_run_where_memory_may_stay_in_a_register(make: Callable[[], Program], short: bool) -> None:
    p = make()
    assert emit(p, dense(p), HOST).startswith(SHORT) == short


@pytest.mark.skipif(not HOST.is_x86, reason="reads x86 assembly")
def test_an_accumulator_in_memory_is_kept_in_a_register() -> None:
    """Alias tags say that what is added lies elsewhere."""
    p = accumulated()
    lines = assembled(emit(p, dense(p), HOST), HOST).splitlines()
    start = next(k for k, line in enumerate(lines) if "vmulss" in line or "vfmadd" in line)
    end = next(k for k in range(start, len(lines)) if lines[k].strip().startswith("j"))
    assert not [line for line in lines[start:end] if line.strip().startswith("vmovss") and line.rstrip().endswith(")")]
