"""A small program, frozen by hand: blur_x -> blur_y -> out <- hist, whose update scatters over r.y and r.x."""

import pytest

from stax import dtypes
from stax.algorithm.nodes import Func, Input, Pipeline, Range, Update
from stax.expr import build
from stax.expr.nodes import Binary, BinaryOp, Const, Read, Size, Var

I64, F32 = dtypes.int64, dtypes.float32


def var(name):
    return Var(I64, name)


def plus(a, b):
    return Binary(a.dtype, BinaryOp.ADD, a, b)


@pytest.fixture
def program() -> Pipeline:
    y, x = var("y"), var("x")
    one = Const(I64, 1)
    img = Input("img", dtypes.uint8, ("d0", "d1"), (None, None))

    def pixel(i, j):
        return build.cast(Read(dtypes.uint8, "img", (i, j)), F32)

    def by_at(i, j):
        return Read(F32, "by", (i, j))

    def hist_at(i, j):
        return Read(F32, "hist", (i, j))

    bx = Func("bx", ("y", "x"), (F32,), (plus(pixel(y, x), pixel(y, plus(x, one))),))
    by = Func("by", ("y", "x"), (F32,), (plus(Read(F32, "bx", (y, x)), Read(F32, "bx", (plus(y, one), x))),))
    domain = (
        Range("r.y", Const(I64, 0), Size(I64, "img", 0)),
        Range("r.x", Const(I64, 0), Size(I64, "img", 1)),
    )
    c, i = var("c"), var("i")
    bin = build.cast(Read(dtypes.uint8, "img", (var("r.y"), var("r.x"))), I64)
    count = Update((c, bin), (plus(hist_at(c, bin), Const(F32, 1.0)),), domain)
    shift = Update((c, i), (plus(hist_at(c, i), by_at(c, i)),))
    hist = Func("hist", ("c", "i"), (F32,), (Const(F32, 0.0),), (count, shift))
    odd = Func("a b", ("y", "for"), (F32,), (by_at(y, var("for")),))
    out = Func("out", ("y", "x"), (F32,), (plus(plus(by_at(y, x), hist_at(y, x)), Read(F32, "a b", (y, x))),))
    return Pipeline((img,), (), (), (bx, by, hist, odd, out), ("out",), ("img",))
