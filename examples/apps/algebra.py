"""Rows and matrices: each function returns the output Func; the NumPy code of the same is in `peers/apps.py`."""

from __future__ import annotations

import stax as sx

M, N = sx.vars("m n")


def sgemm() -> sx.Func:
    """Return the product of two matrices."""
    a = sx.Input("a", sx.float32, 2)
    b = sx.Input("b", sx.float32, (a.shape[1], None))
    k = sx.RDom("k", k=a.shape[1])
    c = sx.Func("c")
    c[M, N] = 0
    c[M, N] += a[M, k] * b[k, N]
    return c


def transposed_sgemm() -> sx.Func:
    """Return the product of two matrices, the first of which comes transposed."""
    a = sx.Input("a", sx.float32, 2)
    b = sx.Input("b", sx.float32, (a.shape[0], None))
    k = sx.RDom("k", k=a.shape[0])
    c = sx.Func("c", shape=(a.shape[1], b.shape[1]))
    c[M, N] = 0
    c[M, N] += a[k, M] * b[k, N]
    return c


def max_plus() -> sx.Func:
    """Return, for each pair, the largest sum of two: a product of matrices over maximum and plus."""
    a = sx.Input("a", sx.float32, 2)
    b = sx.Input("b", sx.float32, (a.shape[1], None))
    k = sx.RDom("k", k=a.shape[1])
    c = sx.Func("c")
    c[M, N] = -sx.inf
    c[M, N] = sx.maximum(c[M, N], a[M, k] + b[k, N])
    return c


def rows() -> sx.Func:
    """Return the sum of each row's positive parts, doubled, after a shift by `w`."""
    x = sx.Input("x", sx.float32, 2)
    w = sx.Input("w", sx.float32, (x.shape[1],))
    r = sx.RDom("r", j=x.shape[1])
    out = sx.Func("out")
    out[M] = sx.sum(2 * sx.maximum(x[M, r] + w[r], 0), over=r)
    return out


def rownorm() -> sx.Func:
    """Return each row, divided by its sum."""
    x = sx.Input("x", sx.float32, 2)
    r = sx.RDom("r", j=x.shape[1])
    out = sx.Func("out")
    out[M, N] = x[M, N] / sx.sum(x[M, r], over=r)
    return out


def softmax() -> sx.Func:
    """Return the softmax of each row; a row is divided by its sum once, as Halide's compiler makes of `e / sum`."""
    x = sx.Input("x", sx.float32, 2)
    r = sx.RDom("r", j=x.shape[1])
    top, e, part, out = sx.Func("top"), sx.Func("e"), sx.Func("part"), sx.Func("out")
    top[M] = sx.max(x[M, r], over=r, initial=-sx.inf)
    e[M, N] = sx.exp(x[M, N] - top[M])
    part[M] = 1 / sx.sum(e[M, r], over=r)
    out[M, N] = e[M, N] * part[M]
    return out


def layernorm() -> sx.Func:
    """Return each row with mean 0 and variance 1, then scaled by `gamma` and shifted by `beta`."""
    x = sx.Input("x", sx.float32, 2)
    gamma, beta = (sx.Input(name, sx.float32, (x.shape[1],)) for name in ("gamma", "beta"))
    r = sx.RDom("r", j=x.shape[1])
    mu, scale, out = sx.Func("mu"), sx.Func("scale"), sx.Func("out")
    mu[M] = sx.mean(x[M, r], over=r)
    scale[M] = sx.rsqrt(sx.mean((x[M, r] - mu[M]) ** 2, over=r) + 1e-5)
    out[M, N] = (x[M, N] - mu[M]) * scale[M] * gamma[N] + beta[N]
    return out


def gelu_bias_res() -> sx.Func:
    """Return GELU, by its tanh form, of `x + b`, plus `r`."""
    x = sx.Input("x", sx.float32, 2)
    b = sx.Input("b", sx.float32, (x.shape[1],))
    r = sx.Input("r", sx.float32, x.shape)
    v, out = sx.Func("v"), sx.Func("out")
    v[M, N] = x[M, N] + b[N]
    t = v[M, N]
    out[M, N] = 0.5 * t * (1 + sx.tanh(0.7978845608 * (t + 0.044715 * t * t * t))) + r[M, N]
    return out
