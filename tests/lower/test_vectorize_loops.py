"""Loops as lanes."""

from __future__ import annotations

import numpy as np

import stax as sx

y = sx.Var("y")


def test_a_cell_of_rank_zero_is_read_by_lanes_that_a_condition_turns_off() -> None:
    """It has no index that could carry the axis of the condition."""
    a, s, f = sx.Input("a", sx.int8, 1), sx.Func("s"), sx.Func("f", shape=(14,))
    r = sx.RDom("r", j=2, where=lambda r: sx.cast(a[y], sx.bool_))
    s[()] = a[0] + 1
    f[y] = sx.int8(0)
    f[y] += s[()] + sx.cast(r.j, sx.int8)
    schedule = sx.Schedule(f)
    schedule[s].compute_root()
    schedule[f].update(0).vectorize(y, 8)
    given = np.arange(14, dtype=np.int8) % 3
    got = sx.compile(f, schedule, strict_native=True)(given)
    assert got.tolist() == [3 if v else 0 for v in given]
