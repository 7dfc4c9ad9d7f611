"""Values made of positions, by long chains: lowering takes time in proportion, not more."""

from __future__ import annotations

import time

import numpy as np

import stax as sx


def test_a_long_chain_of_selects_on_a_position() -> None:
    """Each condition is on what the last select made: it took exponential time to bound, and LLVM long to follow."""
    x, f = sx.Var("x"), sx.Func("f")
    e, v = x, np.arange(50)
    for k in range(120):
        e = sx.select(e > k, e - 1, e + 2) if k % 2 else -e
        v = np.where(v > k, v - 1, v + 2) if k % 2 else -v
    f[x] = e
    start = time.process_time()
    got = sx.compile(f, strict_native=True, options=sx.Options(cache=False))(shape=(50,))
    assert (got == v).all()
    assert time.process_time() - start < 20


def test_a_wide_sum_with_constants_inside() -> None:
    """LLVM's time was quadratic: 500 terms took 20 s."""
    x, f = sx.Var("x"), sx.Func("f")
    a = sx.Input("a", sx.int32, 1)
    e, v = sx.int32(0), np.arange(40, dtype=np.int32)
    for k in range(600):
        e = e + (a[x] * k + 1)
    f[x] = e
    start = time.process_time()
    got = sx.compile(f, strict_native=True, options=sx.Options(cache=False))(v)
    assert (got == v * (600 * 599 // 2) + 600).all()
    assert time.process_time() - start < 15
