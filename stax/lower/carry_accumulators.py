"""Keep a cell that a serial loop updates in a register.

before                                     after
    for r in 0 +: n:                           for r in 0 +: n carry acc = f[i]:
        f[i] = f[i] + a[i, r]                      acc' = acc + a[i, r]
                                               f[i] = acc

Needs: accesses whose equal positions are equal expressions (`tidy_loops`).
Gives: the same program; where the loop's every access to a buffer is to one cell, stored once without a condition.
"""

from __future__ import annotations

from dataclasses import replace

from stax.algorithm.nodes import MARK
from stax.expr.nodes import Expr, Load, Local
from stax.expr.number import Numbering
from stax.expr.walk import names, postorder
from stax.loops.nodes import Allocate, Block, Carry, For, If, LoopKind, Program, Stmt, Store
from stax.loops.walk import all_expressions, bound_locals, rewrite_expressions, statements


def carry_accumulators(program: Program) -> Program:
    """Return `program` with accumulators carried."""
    return replace(program, body=_block(program.body))


def _block(block: Block) -> Block:
    out: list[Stmt] = []
    for stmt in block.stmts:
        match stmt:
            case For():
                out += _carried(replace(stmt, body=_block(stmt.body)))
            case If(cond=cond, then=then, orelse=orelse):
                out.append(If(cond, _block(then), _block(orelse)))
            case Block():
                out += _block(stmt).stmts
            case _:
                out.append(stmt)
    return Block(tuple(out))


def _carried(loop: For) -> list[Stmt]:
    if loop.kind is not LoopKind.SERIAL:
        return [loop]
    after: list[Stmt] = []
    for store in [s for s in loop.body.stmts if isinstance(s, Store)]:
        found = _cell(loop, store)
        if found is not None:
            loop, last = found
            after.append(last)
    return [loop, *after]


def _cell(loop: For, store: Store) -> tuple[For, Store] | None:
    """Return `loop` with the cell of `store` carried, and the store after it; None where it is not one cell."""
    if store.mask or store.atomic is not None:
        return None
    bound = {local.name for local in bound_locals(loop)}
    if names(store.index) & bound or any(isinstance(n, Load) for n in postorder(store.index)):
        return None
    touching = [s for s in statements(loop.body) if isinstance(s, Store | Allocate) and _buffer(s) == store.buffer]
    if len(touching) != 1:
        return None
    numbering = Numbering()
    own = [numbering.of(i) for i in store.index]
    at = next(k for k, s in enumerate(loop.body.stmts) if s is store)
    axes = store.value.axes
    for k, stmt in enumerate(loop.body.stmts):
        for node in postorder(all_expressions(stmt)):
            if isinstance(node, Load) and node.buffer == store.buffer:
                plain = not node.mask and node.axes == axes and [numbering.of(i) for i in node.index] == own
                if not plain or k > at:
                    return None
    acc = Local(store.value.dtype, f"{loop.var.name}{MARK}{store.buffer}", axes=axes)
    first = Load(store.value.dtype, store.buffer, store.index, axes=axes)

    def rule(node: Expr) -> Expr:
        return acc if isinstance(node, Load) and node.buffer == store.buffer else node

    body = rewrite_expressions(Block(loop.body.stmts), rule)
    assert isinstance(body, Block)
    kept = body.stmts[at]
    assert isinstance(kept, Store)
    rest = Block((*body.stmts[:at], *body.stmts[at + 1 :]))
    carried = replace(loop, body=rest, carries=(*loop.carries, Carry(acc, first, kept.value)))
    return carried, replace(store, value=acc)


def _buffer(stmt: Store | Allocate) -> str:
    return stmt.buffer if isinstance(stmt, Store) else stmt.buffer.name
