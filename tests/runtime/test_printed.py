"""Kernels whose code the LLVM printer wrote: what it prints and what a call hands over fit together."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stax import dtypes
from stax.algorithm.nodes import Input, Scalar, Table
from stax.backends.artifact import Artifact, Facts
from stax.backends.llvm import module
from stax.backends.llvm.optimize import compile_text
from stax.errors import DeviceError
from stax.expr import build
from stax.expr.nodes import Cast, Load, Local, Param, Size
from stax.loops.nodes import Allocate, Block, Buffer, For, LoopKind, Program, Role, Store
from stax.runtime.cache import Store as Kept
from stax.runtime.cache import object_key
from stax.runtime.kernel import Build, Kernel
from stax.runtime.pool import pool, python_pool
from stax.runtime.signature import Output, Signature
from stax.target import Target
from tests.runtime.artifacts import size

F32, I64, INDEX = dtypes.float32, dtypes.int64, dtypes.index


def program(scratch: int = 4) -> Program:
    """For each row y: `row[x] = a[y, x] * k + t[x % 2]`, then `f[y, x] = row[x]` and `g = int64(row[x])`, by parts."""
    y, x, z = (Local(INDEX, name) for name in ("y", "x", "z"))
    n, m = Size(INDEX, "f", 0), Size(INDEX, "f", 1)
    k = Param(F32, "k")
    row = Buffer("row", F32, (build.mul(m, scratch),), Role.SCRATCH)
    value = build.add(build.mul(Load(F32, "a", (y, x)), k), Load(F32, "t", (build.mod(x, 2),)))
    read = Load(F32, "row", (z,))
    inner = For(x, build.index(0), m, LoopKind.SERIAL, Block((Store("row", (x,), value),)))
    outer = For(
        z, build.index(0), m, LoopKind.SERIAL,
        Block((Store("f′0", (y, z), read), Store("f′1", (y, z), Cast(I64, read)))),
    )  # fmt: skip
    rows = For(y, build.index(0), n, LoopKind.PARALLEL, Block((Allocate(row), inner, outer)))
    a = Size(INDEX, "a", 0), Size(INDEX, "a", 1)
    buffers = (
        Buffer("a", F32, a, Role.INPUT),
        Buffer("t", F32, (build.index(2),), Role.TABLE),
        Buffer("f′0", F32, (n, m), Role.OUTPUT),
        Buffer("f′1", I64, (n, m), Role.OUTPUT),
    )
    return Program("f", buffers, (k, *a, n, m), Block((rows,)))


def kernel(kept: Kept | None = None, scratch: int = 4, native: bool = True) -> Kernel:
    """Its table is not dense either."""
    made, target, store = program(scratch), Target.host(), kept or Kept(None)

    def respecialise(facts: Facts) -> Artifact:
        text = module.emit(made, facts, target)
        code = store.entry(object_key(text, target), lambda: compile_text(text, target))
        return Artifact(text, code, module.entry(made), module.slots(made), facts)

    table = Table("t", F32, np.array([0, 7, 100], np.float32)[::2])
    shape = (size("a", 0), size("a", 1))
    signature = Signature(
        (Input("a", F32, ("y", "x"), (None, None)),), (Scalar("k", F32, 0.5),), (table,),
        (Output("f", (F32, I64), shape, ("y", "x")),), ("a", "k"), (), "f",
    )  # fmt: skip
    symbols = pool().symbols if native else python_pool().symbols
    return Kernel(Build(signature, respecialise, lambda: made, threads=2, strict_native=True, symbols=lambda: symbols))


def want(a: np.ndarray[Any, Any], k: float = 0.5) -> np.ndarray[Any, Any]:
    return a * np.float32(k) + np.where(np.arange(a.shape[1]) % 2 == 0, np.float32(0), np.float32(100))


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_rows_in_parallel_with_scratch_a_table_a_param_and_two_parts(threads: int, native: bool) -> None:
    a = np.arange(700, dtype=np.float32).reshape(20, 35)
    f, g = kernel(native=native)(a, 3, threads=threads)
    assert (f == want(a, 3)).all()
    assert (g == want(a, 3).astype(np.int64)).all()


@pytest.mark.parametrize("shape", [*itertools.product((0, 1, 3), (0, 1, 17)), (2, 70_000)])
def test_any_layout(shape: tuple[int, int]) -> None:
    k = kernel()
    whole = np.arange(shape[0] * shape[1] * 6, dtype=np.float32)
    raw = np.zeros(whole.nbytes + 1, np.uint8)[1:].view(np.float32)
    raw[:] = whole
    size = shape[0] * shape[1]
    for memory in (whole, raw):
        for a in (
            memory[:size].reshape(shape), memory[:size].reshape(shape[::-1]).T,
            memory[:size].reshape(shape)[::-1, ::-1],
            memory.reshape(2 * shape[0], 3 * shape[1])[::2, ::3],
        ):  # fmt: skip
            out = np.zeros(shape[::-1], np.float32).T
            f, g = k(a, out=(out, None))
            assert f is out
            assert (f == want(a)).all()
            assert (g == want(a).astype(np.int64)).all()


def test_memory_that_is_not_there_is_an_error_and_the_kernel_goes_on() -> None:
    """Every row asks for some 100 TB; the first that fails ends the others."""
    a = np.ones((8, 100), np.float32)
    k = kernel(scratch=1 << 38)
    for _ in range(200):
        with pytest.raises(DeviceError, match="`f` ran out of memory") as error:
            k(a)
    assert error.value.facts == (f"{100 * 4 << 38} bytes were asked for",)


def test_threads_share_a_kernel_with_scratch() -> None:
    k, wrong = kernel(), list[int]()

    def work(n: int) -> None:
        a = np.full((n + 1, 40_000), n, np.float32)
        for _ in range(10):
            if not (k(a)[0] == want(a)).all():
                wrong.append(n)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert wrong == []


def test_code_from_the_cache_runs_as_code_just_made(tmp_path: Path) -> None:
    a = np.ones((3, 4), np.float32)
    stores = [Kept(tmp_path) for _ in range(3)]
    for store in stores[:2]:
        assert (kernel(store)(a)[0] == want(a)).all()
    (entry,) = tmp_path.rglob("*.entry")
    whole = entry.read_bytes()
    entry.write_bytes(whole[: len(whole) // 2])
    assert (kernel(stores[2])(a)[0] == want(a)).all()
    assert [(s.hits, s.misses) for s in stores] == [(0, 1), (1, 0), (0, 1)]
    assert entry.read_bytes() == whole
