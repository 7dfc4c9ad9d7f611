"""Loops that run past an extent, behind a guard, ask for nothing in the iterations that are not there."""

from __future__ import annotations

import numpy as np

import stax as sx
from stax.loops.interpret import interpret
from stax.lower.passes import lower


def test_a_fused_loop_past_the_end_computes_nothing_there() -> None:
    """A split by 7 of an extent of 8, fused again, has 14 iterations: the six too many read nothing of `a`."""
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.int32, 2)
    f, g = sx.Func("f"), sx.Func("g")
    f[y, x] = a[y, x] * 3
    g[y, x] = f[y, x] + f[y, x + 1]
    s = sx.Schedule(g)
    s[g].split(y, "yo", "yi", 7)
    s[f].compute_at(g, "yo")
    s[g].fuse("yo", "yi", "all")
    v = np.arange(8 * 6, dtype=np.int32).reshape(8, 6)
    kernel = sx.compile(g, s, strict_native=True)
    assert (kernel(v) == v[:, :-1] * 3 + v[:, 1:] * 3).all()
    guarded = np.full((20, 6), -7, np.int32)
    guarded[:8] = v
    assert (kernel(guarded[:8]) == v[:, :-1] * 3 + v[:, 1:] * 3).all()

    out = np.zeros((8, 5), np.int32)
    sizes = {("a", 0): 8, ("a", 1): 6, ("g", 0): 8, ("g", 1): 5}
    interpret(lower(sx.check(g, s)), {"a": v, "g": out}, {}, sizes)
    assert (out == v[:, :-1] * 3 + v[:, 1:] * 3).all()


def test_a_point_that_only_a_base_value_has_asks_for_nothing() -> None:
    """At `z == 0` the recurrence takes its base value: `g`, placed inside, has no `z` of 0, and `f` no -1."""
    z, y = sx.vars("z y")
    a = sx.Input("a", sx.int32, 2)
    f, g, c = sx.Func("f"), sx.Func("g"), sx.Func("c", shape=(4, 2), dtype=sx.int32)
    f[z, y] = a[z, y] * 3
    g[z, y] = f[z - 1, y] + 1
    c[0, y] = 7
    c[z, y] = c[z - 1, y] + g[z, y]
    s = sx.Schedule(c)
    s[f].compute_root()
    s[c].fuse("z", "y", "all")
    s[g].compute_at(c, "all")
    v = np.arange(6, dtype=np.int32).reshape(3, 2)
    want = np.full((4, 2), 7, np.int32)
    for k in range(1, 4):
        want[k] = want[k - 1] + v[k - 1] * 3 + 1
    legal = sx.check(c, s)
    assert (sx.compile(c, s, strict_native=True)(v) == want).all()

    out = np.zeros((4, 2), np.int32)
    interpret(lower(legal), {"a": v, "c": out}, {}, {("a", 0): 3, ("a", 1): 2, ("c", 0): 4, ("c", 1): 2})
    assert (out == want).all()


def test_lanes_over_a_band_are_rounded_up_from_where_its_storage_begins() -> None:
    """From where a row of the band begins they would run past the end of its storage (seed 773)."""

    def band(y: sx.Var, x: sx.Var) -> sx.Value:
        return (x <= y + 2) & (x >= y - 2)

    y, x = sx.vars("y x")
    a, w, f = sx.Input("a", sx.int16, 2), sx.Func("w", shape=(9, 12), where=band), sx.Func("f")
    w[y, x] = a[y, x] * 3
    f[y, x] = sx.select(band(y, x), w[y, x], 5)
    s = sx.Schedule(f)
    s[w].compute_root().split(x, "xo", "xi", 16, tail="round_up").vectorize("xi")
    given = np.random.default_rng(0).integers(-9, 9, (9, 12), np.int16)
    rows, columns = np.indices((9, 12))
    want = np.where(abs(rows - columns) <= 2, given * 3, 5)
    program = lower(sx.check(f, s))
    out = np.zeros((9, 12), np.int16)
    sizes = {(name, d): n for name in ("a", "f") for d, n in enumerate((9, 12))}
    interpret(program, {"a": given, "f": out}, {}, sizes)
    assert (out == want).all()
    assert (sx.compile(f, s, strict_native=True)(given, shape=(9, 12)) == want).all()


def test_masked_lanes_of_which_there_are_none_read_nothing() -> None:
    """A read that does not move with the lanes has no mask: there is no row, so it is not read (seed 2333)."""
    y, x = sx.vars("y x")
    a, f = sx.Input("a", sx.int32, 1), sx.Func("f")
    f[y, x] = a[3 * x] + y
    s = sx.Schedule(f)
    s[f].vectorize(y, upto=16)
    out, sizes = np.zeros((0, 6), np.int64), {("a", 0): 2, ("f", 0): 0, ("f", 1): 6}
    interpret(lower(sx.check(f, s)), {"a": np.ones(2, np.int32), "f": out}, {}, sizes)
    assert sx.compile(f, s, strict_native=True)(np.ones(2, np.int32), shape=(0, 6)).shape == (0, 6)
