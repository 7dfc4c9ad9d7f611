"""What a schedule may not do."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.errors import LegalityError

x = sx.Var("x")


def table_with_an_edge() -> tuple[sx.Func, sx.Func]:
    a, at = sx.Input("a", sx.float32, 1), sx.Input("at", sx.uint8, 1)
    lut, f = sx.Func("lut"), sx.Func("f")
    lut[x] = sx.select((x >= 1) & (x - 1 < a.shape[0]), a[x - 1], -1)
    f[x] = lut[at[x]]
    return lut, f


def test_what_conditions_on_positions_keep_inside_is_not_inlined_at_data() -> None:
    """There they would be conditions on data, which remove no reads."""
    lut, f = table_with_an_edge()
    s = sx.Schedule(f)
    s[lut].inline()
    with pytest.raises(LegalityError, match="`lut` cannot be inlined into `f`"):
        sx.check(f, s)


def test_the_default_schedule_keeps_such_a_func() -> None:
    _, f = table_with_an_edge()
    got = sx.compile(f, strict_native=True)(np.float32([5, 6, 7]), np.uint8([0, 1, 3, 4, 255]))
    assert got.tolist() == [-1, 5, 7, -1, -1]
