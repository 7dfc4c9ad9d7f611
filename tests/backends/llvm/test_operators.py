"""Every operator of every type gives the bits that the interpreter gives, one at a time and in lanes."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from stax import dtypes
from stax.dtypes import DType
from stax.expr import build
from stax.expr.nodes import (
    COMPARES,
    INDEX,
    Axes,
    Axis,
    Binary,
    BinaryOp,
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    Fn,
    Load,
    Ramp,
    Select,
    Unary,
    UnaryOp,
)  # fmt: skip
from stax.loops.nodes import Role, Store
from stax.target import Target
from tests.backends.llvm.harness import HOST, Array, assert_same, buffer, check, loop, program, run, size

Op = BinaryOp
PLAIN = Target("x86_64-unknown-linux-gnu", "x86-64", "+sse2", 16, 1)
AVX2 = Target("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+popcnt", 32, 1)
# Those of NumPy; machine code for bfloat16 is held against the oracle in tests/hostile/test_bfloat16.py.
ALL, NUMBERS = (tuple(t for t in types if t != dtypes.bfloat16) for types in (dtypes.ALL, dtypes.NUMBERS))
LANES = pytest.mark.parametrize("lanes", [0, 1, 7, 16])
FLOATS = [t for t in NUMBERS if t.is_float]
INTEGERS = [t for t in NUMBERS if t.is_integer]


def edges(dtype: DType) -> Array:
    """Return values where operators go wrong, and some others."""
    rng = np.random.default_rng(1)
    with np.errstate(all="ignore"):
        if dtype.is_bool:
            return np.array([False, True])
        if dtype.is_float:
            info = np.finfo(dtype.dtype)
            special = [0.0, -0.0, 1, -1, 0.5, -1.5, 2.5, 3, 7, -7, np.inf, -np.inf, np.nan, info.max, info.tiny, 1e-7]
            special += [
                -info.max,
                info.smallest_subnormal,
                255.5,
                256,
                65535.9,
                -32769,
                2**31,
                -(2.0**31),
                2**63,
                2**64,
            ]
            return np.concatenate([np.array(special), rng.normal(0, 100, 20)]).astype(dtype.dtype)
        special = [0, 1, 2, 3, 7, 8, 31, dtype.high, dtype.high - 1, dtype.low, dtype.low + 1, dtype.high // 2]
        special += [-1, -2, -7] if dtype.is_signed else []
        bits = rng.integers(0, 256, 10 * dtype.size_bytes, dtype=np.uint8).view(dtype.dtype)
        return np.concatenate([np.array(special, dtype.dtype), bits])


def pairs(dtype: DType, other: DType) -> tuple[Array, Array]:
    both = list(itertools.product(edges(dtype), edges(other)))
    both += both[: -len(both) % 112]
    return np.array([a for a, _ in both], dtype.dtype), np.array([b for _, b in both], other.dtype)


def check_all(
    ins: list[DType], lanes: int, makes: list[Callable[..., Expr]], arrays: list[Array], target: Target = HOST
) -> None:
    """Check that each of `makes`, as an output of one program, gives what the interpreter gives."""
    axes: Axes = (Axis("v", lanes),) if lanes else ()
    i: Expr = build.local("i")
    if lanes:
        i = build.add(build.spread(build.mul(i, lanes), axes), Ramp(INDEX, axes=axes))
    values = [make(*(Load(t, f"a{k}", (i,), axes=axes) for k, t in enumerate(ins))) for make in makes]
    outs = [buffer(f"out{k}", v.dtype, role=Role.OUTPUT) for k, v in enumerate(values)]
    stores = [Store(out.name, (i,), v) for out, v in zip(outs, values, strict=True)]
    extent = build.floordiv(size("a0"), max(1, lanes))
    p = program([*(buffer(f"a{k}", t) for k, t in enumerate(ins)), *outs], loop("i", extent, *stores), axes=axes)
    given = {f"a{k}": a for k, a in enumerate(arrays)}
    given |= {out.name: np.zeros(len(arrays[0]), out.dtype.dtype) for out in outs}
    check(p, given, target=target)


def operators(dtype: DType) -> list[Op]:
    if dtype.is_bool:
        return [Op.ADD, Op.MUL, Op.AND, Op.OR, Op.XOR, Op.MIN, Op.MAX, *sorted(COMPARES, key=lambda o: o.name)]
    drop = {Op.AND, Op.OR, Op.XOR, Op.SHL, Op.SHR} if dtype.is_float else {Op.DIV}
    return [op for op in Op if op not in drop]


def apply(op: Op) -> Callable[..., Expr]:
    def make(a: Expr, b: Expr) -> Expr:
        return Binary(dtypes.bool_ if op in COMPARES else a.dtype, op, a, b, axes=a.axes)

    return make


def of_one(op: UnaryOp) -> Callable[..., Expr]:
    return lambda a: Unary(a.dtype, op, a, axes=a.axes)


def as_type(dtype: DType) -> Callable[..., Expr]:
    return lambda a: Cast(dtype, a, axes=a.axes)


def calls(fn: Fn, dtype: DType | None = None) -> Callable[..., Expr]:
    return lambda *args: Call(dtype or args[0].dtype, fn, args, axes=args[0].axes)


@LANES
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_operators_of_two_values(dtype: DType, lanes: int) -> None:
    check_all([dtype] * 2, lanes, [apply(op) for op in operators(dtype)], list(pairs(dtype, dtype)))


@pytest.mark.parametrize("target", [PLAIN, AVX2], ids=lambda t: t.cpu)
@pytest.mark.parametrize("dtype", [dtypes.uint8, dtypes.int32, dtypes.float16, dtypes.float32], ids=str)
def test_operators_on_lesser_processors(dtype: DType, target: Target) -> None:
    for lanes in (0, 16):
        check_all([dtype] * 2, lanes, [apply(op) for op in operators(dtype)], list(pairs(dtype, dtype)), target)


@LANES
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_operators_of_one_value(dtype: DType, lanes: int) -> None:
    ops = [UnaryOp.NOT] if dtype.is_bool else [UnaryOp.NEG, UnaryOp.ABS] + [UnaryOp.NOT] * dtype.is_integer
    check_all([dtype], lanes, [of_one(op) for op in ops], [pairs(dtype, dtype)[0]])


@LANES
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_casts_to_every_type(dtype: DType, lanes: int) -> None:
    check_all([dtype], lanes, [as_type(t) for t in ALL if t != dtype], [pairs(dtype, dtype)[0]])


@pytest.mark.parametrize("target", [PLAIN, AVX2], ids=lambda t: t.cpu)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_casts_of_floats_on_lesser_processors(dtype: DType, target: Target) -> None:
    for lanes in (0, 8):
        check_all([dtype], lanes, [as_type(t) for t in ALL if t != dtype], [pairs(dtype, dtype)[0]], target)


@pytest.mark.parametrize("target", [PLAIN, AVX2, HOST], ids=lambda t: t.cpu)
def test_every_half_converts_to_float32_and_back(target: Target) -> None:
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    check_all([dtypes.float16], 16, [as_type(dtypes.float32)], [halves], target)
    near = np.nextafter(halves[np.isfinite(halves)].astype(np.float32), np.float32(np.inf))
    middle = (halves[:-1].astype(np.float64) + halves[1:]) / 2
    for dtype, values in ((dtypes.float32, near), (dtypes.float64, np.append(middle, middle[:1]))):
        for moved in (
            values,
            np.nextafter(values, values.dtype.type(np.inf)),
            np.nextafter(values, values.dtype.type(0)),
        ):
            check_all([dtype], 16, [as_type(dtypes.float16)], [moved], target)


@LANES
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_division_by_constants(dtype: DType, lanes: int) -> None:
    divisors = [0, 1, 2, 3, 8, 10, 60, dtype.high, dtype.low, dtype.high // 2 + 1] + [-1, -2, -3, -8] * dtype.is_signed

    def by(op: Op, n: int) -> Callable[..., Expr]:
        return lambda a: Binary(dtype, op, a, build.const(n, dtype, a.axes), axes=a.axes)

    makes = [by(op, n) for n in divisors for op in (Op.FLOORDIV, Op.MOD)]
    makes += [by(op, n) for op in (Op.SHL, Op.SHR) for n in (0, 1, dtype.bits - 1, dtype.bits, dtype.high)]
    check_all([dtype], lanes, makes, [pairs(dtype, dtype)[0]])


@LANES
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_extremes_with_constants(dtype: DType, lanes: int) -> None:
    def with_(op: Op, n: float, turned: bool) -> Callable[..., Expr]:
        def make(a: Expr) -> Expr:
            c = build.const(n, dtype, a.axes)
            return Binary(dtype, op, *((c, a) if turned else (a, c)), axes=a.axes)

        return make

    numbers = [0.0, -0.0, 1.5, -2.0, float("inf"), float("-inf"), float("nan")]
    makes = [with_(op, n, turned) for op in (Op.MIN, Op.MAX) for n in numbers for turned in (False, True)]
    check_all([dtype], lanes, makes, [pairs(dtype, dtype)[0]])


@LANES
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_fixed_point_words(dtype: DType, lanes: int) -> None:
    wide = {8: "16", 16: "32", 32: "64"}.get(dtype.bits)
    unsigned = dtypes.as_dtype(f"uint{dtype.bits}")
    makes = [calls(fn) for fn in (Fn.SATURATING_ADD, Fn.SATURATING_SUB, Fn.ROUNDING_AVERAGE, Fn.MUL_HIGH)]
    makes += [calls(Fn.ABSD, unsigned)]
    makes += [calls(Fn.WIDENING_MUL, dtypes.as_dtype(dtype.name.rstrip("0123456789") + wide))] if wide else []
    check_all([dtype] * 2, lanes, makes, list(pairs(dtype, dtype)))
    one = [calls(Fn.POPCOUNT, dtypes.int32), calls(Fn.CLZ, dtypes.uint8), calls(Fn.POPCOUNT), calls(Fn.CLZ)]
    one += [calls(Fn.SATURATING_CAST, t) for t in NUMBERS]
    check_all([dtype], lanes, one, [pairs(dtype, dtype)[0]])


@LANES
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_functions_of_floats(dtype: DType, lanes: int) -> None:
    fns = [Fn.SQRT, Fn.FLOOR, Fn.CEIL, Fn.TRUNC, Fn.RINT, Fn.EXP, Fn.LOG, Fn.SIN, Fn.TANH, Fn.SIGN, Fn.SIGMOID]
    makes = [calls(fn) for fn in fns] + [calls(fn, dtypes.bool_) for fn in (Fn.ISNAN, Fn.ISINF, Fn.ISFINITE)]
    makes += [calls(Fn.SATURATING_CAST, t) for t in (dtypes.uint8, dtypes.int64)]
    check_all([dtype], lanes, makes, [pairs(dtype, dtype)[0]])
    check_all([dtype] * 2, lanes, [calls(Fn.COPYSIGN), calls(Fn.POW), calls(Fn.ABSD)], list(pairs(dtype, dtype)))
    a, b = pairs(dtype, dtype)
    check_all([dtype] * 3, lanes, [calls(Fn.FMA)], [a, b, np.roll(b, 5)])


@LANES
def test_a_select_takes_lanes_or_one_condition(lanes: int) -> None:
    def by_lane(a: Expr, b: Expr) -> Expr:
        return Select(a.dtype, Binary(dtypes.bool_, Op.LT, a, b, axes=a.axes), a, b, axes=a.axes)

    def shared(a: Expr, b: Expr) -> Expr:
        cond = build.spread(build.less(build.local("i"), 3), a.axes)
        return Select(a.dtype, cond, a, b, axes=a.axes)

    for dtype in (dtypes.uint8, dtypes.float16, dtypes.float64, dtypes.bool_):
        check_all([dtype] * 2, lanes, [by_lane, shared], list(pairs(dtype, dtype)))


@LANES
@pytest.mark.parametrize(
    ("dtype", "other"),
    [(dtypes.float32, dtypes.int32), (dtypes.uint16, dtypes.float16), (dtypes.float16, dtypes.int16),
     (dtypes.int64, dtypes.float64), (dtypes.int8, dtypes.uint8)],
)  # fmt: skip
def test_a_bitcast_keeps_bits(dtype: DType, other: DType, lanes: int) -> None:
    check_all([dtype], lanes, [lambda a: Bitcast(other, a, axes=a.axes)], [pairs(dtype, dtype)[0]])


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_constants_are_exact(dtype: DType) -> None:
    values = edges(dtype)
    outs = [buffer(f"o{k}", dtype, role=Role.OUTPUT) for k in range(len(values))]
    stores = [Store(o.name, (build.index(0),), Const(dtype, v.item())) for o, v in zip(outs, values, strict=True)]
    arrays = {o.name: np.zeros(1, dtype.dtype) for o in outs}
    run(program(outs, *stores), arrays)
    for o, v in zip(outs, values, strict=True):
        assert_same(arrays[o.name], np.array([v]), o.name)


@pytest.mark.parametrize("lanes", [0, 16])
@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.uint8, dtypes.float64, dtypes.float16], ids=str)
def test_positions_become_values(dtype: DType, lanes: int) -> None:
    """Positions stay scalar as long as they can, which conversions must see through."""

    def make(a: Expr) -> Expr:
        place = build.sub(build.mul(_position(a.axes, lanes), 7), 300)
        plus = build.add(build.cast(place, dtypes.int64), 5)
        return build.add(a, build.cast(build.add(plus, build.cast(place, dtypes.int64)), a.dtype))

    check_all([dtype], lanes, [make], [np.arange(112, dtype=dtype.dtype)])


def _position(axes: Axes, lanes: int) -> Expr:
    i: Expr = build.local("i")
    return build.add(build.spread(build.mul(i, lanes), axes), Ramp(INDEX, axes=axes)) if axes else i
