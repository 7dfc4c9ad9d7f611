"""Loop programs as text."""

from __future__ import annotations

from stax import dtypes
from stax.expr import build
from stax.expr.nodes import INDEX, Binary, BinaryOp, Call, Const, Expr, Fn, Load, Unary, UnaryOp
from stax.loops.nodes import Allocate, Block, Buffer, Carry, For, If, Let, LoopKind, Role, Store
from stax.loops.show import show, show_expr, show_stmt
from tests.loops import programs

I32, BOOL = dtypes.int32, dtypes.bool_


def test_tiles_masks_and_carries_are_shown() -> None:
    assert (
        show(programs.matmul(4, 2, 8))
        == """\
program matmul
    input a: float32[:, :]
    input b: float32[:, :]
    output c: float32[:, :]
    axes i:4, k:2, j:8

parallel for io in 0 +: (c.shape[0] + 3) // 4:
    parallel for jo in 0 +: (c.shape[1] + 7) // 8:
        $1 = io * 4 + ramp(i)
        $2 = jo * 8 + ramp(j)
        $3 = $1 < c.shape[0]
        $4 = $2 < c.shape[1]
        for ko in 0 +: (a.shape[1] + 1) // 2, carrying acc: float32<i:4, j:8> = c[$1, $2 if $3 and $4 else 0.0]:
            $5 = ko * 2 + ramp(k)
            $6 = $5 < a.shape[1]
            next acc = dot(acc, a[$1, $5 if $3 and $6 else 0.0], b[$5, $2 if $6 and $4 else 0.0], over=k)
        c[$1, $2 if $3 and $4] = max(acc, 0.0)
"""
    )


def test_every_statement_has_a_form() -> None:
    i, t, s = build.local("i"), build.local("t", I32), build.local("s", I32)
    n = build.local("n")
    scratch = Buffer("rows", dtypes.float32, (build.index(3), build.add(n, 2)), Role.SCRATCH)
    small = Buffer("one", dtypes.uint8, (build.index(1),), Role.SCRATCH)
    one = build.const(1, I32)
    vector = For(i, build.index(0), n, LoopKind.VECTOR, Block((Store("a", (i,), one, atomic=BinaryOp.MAX),)), width=8)
    down = For(
        build.local("k"), n, build.index(4), LoopKind.SERIAL, Block(), (Carry(s, one, build.add(s, 2)),), down=True
    )
    branch = If(build.less(n, 3), Block((Let(t, s),)), Block((vector,)))
    assert (
        show_stmt(Block((Allocate(scratch), Allocate(small), down, branch)))
        == """\
rows: float32[3, n + 2] = scratch  # (n + 2) * 12 bytes
one: uint8[1] = scratch  # 1 byte
for k in n +: 4 down, carrying s: int32 = 1:
    next s = s + 2
if n < 3:
    t: int32 = s
else:
    vector(8) for i in 0 +: n:
        atomic a[i] max= 1"""
    )


def test_brackets_stand_only_where_they_change_the_meaning() -> None:
    a, b, c = (build.local(x, I32) for x in "abc")
    f, g, h = (build.local(x, dtypes.float32) for x in "fgh")
    p, q = build.local("p", BOOL), build.local("q", BOOL)
    cases: list[tuple[Expr, str]] = [
        (build.mul(build.add(a, b), c), "(a + b) * c"),
        (build.sub(a, build.sub(b, c)), "a - (b - c)"),
        (build.add(a, build.add(b, c)), "a + b + c"),
        (build.add(f, build.add(g, h)), "f + (g + h)"),
        (build.add(a, -3), "a - 3"),
        (
            build.both(build.less(a, b), Unary(BOOL, UnaryOp.NOT, Binary(BOOL, BinaryOp.OR, p, q))),
            "a < b and not (p or q)",
        ),
        (Binary(I32, BinaryOp.AND, a, build.unary(UnaryOp.NEG, Binary(I32, BinaryOp.SHL, b, c))), "a & -(b << c)"),
        (build.select(p, build.cast(f, I32), build.unary(UnaryOp.ABS, a)), "select(p, int32(f), abs(a))"),
        (Call(dtypes.uint8, Fn.SATURATING_CAST, (a,)), "saturating_cast(uint8, a)"),
        (Binary(BOOL, BinaryOp.EQ, build.less(a, b), p), "(a < b) == p"),
        (build.minimum(a, -1), "min(a, -1)"),
        (Const(dtypes.float32, float("nan")), "nan"),
    ]
    assert [show_expr(e) for e, _ in cases] == [text for _, text in cases]


def test_equal_programs_made_apart_show_alike() -> None:
    assert show(programs.blur(4, 16)) == show(programs.blur(4, 16))


def test_what_memory_holds_is_named_again_after_a_store() -> None:
    """An abbreviation never stretches over a statement that could change its value."""
    i = build.local("index_of_i")
    value = Load(INDEX, "memory", (build.add(build.mul(i, 3), 1),))
    twice = Binary(INDEX, BinaryOp.MUL, value, value)
    lines = show_stmt(Block((Store("memory", (i,), twice), Store("memory", (i,), twice)))).splitlines()
    assert lines == [
        "$1 = memory[index_of_i * 3 + 1]", "memory[index_of_i] = $1 * $1",
        "$2 = memory[index_of_i * 3 + 1]", "memory[index_of_i] = $2 * $2",
    ]  # fmt: skip


def test_text_is_linear_in_a_shared_and_deep_graph() -> None:
    """As a tree this value has 2 ** 5000 nodes, and Python would not recurse so deep."""
    deep: Expr = build.local("x", I32)
    for _ in range(5000):
        deep = Binary(I32, BinaryOp.ADD, deep, build.unary(UnaryOp.NEG, deep))
    text = show_stmt(Store("out", (build.index(0),), deep))
    assert len(text) < 300_000
    assert max(map(len, text.splitlines())) < 200


def test_lines_of_a_long_sum_are_short() -> None:
    total: Expr = build.local("x0", I32)
    for k in range(1, 500):
        total = build.add(total, build.local(f"x{k}", I32))
    assert max(map(len, show_stmt(Store("out", (build.index(0),), total)).splitlines())) < 120
