"""Brute force: on every point, a part that does not hold implies that the condition has the other value."""

import itertools

import numpy as np
import pytest

from stax import dtypes
from stax.algorithm.conditions import affine_parts
from stax.expr import build
from stax.expr.evaluate import evaluate
from stax.expr.nodes import Binary, BinaryOp, Cast, Expr, Param, Read, Select, Size, Unary, UnaryOp, Var
from stax.expr.walk import postorder

X, Y = Var(dtypes.int64, "x"), Var(dtypes.int64, "y")
N = Size(dtypes.int64, "a", 0)
DATA = build.less(Read(dtypes.int64, "a", (X,)), build.const(3, dtypes.int64))
EDGE = build.less(X, Y)
INSIDE = build.both(build.less_equal(build.const(0, dtypes.int64), X), build.less(X, N))
EVEN = Binary(dtypes.bool_, BinaryOp.EQ, build.mod(X, 2), build.const(0, dtypes.int64))


def either(a: Expr, b: Expr) -> Expr:
    return Binary(dtypes.bool_, BinaryOp.OR, a, b)


def inverse(a: Expr) -> Expr:
    return Unary(dtypes.bool_, UnaryOp.NOT, a)


CONDITIONS = [
    (INSIDE, "exact", "exact"),
    (EVEN, "exact", "exact"),
    (DATA, None, None),
    (build.both(INSIDE, DATA), "some", None),
    (inverse(build.both(EDGE, DATA)), None, "some"),
    (either(EDGE, DATA), None, "some"),
    (either(build.both(EDGE, DATA), build.both(EVEN, DATA)), "some", None),
    (inverse(either(inverse(EDGE), DATA)), "some", None),
    (Select(dtypes.bool_, EDGE, build.both(EVEN, DATA), INSIDE), "some", "some"),
    (Select(dtypes.bool_, DATA, EDGE, EVEN), "some", "some"),
    (Binary(dtypes.bool_, BinaryOp.XOR, EDGE, DATA), None, None),
    (Binary(dtypes.bool_, BinaryOp.XOR, EDGE, EVEN), "exact", "exact"),
]


@pytest.mark.parametrize("case", range(len(CONDITIONS)))
def test_the_part_follows_from_the_condition_and_reads_nothing(case: int) -> None:
    cond, yes, no = CONDITIONS[case]
    for holds, wanted in ((True, yes), (False, no)):
        part = affine_parts([cond])[0][0 if holds else 1]
        assert (part is None) == (wanted is None)
        if part is None:
            continue
        assert not any(isinstance(node, Read) for node in postorder([part]))
        for x, y, data in itertools.product(range(-3, 7), range(-3, 4), (0, 9)):
            values = {"x": x, "y": y, "a": 4}

            def leaf(node: Expr, values: dict[str, int] = values, data: int = data) -> np.ndarray:
                match node:
                    case Var(name=name):
                        return np.array(values[name])
                    case Size(array=name):
                        return np.array(values[name])
                    case _:
                        return np.array(data)

            here, follows = evaluate([cond, part], leaf)
            assert bool(here) != holds or bool(follows)
            if wanted == "exact":
                assert (bool(here) == holds) == bool(follows)


def test_floats_protect_nothing_and_integer_params_do() -> None:
    level = build.less(Cast(dtypes.float32, X), Param(dtypes.float32, "p"))
    steps = build.less(Cast(dtypes.int64, Param(dtypes.int32, "n")), X)
    assert affine_parts([level, steps])[0] == (None, None)
    assert affine_parts([steps])[0][0] is steps


def test_a_deep_shared_condition_costs_its_nodes() -> None:
    cond = either(EDGE, DATA)
    for _ in range(5000):
        cond = build.both(cond, cond)
    assert affine_parts([cond])[0][0] is None
    part = affine_parts([inverse(cond)])[0][0]
    assert part is not None
    assert len(postorder([part])) < 10000
