"""Three exercises on fusing and reordering loops, and the verdicts that the literature gives."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.errors import LegalityError

y, x = sx.vars("y x")


def fused(at: int, parallel: bool = False) -> tuple[sx.Func, sx.Schedule]:
    """Return `b`, whose iteration x reads what those of `a` write at x and x + at, in the loops of `a`."""
    given = sx.Input("given", sx.int32, 1)
    a, b = sx.Func("a", shape=given.shape), sx.Func("b", shape=given.shape)
    inside = (x + at >= 0) & (x + at < given.shape[0])
    a[x] = given[x] * 2
    b[x] = sx.select(inside, a[x + at], 0) + a[x]
    s = sx.Schedule(b)
    s[a].compute_root()
    s[b].compute_root()
    if parallel:
        s[a].parallel(x)
        s[b].parallel(x)
    s[b].compute_with(a, x)
    return b, s


def seidel() -> tuple[sx.Func, sx.Schedule]:
    """Return an update with the distances (1, 0), (0, 1) and (1, -1)."""
    a = sx.Input("a", sx.int32, 2)
    g = sx.Func("g", shape=a.shape)
    r = sx.RDom("r", i=(1, a.shape[0]), j=(1, a.shape[1] - 1))
    g[y, x] = a[y, x]
    g[r.i, r.j] = g[r.i - 1, r.j] + g[r.i, r.j - 1] + g[r.i - 1, r.j + 1]
    return g, sx.Schedule(g)


def test_a_reader_of_the_next_iteration_is_not_fused() -> None:
    """Exercise 19: fused in order it would read a value that is not there yet."""
    with pytest.raises(LegalityError, match="`b` would read `a` before it is computed") as error:
        sx.check(*fused(1))
    assert "it runs 0 iterations of loop `x` behind" in str(error.value)


def test_a_reader_of_the_iteration_before_is_fused_in_order_and_not_in_parallel() -> None:
    """Exercise 33: the distance is 1; read one ahead, neither will do."""
    b, s = fused(-1)
    given = np.arange(19, dtype=np.int32)
    np.testing.assert_array_equal(sx.compile(b, s, strict_native=True)(given), np.append(0, given[:-1] * 2) + given * 2)
    with pytest.raises(LegalityError):
        sx.check(*fused(-1, parallel=True))
    for parallel in (False, True):
        with pytest.raises(LegalityError):
            sx.check(*fused(1, parallel))
    sx.check(*fused(0, parallel=True))


def test_interchange_needs_a_skew_and_the_band_is_then_permutable() -> None:
    """Exercise 50: (1, -1) turns round when the loops are interchanged; j + i makes all distances positive."""
    g, s = seidel()
    s[g].update(0).reorder("r.j", "r.i")
    with pytest.raises(LegalityError, match="order that changes its values") as error:
        sx.check(g, s)
    assert "flow dependence at distance (1, -1)" in str(error.value)
    g, s = seidel()
    s[g].update(0).skew("r.j", "r.i", 1)
    for directive in (("r.j", "r.i"), ("r.i", "r.j")):
        s[g].update(0).reorder(*directive)
        sx.check(g, s)
    s[g].update(0).tile(("r.i", "r.j"), ("io", "jo"), ("ii", "ji"), (4, 4))
    sx.check(g, s)


def test_a_schedule_of_one_dimension_leaves_the_other_parallel() -> None:
    """Exercise 50 (3): 2 i + j grows by at least 1 along every distance, i + j does not along (1, -1)."""
    a = np.random.default_rng(1).integers(0, 9, (23, 31), np.int32)
    want = a.copy()
    for i in range(1, 23):
        for j in range(1, 30):
            want[i, j] = want[i - 1, j] + want[i, j - 1] + want[i - 1, j + 1]
    g, s = seidel()
    s[g].update(0).affine(((2, 1), (1, 0)), ("r.i", "r.j"), new=("wave", "i")).parallel("i")
    np.testing.assert_array_equal(sx.compile(g, s, strict_native=True)(a), want)
    g, s = seidel()
    s[g].update(0).affine(((1, 1), (1, 0)), ("r.i", "r.j"), new=("wave", "i")).parallel("i")
    with pytest.raises(LegalityError, match=r"parallel\('i'\)"):
        sx.check(g, s)
