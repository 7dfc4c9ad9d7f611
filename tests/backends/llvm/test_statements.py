"""Loops, carried values, scratch memory, branches and parallel loops do what the interpreter does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stax import dtypes
from stax.backends.artifact import OUT_OF_MEMORY
from stax.backends.llvm.build import build as compiled
from stax.backends.llvm.module import emit
from stax.expr import build
from stax.expr.nodes import (
    INDEX,
    Axes,
    Axis,
    BinaryOp,
    Cast,
    Const,
    Dot,
    Expr,
    Load,
    Local,
    Param,
    Ramp,
    Reduce,
)  # fmt: skip
from stax.loops.nodes import Allocate, Block, Buffer, Carry, For, If, Let, LoopKind, Program, Role, Stmt, Store
from tests.backends.llvm.harness import (
    HOST,
    assert_same,
    buffer,
    call,
    check,
    facts_of,
    loop,
    program,
    run,
    runtime,
    size,
)  # fmt: skip

F32, I32 = dtypes.float32, dtypes.int32
KINDS = pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.UNROLL, LoopKind.PARALLEL, LoopKind.VECTOR])


def out(dtype: dtypes.DType = I32, rank: int = 1) -> Buffer:
    return buffer("out", dtype, rank, Role.OUTPUT)


def value(expr: Expr, dtype: dtypes.DType = I32) -> Expr:
    return Cast(dtype, expr, axes=expr.axes)


@KINDS
@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("extent", [-3, 0, 1, 5])
def test_loops_run_from_start_for_their_extent(kind: LoopKind, down: bool, extent: int) -> None:
    i = build.local("i")
    node = For(i, build.index(2), build.index(extent), kind, Block((Store("out", (i,), value(i)),)), down=down)
    check(program([out()], node), {"out": np.full(10, -1, np.int32)})
    free = replace(node, extent=build.sub(size("out"), 10 - extent))
    check(program([out()], free), {"out": np.full(10, -1, np.int32)})


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.UNROLL])
@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("extent", [0, 1, 7])
@pytest.mark.parametrize("free", [False, True])
def test_carried_values_are_taken_at_once(kind: LoopKind, down: bool, extent: int, free: bool) -> None:
    a, b, i = Local(I32, "a"), Local(I32, "b"), build.local("i")
    carries = (Carry(a, Const(I32, 1), build.add(b, value(i))), Carry(b, Const(I32, 2), a))
    n = build.sub(size("out"), 9 - extent) if free else build.index(extent)
    body = Block((Store("out", (i,), build.sub(a, b)),))
    node = For(i, build.index(0), n, kind, body, carries, down=down)
    ends = (Store("out", (build.index(7),), a), Store("out", (build.index(8),), build.mul(b, 10)))
    check(program([out()], node, *ends), {"out": np.full(9, -1, np.int32)})


def test_carried_tiles_keep_their_components() -> None:
    axes: Axes = (Axis("u", 3), Axis("v", 24))
    acc = Local(F32, "acc", axes=axes)
    place = [Ramp(INDEX, axes=(a,)) for a in axes]
    k = build.local("k")
    row = Load(F32, "a", (k, place[1]), axes=(axes[1],))
    col = Load(F32, "b", (place[0], k), axes=(axes[0],))
    product = build.mul(build.spread(row, axes), build.spread(col, axes))
    body = Block(())
    node = For(
        k,
        build.index(0),
        size("a"),
        LoopKind.SERIAL,
        body,
        (Carry(acc, build.const(0.5, F32, axes), build.add(acc, product)),),
    )
    p = program(
        [buffer("a", F32, 2), buffer("b", F32, 2), out(F32, 2)], node, Store("out", tuple(place), acc), axes=axes
    )
    rng = np.random.default_rng(0)
    a, b = rng.random((5, 24), np.float32), rng.random((3, 5), np.float32)
    check(p, {"a": a, "b": b, "out": np.zeros((3, 24), np.float32)})


def test_two_stages_with_their_own_axes_are_both_lanes() -> None:
    one, two = (Axis("one", 8),), (Axis("two", 16),)
    stores: list[Stmt] = []
    for axes, name in ((one, "f"), (two, "out")):
        at = build.add(build.spread(build.mul(build.local("i"), axes[0].size), axes), Ramp(INDEX, axes=axes))
        load = Load(F32, "a" if name == "f" else "f", (at,), axes=axes)
        stores.append(
            loop("i", build.floordiv(size("out"), axes[0].size), Store(name, (at,), build.add(load, _one(axes))))
        )
    f = Buffer("f", F32, (size("out"),), Role.SCRATCH)
    p = program([buffer("a", F32), out(F32)], Allocate(f), *stores, axes=(*one, *two))
    text = emit(p, facts_of(p, {"a": np.zeros(64, np.float32), "out": np.zeros(64, np.float32)}), HOST)
    assert "fadd <8 x float>" in text
    assert "fadd <16 x float>" in text
    check(p, {"a": np.arange(64, dtype=np.float32), "out": np.zeros(64, np.float32)})


def _one(axes: Axes) -> Expr:
    return build.const(1.0, F32, axes)


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.PARALLEL])
@pytest.mark.parametrize("width", [None, 8, 1 << 18])
def test_scratch_is_dense_and_private(kind: LoopKind, width: int | None) -> None:
    """Small constant scratch is on the stack, the rest from the runtime, and all of it is given back."""
    n = size("a", 1) if width is None else build.index(width)
    y, x = build.local("y"), build.local("x")
    row = Buffer("row", I32, (build.index(2), n), Role.SCRATCH)
    fill = loop("x", size("a", 1), *(
        Store("row", (build.index(k), x), build.mul(Load(I32, "a", (y, x)), k + 2)) for k in range(2)
    ))  # fmt: skip
    both = build.add(
        Load(I32, "row", (build.index(0), x)),
        Load(I32, "row", (build.index(1), build.sub(build.sub(size("a", 1), 1), x))),
    )
    use = loop("x2", size("a", 1), Store("out", (y, build.local("x2")), _swap(both)))
    p = program([buffer("a", I32, 2), out(I32, 2)], loop("y", size("a"), Allocate(row), fill, use, kind=kind))
    a = np.arange(5 * 7, dtype=np.int32).reshape(5, 7)
    text = emit(p, facts_of(p, {"a": a, "out": a}), HOST)
    assert ("stax_alloc" in text) == (width != 8)
    check(p, {"a": a, "out": np.zeros((5, 7), np.int32)})


def _swap(expr: Expr) -> Expr:
    from stax.expr.walk import substitute

    return substitute(expr, {"x": build.local("x2")})


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.PARALLEL])
def test_no_memory_is_an_error_code_and_leaves_nothing_held(kind: LoopKind) -> None:
    n = size("out")
    big = Buffer("big", I32, (build.mul(n, 1 << 20),), Role.SCRATCH)
    small = Buffer("small", I32, (n,), Role.SCRATCH)
    inside = loop(
        "i",
        n,
        Allocate(big),
        Store("big", (build.local("i"),), Const(I32, 1)),
        Store("out", (build.local("i"),), Load(I32, "big", (build.local("i"),))),
        kind=kind,
    )
    p = program([out()], Allocate(small), Store("small", (build.index(0),), Const(I32, 1)), inside)
    arrays = {"out": np.zeros(3, np.int32)}
    artifact = compiled(p, facts_of(p, arrays), HOST)
    limit = runtime().cell("stax_limit")
    before, limit.value = limit.value, 1 << 20
    code, error = call(artifact, arrays, {})
    limit.value = before
    assert code == OUT_OF_MEMORY
    assert error == [1, OUT_OF_MEMORY, 3 << 22, 0]
    assert runtime().cell("stax_held").value == 0
    assert call(artifact, arrays, {})[0] == 0
    assert arrays["out"].tolist() == [1, 1, 1]


def test_scratch_too_large_to_count_is_no_memory() -> None:
    n = build.mul(size("out"), 1 << 40)
    p = program(
        [out()], Allocate(Buffer("big", I32, (n, n), Role.SCRATCH)), Store("out", (build.index(0),), Const(I32, 1))
    )
    arrays = {"out": np.zeros(3, np.int32)}
    assert call(compiled(p, facts_of(p, arrays), HOST), arrays, {})[0] == OUT_OF_MEMORY


@pytest.mark.parametrize("empty", [False, True])
def test_branches(empty: bool) -> None:
    i = build.local("i")
    other = Block(() if empty else (Store("out", (i,), Const(I32, 5)),))
    twice = Let(Local(I32, "t"), build.mul(value(i), 2))
    then = Block((twice, Store("out", (i,), Local(I32, "t"))))
    cond = build.less(build.mod(i, 3), 1)
    check(program([out()], loop("i", size("out"), If(cond, then, other))), {"out": np.full(8, -1, np.int32)})


def test_parallel_loops_reach_what_is_bound_outside() -> None:
    axes: Axes = (Axis("v", 16),)
    ramp = Ramp(INDEX, axes=axes)
    scale = Param(F32, "scale")
    shift = Local(INDEX, "shift", axes=axes)
    vector, flag = Local(F32, "w", axes=axes), Local(dtypes.bool_, "on", axes=axes)
    f = Buffer("f", F32, (size("a", 1),), Role.SCRATCH)
    y = build.local("y")
    made = [
        Allocate(f),
        loop("x", size("a", 1), Store("f", (build.local("x"),), Load(F32, "a", (build.index(0), build.local("x"))))),
        Let(shift, build.sub(build.spread(build.sub(size("a", 1), 1), axes), ramp)),
        Let(vector, build.mul(Load(F32, "f", (ramp,), axes=axes), build.spread(scale, axes))),
        Let(flag, build.less(vector, build.const(3.0, F32, axes))),
    ]
    total = build.add(build.add(Load(F32, "a", (y, shift), axes=axes), Load(F32, "f", (ramp,), axes=axes)), vector)
    body = Store("out", (y, ramp), build.select(flag, total, build.const(0.0, F32, axes)))
    p = program(
        [buffer("a", F32, 2), out(F32, 2)],
        *made,
        loop("y", size("a"), body, kind=LoopKind.PARALLEL),
        axes=axes,
        params=(scale,),
    )
    a = np.random.default_rng(1).random((5, 16), np.float32) * 3
    check(p, {"a": a, "out": np.zeros((5, 16), np.float32)}, {"scale": np.float32(1.5)})


@pytest.mark.parametrize("fixed", [False, True])
def test_nested_parallel_loops_are_one_call(fixed: bool) -> None:
    y, x, z = (build.local(n) for n in "yxz")
    total = build.add(build.add(build.mul(y, 100), build.mul(x, 10)), z)
    n = [build.index(k) if fixed else size("out", d) for d, k in enumerate((3, 4, 5))]
    inner = loop("z", n[2], Store("out", (y, x, z), value(total)), kind=LoopKind.PARALLEL)
    p = program([out(I32, 3)], loop("y", n[0], loop("x", n[1], inner, kind=LoopKind.PARALLEL), kind=LoopKind.PARALLEL))
    arrays = {"out": np.zeros((3, 4, 5), np.int32)}
    assert emit(p, facts_of(p, arrays), HOST).count("call i32 @stax_par_for") == 1
    check(p, arrays)
    if not fixed:
        check(p, {"out": np.zeros((3, 0, 5), np.int32)})


def test_ragged_parallel_loops_inside_run_serially() -> None:
    y, x = build.local("y"), build.local("x")
    inner = loop("x", build.add(y, 1), Store("out", (y, x), value(x)), kind=LoopKind.PARALLEL)
    check(
        program([out(I32, 2)], loop("y", size("out"), inner, kind=LoopKind.PARALLEL)),
        {"out": np.full((4, 4), -1, np.int32)},
    )


@pytest.mark.parametrize("dtype", [*dtypes.NUMBERS, dtypes.bool_], ids=str)
def test_params_of_every_type(dtype: dtypes.DType) -> None:
    p = program([out(dtype)], Store("out", (build.index(0),), Param(dtype, "q")), params=(Param(dtype, "q"),))
    for number in (1, 0, 100 if not dtype.is_bool else 1, dtype.low if not dtype.is_float else -1.5):
        check(p, {"out": np.zeros(1, dtype.dtype)}, {"q": dtype(number)})


@pytest.mark.parametrize("size_", [1, 3, 16, 24, 100])
@pytest.mark.parametrize("where", [False, True])
@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.uint8, dtypes.float64, dtypes.float16, dtypes.bool_], ids=str)
def test_reductions_along_lanes_and_components(dtype: dtypes.DType, size_: int, where: bool) -> None:
    axes: Axes = (Axis("u", 3), Axis("v", size_))
    place = tuple(Ramp(INDEX, axes=(a,)) for a in axes)
    load = Load(dtype, "a", place, axes=axes)
    ops = [BinaryOp.MIN, BinaryOp.MAX] if dtype.is_float else [BinaryOp.MIN, BinaryOp.MAX, BinaryOp.ADD, BinaryOp.MUL]
    ops += [BinaryOp.AND, BinaryOp.OR, BinaryOp.XOR] if not dtype.is_float else []
    stores: list[Stmt] = []
    buffers = [buffer("a", dtype, 2)]
    for op in ops:
        for axis, other in ((0, 1), (1, 0)):
            mask = (build.less(place[axis], build.spread(build.index(2), (axes[axis],))),) if where else ()
            node = Reduce(dtype, op, load, axes[axis], mask, axes=(axes[other],))
            name = f"{op.name}{axis}"
            buffers.append(buffer(name, dtype, role=Role.OUTPUT))
            stores.append(Store(name, (place[other],), node))
    rng = np.random.default_rng(4)
    a = (rng.random((3, size_)) < 0.5) if dtype.is_bool else rng.integers(0, 200, (3, size_)).astype(dtype.dtype)
    if dtype.is_float:
        a[0, 0], a[1, 0], a[1, -1] = np.nan, -0.0, 0.0
    arrays = {"a": a} | {b.name: np.zeros(size_ if b.name.endswith("0") else 3, dtype.dtype) for b in buffers[1:]}
    check(program(buffers, *stores, axes=axes), arrays)


@pytest.mark.parametrize("size_", [5, 16, 40])
def test_sums_of_floats_are_near(size_: int) -> None:
    axes: Axes = (Axis("v", size_),)
    place = Ramp(INDEX, axes=axes)
    node = Reduce(F32, BinaryOp.ADD, Load(F32, "a", (place,), axes=axes), axes[0])
    a = np.random.default_rng(5).random(size_, np.float32)
    arrays = {"a": a, "out": np.zeros(1, np.float32)}
    run(program([buffer("a", F32), out(F32)], Store("out", (build.index(0),), node), axes=axes), arrays)
    np.testing.assert_allclose(arrays["out"][0], a.astype(np.float64).sum(), rtol=1e-6)


@pytest.mark.parametrize("order", ["ikj", "kij", "ijk"])
@pytest.mark.parametrize(("source", "dtype"), [(F32, F32), (dtypes.uint8, I32), (dtypes.float16, F32)], ids=str)
def test_dot_whichever_axis_is_lanes(order: str, source: dtypes.DType, dtype: dtypes.DType) -> None:
    sizes = {"i": 3, "k": 5, "j": 12}
    axis = {n: Axis(n, k) for n, k in sizes.items()}
    place = {n: Ramp(INDEX, axes=(a,)) for n, a in axis.items()}
    axes = tuple(axis[n] for n in order)

    def tile(name: str, kind: dtypes.DType, pair: str) -> Expr:
        own = tuple(a for a in axes if a.name in pair)
        return Load(kind, name, tuple(place[n] for n in pair), axes=own)

    acc = tile("c", dtype, "ij")
    node = Dot(dtype, acc, tile("a", source, "ik"), tile("b", source, "kj"), axis["k"], axes=acc.axes)
    buffers = [buffer("a", source, 2), buffer("b", source, 2), buffer("c", dtype, 2), out(dtype, 2)]
    rng = np.random.default_rng(6)
    a, b, c = (
        rng.integers(0, 9, s).astype(t.dtype) for s, t in (((3, 5), source), ((5, 12), source), ((3, 12), dtype))
    )
    arrays = {"a": a, "b": b, "c": c, "out": np.zeros((3, 12), dtype.dtype)}
    run(program(buffers, Store("out", (place["i"], place["j"]), node), axes=axes), arrays)
    assert_same(arrays["out"], (c + a.astype(np.int64) @ b.astype(np.int64)).astype(dtype.dtype))


def test_text_and_object_depend_on_nothing_else(tmp_path: object) -> None:
    """Not on hash seeds, and not on where nodes lie."""
    import os
    import subprocess
    import sys

    script = (
        "from tests.backends.llvm.test_statements import sample, facts, compiled\n"
        "from stax.target import Target; import hashlib\n"
        "a = compiled(sample(), facts(), Target.host())\n"
        "print(hashlib.sha256(a.text.encode() + a.code).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1


def sample() -> Program:
    axes: Axes = (Axis("v", 16),)
    x = build.add(build.spread(build.mul(build.local("x"), 16), axes), Ramp(INDEX, axes=axes))
    mask = (build.less(x, build.spread(size("out"), axes)),)
    loads = [Load(F32, n, (x,), mask=mask, axes=axes) for n in ("a", "b")]
    body = Store("out", (x,), build.add(*loads), mask)
    extent = build.floordiv(build.add(size("out"), 15), 16)
    return program(
        [buffer("a", F32), buffer("b", F32), out(F32)], loop("x", extent, body, kind=LoopKind.PARALLEL), axes=axes
    )


def facts():  # type: ignore[no-untyped-def]
    from stax.backends.artifact import Facts

    return Facts(frozenset({"a", "b", "out"}), frozenset({"a", "b", "out"}))


def test_importing_the_printer_does_not_load_llvm() -> None:
    import subprocess
    import sys

    script = "import sys, stax.backends.llvm.build, stax.target; assert 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
