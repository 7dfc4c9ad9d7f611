"""float32 functions against the float64 ones of NumPy, on bit patterns from the whole range."""

import math

import numpy as np
import pytest

from stax import dtypes
from stax.dtypes import DType
from stax.expr.evaluate import primitive
from stax.expr.intrinsics import PRIMITIVES, expand, is_primitive
from stax.expr.nodes import Axis, Call, Fn, Local
from stax.expr.walk import postorder

erf = np.vectorize(math.erf)
NUMPY = {
    Fn.EXP: np.exp, Fn.EXP2: np.exp2, Fn.EXPM1: np.expm1, Fn.LOG: np.log, Fn.LOG2: np.log2, Fn.LOG10: np.log10,
    Fn.LOG1P: np.log1p, Fn.SIN: np.sin, Fn.COS: np.cos, Fn.TAN: np.tan, Fn.ASIN: np.arcsin, Fn.ACOS: np.arccos,
    Fn.ATAN: np.arctan, Fn.SINH: np.sinh, Fn.COSH: np.cosh, Fn.TANH: np.tanh, Fn.ERF: erf,
    Fn.RSQRT: lambda x: 1 / np.sqrt(x), Fn.SIGMOID: lambda x: np.exp(-np.logaddexp(0, -x)),
    Fn.ATAN2: np.arctan2, Fn.POW: np.power, Fn.HYPOT: np.hypot,
}  # fmt: skip
ONE = [fn for fn in NUMPY if fn not in (Fn.ATAN2, Fn.POW, Fn.HYPOT)]
SPECIAL = np.array(
    [0, 1, 2, 0.5, 3, np.inf, np.nan, 1e-45, 3.4028235e38, 1.1754944e-38, 1e10, 88.72284, 103.97, 709.0, 1.5707964],
    np.float32,
)
SPECIAL = np.concatenate([SPECIAL, -SPECIAL])


def value(fn: Fn, dtype: DType, *args: np.ndarray) -> np.ndarray:
    return primitive(Call(dtype, fn, tuple(Local(dtype, "x") for _ in args)), list(args))


def wild(rng: np.random.Generator, count: int) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return rng.integers(0, 2**32, count, np.uint64).astype(np.uint32).view(np.float32).astype(np.float64)


def ulps(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return how far `found` is from `exact` in units of the last place; infinite where they differ in kind."""
    with np.errstate(all="ignore"):
        nearest = exact.astype(np.float32)
        step = np.spacing(np.maximum(np.abs(nearest), np.float32(2.0**-126))).astype(np.float64)
        off = np.abs(found.astype(np.float64) - exact) / step
        alike = (found == nearest) | (np.isnan(found) & np.isnan(nearest))
    off = np.where(alike & ~np.isfinite(off), 0, off)
    return np.where(np.isnan(off) | (np.signbit(found) != np.signbit(exact)) & ~np.isnan(found), np.inf, off)


@pytest.mark.parametrize("fn", ONE)
def test_float32_functions_are_within_one_and_a_half_ulp_everywhere(fn: Fn) -> None:
    """Signs of zero, infinities, NaN, subnormals and huge arguments included."""
    rng = np.random.default_rng(5)
    around = [rng.uniform(-r, r, 20000) for r in (1.2, 10, 110)]
    x = np.concatenate([SPECIAL, wild(rng, 40000), *around]).astype(np.float32)
    with np.errstate(all="ignore"):
        exact = NUMPY[fn](x.astype(np.float64))
    off = ulps(value(fn, dtypes.float32, x), exact)
    assert (float(np.max(off)), x[np.argmax(off)]) < (1.5,)


@pytest.mark.parametrize("fn", [Fn.ATAN2, Fn.POW, Fn.HYPOT])
def test_float32_functions_of_two_values_are_within_one_and_a_half_ulp(fn: Fn) -> None:
    """Every pair of special values too; `pow` of negative bases, odd and even powers."""
    rng = np.random.default_rng(6)
    near, steep = 1 + rng.standard_normal(20000) * 1e-4, rng.standard_normal(20000) * 1e5
    some, powers = rng.standard_normal(20000) * 10.0 ** rng.uniform(-3, 3, 20000), rng.integers(-9, 10, 20000)
    special = [g.ravel() for g in np.meshgrid(SPECIAL, SPECIAL)]
    x = np.concatenate([special[0], wild(rng, 20000), near, some, np.abs(some)]).astype(np.float32)
    y = np.concatenate([special[1], wild(rng, 20000), steep, powers, rng.uniform(-9, 9, 20000)]).astype(np.float32)
    with np.errstate(all="ignore"):
        exact = NUMPY[fn](x.astype(np.float64), y.astype(np.float64))
    off = ulps(value(fn, dtypes.float32, x, y), exact)
    worst = np.argmax(off)
    assert (float(off[worst]), x[worst], y[worst]) < (1.5,)


def test_the_float32_nearest_to_a_quarter_turn_keeps_its_digits() -> None:
    """Among all float32 this one lies closest to a multiple of pi / 2: 30 leading bits cancel."""
    x = np.array([16367173 * 2.0**72], np.float32)
    exact = math.cos(float(x[0]))
    assert abs(exact) < 2e-9
    assert abs(float(value(Fn.COS, dtypes.float32, x)[0]) / exact - 1) < 2**-23


def test_float64_specials_do_not_raise() -> None:
    assert value(Fn.LOG, dtypes.float64, np.array([0.0, -1.0, np.inf])).tolist()[0] == -math.inf
    assert value(Fn.POW, dtypes.float64, np.array([2.0]), np.array([0.5])).tolist() == [math.sqrt(2)]
    assert value(Fn.RSQRT, dtypes.float64, np.array([4.0])).tolist() == [0.5]
    small = value(Fn.SIGMOID, dtypes.float64, np.array([-700.0, 0.0, 800.0]))
    assert small.tolist() == [math.exp(-700.0), 0.5, 1.0]


def test_float16_functions_are_float32s_rounded() -> None:
    every = np.arange(2**16, dtype=np.uint32).astype(np.uint16).view(np.float16)
    wanted = value(Fn.EXP, dtypes.float32, every.astype(np.float32))
    with np.errstate(over="ignore"):
        assert np.array_equal(value(Fn.EXP, dtypes.float16, every), wanted.astype(np.float16), equal_nan=True)


def test_classification_and_sign() -> None:
    x = np.array([0.0, -0.0, 3, -3, np.inf, -np.inf, np.nan], np.float32)
    arg = (Local(dtypes.float32, "x"),)
    assert primitive(Call(dtypes.bool_, Fn.ISINF, arg), [x]).tolist() == np.isinf(x).tolist()
    assert primitive(Call(dtypes.bool_, Fn.ISFINITE, arg), [x]).tolist() == np.isfinite(x).tolist()
    assert primitive(Call(dtypes.bool_, Fn.ISNAN, arg), [x]).tolist() == np.isnan(x).tolist()
    assert np.array_equal(value(Fn.SIGN, dtypes.float32, x), np.sign(x), equal_nan=True)
    assert value(Fn.SIGN, dtypes.int8, np.int8([-128, 0, 5])).tolist() == [-1, 0, 1]
    assert value(Fn.SIGN, dtypes.uint8, np.uint8([200, 0, 5])).tolist() == [1, 0, 1]


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64])
@pytest.mark.parametrize("fn", [*NUMPY, Fn.SIGN])
def test_an_expansion_is_primitive_and_keeps_axes(fn: Fn, dtype: DType) -> None:
    """It stands over the very arguments, so that sharing stays; every node has the axes of the arguments."""
    axes = (Axis("i", 8),)
    args = tuple(Local(dtype, name, axes=axes) for name in "xy"[: 2 if fn in (Fn.ATAN2, Fn.POW, Fn.HYPOT) else 1])
    root = expand(Call(dtype, fn, args, axes=axes))
    nodes = postorder([root])
    assert root.dtype == dtype
    assert {id(node) for node in nodes if isinstance(node, Local)} == set(map(id, args))
    assert all(is_primitive(node) for node in nodes if isinstance(node, Call))
    assert all(node.axes == axes for node in nodes if type(node).__name__ != "Const")
    assert all(node.fn in PRIMITIVES for node in nodes if isinstance(node, Call))
