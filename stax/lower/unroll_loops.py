"""Replace each loop marked `unroll` by copies of its body.

before                              after
    for i in 0 +: 2 unroll:             g[0] = f[0] * 2
        g[i] = f[i] * 2                 g[1] = f[1] * 2

A loop that is `masked` is written out to its `width`, and each iteration masks what it loads and stores where it does
not exist: so a partial tile is like a full one, and its accumulators stay in registers.

Needs: constant extents of UNROLL loops; with `masked`, an extent below `width` masks the rest. Gives: no loop marked
`unroll`; one that carries values, or whose copies would be too many, is serial.
"""

from __future__ import annotations

from dataclasses import replace

from stax.algorithm.nodes import MARK
from stax.expr import build
from stax.expr.nodes import Expr, Load
from stax.expr.walk import postorder
from stax.loops.nodes import Block, For, If, Let, LoopKind, Program, Stmt, Store
from stax.loops.walk import as_block, copy_with_fresh_names, nodes, rewrite_expressions, rewrite_statements, substitute

MOST_NODES = 20_000


def unroll_loops(program: Program) -> Program:
    """Return `program` with marked loops written out."""
    return replace(program, body=as_block(rewrite_statements(program.body, _unroll)))


def _unroll(stmt: Stmt) -> Stmt:
    match stmt:
        case For(kind=LoopKind.UNROLL, carries=()) if (count := _count(stmt)) is not None:
            if len(nodes(stmt)) * count > MOST_NODES:
                return replace(stmt, kind=LoopKind.SERIAL)
            open_end = build.integer(stmt.extent) is None
            copies: list[Stmt] = []
            for k in reversed(range(count)) if stmt.down else range(count):
                fresh = copy_with_fresh_names(stmt.body, f"{MARK}u{k}")
                one = as_block(substitute(fresh, {stmt.var.name: build.add(stmt.start, k)}))
                copies.append(_only_where(build.less(build.index(k), stmt.extent), one) if open_end else one)
            return as_block(*copies)
        case For(kind=LoopKind.UNROLL):
            return replace(stmt, kind=LoopKind.SERIAL)
        case _:
            return stmt


def _count(loop: For) -> int | None:
    known = build.integer(loop.extent)
    return max(known, 0) if known is not None else loop.width if loop.masked else None


def _only_where(cond: Expr, block: Block) -> Block:
    """Return `block` run where `cond` holds: by masks where it only loads and stores, else by a branch."""
    straight = all(isinstance(s, Let | Store) for s in block.stmts)
    if not straight or any(isinstance(n, Load) for n in postorder(_places(block))):
        return Block((If(cond, block, Block()),))

    def rule(node: Expr) -> Expr:
        return replace(node, mask=(*node.mask, cond)) if isinstance(node, Load) else node

    masked = as_block(rewrite_expressions(block, rule))
    return Block(tuple(replace(s, mask=(*s.mask, cond)) if isinstance(s, Store) else s for s in masked.stmts))


def _places(block: Block) -> list[Expr]:
    """Return what says where `block` loads and stores, and whether."""
    stores = [e for s in block.stmts if isinstance(s, Store) for e in (*s.index, *s.mask)]
    return [*stores, *(e for n in nodes(block) if isinstance(n, Load) for e in (*n.index, *n.mask))]
