"""Cases for the forms of loops, the places of Funcs, promises and hints."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import stax as sx
from tests.directives.programs import Case, Scheduling, blur, blurred, none, product, wave, waved, words


def flat(s: sx.Schedule) -> None:
    s["bx"].compute_root()
    s["out"].compute_root()


def then(before: Scheduling, more: Callable[[sx.Schedule], object]) -> Scheduling:
    return lambda s: (before(s), more(s))


def on_blur(more: Callable[[sx.Schedule], object], before: Scheduling = flat) -> Case:
    return Case(blur, before, then(before, more), words, blurred)


def on_wave(more: Callable[[sx.Schedule], object], before: Scheduling = none) -> Case:
    return Case(wave, before, then(before, more), words, waved)


def rows(s: sx.Schedule) -> None:
    s["out"].split("y", "yo", "yi", 8)


def inside(s: sx.Schedule) -> None:
    rows(s)
    s["bx"].compute_at("out", "yo")


def running() -> sx.Func:
    y, x = sx.vars("y x")
    a, f = sx.Input("a", sx.uint16, 2), sx.Func("f", sx.uint16, shape=(16, 16))
    f[y, x] = sx.select((y > 0) & (x > 0), f[y - 1, x - 1] + a[y, x], a[y, x])
    return f


def ran(a: np.ndarray) -> np.ndarray:
    out = a[:16, :16].copy()
    for y in range(1, 16):
        out[y, 1:] += out[y - 1, :-1]
    return out


def tiles() -> sx.Func:
    """Return sums of tiles of four by eight, kept in a Func of their own."""
    i, j = sx.vars("i j")
    a, b = sx.Input("a", sx.float32, 2), sx.Input("b", sx.float32, 2)
    r = sx.RDom("r", k=a.shape[1])
    acc, c = sx.Func("acc"), sx.Func("c", shape=(8, 16))
    acc[i, j] = np.float32(0)
    acc[i, j] += a[i, r] * b[r, j]
    c[i, j] = acc[i, j] * np.float32(2)
    return c


def tiled(s: sx.Schedule) -> None:
    s["c"].bound("i", 0, 8).bound("j", 0, 16).tile(("i", "j"), ("io", "jo"), ("ii", "ji"), (4, 8)).vectorize(
        "ji"
    ).unroll("ii")
    s["acc"].compute_at("c", "jo").vectorize("j", 8).unroll("i", 4)
    s["acc"].update(0).reorder("r.k", "i", "j").vectorize("j", 8).unroll("i", 4)


def small() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(3)
    return {n: draw.integers(-4, 5, s).astype(np.float32) for n, s in (("a", (8, 13)), ("b", (13, 16)))}


def two() -> sx.Func:
    y, x = sx.vars("y x")
    a, f, g, h = sx.Input("a", sx.uint16, 2), sx.Func("f"), sx.Func("g"), sx.Func("h")
    f[y, x] = a[y, x] + 1
    g[y, x] = a[y, x] * 2
    h[y, x] = f[y, x] + g[y, x]
    return h


def apart(s: sx.Schedule) -> None:
    for name in ("f", "g", "h"):
        s[name].compute_root()


MORE = {
    "split": on_wave(lambda s: s["f"].split("x", "xo", "xi", 16)),
    "tile": on_wave(lambda s: s["f"].tile(("y", "x"), ("yo", "xo"), ("yi", "xi"), (4, 16))),
    "fuse": on_wave(lambda s: s["f"].fuse("y", "x", "t")),
    "reorder": on_wave(lambda s: s["f"].reorder("x", "y")),
    "reverse": on_wave(lambda s: s["f"].reverse("y")),
    "skew": Case(
        running, none, lambda s: s["f"].skew("x", "y", -1).reorder("x", "y").parallel("x"),
        words, ran,
    ),
    "vectorize": on_wave(lambda s: s["f"].vectorize("x", 16)),
    "vectorize_upto": on_wave(lambda s: s["f"].vectorize("x", upto=96)),
    "parallel": on_wave(lambda s: s["f"].parallel("y", 8)),
    "unroll": on_wave(lambda s: s["f"].unroll("x", 4)),
    "partition": on_wave(
        lambda s: s["f"].partition("yo"), lambda s: s["f"].split("y", "yo", "yi", 4).unroll("yi").parallel("yo")
    ),
    "specialize": on_wave(
        lambda s: s["f"].specialize("f.shape[1] % 16 == 0"), lambda s: s["f"].vectorize("x", 16)
    ),
    "inline": on_blur(lambda s: s["bx"].inline()),
    "compute_root": on_blur(lambda s: s["bx"].compute_root(), inside),
    "compute_at": on_blur(lambda s: s["bx"].compute_at("out", "yo"), lambda s: (flat(s), rows(s))),
    "store_root": on_blur(lambda s: s["bx"].store_root(), inside),
    "hoist_storage": on_blur(
        lambda s: s["bx"].hoist_storage("out", "yo"),
        lambda s: (rows(s), s["bx"].compute_at("out", "yi"), s["bx"].memory("heap")),
    ),
    "compute_with": Case(two, apart, then(apart, lambda s: s["g"].compute_with("f", "x")), words, lambda a: a * 3 + 1),
    "compute_with_shift": on_blur(lambda s: s["out"].compute_with("bx", "y", shift=2)),
    "layout_align": on_blur(lambda s: s["bx"].layout(("y", "x"), align=128)),
    "memory_stack": on_blur(
        lambda s: s["bx"].memory("stack"), lambda s: (inside(s), s["out"].bound("x", 0, 81))
    ),
    "memory_heap": Case(tiles, tiled, then(tiled, lambda s: s["acc"].memory("heap")), small, lambda a, b: 2 * (a @ b)),
    "memory_register": Case(
        tiles, tiled, then(tiled, lambda s: s["acc"].memory("register")), small, lambda a, b: 2 * (a @ b)
    ),
    "bound": on_wave(lambda s: s["f"].bound("x", 0, 83), lambda s: s["f"].vectorize("x", 16)),
    "align_bounds": on_wave(lambda s: s["f"].align_bounds("y", 15), lambda s: s["f"].unroll("y", 5)),
    "tail_round_up": on_blur(
        lambda s: s["bx"].split("x", "xo", "xi", 16, tail="round_up").vectorize("xi"),
    ),
    "prefetch": on_blur(lambda s: s["bx"].prefetch("a", "y", 2)),
    "warps": on_wave(lambda s: s["f"].warps(4)),
    "stages": on_wave(lambda s: s["f"].stages(3)),
    "swizzle": on_wave(lambda s: s["f"].swizzle(8)),
    "matrix_unit": Case(
        product, none, lambda s: (none(s), s["c"].update(0).matrix_unit("i", "j", "r.k", precision="tf32")),
        lambda: {n: np.ones(s, np.int32) for n, s in (("a", (7, 13)), ("b", (13, 21)))}, lambda a, b: a @ b,
    ),
}  # fmt: skip
