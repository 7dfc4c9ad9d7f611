"""Layers of networks: each function returns the output Func; the NumPy code of the same is in `peers/apps.py`.

Images are (n, y, x, channel).
"""

from __future__ import annotations

import stax as sx

N, Y, X, D = sx.vars("n y x d")


def conv_layer() -> sx.Func:
    """Return a 3 x 3 convolution over all channels, its bias added, positive or 0."""
    inp = sx.Input("inp", sx.float32, 4)
    filt = sx.Input("filt", sx.float32, (inp.shape[3], 3, 3, None))
    bias = sx.Input("bias", sx.float32, (filt.shape[3],))
    r = sx.RDom("r", c=inp.shape[3], y=3, x=3)
    conv, out = sx.Func("conv"), sx.Func("out")
    conv[N, Y, X, D] = bias[D]
    conv[N, Y, X, D] += filt[r.c, r.y, r.x, D] * inp[N, Y + r.y, X + r.x, r.c]
    out[N, Y, X, D] = sx.maximum(conv[N, Y, X, D], 0)
    return out


def dsc() -> sx.Func:
    """Return a 3 x 3 filter of each channel by itself, then a mix of the channels, its bias added, positive or 0."""
    inp = sx.Input("inp", sx.float32, 4)
    n, h, w, channels = inp.shape
    dw = sx.Input("dw", sx.float32, (3, 3, channels))
    pw = sx.Input("pw", sx.float32, (channels, None))
    bias = sx.Input("bias", sx.float32, (pw.shape[1],))
    padded = sx.pad(inp, "constant", axes=(1, 2))
    r, k = sx.RDom("r", y=3, x=3), sx.RDom("k", c=channels)
    depth, mix, out = sx.Func("depth"), sx.Func("mix"), sx.Func("out", shape=(n, h, w, pw.shape[1]))
    depth[N, Y, X, D] = 0
    depth[N, Y, X, D] += dw[r.y, r.x, D] * padded[N, Y + r.y - 1, X + r.x - 1, D]
    mix[N, Y, X, D] = bias[D]
    mix[N, Y, X, D] += pw[k, D] * depth[N, Y, X, k]
    out[N, Y, X, D] = sx.maximum(mix[N, Y, X, D], 0)
    return out
