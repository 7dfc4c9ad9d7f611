"""Cells that a loop keeps in registers."""

from __future__ import annotations

import numpy as np
import pytest

from stax import dtypes
from stax.expr import build
from stax.expr.nodes import Load
from stax.loops.interpret import interpret
from stax.loops.nodes import Role, Store
from stax.loops.show import show
from stax.lower.carry_accumulators import carry_accumulators
from tests.backends.llvm.harness import buffer, loop, program, size


@pytest.mark.parametrize("begins", [False, True])
def test_a_cell_that_each_iteration_computes_anew_is_not_read_around_a_loop_that_may_be_empty(begins: bool) -> None:
    """Where the loop is empty, the one cell of `p` may not be there: `a` has no element."""
    i = build.index(0)
    one = Load(dtypes.int64, "p", (build.local("i"),))
    more = Store("p", (build.local("i"),), build.add(one, build.const(1, dtypes.int64)))
    anew = Store("p", (build.local("i"),), build.const(7, dtypes.int64))
    inner = loop("r", size("a"), *([anew, more] if begins else [more]))
    buffers = [buffer("a", dtypes.int64), buffer("p", dtypes.int64, role=Role.OUTPUT)]
    made = carry_accumulators(program(buffers, loop("i", build.add(i, 2), inner)))
    assert ("carrying" in show(made)) != begins
    for rows, cells in ((0, 1 if begins else 2), (4, 2)):
        p = np.full(cells, 3, np.int64)
        interpret(made, {"a": np.zeros(rows, np.int64), "p": p}, {}, {("a", 0): rows, ("p", 0): cells})
        assert p.tolist() == [3 if not rows else 8 if begins else 7] * cells
