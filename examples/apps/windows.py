"""Filters over large windows: each function returns the output Func; the NumPy code of the same is in `peers/apps.py`.

Images are planar, (c, y, x).
"""

from __future__ import annotations

import stax as sx

C, Y, X = sx.vars("c y x")


def nl_means(patch: int = 7, search: int = 7, sigma: float = 0.12) -> sx.Func:
    """Return an image where each pixel is the mean of those around it whose own patches look like its patch."""
    dy, dx = sx.vars("dy dx")
    inp = sx.Input("inp", sx.float32, (3, None, None))
    photo = sx.pad(inp, "edge", axes=(1, 2))
    p, s = range(-(patch // 2), patch // 2 + 1), search // 2
    apart, down, both, weight = (sx.Func(name) for name in ("apart", "down", "both", "weight"))
    apart[dy, dx, Y, X] = sum((photo[c, Y, X] - photo[c, Y + dy, X + dx]) ** 2 for c in range(3))
    down[dy, dx, Y, X] = sum(apart[dy, dx, Y + k, X] for k in p)
    both[dy, dx, Y, X] = sum(down[dy, dx, Y, X + k] for k in p)
    weight[dy, dx, Y, X] = sx.exp(both[dy, dx, Y, X] * (-1 / (sigma * sigma * patch * patch)))
    r = sx.RDom("r", y=(-s, s + 1), x=(-s, s + 1))
    total, weights = sx.Func("total"), sx.Func("weights")
    total[C, Y, X] = sx.sum(weight[r.y, r.x, Y, X] * photo[C, Y + r.y, X + r.x], over=r)
    weights[Y, X] = sx.sum(weight[r.y, r.x, Y, X], over=r)
    out = sx.Func("out", shape=inp.shape)
    out[C, Y, X] = sx.clip(total[C, Y, X] / weights[Y, X], 0.0, 1.0)
    return out


def max_filter(radius: int = 26) -> sx.Func:
    """Return the largest value in a disc around each pixel: a column for each dx, of two runs of a power of two."""
    inp = sx.Input("inp", sx.float32, (3, None, None))
    photo, run = sx.pad(inp, "edge", axes=(1, 2)), sx.Func("run1")
    run[C, Y, X] = photo[C, Y, X]
    runs = {1: run}
    while 2 * max(runs) <= 2 * radius + 1:
        n = max(runs)
        longer = sx.Func(f"run{2 * n}")
        longer[C, Y, X] = sx.maximum(runs[n][C, Y, X], runs[n][C, Y + n, X])
        runs[2 * n] = longer
    half = {dx: max(d for d in range(radius + 1) if dx * dx + d * d < (radius + 0.25) ** 2) for dx in range(radius + 1)}
    columns: dict[int, sx.Func] = {}
    for t in sorted(set(half.values())):
        n = max(n for n in runs if n <= 2 * t + 1)
        columns[t] = sx.Func(f"column{t}")
        columns[t][C, Y, X] = sx.maximum(runs[n][C, Y - t, X], runs[n][C, Y + t + 1 - n, X])
    out = sx.Func("out", shape=inp.shape)
    largest = columns[half[0]][C, Y, X]
    for dx in range(1, radius + 1):
        column = columns[half[dx]]
        largest = sx.maximum(largest, sx.maximum(column[C, Y, X - dx], column[C, Y, X + dx]))
    out[C, Y, X] = largest
    return out


def stencil_chain(stages: int = 32) -> sx.Func:
    """Return 16-bit integers after `stages` weighted sums of 5 x 5 around each, one upon the other."""
    inp = sx.Input("inp", sx.uint16, 2)
    last = sx.pad(inp, "edge")
    around = range(-2, 3)
    for k in range(stages):
        f = sx.Func(f"stage{k}", shape=inp.shape if k == stages - 1 else None)
        f[Y, X] = sum((j + 3) * (i + 3) * last[Y + j, X + i] for j in around for i in around)
        last = f
    return last
