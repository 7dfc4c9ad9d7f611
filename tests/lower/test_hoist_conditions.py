"""What does not change in a loop is asked before it."""

from __future__ import annotations

import numpy as np

import stax as sx
from stax import dtypes
from stax.expr import build
from stax.expr.affine import Algebra
from stax.expr.nodes import INDEX, Expr, Load, Size
from stax.loops.interpret import interpret
from stax.loops.nodes import Block, Buffer, For, LoopKind, Program, Role, Stmt, Store
from stax.loops.show import show_stmt
from stax.loops.verify import verify
from stax.lower.hoist_conditions import hoist_conditions
from stax.lower.passes import lower

H, W = Size(INDEX, "g", 0), Size(INDEX, "g", 1)
Y, X, K = build.local("y"), build.local("x"), build.local("k")
LONG = dtypes.int64


def loop(var: Expr, extent: Expr, *body: Stmt, kind: LoopKind = LoopKind.SERIAL) -> For:
    width = build.integer(extent)
    return For(var, build.index(0), extent, kind, Block(body), width=width)  # type: ignore[arg-type]


def program(*body: Stmt) -> Program:
    buffers = tuple(Buffer(name, LONG, (H, W), role) for name, role in (("a", Role.INPUT), ("g", Role.OUTPUT)))
    return Program("p", buffers, (H, W), Block(body))


def result(made: Program, shape: tuple[int, int]) -> np.ndarray:
    given, got = np.arange(shape[0] * shape[1]).reshape(shape), np.zeros(shape, np.int64)
    interpret(made, {"a": given, "g": got}, {}, {("g", 0): shape[0], ("g", 1): shape[1]})
    return got


def hoisted(before: Program) -> Program:
    after = hoist_conditions(before, Algebra(), {})
    verify(after)
    for shape in ((5, 7), (1, 1), (2, 3), (0, 4), (9, 0)):
        assert (result(before, shape) == result(after, shape)).all()
    return after


def test_a_condition_on_an_outer_loop_stands_before_the_loops_that_follow_each_other() -> None:
    first = build.select(build.less(build.index(0), Y), Load(LONG, "a", (Y, X)), build.const(-1, LONG))
    other = build.local("z")
    again = build.add(Load(LONG, "g", (Y, other)), build.cast(build.minimum(Y, 3), LONG))
    body = (loop(X, W, Store("g", (Y, X), first)), loop(other, W, Store("g", (Y, other), again)))
    after = hoisted(program(loop(Y, H, *body)))
    text = show_stmt(after.body)
    assert text.count("if ") == 1
    assert text.count("select") == 1
    assert text.splitlines()[1].strip().startswith("if 0 <= y - 3:")


def test_what_the_loop_itself_decides_stays_in_it() -> None:
    value = build.select(build.less(build.index(0), X), Load(LONG, "a", (Y, X)), build.const(-1, LONG))
    before = program(loop(Y, H, loop(X, W, Store("g", (Y, X), value))))
    assert show_stmt(hoisted(before).body) == show_stmt(before.body)


def test_what_data_decides_stays_where_it_is() -> None:
    cond = build.less(build.const(3, LONG), Load(LONG, "a", (Y, build.index(0))))
    value = build.select(cond, Load(LONG, "a", (Y, X)), build.const(-1, LONG))
    before = program(loop(Y, H, loop(X, W, Store("g", (Y, X), value))))
    assert show_stmt(hoisted(before).body) == show_stmt(before.body)


def test_all_copies_must_agree() -> None:
    """Rows are `4 * y + k`; none but the first block has row 0."""
    row = build.add(build.mul(Y, 4), K)
    value = build.select(build.less(build.index(0), row), Load(LONG, "a", (row, X)), build.const(-1, LONG))
    copies = loop(K, build.index(4), Store("g", (row, X), value), kind=LoopKind.UNROLL)
    before = program(loop(Y, build.floordiv(H, 4), loop(X, W, copies)))
    after = hoisted(before)
    assert "if 0 <= y * 4 - 1" in show_stmt(after.body)


def test_what_hangs_on_data_is_not_asked_where_no_point_may_be_run() -> None:
    """The cell of `t` that decides is there for points of the inner loop alone (seed 1429 of the differential test)."""
    x, a, t = sx.Var("x"), sx.Input("a", sx.int64, 2), sx.Input("t", sx.int64, 1)
    f, r = sx.Func("f"), sx.RDom("r", k=(0, lambda r: x - 2))
    f[x] = sx.sum(a[r.k, sx.clip(t[x - 3], 0, a.shape[1] - 1)], over=r)
    given, cells, out = np.arange(63).reshape(9, 7), np.arange(-2, 5), np.zeros(9, np.int64)
    sizes = {("a", 0): 9, ("a", 1): 7, ("t", 0): 7, ("f", 0): 9}
    interpret(lower(sx.check(f)), {"a": given, "t": cells, "f": out}, {}, sizes)
    assert list(out) == [given[: max(0, k - 2), max(0, cells[k - 3])].sum() if k > 2 else 0 for k in range(9)]
