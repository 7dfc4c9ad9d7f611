"""Programs as users write them, compiled for GPUs by `sx.compile(target="cuda")`: each with inputs for its kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import stax as sx
from tests.loops.programs import Array

M, N, T = sx.vars("m n t")


@dataclass(frozen=True)
class Program:
    """Outputs, what the kernel is called with, the shape to compute, and how far sums in another order may be.

    `many`: it is compiled as for so many points that programs take strips of them.
    """

    make: Callable[[], Any]
    given: dict[str, Any]
    shape: Any = None
    tolerance: float = 0.0
    text: str = ""
    outputs: int = 1
    many: bool = False

    def schedule(self, outputs: Any) -> sx.Schedule | None:
        """Return the schedule that is written for it, if one is."""
        return sx.Schedule.parse(f"# stax schedule 1\n{self.text}", outputs) if self.text else None


def floats(*shape: int, dtype: Any = np.float32) -> Array:
    """Return numbers from -1 to 1."""
    return (np.random.default_rng(len(shape)).random(shape) * 2 - 1).astype(dtype)


def pointwise() -> sx.Func:
    """Return a Param, a row for all rows, a function."""
    a, b, s = sx.Input("a", sx.float32, 2), sx.Input("b", sx.float32, 1), sx.Param("s", sx.float64)
    f = sx.Func("f")
    f[M, N] = sx.tanh(sx.maximum(sx.cast(a[M, N] * s, sx.float32), b[N]))
    return f


def stencil() -> sx.Func:
    """Return a stage that is inlined."""
    a = sx.Input("a", sx.uint16, 2)
    g, f = sx.Func("g"), sx.Func("f")
    g[M, N] = (a[M, N] + a[M, N + 1] + a[M, N + 2]) // 3
    f[M, N] = (g[M, N] + g[M + 1, N] + g[M + 2, N]) // 3
    return f


def padded() -> sx.Func:
    """Return neighbours of cells at the edges."""
    a = sx.Input("a", sx.float32, 2)
    p = sx.pad(a, "reflect")
    f = sx.Func("f", shape=a.shape)
    f[M, N] = p[M - 1, N] + p[M + 1, N] - p[M, N - 2] * p[M, N + 1]
    return f


def softmax() -> sx.Func:
    """Return two reductions of a row in the program that needs them."""
    x = sx.Input("x", sx.float32, 2)
    r = sx.RDom("r", j=x.shape[1])
    top, e, out = sx.Func("top"), sx.Func("e"), sx.Func("out")
    top[M] = sx.max(x[M, r], over=r, initial=-sx.inf)
    e[M, N] = sx.exp(x[M, N] - top[M])
    out[M, N] = e[M, N] / sx.sum(e[M, r], over=r)
    return out


def shares_of_rows() -> sx.Func:
    """Return what part of its row each cell is, and how far the row is from 1."""
    x = sx.Input("x", sx.float16, 2)
    r = sx.RDom("r", j=x.shape[1])
    v, e, out = sx.Func("v"), sx.Func("e"), sx.Func("out")
    v[M, N] = sx.cast(x[M, N], sx.float32)
    e[M, N] = sx.exp(v[M, N])
    out[M, N] = e[M, N] / sx.sum(e[M, r], over=r) + sx.mean(v[M, r], over=r)
    return out


def edges() -> sx.Func:
    """Return a blur of a padded picture by four rows, of which each is computed once."""
    a = sx.Input("a", sx.float32, 2)
    p = sx.pad(a, "edge")
    g, f = sx.Func("g"), sx.Func("f", shape=a.shape)
    g[M, N] = p[M, N - 1] + 2 * p[M, N] + p[M, N + 1]
    f[M, N] = g[M - 1, N] + g[M, N] * 2 + g[M + 1, N] + g[M + 2, N]
    return f


def column_sum() -> sx.Func:
    """Return lanes that each keep a sum."""
    x = sx.Input("x", sx.float32, 2)
    r = sx.RDom("r", i=x.shape[0])
    f = sx.Func("f")
    f[N] = sx.sum(x[r, N] * x[r, N], over=r)
    return f


def matmul(dtype: Any, wide: Any) -> sx.Func:
    """Return a product and what is done to it."""
    a, b = sx.Input("a", dtype, 2), sx.Input("b", dtype, 2)
    k = sx.RDom("k", k=a.shape[1])
    c, out = sx.Func("c"), sx.Func("out")
    c[M, N] = wide(0)
    c[M, N] += sx.cast(a[M, k], wide) * sx.cast(b[k, N], wide)
    out[M, N] = sx.maximum(c[M, N] + wide(1), 0)
    return out


def histogram() -> sx.Func:
    """Return cells that lanes meet in."""
    a = sx.Input("a", sx.uint8, 2)
    r = sx.RDom("r", y=a.shape[0], x=a.shape[1])
    h = sx.Func("h", shape=(256,))
    h[N] = 0
    h[sx.cast(a[r.y, r.x], sx.int64)] += 1
    return h


def heat() -> sx.Func:
    """Return a host loop over time, a kernel a step."""
    u, steps = sx.Input("u", sx.float32, 1), sx.Param("steps", sx.int64, low=0, high=100)
    v = sx.Func("v", shape=(steps + 1, u.shape[0]))
    v[0, N] = u[N]
    inside = (N > 0) & (u.shape[0] - 1 > N)
    v[T, N] = sx.select(inside, v[T - 1, N] + 0.25 * (v[T - 1, N - 1] - v[T - 1, N + 1]), v[T - 1, N])
    out = sx.Func("out", shape=u.shape)
    out[N] = v[steps, N]
    return out


def running_sum() -> sx.Func:
    """Return a recurrence along rows, one program for some of them."""
    a = sx.Input("a", sx.int32, 2)
    s = sx.Func("s", shape=a.shape)
    s[M, 0] = a[M, 0]
    s[M, N] = s[M, N - 1] * 3 + a[M, N]
    return s


def largest() -> tuple[sx.Func, sx.Func]:
    """Return two outputs, one of them where the largest is."""
    a = sx.Input("a", sx.float32, 2)
    r = sx.RDom("r", j=a.shape[1])
    at, double = sx.Func("at"), sx.Func("double")
    at[M] = sx.argmax(a[M, r], over=r, initial=0)
    double[M, N] = a[M, N] * 2
    return at, double


def gather() -> sx.Func:
    """Return rows in another order, and a table."""
    a, order = sx.Input("a", sx.float32, 2), sx.Input("order", sx.int32, 1)
    table = sx.Const("table", np.arange(7, dtype=np.float32) ** 2)
    f = sx.Func("f", shape=(order.shape[0], a.shape[1]))
    f[M, N] = a[sx.clip(order[M], 0, a.shape[0] - 1), N] + table[N % 7]
    return f


def far_gather() -> sx.Func:
    """Return what clipped numbers of 64 bits point at."""
    a, at = sx.Input("a", sx.float32, 1), sx.Input("at", sx.int64, 1)
    f = sx.Func("f")
    f[N] = a[sx.clip(at[N], 0, a.shape[0] - 1)]
    return f


def products() -> sx.Func:
    """Return cells that lanes multiply into, which no GPU does at once."""
    a = sx.Input("a", sx.uint32, 1)
    r = sx.RDom("r", i=a.shape[0])
    h = sx.Func("h", shape=(4,))
    h[N] = sx.uint32(1)
    h[sx.cast(a[r] % 4, sx.int64)] *= a[r]
    return h


def zeros() -> sx.Func:
    """Return zeros of both signs, and the smallest numbers."""
    a, b = sx.Input("a", sx.float32, 1), sx.Input("b", sx.bfloat16, 1)
    f = sx.Func("f")
    f[N] = 1 / sx.minimum(a[N], -a[N]) + 1 / sx.maximum(-a[N], a[N]) + sx.sign(sx.cast(b[N], sx.float32))
    return f


def marked() -> sx.Func:
    """Return reads under conditions that are bools in memory."""
    a, m = sx.Input("a", sx.float32, 1), sx.Input("m", sx.bool_, 1)
    r = sx.RDom("r", j=a.shape[0])
    f = sx.Func("f", shape=(3,))
    f[N] = sx.max(sx.where(sx.select(r + N > 3, m[N], m[r]), a[r], -9.0), over=r, initial=-10.0)
    return f


def total() -> sx.Func:
    """Return a value without dims."""
    a = sx.Input("a", sx.float32, 1)
    r = sx.RDom("r", i=a.shape[0])
    f = sx.Func("f")
    f[()] = sx.sum(a[r], over=r)
    return f


def shares() -> sx.Func:
    """Return what each part is of a value without dims, which a kernel of its own leaves in memory."""
    a = sx.Input("a", sx.float32, 1)
    r = sx.RDom("r", i=a.shape[0])
    whole, f = sx.Func("whole"), sx.Func("f")
    whole[()] = 1 + sx.sum(abs(a[r]), over=r)
    f[N] = a[N] / whole[()]
    return f


def triangle() -> sx.Func:
    """Return sums whose length differs from cell to cell."""
    a = sx.Input("a", sx.float32, 2)
    r = sx.RDom("r", j=(0, N + 1))
    f = sx.Func("f", shape=a.shape)
    f[M, N] = 0
    f[M, N] += a[M, r]
    return f


def narrow() -> sx.Func:
    """Return three channels."""
    a = sx.Input("a", sx.bfloat16, (None, None, 3))
    c = sx.Var("c")
    f = sx.Func("f")
    f[M, N, c] = a[M, N, 2 - c] * 3 + a[M, N, c]
    return f


def _halves(*shape: int) -> Array:
    return floats(*shape, dtype=np.float16)


ROWS = """s["out"].parallel("m").vectorize("n", upto=128)
s["e"].inline()
s["out.sum"].compute_at(s["out"], "m")
s["out.sum"].update(0).reassociate().split("r.j", "r.j", "r.j.in", 32).vectorize("r.j.in")
s["top"].compute_at(s["out"], "m")
s["top"].update(0).vectorize("r.j", upto=128)
"""
ROLLED = """s["f"].parallel("m", 3).parallel("n", 8).reorder("m", "n", "m.in", "n.in").vectorize("n.in")
s["g"].store_at(s["f"], "n").compute_at(s["f"], "m.in").vectorize("n", upto=8)
"""
PROGRAMS: dict[str, Program] = {
    "pointwise": Program(pointwise, {"a": floats(5, 300), "b": floats(300), "s": 1.25}),
    "pointwise of strides": Program(
        pointwise, {"a": floats(600, 10).T[::2, ::-2], "b": floats(300)[::-1], "s": 0.1}
    ),
    "pointwise of one cell": Program(pointwise, {"a": floats(1, 1), "b": floats(1), "s": -2.0}),
    "pointwise of none": Program(pointwise, {"a": floats(0, 7), "b": floats(7), "s": 1.0}),
    "stencil": Program(stencil, {"a": np.arange(7 * 261, dtype=np.uint16).reshape(7, 261)}),
    "padded": Program(padded, {"a": floats(6, 5)}),
    "stencil of rolling rows": Program(stencil, {"a": np.arange(161, dtype=np.uint16).reshape(7, 23)}, text=ROLLED),
    "softmax of whole rows": Program(softmax, {"x": floats(3, 70)}, tolerance=1e-6, text=ROWS),
    "softmax": Program(softmax, {"x": floats(3, 70)}, tolerance=1e-6),
    "softmax of long rows": Program(shares_of_rows, {"x": 2 + _halves(2, 16400)}, tolerance=1e-4),
    "shares of rows": Program(shares_of_rows, {"x": 2 + _halves(5, 1500)}, tolerance=1e-5),
    "stencil of strips": Program(stencil, {"a": np.arange(37 * 261, dtype=np.uint16).reshape(37, 261)}, many=True),
    "stencil of a strip": Program(stencil, {"a": np.arange(3 * 9, dtype=np.uint16).reshape(3, 9)}, many=True),
    "padded strips": Program(edges, {"a": floats(34, 260)}, many=True),
    "column sum": Program(column_sum, {"x": floats(9, 33)}, tolerance=1e-6),
    "matmul": Program(lambda: matmul(sx.float32, sx.float32), {"a": floats(5, 33), "b": floats(33, 20)},
                      tolerance=1e-5),
    "matmul of halves": Program(lambda: matmul(sx.float16, sx.float32), {"a": _halves(5, 33), "b": _halves(33, 20)},
                                tolerance=1e-5),
    "matmul of bfloat16": Program(
        lambda: matmul(sx.bfloat16, sx.float32),
        {"a": floats(5, 33).astype(sx.bfloat16.dtype), "b": floats(33, 20).astype(sx.bfloat16.dtype)}, tolerance=1e-5,
    ),
    "matmul of int8": Program(
        lambda: matmul(sx.int8, sx.int32),
        {"a": (floats(5, 33) * 99).astype(np.int8), "b": (floats(33, 20) * 99).astype(np.int8)},
    ),
    "histogram": Program(histogram, {"a": (floats(5, 300) * 100 + 100).astype(np.uint8)}),
    "heat": Program(heat, {"u": floats(300), "steps": 4}),
    "running sum": Program(running_sum, {"a": np.arange(24, dtype=np.int32).reshape(4, 6)}),
    "largest": Program(largest, {"a": floats(4, 9)}, outputs=2),
    "gather": Program(gather, {"a": floats(5, 20), "order": np.array([4, 0, 9, 2], np.int32)}),
    "far gather": Program(
        far_gather, {"a": floats(9), "at": np.array([3, -(1 << 40), (1 << 32) + 1, 1 << 62, 8], np.int64)}
    ),
    "products": Program(products, {"a": np.arange(1, 40, dtype=np.uint32)}),
    "zeros": Program(
        zeros, {"a": np.array([0.0, -0.0, 2.0], np.float32), "b": np.array([1e-40, -1e-40, 0], sx.bfloat16.dtype)}
    ),
    "marked": Program(marked, {"a": floats(20), "m": np.arange(20) % 3 == 0}),
    "total": Program(total, {"a": floats(2500)}, tolerance=1e-5),
    "shares of a total": Program(shares, {"a": floats(2500)}, tolerance=1e-5),
    "triangle": Program(triangle, {"a": floats(3, 6)}, tolerance=1e-6),
    "narrow": Program(narrow, {"a": floats(4, 5, 3).astype(sx.bfloat16.dtype)}),
}  # fmt: skip
