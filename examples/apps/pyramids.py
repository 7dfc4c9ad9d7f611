"""Image pyramids: each function returns the output Func; the NumPy code of the same is in `peers/apps.py`.

Images are planar, (c, y, x). A level of a pyramid lives on the whole plane, so nothing is clamped but the photo itself.
"""

from __future__ import annotations

import stax as sx

C, K, Y, X = sx.vars("c k y x")


def _down(name: str, f: sx.Func) -> sx.Func:
    """Return `f` at half its size, by the weights 1 3 3 1."""
    rows, out = sx.Func(f"{name}_rows"), sx.Func(name)
    rows[..., Y, X] = (f[..., 2 * Y - 1, X] + 3 * (f[..., 2 * Y, X] + f[..., 2 * Y + 1, X]) + f[..., 2 * Y + 2, X]) / 8
    out[..., Y, X] = (
        rows[..., Y, 2 * X - 1] + 3 * (rows[..., Y, 2 * X] + rows[..., Y, 2 * X + 1]) + rows[..., Y, 2 * X + 2]
    ) / 8
    return out


def _up(name: str, f: sx.Func) -> sx.Func:
    """Return `f` at twice its size, each pixel between the two nearest."""
    across, out = sx.Func(f"{name}_across"), sx.Func(name)

    def between(far: sx.Value, near: sx.Value, at: sx.Var) -> sx.Value:
        return far + (near - far) * (sx.cast(at % 2 * 2 + 1, sx.float32) / 4)

    across[..., Y, X] = between(f[..., Y, (X + 1) // 2], f[..., Y, (X - 1) // 2], X)
    out[..., Y, X] = between(across[..., (Y + 1) // 2, X], across[..., (Y - 1) // 2, X], Y)
    return out


def local_laplacian(levels: int = 8, shades: int = 8) -> sx.Func:
    """Return a photo with its small contrasts raised: a pyramid for each of `shades`, one blended out of them all."""
    alpha, beta, top = 1 / (shades - 1), 1.0, shades - 1
    inp = sx.Input("inp", sx.uint16, (3, None, None))
    photo, wide, gray, curve = sx.pad(inp, "edge", axes=(1, 2)), *(sx.Func(n) for n in ("wide", "gray", "curve"))
    wide[C, Y, X] = sx.cast(photo[C, Y, X], sx.float32) / 65535
    gray[Y, X] = 0.299 * wide[0, Y, X] + 0.587 * wide[1, Y, X] + 0.114 * wide[2, Y, X]
    t = sx.cast(X, sx.float32) / 256
    curve[X] = alpha * t * sx.exp(-t * t / 2)
    place = sx.clip(sx.cast(gray[Y, X] * (top * 256), sx.int32), 0, top * 256)
    shade = sx.cast(K, sx.float32) * (1 / top)
    remapped = [sx.Func("remapped0", shape=(shades, None, None))]
    remapped[0][K, Y, X] = beta * (gray[Y, X] - shade) + shade + curve[place - 256 * K]
    plain = [gray]
    for j in range(1, levels):
        remapped.append(_down(f"remapped{j}", remapped[-1]))
        plain.append(_down(f"plain{j}", plain[-1]))

    def blended(j: int) -> sx.Value:
        """Return band `j` of the output: between those of the two nearest shades."""
        level = plain[j][Y, X] * top
        low = sx.clip(sx.cast(level, sx.int32), 0, top - 1)
        part = level - sx.cast(low, sx.float32)
        larger = _up(f"larger{j + 1}", remapped[j + 1]) if j < levels - 1 else None

        def band(k: sx.Value) -> sx.Value:
            return remapped[j][k, Y, X] if larger is None else remapped[j][k, Y, X] - larger[k, Y, X]

        return (1 - part) * band(low) + part * band(low + 1)

    made = sx.Func(f"made{levels - 1}")
    made[Y, X] = blended(levels - 1)
    for j in reversed(range(levels - 1)):
        grown, made = _up(f"grown{j}", made), sx.Func(f"made{j}")
        made[Y, X] = grown[Y, X] + blended(j)
    out = sx.Func("out", shape=inp.shape)
    coloured = sx.cast(inp[C, Y, X], sx.float32) * (made[Y, X] + 0.01) / (gray[Y, X] + 0.01)
    out[C, Y, X] = sx.cast(sx.clip(coloured, 0.0, 65535.0), sx.uint16)
    return out


def interpolate(levels: int = 10) -> sx.Func:
    """Return a picture whose holes, where alpha is small, are filled from ever coarser copies of it."""
    inp = sx.Input("inp", sx.float32, (4, None, None))
    _, h, w = inp.shape
    photo, first = sx.pad(inp, "edge", axes=(1, 2)), sx.Func("coarse0", shape=(4, None, None))
    first[C, Y, X] = sx.select(C < 3, photo[C, Y, X] * photo[3, Y, X], photo[3, Y, X])
    coarse = [first]
    for j in range(1, levels):
        before = coarse[-1]
        if j == 4:
            clamped = sx.Func("clamped")
            clamped[C, Y, X] = before[C, sx.clip(Y, 0, h // 8), sx.clip(X, 0, w // 8)]
            before = clamped
        rows, made = sx.Func(f"rows{j}"), sx.Func(f"coarse{j}")
        rows[C, Y, X] = (before[C, Y, 2 * X - 1] + 2 * before[C, Y, 2 * X] + before[C, Y, 2 * X + 1]) * 0.25
        made[C, Y, X] = (rows[C, 2 * Y - 1, X] + 2 * rows[C, 2 * Y, X] + rows[C, 2 * Y + 1, X]) * 0.25
        coarse.append(made)
    filled = coarse[-1]
    for j in reversed(range(levels - 1)):
        across, larger, made = (sx.Func(f"{name}{j}") for name in ("across", "larger", "filled"))
        across[C, Y, X] = (filled[C, Y, X // 2] + filled[C, Y, (X + 1) // 2]) / 2
        larger[C, Y, X] = (across[C, Y // 2, X] + across[C, (Y + 1) // 2, X]) / 2
        made[C, Y, X] = coarse[j][C, Y, X] + (1 - coarse[j][3, Y, X]) * larger[C, Y, X]
        filled = made
    out = sx.Func("out", shape=(3, h, w))
    out[C, Y, X] = filled[C, Y, X] / filled[3, Y, X]
    return out
