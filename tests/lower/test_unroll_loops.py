"""Loops written out: whole ones, and partial ones whose iterations are masked."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.loops import walk
from stax.loops.nodes import For, LoopKind, Program
from stax.lower.passes import lower


def product(rows: int = 4, lanes: int = 8, tail: str = "predicate") -> tuple[sx.Func, sx.Schedule]:
    """Return a product of matrices in register tiles, whose partial tiles are masked."""
    m, n = sx.vars("m n")
    a = sx.Input("a", sx.float32, 2)
    b = sx.Input("b", sx.float32, (a.shape[1], None))
    k, c = sx.RDom("k", k=a.shape[1]), sx.Func("c")
    c[m, n] = np.float32(0)
    c[m, n] += a[m, k] * b[k, n]
    s = sx.Schedule(c)
    tiled = s[c].update(0).split("m", "mo", "mi", rows, tail=tail).split("n", "no", "ni", lanes, tail=tail)
    tiled.reorder("mo", "no", "k.k", "mi", "ni").unroll("mi").vectorize("ni")
    return c, s


def sums(program: Program) -> list[For]:
    """Return the serial loops over `k`."""
    loops = [s for s in walk.statements(program.body) if isinstance(s, For)]
    return [s for s in loops if ".k.k" in s.var.name and s.kind is LoopKind.SERIAL]


@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 3, 8), (5, 4, 9), (7, 5, 23), (3, 2, 7), (8, 0, 16)])
def test_partial_tiles_have_the_values_of_whole_ones(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, s).astype(np.float32) for s in ((m, k), (k, n)))
    frame = np.full((m + 2, n + 2), 7, np.float32)
    sx.compile(*product(), strict_native=True)(a, b, out=frame[1:-1, 1:-1])
    np.testing.assert_array_equal(frame[1:-1, 1:-1], a @ b)
    frame[1:-1, 1:-1] = 7
    assert (frame == 7).all()


def test_accumulators_of_partial_tiles_stay_in_registers() -> None:
    """In whole tiles, those of the last columns and those of the last rows, each row is carried through the sum."""
    found = sums(lower(sx.check(*product())))
    assert len(found) == 3
    for loop in found:
        assert len(loop.carries) == 4
        assert not walk.stores(loop.body)
        assert all(c.name.axes[0].size == 8 for c in loop.carries)


def test_guarded_tails_keep_their_loops() -> None:
    found = sums(lower(sx.check(*product(tail="guard"))))
    assert any(walk.stores(loop.body) for loop in found)


def test_what_is_more_than_loads_and_stores_is_behind_a_branch() -> None:
    """A gather decides where it loads: an iteration that does not exist must not ask."""
    x, a = sx.Var("x"), sx.Input("a", sx.int32, 1)
    table, f = sx.Input("table", sx.int32, 1), sx.Func("f")
    f[x] = table[sx.clip(a[x], 0, 3)]
    s = sx.Schedule(f)
    s[f].split("x", "xo", "xi", 4, tail="predicate").unroll("xi")
    k = sx.compile(f, s, strict_native=True)
    for n in range(1, 11):
        v = np.arange(n, dtype=np.int32) % 4
        assert k(v, np.arange(10, 14, dtype=np.int32)).tolist() == (v + 10).tolist()
