"""Arms that keep the value of a step earlier, stored over it."""

from __future__ import annotations

import numpy as np

import stax as sx
from stax.loops.interpret import interpret
from stax.lower.passes import lower


def test_what_is_read_inside_is_not_read_at_the_start_values_of_the_edge() -> None:
    """`a[x, 0]` has no row `x` at the edge, where the first step has a value and the others keep it."""
    t, x = sx.vars("t x")
    a = sx.Input("a", sx.float32, 2)
    f, out = sx.Func("f", shape=(5, a.shape[0] + 1)), sx.Func("out")
    f[0, x] = sx.float32(1)
    f[t, x] = sx.select(x < a.shape[0], f[t - 1, x] + a[x, 0], f[t - 1, x])
    out[x] = f[4, x]
    s = sx.Schedule(out)
    s[f].fold_storage(t, 1).skew(x, t, -2)
    given = np.random.default_rng(0).random((7, 1), np.float32)
    got = np.zeros(8, np.float32)
    sizes = {("a", 0): 7, ("a", 1): 1, ("out", 0): 8}
    interpret(lower(sx.check(out, s), debug=True), {"a": given, "out": got}, {}, sizes)
    want = np.ones(8, np.float32)
    for _ in range(4):
        want[:7] += given[:, 0]
    assert (got == want).all()
    assert (sx.compile(out, s, strict_native=True)(given, shape=8) == want).all()
