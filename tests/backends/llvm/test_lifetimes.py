"""Scratch is given back after its last use: a long chain of whole stages holds two of them at a time."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import stax as sx
from stax import compiler
from stax.runtime.pool import Pool, pool

ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)
FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def test_a_chain_of_stages_holds_two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty stages computed whole: what was held at most is two stages, and in the end nothing."""
    real = pool().symbols
    take, give = ALLOC(real["stax_alloc"]), FREE(real["stax_free"])
    held: dict[int, int] = {}
    most = 0

    def alloc(size: int) -> int:
        nonlocal most
        place = take(size)
        held[place] = size
        most = max(most, sum(held.values()))
        return place

    def free(place: int | None) -> None:
        if place is not None:
            del held[place]
        give(place)

    calls = ALLOC(alloc), FREE(free)
    names = ("stax_alloc", "stax_free")
    watched = {n: ctypes.cast(c, ctypes.c_void_p).value or 0 for n, c in zip(names, calls, strict=True)}
    monkeypatch.setattr(compiler, "pool", lambda *_: Pool({**real, **watched}, True, ()))

    y, x = sx.vars("y x")
    a = sx.Input("a", sx.float32, 2)
    f, stages = a, []
    for k in range(20):
        g = sx.Func(f"s{k}")
        g[y, x] = f[y, x] + f[y, x + 1]
        stages.append(g)
        f = g
    s = sx.Schedule(f)
    for g in stages[:-1]:
        s[g].compute_root()
    v = np.ones((256, 300), np.float32)
    assert (sx.compile(f, s, strict_native=True)(v) == 2.0**20).all()
    assert not held
    assert 0 < most <= 2 * 256 * 300 * 4
