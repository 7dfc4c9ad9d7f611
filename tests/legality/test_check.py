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


def test_the_first_loop_of_a_group_is_no_part_of_a_fused_one() -> None:
    """Its steps are those of the other members too."""
    y = sx.Var("y")
    e, m = sx.Func("e", sx.int32, (4, 5)), sx.Func("m", sx.int32, (4, 5))
    e[0, x], m[0, x] = 1, 2
    e[y, x] = e[y - 1, x] + m[y - 1, x]
    m[y, x] = m[y - 1, x] + sx.select(x < 4, e[y, x + 1], e[y, x])
    s = sx.Schedule(m)
    s[m].fuse(y, x, "yx")
    with pytest.raises(LegalityError, match="loop `y` stays outermost"):
        sx.check(m, s)
