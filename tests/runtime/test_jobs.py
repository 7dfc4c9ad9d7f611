"""Many programs compiled at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stax as sx
from stax.backends.llvm.optimize import compile_text
from stax.runtime.jobs import Progress


def chain(n: int) -> sx.Func:
    y, x = sx.vars("y x")
    before: sx.Func | sx.Input = sx.Input("a", sx.float32, 2)
    for k in range(n):
        f = sx.Func(f"f{k}")
        f[y, x] = before[y, x] * np.float32(k + n) + before[y, x + 1]
        before = f
    assert isinstance(before, sx.Func)
    return before


def test_kernels_come_in_order_with_their_times_within_the_bounds(tmp_path: Path) -> None:
    programs, said = [chain(n) for n in range(1, 9)], list[Progress]()
    options = sx.Options(cache_dir=tmp_path)
    batch = sx.compile_all(programs, options=options, workers=2, progress=said.append)
    v = np.arange(60, dtype=np.float32).reshape(3, 20)
    for n, kernel in enumerate(batch, 1):
        assert kernel.cache_info().versions == 1
        assert np.array_equal(kernel(v), sx.compile(programs[n - 1])(v))
    assert [p.done for p in said] == list(range(1, 9))
    assert {p.total for p in said} == {8} or said[-1].total == 8
    assert len(batch.times_s) == 8
    assert batch.least_s <= batch.took_s + 0.05
    assert batch.took_s <= batch.most_s + 0.25
    assert str(batch).startswith("8 kernels by 2 workers in ")


def test_an_error_of_one_is_raised() -> None:
    with pytest.raises(sx.errors.DefinitionError):
        sx.compile_all([chain(2), sx.Func("f")])
    with pytest.raises(sx.errors.ArgumentError, match="takes a list"):
        sx.compile_all(chain(1))  # type: ignore[arg-type]
    with pytest.raises(sx.errors.ArgumentError, match="workers"):
        sx.compile_all([], workers=0)
    assert sx.compile_all([]) == []


def test_threads_that_compile_at_a_time_give_the_same_bytes() -> None:
    from concurrent.futures import ThreadPoolExecutor

    machine = sx.Target.host()
    texts = [sx.compile(chain(n)).source("llvm") for n in range(1, 7)]
    alone = [compile_text(t, machine) for t in texts]
    with ThreadPoolExecutor(3) as pool:
        for _ in range(3):
            assert list(pool.map(lambda t: compile_text(t, machine), texts)) == alone
