"""Storage of recurrences that is folded, by itself or when asked."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.errors import LegalityError

t, y, x = sx.vars("t y x")


def heat(last: int = 0) -> tuple[sx.Func, sx.Func]:
    """Return steps of a stencil, and the plane `last` before the last."""
    steps = sx.Param("steps", sx.int64, low=2)
    a = sx.Input("a", sx.float32, 2)
    h, w = a.shape
    u, out = sx.Func("u", shape=(steps + 1, h, w)), sx.Func("out")
    u[0, y, x] = a[y, x]
    around = u[t - 1, y - 1, x] + u[t - 1, y + 1, x] + u[t - 1, y, x - 1] + u[t - 1, y, x + 1]
    u[t, y, x] = sx.select((y > 0) & (y < h - 1) & (x > 0) & (x < w - 1), around * 0.25, u[t - 1, y, x])
    out[y, x] = u[steps - last, y, x]
    return u, out


def plain(a: np.ndarray, steps: int) -> np.ndarray:
    u = a.copy()
    for _ in range(steps):
        v = u.copy()
        v[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) * np.float32(0.25)
        u = v
    return u


def test_two_planes_of_a_time_loop_are_kept_by_default() -> None:
    _, out = heat()
    assert "u: float32[2, a.shape[0], a.shape[1]]" in sx.explain(out)
    given = np.random.default_rng(0).random((9, 11), np.float32)
    assert (sx.compile(out, strict_native=True)(5, given) == plain(given, 5)).all()


def test_a_plane_that_is_read_after_it_would_be_replaced_keeps_them_all() -> None:
    _, out = heat(last=2)
    assert "u: float32[index(steps) + 1" in sx.explain(out)


@pytest.mark.parametrize("steps", [2, 7, 16])
def test_time_tiles_in_wavefronts_over_folded_storage_give_the_same_bits(steps: int) -> None:
    u, out = heat()
    s = sx.Schedule(out)
    s[u].skew(y, t, 1).skew(x, t, 1).tile((t, y, x), ("to", "yo", "xo"), ("ti", "yi", "xi"), (4, 8, 16))
    s[u].skew("to", "yo", 1).skew("to", "xo", 1).parallel("yo").vectorize("xi", 8).fold_storage(t, 2)
    given = np.random.default_rng(0).random((37, 41), np.float32)
    assert (sx.compile(out, s, strict_native=True)(steps, given) == plain(given, steps)).all()


def test_a_loop_in_place_of_the_plane_before_needs_its_order() -> None:
    """One plane is enough where each cell reads behind only what it replaces, and ahead what is not there yet."""
    a = sx.Input("a", sx.int64, 1)
    u, out = sx.Func("u", shape=(8, a.shape[0])), sx.Func("out")
    u[0, x] = a[x]
    u[t, x] = sx.select(x + 1 < a.shape[0], u[t - 1, x + 1], 5) + u[t - 1, x]
    out[x] = u[7, x]
    s = sx.Schedule(out)
    s[u].fold_storage(t, 1)
    given = np.arange(9)
    want = given.copy()
    for _ in range(7):
        want = np.append(want[1:], 5) + want
    assert (sx.compile(out, s, strict_native=True)(given) == want).all()
    s[u].reverse(x)
    with pytest.raises(LegalityError, match="order that changes its values"):
        sx.check(out, s)


def test_outputs_and_what_has_updates_are_not_folded() -> None:
    _, out = heat()
    s = sx.Schedule(out)
    s[out].fold_storage(y, 2)
    with pytest.raises(LegalityError, match="is an output"):
        sx.check(out, s)
    f, g = sx.Func("f"), sx.Func("g")
    f[x] = x
    f[x] = f[x] * 2
    g[x] = f[x]
    s = sx.Schedule(g)
    s[f].fold_storage(x, 2)
    with pytest.raises(LegalityError, match="has updates"):
        sx.check(g, s)
