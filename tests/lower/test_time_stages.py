"""Clocks around stages: where they stand, and that the ordinary kernel has none."""

from __future__ import annotations

import numpy as np

import stax as sx
from stax.loops.show import show
from stax.loops.verify import verify
from stax.lower.passes import lower
from stax.lower.time_stages import time_stages

y, x = sx.vars("y x")


def blurred() -> tuple[sx.Func, sx.Func]:
    a = sx.Input("a", sx.int32, 2)
    f, g = sx.Func("f"), sx.Func("g")
    f[y, x] = a[y, x] + a[y, x + 1]
    g[y, x] = f[y, x] + f[y + 1, x]
    return f, g


def test_each_stage_of_a_parallel_loop_is_timed_in_the_thread_that_works() -> None:
    f, g = blurred()
    s = sx.Schedule(g)
    s[g].parallel(y)
    s[f].compute_at(g, y)
    program, names = time_stages(lower(sx.check(g, s)))
    verify(program)
    assert names == ("f", "g")
    assert show(program).partition("\n\n")[2] == (
        "for times′row in 0 +: times′.shape[0]:\n"
        "    times′[times′row, 0] = 0\n"
        "    times′[times′row, 1] = 0\n"
        "timed times′[0]:\n"
        "    parallel for g.y in 0 +: g.shape[0]:\n"
        "        f: int32[2, g.shape[1]] = scratch  # g.shape[1] * 8 bytes\n"
        "        timed times′[1]:\n"
        "            for f.y in 0 +: 2:\n"
        "                for f.x in 0 +: g.shape[1]:\n"
        "                    f[f.y, f.x] = a[g.y + f.y, f.x] + a[g.y + f.y, f.x + 1]\n"
        "        timed times′[2]:\n"
        "            for g.x in 0 +: g.shape[1]:\n"
        "                g[g.y, g.x] = f[0, g.x] + f[1, g.x]\n"
    ), show(program)


def test_a_loop_without_loops_that_computes_several_stages_has_one_row() -> None:
    f, g = blurred()
    s = sx.Schedule(g)
    s[f].compute_at(g, x)
    program, names = time_stages(lower(sx.check(g, s)))
    verify(program)
    assert names in (("f + g",), ("f", "g"))
    assert show(program).count("timed") == 1 + len(names)


def test_the_ordinary_kernel_reads_no_clock() -> None:
    _, g = blurred()
    kernel = sx.compile(g)
    assert "readcyclecounter" not in kernel.source("llvm")
    assert kernel.build.timed is not None
    clocked, _ = kernel.build.timed()
    assert clocked.source("llvm").count("call i64 @llvm.readcyclecounter") >= 4
    given = np.arange(30, dtype=np.int32).reshape(5, 6)
    got, times = clocked(given)
    assert got.tolist() == kernel(given).tolist()
    assert times[0, 0] > 0
    assert times[0, 1] == 1


def test_a_value_carried_out_of_a_loop_stays_in_sight_of_the_store_after_it() -> None:
    a, r, f = sx.Input("a", sx.float32, 2), sx.RDom("r", k=7), sx.Func("f")
    f[y] = sx.float32(0)
    f[y] += a[y, r]
    for schedule in (None, sx.Schedule(f)):
        kernel = sx.compile(f, schedule, strict_native=True)
        assert kernel.build.timed is not None
        clocked, names = kernel.build.timed()
        verify(clocked.build.program())
        assert names[-1] in ("f.update(0)", "f + f.update(0)")
        given = np.arange(35, dtype=np.float32).reshape(5, 7)
        assert clocked(given)[0].tobytes() == kernel(given).tobytes()
