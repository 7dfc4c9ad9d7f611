"""Sums along rows whose lanes are rows: loaded by rows, turned in registers, in the order of the definition."""

import numpy as np
import pytest

import stax as sx


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int32"])
@pytest.mark.parametrize("shape", [(16, 16), (33, 50), (17, 15), (64, 64), (5, 31)])
@pytest.mark.parametrize("side", [4, 8, 16])
def test_rows_are_summed_in_order(dtype: str, shape: tuple[int, int], side: int) -> None:
    i = sx.Var("i")
    a = sx.Input("a", dtype, 2)
    r = sx.RDom("r", j=a.shape[1])
    f = sx.Func("f")
    f[i] = sx.sum(a[i, r.j] * 3, over=r)
    s = sx.Schedule(f)
    s[f].vectorize(i, 8)
    s[f].update(0).vectorize(i, side).unroll(r.j, side)
    k = sx.compile(f, s, strict_native=True)
    v = (np.random.default_rng(3).random(shape) * 50).astype(dtype)
    total = np.zeros(shape[0], k.signature.outputs[0].dtypes[0].dtype)
    three = (v * v.dtype.type(3)).astype(total.dtype)
    for j in range(shape[1]):
        if v.dtype.kind == "f":  # one rounding a step: a * 3 + total is an fma
            exact = v[:, j].astype(np.longdouble) * 3 + total
            total = exact.astype(total.dtype)
        else:
            total = total + three[:, j]
    assert (k(v) == total).all()


def test_the_rows_are_loaded_as_vectors() -> None:
    """The effect: as many vector loads and shuffles as a tile has, and no insertion of single elements."""
    i = sx.Var("i")
    a = sx.Input("a", sx.float32, 2)
    r = sx.RDom("r", j=a.shape[1])
    f = sx.Func("f")
    f[i] = sx.sum(a[i, r.j], over=r)
    s = sx.Schedule(f)
    s[f].update(0).vectorize(i, 8).unroll(r.j, 8)
    text = sx.compile(f, s).source("llvm")
    turned = text[text.index("shufflevector <8 x float>") :]
    assert turned.count("shufflevector <8 x float>") >= 24


def test_cells_of_a_register_tile_are_carried() -> None:
    """A product of matrices keeps its tile in registers: the loop over k has no store."""
    i, j = sx.Var("i"), sx.Var("j")
    a, b = sx.Input("a", sx.float32, 2), sx.Input("b", sx.float32, 2)
    k = sx.RDom("k", k=a.shape[1])
    c = sx.Func("c")
    c[i, j] = 0
    c[i, j] += a[i, k] * b[k, j]
    kernel = sx.compile(c, strict_native=True)
    loops = kernel.source("loops")
    loop = loops[loops.index("for c.update(0).k.k") :]
    body = loop[: loop.index("\n            c[")] if "\n            c[" in loop else loop[:2000]
    assert body.count("carrying") >= 1
    x = np.random.default_rng(0).integers(-8, 8, (37, 41)).astype(np.float32)
    y = np.random.default_rng(1).integers(-8, 8, (41, 70)).astype(np.float32)
    assert (kernel(x, y) == x @ y).all()
