"""Regions and arguments that do not fit: the full text of each error is beside the test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stax.errors import StaxError
from tests.refusals.run import run

FOLDER = Path(__file__).parent / "calls"

ADD = r"""
y, x = sx.vars("y x")
a, b = sx.Input("a", sx.float32, 2), sx.Input("b", sx.float32, 2)
gain = sx.Param("gain", sx.float32, low=0, high=4)
f = sx.Func("f")
f[y, x] = gain * (a[y, x] + b[y, x + 1])
add = sx.compile(f)
u, v = np.zeros((4, 6), np.float32), np.ones((4, 7), np.float32)
"""

REFUSALS = {
    "a read before the start": r"""
x = sx.Var("x")
samples = sx.Input("samples", sx.int32, 1)
shifted, out = sx.Func("shifted"), sx.Func("out")
shifted[x] = samples[x - 3]
out[x] = shifted[x] + 1
sx.compile(out)(np.arange(10, dtype=np.int32))
""",
    "a recurrence without a start": r"""
x = sx.Var("x")
a = sx.Input("a", sx.float32, 1)
s = sx.Func("s", sx.float32, shape=a.shape)
s[x] = s[x - 1] + a[x]
sx.compile(s)(np.ones(5, np.float32))
""",
    "a read past the end": r"""
x = sx.Var("x")
a = sx.Input("a", sx.int32, 1)
f = sx.Func("f")
f[x] = a[x] + a[x + 2]
sx.compile(f)(np.arange(10, dtype=np.int32), shape=(10,))
""",
    "a read past the end by an update": r"""
y = sx.Var("y")
a, n = sx.Input("a", sx.int32, 2), sx.Param("n", sx.int64, low=0)
r, f = sx.RDom("r", k=n), sx.Func("f")
f[y] = 0
f[y] += a[y, r]
sx.compile(f)(np.zeros((3, 5), np.int32), 6)
""",
    "a read past a table": r"""
i = sx.Var("i")
a, t = sx.Input("a", sx.uint8, 1), sx.Const("t", np.arange(200, dtype=np.float32))
f = sx.Func("f")
f[i] = t[a[i]]
sx.compile(f)
""",
    "a read past a declared shape": r"""
x = sx.Var("x")
u, f = sx.Func("u", dtype=sx.float32, shape=(100,)), sx.Func("f", shape=(101,))
u[0] = 1
u[x] = u[x - 1] / 2
f[x] = u[x]
sx.compile(f)()
""",
    "a gather at data without bound": r"""
i = sx.Var("i")
a, t = sx.Input("a", sx.int32, 1), sx.Input("t", sx.float32, 1)
f = sx.Func("f")
f[i] = t[a[i]]
sx.compile(f)(np.zeros(3, np.int32), np.zeros(5, np.float32))
""",
    "a scatter that may leave": r"""
b = sx.Var("b")
a = sx.Input("a", sx.uint8, 1)
r, h = sx.RDom("r", i=a.shape[0]), sx.Func("h", shape=(100,))
h[b] = 0
h[a[r]] += 1
sx.compile(h)
""",
    "a scatter by a float": r"""
b = sx.Var("b")
a = sx.Input("a", sx.float32, 1)
r, h = sx.RDom("r", i=a.shape[0]), sx.Func("h")
h[b] = 0
h[sx.cast(a[r], sx.int32)] += 1
sx.compile(h)(np.zeros(3, np.float32), shape=(4,))
""",
    "an output that nothing bounds": r"""
y, x = sx.vars("y x")
f = sx.Func("f")
f[y, x] = y + x
sx.compile(f)()
""",
    "a stage that nothing bounds": r"""
x = sx.Var("x")
a, b, f = sx.Input("a", sx.int64, 1), sx.Func("b"), sx.Func("f")
b[x] = x * x
f[x] = b[a[x] * a[x]]
sx.compile(f)
""",
    "inputs that serve different extents": ADD + "add(u, u, 1.0)",
    "a wrong type": ADD + "add(u, v.astype(np.float64), 1.0)",
    "a wrong rank": ADD + "add(u, v[0], 1.0)",
    "another byte order": ADD + 'add(u.astype(">f4"), v, 1.0)',
    "a list": ADD + "add(u.tolist(), v, 1.0)",
    "an array on a device": ADD
    + r"""
class Device:
    __cuda_array_interface__ = {"shape": (4, 6), "typestr": "<f4", "data": (0x7F0000000000, False), "version": 3}
add(Device(), v, 1.0)
""",
    "a Param that is missing": ADD + "add(u, v)",
    "an input that is missing": ADD + "add(u, gain=1.0)",
    "one argument too many": ADD + "add(u, v, 1.0, 2.0)",
    "a misspelt argument": ADD + "add(u, v, gian=1.0)",
    "an argument given twice": ADD + "add(u, v, 1.0, gain=2.0)",
    "a Param above its limit": ADD + "add(u, v, 4.5)",
    "a Param that is no number": ADD + 'add(u, v, "1")',
    "a Param that is NaN where it has limits": ADD + 'add(u, v, float("nan"))',
    "an integer Param that does not fit": r"""
x, k = sx.Var("x"), sx.Param("k", sx.uint8)
f = sx.Func("f")
f[x] = k + 1
sx.compile(f)(256, shape=(3,))
""",
    "a float for an integer Param": r"""
x, k = sx.Var("x"), sx.Param("k", sx.int32)
f = sx.Func("f")
f[x] = k + 1
sx.compile(f)(1.5, shape=(3,))
""",
    "an extent that is declared otherwise": r"""
y, x = sx.vars("y x")
a = sx.Input("a", sx.float32, (None, 3))
f = sx.Func("f")
f[y, x] = a[y, x]
sx.compile(f)(np.zeros((5, 4), np.float32))
""",
    "an extent that another input fixes": r"""
i, j = sx.vars("i j")
a = sx.Input("a", sx.float32, 2)
b = sx.Input("b", sx.float32, (a.shape[1], None))
f = sx.Func("f")
k = sx.RDom("k", k=a.shape[1])
f[i, j] = 0
f[i, j] += a[i, k] * b[k, j]
sx.compile(f)(np.zeros((5, 4), np.float32), np.zeros((3, 2), np.float32))
""",
    "an output of a wrong type": ADD + "add(u, v, 1.0, out=np.zeros((4, 6)))",
    "an output of a wrong shape": ADD + "add(u, v, 1.0, out=np.zeros((4, 7), np.float32))",
    "a read-only output": ADD
    + r"""
out = np.zeros((4, 6), np.float32)
out.setflags(write=False)
add(u, v, 1.0, out=out)
""",
    "an output that overlaps an input": ADD + "add(u, v, 1.0, out=v[:, 1:])",
    "an output that overlaps itself": ADD
    + "add(u, v, 1.0, out=np.lib.stride_tricks.as_strided(np.zeros(9, np.float32), (4, 6), (4, 4)))",
    "an output that is a broadcast": ADD + "add(u, v, 1.0, out=np.broadcast_to(np.float32(0), (4, 6)))",
    "a shape of the wrong rank": ADD + "add(u, v, 1.0, shape=(4,))",
    "a negative shape": ADD + "add(u, v, 1.0, shape=(-1, 6))",
    "a shape of floats": ADD + "add(u, v, 1.0, shape=(4.0, 6))",
    "more memory than there is": r"""
y, x = sx.vars("y x")
f = sx.Func("f")
f[y, x] = y + x
sx.compile(f)(shape=(2**31, 2**31))
""",
    "no threads": ADD + "add(u, v, 1.0, threads=0)",
    "a misspelt overlap": ADD + 'add(u, v, 1.0, overlap="yes")',
    "an unknown fp mode": ADD + 'sx.compile(f, fp="exact")',
    "an unknown contract": ADD + 'sx.compile(f, require="exact")',
    "an unknown mode": ADD + 'sx.compile(f, mode="fastest")',
    "an unknown source": ADD + 'add.source("ptx")',
    "an unknown target": ADD + 'sx.compile(f, target="gpu")',
    "a host array for a kernel of a GPU": ADD + 'sx.compile(f, target="cuda")(u, v, 1.0)',
    "an output without a definition": r"""
y, x = sx.vars("y x")
f = sx.Func("f")
sx.compile(f)
""",
    "an array as an output": "\nsx.compile(np.zeros(3))\n",
    "no outputs": "\nsx.compile(())\n",
    "a symbolic shape of the wrong rank": ADD + "sx.compile(f, shape=(4,))",
    "inputs that leave one out": ADD + "sx.compile(f, inputs=[a, b])",
}


@pytest.mark.parametrize("title", REFUSALS)
def test_a_call_that_does_not_fit_is_refused_with_what_was_given_and_what_is_taken(title, golden):
    with pytest.raises(StaxError) as found:
        run(REFUSALS[title])
    name = re.sub(r"\W+", "_", title).strip("_")
    golden(f"{type(found.value).__name__}: {found.value}\n", FOLDER / f"{name}.txt")
