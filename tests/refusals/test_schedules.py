"""Schedules that would change a value, and ones that cannot be run: the full text of each error is beside the test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stax.errors import StaxError
from tests.refusals.run import run

FOLDER = Path(__file__).parent / "schedules"

BLUR = r"""
y, x = sx.vars("y x")
a = sx.Input("a", sx.float32, 2)
f, g = sx.Func("f"), sx.Func("g")
f[y, x] = a[y, x] * 2
g[y, x] = f[y, x] + f[y + 1, x]
s = sx.Schedule(g)
"""
SCAN = r"""
y, x = sx.vars("y x")
a = sx.Input("a", sx.float32, 2)
u = sx.Func("u", shape=a.shape)
u[y, 0] = a[y, 0]
u[y, x] = u[y, x - 1] * 0.5 + a[y, x]
s = sx.Schedule(u)
"""
SUM = r"""
y = sx.Var("y")
a = sx.Input("a", sx.float32, 2)
r = sx.RDom("r", i=a.shape[0], j=a.shape[1])
t = sx.Func("t")
t[()] = np.float32(0)
t[()] += a[r.i, r.j]
s = sx.Schedule(t)
"""

HIST = r"""
b = sx.Var("b")
a = sx.Input("a", sx.uint8, 2)
h = sx.Func("h", shape=(256,))
r = sx.RDom("r", y=a.shape[0], x=a.shape[1])
h[b] = 0
h[a[r.y, r.x]] += 1
s = sx.Schedule(h)
"""
RUNNING = r"""
a = sx.Input("a", sx.float32, 1)
r = sx.RDom("r", i=(1, a.shape[0]))
x = sx.Var("x")
p = sx.Func("p", shape=a.shape)
p[x] = a[x]
p[r] = p[r - 1] * 0.5 + a[r]
s = sx.Schedule(p)
"""

SHIFT = r"""
x = sx.Var("x")
a = sx.Input("a", sx.float32, 1)
f = sx.Func("f")
f[x] = a[sx.maximum(x - 1, 0)] + a[x]
s = sx.Schedule(f)
"""

REFUSALS = {
    "a map of loops that is no bijection": BLUR + "s[g].affine(((2, 1), (0, 1)), (y, x))\n",
    "a map of loops of another rank": BLUR + "s[g].affine(((1, 0),), (y, x))\n",
    "a shift in place of its input in the wrong direction": SHIFT + "s[f].overwrite(a)\nsx.check(f, s)\n",
    "in place of an input of another shape": BLUR + "s[g].overwrite(a)\nsx.check(g, s)\n",
    "atomic on a definition": HIST + "s[h].atomic()",
    "atomic on an update that does not combine": RUNNING + "s[p].update(0).atomic().parallel(r)\nsx.compile(p, s)",
    "accumulators of a loop that is not reduced": r"""
y = sx.Var("y")
a = sx.Input("a", sx.int32, 2)
r = sx.RDom("r", i=a.shape[1])
t = sx.Func("t")
t[y] = 0
t[y] += a[y, r]
s = sx.Schedule(t)
s[t].update(0).accumulators(y, 4)
sx.compile(t, s)
""",
    "lanes that meet in a cell": HIST + "s[h].update(0).vectorize(r.x, 8)\nsx.compile(h, s)",
    "reassociate where fp is strict": r"""
a = sx.Input("a", sx.float32, 1)
r = sx.RDom("r", i=a.shape[0])
t = sx.Func("t", fp="strict")
t[()] = np.float32(0)
t[()] += a[r]
s = sx.Schedule(t)
s[t].update(0).reassociate().vectorize(r, 8)
sx.compile(t, s)
""",
    "rfactor where fp is strict": r"""
a = sx.Input("a", sx.float32, 1)
r = sx.RDom("r", i=a.shape[0])
t = sx.Func("t", fp="strict")
t[()] = np.float32(0)
t[()] += a[r]
sx.Schedule(t)[t].update(0).split_reduction(r, 64, "u", "part")
""",
    "sums in another order where bits are required": SUM
    + 's[t].update(0).rfactor("r.i", "u", "part")\nsx.compile(t, s, require="bitwise")',
    "rfactor of a definition": HIST + 's[h].rfactor(b, "u", "part")',
    "rfactor of an update that does not combine": RUNNING + 's[p].update(0).rfactor(r, "u", "part")',
    "rfactor with a name that is taken": HIST + 's[h].update(0).rfactor(r.y, "u", "a")',
    "rfactor after other directives": HIST + 's[h].update(0).parallel(r.y).rfactor(r.y, "u", "part")',
    "rfactor of a dim": r"""
y = sx.Var("y")
a = sx.Input("a", sx.int32, 2)
r = sx.RDom("r", i=a.shape[1])
t = sx.Func("t")
t[y] = 0
t[y] += a[y, r]
s = sx.Schedule(t)
s[t].update(0).rfactor(y, "u", "part")
""",
    "rfactor of a ragged loop": r"""
y = sx.Var("y")
a = sx.Input("a", sx.int32, 2)
r = sx.RDom("r", i=a.shape[1], j=(0, y + 1))
t = sx.Func("t", shape=(4,))
t[y] = 0
t[y] += a[r.j, r.i]
s = sx.Schedule(t)
s[t].update(0).rfactor(r.j, "u", "part")
""",
    "a new dim that is there already": HIST + 's[h].update(0).rfactor(r.y, "b", "part")',
    "a shifted tail of a recurrence": SCAN + 's[u].split(y, "yo", "yi", 8, tail="shift")\nsx.compile(u, s)',
    "a shifted tail that is split again": BLUR
    + 's[g].split(x, "xo", "xi", 32, tail="shift").vectorize("xi", 8)\nsx.compile(g, s)',
    "a Func inside a shifted tail": BLUR
    + 's[g].split(y, "yo", "yi", 8, tail="shift")\ns[f].compute_at(g, "yo")\nsx.compile(g, s)',
    "a copy for who does not read it": BLUR + 's[a].cache_read("p", g)',
    "a copy with a name that is taken": BLUR + 's[a].cache_read("g", f)',
    "a loop of an Input": BLUR + "s[a].vectorize(x, 8)",
    "a clone that nobody is left to tell apart": BLUR + 's[f].clone("f2", g)',
    "a layout that leaves out a dim": BLUR + "s[f].layout((y,))",
    "the layout of an output": BLUR + "s[g].layout((x, y))",
    "a layout padded by nothing": BLUR + "s[f].layout((x, y), pad=0)",
    "storage folded too small": BLUR
    + 's[g].split(y, "yo", "yi", 8)\ns[f].compute_at(g, "yi").store_at(g, "yo").fold_storage(y, 1)\nsx.compile(g, s)',
    "storage folded in a dim that is not there": BLUR + "s[f].fold_storage('z', 4)",
    "a folded output": BLUR + "s[g].fold_storage(y, 4)\nsx.compile(g, s)",
    "storage folded by nothing": BLUR + "s[f].fold_storage(y, 0)",
    "parallel on a loop that reads itself": SCAN + "s[u].parallel(x)\nsx.compile(u, s)",
    "a vectorised recurrence": SCAN + "s[u].vectorize(x, 8)\nsx.compile(u, s)",
    "the inner part of a split recurrence": SCAN + 's[u].split(x, "xo", "xi", 16).vectorize("xi")\nsx.compile(u, s)',
    "a split recurrence turned inside out": SCAN
    + 's[u].split(x, "xo", "xi", 16).reorder("xi", "xo")\nsx.compile(u, s)',
    "fused recurrence loops in parallel": SCAN + 's[u].fuse(y, x, "t").parallel("t")\nsx.compile(u, s)',
    "interchange with distance (1, -1)": r"""
y, x = sx.vars("y x")
a = sx.Input("a", sx.float32, 2)
u = sx.Func("u", shape=a.shape)
u[0, x] = a[0, x]
u[y, x] = sx.select(x + 1 < a.shape[1], u[y - 1, x + 1], 0) + a[y, x]
s = sx.Schedule(u)
s[u].reorder(x, y)
sx.compile(u, s)
""",
    "a consumer outside the loop": r"""
y, x = sx.vars("y x")
a = sx.Input("a", sx.float32, 2)
f, g, h = sx.Func("f"), sx.Func("g"), sx.Func("h")
f[y, x] = a[y, x] * 2
g[y, x] = f[y, x] + f[y + 1, x]
h[y, x] = g[y, x] - f[y, x]
s = sx.Schedule(h)
s[g].compute_root()
s[f].compute_at(g, y)
sx.compile(h, s)
""",
    "storage shared by a parallel loop": BLUR
    + "s[g].parallel(y)\ns[f].compute_at(g, y).store_root()\nsx.compile(g, s)",
    "storage shared by an outer parallel loop": BLUR
    + 's[g].split(y, "yo", y, 8).parallel("yo")\ns[f].compute_at(g, x).store_root()\nsx.compile(g, s)',
    "storage shared by lanes": BLUR + 's[g].vectorize(x, 8)\ns[f].compute_at(g, "x.in")\nsx.compile(g, s)',
    "parallel on the RDom of a sum": SUM + 's[t].update(0).parallel("r.i")\nsx.compile(t, s)',
    "vectorize on the RDom of a sum": SUM + 's[t].update(0).vectorize("r.j", 8)\nsx.compile(t, s)',
    "reorder of the RDom of a float sum": SUM + 's[t].update(0).reorder("r.j", "r.i")\nsx.compile(t, s)',
    "parallel on a histogram": r"""
b = sx.Var("b")
a = sx.Input("a", sx.uint8, 1)
h = sx.Func("h", shape=(256,))
r = sx.RDom("r", i=a.shape[0])
h[b] = 0
h[a[r]] += 1
s = sx.Schedule(h)
s[h].update(0).parallel(r)
sx.compile(h, s)
""",
    "reorder of a scan": r"""
y, x = sx.vars("y x")
a = sx.Input("a", sx.int32, 2)
f = sx.Func("f", shape=a.shape)
r = sx.RDom("r", i=(1, a.shape[0]), j=(1, a.shape[1]))
f[y, x] = a[y, x]
f[r.i, r.j] = f[r.i - 1, r.j] + 2 * f[r.i, r.j - 1]
s = sx.Schedule(f)
s[f].update(0).reorder("r.j", "r.i").parallel("r.j")
sx.compile(f, s)
""",
    "unroll of an extent that is no constant": BLUR + "s[g].unroll(x)\nsx.compile(g, s)",
    "vectorize of an extent that is no constant": BLUR + "s[g].vectorize(x)\nsx.compile(g, s)",
    "too many lanes": BLUR + "s[g].vectorize(x, 4096)\nsx.compile(g, s)",
    "an output computed at a loop": r"""
y, x = sx.vars("y x")
a = sx.Input("a", sx.float32, 2)
f, g = sx.Func("f"), sx.Func("g")
f[y, x] = a[y, x] * 2
g[y, x] = f[y, x] + 1
s = sx.Schedule((f, g))
s[f].compute_at(g, y)
sx.compile((f, g), s)
""",
    "a member of a group out of step": r"""
t, x = sx.vars("t x")
e0 = sx.Input("e0", sx.float32, 1)
n = sx.Param("n", sx.int64, low=1)
w = e0.shape[0]
e = sx.Func("e", dtype=sx.float32, shape=(n, w))
h = sx.Func("h", dtype=sx.float32, shape=(n, w))
e[0, x] = e0[x]
e[t, x] = e[t - 1, x] + h[t - 1, x]
h[0, x] = np.float32(0)
h[t, x] = h[t - 1, x] + e[t, x]
s = sx.Schedule(h)
s[e].compute_root().parallel(t)
sx.compile(h, s)
""",
    "inlining without end": r"""
x = sx.Var("x")
f = sx.Func("f0")
f[x] = x
for i in range(24):
    g = sx.Func(f"f{i + 1}")
    g[x] = f[2 * x] + f[3 * x + i]
    f = g
s = sx.Schedule(f)
for i in range(24):
    s[f"f{i}"].inline()
sx.compile(f, s)
""",
    "a dead loop": BLUR + 's[g].split(x, "xo", "xi", 8)\ns[g].vectorize(x)',
    "a Func of another program": BLUR + 'k = sx.Func("k")\nk[x] = x\ns[k].compute_root()',
    "a factor of zero": BLUR + 's[g].split(x, "xo", "xi", 0)',
    "a factor that is a float": BLUR + 's[g].split(x, "xo", "xi", 8.0)',
    "a schedule of another program": BLUR + 'k = sx.Func("k")\nk[x] = x\ns[f].compute_root()\nsx.compile(k, s)',
    "a text in place of a schedule": BLUR + "sx.compile(g, \"s['g'].parallel('y')\")",
}


@pytest.mark.parametrize("title", REFUSALS)
def test_a_wrong_schedule_is_refused_with_the_lines_that_clash(title, golden):
    with pytest.raises(StaxError) as found:
        run(REFUSALS[title])
    name = re.sub(r"\W+", "_", title).strip("_")
    golden(f"{type(found.value).__name__}: {found.value}\n", FOLDER / f"{name}.txt")
