"""Turn branches on whether there are lanes at all into masks: on masked blocks, lanes that do not exist do nothing.

before                                     after
    if 0 < n:                                  t[0 if 0 < n] = t[0 if 0 < n] + sum(a[ramp(x) if 0 < n and ...])
        t[0] = t[0] + sum(a[ramp(x) if ...])

Needs: accumulators are carried (`carry_accumulators`). Gives: the same program; stores stand in the block around.
"""

from __future__ import annotations

from dataclasses import replace

from stax.expr import build
from stax.expr.nodes import Binary, BinaryOp, Expr, Load
from stax.loops import walk
from stax.loops.nodes import Block, If, Program, Stmt, Store


def mask_branches(program: Program) -> Program:
    """Return `program` with masks for branches on `0 < n`."""

    def rule(stmt: Stmt) -> Stmt:
        return _masked(stmt.then, stmt.cond) if isinstance(stmt, If) and _on_extent(stmt) else stmt

    return walk.with_body(program, walk.rewrite_statements(program.body, rule))


def _on_extent(stmt: If) -> bool:
    cond = stmt.cond
    found = isinstance(cond, Binary) and cond.op is BinaryOp.LT and build.integer(cond.left) == 0
    return found and not cond.axes and not stmt.orelse.stmts


def _masked(block: Block, cond: Expr) -> Stmt:
    def load(node: Expr) -> Expr:
        return replace(node, mask=(*node.mask, cond)) if isinstance(node, Load) and node.index else node

    def store(stmt: Stmt) -> Stmt:
        return replace(stmt, mask=(*stmt.mask, cond)) if isinstance(stmt, Store) else stmt

    return walk.rewrite_statements(walk.rewrite_expressions(block, load), store)
