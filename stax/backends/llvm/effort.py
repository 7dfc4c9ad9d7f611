"""Whether LLVM's loop passes have anything to do.

They take half of LLVM's time. What the printer leaves to them is memory that a loop reaches at one place in all its
iterations, an accumulator or a weight, to be kept in a register; arithmetic is hoisted by code generation too. Where no
innermost loop has such an access, a few cheap passes give the same loops.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from stax.expr import build
from stax.expr.nodes import Expr, Load, Local
from stax.expr.walk import children, postorder
from stax.loops import walk
from stax.loops.nodes import Allocate, Block, For, If, Let, LoopKind, Prefetch, Stmt, Store, Timed


def has_fixed_access(stmt: Stmt, varying: set[str] | None = None) -> bool:
    """Return whether some access below `stmt` is at the same place in all iterations of the loop right around it.

    varying: the names that differ between iterations of the loop around `stmt`, if there is one.
    """
    match stmt:
        case Block(stmts=stmts):
            return any([has_fixed_access(s, varying) for s in stmts])
        case Allocate() | Prefetch():
            return False
        case Timed(body=body):
            return has_fixed_access(body, varying)
        case Let(name=name, value=value):
            changing, fixed = _look((value,), varying)
            if varying is not None and changing[0]:
                varying.add(name.name)
            return fixed
        case Store(index=index):
            changing, fixed = _look(walk.expressions(stmt), varying)
            return fixed or (varying is not None and not any(changing[: len(index)]))
        case If(then=then, orelse=orelse):
            return any(
                [_look((stmt.cond,), varying)[1], has_fixed_access(then, varying), has_fixed_access(orelse, varying)]
            )
        case For(body=body, carries=carries):
            if _look((stmt.start, stmt.extent, *(c.init for c in carries)), varying)[1]:
                return True
            if stmt.kind is LoopKind.UNROLL and build.integer(stmt.extent) is not None:
                inside = varying
            else:
                inside = {stmt.var.name}
            if inside is not None:
                inside |= {c.name.name for c in carries}
            return has_fixed_access(body, inside) or _look([c.next for c in carries], inside)[1]
        case _:
            assert_never(stmt)


def _look(roots: Iterable[Expr], varying: set[str] | None) -> tuple[list[bool], bool]:
    """Return which of `roots` vary, and whether a Load below them does not."""
    kept = list(roots)
    if varying is None:
        return [False] * len(kept), False
    changes: dict[int, bool] = {}
    fixed = False
    for node in postorder(kept):
        if isinstance(node, Load):
            fixed = fixed or not any(changes[id(i)] for i in node.index)
            changes[id(node)] = True
        else:
            changes[id(node)] = (isinstance(node, Local) and node.name in varying) or any(
                changes[id(c)] for c in children(node)
            )
    return [changes[id(root)] for root in kept], fixed
