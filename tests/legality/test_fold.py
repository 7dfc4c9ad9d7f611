"""Storage of recurrences that is folded, by itself or when asked."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.errors import LegalityError
from stax.loops.show import show
from stax.lower.build_nests import build_nests

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
    text = sx.explain(out)
    assert "$1 = index(steps) + 1\n" in text
    assert "u: float32[$1, a.shape[0], a.shape[1]]" in text


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


def test_outputs_are_not_folded_and_what_has_updates_keeps_all_that_is_needed() -> None:
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
    with pytest.raises(LegalityError, match="too few to keep"):
        sx.check(g, s)


def coupled(late: int = 0, ahead: bool = False) -> tuple[sx.Func, sx.Func, sx.Func]:
    """Return two Funcs that read each other: `v` the step before of `u`, and `u` the same step of `v`."""
    a = sx.Input("a", sx.int64, 1)
    n = a.shape[0]
    u, v = (sx.Func(name, dtype=sx.int64, shape=(9, n)) for name in "uv")
    u[0, x], v[0, x] = a[x], a[x] + 1
    v[t, x] = v[t - 1, x] * 3 - u[t - 1, x]
    u[t, x] = u[t - 1, x] + v[t, sx.clip(x + (2 if ahead else 0), 0, n - 1)]
    out = sx.Func("out")
    out[x] = u[8, x] + v[8 - late, x]
    return u, v, out


def stepped(a: np.ndarray, ahead: bool) -> np.ndarray:
    u, v = a.copy(), a + 1
    for _ in range(8):
        v = v * 3 - u
        u = u + (np.append(v[2:], [v[-1]] * 2)[: len(v)] if ahead else v)
    return u + v


@pytest.mark.parametrize("ahead", [False, True])
def test_steps_of_a_group_are_stored_over_each_other(ahead: bool) -> None:
    """`v` comes before `u` in a step: `u` of the step before is read before it is replaced, `v` after it is there."""
    _, _, out = coupled(ahead=ahead)
    text = sx.explain(out)
    assert "u: int64[1, " in text
    assert "v: int64[1, " in text
    kernel = sx.compile(out, strict_native=True)
    for n in (2, 3, 5, 16, 33):
        given = np.arange(n) * 5 % 7
        assert (kernel(given) == stepped(given, ahead)).all()


def test_a_member_of_a_group_that_is_read_later_on_is_kept_whole() -> None:
    _, v, out = coupled(late=3)
    text = sx.explain(out)
    assert "u: int64[1, " in text
    assert "v: int64[9, " in text
    s = sx.Schedule(out)
    s[v].fold_storage(t, 4)
    assert "v: int64[4, " in sx.explain(out, s)
    s = sx.Schedule(out)
    s[v].fold_storage(t, 3)
    with pytest.raises(LegalityError, match="other Funcs read more than the last"):
        sx.check(out, s)


def test_a_member_that_a_later_one_reads_a_step_before_needs_two_steps() -> None:
    a = sx.Input("a", sx.int64, 1)
    u, v, out = (sx.Func(name, dtype=sx.int64, shape=(9, a.shape[0])) for name in ("u", "v", "out"))
    u[0, x], v[0, x] = a[x], a[x]
    u[t, x] = u[t - 1, x] + v[t - 1, x]
    v[t, x] = u[t, x] * 2 - u[t - 1, x]
    out = sx.Func("out")
    out[x] = v[8, x]
    text = sx.explain(out)
    assert "u: int64[2, " in text
    assert "v: int64[1, " in text
    s = sx.Schedule(out)
    s[u].fold_storage(t, 1)
    with pytest.raises(LegalityError, match=r"Funcs of its group read more[\s\S]*they need 2 steps"):
        sx.check(out, s)
    p = q = given = np.arange(7)
    for _ in range(8):
        p, q = p + q, (p + q) * 2 - p
    assert (sx.compile(out, strict_native=True)(given) == q).all()


def test_a_read_behind_in_a_parallel_loop_is_not_stored_over() -> None:
    """One plane is enough for loops in order: other rows would be replaced before they are read."""
    a = sx.Input("a", sx.int64, 2)
    u, out = sx.Func("u", shape=(5, *a.shape)), sx.Func("out")
    u[0, y, x] = a[y, x]
    u[t, y, x] = u[t - 1, y, x] + sx.select(y + 1 < a.shape[0], u[t - 1, y + 1, x], 0)
    out[y, x] = u[4, y, x]
    assert "u: int64[2, " in sx.explain(out)
    s = sx.Schedule(out)
    s[u].vectorize(x, 8)
    assert "u: int64[1, " in sx.explain(out, s)
    given = np.arange(63).reshape(7, 9)
    want = given
    for _ in range(4):
        want = want + np.vstack([want[1:], 0 * want[:1]])
    assert (sx.compile(out, s, strict_native=True)(given) == want).all()
    assert (sx.compile(out, strict_native=True)(given) == want).all()


def test_edges_that_keep_their_value_are_neither_run_nor_written() -> None:
    a = sx.Input("a", sx.int64, 1)
    n = a.shape[0]
    u, out = sx.Func("u", shape=(6, n)), sx.Func("out")
    u[0, x] = a[x]
    u[t, x] = sx.select((x > 1) & (x < n - t), u[t - 1, x] + u[t, x - 1], u[t - 1, x])
    out[x] = u[5, x]
    program = build_nests(sx.check(out))
    text = show(program)
    assert "u: int64[1, " in text
    assert "or" in text
    for size in (0, 1, 2, 3, 4, 9, 30):
        given = np.arange(size)
        want = given.copy()
        for step in range(1, 6):
            for k in range(2, size - step):
                want[k] += want[k - 1]
        assert (sx.compile(out, strict_native=True)(given) == want).all()


def test_a_sum_of_a_narrow_param_that_hides_the_last_step_is_said_to_be_it() -> None:
    """`steps - 1` may wrap in int32, so that it is not seen to be the last step: an int64 is."""
    t, i = sx.vars("t i")
    for dtype in (sx.int32, sx.int64):
        a, steps = sx.Input("a", sx.float32, 1), sx.Param("steps", dtype)
        u, last = sx.Func("u", shape=(steps, a.shape[0])), sx.Func("last")
        u[0, i] = a[i]
        u[t, i] = u[t - 1, i] * 2
        last[i] = u[steps - 1, i]
        s = sx.Schedule(last)
        s[u].fold_storage(t, 2)
        if dtype is sx.int64:
            sx.check(last, s)
            continue
        with pytest.raises(sx.errors.LegalityError, match=r"declare `steps` as sx\.int64") as caught:
            sx.check(last, s)
        assert "last[i] = u[steps - 1, i]" in str(caught.value)
