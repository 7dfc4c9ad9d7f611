"""Image pipelines: each function returns the output Func; the NumPy code of the same is in `peers/apps.py`.

Images are planar, (c, y, x).
"""

from __future__ import annotations

import numpy as np

import stax as sx

C, Y, X = sx.vars("c y x")


def blur3x3() -> sx.Func:
    """Return a box blur of 16-bit integers."""
    inp = sx.Input("inp", sx.uint16, 2)
    bx, by = sx.Func("bx"), sx.Func("by")
    bx[Y, X] = (inp[Y, X] + inp[Y, X + 1] + inp[Y, X + 2]) // 3
    by[Y, X] = (bx[Y, X] + bx[Y + 1, X] + bx[Y + 2, X]) // 3
    return by


def gray_of(rgb: sx.Input) -> sx.Func:
    """Return the brightness of a planar image, wherever it is asked for."""
    gray = sx.Func("gray")
    gray[Y, X] = 0.299 * rgb[0, Y, X] + 0.587 * rgb[1, Y, X] + 0.114 * rgb[2, Y, X]
    return gray


def unsharp() -> sx.Func:
    """Return an image sharpened by a Gaussian of its brightness."""
    sigma = 1.5
    g = [float(np.exp(-k * k / (2 * sigma**2)) / (np.sqrt(2 * np.pi) * sigma)) for k in range(4)]
    inp = sx.Input("inp", sx.float32, (3, None, None))
    gray, by, bx, ratio = gray_of(sx.pad(inp, "edge", axes=(1, 2))), sx.Func("by"), sx.Func("bx"), sx.Func("ratio")
    by[Y, X] = g[0] * gray[Y, X] + sum(g[k] * (gray[Y - k, X] + gray[Y + k, X]) for k in (1, 2, 3))
    bx[Y, X] = g[0] * by[Y, X] + sum(g[k] * (by[Y, X - k] + by[Y, X + k]) for k in (1, 2, 3))
    ratio[Y, X] = (2 * gray[Y, X] - bx[Y, X]) / gray[Y, X]
    out = sx.Func("out", shape=inp.shape)
    out[C, Y, X] = ratio[Y, X] * inp[C, Y, X]
    return out


def harris() -> sx.Func:
    """Return how much of a corner each pixel is."""
    inp = sx.Input("inp", sx.float32, (3, None, None))
    gray = gray_of(inp)
    ix, iy = sx.Func("ix"), sx.Func("iy")
    c = np.float32(1 / 12)

    def across(y: sx.Value) -> sx.Value:
        return gray[y, X + 2] - gray[y, X]

    def down(x: sx.Value) -> sx.Value:
        return gray[Y + 2, x] - gray[Y, x]

    ix[Y, X] = (across(Y) + 2 * across(Y + 1) + across(Y + 2)) * c
    iy[Y, X] = (down(X) + 2 * down(X + 1) + down(X + 2)) * c

    def box(name: str, a: sx.Func, b: sx.Func) -> sx.Func:
        product, out = sx.Func(f"{name}_at"), sx.Func(name)
        product[Y, X] = a[Y, X] * b[Y, X]
        out[Y, X] = sum(product[Y + j, X + i] for j in range(3) for i in range(3))
        return out

    sxx, syy, sxy = box("sxx", ix, ix), box("syy", iy, iy), box("sxy", ix, iy)
    out = sx.Func("out")
    trace = sxx[Y, X] + syy[Y, X]
    out[Y, X] = sxx[Y, X] * syy[Y, X] - sxy[Y, X] * sxy[Y, X] - 0.04 * trace * trace
    return out


def bilateral_grid() -> sx.Func:
    """Return an image smoothed, but not across edges: through a coarse grid of place and brightness."""
    s = 8
    z = sx.Var("z")
    inp = sx.Input("inp", sx.float32, 2)
    h, w = inp.shape
    clamped = sx.pad(inp, "edge")
    r = sx.RDom("r", y=s, x=s)
    value = sx.clip(clamped[Y * s + r.y - s // 2, X * s + r.x - s // 2], 0.0, 1.0)
    level = sx.clip(sx.cast(value * 10 + 0.5, sx.int32), 0, 10)
    grid = sx.Func("grid", dtype=(sx.float32, sx.float32))
    grid[z, Y, X] = (0.0, 0.0)
    total, count = grid[level, Y, X]
    grid[level, Y, X] = (total + value, count + 1)

    def smooth(name: str, f: sx.Func, at: int) -> sx.Func:
        out = sx.Func(name)
        taps = []
        for k in range(-2, 3):
            place = [z, Y, X]
            place[at] = place[at] + k
            taps.append(f[tuple(place)])
        out[z, Y, X] = tuple(a + 4 * b + 6 * c + 4 * d + e for a, b, c, d, e in zip(*taps, strict=True))
        return out

    smoothed = smooth("along_y", smooth("along_x", smooth("along_z", grid, 0), 2), 1)
    zv = sx.clip(inp[Y, X], 0.0, 1.0) * 10
    zi = sx.clip(sx.cast(zv, sx.int32), 0, 10)
    zf = zv - sx.cast(zi, sx.float32)
    yf, xf = sx.cast(Y % s, sx.float32) / s, sx.cast(X % s, sx.float32) / s
    yi, xi = Y // s, X // s

    def lerp(a: sx.Value, b: sx.Value, t: sx.Value) -> sx.Value:
        return a + (b - a) * t

    def pick(part: int, dz: int) -> sx.Value:
        def at(dy: int, dx: int) -> sx.Value:
            return smoothed[zi + dz, yi + dy, xi + dx][part]

        return lerp(lerp(at(0, 0), at(0, 1), xf), lerp(at(1, 0), at(1, 1), xf), yf)

    out = sx.Func("out", shape=(h, w))
    out[Y, X] = lerp(pick(0, 0), pick(0, 1), zf) / lerp(pick(1, 0), pick(1, 1), zf)
    return out


def hist_eq() -> sx.Func:
    """Return an image with its brightness spread evenly, and its colours kept."""
    i = sx.Var("i")
    inp = sx.Input("inp", sx.uint8, (3, None, None))
    _, h, w = inp.shape
    bright, red, blue = sx.Func("bright"), sx.Func("red"), sx.Func("blue")
    bright[Y, X] = (
        0.299 * sx.cast(inp[0, Y, X], sx.float32)
        + 0.587 * sx.cast(inp[1, Y, X], sx.float32)
        + 0.114 * sx.cast(inp[2, Y, X], sx.float32)
    )
    red[Y, X] = (sx.cast(inp[0, Y, X], sx.float32) - bright[Y, X]) * 0.713 + 128
    blue[Y, X] = (sx.cast(inp[2, Y, X], sx.float32) - bright[Y, X]) * 0.564 + 128
    level = sx.Func("level")
    level[Y, X] = sx.cast(sx.clip(bright[Y, X], 0.0, 255.0), sx.uint8)
    r = sx.RDom("r", y=h, x=w)
    count, total = sx.Func("count", dtype=sx.int32, shape=(256,)), sx.Func("total", shape=(256,))
    count[i] = 0
    count[level[r.y, r.x]] += 1
    total[0] = count[0]
    total[i] = total[i - 1] + count[i]
    scale = sx.cast(255 / (h * w), sx.float32)
    even = sx.Func("even")
    even[Y, X] = sx.clip(sx.cast(total[level[Y, X]], sx.float32) * scale, 0.0, 255.0)
    e, cr, cb = even[Y, X], red[Y, X] - 128, blue[Y, X] - 128
    out = sx.Func("out", shape=(3, h, w))
    colour = sx.choose(C, [e + cr * 1.4, e - 0.343 * cb - 0.711 * cr, e + 1.765 * cb])
    out[C, Y, X] = sx.cast(sx.clip(colour, 0.0, 255.0), sx.uint8)
    return out


def iir_blur() -> sx.Func:
    """Return an image blurred by a recursive filter: down, up, right, left; `left` may lie in memory as it likes."""
    alpha = 0.1
    inp = sx.Input("inp", sx.float32, 3)
    n, h, w = inp.shape
    down, up, right, left = (sx.Func(name, shape=(n, h, w)) for name in ("down", "up", "right", "left"))
    down[C, 0, X] = inp[C, 0, X]
    down[C, Y, X] = (1 - alpha) * down[C, Y - 1, X] + alpha * inp[C, Y, X]
    up[C, h - 1, X] = down[C, h - 1, X]
    up[C, Y, X] = (1 - alpha) * up[C, Y + 1, X] + alpha * down[C, Y, X]
    right[C, Y, 0] = up[C, Y, 0]
    right[C, Y, X] = (1 - alpha) * right[C, Y, X - 1] + alpha * up[C, Y, X]
    left[C, Y, w - 1] = right[C, Y, w - 1]
    left[C, Y, X] = (1 - alpha) * left[C, Y, X + 1] + alpha * right[C, Y, X]
    out = sx.Func("out", shape=(n, h, w))
    out[C, Y, X] = left[C, Y, X]
    return out


def camera_pipe(matrix: np.ndarray, curve: np.ndarray, strength: int = 40) -> sx.Func:
    """Return the picture of a raw sensor: hot pixels, demosaicing, colour by `matrix`, tone by `curve`, sharpening."""
    raw = sx.Input("inp", sx.uint16, 2)
    h, w = raw.shape
    cool = sx.Func("cool")
    around = [raw[Y, X - 2], raw[Y, X + 2], raw[Y - 2, X], raw[Y + 2, X]]
    cool[Y, X] = sx.minimum(raw[Y, X], sx.maximum(sx.maximum(around[0], around[1]), sx.maximum(around[2], around[3])))

    def named(name: str, value: sx.Value) -> sx.Func:
        f = sx.Func(name)
        f[Y, X] = value
        return f

    g_gr, r_r = named("g_gr", cool[2 * Y, 2 * X]), named("r_r", cool[2 * Y, 2 * X + 1])
    b_b, g_gb = named("b_b", cool[2 * Y + 1, 2 * X]), named("g_gb", cool[2 * Y + 1, 2 * X + 1])
    mid = sx.rounding_average

    def flatter(a: sx.Value, b: sx.Value, c: sx.Value, d: sx.Value) -> sx.Value:
        return sx.select(sx.absd(c, d) < sx.absd(a, b), mid(c, d), mid(a, b))

    g_r = named("g_r", flatter(g_gb[Y - 1, X], g_gb[Y, X], g_gr[Y, X + 1], g_gr[Y, X]))
    g_b = named("g_b", flatter(g_gr[Y + 1, X], g_gr[Y, X], g_gb[Y, X - 1], g_gb[Y, X]))

    def line(name: str, g: sx.Func, gs: sx.Func, c: sx.Func, dx: int, dy: int) -> sx.Func:
        there = (Y + dy, X + dx)
        return named(name, g[Y, X] - mid(gs[Y, X], gs[there]) + mid(c[Y, X], c[there]))

    r_gr, b_gr = line("r_gr", g_gr, g_r, r_r, -1, 0), line("b_gr", g_gr, g_b, b_b, 0, -1)
    r_gb, b_gb = line("r_gb", g_gb, g_r, r_r, 0, 1), line("b_gb", g_gb, g_b, b_b, 1, 0)

    def diagonal(name: str, g: sx.Func, gs: sx.Func, c: sx.Func, at: int) -> sx.Func:
        """Follow the flatter diagonal of the four around: `at` is 1 or -1, towards them."""
        p, q1, q2 = (Y + at, X - at), (Y, X - at), (Y + at, X)
        first = g[Y, X] - mid(gs[Y, X], gs[p]) + mid(c[Y, X], c[p])
        second = g[Y, X] - mid(gs[q1], gs[q2]) + mid(c[q1], c[q2])
        return named(name, sx.select(sx.absd(c[Y, X], c[p]) < sx.absd(c[q1], c[q2]), first, second))

    r_b, b_r = diagonal("r_b", g_b, g_r, r_r, 1), diagonal("b_r", g_r, g_b, b_b, -1)

    def woven(name: str, a: sx.Func, b: sx.Func, c: sx.Func, d: sx.Func) -> sx.Func:
        at = (Y // 2, X // 2)
        whole = sx.select(Y % 2 == 0, sx.select(X % 2 == 0, a[at], b[at]), sx.select(X % 2 == 0, c[at], d[at]))
        return named(name, sx.cast(sx.cast(whole, sx.int16), sx.int32))

    red, green = woven("red", r_gr, r_r, r_b, r_gb), woven("green", g_gr, g_r, g_b, g_gb)
    blue = woven("blue", b_gr, b_r, b_b, b_gb)
    m = sx.Const("matrix", matrix.astype(np.int32))
    correct, curved, up_down, smooth = (sx.Func(n) for n in ("correct", "curved", "up_down", "smooth"))
    mixed = m[C, 3] + m[C, 0] * red[Y, X] + m[C, 1] * green[Y, X] + m[C, 2] * blue[Y, X]
    correct[C, Y, X] = sx.cast(mixed // 256, sx.int16)
    tone = sx.Const("curve", curve)
    curved[C, Y, X] = tone[sx.clip(correct[C, Y, X], 0, 1023)]
    up_down[C, Y, X] = mid(mid(curved[C, Y - 1, X], curved[C, Y + 1, X]), curved[C, Y, X])
    smooth[C, Y, X] = mid(mid(up_down[C, Y, X - 1], up_down[C, Y, X + 1]), up_down[C, Y, X])
    out = sx.Func("out", shape=(3, h - 24, w - 32))
    here = (C, Y + 12, X + 16)
    detail = sx.cast(curved[here], sx.int16) - sx.cast(smooth[here], sx.int16)
    sharp = curved[here] + detail * strength // 32
    out[C, Y, X] = sx.cast(sx.clip(sharp, 0, 255), sx.uint8)
    return out
