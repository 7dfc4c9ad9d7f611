"""Compute the first rows of a rolling window before its loop, so that each iteration computes one more.

before                                             after
    for y in 0 +: n:                               rows[0] = a(0); rows[1] = a(1)
        for r in 0 +: select(y == 0, 3, 1):        for y in 0 +: n:
            rows[...] = a(...)                         rows[y + 2] = a(y + 2)
        out[y] = rows[y] + ... + rows[y + 2]           out[y] = rows[y] + ... + rows[y + 2]

Needs: loops from 0, whose first iteration is told by `y == 0` alone (`build_nests`, `tidy_loops`).
Gives: the same program; what the rows before the loop load is masked where the loop has no iteration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stax.algorithm.nodes import MARK
from stax.dtypes import bool_
from stax.expr import build
from stax.expr.affine import Algebra
from stax.expr.nodes import Binary, BinaryOp, Expr, Load, Local
from stax.loops import walk
from stax.loops.nodes import Allocate, Block, For, LoopKind, Program, Stmt
from stax.lower.tidy_loops import Scope, tidy

MOST_BEFORE = 8


def start_rows(program: Program, algebra: Algebra, at_least: Mapping[int, int]) -> Program:
    """Return `program` with rolling windows started before their loops."""
    scope = Scope(algebra, at_least)

    def rule(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Block):
            return stmt
        scratch = {s.buffer.name for s in stmt.stmts if isinstance(s, Allocate)}
        out: list[Stmt] = []
        for s in stmt.stmts:
            started = _started(s, scratch, scope) if isinstance(s, For) else None
            out += [s] if started is None else started
        return Block(tuple(out)) if len(out) > len(stmt.stmts) else stmt

    return walk.with_body(program, walk.rewrite_statements(program.body, rule))


def _started(loop: For, scratch: set[str], scope: Scope) -> list[Stmt] | None:
    """Return rows before `loop`, and `loop` without them; None where it rolls none."""
    serial = loop.kind is LoopKind.SERIAL and not loop.down and not loop.carries and build.integer(loop.start) == 0
    if not serial or not loop.body.stmts:
        return None
    rows, *rest = loop.body.stmts
    if not isinstance(rows, For) or rows.kind is not LoopKind.SERIAL or rows.carries or rows.down:
        return None
    if not walk.buffers_stored(rows) or not walk.buffers_stored(rows) <= scratch:
        return None
    if walk.buffers_stored(rows) & walk.buffers_loaded(rows):
        return None
    first, then = (_count(rows, loop.var, known, scope) for known in (True, False))
    if first is None or then != 1 or not 1 < first <= MOST_BEFORE + 1:
        return None
    if build.integer(rows.start) != 0:
        return None
    some = build.less(build.index(0), loop.extent)
    before: list[Stmt] = []
    for k in range(first - 1):
        copy = walk.copy_with_fresh_names(rows.body, f"{MARK}start{k}")
        fixed = walk.substitute(
            _decided(copy, loop.var, True), {loop.var.name: build.index(0), rows.var.name: build.index(k)}
        )
        masked = walk.rewrite_expressions(
            fixed, lambda n: replace(n, mask=(*n.mask, some)) if isinstance(n, Load) else n
        )
        before += tidy(masked, scope).stmts
    steady = walk.substitute(_decided(rows.body, loop.var, False), {rows.var.name: build.index(0)})
    inner = scope.inside(loop.var, scope.algebra.of(loop.start), scope.algebra.of(loop.extent) - 1)
    return [*before, replace(loop, body=Block((*tidy(steady, inner).stmts, *rest)))]


def _count(rows: For, var: Local, first: bool, scope: Scope) -> int | None:
    """Return how many rows the first iteration computes, or each after it."""
    (extent,) = scope.simplified((_decide(rows.extent, var, first),))
    return build.integer(extent)


def _decide(root: Expr, var: Local, first: bool) -> Expr:
    decided = _decided(For(var, build.index(0), root, LoopKind.SERIAL, Block()), var, first)
    assert isinstance(decided, For)
    return decided.extent


def _decided(stmt: Stmt, var: Local, first: bool) -> Stmt:
    """Return `stmt` where `var == 0` is known."""

    def rule(node: Expr) -> Expr:
        match node:
            case Binary(op=BinaryOp.EQ, left=Local(name=name), right=zero) if (
                name == var.name and build.integer(zero) == 0
            ):
                return build.const(first, bool_)
            case _:
                return node

    return walk.rewrite_expressions(stmt, rule)
