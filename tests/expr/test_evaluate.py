"""Integers against Python's own, all pairs of 8 bits; floats against what the rules say."""

import itertools
import math
import warnings

import numpy as np
import pytest

from stax import dtypes
from stax.dtypes import DType
from stax.expr import build
from stax.expr.evaluate import evaluate, primitive
from stax.expr.nodes import (
    COMPARES,
    Binary,
    BinaryOp,
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    Fn,
    Local,
    Select,
    Unary,
    UnaryOp,
)

FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)
SPECIAL = np.array(
    [0, 1, 1.5, 2, 3, 0.1, 7.25, 1e30, 6e-8, 65504, 2.0**31, 2.0**32, 2.0**63, 2.0**64, np.inf, np.nan], np.float64
)
SPECIAL = np.concatenate([SPECIAL, -SPECIAL])


def binary(op: BinaryOp, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    dtype = dtypes.as_dtype(a.dtype)
    result = dtypes.bool_ if op in COMPARES else dtype
    return primitive(Binary(result, op, Local(dtype, "a"), Local(dtype, "b")), [a, b])


def call(fn: Fn, dtype: DType, *args: np.ndarray) -> np.ndarray:
    return primitive(Call(dtype, fn, tuple(Local(dtypes.as_dtype(a.dtype), "a") for a in args)), list(args))


def cast(a: np.ndarray, dtype: DType) -> np.ndarray:
    return primitive(Cast(dtype, Local(dtypes.as_dtype(a.dtype), "a")), [a])


def pairs(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    every = np.arange(dtype.low, dtype.high + 1).astype(dtype.dtype)
    return np.repeat(every, 256), np.tile(every, 256)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal to the bit, any NaN being like any other."""
    equal = (a == b) & (np.signbit(a) == np.signbit(b)) | ((a != a) & (b != b))
    return a.dtype == b.dtype and bool(np.all(equal))


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8])
@pytest.mark.parametrize("op", [op for op in BinaryOp if op is not BinaryOp.DIV])
def test_integers_of_8_bits_are_as_the_constant_folder_says(op: BinaryOp, dtype: DType) -> None:
    """`build.binary` folds with Python's unbounded integers, by other code."""
    a, b = pairs(dtype)
    found = binary(op, a, b)
    folded = [
        build.integer(build.binary(op, Const(dtype, x), Const(dtype, y)))
        for x, y in zip(a.tolist()[::7], b.tolist()[::7], strict=True)
    ]
    assert found.dtype == (np.bool_ if op in COMPARES else dtype.dtype)
    assert found[::7].astype(int).tolist() == folded


def test_the_corners_of_wide_integers() -> None:
    low, one, zero = np.array([-(2**63)]), np.array([-1]), np.array([0])
    assert binary(BinaryOp.FLOORDIV, low, one).tolist() == [-(2**63)]
    assert binary(BinaryOp.MOD, low, one).tolist() == [0]
    assert binary(BinaryOp.FLOORDIV, low, zero).tolist() == binary(BinaryOp.MOD, low, zero).tolist() == [0]
    assert binary(BinaryOp.SHL, one, np.array([64])).tolist() == [0]
    assert binary(BinaryOp.SHL, one, np.array([-1])).tolist() == [0]
    assert binary(BinaryOp.SHR, low, np.array([-3])).tolist() == [-1]
    assert primitive(Unary(dtypes.int64, UnaryOp.ABS, Local(dtypes.int64, "a")), [low]).tolist() == low.tolist()
    assert primitive(Unary(dtypes.uint8, UnaryOp.NEG, Local(dtypes.uint8, "a")), [np.uint8([1])]).tolist() == [255]


@pytest.mark.parametrize("dtype", FLOATS)
def test_minimum_carries_nan_and_puts_minus_zero_first(dtype: DType) -> None:
    a, b = (
        x.ravel().astype(dtype.dtype) for x in np.meshgrid([0.0, -0.0, 1, -1, np.nan, np.inf], [0.0, -0.0, np.nan, 2])
    )

    def lower(x: float, y: float) -> float:
        if math.isnan(x) or math.isnan(y):
            return math.nan
        return min((x, y), key=lambda v: (v, math.copysign(1, v)))

    least = np.array([lower(float(x), float(y)) for x, y in zip(a, b, strict=True)], dtype.dtype)
    assert same(binary(BinaryOp.MIN, a, b), least)
    assert same(binary(BinaryOp.MAX, -a, -b), -least)


@pytest.mark.parametrize("dtype", FLOATS)
def test_floor_division_and_remainder_of_floats_are_numpys(dtype: DType) -> None:
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        wild = np.concatenate([SPECIAL, rng.standard_normal(40) * 10.0 ** rng.integers(-4, 5, 40)]).astype(dtype.dtype)
        a, b = (x.ravel() for x in np.meshgrid(wild, wild))
        wanted = np.floor_divide(a, b), np.remainder(a, b)
        if dtype.bits == 16:  # one operation of float32, rounded once
            wanted = tuple(f(a.astype("f4"), b.astype("f4")).astype("f2") for f in (np.floor_divide, np.remainder))
    assert same(binary(BinaryOp.FLOORDIV, a, b), wanted[0])
    assert same(binary(BinaryOp.MOD, a, b), wanted[1])


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("dtype", [d for d in dtypes.NUMBERS if d.is_integer])
def test_a_float_becomes_an_integer_by_truncation_and_saturates(source: DType, dtype: DType) -> None:
    edges = [float(dtype.low), float(dtype.high), float(dtype.low) - 0.5, float(dtype.high) + 0.5, -0.75]
    with np.errstate(all="ignore"):
        a = np.concatenate([SPECIAL, edges, np.nextafter(edges, 0), np.nextafter(edges, np.inf)]).astype(source.dtype)

    def whole(x: float) -> int:
        if math.isnan(x):
            return 0
        return min(max(math.trunc(x) if math.isfinite(x) else (2**70 if x > 0 else -(2**70)), dtype.low), dtype.high)

    assert cast(a, dtype).tolist() == [whole(float(x)) for x in a]
    assert call(Fn.SATURATING_CAST, dtype, a).tolist() == cast(a, dtype).tolist()


def test_other_casts_wrap_or_round_once() -> None:
    assert cast(np.array([300, -1]), dtypes.uint8).tolist() == [44, 255]
    assert cast(np.uint64([2**63 + 5]), dtypes.int64).tolist() == [-(2**63) + 5]
    assert cast(np.array([0.0, -0.0, np.nan, 0.5]), dtypes.bool_).tolist() == [False, False, True, True]
    assert cast(np.array([True, False]), dtypes.float16).tolist() == [1.0, 0.0]
    assert cast(np.array([1 + 2**-11 + 2**-40]), dtypes.float16)[0] == np.float16(1 + 2**-10)
    assert cast(np.array([2**24 + 1, 2**60 + 2**36 + 1]), dtypes.float32).tolist() == [2.0**24, 2.0**60 + 2.0**37]
    assert cast(np.array([10**6]), dtypes.float16)[0] == np.inf
    assert primitive(Bitcast(dtypes.uint32, Local(dtypes.float32, "a")), [np.float32([1, -0.0])]).tolist() == [
        0x3F800000,
        0x80000000,
    ]


def test_float16_arithmetic_is_float32_rounded_once() -> None:
    a, b = np.float16(1 + 2**-10), np.float16(2**-11)
    assert binary(BinaryOp.ADD, a, b) == np.float16(1 + 2**-9)
    assert binary(BinaryOp.MUL, np.float16(300), np.float16(300)) == np.inf
    assert call(Fn.SQRT, dtypes.float16, np.float16([2])).dtype == np.float16


def test_bools_add_by_or_and_multiply_by_and() -> None:
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    table = {BinaryOp.ADD: a | b, BinaryOp.MUL: a & b, BinaryOp.XOR: a != b, BinaryOp.MAX: a | b, BinaryOp.LT: ~a & b}
    for op, wanted in table.items():
        assert binary(op, a, b).tolist() == wanted.tolist()
    assert primitive(Unary(dtypes.bool_, UnaryOp.NOT, Local(dtypes.bool_, "a")), [a]).tolist() == (~a).tolist()


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8])
def test_fixed_point_words_of_8_bits_are_exact_arithmetic(dtype: DType) -> None:
    a, b = pairs(dtype)
    x, y = a.astype(int), b.astype(int)
    wide = dtypes.int16 if dtype.is_signed else dtypes.uint16
    clipped = {Fn.SATURATING_ADD: x + y, Fn.SATURATING_SUB: x - y}
    for fn, exact in clipped.items():
        assert np.array_equal(call(fn, dtype, a, b), np.clip(exact, dtype.low, dtype.high))
    assert np.array_equal(call(Fn.ABSD, dtypes.uint8, a, b), abs(x - y))
    assert np.array_equal(call(Fn.WIDENING_MUL, wide, a, b), x * y)
    assert np.array_equal(call(Fn.ROUNDING_AVERAGE, dtype, a, b), (x + y + 1) >> 1)
    assert np.array_equal(call(Fn.MUL_HIGH, dtype, a, b), (x * y) >> 8)
    assert call(Fn.POPCOUNT, dtype, a).tolist() == [(v & 255).bit_count() for v in x.tolist()]
    assert call(Fn.CLZ, dtype, a).tolist() == [8 - (v & 255).bit_length() for v in x.tolist()]


@pytest.mark.parametrize("dtype", [dtypes.int64, dtypes.uint64])
def test_fixed_point_words_of_64_bits_are_exact_arithmetic(dtype: DType) -> None:
    rng = np.random.default_rng(1)
    numbers = rng.integers(dtype.low, dtype.high, 40, dtype.dtype, endpoint=True)
    numbers[:4] = [dtype.low, dtype.high, 1, dtype.low]
    a, b = (v.ravel() for v in np.meshgrid(numbers, numbers))
    for k, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        a1, b1 = a[k : k + 1], b[k : k + 1]
        assert call(Fn.MUL_HIGH, dtype, a1, b1).tolist() == [(x * y) >> 64]
        assert call(Fn.SATURATING_ADD, dtype, a1, b1).tolist() == [min(max(x + y, dtype.low), dtype.high)]
        assert call(Fn.SATURATING_SUB, dtype, a1, b1).tolist() == [min(max(x - y, dtype.low), dtype.high)]
        assert call(Fn.ABSD, dtypes.uint64, a1, b1).tolist() == [abs(x - y)]
        if k > 200:
            break


def test_integers_saturate_between_any_two_types() -> None:
    integers = [d for d in dtypes.NUMBERS if d.is_integer]
    for source, target in itertools.product(integers, integers):
        values = [source.low, source.low + 1, source.high, source.high - 1, 0, 1, 100]
        found = call(Fn.SATURATING_CAST, target, np.array(values, source.dtype))
        assert found.tolist() == [min(max(v, target.low), target.high) for v in values]


def test_a_deep_shared_graph_is_computed_node_by_node() -> None:
    """A tree of 2**5000 nodes, and no recursion."""
    node: Expr = Local(dtypes.int64, "x")
    asked: list[Expr] = []
    for _ in range(5000):
        node = Binary(dtypes.int64, BinaryOp.ADD, node, node)

    def leaf(expr: Expr) -> np.ndarray:
        asked.append(expr)
        return np.array([1])

    assert evaluate([node, node], leaf)[1].tolist() == [0]
    assert len(asked) == 1


def test_nothing_warns() -> None:
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for op in (BinaryOp.DIV, BinaryOp.MOD, BinaryOp.FLOORDIV, BinaryOp.MUL):
            binary(op, np.float32([1, 0, np.inf, 3e38]), np.float32([0, 0, 0, 3e38]))
        binary(BinaryOp.FLOORDIV, np.int32(-(2**31)), np.int32(-1))
        binary(BinaryOp.ADD, np.int32(2**31 - 1), np.int32(1))
        cast(np.float64([np.nan, 1e300]), dtypes.float16)
        call(Fn.EXP, dtypes.float32, np.float32([1000, -1000, np.nan]))
        call(Fn.LOG, dtypes.float64, np.float64([0, -1]))


def test_select_takes_each_lane_of_its_own_arm() -> None:
    b, x = Local(dtypes.bool_, "b"), Local(dtypes.int8, "x")
    node = Select(dtypes.int8, b, x, x)
    assert primitive(node, [np.array([True, False]), np.int8([1, 2]), np.int8(3)]).tolist() == [1, 3]
