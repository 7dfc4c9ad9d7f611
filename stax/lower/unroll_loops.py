"""Replace each loop marked `unroll` by copies of its body.

before                              after
    for i in 0 +: 2 unroll:             g[0] = f[0] * 2
        g[i] = f[i] * 2                 g[1] = f[1] * 2

Needs: constant extents of UNROLL loops. Gives: no loop marked `unroll`; one that carries values, or whose copies would
be too many, is serial.
"""

from __future__ import annotations

from dataclasses import replace

from stax.algorithm.nodes import MARK
from stax.expr import build
from stax.loops.nodes import For, LoopKind, Program, Stmt
from stax.loops.walk import as_block, copy_with_fresh_names, nodes, rewrite_statements, substitute

MOST_NODES = 20_000


def unroll_loops(program: Program) -> Program:
    """Return `program` with marked loops written out."""
    return replace(program, body=as_block(rewrite_statements(program.body, _unroll)))


def _unroll(stmt: Stmt) -> Stmt:
    match stmt:
        case For(kind=LoopKind.UNROLL, extent=extent, carries=()) if build.integer(extent) is not None:
            count = build.integer(extent) or 0
            if len(nodes(stmt)) * count > MOST_NODES:
                return replace(stmt, kind=LoopKind.SERIAL)
            steps = reversed(range(count)) if stmt.down else range(count)
            copies = [
                substitute(copy_with_fresh_names(stmt.body, f"{MARK}u{k}"), {stmt.var.name: build.add(stmt.start, k)})
                for k in steps
            ]
            return as_block(*copies)
        case For(kind=LoopKind.UNROLL):
            return replace(stmt, kind=LoopKind.SERIAL)
        case _:
            return stmt
