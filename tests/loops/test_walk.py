"""Statements and their expressions, rebuilt."""

from __future__ import annotations

from dataclasses import replace

from stax import dtypes
from stax.expr import build
from stax.expr.nodes import Binary, BinaryOp, Expr, Load, Local
from stax.loops import walk
from stax.loops.nodes import Allocate, Block, Buffer, Carry, For, If, Let, LoopKind, Role, Stmt, Store

I32 = dtypes.int32


def nest() -> tuple[For, Local]:
    """Return a loop with scratch, a Let, a carry and a branch."""
    i, t, acc, n = (build.local(name) for name in ("i", "t", "acc", "n"))
    scratch = Buffer("s", dtypes.index, (build.index(4),), Role.SCRATCH)
    body = Block(
        (
            Allocate(scratch),
            Let(t, build.add(i, n)),
            Store("s", (build.index(0),), t),
            If(
                build.less(i, 3),
                Block((Store("out", (i,), Load(dtypes.index, "s", (build.index(0),))),)),
                Block(),
            ),
        )
    )
    return For(i, build.index(0), n, LoopKind.SERIAL, body, (Carry(acc, build.index(0), build.add(acc, t)),)), n


def test_rebuilding_without_change_gives_the_same_statement() -> None:
    loop, _ = nest()
    assert walk.map_expressions(loop, lambda e: e) is loop
    assert walk.rewrite_statements(loop, lambda s: s) is loop
    assert walk.rewrite_expressions(loop, lambda e: e) is loop


def test_own_expressions_round_trip_through_every_kind_of_statement() -> None:
    loop, _ = nest()
    for stmt in walk.statements(loop):
        fresh = tuple(replace(e) for e in walk.expressions(stmt))
        rebuilt = walk.with_expressions(stmt, fresh)
        assert all(a is b for a, b in zip(walk.expressions(rebuilt), fresh, strict=True))


def test_substitution_reaches_bounds_lets_stores_and_carries() -> None:
    loop, _ = nest()
    seven = build.index(7)
    new = walk.substitute(loop, {"n": seven})
    assert isinstance(new, For)
    assert new.extent is seven
    assert walk.free_locals(loop).keys() == {"n"}
    assert walk.free_locals(new) == {}


def test_a_copy_binds_other_names_and_keeps_free_ones() -> None:
    loop, _ = nest()
    copy = walk.copy_with_fresh_names(loop, ".1")
    assert [x.name for x in walk.bound_locals(copy)] == [x.name + ".1" for x in walk.bound_locals(loop)]
    assert walk.free_locals(copy).keys() == {"n"}
    assert [b.name for b in walk.allocated(copy)] == ["s.1"]
    assert walk.buffers_loaded(copy) == {"s.1"}
    assert walk.buffers_stored(copy) == {"s.1", "out"}


def test_what_is_shared_among_statements_stays_shared_after_a_rewrite() -> None:
    """Else a body of thousands of statements over one graph would become as many graphs."""
    shared: Expr = build.add(build.local("x", I32), build.local("y", I32))
    block = Block(tuple(Store("out", (build.index(k),), shared) for k in range(3000)))
    new = walk.substitute(block, {"x": build.local("z", I32)})
    assert len({id(s.value) for s in walk.stores(new)}) == 1


def test_deep_expressions_are_rewritten_without_recursion() -> None:
    deep: Expr = build.local("x", I32)
    for _ in range(5000):
        deep = Binary(I32, BinaryOp.ADD, deep, deep)
    new = walk.substitute(Store("out", (build.index(0),), deep), {"x": build.local("z", I32)})
    assert {n.name for n in walk.nodes(new) if isinstance(n, Local)} == {"z"}


def test_a_rule_may_give_several_statements_or_none() -> None:
    """Blocks in a block are taken apart."""
    store = Store("out", (build.index(0),), build.const(1, I32))

    def rule(s: Stmt) -> Stmt:
        return Block((s, s)) if isinstance(s, Store) else Block() if isinstance(s, Let) else s

    got = walk.rewrite_statements(Block((Let(build.local("x"), build.index(0)), store)), rule)
    assert got.stmts == (store, store) if isinstance(got, Block) else False
