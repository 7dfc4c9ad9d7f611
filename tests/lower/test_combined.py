"""What a store that combines values into its cell adds to it."""

import numpy as np
import pytest

import stax as sx


@pytest.mark.parametrize("lanes", [None, 8])
@pytest.mark.parametrize("op", ["+", "-", "min"])
def test_threads_join_in_cells_that_a_rounded_tail_goes_past(lanes: int | None, op: str) -> None:
    """The cell is read under a mask there, and what is past the end is joined with padding."""
    y, a = sx.Var("y"), sx.Input("a", sx.int16, 2)
    r = sx.RDom("r", j=a.shape[1])
    f, g = sx.Func("f"), sx.Func("g")
    f[y] = sx.int16(0)
    term = a[y, r.j]
    f[y] = {"+": f[y] + term, "-": f[y] - term, "min": sx.minimum(f[y], term)}[op]
    g[y] = f[y] * 2
    s = sx.Schedule(g)
    s[f].compute_root()
    update = s[f].update(0).split("y", "o", "i", 8, tail="round_up").atomic().parallel("r.j")
    if lanes is not None:
        update.vectorize("i", lanes)
    given = np.random.default_rng(1).integers(-9, 9, (13, 5)).astype(np.int16)
    total = {"+": given.sum(1), "-": -given.sum(1), "min": np.minimum(given.min(1), 0)}[op]
    np.testing.assert_array_equal(sx.compile(g, s, strict_native=True)(given, threads=2), total * 2)


def test_threads_join_in_sums_whose_constants_were_gathered() -> None:
    """Of `cell + (a + (b - 6))` the constant comes last, so that the cell is not at the root of the sum."""
    y, a = sx.Var("y"), sx.Input("a", sx.int16, 2)
    r = sx.RDom("r", j=a.shape[1])
    f = sx.Func("f")
    f[y] = sx.int16(1)
    f[y] = f[y] + (a[y, 0] + (a[y, r.j] + (-6)))
    s = sx.Schedule(f)
    s[f].update(0).atomic().parallel("r.j")
    given = np.random.default_rng(1).integers(-9, 9, (13, 5)).astype(np.int16)
    expected = 1 + given.sum(1) + 5 * (given[:, 0] - 6)
    np.testing.assert_array_equal(sx.compile(f, s, strict_native=True)(given, threads=2), expected)
