"""What verify finds."""

from __future__ import annotations

from dataclasses import replace

import pytest

import stax as sx
from stax import dtypes
from stax.algorithm.nodes import Func, Pipeline
from stax.algorithm.verify import verify
from stax.errors import InternalError
from stax.expr.nodes import Binary, BinaryOp, Const, Expr, Read, Size, Var
from stax.lang.freeze import freeze

X = Var(dtypes.int64, "x")
ONE = Const(dtypes.int64, 1)


@pytest.fixture
def pipeline() -> Pipeline:
    a, f, g, x = sx.Input("a", sx.float32, 1), sx.Func("f"), sx.Func("g"), sx.Var("x")
    f[x] = a[x] * 2
    r = sx.RDom("r", k=3)
    f[r] += 1
    g[x] = f[x] + 1
    found = freeze(g)
    verify(found)
    return found


def broken(pipeline: Pipeline, value: Expr) -> Pipeline:
    f = replace(pipeline.funcs[1], values=(value,))
    return replace(pipeline, funcs=(pipeline.funcs[0], f))


@pytest.mark.parametrize(
    "value",
    [
        ONE,
        Read(dtypes.float32, "f", (Var(dtypes.int64, "y"),)),
        Read(dtypes.float32, "nothing", (X,)),
        Read(dtypes.float32, "f", (X, X)),
        Read(dtypes.float32, "f", (Var(dtypes.int32, "x"),)),
        Read(dtypes.float64, "f", (X,)),
        Read(dtypes.float32, "f", (Binary(dtypes.int64, BinaryOp.ADD, X, Const(dtypes.int32, 1)),)),
        Read(dtypes.float32, "f", (Size(dtypes.int64, "a", 3),)),
        Read(dtypes.float32, "f", (Const(dtypes.int64, 1 << 70),)),
        Binary(dtypes.float32, BinaryOp.AND, Const(dtypes.float32, 1.0), Const(dtypes.float32, 1.0)),
    ],
)
def test_an_ill_formed_value_is_found(pipeline: Pipeline, value: Expr) -> None:
    with pytest.raises(InternalError, match="not well formed"):
        verify(broken(pipeline, value))


def test_order_names_and_parts_are_checked(pipeline: Pipeline) -> None:
    f, g = pipeline.funcs

    def refused(funcs: tuple[Func, ...], **more: object) -> None:
        with pytest.raises(InternalError, match="not well formed"):
            verify(replace(pipeline, funcs=funcs, **more))

    refused((g, f))
    refused((f, replace(g, name="f")))
    refused((f, replace(g, dims=("x", "x"))))
    refused((f, replace(g, backwards=frozenset({"z"}))))
    refused((f, g), outputs=("h",))
    refused((f, g), arguments=())
    step = f.updates[0]
    twice = replace(step, domain=(*step.domain, *step.domain))
    refused((replace(f, updates=(twice,)), g))
    refused((replace(f, updates=(replace(step, where=ONE),)), g))
