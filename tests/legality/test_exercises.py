"""Exercises of "Stax (5): Caching and Measurement" whose answers are verdicts on schedules, or bounds."""

import numpy as np
import pytest

import stax as sx
from stax.errors import LegalityError

i, j = sx.vars("i j")
U = 2.0**-24


def exercise_50() -> sx.Func:
    """Return a recurrence of distances (1, 0), (0, 1) and (1, -1)."""
    v = sx.Func("v", dtype=sx.int64, shape=(20, 30))
    v[0, j] = j
    v[i, j] = sx.select((j > 0) & (j < 29), v[i - 1, j] + v[i, j - 1] + v[i - 1, j + 1], i)
    return v


def test_exercise_50_loops_that_a_dependence_runs_against_are_not_exchanged() -> None:
    """(1, -1) becomes (-1, 1)."""
    v = exercise_50()
    s = sx.Schedule(v)
    s[v].reorder(j, i)
    with pytest.raises(LegalityError, match="in an order that changes its values") as refused:
        sx.check(v, s)
    assert "flow dependence at distance (1, -1)" in str(refused.value)
    assert 'skew("j", "i", 1)' in str(refused.value)


def test_exercise_50_after_a_skew_they_are_and_tiles_are_right() -> None:
    """Skewed by j += i, the distances are (1, 1), (0, 1) and (1, 0): loops may be exchanged and tiled."""
    v = exercise_50()
    exchanged, tiled = sx.Schedule(v), sx.Schedule(v)
    exchanged[v].skew(j, i, 1).reorder(j, i)
    tiled[v].skew(j, i, 1).tile(("i", "j"), ("io", "jo"), ("ii", "ji"), (4, 8))
    want = sx.realize(v)
    for s in (exchanged, tiled):
        assert np.array_equal(sx.compile(v, s, strict_native=True)(), want)


def exercise_33(distance: int) -> tuple[sx.Func, sx.Func]:
    """Return B, and C that reads it `distance` further."""
    a, b, c = sx.Input("a", sx.int32, 1), sx.Func("b"), sx.Func("c")
    b[i] = a[i] * 3
    c[i] = sx.select(i + distance >= 0, b[i + distance] + 1, -1)
    return b, c


def sharing(distance: int, *, parallel: bool) -> tuple[tuple[sx.Func, sx.Func], sx.Schedule]:
    b, c = exercise_33(distance)
    s = sx.Schedule((b, c))
    for f in (b, c):
        s[f].compute_root()
        if parallel:
            s[f].parallel(i)
    s[c].compute_with(b, i)
    return (b, c), s


def test_exercise_33_a_read_of_the_iteration_before_may_share_a_loop_that_is_serial() -> None:
    funcs, s = sharing(-1, parallel=False)
    sx.check(funcs, s)
    a = np.arange(9, dtype=np.int32)
    b, c = sx.compile(funcs, s, strict_native=True)(a)
    assert np.array_equal(b, a * 3)
    assert np.array_equal(c, np.concatenate([[-1], b + 1]))


@pytest.mark.parametrize(("distance", "parallel"), [(-1, True), (1, False), (1, True)])
def test_exercise_33_other_reads_may_not(distance: int, parallel: bool) -> None:
    """In a parallel loop the iteration before may not be done, and in a serial one that after is not."""
    funcs, s = sharing(distance, parallel=parallel)
    with pytest.raises(LegalityError, match="`c` would read `b` before it is computed"):
        sx.check(funcs, s)


def test_the_bounds_of_the_row_sums_of_example_1_1_are_those_of_the_seed() -> None:
    """Rows of 2048 with a sum of 2300: 0.2806 in turn, 0.0195 in sixteen lanes."""
    a = sx.Input("a", sx.float32, 2)
    out, k = sx.Func("out"), sx.RDom("k", k=a.shape[1])
    out[i] = sx.sum(a[i, k], k)
    in_turn, lanes = sx.Schedule(out), sx.Schedule(out)
    in_turn[out].compute_root()
    lanes[out].update(0).reassociate().vectorize("k.k", 16)
    given = np.zeros((1, 2048), np.float32)
    bounds = [sx.compile(out, s).error_bound(given) * U * 2300 for s in (in_turn, lanes)]
    assert bounds == pytest.approx([0.2806, 0.0195], rel=2e-3)
