"""bfloat16 in NumPy: all 65,536 of them, and rounding to the nearest."""

from __future__ import annotations

import numpy as np
import pytest

from stax import dtypes
from stax.expr import bfloat16
from stax.expr.evaluate import constant, convert, primitive
from stax.expr.nodes import Binary, BinaryOp, Bitcast, Const, Local

EVERY = np.arange(2**16, dtype=np.uint32).astype(np.uint16)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 3.3895314e38, 3.3961775e38, 3.4e38, 1e-45, 9.2e-41, 4.6e-41, 1.17e-38]


def test_every_value_keeps_its_bits() -> None:
    values = bfloat16.values_of(EVERY)
    nan = np.isnan(values)
    assert np.array_equal(bfloat16.bits_of(values)[~nan], EVERY[~nan])
    assert np.isnan(bfloat16.values_of(bfloat16.bits_of(values[nan]))).all()
    assert nan.sum() == 2 * (2**7 - 1)


def test_a_float32_goes_to_the_nearest_and_to_even_where_two_are() -> None:
    """Between any two neighbours: the middle, and the numbers right below and above it."""
    finite = EVERY[(EVERY & 0x7F80) != 0x7F80].astype(np.int64)
    middle = (finite << 16) | 0x8000
    for step, up in ((-1, 0), (0, finite & 1), (1, 1)):
        found = bfloat16.bits_of((middle + step).astype(np.uint32).view(np.float32))
        assert np.array_equal(found, (finite + up).astype(np.uint16))


def test_a_float64_is_rounded_once() -> None:
    """By way of float32, what is a hair above a middle would be taken for the middle."""
    even, hair = np.float64(1.0), 2.0**-40
    middle = even + 2.0**-8
    assert bfloat16.rounded(np.array([middle, middle + hair, -middle - hair, middle - hair])).tolist() == [
        1.0, 1.0 + 2.0**-7, -1.0 - 2.0**-7, 1.0,
    ]  # fmt: skip
    assert bfloat16.rounded(np.array([1e39, -1e300, 1e-300])).tolist() == [np.inf, -np.inf, 0.0]


def test_it_rounds_as_the_package_does_that_adds_it_to_numpy() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(2)
    wild = rng.integers(0, 2**32, 100_000, np.uint64).astype(np.uint32).view(np.float32)
    given = np.concatenate([np.array(SPECIAL, np.float32), wild])
    with np.errstate(all="ignore"):
        wanted = given.astype(ml_dtypes.bfloat16)
    found = bfloat16.bits_of(given)
    assert np.array_equal(np.isnan(wanted), np.isnan(bfloat16.values_of(found)))
    kept = ~np.isnan(wanted)
    assert np.array_equal(found[kept], wanted.view(np.uint16)[kept])


def test_operators_compute_in_float32_and_round_once() -> None:
    a, b = Local(dtypes.bfloat16, "a"), Local(dtypes.bfloat16, "b")
    x, y = (bfloat16.rounded(np.array(v, np.float32)) for v in ([1.5, 200.0, 3e38], [1 / 3, 1.0, 3e38]))
    with np.errstate(over="ignore"):
        wide = ((BinaryOp.ADD, x + y), (BinaryOp.MUL, x * y), (BinaryOp.DIV, x / y))
    for op, wanted in wide:
        found = primitive(Binary(dtypes.bfloat16, op, a, b), [x, y])
        assert found.dtype == np.float32
        assert np.array_equal(found, bfloat16.rounded(wanted))
    assert primitive(Binary(dtypes.bool_, BinaryOp.LT, a, b), [x, y]).tolist() == [False, False, False]


def test_constants_conversions_and_bits() -> None:
    assert constant(Const(dtypes.bfloat16, 0.1)).item() == 0.10009765625
    assert convert(np.array([2**24 + 1, 257, -3]), dtypes.bfloat16).tolist() == [2.0**24, 256.0, -3.0]
    assert convert(np.array([300.7, np.nan, -np.inf], np.float32), dtypes.uint8).tolist() == [255, 0, 0]
    bits = primitive(Bitcast(dtypes.uint16, Local(dtypes.bfloat16, "x")), [np.array([1.0, -2.0], np.float32)])
    assert [hex(v) for v in bits.tolist()] == ["0x3f80", "0xc000"]
    back = primitive(Bitcast(dtypes.bfloat16, Local(dtypes.uint16, "x")), [np.array([0x4049], np.uint16)])
    assert back.tolist() == [3.140625]
