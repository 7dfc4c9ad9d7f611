"""How long the check takes, in CPU time: islpy imported, no proof known, the median of five.

python -m tests.legality.times
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import stax as sx
from stax.bounds.infer import infer
from stax.legality.check import check
from stax.legality.known import Known
from stax.poly.isl import library
from stax.schedule.directives import Line, Split, StageRef
from stax.schedule.schedule import Schedule

y, x = sx.vars("y x")
ROUNDS = 5


def around(name: str, source: Any, reach: int = 1) -> sx.Func:
    """Return the sum of a square of cells of `source`."""
    f = sx.Func(name)
    reads = [source[y + i, x + j] for i in range(-reach, reach + 1) for j in range(-reach, reach + 1)]
    f[y, x] = sum(reads[1:], reads[0])
    return f


def blur() -> Schedule:
    """Slid, folded, in lanes and in parallel."""
    a, bx, out = sx.Input("a", sx.uint16, 2), sx.Func("bx"), sx.Func("out")
    bx[y, x] = (a[y, x] + a[y, x + 1] + a[y, x + 2]) // 3
    out[y, x] = (bx[y, x] + bx[y + 1, x] + bx[y + 2, x]) // 3
    s = Schedule(out)
    s["out"].split("y", "yo", "yi", 32).parallel("yo").vectorize("x", 16)
    s["bx"].compute_at("out", "yi", store="yo").fold_storage("y", 4).vectorize("x", 16)
    return s


def harris() -> Schedule:
    """Ten Funcs, nine of them in tiles of the last."""
    a = sx.Input("a", sx.float32, 2)
    gray = sx.Func("gray")
    gray[y, x] = a[y + 4, x + 4] * 0.5
    ix, iy = around("ix", gray), around("iy", gray)
    products = {}
    for name, (one, other) in {"xx": (ix, ix), "xy": (ix, iy), "yy": (iy, iy)}.items():
        products[name] = sx.Func(name)
        products[name][y, x] = one[y, x] * other[y, x]
    sums = {name: around(f"s{name}", f) for name, f in products.items()}
    out = sx.Func("out")
    det = sums["xx"][y, x] * sums["yy"][y, x] - sums["xy"][y, x] * sums["xy"][y, x]
    trace = sums["xx"][y, x] + sums["yy"][y, x]
    out[y, x] = det - trace * trace * 0.04
    s = Schedule(out)
    s["out"].tile(("y", "x"), ("yo", "xo"), ("yi", "xi"), (32, 64)).parallel("yo").vectorize("xi", 8)
    for f in reversed(s.pipeline.funcs[:-1]):
        s[f.name].compute_at("out", "xo").vectorize("x", 8)
    return s


def chain() -> Schedule:
    """32 stages, all overlapped in tiles of the last."""
    source: Any = sx.Input("a", sx.float32, 2)
    for k in range(32):
        f = sx.Func(f"f{k}")
        off = 40 if k == 0 else 0
        f[y, x] = source[y + off - 1, x + off] + source[y + off, x + off - 1] + source[y + off + 1, x + off + 1]
        source = f
    s = Schedule(source)
    s[source].tile((y, x), ("yo", "xo"), ("yi", "xi"), (64, 64)).parallel("yo").vectorize("xi", 8)
    for f in reversed(s.pipeline.funcs[:-1]):
        s[f.name].compute_at(source, "xo").vectorize("x", 8)
    return s


def gemm() -> Schedule:
    """Three levels of tiles."""
    i, j = sx.vars("i j")
    a, b = sx.Input("a", sx.float32, 2), sx.Input("b", sx.float32, 2)
    c, r = sx.Func("c", shape=(a.shape[0], b.shape[1])), sx.RDom("r", k=a.shape[1])
    c[i, j] = sx.float32(0)
    c[i, j] += a[i, r] * b[r, j]
    s = Schedule(c)
    s[c].compute_root()
    u = s[c].update(0).tile((i, j, r), ("io", "jo", "ko"), ("im", "jm", "km"), (64, 64, 64))
    u.tile(("im", "jm"), ("im", "jm"), ("ii", "ji"), (4, 16)).reorder("io", "jo", "ko", "im", "jm", "km", "ii", "ji")
    u.parallel("io").vectorize("ji").unroll("ii")
    return s


def conv2d() -> Schedule:
    """Seven variables, twelve loops."""
    n, o = sx.vars("n o")
    a, w = sx.Input("a", sx.float32, 4), sx.Input("w", sx.float32, 4)
    r = sx.RDom("r", c=w.shape[1], u=w.shape[2], v=w.shape[3])
    f = sx.Func("f", shape=(a.shape[0], w.shape[0], a.shape[2] - 2, a.shape[3] - 2))
    f[n, o, y, x] = sx.float32(0)
    f[n, o, y, x] += (
        a[n, r.c, sx.clip(y + r.u, 0, a.shape[2] - 1), sx.clip(x + r.v, 0, a.shape[3] - 1)] * w[o, r.c, r.u, r.v]
    )
    s = Schedule(f)
    s[f].compute_root()
    u = s[f].update(0).tile((o, y, x, "r.c"), ("oo", "yo", "xo", "co"), ("oi", "yi", "xi", "ci"), (8, 8, 16, 8))
    u.split("xi", "xm", "xl", 8).reorder("n", "oo", "yo", "xo", "co", "ci", "r.u", "r.v", "oi", "yi", "xm", "xl")
    u.parallel("oo").vectorize("xl")
    return s


def heat() -> Schedule:
    """Skewed, tiled, in wavefronts."""
    t = sx.Var("t")
    steps = sx.Param("steps", sx.int64, low=1)
    a = sx.Input("a", sx.float32, 2)
    h, w = a.shape
    u, out = sx.Func("u", shape=(steps + 1, h, w)), sx.Func("out")
    u[0, y, x] = a[y, x]
    total = u[t - 1, y - 1, x] + u[t - 1, y + 1, x] + u[t - 1, y, x - 1] + u[t - 1, y, x + 1]
    u[t, y, x] = sx.select((y > 0) & (y < h - 1) & (x > 0) & (x < w - 1), total * 0.25, u[t - 1, y, x])
    out[y, x] = u[steps, y, x]
    s = Schedule(out)
    s[u].skew(y, t, 1).skew(x, t, 1).tile((t, y, x), ("to", "yo", "xo"), ("ti", "yi", "xi"), (8, 32, 64))
    s[u].skew("to", "yo", 1).skew("to", "xo", 1).parallel("yo")
    return s


def pyramid(placed: bool) -> Schedule:
    """Return a schedule of 97 Funcs: two channels go down and up 12 levels.

    All at root, or in every level one of its two Funcs in rows of the other and folded.
    """
    a = sx.Input("a", sx.float32, 3)
    tops: list[sx.Func] = []
    for c in range(2):
        levels: list[Any] = [a]
        for k in range(12):
            f, g = sx.Func(f"dx{c}_{k}"), sx.Func(f"dy{c}_{k}")
            above = levels[-1]
            more = () if k else (c,)
            f[y, x] = above[y, 2 * x, *more] + above[y, 2 * x + 1, *more]
            g[y, x] = f[2 * y, x] + f[2 * y + 1, x]
            levels.append(g)
        top: Any = levels.pop()
        for k in range(12):
            f, g = sx.Func(f"ux{c}_{k}"), sx.Func(f"uy{c}_{k}")
            f[y, x] = top[y, x // 2] + top[y, x // 2 + 1]
            under = levels.pop()
            g[y, x] = f[y // 2, x] + f[y // 2 + 1, x] + (under[y, x] if levels else under[y, x, c])
            top = g
        tops.append(top)
    out = sx.Func("out")
    out[y, x] = tops[0][y, x] + tops[1][y, x]
    s = Schedule(out)
    for f in reversed(s.pipeline.funcs):
        other = f.name.replace("x", "y", 1)
        if placed and f.name != other and f.name != "out":
            s[f.name].compute_at(other, "y").fold_storage("y", 2)
        else:
            s[f.name].compute_root()
    return s


CASES: dict[str, tuple[Callable[[], Schedule], float]] = {
    "blur slide+fold+vec+par": (blur, 12),
    "harris tiled": (harris, 50),
    "32-stage overlapped chain": (chain, 250),
    "gemm with 3 levels": (gemm, 8),
    "conv2d with 12 loops": (conv2d, 50),
    "heat2d skew+tile+wavefront": (heat, 20),
    "a pyramid of 97 Funcs at root": (lambda: pyramid(False), 60),
    "the pyramid, compute_at and fold in each level": (lambda: pyramid(True), 500),
}


def cpu_ms(run: Callable[[], object]) -> float:
    """Return the median CPU time of some runs."""
    found: list[float] = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        run()
        found.append(1000 * (time.process_time() - begin))
    return median(found)


def main() -> int:
    """Print a line a case, with what is asked for; return how many miss it."""
    library()
    found: list[tuple[str, int, float, float]] = []
    for name, (make, most) in CASES.items():
        s = make()
        regions = infer(s.pipeline)
        ms = cpu_ms(lambda s=s, regions=regions: check(s.pipeline, s.lines, regions))
        found.append((name, len(s.pipeline.funcs), ms, most))
    s, known = pyramid(True), Known()
    regions = infer(s.pipeline)
    check(s.pipeline, s.lines, regions, known)
    edited = [Line(StageRef("uy0_5"), Split("x", "xo", "xi", 16 + k)) for k in range(ROUNDS)]
    took = cpu_ms(lambda: check(s.pipeline, (*s.lines, edited.pop()), regions, known))
    found.append(("the same, one directive edited", len(s.pipeline.funcs), took, 60))
    for name, funcs, ms, most in found:
        print(f"{name:48} {funcs:3} Funcs {ms:8.1f} ms of {most:.0f}{'  missed' if ms > most else ''}")
    return sum(ms > most for _, _, ms, most in found)


if __name__ == "__main__":
    sys.exit(min(1, main()))
