"""Loads and stores reach the right elements, whatever the strides, slopes and masks, and no others."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from stax import dtypes
from stax.backends.artifact import Facts
from stax.backends.llvm.module import emit
from stax.dtypes import ALL, DType
from stax.expr import build
from stax.expr.nodes import INDEX, Axis, BinaryOp, Cast, Const, Expr, Load, Ramp
from stax.loops.nodes import Program, Role, Store
from stax.target import Target
from tests.backends.llvm.harness import HOST, Array, buffer, check, facts_of, loop, program, size

PLAIN = Target("x86_64-unknown-linux-gnu", "x86-64", "+sse2", 16, 1)
AVX2 = Target("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx,+avx2,+fma,+f16c", 32, 1)
TARGETS = pytest.mark.parametrize("target", [PLAIN, AVX2, HOST], ids=lambda t: t.cpu)
V = (Axis("v", 16),)
RAMP = Ramp(INDEX, axes=V)


def lanes(base: Expr | int, slope: int = 1) -> Expr:
    start = build.index(base) if isinstance(base, int) else base
    return build.add(build.spread(start, V), build.mul(RAMP, slope))


def values(dtype: DType, *shape: int) -> Array:
    rng = np.random.default_rng(2)
    return rng.integers(0, 2 if dtype.is_bool else 100, shape).astype(dtype.dtype)


def tail(dtype: DType) -> Program:
    """Copy a row, 16 at once, the last ones masked."""
    i = lanes(build.mul(build.local("i"), 16))
    mask = (build.less(i, build.spread(size("out"), V)),)
    load = Load(dtype, "a", (i,), mask=mask, other=Const(dtype, True if dtype.is_bool else 3), axes=V)
    extent = build.floordiv(build.add(size("out"), 15), 16)
    buffers = [buffer("a", dtype), buffer("out", dtype, role=Role.OUTPUT)]
    return program(buffers, loop("i", extent, Store("out", (i,), load, mask)), axes=V)


@TARGETS
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_a_masked_tail_touches_nothing_else(dtype: DType, target: Target) -> None:
    for n in (0, 1, 15, 16, 17, 37):
        room = values(dtype, 80)
        check(tail(dtype), {"a": values(dtype, n), "out": room[20 : 20 + n]}, target=target)
        np.testing.assert_array_equal(
            np.delete(room, slice(20, 20 + n)), np.delete(values(dtype, 80), slice(20, 20 + n))
        )


@pytest.fixture
def page_end() -> Iterator[Callable[[DType, int], Array]]:
    """Give arrays that end where the next page cannot be read."""
    page = mmap.PAGESIZE
    room = mmap.mmap(-1, 2 * page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(room))
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert protect(base + page, page, 0) == 0

    def make(dtype: DType, n: int) -> Array:
        a = np.frombuffer(room, dtype.dtype, n, page - n * dtype.size_bytes)
        a[:] = values(dtype, n)
        return a

    yield make
    assert protect(base + page, page, 3) == 0


@TARGETS
@pytest.mark.parametrize("dtype", [dtypes.uint8, dtypes.float32], ids=str)
def test_a_masked_load_reads_no_page_beyond(
    dtype: DType, target: Target, page_end: Callable[[DType, int], Array]
) -> None:
    check(tail(dtype), {"a": page_end(dtype, 21), "out": np.zeros(21, dtype.dtype)}, target=target)


@pytest.mark.parametrize("slope", [2, 3, 4])
def test_lanes_apart_are_loaded_without_what_lies_beyond(slope: int, page_end: Callable[[DType, int], Array]) -> None:
    load = Load(dtypes.float32, "a", (lanes(0, slope),), axes=V)
    buffers = [buffer("a", dtypes.float32), buffer("out", dtypes.float32, role=Role.OUTPUT)]
    p = program(buffers, Store("out", (lanes(0),), load), axes=V)
    arrays = {"a": page_end(dtypes.float32, 15 * slope + 1), "out": np.zeros(16, np.float32)}
    assert "load <16 x float>" in emit(p, facts_of(p, arrays), HOST)
    check(p, arrays)


@pytest.mark.parametrize("dtype", [dtypes.uint8, dtypes.int16, dtypes.bool_, dtypes.float32, dtypes.float64], ids=str)
def test_any_strides_and_alignment(dtype: DType) -> None:
    y, x = build.local("y"), lanes(build.mul(build.local("x"), 16))
    mask = (build.less(x, build.spread(size("out", 1), V)),)
    load = Load(dtype, "a", (y, x), mask=mask, axes=V)
    inner = loop("x", build.floordiv(build.add(size("out", 1), 15), 16), Store("out", (y, x), load, mask))
    buffers = [buffer("a", dtype, 2), buffer("out", dtype, 2, Role.OUTPUT)]
    p = program(buffers, loop("y", size("out"), inner), axes=V)
    big = values(dtype, 40, 80)
    odd = np.zeros(41 * 81 * dtype.size_bytes + 1, np.uint8)[1:][: 3 * 21 * dtype.size_bytes].view(dtype.dtype)
    odd = odd.reshape(3, 21)
    odd[:] = values(dtype, 3, 21)
    raw = np.zeros(3 * (21 * dtype.size_bytes + 3), np.uint8)
    ragged = np.ndarray((3, 21), dtype.dtype, raw, 0, (21 * dtype.size_bytes + 3, dtype.size_bytes))
    ragged[:] = values(dtype, 3, 21)
    views = [big[:3, :21], big[5:8, 30:51], big[2::-1, 20::-1], big[:6:2, :63:3], big.T[:3, :21], odd, ragged]
    views += [np.broadcast_to(big[0, :21], (3, 21)), np.broadcast_to(big[:3, :1], (3, 21))]
    for view in views:
        for out in (
            np.zeros((3, 21), dtype.dtype),
            np.zeros((21, 3), dtype.dtype).T,
            np.zeros((3, 42), dtype.dtype)[:, ::-2],
        ):
            check(p, {"a": view, "out": out})
        check(p, {"a": view, "out": np.zeros((3, 21), dtype.dtype)}, facts=Facts())


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("slope", [-3, -2, -1, 0, 1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("dtype", [dtypes.uint8, dtypes.uint16, dtypes.float32, dtypes.bool_], ids=str)
def test_any_slope(dtype: DType, slope: int, masked: bool) -> None:
    at, i = lanes(5 + 15 * max(0, -slope), slope), lanes(0)
    mask = (build.less(i, build.spread(build.index(9), V)),) if masked else ()
    load = Load(dtype, "a", (at,), mask=mask, other=Const(dtype, 1), axes=V)
    back = Store("b", (at,), Load(dtype, "a", (i,), axes=V), mask)
    buffers = [buffer("a", dtype), buffer("out", dtype, role=Role.OUTPUT), buffer("b", dtype, role=Role.OUTPUT)]
    p = program(buffers, Store("out", (i,), load), *([back] if slope else []), axes=V)
    n = 5 + 15 * abs(slope) + 1
    arrays = {"a": values(dtype, max(n, 16)), "out": values(dtype, 16), "b": values(dtype, n)}
    check(p, arrays)


def test_a_slope_along_an_outer_dimension() -> None:
    i = lanes(0)
    load = Load(dtypes.int32, "a", (build.mul(i, 2), build.sub(lanes(20), build.mul(RAMP, 2))), axes=V)
    p = program(
        [buffer("a", dtypes.int32, 2), buffer("out", dtypes.int32, role=Role.OUTPUT)], Store("out", (i,), load), axes=V
    )
    check(p, {"a": values(dtypes.int32, 40, 40), "out": values(dtypes.int32, 16)})


@TARGETS
@pytest.mark.parametrize("dtype", [dtypes.uint8, dtypes.float32, dtypes.int64], ids=str)
def test_gather_and_scatter(dtype: DType, target: Target) -> None:
    i = lanes(0)
    at = Cast(INDEX, Load(dtypes.int32, "at", (i,), axes=V), axes=V)
    mask = (build.less(at, build.spread(build.index(60), V)),)
    row = build.spread(build.index(1), V)
    gathered = Load(dtype, "a", (row, at), mask=mask, other=Const(dtype, 7), axes=V)
    buffers = [buffer("a", dtype, 2), buffer("at", dtypes.int32), buffer("out", dtype, role=Role.OUTPUT)]
    buffers += [buffer("b", dtype, role=Role.OUTPUT)]
    p = program(buffers, Store("out", (i,), gathered), Store("b", (at,), gathered, mask), axes=V)
    at_values = np.random.default_rng(3).permutation(80)[:16].astype(np.int32)
    arrays = {"a": values(dtype, 2, 60), "at": at_values, "out": values(dtype, 16), "b": values(dtype, 60)}
    check(p, arrays, target=target)


@pytest.mark.parametrize("op", [BinaryOp.LT, BinaryOp.LE, BinaryOp.EQ, BinaryOp.NE])
@pytest.mark.parametrize("slope", [-2, -1, 1, 2])
def test_masks_of_positions_are_right_wherever_they_end(op: BinaryOp, slope: int) -> None:
    i = lanes(0)
    left = build.add(build.spread(build.local("k"), V), build.mul(RAMP, slope))
    for turned in (False, True):
        pair = (build.spread(size("out"), V), left) if turned else (left, build.spread(size("out"), V))
        flag = build.cast(build.binary(op, *pair), dtypes.uint8)
        store = Store("out", (build.spread(build.add(build.local("k"), 40), V), i), flag)
        buffers = [buffer("out", dtypes.uint8, 2, Role.OUTPUT)]
        moved = loop("k0", 80, store)
        p = program(buffers, _renamed(moved), axes=V)
        check(p, {"out": np.zeros((80, 16), np.uint8)})


def _renamed(node):  # type: ignore[no-untyped-def]
    """Let the loop run from -40."""
    from dataclasses import replace

    return replace(node, var=build.local("k"), start=build.index(-40))


@pytest.mark.parametrize("dtype", [dtypes.uint8, dtypes.float64, dtypes.bool_], ids=str)
@pytest.mark.parametrize("other", [None, 0, 1])
def test_a_scalar_condition_masks_without_a_branch(dtype: DType, other: int | None) -> None:
    i = lanes(0)
    on = build.less(build.local("y"), size("a"))
    y, rest = build.local("y"), None if other is None else Const(dtype, other)
    wide = Load(dtype, "a", (y, i), mask=(on,), other=rest, axes=V)
    narrow = Load(dtype, "a", (y, build.index(3)), mask=(on,), other=rest)
    where = () if other is not None else (on,)
    stores = (Store("out", (y, i), wide, where), Store("one", (y,), narrow, where))
    buffers = [buffer("a", dtype, 2), buffer("out", dtype, 2, Role.OUTPUT), buffer("one", dtype, role=Role.OUTPUT)]
    p = program(buffers, loop("y", size("out"), *stores), axes=V)
    check(p, {"a": values(dtype, 3, 16), "out": values(dtype, 5, 16), "one": values(dtype, 5)})


@pytest.mark.parametrize("op", [BinaryOp.ADD, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX, BinaryOp.OR, BinaryOp.XOR])
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_atomic_stores_combine(dtype: DType, op: BinaryOp) -> None:
    if dtype.is_float and op in (BinaryOp.OR, BinaryOp.XOR):
        pytest.skip("no such operator")
    i = lanes(build.mul(build.local("i"), 16))
    cell = build.mod(i, 3)
    mask = (build.less(i, build.spread(size("a"), V)),)
    load = Load(dtype, "a", (i,), mask=mask, axes=V)
    store = Store("out", (cell,), load, mask, atomic=op)
    buffers = [buffer("a", dtype), buffer("out", dtype, role=Role.OUTPUT)]
    extent = build.floordiv(build.add(size("a"), 15), 16)
    p = program(buffers, loop("i", extent, store), axes=V)
    check(p, {"a": values(dtype, 37), "out": values(dtype, 3)})


def test_lanes_that_meet_leave_the_last() -> None:
    load = Load(dtypes.float32, "a", (lanes(0),), axes=V)
    p = program(
        [buffer("a", dtypes.float32), buffer("out", dtypes.float32, role=Role.OUTPUT)],
        Store("out", (build.index(0),), load),
        axes=V,
    )
    arrays = {"a": np.arange(16, dtype=np.float32), "out": np.zeros(1, np.float32)}
    from tests.backends.llvm.harness import run

    run(p, arrays)
    assert arrays["out"][0] == 15


def test_what_was_loaded_is_forgotten_when_it_is_written() -> None:
    """The same node, used again after a store, is loaded again."""
    cell = (build.index(0),)
    one = build.add(Load(dtypes.int32, "out", cell), 1)
    p = program([buffer("out", dtypes.int32, role=Role.OUTPUT)], *(Store("out", cell, one) for _ in range(3)))
    check(p, {"out": np.zeros(1, np.int32)})


@pytest.mark.parametrize("name", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "int64"])
@pytest.mark.parametrize("lanes", [4, 8, 16, 32])
def test_lanes_looked_up_by_integers_of_every_type(name: str, lanes: int) -> None:
    """A table of each width read, and a histogram written, at indices of each type, with the largest of them."""
    import stax as sx

    x, a = sx.Var("x"), sx.Input("a", getattr(sx, name), 1)
    most = min(300, int(np.iinfo(name).max) + 1)
    for kind in (np.uint8, np.int32, np.float64):
        table = (np.arange(most) * 7 % 251).astype(kind)
        f = sx.Func("f")
        f[x] = sx.Const("table", table)[sx.clip(a[x], 0, most - 1)]
        s = sx.Schedule(f)
        s[f].vectorize(x, lanes)
        given = np.random.default_rng(3).integers(0, most, 77).astype(name)
        given[:2] = 0, most - 1
        np.testing.assert_array_equal(sx.compile(f, s, strict_native=True)(given), table[given.astype(np.int64)])


@pytest.mark.parametrize(
    ("wide", "narrow"), [("int64", "int16"), ("int64", "int8"), ("int32", "uint8"), ("uint64", "int32")]
)
@pytest.mark.parametrize("count", [1, 2, 5, 15])
@pytest.mark.parametrize("slope", [1, -1])
@TARGETS
def test_lanes_that_a_known_mask_turns_off_are_not_stored(
    wide: str, narrow: str, count: int, slope: int, target: Target
) -> None:
    """LLVM 22 makes of one lane of a vector that is cut to a narrower type a store of all that it was cut from."""
    i = lanes(0 if slope > 0 else 20, slope)
    mask = build.less(RAMP, build.spread(build.index(count), V))
    long, short = dtypes.as_dtype(wide), dtypes.as_dtype(narrow)
    value = build.cast(Load(long, "a", (i,), (mask,), axes=V), short)
    made = program([buffer("a", long), buffer("f", short, role=Role.OUTPUT)], Store("f", (i,), value, (mask,)), axes=V)
    a, f = np.arange(40).astype(wide), np.full(40, 77, narrow)
    check(made, {"a": a, "f": f}, target=target)


@pytest.mark.parametrize("name", ["uint8", "int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("lanes", [4, 8, 16, 32])
def test_lanes_looked_up_by_bits_of_what_was_read_backwards(name: str, lanes: int) -> None:
    """LLVM 22 takes neighbours in a word for zeros after such a mask and shuffle, and would read far outside."""
    import stax as sx

    x, a, table = sx.Var("x"), sx.Input("a", getattr(sx, name), 1), sx.Input("table", sx.int16, 1)
    f = sx.Func("f", shape=(64,))
    f[x] = table[sx.cast(a[63 - x] % 4, sx.int64)]
    s = sx.Schedule(f)
    s[f].vectorize(x, lanes)
    given, entries = np.random.default_rng(3).integers(0, 127, 64).astype(name), np.arange(10, 14).astype(np.int16)
    np.testing.assert_array_equal(sx.compile(f, s, strict_native=True)(given, entries), entries[given[::-1] % 4])


@pytest.mark.parametrize("offset", [0, 16, 32, 48, 4])
def test_what_is_streamed_to_a_multiple_of_16_bytes_goes_past_the_caches(offset: int) -> None:
    """NumPy's arrays are mostly at 16 bytes past a line."""
    import stax as sx

    y, x = sx.vars("y x")
    a = sx.Input("a", sx.float32, 2)
    f = sx.Func("f")
    f[y, x] = a[y, x] + 1
    s = sx.Schedule(f)
    s[f].vectorize(x, 16).stream()
    kernel = sx.compile(f, s, strict_native=True)
    raw = np.zeros(64 + 64 + 5 * 37 * 4, np.uint8)
    at = -raw.ctypes.data % 64 + offset
    out, given = raw[at : at + 5 * 37 * 4].view(np.float32).reshape(5, 37), np.arange(185, dtype=np.float32)
    np.testing.assert_array_equal(kernel(given.reshape(5, 37), out=out), given.reshape(5, 37) + 1)
    stores = [line for line in kernel.source("llvm").splitlines() if "!nontemporal" in line]
    assert any("align 64," in line for line in stores)
    assert any("align 16," in line for line in stores)


def test_what_lanes_off_a_mask_have_may_be_an_index() -> None:
    """Of a read at an undefined index LLVM would make that the loop around never ends."""
    import stax as sx

    y, x = sx.vars("y x")
    a, table = sx.Input("a", sx.int32, 1), sx.Input("table", sx.int32, 1)
    f = sx.Func("f", shape=(16, 13))
    f[y, x] = sx.select(x + y <= 1, 2 + table[sx.clip(a[x], 0, 5)], 6 % a[x])
    s = sx.Schedule(f)
    s[f].vectorize(x, 16)
    given, entries = np.arange(-4, 9, dtype=np.int32), np.arange(10, 16).astype(np.int32)
    rows, columns = np.mgrid[:16, :13]
    rest = np.array([0 if k == 0 else 6 % k for k in given.tolist()])
    expected = np.where(rows + columns <= 1, 2 + entries[given.clip(0, 5)], rest)
    np.testing.assert_array_equal(sx.compile(f, s, strict_native=True)(given, entries), expected)


def test_many_lanes_down_a_column_are_addressed_from_one_place() -> None:
    down = (Axis("v", 64),)
    row = build.add(build.spread(build.mul(build.local("i"), 64), down), Ramp(INDEX, axes=down))
    at = (row, build.spread(build.local("j"), down))
    inner = loop("j", size("out", 1), Store("out", at, Load(dtypes.float64, "a", at, axes=down)))
    buffers = [buffer("a", dtypes.float64, 2), buffer("out", dtypes.float64, 2, role=Role.OUTPUT)]
    p = program(buffers, loop("i", build.floordiv(size("out"), 64), inner), axes=down)
    given, out = np.random.default_rng(0).random((128, 5)), np.zeros((128, 9))[:, 2:7]
    check(p, {"a": given, "out": out})
    np.testing.assert_array_equal(out, given)
    assert emit(p, Facts(), HOST).count('call ptr asm "", "=r,0"') == 2
