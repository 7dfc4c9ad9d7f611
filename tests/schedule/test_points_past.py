"""Loops that run past an extent, behind a guard, ask for nothing in the iterations that are not there."""

from __future__ import annotations

import numpy as np

import stax as sx


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
    from stax.loops.interpret import interpret
    from stax.lower.passes import lower

    out = np.zeros((8, 5), np.int32)
    sizes = {("a", 0): 8, ("a", 1): 6, ("g", 0): 8, ("g", 1): 5}
    interpret(lower(sx.check(g, s)), {"a": v, "g": out}, {}, sizes)
    assert (out == v[:, :-1] * 3 + v[:, 1:] * 3).all()
