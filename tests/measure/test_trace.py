"""`sx.trace`: loads, stores and realizations, one after the other."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.errors import ArgumentError

y, x = sx.vars("y x")
A = np.arange(12, dtype=np.int32).reshape(3, 4)


def program() -> tuple[sx.Input, sx.Func, sx.Func]:
    a = sx.Input("a", sx.int32, 2)
    f, g = sx.Func("f"), sx.Func("g")
    f[y, x] = a[y, x] + 1
    g[y, x] = f[y, x] + f[y + 1, x]
    return a, f, g


def test_the_algorithm_runs_stage_by_stage_over_its_own_indices() -> None:
    a, f, g = program()
    seen = sx.trace(g, A)
    assert [(e.kind, e.func, e.by) for e in seen.events] == [
        ("realize", "f", ""),
        ("load", "a", "f"),
        ("store", "f", "f"),
        ("realize", "g", ""),
        ("load", "f", "g"),
        ("load", "f", "g"),
        ("store", "g", "g"),
    ]
    assert (seen.count("load", a), seen.count("store", f), seen.count("load", f), seen.count("store", g)) == (
        12,
        12,
        16,
        8,
    )
    store = seen.events[2]
    assert store.values.tolist() == [A[i, j] + 1 for i, j in store.cells.tolist()]


def test_indices_below_0_and_updates_are_told() -> None:
    r = sx.RDom("r", i=3)
    f, g = sx.Func("f"), sx.Func("g", shape=(2,))
    f[x] = sx.cast(x * 10, sx.int32)
    g[x] = f[x - 2]
    g[r.i % 2] += 1
    seen = sx.trace(g, of=[f, g])
    assert str(seen.events[0]) == "realize f[-2..-1]"
    assert [str(e) for e in seen.events if e.kind == "store" and e.by == "g.update(0)"] == [
        "store g[0] = -19  by g.update(0)",
        "store g[1] = -9  by g.update(0)",
        "store g[0] = -18  by g.update(0)",
    ]


def test_a_kernel_runs_as_its_loops_say() -> None:
    _, f, g = program()
    s = sx.Schedule(g)
    s[f].compute_at(g, y)
    seen = sx.trace(sx.compile(g, s), A, of=f)
    assert seen.count("realize", f) == 2
    assert seen.count("store", f) == 16, "the row between is computed twice"
    kinds = [e.kind for e in seen.events]
    assert kinds.index("load") < len(kinds) - 1 - kinds[::-1].index("store"), "the second row is stored after loads"
    slid = sx.Schedule(g)
    slid[f].store_root().compute_at(g, y)
    assert sx.trace(sx.compile(g, slid), A, of=f).count("store", f) == 12


def test_vectors_are_told_cell_by_cell_and_masked_lanes_not_at_all() -> None:
    a, f = sx.Input("a", sx.int32, 1), sx.Func("f")
    f[x] = a[x] * 2
    s = sx.Schedule(f)
    s[f].split(x, x, sx.Var("xi"), 4, tail="predicate").vectorize("xi")
    seen = sx.trace(sx.compile(f, s), np.arange(6, dtype=np.int32))
    assert seen.count("store", f) == 6
    assert seen.count("load", "a") == 6
    assert [c for e in seen.events if e.kind == "store" for c in e.cells[:, 0].tolist()] == list(range(6))


def test_parallel_loops_are_told_in_order() -> None:
    _, _, g = program()
    s = sx.Schedule(g)
    s[g].parallel(y)
    rows = [int(e.cells[0, 0]) for e in sx.trace(sx.compile(g, s), A, of=g, kinds=["store"]).events]
    assert rows == sorted(rows)


def test_only_what_is_asked_for_is_kept() -> None:
    _, f, g = program()
    assert {e.kind for e in sx.trace(g, A, kinds=("store",)).events} == {"store"}
    assert {e.func for e in sx.trace(g, A, of="f").events} == {"f"}
    short = sx.trace(g, A, most=10)
    assert sum(len(e.cells) for e in short.events if e.kind != "realize") == 10
    assert short.left == 12 + 12 + 16 + 8 - 10
    assert str(sx.trace(g, A)).splitlines()[-1] == "and 10 more"
    assert sx.trace(g, A, of=f, most=0).count("load", f) == 0


def test_scalars_and_cells_of_rank_0_are_traced() -> None:
    k, f, g = sx.Param("k", sx.int32), sx.Func("f"), sx.Func("g", shape=(2,))
    f[()] = k + 1
    g[x] = f[()] * 2
    s = sx.Schedule(g)
    s[f].compute_root()
    for what in (g, sx.compile(g, s)):
        seen = sx.trace(what, k=4, of=f)
        assert str(seen.events[1]) == "store f[] = 5"
        assert seen.count("load", f) in (1, 2)


def test_what_is_missing_or_unknown_is_said() -> None:
    _, _, g = program()
    with pytest.raises(ArgumentError, match="no kind of event 'lode'"):
        sx.trace(g, A, kinds=("lode",))
    with pytest.raises(ArgumentError, match="`a` was not given"):
        sx.trace(g)
    with pytest.raises(ArgumentError, match="2 arrays were given, and the program takes 1: a"):
        sx.trace(g, A, A)
