"""Which way conditions go in the middle, and what is assumed for it."""

from __future__ import annotations

import pytest

from stax import dtypes
from stax.expr import build
from stax.expr.affine import Algebra
from stax.expr.nodes import INDEX, Expr, Load, Size
from stax.loops.nodes import Block, If, Stmt, Store
from stax.loops.show import show_expr, show_stmt
from stax.lower.settling import Settling

Y, X, K = build.local("y"), build.local("x"), build.local("k")
H = Size(INDEX, "g", 0)
LONG = dtypes.int64
ONE, MANY = build.const(1, LONG), build.add(Load(LONG, "a", (X,)), Load(LONG, "a", (build.add(X, 1),)))


def settled(stmt: Stmt, widths: dict[str, int] | None = None, bound: frozenset[str] = frozenset()) -> tuple[str, str]:
    """Return `stmt` as it is in the middle of loops over y, k, and what that assumes."""
    settling = Settling(Algebra(), ("y", "k"), widths or {}, bound)
    text = show_stmt(settling.settled(stmt))
    return text.strip(), show_expr(settling.condition())


def put(value: Expr, mask: tuple[Expr, ...] = ()) -> Store:
    return Store("g", (X,), value, mask)


@pytest.mark.parametrize(("yes", "no", "assumed"), [(MANY, ONE, "0 <= y - 3"), (ONE, MANY, "0 <= y * -1 + 2")])
def test_the_arm_that_computes_more_is_taken(yes: Expr, no: Expr, assumed: str) -> None:
    text, cond = settled(put(build.select(build.less_equal(build.index(3), Y), yes, no)))
    assert "a[x + 1]" in text
    assert cond == assumed


def test_what_masks_a_load_holds_whatever_its_sign() -> None:
    load = Load(
        LONG, "a", (X,), (build.less_equal(Y, 5), build.less_equal(build.index(0), build.sub(build.index(2), K)))
    )
    _, cond = settled(put(load))
    assert cond == "0 <= y * -1 + 5 and 0 <= k * -1 + 2"


def test_a_loop_that_is_seen_as_a_whole_gives_its_worst_point() -> None:
    inside = build.less(build.add(Y, K), H)
    _, cond = settled(Block((If(inside, Block((put(MANY),)), Block()),)), {"k": 8})
    assert cond == "0 <= g.shape[0] - y - 8"


def test_an_equality_is_settled_to_differ() -> None:
    text, cond = settled(put(build.select(build.binary(build.Op.EQ, Y, build.index(0)), ONE, MANY)))
    assert "select(False," in text
    assert cond == "0 <= y - 1"


def test_what_varies_inside_or_depends_on_data_stays() -> None:
    for cond in (build.less(K, 3), build.less(ONE, Load(LONG, "a", (Y,)))):
        text, assumed = settled(put(build.select(cond, MANY, ONE)), bound=frozenset({"k"}))
        assert "select" in text
        assert assumed == "True"


def test_of_two_alternatives_neither_is_assumed_but_by_its_sign() -> None:
    """`a or b` may hold in two ways: each side is as it is in the middle."""
    either = build.binary(build.Op.OR, build.less(build.index(0), Y), build.less(Y, build.index(-7)))
    text, cond = settled(put(build.select(either, MANY, ONE)))
    assert "select(True" in text
    assert cond == "0 <= y - 1"
