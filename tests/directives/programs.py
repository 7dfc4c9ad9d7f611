"""Small programs, and what a directive is said of: the loops before and after are golden, the effect is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import stax as sx

Scheduling = Callable[[sx.Schedule], object]


@dataclass(frozen=True)
class Case:
    """A program, the lines that a directive is added to, the directive, and a call with what it gives."""

    make: Callable[[], sx.Func]
    before: Scheduling
    after: Scheduling
    arguments: Callable[[], dict[str, Any]]
    expected: Callable[..., np.ndarray]
    terms: int | None = None


def none(s: sx.Schedule) -> None:
    """Say no more than that the default schedule is not asked."""
    for name in s.pipeline.outputs:
        s[name].compute_root()


def row_sums() -> sx.Func:
    y, a = sx.Var("y"), sx.Input("a", sx.float32, 2)
    r, t = sx.RDom("r", k=a.shape[1]), sx.Func("t")
    t[y] = np.float32(0)
    t[y] += a[y, r]
    return t


def row_maxima() -> sx.Func:
    y, a = sx.Var("y"), sx.Input("a", sx.float32, 2)
    r, t = sx.RDom("r", k=a.shape[1]), sx.Func("t")
    t[y] = np.float32(-np.inf)
    t[y] = sx.maximum(t[y], a[y, r])
    return t


def histogram() -> sx.Func:
    b, a = sx.Var("b"), sx.Input("a", sx.uint8, 2)
    r, h = sx.RDom("r", y=a.shape[0], x=a.shape[1]), sx.Func("h", shape=(256,))
    h[b] = sx.int32(0)
    h[a[r.y, r.x]] += 1
    return h


def blur() -> sx.Func:
    y, x = sx.vars("y x")
    a, bx, out = sx.Input("a", sx.uint16, 2), sx.Func("bx"), sx.Func("out")
    bx[y, x] = (a[y, x] + a[y, x + 1] + a[y, x + 2]) // 3
    out[y, x] = (bx[y, x] + bx[y + 1, x] + bx[y + 2, x]) // 3
    return out


def blurred(a: np.ndarray) -> np.ndarray:
    rows = (a[:, :-2] + a[:, 1:-1] + a[:, 2:]) // 3
    return (rows[:-2] + rows[1:-1] + rows[2:]) // 3


def floats() -> dict[str, Any]:
    return {"a": np.random.default_rng(1).normal(size=(7, 211)).astype(np.float32)}


def bytes_() -> dict[str, Any]:
    return {"a": np.random.default_rng(1).integers(0, 256, (37, 53)).astype(np.uint8)}


def words() -> dict[str, Any]:
    return {"a": np.random.default_rng(1).integers(0, 1000, (45, 83)).astype(np.uint16)}


def counts(a: np.ndarray) -> np.ndarray:
    return np.bincount(a.ravel(), minlength=256).astype(np.int32)


def sums(a: np.ndarray) -> np.ndarray:
    return a.astype(np.float64).sum(axis=1)


def strips(s: sx.Schedule) -> None:
    s["out"].split("y", "yo", "yi", 32).parallel("yo").vectorize("x", 16)
    s["bx"].compute_at("out", "yi").vectorize("x", 16)


def slid(s: sx.Schedule) -> None:
    strips(s)
    s["bx"].store_at("out", "yo")


def wave() -> sx.Func:
    y, x = sx.vars("y x")
    a, f = sx.Input("a", sx.uint16, 2), sx.Func("f")
    f[y, x] = a[y, x] * 3 + 1
    return f


def waved(a: np.ndarray) -> np.ndarray:
    return a * np.uint16(3) + np.uint16(1)


def lanes(tail: str) -> Scheduling:
    return lambda s: s["f"].split("x", "xo", "xi", 16, tail=tail).vectorize("xi").parallel("y")


def product() -> sx.Func:
    i, j = sx.vars("i j")
    a, b = sx.Input("a", sx.int32, 2), sx.Input("b", sx.int32, 2)
    r = sx.RDom("r", k=a.shape[1])
    c = sx.Func("c", shape=(a.shape[0], b.shape[1]))
    c[i, j] = sx.int32(0)
    c[i, j] += a[i, r] * b[r, j]
    return c


def matrices() -> dict[str, Any]:
    draw = np.random.default_rng(2)
    return {n: draw.integers(-9, 9, shape).astype(np.int32) for n, shape in (("a", (7, 13)), ("b", (13, 21)))}


def blocks(s: sx.Schedule) -> None:
    s["c"].update(0).split("j", "jo", "ji", 8).reorder("jo", "i", "ji", "r.k")


def packed(s: sx.Schedule) -> None:
    blocks(s)
    s["b"].cache_read("packed", "c")
    s["packed"].compute_at(s["c"].update(0), "jo")


def turned(s: sx.Schedule) -> None:
    packed(s)
    s["packed"].layout(("d1", "d0"), pad=4)


def twice_read() -> sx.Func:
    y, x = sx.vars("y x")
    a, f, g, h = sx.Input("a", sx.uint16, 2), sx.Func("f"), sx.Func("g"), sx.Func("h")
    f[y, x] = a[y, x] * 2
    g[y, x] = f[y, x] + f[y + 1, x]
    h[y, x] = g[y, x] + f[y, x]
    return h


def whole(s: sx.Schedule) -> None:
    s["g"].compute_root()
    s["f"].compute_root()


def cloned(s: sx.Schedule) -> None:
    whole(s)
    s["f"].clone("again", "g")
    s["again"].compute_at("g", "y")


def steps() -> sx.Func:
    t, x = sx.vars("t x")
    a = sx.Input("a", sx.uint16, 2)
    n = a.shape[1]
    u = sx.Func("u", shape=(9, n))
    u[0, x] = a[0, x]
    u[t, x] = sx.select((x > 0) & (x < n - 1), u[t - 1, sx.maximum(x - 1, 0)] + u[t - 1, x + 1], u[t - 1, x])
    return u


def stepped(a: np.ndarray) -> np.ndarray:
    u = np.empty((9, a.shape[1]), a.dtype)
    u[0] = a[0]
    for t in range(1, 9):
        u[t] = u[t - 1]
        u[t, 1:-1] = u[t - 1, :-2] + u[t - 1, 2:]
    return u


def mapped(s: sx.Schedule) -> None:
    s["u"].affine(((1, 0), (1, 1)), ("t", "x")).tile(("t", "x"), ("to", "xo"), ("ti", "xi"), (4, 16))


CASES = {
    "reassociate": Case(
        row_sums, none, lambda s: s["t"].update(0).reassociate().reorder("r.k", "y"), floats, sums, 211
    ),
    "vectorize_a_reduced_loop": Case(
        row_maxima, none, lambda s: s["t"].update(0).vectorize("r.k", 8), floats, lambda a: a.max(axis=1)
    ),
    "vectorize_a_sum": Case(
        row_sums, none, lambda s: s["t"].update(0).reassociate().vectorize("r.k", 8), floats, sums, 211
    ),
    "accumulators": Case(
        row_sums,
        lambda s: s["t"].update(0).reassociate().vectorize("r.k", 8),
        lambda s: s["t"].update(0).reassociate().vectorize("r.k", 8).accumulators("r.k", 4),
        floats, sums, 211,
    ),
    "rfactor": Case(
        histogram, none, lambda s: s["h"].update(0).rfactor("r.y", "u", "part") and s["part"].update(0).parallel("u"),
        bytes_, counts,
    ),
    "split_reduction": Case(
        histogram, none, lambda s: s["h"].update(0).split_reduction("r.y", 16, "u", "part"), bytes_, counts
    ),
    "atomic": Case(histogram, none, lambda s: s["h"].update(0).atomic().parallel("r.y", 16), bytes_, counts),
    "tail_shift": Case(wave, lanes("guard"), lanes("shift"), words, waved),
    "tail_predicate": Case(wave, lanes("guard"), lanes("predicate"), words, waved),
    "stream": Case(wave, lanes("guard"), lambda s: (lanes("guard")(s), s["f"].stream()), words, waved),
    "cache_read": Case(product, blocks, packed, matrices, lambda a, b: a @ b),
    "layout": Case(product, packed, turned, matrices, lambda a, b: a @ b),
    "clone": Case(
        twice_read, whole, cloned, words, lambda a: 2 * (2 * a[:-1] + a[1:]).astype(np.uint16)
    ),
    "affine": Case(steps, none, mapped, words, stepped),
    "overwrite": Case(
        wave, none, lambda s: s["f"].compute_root().overwrite("a"), words, lambda a: (a * 3 + 1).astype(np.uint16)
    ),
    "store_at": Case(blur, strips, slid, words, blurred),
    "fold_storage": Case(blur, slid, lambda s: (slid(s), s["bx"].fold_storage("y", 4)), words, blurred),
}  # fmt: skip
