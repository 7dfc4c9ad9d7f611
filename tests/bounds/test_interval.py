"""What indices lie between."""

from __future__ import annotations

import numpy as np

import stax as sx
from stax.lang.freeze import freeze
from stax.legality.check import check
from stax.loops.interpret import interpret as run
from stax.lower.passes import lower
from stax.schedule.default import complete
from stax.testing import interpret

y, x = sx.vars("y x")


def test_a_condition_on_a_variable_bounds_its_quotient() -> None:
    """`w` reads `a` at 0 and 1 alone, inlined into lanes of `f` too."""
    a, f = sx.Input("a", sx.int32, 1), sx.Func("f", shape=(3, 13))
    w = sx.Func("w", shape=(3, 13), where=lambda y, x: x <= y)
    w[y, x] = a[x // 2] * 2
    f[y, x] = sx.select(x <= y, w[y, x], 5)
    pipeline = freeze(f)
    program = lower(check(pipeline, complete(pipeline, ())))
    given, out = np.array([3, 4], np.int32), np.zeros((3, 13), f.dtype.dtype)
    sizes = {("a", 0): 2, ("f", 0): 3, ("f", 1): 13}
    run(program, {"a": given, "f": out}, {}, sizes)
    np.testing.assert_array_equal(out, interpret(f, {"a": given}))
