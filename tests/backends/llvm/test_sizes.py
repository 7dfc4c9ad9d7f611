"""Sizes as code have the values that a call from Python gives them, or raise a flag."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stax import dtypes
from stax.backends.llvm.optimize import compile_text
from stax.backends.llvm.sizes import Sizes
from stax.backends.llvm.writer import Function, Module
from stax.dtypes import DType
from stax.errors import UnsupportedError
from stax.expr import build
from stax.expr.nodes import Binary, BinaryOp, Cast, Const, Expr, Param, Select, Size, Unary, UnaryOp
from stax.runtime.formula import formula
from stax.runtime.load import load
from stax.target import Target

INT = dtypes.int64
N, K, SHORT = Size(INT, "a", 0), Param(INT, "k"), Param(dtypes.int16, "s")
BINARY = [b for b in BinaryOp if b is not BinaryOp.DIV]
EDGES = [0, 1, -1, 2, 7, 64, 2**31, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1]


def code(exprs: list[Expr]) -> Any:
    """Return a function of n, k and s that gives the values of `exprs` and the flag."""
    f = Function(Module(Target.host()))
    names = {"a": "%n", "k": "%k", "s": "%s"}
    sizes = Sizes(f, lambda node: names[node.array if isinstance(node, Size) else node.name])
    values = sizes.values(exprs)
    for at, value in enumerate(values):
        f.act(f"store i64 {value}, ptr {f.put(f'getelementptr i64, ptr %out, i64 {at}')}")
    f.act(f"ret i32 {f.put(f'zext i1 {sizes.flag} to i32')}")
    f.module.functions.append("\n".join(["define i32 @f(i64 %n, i64 %k, i64 %s, ptr %out) {", *f.lines, "}"]))
    kept = load(compile_text(f.module.text(""), Target.host()), ("f",))
    entry = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * 3, ctypes.c_void_p)(kept.addresses["f"])

    def run(n: int, k: int, s: int) -> tuple[list[int], bool]:
        out = (ctypes.c_int64 * len(exprs))()
        flag = entry(n, k, s, ctypes.addressof(out))
        assert kept
        return list(out), bool(flag)

    return run


def every() -> list[Expr]:
    """Return each operator of each kind of value, and some on top of each other."""
    found: list[Expr] = []
    for a, b in ((N, K), (K, N), (K, Const(INT, 3)), (K, Const(INT, -1)), (SHORT, Const(dtypes.int16, 5))):
        for op in BINARY:
            compares = op in (BinaryOp.LT, BinaryOp.LE, BinaryOp.EQ, BinaryOp.NE)
            found.append(Binary(dtypes.bool_ if compares else a.dtype, op, a, b))
    found += [Unary(K.dtype, op, K) for op in UnaryOp] + [Unary(SHORT.dtype, op, SHORT) for op in UnaryOp]
    less = build.less(N, K)
    found += [Unary(dtypes.bool_, UnaryOp.NOT, less), Binary(dtypes.bool_, BinaryOp.ADD, less, build.less(K, N))]
    found += [Select(INT, less, N, Binary(INT, BinaryOp.SUB, K, N)), Cast(INT, less), Cast(dtypes.bool_, K)]
    found += [Cast(t, K) for t in (dtypes.int8, dtypes.uint8, dtypes.uint32, dtypes.uint64)]
    return [*found, Binary(INT, BinaryOp.MUL, Cast(INT, SHORT), Cast(INT, found[2]))]


CODE: list[Any] = []


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 2**62) | st.sampled_from([e for e in EDGES if e >= 0]),
    st.integers(-(2**63), 2**63 - 1) | st.sampled_from(EDGES),
    st.integers(-(2**15), 2**15 - 1),
)
def test_each_operator_agrees_with_python_or_raises_the_flag(n: int, k: int, s: int) -> None:
    exprs = every()
    if not CODE:
        CODE.extend((code(exprs), [code([e]) for e in exprs], [formula([e]) for e in exprs]))
    whole, alone, python = CODE
    values, flagged = whole(n, k, s)
    wanted = []
    for expr, one, formed in zip(exprs, alone, python, strict=True):
        if isinstance(expr, Binary) and expr.op is BinaryOp.SHL and k > 200:
            continue
        (mine,), flag = one(n, k, s)
        value = int(formed({"a": (n,)}, {"k": k, "s": s})[0])
        wanted.append(value)
        assert flag or mine == value, expr
        assert not flag or flagged
        fits = -(2**63) <= value < 2**63 and not (expr.dtype.name == "uint64" and value >= 2**63)
        assert flag or fits
    assert flagged or values


def test_sizes_of_floats_are_refused() -> None:
    half: DType = dtypes.float64
    with pytest.raises(UnsupportedError, match="floats"):
        code([Cast(INT, Binary(half, BinaryOp.MUL, Cast(half, N), Const(half, 0.5)))])
