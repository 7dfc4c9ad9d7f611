"""Ask outside an innermost loop what does not change in it.

before                                     after
    for x in 0 +: n:                           if y > 0:
        g[y, x] = select(y > 0, a[x], b[x])        for x in 0 +: n: g[y, x] = a[x]
                                               else: as before

Loops of lanes and of copies inside it are seen as a whole: all their iterations must agree.

Needs: `partition_loops`, constant extents of VECTOR and UNROLL loops. Gives: the same program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby

from stax.algorithm.nodes import MARK
from stax.expr import build
from stax.expr.affine import Algebra
from stax.loops.nodes import Allocate, Block, For, If, Let, LoopKind, Prefetch, Program, Stmt, Store, Timed
from stax.loops.walk import as_block, bound_locals, copy_with_fresh_names, nodes, statements
from stax.lower.settling import Settling
from stax.lower.tidy_loops import Scope, tidy

MOST_TESTS = 32
MOST_NODES = 3000
SHORT = 2


def hoist_conditions(program: Program, algebra: Algebra, at_least: Mapping[int, int]) -> Program:
    """Return `program` with conditions that do not change in an innermost loop asked before it."""
    return replace(program, body=_Hoister(algebra).block(program.body, Scope(algebra, at_least), ()))


class _Hoister:
    def __init__(self, algebra: Algebra) -> None:
        self.algebra, self.copies = algebra, 0

    def block(self, block: Block, scope: Scope, around: tuple[str, ...]) -> Block:
        out: list[Stmt] = []
        for together, stmts in groupby(block.stmts, _is_innermost):
            if together:
                out.append(self._hoisted(as_block(*stmts), scope, around))
            else:
                out += (self._stmt(s, scope, around) for s in stmts)
        return as_block(*out)

    def _stmt(self, stmt: Stmt, scope: Scope, around: tuple[str, ...]) -> Stmt:
        match stmt:
            case Block():
                return self.block(stmt, scope, around)
            case If(cond=cond, then=then, orelse=orelse):
                return If(cond, self.block(then, scope, around), self.block(orelse, scope, around))
            case For():
                start = self.algebra.of(stmt.start)
                inner = scope.inside(stmt.var, start, start + self.algebra.of(stmt.extent) - 1)
                return replace(stmt, body=self.block(stmt.body, inner, (*around, stmt.var.name)))
            case Timed(body=body):
                return replace(stmt, body=self.block(body, scope, around))
            case Allocate() | Let() | Store() | Prefetch():
                return stmt

    def _hoisted(self, loops: Block, scope: Scope, around: tuple[str, ...]) -> Block:
        """Return loops that follow each other, behind one test."""
        if len(nodes(loops)) > MOST_NODES:
            return loops
        copy = as_block(copy_with_fresh_names(loops, f"{MARK}{self.copies + 1}plain"))
        inside = [s for loop in copy.stmts for s in statements(loop) if isinstance(s, For) and s is not loop]
        widths = {s.var.name: build.integer(s.extent) or 0 for s in inside}
        bound = frozenset(local.name for local in bound_locals(copy)) - widths.keys()
        settling = Settling(self.algebra, (*around, *widths), widths, bound)
        made = Block(
            tuple(
                replace(loop, body=as_block(settling.settled(loop.body)))
                for loop in copy.stmts
                if isinstance(loop, For)
            )
        )
        cond = scope.simplified((settling.condition(),))[0]
        if not settling.count or settling.count > MOST_TESTS or build.integer(cond) is not None:
            return loops
        self.copies += 1
        return as_block(If(cond, tidy(made, scope), loops))


def _is_innermost(loop: Stmt) -> bool:
    """Return whether `loop` is serial and of more than a few iterations, with lanes and copies at most inside."""
    if not isinstance(loop, For):
        return False
    if loop.kind is not LoopKind.SERIAL or loop.carries or (build.integer(loop.extent) or SHORT + 1) <= SHORT:
        return False
    return all(
        s.kind in (LoopKind.VECTOR, LoopKind.UNROLL)
        and not s.carries
        and build.integer(s.start) == 0
        and build.integer(s.extent) is not None
        for s in statements(loop.body)
        if isinstance(s, For)
    )
