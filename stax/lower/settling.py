"""Conditions on positions, settled the way they go in the middle of loops, and what must hold for that.

In the middle, what a load is masked by holds, and of two arms the one that computes more is taken. Where that does not
say it, positions are above 0 and below sizes, and a difference of positions has the sign of what its innermost loop
adds. Each assumption is a sum that is not negative at all points of the loops that are seen as a whole, said by the
names outside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stax.expr import build
from stax.expr.affine import Affine, Algebra
from stax.expr.nodes import (
    COMPARES,
    INDEX,
    Binary,
    BinaryOp,
    Const,
    Expr,
    Load,
    Local,
    Param,
    Select,
    Size,
    Unary,
    UnaryOp,
)
from stax.expr.walk import children, postorder, with_children
from stax.loops.nodes import If, Stmt, Store
from stax.loops.walk import all_expressions, map_expressions, statements

HEAVY = 1 << 30


class Settling:
    """Conditions as they are in the middle; what must be at least 0 for that is collected.

    `loops` are the names of the loops around, outermost first; those of `widths` are seen as a whole, from 0 to their
    width. What varies with one of `bound` is left as it is, and so are data: where no point is run, there may be none.
    """

    def __init__(
        self, algebra: Algebra, loops: Sequence[str], widths: Mapping[str, int], bound: frozenset[str] = frozenset()
    ) -> None:
        self.algebra = algebra
        self.widths, self._bound = widths, bound
        self._order = {name: at for at, name in enumerate(loops)}
        self._lows: dict[tuple[tuple[int, int], ...], int] = {}

    @property
    def count(self) -> int:
        """How many sums have been collected."""
        return len(self._lows)

    def condition(self) -> Expr:
        """Return the condition that all collected sums are at least 0."""
        cond: Expr = build.const(True, build.less(build.index(0), 1).dtype)
        for terms, const in self._lows.items():
            if terms or const < 0:
                cond = build.both(cond, build.less_equal(build.index(0), self.algebra.expr(Affine(const, terms))))
        return cond

    def assume(self, a: Affine) -> bool:
        """Note that `a` is at least 0 at all points; False where that cannot be said outside the loops."""
        lows = self._lowest(a)
        if lows is None:
            return False
        for low in lows:
            known = self._lows.get(low.terms)
            self._lows[low.terms] = low.const if known is None else min(known, low.const)
        return True

    def settled(self, stmt: Stmt) -> Stmt:
        """Return `stmt` as it is in the middle; what cannot be told outside stays as it is."""
        roots = all_expressions(stmt)
        wanted = _wanted(stmt, roots)
        new: dict[int, Expr] = {}
        for node in postorder(roots):
            fresh = with_children(node, tuple(new[id(c)] for c in children(node)))
            new[id(node)] = self._node(fresh, wanted.get(id(node)))
        return map_expressions(stmt, lambda root: new[id(root)])

    def _node(self, node: Expr, wanted: bool | None) -> Expr:
        of = self.algebra.of
        match node:
            case Binary(op=(BinaryOp.MIN | BinaryOp.MAX) as op, left=left, right=right) if node.dtype is INDEX:
                gap = of(right) - of(left)
                ahead = self._ahead(gap)
                if ahead is None or node.axes or not self.assume(gap if ahead else gap * -1):
                    return node
                return left if ahead == (op is BinaryOp.MIN) else right
            case Binary(op=op, left=left, right=right) if op in COMPARES:
                if left.dtype.name not in ("int64", "index") or node.axes:
                    return node
                exact = op in (BinaryOp.EQ, BinaryOp.NE)
                gap = of(right) - of(left) - (op is BinaryOp.LT)
                ahead = self._ahead(gap) if exact or wanted is None else wanted
                if ahead is None or not self.assume(gap - exact if ahead else gap * -1 - 1):
                    return node
                return build.const(op is BinaryOp.NE if exact else ahead, node.dtype)
            case _:
                return node

    def _ahead(self, gap: Affine) -> bool | None:
        """Return whether `gap` is not negative in the middle: what sizes say, else what the innermost loop says."""
        sizes = [f for n, f in gap.terms if isinstance(self.algebra.atom(n), Size | Param)]
        if sizes:
            return sum(sizes) > 0
        mine = [
            (self._order[atom.name], f)
            for n, f in gap.terms
            if isinstance(atom := self.algebra.atom(n), Local) and atom.name in self._order
        ]
        return max(mine)[1] > 0 if mine else None

    def _lowest(self, a: Affine) -> list[Affine] | None:
        """Return sums over what is outside that are all at least 0 only where `a` is at all points."""
        for n, f in a.terms:
            atom, rest = self.algebra.atom(n), a.without(n)
            below = postorder((atom,))
            names = {e.name for e in below if isinstance(e, Local)}
            if names & self._bound or any(isinstance(e, Load) for e in below):
                return None
            if not names & self.widths.keys():
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


def _wanted(stmt: Stmt, roots: Sequence[Expr]) -> dict[int, bool]:
    """Return, by their ids, the comparisons that hold in the middle and those that do not, as masks and arms say."""
    order = postorder(roots)
    weights: dict[int, int] = {}
    for node in order:
        weights[id(node)] = min(HEAVY, 1 + sum(weights[id(c)] for c in children(node)))
    found: dict[int, bool] = {}
    for s in statements(stmt):
        match s:
            case If(cond=cond, then=then, orelse=orelse):
                a, b = (sum(weights[id(e)] for e in all_expressions(arm)) for arm in (then, orelse))
                _want(cond, a >= b, found)
            case Store(mask=mask):
                _want_all(mask, found)
            case _:
                pass
    for node in order:
        if isinstance(node, Load):
            _want_all(node.mask, found)
    for node in order:
        match node:
            case Select(cond=cond, yes=yes, no=no) if weights[id(yes)] != weights[id(no)]:
                _want(cond, weights[id(yes)] > weights[id(no)], found)
            case _:
                pass
    return found


def _want_all(conds: Iterable[Expr], found: dict[int, bool]) -> None:
    for cond in conds:
        _want(cond, True, found)


def _want(cond: Expr, holds: bool, found: dict[int, bool]) -> None:
    """Note what must hold for `cond` to be as `holds` says, where there is one way; what was noted first stays."""
    stack = [(cond, holds)]
    while stack:
        node, truth = stack.pop()
        match node:
            case Binary(op=BinaryOp.AND, left=left, right=right) if truth and node.dtype.is_bool:
                stack += [(left, True), (right, True)]
            case Binary(op=BinaryOp.OR, left=left, right=right) if not truth and node.dtype.is_bool:
                stack += [(left, False), (right, False)]
            case Unary(op=UnaryOp.NOT, value=value) if node.dtype.is_bool:
                stack.append((value, not truth))
            case Binary(op=op) if op in COMPARES:
                found.setdefault(id(node), truth)
            case _:
                pass
