"""Kernels as text."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from stax import dtypes
from stax.backends.artifact import Facts
from stax.backends.triton.source import ArgumentKind, emit
from stax.errors import UnsupportedError
from stax.expr import build
from stax.expr.nodes import BinaryOp
from stax.loops.nodes import Block, For, LoopKind, Program, Role, Store
from stax.lower.carry_rows import carry_rows
from stax.lower.split_kernels import split_kernels
from tests.backends.triton import operators
from tests.loops import programs
from tests.loops.programs import argument


def text_of(program: Program, facts: Facts | None = None, *, wide: bool = False) -> str:
    """Return the text of the only kernel."""
    (source,) = emit(split_kernels(program), replace(facts or Facts(), wide=wide))
    return source.text


def test_a_masked_tile_reads_as_one_would_write_it() -> None:
    dense = Facts(dense=frozenset({"a", "b", "c"}))
    body = text_of(programs.matmul(16, 16, 16), dense).partition("def matmul_io_jo(")[2].partition(":\n")[2]
    assert (
        body
        == """\
    r_i = tl.arange(0, 16)
    r_k = tl.arange(0, 16)
    r_j = tl.arange(0, 16)
    pid = tl.program_id(0)
    jo = pid % ((c_size1 + 15) // 16)
    pid_2 = pid // ((c_size1 + 15) // 16)
    io = pid_2
    at_i = io * 16 + r_i
    at_j = jo * 16 + r_j
    ok_i = at_i < c_size0
    ok_j = at_j < c_size1
    acc = tl.load(c + (io * 16 * c_stride0 + jo * 16) + (r_i[:, None] * c_stride0 + r_j[None, :]), \
mask=ok_i[:, None] & ok_j[None, :], other=0.0)
    for ko in tl.range(0, (a_size1 + 15) // 16):
        at_k = ko * 16 + r_k
        ok_k = at_k < a_size1
        t_i_k = tl.load(a + (io * 16 * a_stride0 + ko * 16) + (r_i[:, None] * a_stride0 + r_k[None, :]), \
mask=ok_i[:, None] & ok_k[None, :], other=0.0)
        t_k_j = tl.load(b + (ko * 16 * b_stride0 + jo * 16) + (r_k[:, None] * b_stride0 + r_j[None, :]), \
mask=ok_k[:, None] & ok_j[None, :], other=0.0)
        acc = tl.dot(t_i_k, t_k_j, acc, input_precision="tf32x3")
    tl.debug_barrier()
    tl.store(c + (io * 16 * c_stride0 + jo * 16) + (r_i[:, None] * c_stride0 + r_j[None, :]), maximum_nan(acc, 0.0), \
mask=ok_i[:, None] & ok_j[None, :])
    tl.debug_barrier()
"""
    )


def test_padding_is_masked_in_loads_stores_and_reductions() -> None:
    text = text_of(programs.row_sum(3, 12))
    assert "tl.arange(0, 4)" in text
    assert "tl.arange(0, 16)" in text
    assert text.count("(r_i < 3)[:, None]") >= 2
    assert "tl.where((r_j < 12)[None, :], part, tl.full((), -0.0, tl.float32))" in text


def test_rolled_rows_become_names() -> None:
    """Scratch that folds to three rows is carried, and no memory is left."""
    text = text_of(carry_rows(programs.blur_folded(4, 16)))
    assert "rows_0, rows_1 = rows_1, rows_2" in text
    assert "debug_barrier" not in text
    assert "debug_barrier" in text_of(programs.blur_folded(4, 16))


def test_wide_positions_have_64_bits() -> None:
    text = text_of(programs.pointwise(4, 8), wide=True)
    assert "pid = tl.program_id(0).to(tl.int64)" in text
    (source,) = emit(split_kernels(programs.pointwise(4, 8)), Facts(wide=True))
    assert {a.type for a in source.arguments if a.kind is ArgumentKind.SIZE} == {"i64"}
    assert "r_i = tl.arange(0, 4).to(tl.int64)" in text
    assert "int64" not in text_of(programs.pointwise(4, 8))


def test_only_what_is_used_is_printed_before_a_kernel() -> None:
    text = text_of(programs.blur(4, 16))
    assert text.count("@triton.jit") == 1
    assert text_of(programs.pointwise(4, 8)).count("@triton.jit") == 2


@pytest.mark.parametrize("dtype", operators.TYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("wide", [False, True])
def test_every_operator_prints_as_python(dtype: dtypes.DType, wide: bool) -> None:
    program, _ = operators.program(dtype)
    tree = ast.parse(text_of(program, wide=wide))
    defined = {f.name for f in tree.body if isinstance(f, ast.FunctionDef)}
    called = {c.func.id for c in ast.walk(tree) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)}
    assert called - {"float"} <= defined


def test_arguments_are_listed_by_position() -> None:
    (source,) = emit(split_kernels(programs.pointwise(4, 8)), Facts(dense=frozenset({"x", "out"})))
    assert [(a.kind, a.name, a.dim) for a in source.arguments] == [
        (ArgumentKind.POINTER, "x", 0), (ArgumentKind.STRIDE, "x", 0), (ArgumentKind.POINTER, "b", 0),
        (ArgumentKind.STRIDE, "b", 0), (ArgumentKind.POINTER, "out", 0), (ArgumentKind.STRIDE, "out", 0),
        (ArgumentKind.PARAM, "s", 0), (ArgumentKind.SIZE, "out", 0), (ArgumentKind.SIZE, "out", 1),
    ]  # fmt: skip


def test_names_that_python_keeps_are_changed() -> None:
    out = argument("lambda", dtypes.int32, 1, Role.OUTPUT)
    i = build.local("in.for")
    store = Store("lambda", (i,), build.cast(i, dtypes.int32))
    loop = For(i, build.index(0), programs.size("lambda", 0), LoopKind.PARALLEL, Block((store,)))
    ast.parse(text_of(programs.program("class", (out,), (), loop)))


def test_an_atomic_that_the_machine_lacks_is_refused() -> None:
    out = argument("out", dtypes.uint8, 1, Role.OUTPUT)
    store = Store("out", (build.index(0),), build.const(1, dtypes.uint8), atomic=BinaryOp.ADD)
    with pytest.raises(UnsupportedError, match="atomic `\\+` of uint8"):
        text_of(programs.program("p", (out,), (), store))


def test_a_long_value_is_many_short_lines() -> None:
    """Python and Triton both walk nested expressions by recursion."""
    out = argument("out", dtypes.int32, 1, Role.OUTPUT)
    value = build.cast(programs.size("out", 0), dtypes.int32)
    for _ in range(1000):
        value = build.add(build.binary(BinaryOp.XOR, value, build.const(3, dtypes.int32)), value)
    text = text_of(programs.program("p", (out,), (), Store("out", (build.index(0),), value)))
    ast.parse(text)
    assert max(map(len, text.splitlines())) < 400


def test_arguments_say_what_divides_them() -> None:
    """16 bytes at once can be loaded where arrays are even, but not beside their neighbours."""
    even = frozenset({"x", "b", "out", "a"})
    (source,) = emit(split_kernels(programs.pointwise(4, 8)), Facts(dense=even, even=even))
    known = {(a.kind, a.name, a.dim): a.factor for a in source.arguments}
    assert known[ArgumentKind.POINTER, "x", 0] == 16
    assert known[ArgumentKind.STRIDE, "x", 0] == 4
    assert (known[ArgumentKind.SIZE, "out", 1], known[ArgumentKind.SIZE, "out", 0]) == (4, 1)
    (source,) = emit(split_kernels(programs.blur(4, 16)), Facts(dense=even, even=even))
    assert {a.factor for a in source.arguments if a.kind is not ArgumentKind.POINTER} == {1}
