"""What no loop program may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from stax import dtypes
from stax.errors import InternalError
from stax.expr import build
from stax.expr.nodes import (
    INDEX,
    Axis,
    Binary,
    BinaryOp,
    Bitcast,
    Broadcast,
    Const,
    Dot,
    Expr,
    Load,
    Local,
    Param,
    Ramp,
    Reduce,
    Select,
    Size,
    Unary,
    UnaryOp,
    Var,
)  # fmt: skip
from stax.loops.nodes import Allocate, Block, Buffer, Carry, For, If, Let, LoopKind, Program, Role, Stmt, Store
from stax.loops.verify import verify
from tests.loops import programs

I32, F32, F16, BOOL = dtypes.int32, dtypes.float32, dtypes.float16, dtypes.bool_
AI, AJ = Axis("i", 4), Axis("j", 8)
ZERO = build.index(0)
INPUT, OUTPUT = programs.argument("a", F32, 1), programs.argument("out", F32, 1, Role.OUTPUT)


def body(*stmts: Stmt) -> Program:
    """Return a program over one input and one output."""
    return programs.program("p", (INPUT, OUTPUT), (AI, AJ), *stmts, params=(Param(F32, "gain"),))


def value(expr: Expr) -> Program:
    """Return a program that binds `expr`."""
    return body(Let(Local(expr.dtype, "v", axes=expr.axes), expr))


def loop(
    *stmts: Stmt, kind: LoopKind = LoopKind.SERIAL, width: int | None = None, carries: tuple[Carry, ...] = ()
) -> For:
    """Return a loop of 4 steps."""
    return For(build.local("x"), ZERO, build.index(4), kind, Block(stmts), carries, width)


def f32(name: str, *axes: Axis) -> Local:
    """Return a float32 Local."""
    return Local(F32, name, axes=axes)


def tile(*axes: Axis, dtype: dtypes.DType = F32) -> Expr:
    """Return a constant tile."""
    return build.const(1, dtype, axes)


@pytest.mark.parametrize("make", [
    lambda: programs.pointwise(4, 8), lambda: programs.row_sum(4, 16), lambda: programs.blur(4, 16),
    lambda: programs.blur_folded(4, 8), lambda: programs.matmul(4, 2, 8), lambda: programs.histogram(8),
    lambda: programs.heat(8),
])  # fmt: skip
def test_well_formed_programs_pass(make: Callable[[], Program]) -> None:
    verify(make())


SCRATCH = Allocate(Buffer("s", F32, (build.index(4),), Role.SCRATCH))
ONE = Const(F32, 1.0)
HELD = f32("c")

BROKEN: list[tuple[str, Program, str]] = [
    ("unbound", value(f32("nobody")), "`nobody` is not bound here"),
    ("out of scope", body(loop(Let(f32("t"), ONE)), Store("out", (ZERO,), f32("t"))), "`t` is not bound here"),
    ("bound twice", body(Let(f32("t"), ONE), Let(f32("t"), ONE)), "`t` is bound twice"),
    ("rebound inside", body(Let(f32("t"), ONE), loop(Let(f32("t"), ONE))), "`t` is bound twice"),
    ("bound as a parameter", body(Let(f32("gain"), ONE)), "`gain` is bound, and is a parameter"),
    ("used at another type", body(Let(f32("t"), ONE), Store("out", (Local(INDEX, "t"),), ONE)), "here, not index"),
    ("bound to another type", body(Let(f32("t"), build.const(1, I32))), "is float32, bound to int32"),
    ("unknown parameter", value(Param(F32, "other")), "`other` is no parameter"),
    ("parameter at another type", value(Param(I32, "gain")), "`gain` is no parameter of type int32"),
    ("unknown size", value(Size(INDEX, "z", 0)), "dimension 0 of `z`"),
    ("size of the algorithm", value(Size(dtypes.int64, "a", 0)), "a size is int64"),
    ("variable of the algorithm", value(Var(dtypes.int64, "x")), "algorithm is left"),
    ("unknown buffer", value(Load(F32, "z", (ZERO,))), "no buffer `z` here"),
    ("scratch out of scope", body(loop(SCRATCH), Store("s", (ZERO,), ONE)), "no buffer `s` here"),
    ("scratch allocated twice", body(SCRATCH, SCRATCH), "`s` is allocated twice"),
    ("rank", value(Load(F32, "a", (ZERO, ZERO))), "`a` has 1 dimensions, not 2"),
    ("load of another type", value(Load(I32, "a", (ZERO,))), "`a` holds float32, not int32"),
    ("index of another type", value(Load(F32, "a", (build.const(0, I32),))), "an index of `a` is int32"),
    ("mask of another type", value(Load(F32, "a", (ZERO,), (ZERO,))), "a mask of `a` is index"),
    ("other of another type", value(Load(F32, "a", (ZERO,), (), Const(I32, 0))), "`other` has another type"),
    ("store of another type", body(Store("out", (ZERO,), build.const(1, I32))), "`out` holds float32, not int32"),
    ("input written", body(Store("a", (ZERO,), ONE)), "input `a` is written"),
    ("atomic by an odd operator", body(Store("out", (ZERO,), ONE, (), BinaryOp.SUB)), "no atomic operator"),
    ("lanes on one cell", body(Store("out", (ZERO,), tile(AI))), "two lanes write one cell of `out`"),
    ("index wider than the value", body(Store("out", (programs.ramp(AI),), ONE)), "varies where the value does not"),
    ("load without its axes", value(Load(F32, "a", (programs.ramp(AI),))), "a load has the axes of its index"),
    ("axes out of order", value(tile(AJ, AI)), "not in the program's order"),
    ("foreign axis", value(Ramp(INDEX, axes=(Axis("z", 4),))), "not in the program's order"),
    ("axis of another size", value(tile(Axis("i", 5))), "not in the program's order"),
    ("spread that narrows", value(Broadcast(F32, tile(AI, AJ), axes=(AI,))), "spread along"),
    ("operands of two types", value(Binary(F32, BinaryOp.ADD, ONE, build.const(1, I32))), "float32 `+` int32"),
    ("operands of two shapes", value(Binary(F32, BinaryOp.ADD, tile(AI), tile(AJ), axes=(AI,))), "`+` float32<j:8>"),
    ("comparison that is no bool", value(Binary(F32, BinaryOp.LT, ONE, ONE)), "`<` of float32 gives float32"),
    ("true division of integers", value(Binary(I32, BinaryOp.DIV, Const(I32, 1), Const(I32, 1))), "`/` of int32"),
    ("bits of floats", value(Binary(F32, BinaryOp.AND, ONE, ONE)), "`&` of float32"),
    ("shift of floats", value(Binary(F32, BinaryOp.SHL, ONE, ONE)), "`<<` of float32"),
    ("difference of bools", value(Binary(BOOL, BinaryOp.SUB, Const(BOOL, True), Const(BOOL, True))), "`-` of bool"),
    ("negated float bits", value(Unary(F32, UnaryOp.NOT, ONE)), "`~` of float32"),
    ("select by a number", value(Select(F32, ONE, ONE, ONE)), "select by float32"),
    ("select of two types", value(Select(F32, Const(BOOL, True), ONE, Const(I32, 1))), "select of float32 and int32"),
    ("bits of another width", value(Bitcast(I32, Const(F16, 1.0))), "bits of float16 taken as int32"),
    ("constant out of range", value(Const(dtypes.uint8, 300)), "300 is no uint8"),
    ("reduced axis absent", value(Reduce(F32, BinaryOp.ADD, tile(AI), AJ, axes=(AI,))), "reduces `j`"),
    ("narrow sum", value(Reduce(F16, BinaryOp.ADD, tile(AI, dtype=F16), AI)), "cast to 32 bits first"),
    ("reduction that keeps its axis", value(Reduce(F32, BinaryOp.ADD, tile(AI), AI, axes=(AI,))), "reduced to"),
    ("dot over a foreign axis", value(Dot(F32, tile(AI), tile(AI), tile(AJ), AJ, axes=(AI,))), "has no axis `j`"),
    ("carry enters as another type", body(loop(carries=(Carry(HELD, Const(I32, 0), HELD),))), "but enters as int32"),
    ("carry leaves as another type", body(loop(carries=(Carry(HELD, ONE, Const(I32, 0)),))), "but leaves as int32"),
    ("parallel carry", body(loop(kind=LoopKind.PARALLEL, carries=(Carry(HELD, ONE, HELD),))), "parallel `x` carries"),
    ("vector without width", body(loop(kind=LoopKind.VECTOR)), "vector `x` has no width"),
    ("unroll beyond its width", body(loop(kind=LoopKind.UNROLL, width=3)), "`x` runs 4 times, over its width 3"),
    ("bound of another type", body(replace(loop(), extent=Const(I32, 4))), "not a scalar"),
    ("branch on a number", body(If(ZERO, Block(), Block())), "a branch on index"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "message"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN])
def test_what_is_malformed_is_named(program: Program, message: str) -> None:
    with pytest.raises(InternalError) as caught:
        verify(program)
    assert message in str(caught.value)


def test_the_statement_at_fault_is_shown() -> None:
    with pytest.raises(InternalError, match=r"  out\[0\] = nobody"):
        verify(body(Store("out", (ZERO,), f32("nobody"))))


def test_axes_stand_in_nest_order() -> None:
    p = programs.pointwise(4, 8)
    with pytest.raises(InternalError, match="axes"):
        verify(replace(p, axes=p.axes[::-1]))


def test_branches_may_bind_the_same_name_and_nobody_after_them() -> None:
    """Partitioning makes two copies of one body."""
    branch = If(build.less(Size(INDEX, "a", 0), 3), Block((Let(f32("t"), ONE),)), Block((Let(f32("t"), ONE),)))
    verify(body(branch))
    with pytest.raises(InternalError, match="bound twice"):
        verify(body(branch, Let(f32("t"), ONE)))


def test_a_carried_value_is_there_after_the_loop() -> None:
    verify(body(loop(carries=(Carry(HELD, ONE, HELD),)), Store("out", (ZERO,), HELD)))


def test_a_shared_deep_value_is_looked_at_once() -> None:
    """500 statements over one graph of 5,000 nodes: linear, or this would take minutes."""
    deep: Expr = build.local("x0", I32)
    for _ in range(5000):
        deep = Binary(I32, BinaryOp.ADD, deep, deep)
    lets = [Let(Local(I32, f"t{k}"), deep) for k in range(500)]
    verify(body(Let(build.local("x0", I32), Const(I32, 1)), loop(*lets)))
