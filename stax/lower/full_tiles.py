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
from stax.expr.nodes import INDEX, Binary, BinaryOp, Const, Expr, Load, Local, Param, Size
from stax.expr.walk import postorder
from stax.loops.nodes import Allocate, Block, For, If, Let, LoopKind, Prefetch, Program, Stmt, Store, Timed
from stax.loops.walk import as_block, copy_with_fresh_names, rewrite_expressions
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
        cond: Expr = build.const(True, build.less(build.index(0), 1).dtype)
        for low in whole.tests():
            cond = build.both(cond, build.less_equal(build.index(0), self.algebra.expr(low)))
        cond = scope.simplified((cond,))[0]
        return If(cond, as_block(tidy(made, scope)), as_block(tile))


def _chain(tile: For) -> list[For]:
    """Return `tile` and the loops directly inside each other in it, all of known width; none where one is not."""
    chain: list[For] = []
    here: Stmt = tile
    while isinstance(here, For):
        if (
            here.carries
            or here.kind is LoopKind.PARALLEL
            or (here.width is None and build.integer(here.extent) is None)
        ):
            return []
        chain.append(here)
        here = here.body.stmts[0] if len(here.body.stmts) == 1 else here.body
    return chain


class _Whole:
    """A tile as it is in the middle; what must be at least 0 for that is collected."""

    def __init__(self, algebra: Algebra, chain: list[For]) -> None:
        self.algebra = algebra
        self.prover = Prover(algebra, {})
        self.widths = {loop.var.name: _width(loop) for loop in chain}
        self._lows: dict[tuple[tuple[int, int], ...], int] = {}

    def tests(self) -> list[Affine]:
        """Return the sums that are not negative in a whole tile, the strongest of those that differ by a constant."""
        return [Affine(const, terms) for terms, const in self._lows.items() if terms or const < 0]

    def tile(self, loop: For) -> For | None:
        """Return `loop` with full widths and settled conditions; None where that cannot be told at its start."""
        of = self.algebra.of
        start, end = of(loop.start), of(loop.start) + of(loop.extent)
        width = self.widths[loop.var.name]
        inside = self.prover.nonnegative(start) and self.prover.less_equal(end, Affine(width))
        if not inside or not self._assume(start * -1) or not self._assume(end - width):
            return None
        inner = loop.body.stmts[0] if len(loop.body.stmts) == 1 else None
        if isinstance(inner, For):
            below = self.tile(inner)
            if below is None:
                return None
            body: Block = as_block(below)
        else:
            body = as_block(rewrite_expressions(loop.body, self._settled))
        if len(self._lows) > MOST_TESTS:
            return None
        return replace(loop, start=build.index(0), extent=build.index(width), body=body)

    def _assume(self, a: Affine) -> bool:
        """Note that `a` is at least 0 at all points of the tile; False where that cannot be said outside it."""
        lows = self._lowest(a)
        if lows is None:
            return False
        for low in lows:
            known = self._lows.get(low.terms)
            self._lows[low.terms] = low.const if known is None else min(known, low.const)
        return True

    def _settled(self, node: Expr) -> Expr:
        of = self.algebra.of
        match node:
            case Binary(op=(BinaryOp.MIN | BinaryOp.MAX) as op, left=left, right=right) if node.dtype is INDEX:
                gap = of(right) - of(left)
                ahead = self._ahead(gap)
                if ahead is None or node.axes or not self._assume(gap if ahead else gap * -1):
                    return node
                return left if ahead == (op is BinaryOp.MIN) else right
            case Binary(op=(BinaryOp.LT | BinaryOp.LE | BinaryOp.EQ | BinaryOp.NE) as op, left=left, right=right):
                if left.dtype.name not in ("int64", "index") or _depends_on_data(node):
                    return node
                gap = of(right) - of(left) - (op is BinaryOp.LT)
                ahead = self._ahead(gap)
                exact = op in (BinaryOp.EQ, BinaryOp.NE)
                if ahead is None or not self._assume(gap - exact if ahead else gap * -1 - 1):
                    return node
                holds = op is BinaryOp.NE if exact else ahead
                return build.const(holds, node.dtype)
            case _:
                return node

    def _ahead(self, gap: Affine) -> bool | None:
        """Return whether `gap` is not negative in the middle: what sizes say, else what the innermost variable says."""
        sizes = [f for n, f in gap.terms if isinstance(self.algebra.atom(n), Size | Param)]
        if sizes:
            return sum(sizes) > 0
        order = list(self.widths)
        mine = [
            (order.index(atom.name), f)
            for n, f in gap.terms
            if isinstance(atom := self.algebra.atom(n), Local) and atom.name in self.widths
        ]
        return max(mine)[1] > 0 if mine else None

    def _lowest(self, a: Affine) -> list[Affine] | None:
        """Return sums over what is outside the tile that are all at least 0 only where `a` is at all its points."""
        for n, f in a.terms:
            atom, rest = self.algebra.atom(n), a.without(n)
            if not self._moves(atom):
                continue
            match atom:
                case Local(name=name):
                    return self._lowest(rest if f > 0 else rest + (self.widths[name] - 1) * f)
                case Binary(op=(BinaryOp.MIN | BinaryOp.MAX) as op, left=left, right=right):
                    if (op is BinaryOp.MIN) != (f > 0):
                        return None
                    arms = [self._lowest(rest + self.algebra.of(arm) * f) for arm in (left, right)]
                    return None if arms[0] is None or arms[1] is None else arms[0] + arms[1]
                case Binary(op=BinaryOp.FLOORDIV, left=left, right=Const(value=int(by))) if by > 0:
                    whole = self.algebra.of(left)
                    return self._lowest(rest * by + (whole - (by - 1) if f > 0 else whole) * f)
                case _:
                    return None
        return [a]

    def _moves(self, atom: Expr) -> bool:
        return any(isinstance(e, Local) and e.name in self.widths for e in postorder((atom,)))


def _width(loop: For) -> int:
    known = build.integer(loop.extent)
    assert known is not None or loop.width is not None
    return loop.width if known is None and loop.width is not None else int(known or 0)


def _depends_on_data(node: Expr) -> bool:
    return any(isinstance(e, Load) for e in postorder((node,)))
