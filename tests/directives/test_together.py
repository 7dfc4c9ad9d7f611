"""Where directives of different kinds meet: copies and empty loops, skewed loops and sums."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.errors import BoundsError, LegalityError


def test_a_copy_of_an_array_whose_readers_do_not_run_is_not_taken_beyond_it() -> None:
    """The update has no points where `b` is empty, and then asks nothing of `a`; the copy is made all the same."""
    x = sx.Var("x")
    a, b = sx.Input("a", sx.int64, 1), sx.Input("b", sx.int64, 1)
    f, r = sx.Func("f", shape=(7,)), sx.RDom("r", k=b.shape[0])
    f[x] = 0
    f[x] += a[x + 3] * b[r.k]
    s = sx.Schedule(f)
    s["a"].cache_read("copy")
    kernel = sx.compile(f, s)
    assert (kernel(np.arange(10), np.arange(3)) == 3 * np.arange(3, 10)).all()
    assert (kernel(np.arange(0), np.arange(0)) == 0).all()
    with pytest.raises(BoundsError, match="reads `a` outside"):
        kernel(np.arange(0), np.arange(3))


@pytest.mark.parametrize("word", ["parallel", "vectorize"])
def test_a_loop_skewed_along_a_reduced_one_meets_cells_again(word: str) -> None:
    """Iterations of the skewed `x` add to one cell at different points of `r.k`, whatever order is allowed."""
    x, a = sx.Var("x"), sx.Input("a", sx.int64, 2)
    f, r = sx.Func("f", shape=(a.shape[0],)), sx.RDom("r", k=a.shape[1])
    f[x] = 0
    f[x] += a[x, r.k]
    s = sx.Schedule(f)
    update = s[f].update(0).skew("x", "r.k", 1).reassociate()
    if word == "parallel":
        with pytest.raises(LegalityError, match="would change the values"):
            sx.check(f, _said(s, update.reorder("x", "r.k").parallel("x")))
        return
    given = np.random.default_rng(0).integers(0, 99, (37, 19))
    assert (sx.compile(f, _said(s, update.reorder("r.k", "x").vectorize("x", 8)))(given) == given.sum(1)).all()


def _said(schedule: sx.Schedule, _: object) -> sx.Schedule:
    return schedule


@pytest.mark.parametrize("shift", [0, 1, 7])
def test_loops_of_updates_are_shared_shifted(shift: int):
    x = sx.Var("x")
    a, f, g, h = sx.Input("a", sx.int32, 1), sx.Func("f"), sx.Func("g"), sx.Func("h")
    r = sx.RDom("r", j=(0, 5))
    f[x] = 0
    f[x] += a[x] * r.j
    g[x] = 1
    g[x] += a[x] + r.j
    h[x] = f[x] - g[x]
    s = sx.Schedule(h)
    s[f].compute_root()
    s[g].compute_root()
    s[f].update(0).compute_with(s[g].update(0), x, shift=shift)
    given = np.random.default_rng(0).integers(-9, 9, 11, np.int32)
    assert (sx.compile(h, s)(given) == given * 10 - 1 - given * 5 - 10).all()


@pytest.mark.parametrize("shift", [0, 1])
def test_a_sum_without_dims_is_not_run_in_loops_of_what_reads_it(shift: int):
    """Nothing is asked of it dim by dim (seed 20030 of the differential test): that is no proof that it is there."""
    a, f, g, h = sx.Input("a", sx.int32, 1), sx.Func("f"), sx.Func("g"), sx.Func("h")
    r = sx.RDom("r", j=(0, 5))
    f[()] = 0
    f[()] += a[r.j]
    g[()] = 1
    g[()] += a[r.j] * f[()]
    h[()] = f[()] - g[()]
    for guest, host in ((f, g), (g, f)):
        s = sx.Schedule(h)
        s[f].compute_root()
        s[g].compute_root()
        s[guest].update(0).compute_with(s[host].update(0), "r.j", shift=shift)
        with pytest.raises(sx.errors.LegalityError, match="before it is computed: what it needs is not seen"):
            sx.check(h, s)


def test_pairs_that_share_loops_do_not_wait_for_each_other():
    """`b` and `c` would run after `a` and `d`, and those after `b` and `c` (seed 2468 of the differential test)."""
    x = sx.Var("x")
    given, (a, b, c, d, f) = sx.Input("given", sx.int32, 1), (sx.Func(name) for name in "abcdf")
    a[x] = given[x] + 1
    b[x] = a[x] * 2
    c[x] = given[x] * 3
    d[x] = c[x] - 4
    f[x] = b[x] + d[x]
    s = sx.Schedule(f)
    for g in (a, b, c, d):
        s[g].compute_root()
    s[d].compute_with(a, x)
    sx.check(f, s)
    s[c].compute_with(b, x)
    with pytest.raises(sx.errors.LegalityError, match="they need what `b` and `c` compute in loops they share"):
        sx.check(f, s)


def test_cells_outside_the_domain_of_an_output_that_shares_loops_are_0():
    """Seed 594 of the differential test."""
    (y, x), a = sx.vars("y x"), sx.Input("a", sx.float32, 2)
    w, g = sx.Func("w", shape=a.shape, where=lambda y, x: x <= y), sx.Func("g", shape=a.shape)
    w[y, x] = a[y, x] + 1
    g[y, x] = a[y, x] * 2
    s = sx.Schedule((w, g))
    s[w].compute_root()
    s[g].compute_root()
    s[w].compute_with(g, y)
    given, out = np.ones((7, 7), np.float32), np.full((7, 7), np.nan, np.float32)
    got, _ = sx.compile((w, g), s)(given, out=(out, np.empty((7, 7), np.float32)))
    assert (got == np.tril(given + 1)).all()


def test_a_guest_behind_in_an_inner_loop_is_not_behind_what_the_next_run_of_it_computes() -> None:
    """The last runs of the guest come after the inner loop of the host has ended, not after more of it."""
    y, x = sx.vars("y x")
    a, f, g, h = sx.Input("a", sx.int64, 2), sx.Func("f"), sx.Func("g"), sx.Func("h")
    f[y, x] = a[y, x] * 3
    g[y, x] = a[y, x] + f[y, x + 1]
    h[y, x] = f[y, x] + g[y, x]

    def said(loop: str, shift: int) -> sx.Schedule:
        s = sx.Schedule(h)
        for one in (f, g):
            s[one].compute_root().split("x", "x", "x.in", 2)
        s[g].compute_with(s[f], loop, shift=shift)
        return s

    with pytest.raises(LegalityError, match="before it is computed") as refused:
        sx.compile(h, said("x.in", 1))
    assert "share a loop around `x.in`" in str(refused.value)
    given = np.random.default_rng(2).integers(0, 99, (5, 12))
    expected = given[:, :-1] * 4 + given[:, 1:] * 3
    found = sx.compile(h, said("y", 0), strict_native=True)(given)
    assert (found == expected).all()


@pytest.mark.parametrize(
    ("tile", "factor", "lanes"), [((4, 1), -1, 7), ((4, 8), -1, 8), ((3, 5), -2, 2), ((4, 1), 1, 7)]
)
@pytest.mark.parametrize("word", ["", "unroll", "partition"])
def test_lanes_of_a_loop_skewed_inside_a_tile_are_not_cut_to_the_tile(
    tile: tuple[int, int], factor: int, lanes: int, word: str
) -> None:
    """It starts below 0 where it is skewed backwards, so that lanes of it are more than what the tile is wide."""
    y, x = sx.vars("y x")
    a, f = sx.Input("a", sx.uint16, 2), sx.Func("f")
    f[y, x] = a[y + 1, x]
    s = sx.Schedule(f)
    loops = s[f].tile((y, x), ("yo", "xo"), ("yi", "xi"), tile).skew("xi", "yi", factor).vectorize("xi", lanes)
    if word:
        loops.unroll("xo", 4) if word == "unroll" else loops.partition("yo")
    given = np.arange(130, dtype=np.uint16).reshape(10, 13)
    assert (sx.compile(f, s, strict_native=True)(given) == given[1:]).all()
