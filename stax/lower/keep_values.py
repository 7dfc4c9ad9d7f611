"""Keep scratch as values, where each use of it is of the cells that were stored last, in one place.

before                                     after
    m = scratch 1                              m.0 = 0
    m[0] = 0                                   for r serial carry acc = m.0: acc' = acc + a[r]
    for r serial carry acc = m[0]: ...         m.1 = acc
    m[0] = acc                                 f[x] = b[x] / m.1
    f[x] = b[x] / m[0]

Scratch outside of parallel loops stays, as several kernels may use it. So does what is used in any other way: all its
stores stand in the block that allocates it, all accesses are at the same index, along the same axes.

Needs: values have axes, accumulators are carried (`carry_accumulators`), lanes share axes (`share_axes`).
Gives: the same meaning without the scratch that could be kept so; lanes that nobody stored are undefined as before.
"""

from __future__ import annotations

from dataclasses import replace

from stax.algorithm.nodes import MARK
from stax.expr import build
from stax.expr.nodes import Expr, Load, Local
from stax.expr.number import Numbering
from stax.loops import walk
from stax.loops.nodes import Allocate, Block, For, Let, LoopKind, Program, Stmt, Store


def keep_values(program: Program) -> Program:
    """Return `program` with scratch as values."""

    def inside(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Block):
            for found in [s for s in stmt.stmts if isinstance(s, Allocate)]:
                stmt = _Kept(found, stmt).block() or stmt
        return stmt

    def rule(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For) and stmt.kind is LoopKind.PARALLEL:
            return replace(stmt, body=walk.as_block(walk.rewrite_statements(stmt.body, inside)))
        return stmt

    return walk.with_body(program, walk.rewrite_statements(program.body, rule))


class _Kept:
    """One scratch buffer and the block that allocates it."""

    def __init__(self, allocate: Allocate, block: Block) -> None:
        self.allocate, self.within = allocate, block
        self.name = allocate.buffer.name
        self.numbering = Numbering()
        self.place: tuple[int, ...] | None = None
        self.now: Expr | None = None
        self.held: tuple[int, ...] = ()
        self.fits = True

    def block(self) -> Block | None:
        """Return the block with values, or None where the scratch must stay."""
        own = [s for s in self.within.stmts if isinstance(s, Store) and s.buffer == self.name]
        if len(own) != sum(s.buffer == self.name for s in walk.stores(self.within)) or not own:
            return None
        if any(s.atomic is not None for s in own):
            return None
        out: list[Stmt] = []
        for stmt in self.within.stmts:
            if stmt is self.allocate:
                continue
            new = walk.rewrite_expressions(stmt, self._read)
            out.append(self._stored(new, len(out)) if isinstance(new, Store) and new.buffer == self.name else new)
        return Block(tuple(out)) if self.fits else None

    def _stored(self, store: Store, number: int) -> Let:
        value = store.value
        self._at(store.index)
        mask = tuple(self.numbering.of(m) for m in store.mask)
        if self.now is not None and mask != self.held:
            if self.now.axes != value.axes:
                self.fits = False
                return Let(Local(value.dtype, self.name, axes=value.axes), value)
            for cond in store.mask:
                value = build.select(build.spread(cond, value.axes), value, self.now)
        if self.now is None or not mask:
            self.held = mask
        name = Local(value.dtype, f"{self.name}{MARK}v{number}", axes=value.axes)
        self.now = name
        return Let(name, value)

    def _read(self, node: Expr) -> Expr:
        if not isinstance(node, Load) or node.buffer != self.name:
            return node
        self._at(node.index)
        if self.now is None or self.now.axes != node.axes:
            self.fits = False
            return node
        if node.other is None:
            return self.now
        value, other = self.now, build.spread(node.other, node.axes)
        for cond in node.mask:
            value = build.select(build.spread(cond, node.axes), value, other)
        return value

    def _at(self, index: tuple[Expr, ...]) -> None:
        """Note where an access is: all must be in one place, which no loop between them moves."""
        place = tuple(self.numbering.of(i) for i in index)
        self.place = place if self.place is None else self.place
        self.fits = self.fits and place == self.place
