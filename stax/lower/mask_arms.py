"""Load only in the arm that is taken: on masked blocks, both arms of a choice are computed.

before                                          after
    v[t, x] = select(t == 0, u[x], v[t - 1, x])     v[t, x] = select(t == 0, u[x if t == 0], v[t - 1, x if t != 0])

Only choices that all lanes of a program make alike are looked at: their masks cost nothing, and what no lane loads is
no traffic. A load that is used outside of the arm as well stays as it is, and so does one of what the statement stores.

Needs: loops that become lanes are marked `vector`. Gives: the same program.
"""

from __future__ import annotations

from dataclasses import replace

from stax.expr import build
from stax.expr.nodes import Expr, Load, Local, Ramp, Read, Select, Var
from stax.expr.number import Numbering
from stax.expr.walk import children, postorder, with_children
from stax.loops import walk
from stax.loops.nodes import For, LoopKind, Program, Stmt, Store

_MOST_CHOICES = 8

_Arms = frozenset[tuple[int, bool]]
"""Choices that must have been made for a value to be used: the number of the condition, and what it is."""


def mask_arms(program: Program) -> Program:
    """Return `program` with masks on what only one arm of a choice loads."""
    loops = [s for s in walk.statements(program.body) if isinstance(s, For)]
    alike = {s.var.name for s in loops if s.kind is not LoopKind.VECTOR}
    alike -= {s.var.name for s in loops if s.kind is LoopKind.VECTOR}

    def rule(stmt: Stmt) -> Stmt:
        roots = walk.expressions(stmt)
        new = _masked(roots, alike, stmt.buffer if isinstance(stmt, Store) else None)
        return stmt if new is None else walk.with_expressions(stmt, new)

    return walk.with_body(program, walk.rewrite_statements(program.body, rule))


def _masked(roots: tuple[Expr, ...], alike: set[str], stored: str | None) -> tuple[Expr, ...] | None:
    order = postorder(roots)
    choices = {id(n) for n in order if isinstance(n, Select) and _made_alike(n.cond, alike)}
    if not choices or not any(isinstance(n, Load) for n in order):
        return None
    numbering, conds = Numbering(), dict[int, Expr]()
    arms: dict[int, _Arms] = {id(root): frozenset() for root in roots}
    for node in reversed(order):
        here = arms[id(node)]
        for k, child in enumerate(children(node)):
            way = here
            if id(node) in choices and k and len(here) < _MOST_CHOICES:
                assert isinstance(node, Select)
                number = numbering.of(node.cond)
                conds[number] = node.cond
                way = here | {(number, k == 1)}
            arms[id(child)] = arms[id(child)] & way if id(child) in arms else way
    new: dict[int, Expr] = {}
    for node in order:
        made = with_children(node, tuple(new[id(c)] for c in children(node)))
        if isinstance(made, Load) and made.index and made.buffer != stored and arms[id(node)]:
            told = [conds[n] if truth else build.negate(conds[n]) for n, truth in sorted(arms[id(node)])]
            made = replace(made, mask=(*made.mask, *told))
        new[id(node)] = made
    return tuple(new[id(root)] for root in roots)


def _made_alike(cond: Expr, alike: set[str]) -> bool:
    """Return whether all lanes see the same condition, which takes no load."""
    for node in postorder((cond,)):
        match node:
            case Local(name=name):
                if name not in alike:
                    return False
            case Load() | Read() | Ramp() | Var():
                return False
            case _:
                pass
    return True
