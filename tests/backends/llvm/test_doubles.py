"""float64 functions in machine code: in lanes, without a call, and with the bits of the oracle."""

from __future__ import annotations

import re

import numpy as np
import pytest

import stax as sx
from stax.expr import double
from stax.expr.nodes import Fn
from stax.testing import interpret

x = sx.Var("x")
HARD = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        709.5,
        -745.0,
        np.inf,
        -np.inf,
        np.nan,
        5e-324,
        -2e-310,
        1e300,
        1e22,
        0.84375,
        0.41421356,
    ]
)


@pytest.mark.parametrize("fn", [*double.ONE, *double.TWO])
def test_a_function_runs_in_lanes_and_gives_the_oracles_bits(fn: Fn) -> None:
    """37 values: full vectors and a tail."""
    a, b, f = sx.Input("a", sx.float64, 1), sx.Input("b", sx.float64, 1), sx.Func("f")
    word = getattr(sx, fn.value)
    f[x] = word(a[x], b[x]) if fn in double.TWO else word(a[x]) + 0 * b[x]
    s = sx.Schedule(f)
    s[f].vectorize(x, 8)
    kernel = sx.compile(f, s, strict_native=True)
    text = kernel.source("llvm")
    called = set(re.findall(r"call [^@]*@([\w.]+)\(", text))
    assert all(name.startswith("llvm.") for name in called), called
    assert "<8 x double>" in text
    rng = np.random.default_rng(3)
    wild = rng.integers(0, 2**64, 21, np.uint64).view(np.float64)
    given = {"a": np.concatenate([HARD, wild]), "b": np.concatenate([rng.permutation(HARD), rng.standard_normal(21)])}
    given["b"] = given["b"] if fn in double.TWO else np.zeros(37)
    wanted, found = interpret(f, given), kernel(**given)
    same = (wanted.view(np.int64) == found.view(np.int64)) | (np.isnan(wanted) & np.isnan(found))
    assert same.all(), (given["a"][~same], wanted[~same], found[~same])
