"""What loop programs mean, against NumPy and against the same loops written in Python."""

from __future__ import annotations

import time

import numpy as np
import pytest

from stax import dtypes
from stax.errors import InternalError
from stax.expr import build
from stax.expr.nodes import BinaryOp, Cast, Expr, Load, Local
from stax.loops.interpret import poison
from stax.loops.nodes import Allocate, Block, Buffer, Carry, For, If, Let, LoopKind, Program, Role, Stmt, Store
from stax.loops.verify import verify
from tests.loops import programs
from tests.loops.programs import Array, argument, run, size

I32, F32, U8 = dtypes.int32, dtypes.float32, dtypes.uint8
SIZES = [(1, 1), (5, 7), (16, 33)]


@pytest.mark.parametrize("case", programs.CASES, ids=lambda c: c.name)
@pytest.mark.parametrize("extents", SIZES)
def test_programs_with_tiles_give_what_numpy_gives(case: programs.Case, extents: tuple[int, int]) -> None:
    """Ragged in both directions, and smaller than a tile."""
    verify(case.program)
    arrays, scalars, right = case.data(np.random.default_rng(1), *extents)
    run(case.program, arrays, scalars)
    for name, want in right.items():
        np.testing.assert_allclose(arrays[name], want, rtol=case.tolerance, atol=case.tolerance)


def nest(kind: LoopKind, *stmts: Stmt, n: Expr | None = None, down: bool = False, width: int | None = None) -> For:
    """Return a loop over `i` to the extent of `out`."""
    extent = size("out", 0) if n is None else n
    return For(build.local("i"), build.index(0), extent, kind, Block(stmts), width=width, down=down)


def out1(dtype: dtypes.DType = I32) -> Buffer:
    """Return an output of rank 1."""
    return argument("out", dtype, 1, Role.OUTPUT)


def of(*stmts: Stmt, buffers: tuple[Buffer, ...] = ()) -> Program:
    """Return a verified program that writes `out`."""
    program = programs.program("p", (*buffers, out1()), (), *stmts)
    verify(program)
    return program


def at(buffer: str, index: Expr, dtype: dtypes.DType = I32) -> Load:
    """Return a scalar load."""
    return Load(dtype, buffer, (index,))


def ran(program: Program, n: int, **arrays: Array) -> Array:
    """Return `out` of extent `n`, which begins as 1, 2, ..."""
    out = np.arange(1, n + 1, dtype=np.int32)
    run(program, {**arrays, "out": out}, {})
    return out


I = build.local("i")  # noqa: E741


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.VECTOR])
def test_a_recurrence_runs_one_by_one(kind: LoopKind) -> None:
    """It is tried in step first, and taken back."""
    step = Store("out", (build.add(I, 1),), build.add(at("out", I), at("out", build.add(I, 1))))
    loop = nest(kind, step, n=build.sub(size("out", 0), 1), width=10**6)
    assert ran(of(loop), 50).tolist() == np.cumsum(np.arange(1, 51)).tolist()


def test_a_recurrence_downwards() -> None:
    step = Store("out", (I,), build.add(at("out", I), at("out", build.add(I, 1))))
    loop = nest(LoopKind.SERIAL, step, n=build.sub(size("out", 0), 1), down=True)
    assert ran(of(loop), 50).tolist() == np.cumsum(np.arange(50, 0, -1))[::-1].tolist()


def test_an_update_in_place_runs_in_step() -> None:
    loop = nest(LoopKind.SERIAL, Store("out", (I,), build.mul(at("out", I), 3)))
    assert ran(of(loop), 50).tolist() == [3 * k for k in range(1, 51)]


def test_a_read_past_the_written_cell_of_the_same_iteration() -> None:
    """Iteration i writes cell i and reads it back: no other iteration is met."""
    write = Store("out", (I,), build.cast(I, I32))
    again = Store("out", (I,), build.add(at("out", I), 100))
    assert ran(of(nest(LoopKind.SERIAL, write, again)), 9).tolist() == list(range(100, 109))


def test_the_last_of_several_writes_stays() -> None:
    """Serial order, though iterations may be run in step: cell i is written by i, then by i + 1 as -i."""
    one = Store("out", (I,), build.cast(I, I32))
    two = Store("out", (build.maximum(build.sub(I, 1), 0),), build.sub(build.const(0, I32), build.cast(I, I32)))
    got = ran(of(nest(LoopKind.SERIAL, one, two)), 6).tolist()
    assert got == [-1, -2, -3, -4, -5, 5]
    everywhere = Store("out", (build.index(0),), build.cast(I, I32))
    assert ran(of(nest(LoopKind.SERIAL, everywhere)), 6)[0] == 5


def test_parallel_loops_run_backwards() -> None:
    """A parallel loop that leans on its order is found out."""
    everywhere = Store("out", (build.index(0),), build.cast(I, I32))
    assert ran(of(nest(LoopKind.PARALLEL, everywhere)), 6)[0] == 0


def test_scratch_is_private_to_an_iteration_and_poisoned() -> None:
    scratch = Allocate(Buffer("s", I32, (build.index(2),), Role.SCRATCH))
    zero, one = build.index(0), build.index(1)
    fill = Store("s", (zero,), build.cast(I, I32))
    loop = nest(LoopKind.PARALLEL, scratch, fill, Store("out", (I,), build.add(at("s", zero), at("s", zero))))
    assert ran(of(loop), 5).tolist() == [0, 2, 4, 6, 8]
    unwritten = nest(LoopKind.PARALLEL, scratch, fill, Store("out", (I,), at("s", one)))
    assert set(ran(of(unwritten), 5).tolist()) == {poison(I32)}


def test_scratch_may_have_another_extent_in_each_iteration() -> None:
    scratch = Allocate(Buffer("s", I32, (build.add(I, 1),), Role.SCRATCH))
    k = build.local("k")
    fill = For(k, build.index(0), build.add(I, 1), LoopKind.SERIAL, Block((Store("s", (k,), build.cast(k, I32)),)))
    loop = nest(LoopKind.PARALLEL, scratch, fill, Store("out", (I,), at("s", I)))
    assert ran(of(loop), 5).tolist() == [0, 1, 2, 3, 4]


def test_inner_bounds_may_depend_on_outer_iterations() -> None:
    """A triangle: carried sums over 0 .. i, and stores below the diagonal."""
    k, acc = build.local("k"), build.local("acc", I32)
    body = Block((Let(build.local("t", I32), build.cast(k, I32)),))
    step = build.add(acc, build.local("t", I32))
    total = For(k, build.index(0), I, LoopKind.SERIAL, body, (Carry(acc, build.const(0, I32), step),))
    assert ran(of(nest(LoopKind.PARALLEL, total, Store("out", (I,), acc))), 6).tolist() == [0, 0, 1, 3, 6, 10]
    mark = For(k, build.index(0), I, LoopKind.SERIAL, Block((Store("out", (k,), build.cast(I, I32)),)))
    assert ran(of(nest(LoopKind.SERIAL, mark)), 6).tolist() == [5, 5, 5, 5, 5, 6]


def test_branches_are_taken_by_each_iteration() -> None:
    odd = build.binary(BinaryOp.EQ, build.mod(I, 2), build.index(1))
    then, orelse = (Block((Store("out", (I,), build.const(v, I32)),)) for v in (7, 9))
    assert ran(of(nest(LoopKind.PARALLEL, If(odd, then, orelse))), 5).tolist() == [9, 7, 9, 7, 9]


def test_a_loop_of_no_iterations_gives_the_first_carried_value() -> None:
    acc = build.local("acc", I32)
    carry = Carry(acc, build.const(42, I32), build.add(acc, 1))
    for n, want in ((0, 42), (-3, 42), (2, 44)):
        loop = For(I, build.index(0), build.index(n), LoopKind.SERIAL, Block(), (carry,))
        assert ran(of(loop, Store("out", (build.index(0),), acc)), 1).tolist() == [want]


def test_carries_take_their_next_at_the_same_moment() -> None:
    a, b = build.local("a", I32), build.local("b", I32)
    carries = (Carry(a, build.const(0, I32), b), Carry(b, build.const(1, I32), build.add(a, b)))
    loop = For(I, build.index(0), build.index(10), LoopKind.SERIAL, Block(), carries)
    assert ran(of(loop, Store("out", (build.index(0),), a)), 1).tolist() == [55]


@pytest.mark.parametrize(("index", "word"), [(-1, "index -1"), (5, "index 5")])
@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.PARALLEL])
def test_every_index_is_checked(index: int, word: str, kind: LoopKind) -> None:
    for bad in (
        Store("out", (build.index(index),), build.const(1, I32)),
        Store("out", (I,), at("out", build.index(index))),
    ):
        with pytest.raises(InternalError, match=word):
            ran(of(nest(kind, bad)), 5)


def test_masked_lanes_touch_nothing_and_are_poison_or_other() -> None:
    inside = build.less(I, 2)
    load = Load(I32, "out", (build.add(I, 3),), (inside,))
    assert ran(of(nest(LoopKind.PARALLEL, Store("out", (I,), load))), 5).tolist() == [4, 5, *[poison(I32)] * 3]
    other = Load(I32, "out", (build.add(I, 3),), (inside,), build.const(-7, I32))  # type: ignore[arg-type]
    assert ran(of(nest(LoopKind.PARALLEL, Store("out", (I,), other))), 5).tolist() == [4, 5, -7, -7, -7]
    store = Store("out", (build.mul(I, 2),), build.const(0, I32), (inside,))
    assert ran(of(nest(LoopKind.PARALLEL, store)), 5).tolist() == [0, 2, 0, 4, 5]


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.VECTOR])
def test_lanes_that_are_all_off_read_nothing_of_an_empty_array(kind: LoopKind) -> None:
    """It is asked which cells they are of, to see whether iterations meet."""
    none = (build.less(I, 0),)
    step = Store("out", (I,), Load(I32, "out", (I,), none, build.const(7, I32)), none)  # type: ignore[arg-type]
    assert ran(of(nest(kind, step, n=build.index(3), width=8)), 0).tolist() == []


@pytest.mark.parametrize("op", [BinaryOp.ADD, BinaryOp.MAX, BinaryOp.XOR, BinaryOp.MUL])
def test_atomic_stores_combine_every_write(op: BinaryOp) -> None:
    fn = {BinaryOp.ADD: np.add, BinaryOp.MAX: np.maximum, BinaryOp.XOR: np.bitwise_xor, BinaryOp.MUL: np.multiply}[op]
    cell = build.mod(I, 3)
    loop = nest(LoopKind.PARALLEL, Store("out", (cell,), build.cast(build.add(I, 5), I32), atomic=op))
    want = np.arange(1, 9, dtype=np.int32)
    for k in range(8):
        want[k % 3] = fn(want[k % 3], np.int32(k + 5))
    assert ran(of(loop), 8).tolist() == want.tolist()


def test_arrays_of_any_strides_and_rank_are_written_in_place() -> None:
    backing = np.zeros(20, np.int32)
    run(of(nest(LoopKind.PARALLEL, Store("out", (I,), build.cast(I, I32)))), {"out": backing[::-2]}, {})
    assert backing[::-2].tolist() == list(range(10))
    scalar = np.array(0, np.int32)
    point = argument("out", I32, 0, Role.OUTPUT)
    run(programs.program("p", (point,), (), Store("out", (), build.const(3, I32))), {"out": scalar}, {})
    assert scalar == 3
    loop = For(I, build.index(0), build.index(4), LoopKind.SERIAL, Block((Store("out", (), build.cast(I, I32)),)))
    run(programs.program("p", (point,), (), loop), {"out": scalar}, {})
    assert scalar == 3


def test_an_argument_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(InternalError, match="int32 of shape"):
        run(of(), {"out": np.zeros(4, np.float32)}, {})


def images(h: int, w: int) -> Program:
    """out[y, x] = (a[y, x] + a[y, x + 1] + a[y + 1, x]) // 3 as plain loops, in uint8."""
    a, out = argument("a", U8, 2), argument("out", U8, 2, Role.OUTPUT)
    y, x = build.local("y"), build.local("x")
    total: Expr = Cast(I32, Load(U8, "a", (y, x)))
    for p, q in ((y, build.add(x, 1)), (build.add(y, 1), x)):
        total = build.add(total, build.cast(Load(U8, "a", (p, q)), I32))
    store = Store("out", (y, x), build.cast(build.floordiv(total, 3), U8))
    row = For(x, build.index(0), size("out", 1), LoopKind.SERIAL, Block((store,)))
    return programs.program(
        "image", (a, out), (), For(y, build.index(0), size("out", 0), LoopKind.SERIAL, Block((row,)))
    )


def test_a_million_points_take_less_than_a_few_seconds() -> None:
    """It is what runs where nothing can be compiled."""
    a = np.random.default_rng(0).integers(0, 255, (1025, 1025)).astype(np.uint8)
    out = np.zeros((1024, 1024), np.uint8)
    start = time.perf_counter()
    run(images(1024, 1024), {"a": a, "out": out}, {})
    wide = a.astype(np.int32)
    assert np.array_equal(out, (wide[:-1, :-1] + wide[:-1, 1:] + wide[1:, :-1]) // 3)
    assert time.perf_counter() - start < 5


def test_deep_values_do_not_recurse() -> None:
    deep: Expr = build.cast(I, I32)
    one = Local(I32, "one")
    for _ in range(5000):
        deep = build.add(deep, one)
    program = of(Let(one, build.const(1, I32)), nest(LoopKind.PARALLEL, Store("out", (I,), deep)))
    assert ran(program, 3).tolist() == [5000, 5001, 5002]
