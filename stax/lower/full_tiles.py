"""Run whole tiles of skewed nests without conditions: one test a tile.

before                                     after
    for t in max(0, a) +: min(8, b) - ...:     if 8 <= b and a <= 0 and 1 <= first x and ...:
        for x in max(0, c - t) +: ...:             for t in 0 +: 8:
            u[t, x] = select(x == 0, ...)              for x in 0 +: 32: u[t, x] = ...
                                               else: as before

A tile is whole where every loop of it runs its full width and every condition on positions goes, at all its points, the
way it goes in the middle: above 0 and below sizes.

Needs: `tidy_loops`. Gives: the same program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stax.algorithm.nodes import MARK
from stax.expr import build
from stax.expr.affine import Affine, Algebra, Prover
from stax.loops.nodes import Allocate, Block, For, If, Let, LoopKind, Prefetch, Program, Stmt, Store, Timed
from stax.loops.walk import as_block, bound_locals, copy_with_fresh_names, statements
from stax.lower.settling import Settling
from stax.lower.tidy_loops import Scope, tidy

MOST_TESTS = 64


def full_tiles(program: Program, algebra: Algebra, at_least: Mapping[int, int]) -> Program:
    """Return `program` with its tiles told apart."""
    return replace(program, body=_Tiles(algebra).block(program.body, Scope(algebra, at_least)))


class _Tiles:
    def __init__(self, algebra: Algebra) -> None:
        self.algebra, self.copies = algebra, 0

    def block(self, block: Block, scope: Scope) -> Block:
        return Block(tuple(self.stmt(s, scope) for s in block.stmts))

    def stmt(self, stmt: Stmt, scope: Scope) -> Stmt:
        match stmt:
            case Block():
                return self.block(stmt, scope)
            case If(cond=cond, then=then, orelse=orelse):
                return If(cond, self.block(then, scope.assuming(cond)), self.block(orelse, scope))
            case For():
                chain = _chain(stmt)
                if len(chain) > 1 and any(build.integer(loop.start) is None for loop in chain):
                    return self._told_apart(stmt, scope)
                start = self.algebra.of(stmt.start)
                inner = scope.inside(stmt.var, start, start + self.algebra.of(stmt.extent) - 1)
                return replace(stmt, body=self.block(stmt.body, inner))
            case Timed(body=body):
                return replace(stmt, body=self.block(body, scope))
            case Allocate() | Let() | Store() | Prefetch():
                return stmt

    def _told_apart(self, tile: For, scope: Scope) -> Stmt:
        self.copies += 1
        copy = copy_with_fresh_names(tile, f"{MARK}{self.copies}full")
        assert isinstance(copy, For)
        whole = _Whole(self.algebra, _chain(copy))
        made = whole.tile(copy)
        if made is None:
            return tile
        cond = scope.simplified((whole.settling.condition(),))[0]
        return If(cond, as_block(tidy(made, scope)), as_block(tile))


def _chain(tile: For) -> list[For]:
    """Return `tile` and the loops directly inside each other in it, as far as they are of known width.

    None where a loop further inside is skewed too: then the tiles are in there.
    """
    chain: list[For] = []
    here: Stmt = tile
    while isinstance(here, For) and _is_short(here):
        chain.append(here)
        here = here.body.stmts[0] if len(here.body.stmts) == 1 else here.body
    inside = (s for s in statements(here) if isinstance(s, For))
    return chain if all(build.integer(loop.start) is not None for loop in inside) else []


def _is_short(loop: For) -> bool:
    known = loop.width is not None or build.integer(loop.extent) is not None
    return known and not loop.carries and loop.kind is not LoopKind.PARALLEL


class _Whole:
    """A tile as it is in the middle."""

    def __init__(self, algebra: Algebra, chain: list[For]) -> None:
        self.algebra = algebra
        self.prover = Prover(algebra, {})
        self.widths = {loop.var.name: _width(loop) for loop in chain}
        bound = frozenset(local.name for local in bound_locals(chain[0])) - self.widths.keys()
        self.settling = Settling(algebra, tuple(self.widths), self.widths, bound)

    def tile(self, loop: For) -> For | None:
        """Return `loop` with full widths and settled conditions; None where that cannot be told at its start."""
        of = self.algebra.of
        start, end = of(loop.start), of(loop.start) + of(loop.extent)
        width = self.widths[loop.var.name]
        inside = self.prover.nonnegative(start) and self.prover.less_equal(end, Affine(width))
        if not inside or not self.settling.assume(start * -1) or not self.settling.assume(end - width):
            return None
        inner = loop.body.stmts[0] if len(loop.body.stmts) == 1 else None
        if isinstance(inner, For) and inner.var.name in self.widths:
            below = self.tile(inner)
            if below is None:
                return None
            body: Block = as_block(below)
        else:
            body = as_block(self.settling.settled(loop.body))
        if self.settling.count > MOST_TESTS:
            return None
        return replace(loop, start=build.index(0), extent=build.index(width), body=body)


def _width(loop: For) -> int:
    known = build.integer(loop.extent)
    assert known is not None or loop.width is not None
    return loop.width if known is None and loop.width is not None else int(known or 0)
