"""Where loops are cut so that the middle has no conditions."""

import numpy as np

import stax as sx


def _loops(f: sx.Func, lanes: int) -> list[str]:
    s = sx.Schedule(f)
    s[f].vectorize("x", lanes)
    return [line for line in sx.compile(f, s).source("loops").splitlines() if "for " in line]


def test_an_edge_that_a_row_is_clamped_at_cuts_no_loop_over_rows() -> None:
    """It is asked once a row, while a copy of the row's loops would be compiled for each answer."""
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.float32, 2)
    f = sx.Func("f", shape=(a.shape[0], a.shape[1]))
    f[y, x] = a[sx.clip(y - 1, 0, a.shape[0] - 1), x]
    assert sum("f.y" in line.split(" in ")[0] for line in _loops(f, 8)) == 1


def test_an_edge_in_the_innermost_loop_cuts_it() -> None:
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.float32, 2)
    f = sx.Func("f", shape=(a.shape[0], a.shape[1]))
    f[y, x] = a[y, sx.clip(x - 1, 0, a.shape[1] - 1)]
    inner = [line for line in _loops(f, 8) if "f.x" in line.split(" in ")[0]]
    assert len(inner) >= 3


def test_lanes_that_do_not_fill_a_vector_are_not_written_out_once_a_row() -> None:
    """The tile at the edge has loops over lanes, once and not once for each of its eight rows."""
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.float32, 2)
    f = sx.Func("f", shape=(a.shape[0], a.shape[1]))
    f[y, x] = a[y, x] + 1
    s = sx.Schedule(f)
    s[f].tile(("y", "x"), ("yo", "xo"), ("y", "x"), (8, 16)).unroll("y").vectorize("x")
    k = sx.compile(f, s, strict_native=True)
    stores = [line for line in k.source("loops").splitlines() if "+ 1.0" in line]
    assert len(stores) == 8 + 2 * 2  # a whole tile; lanes in eights and those left over, at both edges
    values = np.arange(21 * 37, dtype=np.float32).reshape(21, 37)
    np.testing.assert_array_equal(k(values), values + 1)
