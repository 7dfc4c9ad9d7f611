"""Conditions that unrolling decides."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.expr.nodes import Select
from stax.loops import walk
from stax.lower.passes import lower


def woven(tail: str) -> tuple[sx.Func, sx.Schedule]:
    """Return two rows taken in turns, the even steps and the odd ones written out apart."""
    x, a, b = sx.Var("x"), sx.Input("a", sx.uint16, 1), sx.Input("b", sx.uint16, 1)
    f = sx.Func("f")
    f[x] = sx.select(x % 2 == 0, a[x // 2], b[x // 2])
    s = sx.Schedule(f)
    s[f].split("x", "x", "xi", 2, tail=tail).unroll("xi").vectorize("x", 16).reorder("x", "xi", "x.in")
    return f, s


@pytest.mark.parametrize("tail", ["guard", "predicate"])
def test_values_stay(tail: str) -> None:
    k = sx.compile(*woven(tail), strict_native=True)
    for n in [*range(1, 9), 31, 32, 33, 63, 64, 65, 100, 131]:
        a, b = np.arange(n, dtype=np.uint16), np.arange(n, dtype=np.uint16) + 1000
        wanted = np.stack([a, b], axis=1).ravel()[: 2 * n]
        np.testing.assert_array_equal(k(a, b, shape=2 * n), wanted)


def test_each_of_the_steps_written_out_takes_its_own_arm() -> None:
    """In the steady loop nothing is selected; the rest may ask."""
    program = lower(sx.check(*woven("predicate")), debug=True)
    wide = [s for s in walk.stores(program.body) if s.value.axes and s.value.axes[0].size == 16 and not s.mask]
    assert len(wide) == 2
    assert not any(isinstance(node, Select) for s in wide for node in walk.nodes(s))


def test_every_second_element_is_stored_with_those_between() -> None:
    """Two stores of lanes that are two elements apart are one, of a vector twice as wide."""
    k = sx.compile(*woven("predicate"), strict_native=True)
    text = k.source("llvm")
    assert "store <32 x i16>" in text


def test_sums_of_data_may_wrap() -> None:
    """`a + 1 < a` holds of the largest integer, so it is not decided."""
    x, a, f = sx.Var("x"), sx.Input("a", sx.int64, 1), sx.Func("f")
    f[x] = sx.select(a[x] + 1 < a[x], 7, sx.select(a[x] % 2 == 0, 1, 2))
    s = sx.Schedule(f)
    s[f].unroll(x, 2)
    given = np.array([1, 2**63 - 1, 4, -(2**63)], np.int64)
    assert sx.compile(f, s, strict_native=True)(given).tolist() == [2, 7, 1, 1]
