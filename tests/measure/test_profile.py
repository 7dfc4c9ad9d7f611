"""`sx.profile`: what each stage takes and moves."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import stax as sx
from stax.errors import ArgumentError, BackendError, StaxWarning
from stax.runtime.kernel import Kernel

y, x = sx.vars("y x")


def two_stages() -> tuple[sx.Func, sx.Func]:
    a = sx.Input("a", sx.float32, 2)
    f, g = sx.Func("f"), sx.Func("g")
    f[y, x] = sx.exp(a[y, x])
    g[y, x] = f[y, x] + f[y + 1, x]
    return f, g


def test_rows_say_calls_bytes_and_allocation() -> None:
    f, g = two_stages()
    s = sx.Schedule(g)
    yo, yi = sx.vars("yo yi")
    s[g].split(y, yo, yi, 16).parallel(yo)
    s[f].compute_at(g, yo)
    found = sx.profile(sx.compile(g, s, strict_native=True), np.zeros((65, 30), np.float32), threads=2)
    one, two = found.stage("f"), found.stage("g")
    assert [s.stage for s in found.stages] == ["f", "g"]
    assert (one.calls, two.calls) == (4, 4)
    assert (one.read_bytes, one.written_bytes) == (4 * 17 * 30 * 4, 4 * 17 * 30 * 4)
    assert (two.read_bytes, two.written_bytes) == (64 * 30 * 2 * 4, 64 * 30 * 4)
    assert (one.allocations, one.allocated_bytes) == (4, 17 * 30 * 4)
    assert (two.allocations, two.allocated_bytes) == (0, 0)
    assert found.threads == 2
    assert 0 < one.time_s < 10
    assert 0 < found.plain_s < 10


def test_on_one_thread_the_stages_take_no_longer_than_the_whole() -> None:
    f, g = two_stages()
    s = sx.Schedule(g)
    s[f].compute_root()
    found = sx.profile(sx.compile(g, s, strict_native=True), np.zeros((300, 500), np.float32), threads=1)
    assert 0 < sum(one.time_s for one in found.stages) <= found.timed_s


def test_the_stage_that_works_more_takes_more_of_the_time() -> None:
    a = sx.Input("a", sx.float32, 2)
    light, heavy = sx.Func("light"), sx.Func("heavy")
    light[y, x] = a[y, x] + 1
    value = light[y, x]
    for _ in range(30):
        value = sx.sin(value)
    heavy[y, x] = value
    s = sx.Schedule(heavy)
    s[light].compute_root()
    found = sx.profile(sx.compile(heavy, s, strict_native=True), np.zeros((200, 200), np.float32))
    assert found.stage("heavy").time_s > 5 * found.stage("light").time_s


def test_it_prints_a_table() -> None:
    _, g = two_stages()
    lines = str(sx.profile(sx.compile(g), np.zeros((65, 30), np.float32), threads=1)).splitlines()
    assert lines[0].startswith("g: ")
    assert lines[0].endswith(" with clocks; 1 thread")
    assert lines[1].split() == ["stage", "time", "share", "calls", "read", "written", "allocated"]
    assert len({len(line) for line in lines[1:]}) == 1


def test_several_outputs_params_and_updates_are_profiled() -> None:
    a, k = sx.Input("a", sx.int32, 1), sx.Param("k", sx.int32, default=3)
    f, h, r = sx.Func("f"), sx.Func("h", shape=(4,)), sx.RDom("r", i=a.shape[0])
    f[x] = (a[x] + k, a[x] * k)
    h[x] = 0
    h[a[r.i] & 3] += 1
    kernel = sx.compile((f, h), strict_native=True)
    found = sx.profile(kernel, np.arange(100, dtype=np.int32), k=5)
    assert {"f", "h.update(0)"} <= {one.stage for one in found.stages}
    assert kernel(np.arange(8, dtype=np.int32))[1].tolist() == [2, 2, 2, 2]
    with pytest.raises(ArgumentError, match="no argument `m`"):
        sx.profile(kernel, np.arange(100, dtype=np.int32), m=5)


def test_shapes_that_nothing_says_are_given() -> None:
    f = sx.Func("f")
    f[y, x] = sx.cast(y * x, sx.int32)
    (only,) = sx.profile(sx.compile(f, strict_native=True), shape=(7, 9)).stages
    assert only.written_bytes == 7 * 9 * 4
    (none,) = sx.profile(sx.compile(f, strict_native=True), shape=(0, 9)).stages
    assert (none.calls, none.written_bytes) == (0, 0)


def test_an_interpreted_kernel_is_profiled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    import stax.backends.llvm.build as llvm

    def broken(*_: object) -> None:
        raise BackendError("no target")

    f, g = two_stages()
    s = sx.Schedule(g)
    s[f].compute_root()
    monkeypatch.setattr(llvm, "artifact", broken)
    kernel = sx.compile(g, s)
    with pytest.warns(StaxWarning, match="interpreted"):
        found = sx.profile(kernel, np.zeros((9, 8), np.float32))
    assert found.stage("f").calls == 1
    assert found.stage("f").time_s > 0


def test_clocks_cost_nothing_where_they_are_not_asked_for() -> None:
    """The ordinary kernel's text is the same before and after it was profiled."""
    _, g = two_stages()
    kernel = sx.compile(g)
    before = kernel.source("llvm")
    sx.profile(kernel, np.zeros((9, 8), np.float32))
    assert kernel.source("llvm") == before
    assert isinstance(kernel, Kernel)
    assert "cycle" not in before


def test_naming_it_loads_no_compiler() -> None:
    code = "import sys, stax; stax.profile; stax.trace; print('llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_an_array_that_the_kernel_writes_over_is_not_touched() -> None:
    a, f = sx.Input("a", sx.int32, 1), sx.Func("f")
    f[x] = a[x] * 2
    s = sx.Schedule(f)
    s[f].overwrite(a)
    kernel, given = sx.compile(f, s, strict_native=True), np.arange(9, dtype=np.int32)
    assert sx.profile(kernel, given).stage("f").written_bytes == 36
    assert sx.trace(kernel, given).count("store", f) == 9
    assert given.tolist() == list(range(9))
