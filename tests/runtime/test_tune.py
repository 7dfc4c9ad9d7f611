"""Schedules that are measured at the first call."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.backends.llvm import build
from stax.loops.show import show
from stax.runtime import tune
from stax.testing import interpret

y, x = sx.vars("y x")
V = np.random.default_rng(0).random((70, 300), np.float32)


def program() -> sx.Func:
    a, soft, f = sx.Input("a", sx.float32, 2), sx.Func("soft"), sx.Func("f")
    soft[y, x] = sx.exp(a[y, x]) + a[y, x + 1]
    f[y, x] = soft[y, x] + soft[y + 1, x] + soft[y + 2, x]
    return f


def tuned(folder: Path, **more: Any) -> sx.Kernel:
    return sx.compile(program(), options=sx.Options(autotune=True, cache_dir=folder, strict_native=True, **more))


def test_the_first_call_takes_the_fastest_schedule_and_the_cache_remembers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []

    def last(kernels: Any, bound: Any, threads: int) -> int:
        measured.append(len(kernels))
        assert 0 <= fastest(kernels, bound, threads) < len(kernels)
        return 0

    fastest = tune.fastest
    monkeypatch.setattr(tune, "fastest", last)
    want = interpret(program(), {"a": V})
    for _ in range(2):
        k = tuned(tmp_path)
        before = str(k.schedule)
        for _ in range(3):
            np.testing.assert_array_equal(k(V), want)
        assert str(k.schedule) != before
    assert len(measured) == 1
    assert measured[0] >= 2
    tuned(tmp_path)(V[:50])
    assert len(measured) == 2


def test_nothing_is_measured_of_empty_arrays_or_under_a_schedule_that_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tune, "fastest", None)
    assert tuned(tmp_path)(V[:2]).shape == (0, 299)
    f = program()
    s = sx.Schedule(f)
    s[f].parallel(y).vectorize(x, 8)
    k = sx.compile(f, s, options=sx.Options(autotune=True, cache_dir=tmp_path))
    assert k(V).shape == (68, 299)


def test_threads_that_call_first_get_the_same_kernel(tmp_path: Path) -> None:
    k, got = tuned(tmp_path), list[Any]()
    threads = [threading.Thread(target=lambda: got.append(k(V))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    want = interpret(program(), {"a": V})
    assert len(got) == 4
    for one in got:
        np.testing.assert_array_equal(one, want)


def test_sums_keep_their_order_unless_that_is_left_free(tmp_path: Path) -> None:
    a, f = sx.Input("a", sx.float32, 2), sx.Func("f")
    r = sx.RDom("r", j=a.shape[1])
    f[y] = sx.sum(a[y, r], over=r)
    k = sx.compile(f, options=sx.Options(autotune=True, cache_dir=tmp_path))
    np.testing.assert_array_equal(k(V), interpret(f, {"a": V}))
    assert k.contract == "bitwise"


def test_a_schedule_without_machine_code_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact, tried = build.artifact, list[str]()

    def fails(program: Any, *rest: Any, **named: Any) -> Any:
        tried.append(show(program))
        if tried[-1] == tried[0]:
            raise RuntimeError("no machine code of the first")
        return artifact(program, *rest, **named)

    monkeypatch.setattr(build, "artifact", fails)
    k = tuned(tmp_path)
    np.testing.assert_array_equal(k(V), interpret(program(), {"a": V}))
    assert not k.cache_info().interpreted
    assert len(set(tried)) >= 2
