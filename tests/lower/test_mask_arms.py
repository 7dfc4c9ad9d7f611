"""Loads of the arm that is not taken."""

from __future__ import annotations

from typing import Any

import numpy as np

import stax as sx
from stax.compiler import freeze_for
from stax.gpu import MOST_IN_BLOCKS
from stax.legality.check import check
from stax.legality.known import Known
from stax.loops import walk
from stax.loops.interpret import interpret as run
from stax.loops.nodes import Program
from stax.loops.show import show
from stax.lower.blocks import lower_to_blocks
from stax.testing import interpret
from tests.backends.triton import public

M, N = sx.vars("m n")


def blocks(f: Any) -> Program:
    """Return the loops of `f` by the default schedule of GPUs, verified after each pass."""
    lines = sx.auto_schedule(f, target="cuda")
    pipeline = freeze_for(f, lines, None, None, None)
    return lower_to_blocks(check(pipeline, lines.lines, None, Known(most_lanes=MOST_IN_BLOCKS)), debug=True)


def masks(program: Program, buffer: str) -> list[int]:
    """Return how many conditions each load of a buffer has beside those of its lanes."""
    found = [n for n in walk.loads(program.body) if n.buffer == buffer]
    return [sum(not m.axes for m in n.mask) for n in found]


def test_start_values_are_loaded_in_the_first_step_only() -> None:
    program = blocks(public.heat())
    assert masks(program, "u") == [1]
    given = {"u": public.floats(300), "steps": 4}
    out = np.zeros(300, np.float32)
    arrays = {"u": given["u"], "out": out}
    run(program, arrays, {"steps": 4}, {("u", 0): 300, ("out", 0): 300})
    np.testing.assert_array_equal(out, interpret(public.heat(), given))


def test_a_load_that_both_arms_use_has_no_mask() -> None:
    a, b = sx.Input("a", sx.float32, 1), sx.Input("b", sx.float32, 1)
    p = sx.Param("p", sx.int64)
    f = sx.Func("f")
    f[N] = sx.select(p > 0, a[N] + b[N], a[N])
    program = blocks(f)
    assert (masks(program, "a"), masks(program, "b")) == ([0], [1])


def test_a_choice_that_differs_by_lane_is_left_alone() -> None:
    a, b = sx.Input("a", sx.float32, 1), sx.Input("b", sx.float32, 1)
    f = sx.Func("f")
    f[N] = sx.select(a[N] > 0, a[N], b[N]) + sx.select(N % 2 == 0, a[N], b[N])
    program = blocks(f)
    assert masks(program, "b") == [0]


def test_a_choice_inside_a_choice_adds_its_condition() -> None:
    a, p, q = sx.Input("a", sx.float32, 1), sx.Param("p", sx.int64), sx.Param("q", sx.int64)
    f = sx.Func("f", shape=a.shape)
    f[N] = sx.select(p > 0, sx.select(q > 0, a[N], 1), 2)
    assert masks(blocks(f), "a") == [2]


def test_a_long_chain_of_choices_takes_no_time() -> None:
    """Choices beyond a few add no more conditions, and nothing recurses."""
    a, p = sx.Input("a", sx.float32, 1), sx.Param("p", sx.int64)
    f = sx.Func("f")
    value = a[N]
    for k in range(1500):
        value = sx.select(p > k, value + 1, a[N])
    f[N] = value
    assert "f" in show(blocks(f))
