"""Automatic schedules: what they choose and why, in text that is the same on every run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.auto import choose as choosing
from stax.auto.choose import choose
from stax.auto.machine import Machine
from stax.errors import ArgumentError
from stax.lang.freeze import freeze
from stax.schedule.schedule import Schedule
from stax.testing import interpret

ROOT = Path(__file__).resolve().parents[2]
NARROW, WIDE = Machine(), Machine(64, 32, 1, 2, 48 << 10, 1 << 20, 32 << 20)
m, n, c, y, x = sx.vars("m n c y x")


def text(f: Any, machine: Machine = NARROW, **shapes: tuple[int, ...]) -> str:
    """Return the lines of an automatic schedule, without those that name the program."""
    made = Schedule.of(f, choose(freeze(f), machine, shapes).lines)
    return "\n".join(str(made).splitlines()[2:])


def blur() -> sx.Func:
    a, bx, by = sx.Input("a", sx.float32, 2), sx.Func("bx"), sx.Func("by")
    bx[y, x] = (a[y, x] + a[y, x + 1] + a[y, x + 2]) / 3
    by[y, x] = (bx[y, x] + bx[y + 1, x] + bx[y + 2, x]) / 3
    return by


def product() -> sx.Func:
    a = sx.Input("a", sx.float32, 2)
    b, k = sx.Input("b", sx.float32, (a.shape[1], None)), sx.RDom("k", k=a.shape[1])
    f = sx.Func("f")
    f[m, n] = 0
    f[m, n] += a[m, k] * b[k, n]
    return f


def centred() -> sx.Func:
    a = sx.Input("a", sx.float32, 2)
    r, mu, f = sx.RDom("r", j=a.shape[1]), sx.Func("mu"), sx.Func("f")
    mu[m] = sx.sum(a[m, r], over=r) / sx.cast(a.shape[1], sx.float32)
    f[m, n] = a[m, n] - mu[m]
    return f


def test_a_window_of_rows_slides_along_the_rows_that_read_it() -> None:
    lines = text(blur())
    assert 's["bx"].compute_at(s["by"], "y.in", store="y").fold_storage("y", 4)' in lines
    assert "# bx: of 3 rows that a row of the head needs, 1 is new" in lines
    assert ".stream()" in lines


def test_a_product_keeps_a_tile_in_the_registers_that_there_are() -> None:
    assert 'split("m", "m", "m.in", 6, tail="predicate").split("n", "n", "n.in", 16' in text(product())
    assert 'split("m", "m", "m.in", 6, tail="predicate").split("n", "n", "n.in", 64' in text(product(), WIDE)
    assert 's["b"].cache_read("b_packed", "f")' in text(product())


def test_results_of_a_row_are_computed_in_the_row() -> None:
    lines = text(centred())
    assert 's["mu.sum"].compute_at(s["f"], "m.in")' in lines
    assert "reassociate()" in lines


def test_sums_keep_their_order_where_bits_are_to_stay() -> None:
    a = np.random.default_rng(0).standard_normal((37, 1000)).astype(np.float32)
    s = sx.auto_schedule(centred(), require="bitwise")
    assert "reassociate" not in str(s)
    got = sx.compile(centred(), s, require="bitwise", strict_native=True)(a)
    np.testing.assert_array_equal(got, sx.compile(centred(), strict_native=True)(a))


def test_what_is_known_of_shapes_is_used() -> None:
    """A small result stays in the caches, and a narrow one fills no four vectors."""
    assert "stream" not in text(blur(), a=(64, 64))
    assert 'split("n", "n", "n.in", 8' in text(product(), a=(500, 500), b=(500, 8))


def test_shapes_are_checked() -> None:
    with pytest.raises(ArgumentError, match="there is no Input 'b'"):
        sx.auto_schedule(blur(), arrays={"b": (3, 3)})
    with pytest.raises(ArgumentError, match="'a' has 2 dims, and 1 extents"):
        sx.auto_schedule(blur(), arrays={"a": (3,)})


def test_a_schedule_that_is_read_back_is_equal_without_its_reasons() -> None:
    s = sx.auto_schedule(blur())
    assert "# by: strips of" in str(s)
    assert Schedule.parse(str(s), s.outputs) == s


@pytest.mark.parametrize("make", [blur, product, centred])
def test_an_automatic_schedule_is_right(make: Any) -> None:
    f = make()
    rng = np.random.default_rng(1)
    inputs = {"a": rng.standard_normal((67, 131)).astype(np.float32)}
    if make is product:
        inputs["b"] = rng.standard_normal((131, 75)).astype(np.float32)
    got = sx.compile(f, sx.auto_schedule(f), strict_native=True)(**inputs)
    np.testing.assert_allclose(got, sx.compile(f, strict_native=True)(**inputs), rtol=1e-4, atol=1e-4)


def test_the_text_is_the_same_under_any_hash_seed() -> None:
    code = "from tests.auto.test_choose import *; print(text(blur()), text(product()), text(centred()))"
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=True, cwd=ROOT,
        ).stdout
        for seed in ("0", "1", "2")
    }  # fmt: skip
    assert len(said) == 1


def test_recurrences_run_in_columns_and_in_rows_as_lanes() -> None:
    """Down a picture, columns are lanes; along its rows, rows are."""
    a = sx.Input("a", sx.float32, 2)
    h, w = a.shape
    down, right, f = (sx.Func(name, shape=(h, w)) for name in ("down", "right", "f"))
    down[0, x] = a[0, x]
    down[y, x] = 0.5 * down[y - 1, x] + a[y, x]
    right[y, 0] = down[y, 0]
    right[y, x] = 0.5 * right[y, x - 1] + down[y, x]
    f[y, x] = right[y, x]
    lines = text(f)
    assert 's["down"].compute_root().split("x", "x", "x.in", 64, tail="predicate").reorder("x", "y", "x.in")' in lines
    assert 's["right"].compute_at(s["f"], "y").layout(("x", "y"))' in lines
    given = np.random.default_rng(3).standard_normal((50, 83)).astype(np.float32)
    s = sx.Schedule.parse(str(Schedule.of(f, choose(freeze(f), NARROW, {}).lines)), f)
    wanted = sx.compile(f, strict_native=True)(given)
    np.testing.assert_array_equal(sx.compile(f, s, strict_native=True)(given), wanted)


def test_a_histogram_is_counted_in_parts() -> None:
    a, i = sx.Input("a", sx.uint8, 2), sx.Var("i")
    r, f = sx.RDom("r", y=a.shape[0], x=a.shape[1]), sx.Func("f", dtype=sx.int32, shape=(256,))
    f[i] = 0
    f[a[r.y, r.x]] += 1
    assert ".rfactor(" in text(f)
    given = np.random.default_rng(4).integers(0, 256, (300, 70), dtype=np.uint8)
    got = sx.compile(f, sx.auto_schedule(f), strict_native=True)(given)
    np.testing.assert_array_equal(got, np.bincount(given.ravel(), minlength=256))


def test_lanes_are_cut_where_positions_are_clamped() -> None:
    """A masked tail would keep the conditions of the edges in every iteration."""
    a = sx.Input("a", sx.float32, 2)
    p, f = sx.pad(a, "edge"), sx.Func("f", shape=a.shape)
    f[y, x] = p[y, x - 1] + p[y, x] + p[y, x + 1]
    assert "predicate" not in text(f)


def test_rows_that_wait_for_much_else_are_not_streamed() -> None:
    """Their stores would come in bursts that nothing overlaps."""
    assert "stream()" not in str(sx.auto_schedule(_normalised(exponentials=True)))
    assert "stream()" in str(sx.auto_schedule(_normalised(exponentials=False)))


def _normalised(exponentials: bool) -> sx.Func:
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.float32, 2)
    r = sx.RDom("r", j=a.shape[1])
    e, total, f = sx.Func("e"), sx.Func("total"), sx.Func("f")
    e[y, x] = sx.exp(a[y, x]) + sx.exp(-a[y, x]) if exponentials else a[y, x]
    total[y] = sx.sum(e[y, r.j], over=r)
    f[y, x] = e[y, x] / total[y]
    return f


def test_steps_of_a_row_run_in_tiles_of_many_cells() -> None:
    """As many as half of the first cache holds, in lanes, but no fewer tiles than a few a row."""
    t, x = sx.vars("t x")
    a = sx.Input("a", sx.float32, 1)
    u, f = sx.Func("u", shape=(65, a.shape[0])), sx.Func("f")
    u[0, x] = a[x]
    inside = (x > 0) & (x < a.shape[0] - 1)
    u[t, x] = sx.select(inside, (u[t - 1, x - 1] + u[t - 1, x + 1]) / 2, u[t - 1, x])
    f[x] = u[64, x]
    assert '("t.i", "x.i"), (32, 4096)).skew("t.o", "x.o", 1).parallel("x.o").vectorize("x.i"' in text(f)
    assert "(32, 1024))" in text(f, a=(10_000,))


def tinted() -> sx.Func:
    a, t = sx.Input("a", sx.float32, 2), sx.Input("t", sx.float32, 1)
    soft, tone, f = sx.Func("soft"), sx.Func("tone"), sx.Func("out")
    soft[y, x] = sx.exp((a[y, x] + a[y + 1, x] + a[y, x + 1]) / 3)
    tone[c, y, x] = sx.exp((soft[y, x] + soft[y + 1, x]) * t[c])
    f[c, y, x] = tone[c, y, x] + tone[c, y + 1, x]
    return f


def test_what_is_the_same_for_all_channels_is_computed_once_where_rows_of_all_fit_the_cache() -> None:
    f = tinted()
    lines = text(f, a=(1000, 1000), out=(3, 998, 999), t=(3,))
    assert '.reorder("y", "y.in", "c")' in lines
    assert 's["soft"].compute_at(s["out"], "y.in", store="y")' in lines
    many = text(f, a=(1000, 9000), out=(40, 998, 8999), t=(40,))
    assert '.parallel("c")' in many
    assert "reorder" not in many
    a, t = np.random.default_rng(0).random((9, 17), np.float32), np.array([0.5, 1, 2], np.float32)
    kernel = sx.compile(f, sx.auto_schedule(f, arrays={"a": a, "t": t}), strict_native=True, fp="strict")
    np.testing.assert_array_equal(kernel(a, t), interpret(f, {"a": a, "t": t}, (3, 6, 16), fp="strict"))


@pytest.mark.parametrize("budget", [1, 100])
def test_what_the_budget_leaves_open_is_left_to_the_default_schedule(
    budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here each proof fails, but that of nothing."""
    f = tinted()
    tried: list[int] = []

    def error(pipeline: Any, pieces: Any, known: Any) -> str | None:
        tried.append(len(pieces))
        return "for the test" if pieces else None

    monkeypatch.setattr(choosing, "_error", error)
    made = sx.auto_schedule(f, budget=budget)
    assert len(tried) <= budget + 1
    assert any("no more" in text for text in made.refused) == (budget < 100)
    a, t = np.random.default_rng(0).random((9, 17), np.float32), np.array([0.5, 1, 2], np.float32)
    kernel = sx.compile(f, made, strict_native=True, fp="strict")
    np.testing.assert_array_equal(kernel(a, t), interpret(f, {"a": a, "t": t}, (3, 6, 16), fp="strict"))


def test_a_budget_is_a_number_of_candidates() -> None:
    with pytest.raises(ArgumentError, match="budget is 0"):
        sx.auto_schedule(blur(), budget=0)
