"""What the host does, and what is a kernel."""

from __future__ import annotations

import pytest

from stax import dtypes
from stax.errors import UnsupportedError
from stax.expr import build
from stax.expr.nodes import Size
from stax.loops.launches import HostAllocate, HostLoop, Kernel, kernels
from stax.loops.nodes import Allocate, Block, Buffer, For, Let, LoopKind, Role, Store
from stax.lower.split_kernels import split_kernels
from tests.loops import programs
from tests.loops.programs import argument, size

I32 = dtypes.int32
OUT = argument("out", I32, 1, Role.OUTPUT)


def test_nested_parallel_loops_are_one_grid() -> None:
    (kernel,) = split_kernels(programs.pointwise(4, 8))
    assert isinstance(kernel, Kernel)
    assert [loop.var.name for loop in kernel.grid] == ["io", "jo"]
    assert [a.name for a in kernel.axes] == ["i", "j"]
    assert {(s.array, s.dim) for s in kernel.scalars if isinstance(s, Size)} >= {("out", 0), ("out", 1)}


def test_a_serial_loop_around_parallel_ones_is_the_hosts() -> None:
    (loop,) = split_kernels(programs.heat(8))
    assert isinstance(loop, HostLoop)
    (kernel,) = loop.body
    assert isinstance(kernel, Kernel)
    assert [c.name for c in kernel.counters] == ["t"]


def test_nests_side_by_side_are_launched_in_order() -> None:
    host = split_kernels(programs.histogram(8))
    assert [[loop.var.name for loop in k.grid] for k in kernels(host)] == [["bo"], ["io"]]
    assert len({k.name for k in kernels(host)}) == 2


def test_outer_scratch_is_memory_of_all_kernels_and_inner_scratch_of_one_point() -> None:
    tmp = Buffer("tmp", I32, (size("out", 0),), Role.SCRATCH)
    own = Buffer("own", I32, (build.index(4),), Role.SCRATCH)
    i, k = build.local("i"), build.local("k")
    fill = programs.parallel("i", size("out", 0), Store("tmp", (i,), build.const(1, I32)))
    use = programs.parallel(
        "k", size("out", 0), Allocate(own), Store("own", (build.index(0),), build.const(1, I32)),
        Store("out", (k,), programs.load(tmp, (k,))),
    )  # fmt: skip
    host = split_kernels(programs.program("p", (OUT,), (), Allocate(tmp), fill, use))
    assert isinstance(host[0], HostAllocate)
    first, second = kernels(host)
    assert [b.name for b in first.buffers] == ["tmp"]
    assert [b.name for b in second.buffers] == ["out", "tmp"]
    assert [b.name for b in second.scratch] == ["own"]


def test_a_let_of_the_host_is_put_where_it_is_used() -> None:
    n = build.local("n")
    i = build.local("i")
    nest = programs.parallel("i", n, Store("out", (i,), build.cast(n, I32)))
    (kernel,) = split_kernels(programs.program("p", (OUT,), (), Let(n, build.add(size("out", 0), -1)), nest))
    assert isinstance(kernel, Kernel)
    assert kernel.counters == ()


def test_a_ragged_parallel_loop_is_no_dimension_of_the_grid() -> None:
    """Launches are rectangles."""
    i, k = build.local("i"), build.local("k")
    inner = programs.parallel("k", i, Store("out", (k,), build.const(1, I32)))
    (kernel,) = split_kernels(programs.program("p", (OUT,), (), programs.parallel("i", size("out", 0), inner)))
    assert isinstance(kernel, Kernel)
    assert [loop.var.name for loop in kernel.grid] == ["i"]
    assert isinstance(kernel.body.stmts[0], For)


def test_scratch_of_another_extent_in_each_iteration_is_refused() -> None:
    i = build.local("i")
    own = Buffer("own", I32, (i,), Role.SCRATCH)
    body = Block((Allocate(own), Store("own", (build.index(0),), build.const(1, I32))))
    nest = For(i, build.index(0), size("out", 0), LoopKind.PARALLEL, body)
    with pytest.raises(UnsupportedError, match="`own` has another extent in each iteration"):
        split_kernels(programs.program("p", (OUT,), (), nest))
