"""Every parallel loop of every example runs its iterations on two threads at a time."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax import compiler
from stax.runtime.pool import Pool, pool
from tests.examples.test_examples import OUTPUTS, example

PAR_FOR = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)
TASK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64)
SIZE = 300


class Watched:
    """The pool, with every parallel loop of two iterations or more held up until two threads are inside it."""

    def __init__(self) -> None:
        self.loops: list[int] = []
        self._real = PAR_FOR(pool().symbols["stax_par_for"])
        self._entry = PAR_FOR(self._run)
        self.pool = Pool({**pool().symbols, "stax_par_for": _address(self._entry)}, True, ())

    def _run(self, fn: int, ctx: int, n: int, threads: int) -> int:
        if n < 2:
            return int(self._real(fn, ctx, n, threads))
        seen, both, real = set[int](), threading.Event(), TASK(fn)

        def task(inner: int, i: int) -> int:
            seen.add(threading.get_ident())
            if len(seen) > 1:
                both.set()
            both.wait(20)
            return int(real(inner, i))

        callback = TASK(task)
        result = int(self._real(_address(callback), ctx, n, threads))
        self.loops.append(len(seen))
        return result


def _address(function: Any) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


@pytest.mark.parametrize("name", OUTPUTS)
def test_each_parallel_loop_runs_on_two_threads(name, monkeypatch):
    """An iteration waits inside until a second thread has come: with one thread the loop would be seen on one."""
    watched = Watched()
    monkeypatch.setattr(compiler, "pool", lambda *_: watched.pool)
    module, output = example(name)
    given = module.inputs(SIZE)
    kernel = sx.compile(output, strict_native=True)
    got = kernel(**given, threads=2)
    assert all(np.asarray(g).size for g in (got if isinstance(got, tuple) else (got,)))
    if "parallel" in str(kernel.schedule):
        assert watched.loops, "no parallel loop had two iterations"
    assert set(watched.loops) <= {2}
