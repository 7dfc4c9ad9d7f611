"""Bytes that a schedule moves are those that one counts by hand, and no schedule is below the least."""

import numpy as np
import pytest

import stax as sx
from stax.errors import ArgumentError
from stax.measure.traffic import Traffic

y, x = sx.vars("y x")


def example_1_1(total: bool = True) -> sx.Func:
    """Return ((a + w).relu() * 2).sum(-1), an operator a Func."""
    a, w = sx.Input("a", sx.float32, 2), sx.Input("w", sx.float32, 2)
    added, positive, twice, out = (sx.Func(name) for name in ("added", "positive", "twice", "out"))
    added[y, x] = a[y, x] + w[y, x]
    positive[y, x] = sx.maximum(added[y, x], 0)
    twice[y, x] = positive[y, x] * 2
    k = sx.RDom("k", k=a.shape[1])
    out[y] = sx.sum(twice[y, k], k)
    return out if total else twice


def example_7_2() -> tuple[sx.Func, sx.Func]:
    """Return two reductions, each of an exp of its own."""
    a = sx.Input("a", sx.float32, 2)
    k = sx.RDom("k", k=a.shape[1])
    first, second, total, most = (sx.Func(name) for name in ("first", "second", "total", "most"))
    first[y, x] = sx.exp(a[y, x])
    second[y, x] = sx.exp(a[y, x])
    total[y] = sx.sum(first[y, k], k)
    most[y] = sx.max(second[y, k], k, initial=0.0)
    return total, most


def test_example_1_1_moves_a_quarter_and_no_more_than_it_must_before_it_is_compiled() -> None:
    """Example 1.1 of the seed at its size: rho 4.0, 1.00x the bound."""
    found = sx.traffic(example_1_1(), a=(8192, 2048), w=(8192, 2048))
    assert found.rho == pytest.approx(4.0, rel=1e-3)
    assert found.over_least == pytest.approx(1.0, rel=1e-3)
    assert "rho 4.00" in str(found)
    assert "moved 1.00x" in str(found)


def test_exercise_1_counts_what_the_seed_counts() -> None:
    """Of n rows of 128: 4100 n bytes operator by operator, 1028 n at least, and without the sum 7 N against 3 N."""
    n = 1000
    found = sx.traffic(example_1_1(), a=(n, 128))
    assert (found.bytes_apart, found.bytes_least) == (4100 * n, 1028 * n)
    assert found.bytes_apart / found.bytes_least == pytest.approx(3.988, abs=5e-4)
    assert found.bytes_moved == 1036 * n, "the clear of `out` is a nest of its own"
    found = sx.traffic(example_1_1(total=False), a=(n, 128))
    assert (found.bytes_apart, found.bytes_moved) == (4 * 7 * 128 * n, 4 * 3 * 128 * n)


def test_exercise_34_counts_a_write_as_one_and_a_half() -> None:
    """(5 + 3 * 1.5) / 2 of Exercise 34.3, but for the row sums."""
    found = sx.traffic(example_1_1())
    assert found.ratio(1.5) == 4.75
    assert found.rho == 4.0
    assert sx.traffic(example_1_1(), a=(8192, 2048)).ratio(1.5) == pytest.approx(4.75, rel=1e-3)


def test_sizes_that_nobody_says_are_symbols() -> None:
    found = sx.traffic(example_1_1())
    assert str(found.moved) == "8*a.shape[0]*a.shape[1] + 12*a.shape[0]"
    assert (found.bytes_moved, found.bytes_apart, found.bytes_least) == (None, None, None)
    assert (found.rho, found.over_least) == (4.0, 1.0)


def test_example_7_2_stores_no_exp_and_shares_one_pass_where_a_schedule_says_so() -> None:
    """6 N Func by Func; two passes over the input without a word, one with compute_with: rho 3 and 6."""
    funcs = example_7_2()
    assert sx.traffic(funcs).rho == 3.0
    s = sx.Schedule(funcs)
    s["total"].update(0).parallel(y, 64)
    s["most"].update(0).parallel(y, 64).compute_with(s["total"].update(0), "y.in")
    found = sx.traffic(funcs, s)
    assert (found.rho, found.over_least) == (6.0, 1.0)


def test_what_is_stored_whole_is_written_and_read_and_what_is_kept_in_rows_is_not() -> None:
    a = sx.Input("a", sx.uint16, 2)
    rows, blur = sx.Func("rows"), sx.Func("blur")
    rows[y, x] = (a[y, x] + a[y, x + 1] + a[y, x + 2]) // 3
    blur[y, x] = (rows[y, x] + rows[y + 1, x] + rows[y + 2, x]) // 3
    read, between, out = 102 * 202 * 2, 102 * 200 * 2, 100 * 200 * 2

    def moved(*say: str) -> int | None:
        s = sx.Schedule.parse("\n".join(("# stax schedule 1", *say)), blur)
        return sx.traffic(blur, s, blur=(100, 200)).bytes_moved

    assert moved('s["rows"].compute_root()') == read + 2 * between + out
    assert moved('s["rows"].inline()') == read + out
    assert moved('s["blur"].split("y", "yo", "y", 8)', 's["rows"].compute_at("blur", "yo")') == read + out
    assert moved('s["rows"].store_root().compute_at("blur", "y").fold_storage("y", 4)') == read + out


def test_planes_are_no_rows() -> None:
    """What is kept of three dims at a loop over the first is a plane, which no cache is taken to hold."""
    c = sx.Var("c")
    a, f, g = sx.Input("a", sx.float32, 3), sx.Func("f"), sx.Func("g")
    f[c, y, x] = sx.exp(a[c, y, x])
    g[c, y, x] = f[c, y, x] + f[c, y, x + 1] * f[c, y + 1, x]
    whole, at_plane, at_row = (sx.Schedule(g) for _ in range(3))
    whole["f"].compute_root()
    at_plane["f"].compute_at("g", "c")
    at_row["f"].compute_at("g", "y")
    assert sx.traffic(g, whole).rho == 1.0
    assert sx.traffic(g, at_plane).rho == 1.0
    assert sx.traffic(g, at_row).rho == 2.0
    assert sx.traffic(g, at_plane, a=(3, 1000, 1000)).rho == pytest.approx(1.0, rel=1e-2)
    assert sx.traffic(g, at_plane, a=(3, 100, 100)).rho == pytest.approx(2.0, rel=1e-2), "a small plane stays in caches"


def test_a_recurrence_reads_its_planes_back_and_not_its_rows() -> None:
    t = sx.Var("t")
    plate, steps = sx.Input("plate", sx.float32, 2), sx.Param("steps", sx.int64, low=0)
    u, heat = sx.Func("u", shape=(steps + 1, *plate.shape)), sx.Func("heat")
    u[0, y, x] = plate[y, x]
    u[t, y, x] = u[t - 1, y, x] * 2
    heat[y, x] = u[steps, y, x]
    found = sx.traffic(heat, plate=(1000, 2000), steps=10)
    plane = 1000 * 2000 * 4
    assert found.bytes_moved == 24 * plane
    assert found.bytes_least == 2 * plane
    b = sx.Input("b", sx.float32, 2)
    v = sx.Func("v", dtype=sx.float32, shape=b.shape)
    v[0, x] = b[0, x]
    v[y, x] = v[y - 1, x] + b[y, x]
    assert sx.traffic(v, b=(1000, 2000)).bytes_moved == 2 * plane


def test_reads_that_lie_apart_are_not_counted_with_what_lies_between() -> None:
    a, f = sx.Input("a", sx.float32, 1), sx.Func("f")
    f[x] = a[x] + a[x + 1] + a[x + 1000]
    found = sx.traffic(f, f=(10,))
    assert found.least.read.number == 4 * (11 + 10)
    assert found.bytes_moved == found.bytes_least


def test_a_thousand_reads_that_lie_apart_are_counted_in_time() -> None:
    a, f = sx.Input("a", sx.float32, 1), sx.Func("f")
    total = a[x]
    for k in range(1, 1000):
        total = total + a[x + 100 * k]
    f[x] = total
    found = sx.traffic(f, f=(10,))
    assert 4 * 10 * 1000 <= found.least.read.number <= 4 * (99_900 + 10)


def test_parts_that_nobody_reads_are_not_read() -> None:
    a, pair, f = sx.Input("a", sx.float32, 1), sx.Func("pair"), sx.Func("f")
    pair[x] = (a[x] * 2, sx.cast(a[x], sx.float64))
    f[x] = pair[x][0] + pair[x + 1][0]
    s = sx.Schedule(f)
    s["pair"].compute_root()
    first, second = sx.traffic(f, s, f=(100,)).passes
    assert (first.written.number, second.read.number) == (101 * 12, 101 * 4)


def test_a_kernel_is_counted_by_its_own_schedule() -> None:
    f = example_1_1(total=False)
    s = sx.Schedule(f)
    s["added"].compute_root()
    kernel = sx.compile(f, s)
    a = np.zeros((16, 32), np.float32)
    found = sx.traffic(kernel, a=a)
    assert isinstance(found, Traffic)
    assert found.bytes_moved == 4 * 5 * 16 * 32
    with pytest.raises(ArgumentError, match="a kernel has its schedule already"):
        sx.traffic(kernel, s)


def test_what_is_said_of_sizes_must_be_of_the_program() -> None:
    f = example_1_1()
    with pytest.raises(ArgumentError, match="there is no Input, output or Param 'b'"):
        sx.traffic(f, b=(1, 2))
    with pytest.raises(ArgumentError, match="'a' has 2 dims, and 1 extents are given"):
        sx.traffic(f, a=(1,))
    with pytest.raises(ArgumentError, match="cannot have the shape"):
        sx.traffic(f, a=(1, -2))


def test_a_sum_of_narrow_params_is_a_number_once_they_are_given():
    t, x = sx.vars("t x")
    a, steps = sx.Input("a", sx.float32, 1), sx.Param("steps", sx.int32)
    u, last = sx.Func("u", shape=(steps, a.shape[0])), sx.Func("last")
    u[0, x] = a[x]
    u[t, x] = u[t - 1, x] * 2
    last[x] = u[steps - 1, x]
    assert "index(" not in str(sx.traffic(last))
    assert sx.traffic(last, a=(1000,), steps=50).moved.number is not None
