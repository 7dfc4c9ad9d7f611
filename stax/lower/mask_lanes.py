"""Mark loops that become lanes as masked: on blocked machines the lanes of a partial tile are there and do nothing.

Gives: VECTOR loops that become code for all of their width.
"""

from __future__ import annotations

from dataclasses import replace

from stax.loops import walk
from stax.loops.nodes import For, LoopKind, Program, Stmt


def mask_lanes(program: Program) -> Program:
    """Return `program` with masked lanes."""

    def rule(stmt: Stmt) -> Stmt:
        lanes = isinstance(stmt, For) and stmt.kind is LoopKind.VECTOR and stmt.width is not None
        return replace(stmt, masked=True) if lanes else stmt

    return walk.with_body(program, walk.rewrite_statements(program.body, rule))
