"""Inlining: each Func once for each index it is read at."""

from __future__ import annotations

import stax as sx
from stax.algorithm.inline import inline
from stax.expr.show import show
from stax.expr.walk import postorder, reads
from stax.lang.freeze import freeze

x = sx.Var("x")


def chain(stages: int) -> sx.Func:
    f = sx.Func("f0")
    f[x] = x
    for i in range(stages):
        g = sx.Func(f"f{i + 1}")
        g[x] = f[x] + f[x + 1]
        f = g
    return f


def test_a_chain_that_reads_its_producer_twice_grows_with_the_square_of_its_length() -> None:
    """`x + 1 + 1` and `x + 2` are one index; as a tree the result has 2**40 leaves."""
    pipeline = freeze(chain(40))
    smaller = inline(pipeline, {f"f{i}" for i in range(40)})
    assert [f.name for f in smaller.funcs] == ["f40"]
    assert len(postorder(smaller.funcs[0].values)) < 2000


def test_reads_inside_an_index_are_inlined_too() -> None:
    a, f, g = sx.Input("a", sx.int64, 1), sx.Func("f"), sx.Func("g")
    f[x] = a[x] % 4
    g[x] = f[f[x + 1]]
    (only,) = inline(freeze(g), {"f"}).funcs
    assert show(only.values[0]) == "a[a[x + 1] % 4] % 4"
    assert {r.source for r in reads(only.values)} == {"a"}


def test_a_func_that_nothing_reads_any_more_is_gone() -> None:
    a, f, g, h = sx.Input("a", sx.int64, 1), sx.Func("f"), sx.Func("g"), sx.Func("h")
    f[x] = a[x] + 1
    g[x] = f[x] * 0
    h[x] = sx.select(x < 0, g[x], a[x])
    assert [k.name for k in inline(freeze(h), {"g"}).funcs] in (["f", "h"], ["h"])


def test_a_group_of_which_one_is_left_is_none() -> None:
    """The factor that is inlined is 0, and with it goes the only read of `m` in `e`."""
    y = sx.Var("y")
    e, m, zero, f = sx.Func("e", sx.int32, (4, 5)), sx.Func("m", sx.int32, (4, 5)), sx.Func("zero"), sx.Func("f")
    zero[x] = sx.int32(0)
    e[0, x], m[0, x] = 1, 2
    e[y, x] = e[y - 1, x] + m[y - 1, x] * zero[x]
    m[y, x] = m[y - 1, x] + e[y - 1, x]
    f[x] = e[3, x]
    smaller = inline(freeze(f), {"zero"})
    assert all(n in [g.name for g in smaller.funcs] for group in smaller.groups for n in group)
    assert sx.compile(f, strict_native=True)(shape=(5,)).tolist() == [1] * 5
