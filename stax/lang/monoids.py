"""Monoids that come with stax: mean and variance, logsumexp, attention; each in one pass."""

from __future__ import annotations

import math
from typing import Any

from stax.lang.math import cast, exp, maximum, select
from stax.lang.monoid import Monoid
from stax.lang.promote import floating
from stax.lang.terms import settled
from stax.lang.value import Value, value_of


def _count_mean_squares(p: tuple[Value, ...], q: tuple[Value, ...]) -> tuple[Value, ...]:
    n = p[0] + q[0]
    by = select(n != 0, n, 1)
    away = q[1] - p[1]
    return n, p[1] + away * (q[0] / by), p[2] + q[2] + away * away * (p[0] * (q[0] / by))


def _scales(p: Value, q: Value) -> tuple[Value, Value, Value]:
    """Return the greater of two exponents, and what brings sums taken at either to it; also where both are -inf."""
    m = maximum(p, q)
    return m, select(p == m, 1, exp(p - m)), select(q == m, 1, exp(q - m))


def _max_and_sum(p: tuple[Value, ...], q: tuple[Value, ...]) -> tuple[Value, ...]:
    m, a, b = _scales(p[0], q[0])
    return (m, *(x * a + y * b for x, y in zip(p[1:], q[1:], strict=True)))


def _float(e: object) -> Value:
    value = value_of(e)
    return cast(value, settled(floating(value.node.dtype)))


def _like(value: Value, number: float) -> Value:
    return cast(number, value.dtype)


def _one_value(e: Any) -> tuple[Value, ...]:
    value = _float(e)
    return _like(value, 1), value, _like(value, 0)


def _one_score(e: Any) -> tuple[Value, ...]:
    score = _float(e)
    return score, _like(score, 1)


def _one_key(score: Any, value: Any) -> tuple[Value, ...]:
    typed = _float(score)
    return typed, _like(typed, 1), _float(value)


welford = Monoid("welford", _count_mean_squares, (0, 0, 0), lift=_one_value)
"""(n, mean, m2) of values: the variance is m2 / n."""

logsumexp = Monoid("logsumexp", _max_and_sum, (-math.inf, 0), lift=_one_score)
"""(m, d) of scores: their greatest, and the sum of exp(score - m)."""

attention = Monoid("attention", _max_and_sum, (-math.inf, 0, 0), lift=_one_key)
"""(m, l, acc) of (score, value) pairs: logsumexp's two, and the sum of exp(score - m) * value; acc / l is wanted."""
