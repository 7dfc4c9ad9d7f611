"""Accumulators of lanes that may not all exist."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import stax as sx
from stax.expr.nodes import Reduce
from stax.loops import walk
from stax.loops.nodes import For
from stax.lower.passes import lower

OPS: dict[str, Callable[[sx.Value, sx.Value], sx.Value]] = {
    "sum": lambda old, v: old + v,
    "max": sx.maximum,
    "min": sx.minimum,
    "product": lambda old, v: old * v,
}
NUMPY = {"sum": np.sum, "max": np.max, "min": np.min, "product": np.prod}


def reduced(op: str, dtype: sx.DType, lanes: int) -> tuple[sx.Func, sx.Schedule]:
    m, x = sx.Var("m"), sx.Input("x", dtype, 2)
    r, t = sx.RDom("r", j=x.shape[1] - 1), sx.Func("t")
    t[m] = x[m, 0]
    t[m] = OPS[op](t[m], x[m, r.j + 1])
    s = sx.Schedule(t)
    s[t].update(0).reassociate().split("r.j", "r.j", "r.in", lanes, tail="predicate").vectorize("r.in")
    return t, s


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", [sx.int32, sx.float32, sx.uint8, sx.int64, sx.float64])
def test_lanes_that_do_not_exist_add_nothing(op: str, dtype: sx.DType) -> None:
    """Rows of every length up to two vectors and a half, of small values: sums and products are exact."""
    k = sx.compile(*reduced(op, dtype, 16), strict_native=True)
    rng = np.random.default_rng(1)
    for n in range(1, 41):
        v = rng.choice([1, 2, 3] if op != "product" else [1, 1, 1, 1, 2], (3, n)).astype(dtype.name)
        np.testing.assert_array_equal(k(v), NUMPY[op](v, axis=1).astype(dtype.name))


def test_what_is_not_a_number_is_seen_in_a_partial_vector_and_only_there() -> None:
    k = sx.compile(*reduced("max", sx.float32, 16), strict_native=True)
    rows = np.full((2, 40), np.nan, np.float32)
    rows[:, :19] = 1
    assert k(rows[:, :19]).tolist() == [1, 1]
    rows[1, 18] = np.nan
    assert np.isnan(k(rows[:, :19])).tolist() == [False, True]


def test_a_partial_vector_is_one_step_of_accumulators() -> None:
    """Two loops, the whole vectors and the rest; each ends in one reduction across lanes."""
    program = lower(sx.check(*reduced("sum", sx.float32, 16)), debug=True)
    inner = [s for s in walk.statements(program.body) if isinstance(s, For) and s.carries]
    assert [s.carries[0].name.axes[0].size for s in inner] == [16, 16]
    assert sum(isinstance(n, Reduce) for n in walk.nodes(program.body)) == 2
