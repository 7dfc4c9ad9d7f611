"""Turn folded scratch of a serial loop into carried values: rolling rows on a machine whose programs own no memory.

before                                      after
    rows = scratch 3 x 16                       carry rows.0 = a(0), rows.1 = a(1)
    rows[0, j] = a(0); rows[1, j] = a(1)        for y serial:
    for y serial:                                   rows.2 = a(y + 2)
        rows[(y + 2) % 3, j] = a(y + 2)             out[y, j] = rows.0 + rows.1 + rows.2
        out[y, j] = rows[y % 3, j] + ...            next rows.0, rows.1 = rows.1, rows.2

Scratch that is used in any other way stays: the first index of every access must be `y + k` or `(y + k) % n` in the
loop, stored once with k = n - 1 before it is read; 0 .. n - 2 are stored before the loop, which starts at 0; other
indices are alike in all accesses, masks in all stores, and nobody else touches the scratch.

Needs: values have axes (`vectorize_loops`).
Gives: the same meaning, without the scratch that could be carried.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from stax.expr import build
from stax.expr.nodes import Binary, BinaryOp, Expr, Load, Local
from stax.expr.number import same
from stax.loops import walk
from stax.loops.nodes import Allocate, Block, Buffer, Carry, For, Let, LoopKind, Program, Stmt, Store


def carry_rows(program: Program) -> Program:
    """Return `program` with the rolling scratch carried."""

    def rule(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Block):
            for found in [s for s in stmt.stmts if isinstance(s, Allocate)]:
                stmt = _carried(found, stmt)
        return stmt

    return walk.with_body(program, walk.rewrite_statements(program.body, rule))


def _carried(allocate: Allocate, block: Block) -> Block:
    """Return `block` with this scratch carried, or as it is."""
    buffer = allocate.buffer
    users = [s for s in block.stmts if buffer.name in walk.buffers_loaded(s) | walk.buffers_stored(s)]
    if not users or not buffer.shape:
        return block
    *fills, loop = users
    depth = len(fills) + 1
    if depth < 2 or build.integer(buffer.shape[0]) not in (None, depth):
        return block
    if not isinstance(loop, For) or loop.kind is not LoopKind.SERIAL or loop.down or build.integer(loop.start) != 0:
        return block
    inner = _roll(loop, buffer)
    first = [s for s in fills if isinstance(s, Store) and s.atomic is None]
    if inner is None or len(first) != len(fills):
        return block
    if any(build.integer(s.index[0]) != k or not _alike(s, inner) for k, s in enumerate(first)):
        return block
    if _steps(inner.index[0], loop.var, depth) != depth - 1:
        return block
    value = inner.value
    rows = [Local(buffer.dtype, f"{buffer.name}.{k}", axes=value.axes) for k in range(depth)]
    new = _rolled(loop, buffer, inner, rows)
    if new is None:
        return block
    carries = tuple(Carry(row, s.value, after) for (row, after), s in zip(pairwise(rows), first, strict=True))
    new = replace(new, carries=(*new.carries, *carries))
    gone = {id(allocate), *map(id, first)}
    return Block(tuple(new if s is loop else s for s in block.stmts if id(s) not in gone))


def _roll(loop: For, buffer: Buffer) -> Store | None:
    """Return the one statement that stores into `buffer`, if it stands in the loop's own body, before any use."""
    for stmt in loop.body.stmts:
        if isinstance(stmt, Store) and stmt.buffer == buffer.name:
            alone = sum(s.buffer == buffer.name for s in walk.stores(loop.body)) == 1
            plain = stmt.atomic is None and buffer.name not in walk.buffers_loaded(stmt)
            return stmt if alone and plain else None
        if buffer.name in walk.buffers_loaded(stmt):
            return None
    return None


def _alike(store: Store, inner: Store) -> bool:
    same_places = all(same(a, b) for a, b in zip(store.index[1:], inner.index[1:], strict=True))
    same_lanes = len(store.mask) == len(inner.mask) and all(map(same, store.mask, inner.mask))
    return same_places and same_lanes and store.value.axes == inner.value.axes


def _rolled(loop: For, buffer: Buffer, inner: Store, rows: list[Local]) -> For | None:
    """Return `loop` reading `rows` instead of `buffer`, or None where a read is of another place."""
    fits = True

    def read(node: Expr) -> Expr:
        nonlocal fits
        if not isinstance(node, Load) or node.buffer != buffer.name:
            return node
        step = _steps(node.index[0], loop.var, len(rows))
        same_place = all(same(a, b) for a, b in zip(node.index[1:], inner.index[1:], strict=True))
        if step is None or not same_place or node.axes != rows[0].axes or node.other is not None:
            fits = False
            return node
        return rows[step]

    def roll(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Store) and stmt.buffer == buffer.name:
            return Let(rows[-1], stmt.value)
        return stmt

    new = walk.rewrite_statements(walk.rewrite_expressions(loop, read), roll)
    return new if fits and isinstance(new, For) else None


def _steps(index: Expr, var: Local, depth: int) -> int | None:
    """Return k of `var + k` or `(var + k) % depth`, where it is 0 .. depth - 1."""
    match index:
        case Local(name=name) if name == var.name:
            return 0
        case Binary(op=BinaryOp.ADD, left=Local(name=name), right=k) if name == var.name:
            step = build.integer(k)
            return step if step is not None and 0 <= step < depth else None
        case Binary(op=BinaryOp.MOD, left=Local(name=name), right=n) if name == var.name and build.integer(n) == depth:
            return 0
        case Binary(op=BinaryOp.MOD, left=Binary(op=BinaryOp.ADD, left=Local(name=name), right=k), right=n):
            step = build.integer(k)
            if name == var.name and build.integer(n) == depth and step is not None and 0 <= step < depth:
                return step
            return None
        case _:
            return None
