"""Keep cells that a serial loop updates in registers.

before                                     after
    for r in 0 +: n:                           for r in 0 +: n carry acc = f[i]:
        f[i] = f[i] + a[i, r]                      acc' = acc + a[i, r]
                                               f[i] = acc

Needs: accesses whose equal positions are equal expressions (`tidy_loops`).
Gives: the same program; where all that a loop does to a buffer is to some cells that stay where they are and apart,
stored under one condition that stays as it is, or none. A cell stored several times in an iteration is handed from
store to store. What each iteration computes anew stays where it is in a loop that may be empty: there may be no such
cell then.
"""

from __future__ import annotations

from dataclasses import replace

from stax.algorithm.nodes import MARK
from stax.expr import build
from stax.expr.affine import Algebra
from stax.expr.nodes import Expr, Load, Local
from stax.expr.number import Numbering
from stax.expr.walk import names, postorder
from stax.loops.nodes import Allocate, Block, Carry, For, If, LoopKind, Program, Stmt, Store
from stax.loops.walk import all_expressions, bound_locals, buffers_loaded, rewrite_expressions, statements

Cell = tuple[int, ...]


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
    for buffer in dict.fromkeys(s.buffer for s in loop.body.stmts if isinstance(s, Store)):
        found = _Cells(loop, buffer).carried()
        if found is not None:
            loop, last = found
            after += last
    return [loop, *after]


class _Cells:
    """The cells of one buffer that a loop touches."""

    def __init__(self, loop: For, buffer: str) -> None:
        self.loop, self.buffer = loop, buffer
        self.numbering = Numbering()
        self.stores: dict[Cell, Store] = {}

    def carried(self) -> tuple[For, list[Stmt]] | None:
        """Return the loop with its cells carried, and the stores after it; None where they are not as they must be."""
        if not self._stay() or not self._apart() or not self._match() or self._may_be_missing():
            return None
        values: dict[Cell, Expr] = {}
        accs: dict[Cell, Local] = {}
        for k, (cell, store) in enumerate(self.stores.items()):
            name = f"{self.loop.var.name}{MARK}{self.buffer}{MARK}{k}"
            values[cell] = accs[cell] = Local(store.value.dtype, name, axes=store.value.axes)
        rest: list[Stmt] = []
        for stmt in self.loop.body.stmts:
            fresh = self._without_loads(stmt, values)
            if isinstance(fresh, Store) and fresh.buffer == self.buffer:
                values[self._cell(fresh)] = fresh.value
            else:
                rest.append(fresh)
        carries = tuple(
            Carry(accs[c], Load(s.value.dtype, self.buffer, s.index, s.mask, axes=s.value.axes), values[c])
            for c, s in self.stores.items()
        )
        after: list[Stmt] = [replace(s, value=accs[c]) for c, s in self.stores.items()]
        return replace(self.loop, body=Block(tuple(rest)), carries=(*self.loop.carries, *carries)), after

    def _cell(self, access: Store | Load) -> Cell:
        return tuple(self.numbering.of(i) for i in access.index)

    def _stay(self) -> bool:
        """Find the cells: stored right in the loop, at positions that it does not change."""
        bound = {local.name for local in bound_locals(self.loop)}
        for stmt in statements(self.loop.body):
            if isinstance(stmt, Allocate) and stmt.buffer.name == self.buffer:
                return False
            if isinstance(stmt, Store) and stmt.buffer == self.buffer:
                plain = stmt.atomic is None and any(s is stmt for s in self.loop.body.stmts)
                where = (*stmt.index, *stmt.mask)
                moves = names(where) & bound or any(isinstance(n, Load) for n in postorder(where))
                if not plain or moves or not self._same_mask(stmt, self.stores.setdefault(self._cell(stmt), stmt)):
                    return False
        return True

    def _may_be_missing(self) -> bool:
        """Return whether the cells are of a stage that is computed in each iteration, of which there may be none."""
        if (build.integer(self.loop.extent) or 0) > 0 or not names(i for s in self.stores.values() for i in s.index):
            return False
        for stmt in self.loop.body.stmts:
            if self.buffer in buffers_loaded(stmt):
                return False
            if isinstance(stmt, Store) and stmt.buffer == self.buffer:
                return True
        return False

    def _apart(self) -> bool:
        """Return whether no two cells share an element."""
        algebra = Algebra()
        found = list(self.stores.values())
        for k, a in enumerate(found):
            for b in found[:k]:
                gaps = [(algebra.of(x) - algebra.of(y), x, y) for x, y in zip(a.index, b.index, strict=True)]
                if not any(not g.terms and abs(g.const) >= max(_lanes(x), _lanes(y)) and g.const for g, x, y in gaps):
                    return False
        return True

    def _match(self) -> bool:
        """Return whether every load of the buffer is of one of the cells."""
        for node in postorder(all_expressions(self.loop.body)):
            if isinstance(node, Load) and node.buffer == self.buffer:
                store = self.stores.get(self._cell(node))
                if store is None or node.axes != store.value.axes or not self._same_mask(node, store):
                    return False
                if node.mask and node.other is not None:
                    return False
        return True

    def _same_mask(self, a: Store | Load, b: Store | Load) -> bool:
        return {self.numbering.of(m) for m in a.mask} == {self.numbering.of(m) for m in b.mask}

    def _without_loads(self, stmt: Stmt, values: dict[Cell, Expr]) -> Stmt:
        """Return `stmt` with each load of a cell replaced by the value it has there."""

        def rule(node: Expr) -> Expr:
            return values[self._cell(node)] if isinstance(node, Load) and node.buffer == self.buffer else node

        return rewrite_expressions(stmt, rule)


def _lanes(index: Expr) -> int:
    found = 1
    for axis in index.axes:
        found *= axis.size
    return found
