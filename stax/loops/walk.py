"""Statements below a statement, their expressions, and how to rebuild both.

Statements nest no deeper than loops do, so these functions recurse over them; expressions are shared graphs, and are
rewritten for a whole statement at once, each node once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import assert_never

from stax.expr import walk as expr_walk
from stax.expr.nodes import Expr, Load, Local
from stax.loops.nodes import Allocate, Block, Buffer, Carry, For, If, Let, Prefetch, Program, Stmt, Store, Timed

MOST_CHANNELS = 4
"""Up to this many elements, a last dimension is taken as the channels of a pixel."""


def children(stmt: Stmt) -> tuple[Stmt, ...]:
    """Return the statements right below `stmt`, in order."""
    match stmt:
        case Allocate() | Let() | Store() | Prefetch():
            return ()
        case For(body=body) | Timed(body=body):
            return (body,)
        case If(then=then, orelse=orelse):
            return (then, orelse)
        case Block(stmts=stmts):
            return stmts
        case _:
            assert_never(stmt)


def with_children(stmt: Stmt, new: tuple[Stmt, ...]) -> Stmt:
    """Return `stmt` over the statements `new`; `stmt` itself where nothing differs."""
    if all(a is b for a, b in zip(children(stmt), new, strict=True)):
        return stmt
    match stmt:
        case Allocate() | Let() | Store() | Prefetch():
            return stmt
        case For() | Timed():
            return replace(stmt, body=as_block(new[0]))
        case If():
            return replace(stmt, then=as_block(new[0]), orelse=as_block(new[1]))
        case Block():
            return Block(new)
        case _:
            assert_never(stmt)


def as_block(*stmts: Stmt) -> Block:
    """Return `stmts` as one block, blocks among them taken apart."""
    if len(stmts) == 1 and isinstance(stmts[0], Block):
        return stmts[0]
    flat: list[Stmt] = []
    for stmt in stmts:
        flat += stmt.stmts if isinstance(stmt, Block) else (stmt,)
    return Block(tuple(flat))


def statements(stmt: Stmt) -> Iterator[Stmt]:
    """Yield `stmt` and every statement below it, outer ones first."""
    yield stmt
    for child in children(stmt):
        yield from statements(child)


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """Return the outermost expressions of `stmt` itself, not of the statements below it.

    Those of a loop are its start, its extent, and the `init` and `next` of its carries; of an Allocate, its shape.
    """
    match stmt:
        case Allocate(buffer=buffer):
            return buffer.shape
        case Let(value=value):
            return (value,)
        case Store(index=index, value=value, mask=mask):
            return (*index, value, *mask)
        case Prefetch(index=index):
            return index
        case For(start=start, extent=extent, carries=carries):
            return (start, extent, *(c.init for c in carries), *(c.next for c in carries))
        case If(cond=cond):
            return (cond,)
        case Timed() | Block():
            return ()
        case _:
            assert_never(stmt)


def with_expressions(stmt: Stmt, new: tuple[Expr, ...]) -> Stmt:
    """Return `stmt` with `new` in place of what `expressions` gives; `stmt` itself where nothing differs."""
    if all(a is b for a, b in zip(expressions(stmt), new, strict=True)):
        return stmt
    match stmt:
        case Allocate(buffer=buffer):
            return Allocate(replace(buffer, shape=new))
        case Let():
            return replace(stmt, value=new[0])
        case Store(index=index):
            rank = len(index)
            return replace(stmt, index=new[:rank], value=new[rank], mask=new[rank + 1 :])
        case Prefetch():
            return replace(stmt, index=new)
        case For(carries=carries):
            n = len(carries)
            pairs = zip(carries, new[2 : 2 + n], new[2 + n :], strict=True)
            carried = tuple(Carry(c.name, init, after) for c, init, after in pairs)
            return replace(stmt, start=new[0], extent=new[1], carries=carried)
        case If():
            return replace(stmt, cond=new[0])
        case Timed() | Block():
            return stmt
        case _:
            assert_never(stmt)


def all_expressions(stmt: Stmt) -> list[Expr]:
    """Return the outermost expressions of `stmt` and of all below it, in the order of `statements`."""
    return [root for s in statements(stmt) for root in expressions(s)]


def nodes(stmt: Stmt) -> list[Expr]:
    """Return every expression node used by `stmt` and below it once, children first."""
    return expr_walk.postorder(all_expressions(stmt))


def across(index: tuple[Expr, ...]) -> bool:
    """Return whether lanes go through an array along its last dimension but one, and no other."""
    return len(index) > 1 and bool(index[-2].axes) and not any(i.axes for i in (*index[:-2], index[-1]))


def pixels(program: Program) -> frozenset[str]:
    """Return the buffers whose lanes somewhere go `across`: neighbours are a row of the last dimension apart."""
    loads = (n.buffer for n in nodes(program.body) if isinstance(n, Load) and across(n.index))
    stores = (s.buffer for s in statements(program.body) if isinstance(s, Store) and across(s.index))
    return frozenset((*loads, *stores))


def map_expressions(stmt: Stmt, fn: Callable[[Expr], Expr]) -> Stmt:
    """Return `stmt` with `fn` applied to each outermost expression of it and of all below it."""
    below = tuple(map_expressions(child, fn) for child in children(stmt))
    return with_expressions(with_children(stmt, below), tuple(fn(root) for root in expressions(stmt)))


def rewrite_expressions(stmt: Stmt, rule: Callable[[Expr], Expr]) -> Stmt:
    """Return `stmt` with `rule` applied bottom up to every expression node once; what was shared stays shared."""
    roots = all_expressions(stmt)
    new = dict(zip(map(id, roots), expr_walk.rewrite_all(roots, rule), strict=True))
    return map_expressions(stmt, lambda root: new[id(root)])


def rewrite_statements(stmt: Stmt, rule: Callable[[Stmt], Stmt]) -> Stmt:
    """Return `stmt` with `rule` applied to every statement bottom up; a Block that it gives joins the one around it."""
    if isinstance(stmt, Block):
        return rule(_block(stmt, [rewrite_statements(child, rule) for child in stmt.stmts]))
    return rule(with_children(stmt, tuple(rewrite_statements(child, rule) for child in children(stmt))))


def with_body(program: Program, body: Stmt) -> Program:
    """Return `program` over another body."""
    return program if body is program.body else replace(program, body=as_block(body))


def substitute(stmt: Stmt, new: Mapping[str, Expr]) -> Stmt:
    """Return `stmt` with each use of a Local that is named in `new` replaced; what it binds itself keeps its name."""

    def rule(node: Expr) -> Expr:
        return new.get(node.name, node) if isinstance(node, Local) else node

    return rewrite_expressions(stmt, rule)


def copy_with_fresh_names(stmt: Stmt, suffix: str) -> Stmt:
    """Return a copy of `stmt` where each name that it binds, and each buffer it allocates, has `suffix` at its end."""
    names = {local.name: replace(local, name=local.name + suffix) for local in bound_locals(stmt)}
    buffers = {b.name: b.name + suffix for b in allocated(stmt)}

    def expr(node: Expr) -> Expr:
        match node:
            case Local(name=name) if name in names:
                return replace(node, name=name + suffix)
            case Load(buffer=buffer) if buffer in buffers:
                return replace(node, buffer=buffers[buffer])
            case _:
                return node

    def rename(s: Stmt) -> Stmt:
        match s:
            case Allocate(buffer=buffer):
                return Allocate(replace(buffer, name=buffers[buffer.name]))
            case Let(name=name):
                return replace(s, name=names[name.name])
            case Store(buffer=buffer) | Prefetch(buffer=buffer) if buffer in buffers:
                return replace(s, buffer=buffers[buffer])
            case For(var=var, carries=carries):
                carried = tuple(replace(c, name=names[c.name.name]) for c in carries)
                return replace(s, var=names[var.name], carries=carried)
            case Store() | Prefetch() | If() | Timed() | Block():
                return s
            case _:
                assert_never(s)

    return rewrite_statements(rewrite_expressions(stmt, expr), rename)


def bound_locals(stmt: Stmt) -> list[Local]:
    """Return what `stmt` and all below it bind: Lets, loop variables and carries."""
    found: list[Local] = []
    for s in statements(stmt):
        if isinstance(s, Let):
            found.append(s.name)
        elif isinstance(s, For):
            found += [s.var, *(c.name for c in s.carries)]
    return found


def free_locals(stmt: Stmt) -> dict[str, Local]:
    """Return the Locals that `stmt` uses and that are bound outside it, by name, in the order of first use."""
    bound = {local.name for local in bound_locals(stmt)}
    return {n.name: n for n in nodes(stmt) if isinstance(n, Local) and n.name not in bound}


def allocated(stmt: Stmt) -> list[Buffer]:
    """Return the scratch buffers that `stmt` and all below it allocate."""
    return [s.buffer for s in statements(stmt) if isinstance(s, Allocate)]


def loads(stmt: Stmt) -> list[Load]:
    """Return every Load node of `stmt` and below it once."""
    return [node for node in nodes(stmt) if isinstance(node, Load)]


def stores(stmt: Stmt) -> list[Store]:
    """Return every Store of `stmt` and below it."""
    return [s for s in statements(stmt) if isinstance(s, Store)]


def buffers_loaded(stmt: Stmt) -> set[str]:
    """Return the names of the buffers that `stmt` reads; an atomic store is no read."""
    return {node.buffer for node in loads(stmt)}


def buffers_stored(stmt: Stmt) -> set[str]:
    """Return the names of the buffers that `stmt` writes."""
    return {s.buffer for s in stores(stmt)}


def _block(before: Block, new: Iterable[Stmt]) -> Block:
    flat: list[Stmt] = []
    for stmt in new:
        flat += stmt.stmts if isinstance(stmt, Block) else (stmt,)
    if len(flat) == len(before.stmts) and all(a is b for a, b in zip(flat, before.stmts, strict=True)):
        return before
    return Block(tuple(flat))
