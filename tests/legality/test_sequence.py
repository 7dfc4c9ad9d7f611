"""Recurrences in whatever order there is: it is found, and gives what the oracle gives, or a cycle is named."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.errors import DefinitionError, LegalityError, UnsupportedError
from stax.lang.freeze import freeze
from stax.legality.sequence import in_sequence
from stax.testing import interpret

t, y, x = sx.vars("t y x")


def inside(dims: Any, step: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Return whether a read so far off lies in the shape."""
    found = sx.Const("yes", np.array([True]))[0] if not step else None
    for d, s, n in zip(dims, step, shape, strict=True):
        for cond in (d + s >= 0, d + s < n):
            found = cond if found is None else found & cond
    return found


def recurrence(shape: tuple[int, ...], steps: list[tuple[int, ...]]) -> sx.Func:
    """Return a Func of odd numbers, each of those `steps` away."""
    dims = sx.vars("t y x")[: len(shape)]
    f = sx.Func("f", dtype=sx.int64, shape=shape)
    value: Any = dims[0] * 3 + 1
    for k, step in enumerate(steps):
        read = f[tuple(d + s for d, s in zip(dims, step, strict=True))]
        value = value + sx.select(inside(dims, step, shape), read * (k + 2), k)
    f[dims] = value
    return f


def has_cycle(shape: tuple[int, ...], steps: list[tuple[int, ...]]) -> bool:
    """Return whether some cell needs itself: cells without a reader left are taken away until none is, or all are."""
    left = set(np.ndindex(*shape))
    while True:
        free = {c for c in left if not any(tuple(np.add(c, s)) in left for s in steps)}
        if not free:
            return bool(left)
        left -= free


def same(f: Any, given: dict[str, Any] | None = None, schedule: sx.Schedule | None = None) -> None:
    got, want = sx.compile(f, schedule, strict_native=True)(**(given or {})), interpret(f, given or {})
    many = isinstance(got, tuple)
    for g, w in zip(got if many else (got,), want if many else (want,), strict=True):
        assert (np.asarray(g) == np.asarray(w)).all()


@pytest.mark.parametrize("seed", range(40))
def test_an_order_is_found_wherever_there_is_none_but_a_cycle(seed: int) -> None:
    """For steps by constants: of a shape that is large enough, every order is one of sums."""
    r = Random(seed)
    shape = tuple(r.choice((5, 6, 7)) for _ in range(r.choice((1, 2, 2, 3))))
    steps = [tuple(r.randint(-2, 2) for _ in shape) for _ in range(r.choice((1, 2, 2, 3)))]
    steps = [s for s in steps if any(s)] or [(-1,) * len(shape)]
    f = recurrence(shape, steps)
    if has_cycle(shape, steps):
        with pytest.raises(DefinitionError, match=r"needs itself[\s\S]*needs f"):
            sx.compile(f)
        return
    try:
        same(f)
    except UnsupportedError:
        assert len(shape) > 1  # cells near the edges alone have an order there


@pytest.mark.parametrize(
    ("shape", "steps", "lines"),
    [
        ((5, 6), [(1, -1), (-1, -1)], 's["f"].reorder("y", "t")'),
        ((9, 11), [(-1, 2), (1, -3)], 's["f"].skew("y", "t", 2).skew("t", "y", 1).reorder("y", "t")'),
        ((1, 1), [(-1, 2), (1, -3)], ""),
        ((0, 9), [(-1, 2), (1, -3)], ""),
        ((6, 7), [(2, -3), (-3, 5)], 's["f"].affine(((-3, -2), (1, 1)), ("t", "y"))'),
    ],
)
def test_the_default_schedule_says_the_order(shape: tuple[int, ...], steps: list[tuple[int, ...]], lines: str) -> None:
    f = recurrence(shape, steps)
    same(f)
    assert "\n".join(str(sx.compile(f).schedule).splitlines()[2:]).strip() == lines


def test_another_schedule_is_judged_by_what_is_read() -> None:
    f = recurrence((6, 7), [(1, -1), (-1, -1)])
    s = sx.Schedule(f)
    s[f].reorder(y, t).vectorize(t, 4)
    same(f, schedule=s)
    s = sx.Schedule(f)
    s[f].unroll(y, 2)
    with pytest.raises(LegalityError, match=r"reads|writes"):
        sx.check(f, s)


def test_reads_that_are_no_fixed_step_have_an_order_that_is_proved() -> None:
    f = sx.Func("f", dtype=sx.int64, shape=(70,))
    f[0] = 1
    f[x] = f[x // 2] + f[x // 3] * 2
    same(f)
    g = sx.Func("g", dtype=sx.int64, shape=(33, 9))
    g[0, x] = x
    g[y, x] = g[y // 2, 8 - x] * 3 + y
    same(g)
    h = sx.Func("h", dtype=sx.int64, shape=(9, 9))
    h[y, x] = sx.select(x > y, h[x, y] * 2, y * 10 + x)
    assert in_sequence(freeze(h)).funcs[0].order
    same(h)


def test_lanes_of_a_read_that_is_sometimes_in_the_same_row_are_refused() -> None:
    """Half of t is t where t is 0, so that x carries the need there."""
    f = sx.Func("f", dtype=sx.int64, shape=(9, 9))
    f[t, x] = sx.select(x > 0, f[t // 2, x - 1] + t, 1)
    same(f)
    s = sx.Schedule(f)
    s[f].vectorize(x, 4)
    with pytest.raises(LegalityError, match="in step"):
        sx.check(f, s)


def gotoh() -> sx.Func:
    """Return the scores of an alignment where a gap costs more to open than to go on with: three Funcs."""
    i, j = sx.vars("i j")
    a, b = sx.Input("a", sx.uint8, 1), sx.Input("b", sx.uint8, 1)
    down, right, score = (
        sx.Func(name, dtype=sx.int32, shape=(a.shape[0] + 1, b.shape[0] + 1)) for name in ("down", "right", "score")
    )
    for f, first in ((down, -999), (right, -999), (score, 0)):
        f[i, 0] = first
        f[0, j] = first
    down[i, j] = sx.maximum(score[i - 1, j] - 4, down[i - 1, j] - 1)
    right[i, j] = sx.maximum(score[i, j - 1] - 4, right[i, j - 1] - 1)
    both = score[i - 1, j - 1] + sx.select(a[i - 1] == b[j - 1], 3, -2)
    score[i, j] = sx.maximum(sx.maximum(both, 0), sx.maximum(down[i, j], right[i, j]))
    out = sx.Func("out")
    out[i, j] = score[i, j]
    return out


@pytest.mark.parametrize(("n", "m"), [(0, 0), (1, 0), (1, 3), (5, 7), (20, 13)])
def test_funcs_that_need_each_other_within_a_row_step_its_columns_together(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    given = {"a": rng.integers(0, 4, n, dtype=np.uint8), "b": rng.integers(0, 4, m, dtype=np.uint8)}
    same(gotoh(), given)
    a, b = given["a"], given["b"]
    low = np.full((n + 1, m + 1), -999, np.int32)
    down, right, score = low.copy(), low.copy(), low * 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            down[i, j] = max(score[i - 1, j] - 4, down[i - 1, j] - 1)
            right[i, j] = max(score[i, j - 1] - 4, right[i, j - 1] - 1)
            both = score[i - 1, j - 1] + (3 if a[i - 1] == b[j - 1] else -2)
            score[i, j] = max(both, 0, down[i, j], right[i, j])
    assert (sx.compile(gotoh(), strict_native=True)(**given) == score).all()


def test_a_group_that_steps_two_dims_keeps_both_serial() -> None:
    f = gotoh()
    s = sx.Schedule(f)
    s["score"].vectorize("j", 8)
    with pytest.raises(LegalityError, match="loop `j` stays serial, inside it"):
        sx.check(f, s)


@pytest.mark.parametrize(("ahead", "behind"), [(1, -2), (2, -5), (-1, 2), (-3, 4), (0, -1)])
@pytest.mark.parametrize("steps", [0, 1, 2, 9])
def test_a_member_that_lags_behind_steps_later(ahead: int, behind: int, steps: int) -> None:
    """Upwards or downwards; each is stored as far as it must be."""
    n = sx.Param("n", sx.int64, low=0)
    u, v = (sx.Func(name, dtype=sx.int64, shape=(n, 5)) for name in "uv")
    u[t, x] = sx.select((t + behind >= 0) & (t + behind < n), v[t + behind, 4 - x], t) * 3 + x
    v[t, x] = sx.select((t + ahead >= 0) & (t + ahead < n), u[t + ahead, x], 5) * 2 - t
    out = sx.Func("out", shape=(n, 5))
    out[t, x] = u[t, x] + v[t, x]
    same(out, {"n": steps})
    if steps > 1:
        last = sx.Func("last")
        last[x] = u[n - 1 if behind < 0 else 0, x] + v[n - 1 if behind < 0 else 0, x]
        same(last, {"n": steps})


def test_a_group_of_many_distances_is_stepped_downwards() -> None:
    """`v` reads what comes after it, at the same step of `u`, which reads further on."""
    u, v = (sx.Func(name, dtype=sx.int64, shape=(7, 6)) for name in "uv")
    u[t, x] = sx.select(t < 6, u[t + 1, x] + v[t + 1, 5 - x], x)
    v[t, x] = sx.select(t < 6, v[t + 1, x], 1) + u[t, 5 - x] * 2
    out = sx.Func("out", shape=(7, 6))
    out[t, x] = u[t, x] - v[t, x]
    same(out)
