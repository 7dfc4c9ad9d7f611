"""Write the loops that stages share: each stage runs where it has that iteration, some iterations behind the first.

before                              after
    for y in 0 +: n: f[y] = ...         for y in 0 +: n + 2:
    for y in 0 +: m: g[y] = ...             if y < n: f[y] = ...
                                            if y >= 2 and y - 2 < m: g[y - 2] = ...
"""

from __future__ import annotations

from collections.abc import Callable

from stax.algorithm.nodes import MARK
from stax.dtypes import bool_
from stax.expr import build
from stax.expr.nodes import Expr
from stax.loops.nodes import Block, For, If, Let, Stmt
from stax.schedule.directives import StageRef
from stax.schedule.legal import Legal, Together


def joined(shared: Together, legal: Legal, inside: Callable[[StageRef, int], list[Stmt]]) -> list[Stmt]:
    """Return the shared loops; `inside` gives what a stage does in its outermost loops."""
    members = ((shared.host, 0), *shared.guests)
    body: list[Stmt] = []
    for ref, shift in members:
        conds: Expr = build.const(True, bool_)
        for k, loop in enumerate(legal.points[ref].loops[: shared.depth]):
            if (k == shared.depth - 1 and shift) or (k == shared.depth - 1 and any(s < 0 for _, s in members)):
                conds = build.both(conds, build.less_equal(build.index(0), loop.var))
            conds = build.both(conds, build.less(loop.var, loop.extent))
        body.append(If(conds, Block(tuple(inside(ref, shared.depth))), Block()))
    for k in reversed(range(shared.depth)):
        own = legal.points[shared.host].loops[k]
        var = build.local(f"{own.var.name}{MARK}shared")
        last = k == shared.depth - 1
        start = min(0, *(s for _, s in members)) if last else 0
        lets: list[Stmt] = []
        extent: Expr | None = None
        for ref, shift in members:
            loop = legal.points[ref].loops[k]
            behind = shift if last else 0
            lets.append(Let(loop.var, build.sub(var, behind)))
            end = build.add(loop.extent, behind - start)
            extent = end if extent is None else build.maximum(extent, end)
        assert extent is not None
        loop = For(var, build.index(start), extent, own.loop.kind, Block((*lets, *body)), cut=own.loop.cut)
        body = [loop]
    return body
