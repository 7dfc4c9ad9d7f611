"""Loops of a proved schedule."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.lang.freeze import freeze
from stax.legality.check import check
from stax.loops.interpret import interpret as run
from stax.loops.show import show
from stax.lower.build_nests import build_nests
from stax.lower.passes import lower
from stax.testing import interpret

y, x = sx.vars("y x")


@pytest.mark.parametrize("d", [-5, -4, -2, -1, 0, 1, 3, 4, 6])
@pytest.mark.parametrize("width", [1, 2, 3, 7, 40, 200])
def test_positions_go_round_an_edge_without_a_division_in_the_steady_part(d: int, width: int) -> None:
    """Rows shorter than the step are gone round more than once."""
    a = sx.Input("a", sx.int32, 2)
    h, w = a.shape
    u, f, t = sx.Func("u", shape=(2, h, w)), sx.Func("f"), sx.Var("t")
    u[0, y, x] = a[y, x]
    u[t, y, x] = u[t - 1, (y - d) % h, (x + d) % w] * 2 + sx.cast((x + d) % w, sx.int32)
    f[y, x] = u[1, y, x]
    given = np.arange(3 * width, dtype=np.int32).reshape(3, width)
    rolled = np.roll(given, (d, -d), (0, 1)) * 2 + np.roll(np.arange(width), -d)
    kernel = sx.compile(f, strict_native=True)
    np.testing.assert_array_equal(kernel(given), rolled)
    near = [line for line in kernel.source("loops").splitlines() if "%" in line]
    assert bool(near) == (abs(d) > 4)


def test_remainders_of_other_sums_are_left_alone() -> None:
    a, r = sx.Input("a", sx.int64, 1), sx.RDom("r", k=2)
    n = a.shape[0]
    f = sx.Func("f", shape=(5,))
    f[x] = sx.sum((r - 1) % n + (2 * x) % n + (x - 1) % n, over=r)
    for size in (0, 1, 3):
        want = [sum((k - 1) % size + 2 * i % size + (i - 1) % size if size else 0 for k in range(2)) for i in range(5)]
        assert sx.compile(f, strict_native=True)(np.zeros(size, np.int64)).tolist() == want


def test_a_cell_that_is_combined_into_is_known_again_where_its_index_is_clipped() -> None:
    """Both are made simple in the same way (seed 831 of the differential test)."""
    t, a = sx.Const("t", np.array([3, -4, 9, 1, 0, 7], np.int64)), sx.Input("a", sx.int16, 1)
    r, h = sx.RDom("r", j=a.shape[0]), sx.Func("h", shape=(12, 6))
    h[y, x] = True
    cell = r.j % 12, sx.clip(t[sx.clip(r.j + 2, 0, 5)] + (-1), 0, 5)
    h[cell] = h[cell] & (a[r.j] < 3)
    s = sx.Schedule(h)
    s[h].update(0).atomic().parallel("r.j")
    given = np.arange(-4, 9, dtype=np.int16)
    want = interpret(h, {"a": given}, shape=(12, 6))
    assert (sx.compile(h, s, strict_native=True)(given, shape=(12, 6)) == want).all()


def test_what_a_condition_of_an_update_reads_past_the_end_of_a_factored_loop_is_not_read() -> None:
    """It is read whether the condition holds or not, so that the end must be asked for first."""
    a = sx.Input("a", sx.int32, 1)
    r = sx.RDom("r", j=(0, 8), where=lambda r: a[3 * r.j] > 0)
    f = sx.Func("f")
    f[()] = 0
    f[()] += a[r.j]
    s = sx.Schedule(f)
    s[f].update(0).split("r.j", "o", "i", 5).rfactor("i", "u", "part")
    kernel = sx.compile(f, s, strict_native=True)
    given = np.arange(22, dtype=np.int32) - 3
    assert kernel(given) == sum(given[j] for j in range(8) if given[3 * j] > 0)
    program, out = lower(check(freeze(f), s.lines)), np.zeros((), np.int32)
    run(program, {"a": given, "f": out}, {}, {("a", 0): 22})  # where every index is looked at
    assert out == kernel(given)


def test_a_read_is_masked_where_its_condition_narrows_the_whole_func_alone() -> None:
    """Where `f` is computed a cell at a time, `x != 1` bounds nothing (seed 995 of the differential test)."""
    c, f, g = sx.Func("c", shape=(4,)), sx.Func("f"), sx.Func("g")
    c[x] = x * 3
    f[x] = sx.select(x == 1, -5, c[sx.clip(x, 0, 3)])
    g[x] = f[x + 1]
    s = sx.Schedule(g)
    s[f].compute_at(s[g], "x")
    s[c].compute_at(s[f], "x")
    legal = check(freeze((g,)), s.lines)
    (line,) = (one for one in show(build_nests(legal)).splitlines() if "select" in one)
    assert " if " in line
    program = lower(legal)
    for n in (0, 1, 2, 3, 5):
        want = np.array([-5, 6, 9, 9, 9][:n])
        out = np.zeros(n, np.int64)
        run(program, {"g": out}, {}, {("g", 0): n})
        np.testing.assert_array_equal(out, want)
        np.testing.assert_array_equal(sx.compile(g, s, strict_native=True)(shape=(n,)), want)


def test_a_func_that_nothing_reads_has_no_updates_either() -> None:
    """Their loops are over an RDom, not over its cells (seed 990 of the differential test)."""
    a, r = sx.Input("a", sx.int64, 1), sx.RDom("r", k=(0, 3))
    h, f = sx.Func("h", shape=(2,)), sx.Func("f")
    h[x] = x
    h[a[r.k] % 2] += a[r.k + 1]
    f[x] = a[x] + sx.select(sx.bool_(False), h[0], 0)
    cloned = sx.Schedule((f, h))
    cloned[h].clone("copy")
    given = np.arange(5)
    for outputs, lines in (((f,), ()), ((f, h), cloned.lines)):
        program = lower(check(freeze(outputs), lines))
        arrays = {g.name: np.zeros(5 if g is f else 2, np.int64) for g in outputs}
        run(program, {"a": given, **arrays}, {}, {("a", 0): 5, ("f", 0): 5, ("h", 0): 2})
        np.testing.assert_array_equal(arrays["f"], given)
        assert arrays.get("h", np.array([4, 3])).tolist() == [4, 3]
