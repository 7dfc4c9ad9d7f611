"""Orders that would change a value: the two points that collide, and what to do instead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stax.errors import LegalityError
from tests.refusals.run import run

FOLDER = Path(__file__).parent / "orders"

HEAT = r"""
t, y, x = sx.vars("t y x")
steps = sx.Param("steps", sx.int64, low=1)
a = sx.Input("a", sx.float32, 2)
h, w = a.shape
u = sx.Func("u", shape=(steps + 1, h, w))
u[0, y, x] = a[y, x]
around = u[t - 1, y - 1, x] + u[t - 1, y + 1, x] + u[t - 1, y, x - 1] + u[t - 1, y, x + 1]
u[t, y, x] = sx.select((y > 0) & (y < h - 1) & (x > 0) & (x < w - 1), around * 0.25, u[t - 1, y, x])
out = sx.Func("out")
out[y, x] = u[steps, y, x]
s = sx.Schedule(out)
"""
TILE = 's[u].tile((t, y), ("to", "yo"), ("ti", "yi"), (8, 32))\n'
SEIDEL = r"""
y, x = sx.vars("y x")
a = sx.Input("a", sx.int32, 2)
g = sx.Func("g", shape=a.shape)
g[y, x] = a[y, x]
r = sx.RDom("r", i=(1, a.shape[0] - 1), j=(1, a.shape[1] - 1))
g[r.i, r.j] = g[r.i - 1, r.j] + g[r.i, r.j - 1] + g[r.i + 1, r.j] + g[r.i, r.j + 1]
s = sx.Schedule(g)
"""
SHIFT = r"""
x = sx.Var("x")
a = sx.Input("a", sx.float32, 1)
f = sx.Func("f", shape=a.shape)
f[x] = a[x]
r = sx.RDom("r", k=a.shape[0] - 1)
f[r] = f[r + 1]
s = sx.Schedule(f)
"""

REFUSALS = {
    "a time tile without a skew": HEAT + TILE + "sx.check(out, s)",
    "a skew too small": HEAT + "s[u].skew(y, t, -1)\n" + TILE + "sx.check(out, s)",
    "a forgotten wavefront": HEAT + "s[u].skew(y, t, 1)\n" + TILE + 's[u].parallel("yo")\nsx.check(out, s)',
    "rows of an update in parallel": SEIDEL + "s[g].update(0).parallel(r.i)\nsx.check(g, s)",
    "columns of an update outside": SEIDEL + "s[g].update(0).reverse(r.j)\nsx.check(g, s)",
    "an in place shift the other way": SHIFT + "s[f].update(0).reverse(r)\nsx.check(f, s)",
    "an in place shift in parallel": SHIFT + "s[f].update(0).parallel(r)\nsx.check(f, s)",
    "a time fold one too small": HEAT + "s[u].fold_storage(t, 1)\nsx.check(out, s)",
    "a fold of what is read whole": HEAT.replace("u[steps, y, x]", "u[x, y, 0]")
    + "s[u].fold_storage(t, 2)\nsx.check(out, s)",
    "an order of writes": r"""
x = sx.Var("x")
a = sx.Input("a", sx.float32, 2)
f = sx.Func("f", shape=(8,))
f[x] = np.float32(0)
r = sx.RDom("r", i=a.shape[0], j=5)
f[r.j // 2] = a[r.i, r.j]
s = sx.Schedule(f)
s[f].update(0).reverse(r.j)
sx.check(f, s)
""",
    "a question that is too hard": r"""
x = sx.Var("x")
a = sx.Input("a", sx.int64, 1)
f = sx.Func("f", shape=(64,))
f[x] = a[x]
r = sx.RDom("r", k=(sx.clip(a[0], 0, 3), 64))
f[r] = f[r - r % 7] + 1
s = sx.Schedule(f)
s[f].update(0).split(r, "ro", "ri", 4).reorder("ri", "ro")
sx.check(f, s)
""",
}


@pytest.mark.parametrize("title", REFUSALS)
def test_a_wrong_order_is_refused_with_the_points_that_collide(title, golden):
    with pytest.raises(LegalityError) as found:
        run(REFUSALS[title])
    name = re.sub(r"\W+", "_", title).strip("_")
    golden(f"{type(found.value).__name__}: {found.value}\n", FOLDER / f"{name}.txt")


@pytest.mark.parametrize(
    "lines",
    [
        "s[u].skew(y, t, 1)\n" + TILE,
        "s[u].skew(y, t, 1)\n" + TILE + 's[u].skew("to", "yo", 1).parallel("yo")\n',
        "s[u].fold_storage(t, 2)\n",
        "s[u].skew(y, t, 1)\n" + TILE + "s[u].fold_storage(t, 2)\n",
    ],
)
def test_the_remedies_of_these_refusals_are_legal(lines):
    """A hint is tried before it is given, here once more by hand."""
    run(HEAT + lines + "sx.check(out, s)")
