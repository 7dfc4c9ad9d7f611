"""The bound on the error of a sum, from its schedule: the figures of the textbook, and sums that keep within it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import stax as sx

N = 1 << 20


def total() -> tuple[sx.Func, sx.RDom]:
    a, t = sx.Input("a", sx.float32, 1), sx.Func("t")
    r = sx.RDom("r", k=a.shape[0])
    t[()] = np.float32(0)
    t[()] += a[r]
    return t, r


SCHEDULES: dict[str, tuple[Callable[[Any], object], int]] = {
    "in turn": (lambda s: s["t"].compute_root(), N - 1),
    "sixteen lanes": (lambda s: s["t"].update(0).reassociate().vectorize("r.k", 16), 65_550),
    "blocks of the square root": (lambda s: s["t"].update(0).split_reduction("r.k", 1024, "u", "part"), 2046),
    "atomic threads": (lambda s: s["t"].update(0).atomic().parallel("r.k", 4096), N - 1),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_bound_of_a_sum_of_a_million_terms_is_that_of_the_textbook(name: str) -> None:
    say, roundings = SCHEDULES[name]
    t, _ = total()
    s = sx.Schedule(t)
    say(s)
    k = sx.compile(t, s, strict_native=True)
    assert k.error_bound(np.zeros(N, np.float32)) == roundings


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("n", [1, 2, 17, 4099])
def test_sums_keep_within_the_bound(name: str, n: int) -> None:
    t, _ = total()
    s = sx.Schedule(t)
    SCHEDULES[name][0](s)
    k = sx.compile(t, s, strict_native=True)
    given = (np.random.default_rng(n).normal(size=n) * 10.0 ** (np.arange(n) % 7)).astype(np.float32)
    exact, sizes = (sum((Fraction(float(v)) for v in values), Fraction(0)) for values in (given, np.abs(given)))
    u, m = Fraction(1, 2**24), k.error_bound(given)
    assert abs(Fraction(float(k(given))) - exact) <= m * u / (1 - m * u) * sizes


def test_whole_numbers_and_extremes_round_nothing() -> None:
    y, a = sx.Var("y"), sx.Input("a", sx.float32, 2)
    r, f = sx.RDom("r", k=a.shape[1]), sx.Func("f")
    f[y] = np.float32(0)
    f[y] = sx.maximum(f[y], a[y, r])
    assert sx.compile(f, strict_native=True).error_bound(np.zeros((3, 5), np.float32)) == 0
