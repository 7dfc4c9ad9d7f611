"""Recurrences without an order: the cells that need each other, in the user's names, or that none was found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stax.errors import StaxError
from tests.refusals.run import run

FOLDER = Path(__file__).parent / "cycles"

HEAD = """
t, y, x = sx.vars("t y x")
f, g, h = (sx.Func(name, dtype=sx.int32, shape=(9, 9)) for name in "fgh")
"""

REFUSALS = {
    "a recurrence in both directions": """
x = sx.Var("x")
f = sx.Func("f", dtype=sx.float32, shape=(9,))
f[x] = sx.select(x > 0, f[x - 1], 0) + sx.select(x < 8, f[x + 1], 0)
sx.compile(f)
""",
    "a recurrence in both directions far apart": """
n = sx.Param("n", sx.int64, low=0)
x = sx.Var("x")
f = sx.Func("f", dtype=sx.float32, shape=(n,))
f[x] = sx.select(x > 99, f[x - 100], 0) + sx.select(x < n - 100, f[x + 100], 0)
sx.compile(f)
""",
    "a step that may be none": """
n = sx.Param("n", sx.int64, low=0)
x = sx.Var("x")
f = sx.Func("f", dtype=sx.float32, shape=(9,))
f[x] = sx.select(x >= n, f[x - n], 1)
sx.check(f)
""",
    "a transposed read": HEAD + "f[y, x] = sx.select(y != x, f[x, y], 0)\nsx.compile(f)",
    "a cycle of three steps": HEAD
    + """
one = sx.select((y > 0) & (x < 8), f[y - 1, x + 1], 0)
two = sx.select(x > 0, f[y, x - 1], 0)
three = sx.select(y < 8, f[y + 1, x], 0)
f[y, x] = one + two + three
sx.compile(f)
""",
    "a cycle within one step": HEAD + "f[t, x] = g[t, x] + 1\ng[t, x] = f[t, x] * 2\nsx.compile(g)",
    "a cycle of three Funcs": HEAD
    + """
f[t, x] = sx.select(t > 0, g[t - 1, x], 0)
g[t, x] = h[t, 8 - x]
h[t, x] = sx.select(t < 8, f[t + 1, x], 1)
out = sx.Func("out")
out[x] = f[8, x]
sx.compile(out)
""",
    "a read at data": """
a = sx.Input("a", sx.int64, 1)
x = sx.Var("x")
f = sx.Func("f", dtype=sx.int32, shape=(9,))
f[x] = f[sx.clip(a[x], 0, 8)] + 1
sx.compile(f)
""",
    "an order by no sum": """
x = sx.Var("x")
f = sx.Func("f", dtype=sx.int32, shape=(9,))
f[x] = sx.select(x < 5, f[x + 1], sx.select(x == 5, 0, f[x - 1]))
sx.compile(f)
""",
}


@pytest.mark.parametrize("title", REFUSALS)
def test_what_has_no_order_is_refused_with_its_cycle(title, golden):
    with pytest.raises(StaxError) as found:
        run(REFUSALS[title])
    name = re.sub(r"\W+", "_", title).strip("_")
    golden(f"{type(found.value).__name__}: {found.value}\n", FOLDER / f"{name}.txt")
