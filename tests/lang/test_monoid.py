"""Monoids: what they become, and that their laws are tested."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.algorithm.interpret import interpret
from stax.lang.freeze import freeze

X = sx.Var("x")


def test_a_whole_definition_is_its_func() -> None:
    a = sx.Input("a", sx.int32, 1)
    r = sx.RDom("r", k=a.shape[0])
    best = sx.Monoid("best", lambda p, q: sx.select(q[0] > p[0], q, p), (-(2**31), -1))
    f = sx.Func("f")
    f[()] = best((a[r], r), over=r)
    found = freeze(f)
    assert [g.name for g in found.funcs] == ["f"]
    value, at = interpret(found, {"a": np.array([3, 9, 9, 1], np.int32)}, {}, {"f": ()})["f"]
    assert (int(value), int(at)) == (9, 1)


def test_laws_are_tested_for_each_type_once() -> None:
    calls: list[int] = []

    def combine(p: sx.Value, q: sx.Value) -> sx.Value:
        calls.append(1)
        return p + q

    m = sx.Monoid("m", combine, 0, commutes=True)
    a, b = sx.Input("a", sx.int32, 1), sx.Input("b", sx.float32, 1)
    r = sx.RDom("r", k=3)
    m(a[r], over=r)
    first = len(calls)
    m(a[r], over=r)
    assert len(calls) == first + 1
    m(b[r], over=r)
    assert len(calls) == first + 3


def test_a_law_broken_on_integers_only_is_found_there() -> None:
    """Halving is exact on floats that are large enough, and is not associative anyway."""
    m = sx.Monoid("m", lambda p, q: (p + q) * 2, 0)
    r = sx.RDom("r", k=3)
    with pytest.raises(sx.errors.DefinitionError, match="identity"):
        m(sx.Input("a", sx.int32, 1)[r], over=r)


@pytest.mark.parametrize("dtype", [sx.float32, sx.float64])
def test_welford_gives_mean_and_variance(dtype: sx.Value) -> None:
    a = sx.Input("a", dtype, 1)
    r = sx.RDom("r", k=a.shape[0])
    f = sx.Func("f")
    f[()] = sx.monoids.welford(a[r], over=r)
    data = np.linspace(3, 90, 37).astype(a.dtype.dtype) ** 2
    n, mean, m2 = interpret(freeze(f), {"a": data}, {}, {"f": ()})["f"]
    assert int(n) == 37
    np.testing.assert_allclose([mean, m2 / n], [data.mean(), data.var()], rtol=1e-5)


def test_logsumexp_and_attention_are_stable_and_right_over_masked_scores() -> None:
    s, v = sx.Input("s", sx.float32, 1), sx.Input("v", sx.float32, 1)
    r = sx.RDom("r", k=s.shape[0])
    f, g = sx.Func("f"), sx.Func("g")
    f[()] = sx.monoids.logsumexp(s[r], over=r)
    m, total, acc = sx.monoids.attention((s[r], v[r]), over=r)
    g[()] = acc / total
    scores = np.array([-np.inf, -np.inf, 1000, 1001, -np.inf, 999], np.float32)
    data = np.arange(6, dtype=np.float32)
    m, d = interpret(freeze(f), {"s": scores}, {}, {"f": ()})["f"]
    weights = np.exp(scores - scores.max())
    np.testing.assert_allclose([m, d], [1001, weights.sum()], rtol=1e-6)
    found = freeze(g)
    (got,) = interpret(found, {"s": scores, "v": data}, {}, {"g.attention": (), "g": ()})["g"]
    np.testing.assert_allclose(got, (weights * data).sum() / weights.sum(), rtol=1e-6)
