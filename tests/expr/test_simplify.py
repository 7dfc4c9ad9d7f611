"""Each rule by brute force: float16 values against each other, all integers of 8 bits, and random graphs."""

import random

import numpy as np
import pytest

from stax import dtypes
from stax.dtypes import DType
from stax.expr import build
from stax.expr.evaluate import evaluate
from stax.expr.nodes import COMPARES, Binary, BinaryOp, Call, Cast, Const, Expr, Fn, Local, Select, Unary, UnaryOp
from stax.expr.simplify import simplify, simplify_all
from stax.expr.walk import postorder

EVERY_HALF = np.arange(2**16, dtype=np.uint32).astype(np.uint16).view(np.float16)
SOME_HALVES = np.float16([0, -0.0, 1, -1, 1.5, 6e-8, -6e-8, 65504, -65504, np.inf, -np.inf, np.nan, 3, 0.1])


def values(dtype: DType, other: bool) -> np.ndarray:
    """Return values of `dtype`, such that those of two names meet in all pairs."""
    if dtype.is_bool:
        every = np.array([False, True])
    elif dtype.is_integer:
        every = np.arange(dtype.low, dtype.high + 1) if dtype.bits == 8 else np.array([dtype.low, -3, 0, 5, dtype.high])
        every = every.astype(dtype.dtype)
    else:
        every = (SOME_HALVES if other else EVERY_HALF).astype(dtype.dtype)
    return every[:, None] if other else every


def same(a: np.ndarray, b: np.ndarray) -> bool:
    equal = (a == b) & (np.signbit(a) == np.signbit(b)) if a.dtype.kind == "f" else a == b
    return a.dtype == b.dtype and bool(np.all(equal | ((a != a) & (b != b))))


def agree(before: Expr, after: Expr) -> bool:
    found = evaluate([before, after], lambda n: values(n.dtype, isinstance(n, Local) and n.name == "y"))
    return same(*np.broadcast_arrays(*found))


def operands(dtype: DType) -> list[Expr]:
    x, y = Local(dtype, "x"), Local(dtype, "y")
    numbers = [0, 1, 2, 3, 7, -1, -2] if dtype.is_signed else [0, 1, 2, 3, 8, 255]
    if dtype.is_bool:
        numbers = [0, 1]
    if dtype.is_float:
        numbers = [0.0, -0.0, 1.0, -1.0, 2.0, 0.25, 3.0, float("inf"), float("nan"), 6e-8, 32768.0, -4.0]
    return [x, y, *(Const(dtype, n) for n in numbers)]


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8, dtypes.bool_, dtypes.float16])
def test_every_operator_of_two_keeps_its_value_with_every_kind_of_operand(dtype: DType) -> None:
    """Names, equal names and the constants that rules look for, on both sides."""
    smaller = 0
    for op in BinaryOp:
        if (op is BinaryOp.DIV and not dtype.is_float) or (dtype.is_bool and op is BinaryOp.SUB):
            continue
        if dtype.is_float and op in (BinaryOp.AND, BinaryOp.OR, BinaryOp.XOR, BinaryOp.SHL, BinaryOp.SHR):
            continue
        result = dtypes.bool_ if op in COMPARES else dtype
        for left in operands(dtype):
            for right in operands(dtype):
                before = Binary(result, op, left, right)
                after = simplify(before)
                smaller += after is not before
                assert agree(before, after), f"{left} {op.value} {right}"
    assert smaller > 30


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8, dtypes.int64, dtypes.bool_])
def test_random_graphs_keep_their_value(dtype: DType) -> None:
    rng = random.Random(7)
    ops = [op for op in BinaryOp if op is not BinaryOp.DIV and not (dtype.is_bool and op is BinaryOp.SUB)]
    for _ in range(150):
        pool = operands(dtype)
        for _ in range(12):
            op = rng.choice(ops)
            a, b = rng.choice(pool), rng.choice(pool)
            if op in COMPARES:
                cond: Expr = Binary(dtypes.bool_, op, a, b)
                cond = Unary(dtypes.bool_, UnaryOp.NOT, cond) if rng.random() < 0.5 else cond
                pool.append(Select(dtype, cond, rng.choice(pool), rng.choice(pool)))
            elif rng.random() < 0.2:
                pool.append(
                    Unary(dtype, rng.choice([UnaryOp.NOT, UnaryOp.ABS, *([] if dtype.is_bool else [UnaryOp.NEG])]), a)
                )
            else:
                pool.append(Binary(dtype, op, a, b))
        after = simplify(pool[-1])
        assert agree(pool[-1], after)
        assert len(postorder([after])) <= len(postorder([pool[-1]]))


def test_chains_of_casts_keep_their_value() -> None:
    """All chains of three types that start at one whose every value can be tried."""
    shorter = 0
    for source in (dtypes.bool_, dtypes.int8, dtypes.uint8, dtypes.float16):
        for middle in dtypes.ALL:
            for target in dtypes.ALL:
                before = Cast(target, Cast(middle, Local(source, "x")))
                after = simplify(before)
                shorter += len(postorder([after])) < 3
                assert agree(before, after), f"{source} {middle} {target}"
    assert shorter > 150


def test_wide_integers_lose_no_bits_by_shorter_casts() -> None:
    numbers = np.array([-(2**63), -1, 2**40 + 7, 2**31, 2**63 - 1])
    for middle in dtypes.ALL:
        for target in dtypes.ALL:
            before = Cast(target, Cast(middle, Local(dtypes.int64, "x")))
            assert same(*evaluate([before, simplify(before)], lambda _: numbers))


def test_fma_with_one_or_minus_zero_is_one_operator() -> None:
    x, y = Local(dtypes.float16, "x"), Local(dtypes.float16, "y")
    one, minus = Const(dtypes.float16, 1.0), Const(dtypes.float16, -0.0)
    for args, op in (((x, one, y), BinaryOp.ADD), ((one, x, y), BinaryOp.ADD), ((x, y, minus), BinaryOp.MUL)):
        before = Call(dtypes.float16, Fn.FMA, args)
        after = simplify(before)
        assert isinstance(after, Binary)
        assert after.op is op
        assert agree(before, after)
    kept = Call(dtypes.float16, Fn.FMA, (x, y, Const(dtypes.float16, 0.0)))
    assert simplify(kept) is kept


def test_unary_operators_of_every_half_keep_their_value() -> None:
    x: Expr = Local(dtypes.float16, "x")
    for first in (UnaryOp.NEG, UnaryOp.ABS):
        for second in (UnaryOp.NEG, UnaryOp.ABS):
            before = Unary(dtypes.float16, first, Unary(dtypes.float16, second, x))
            assert agree(before, simplify(before))
    assert simplify(Unary(dtypes.float16, UnaryOp.NEG, Unary(dtypes.float16, UnaryOp.NEG, x))) is x


def test_equal_nodes_become_one() -> None:
    a, b = (build.add(Local(dtypes.int32, "x"), Local(dtypes.int32, "y")) for _ in range(2))
    left, right = simplify_all([a, b])
    assert left is right
    assert simplify(Binary(dtypes.int32, BinaryOp.SUB, a, b)).dtype == dtypes.int32
    assert build.integer(simplify(Binary(dtypes.int32, BinaryOp.SUB, a, b))) == 0


def test_constants_of_the_c_library_are_left_alone() -> None:
    """A compiled object may run with another one."""
    node = Call(dtypes.float64, Fn.EXP, (Const(dtypes.float64, 1.0),))
    assert simplify(node) is node


def test_a_deep_chain_is_one_sum() -> None:
    node: Expr = Local(dtypes.int32, "x")
    for _ in range(5000):
        node = Binary(dtypes.int32, BinaryOp.ADD, node, Const(dtypes.int32, 1))
    after = simplify(node)
    assert isinstance(after, Binary)
    assert build.integer(after.right) == 5000
