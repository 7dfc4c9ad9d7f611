"""Scratch is given back after its last use; small scratch of a loop's body is kept for the next iteration."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import numpy as np
import pytest

import stax as sx
from stax import compiler
from stax.runtime.pool import Pool, pool

ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)
FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@dataclass
class Watch:
    """How many blocks were taken, what is held, and the most that was."""

    taken: int = 0
    most: int = 0
    held: dict[int, int] = field(default_factory=dict)
    calls: tuple[object, ...] = ()


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    real = pool().symbols
    take, give = ALLOC(real["stax_alloc"]), FREE(real["stax_free"])
    seen = Watch()

    def alloc(size: int) -> int:
        place = take(size)
        seen.taken += 1
        seen.held[place] = size
        seen.most = max(seen.most, sum(seen.held.values()))
        return place

    def free(place: int | None) -> None:
        if place is not None:
            del seen.held[place]
        give(place)

    calls = seen.calls = ALLOC(alloc), FREE(free)
    names = ("stax_alloc", "stax_free")
    watched = {n: ctypes.cast(c, ctypes.c_void_p).value or 0 for n, c in zip(names, calls, strict=True)}
    monkeypatch.setattr(compiler, "pool", lambda *_: Pool({**real, **watched}, True, ()))
    return seen


def test_a_chain_of_stages_holds_two_at_a_time(watch: Watch) -> None:
    """Twenty stages computed whole: what was held at most is two stages, and in the end nothing."""
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
    assert not watch.held
    assert 0 < watch.most <= 2 * 256 * 300 * 4


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_scratch_of_rows_is_taken_once_for_all_rows(watch: Watch, kind: str) -> None:
    """The heap is one for all threads: a strip of 64 rows asks for the scratch of a row once."""
    y, x = sx.vars("y x")
    a, g, f = sx.Input("a", sx.float32, 2), sx.Func("g"), sx.Func("f")
    g[y, x] = a[y, x] * 2
    f[y, x] = g[y, x] + g[y, x + 1]
    s = sx.Schedule(f)
    s[f].split("y", "yo", "yi", 64)
    s[g].compute_at(f, "yi")
    if kind == "parallel":
        s[f].parallel("yo")
    v = np.ones((200, 300), np.float32)
    assert (sx.compile(f, s, strict_native=True)(v) == 4).all()
    assert watch.taken == (4 if kind == "parallel" else 1)
    assert not watch.held


def test_large_scratch_is_held_no_longer_than_it_is_used(watch: Watch) -> None:
    """Three stages of a megabyte in each of three iterations."""
    z, y, x = sx.vars("z y x")
    a = sx.Input("a", sx.float32, 3)
    f, stages = a, []
    for k in range(4):
        g = sx.Func(f"s{k}")
        g[z, y, x] = f[z, y, x] + f[z, y, x + 1]
        stages.append(g)
        f = g
    s = sx.Schedule(f)
    for g in stages[:-1]:
        s[g].compute_at(f, "z")
    s[f].vectorize("x", 8)
    v = np.ones((3, 256, 1100), np.float32)
    assert (sx.compile(f, s, strict_native=True)(v) == 16).all()
    assert not watch.held
    assert watch.taken == 9
    assert watch.most <= 3 * 256 * 1100 * 4
