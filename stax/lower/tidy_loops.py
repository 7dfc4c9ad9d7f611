"""Simplify what loop bounds decide: positions in normal form, `min`, `max` and conditions that are known, empty loops.

before                                     after
    for x in 0 +: 16:                          for x in 0 +: 16:
        g[min(x, 20)] = a[x - x + 3]               g[x] = a[3]
        if x < 16: ...                             ...

Needs: loops whose bounds are over `index`.
Gives: the same program; no binding of a position by a Let, no loop of one iteration, no condition that was proved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stax.expr import build
from stax.expr.affine import Affine, Algebra, Interval, Prover, whole
from stax.expr.nodes import INDEX, Binary, BinaryOp, Cast, Expr, Load, Local, Param, Select, Size, Unary, UnaryOp
from stax.expr.walk import rewrite_all
from stax.loops.nodes import Allocate, Block, Carry, For, If, Let, LoopKind, Prefetch, Program, Stmt, Store, Timed
from stax.loops.walk import as_block


class Scope:
    """What is known where a statement stands: the ranges of loop variables, and positions that names stand for."""

    def __init__(
        self,
        algebra: Algebra,
        at_least: Mapping[int, int],
        ranges: Mapping[str, Interval] | None = None,
        names: Mapping[str, Expr] | None = None,
    ) -> None:
        self.algebra, self.at_least = algebra, at_least
        self.ranges: dict[str, Interval] = dict(ranges or {})
        self.names: dict[str, Expr] = dict(names or {})
        self.prover = Prover(algebra, self.ranges, at_least)

    def inside(self, var: Local, lo: Affine, hi: Affine) -> Scope:
        """Return the scope inside a loop over `var` from `lo` to `hi`."""
        return Scope(self.algebra, self.at_least, {**self.ranges, var.name: Interval(lo, hi)}, self.names)

    def named(self, name: str, value: Expr) -> Scope:
        """Return the scope where `name` stands for `value`."""
        return Scope(self.algebra, self.at_least, self.ranges, {**self.names, name: value})

    def assuming(self, cond: Expr) -> Scope:
        """Return the scope where `cond` holds: what it says of the least that sizes and Params may be is known."""
        least = dict(self.at_least)
        ahead = [cond]
        while ahead:
            match ahead.pop():
                case Binary(op=BinaryOp.AND | BinaryOp.MUL, left=left, right=right) if left.dtype.is_bool:
                    ahead += [left, right]
                case Binary(op=(BinaryOp.LT | BinaryOp.LE) as op, left=left, right=right) if whole(left):
                    gap = self.algebra.of(right) - self.algebra.of(left) - (op is BinaryOp.LT)
                    if len(gap.terms) == 1 and gap.terms[0][1] == 1 and _scalar(self.algebra.atom(gap.terms[0][0])):
                        number = gap.terms[0][0]
                        least[number] = max(-gap.const, least.get(number, -gap.const))
                case _:
                    pass
        return self if least == self.at_least else Scope(self.algebra, least, self.ranges, self.names)

    def simplified(self, roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Return `roots` simplified by what is known here."""
        return rewrite_all(roots, self._rule)

    def _rule(self, node: Expr) -> Expr:
        of = self.algebra.of
        match node:
            case Local(name=name) if name in self.names:
                return self.names[name]
            case Binary(op=(BinaryOp.MIN | BinaryOp.MAX) as op, left=left, right=right) if _position(node):
                pick = self.prover.minimum if op is BinaryOp.MIN else self.prover.maximum
                return self.algebra.expr(pick(of(left), of(right)))
            case Binary(op=BinaryOp.FLOORDIV | BinaryOp.MOD) if _position(node):
                return self._divided(node)
            case Binary() if _position(node):
                return self.algebra.simplify(node)
            case Binary(op=op, left=left, right=right) if node.dtype.is_bool and whole(left) and not node.axes:
                return self._compared(node, op, of(left), of(right))
            case Binary(op=op, left=left, right=right) if node.dtype.is_bool:
                return build.binary(op, left, right, node.span)
            case Unary(op=UnaryOp.NOT, value=value) if node.dtype.is_bool and build.integer(value) is not None:
                return build.negate(value)
            case Select(cond=cond, yes=yes, no=no):
                return build.select(cond, yes, no, node.span) if build.integer(cond) is not None else node
            case Cast(value=value) if node.dtype is INDEX and whole(value) and not node.axes:
                return self.algebra.simplify(value)
            case Load(mask=mask):
                return replace(node, mask=_conjuncts(mask))
            case _:
                return node

    def _divided(self, node: Binary) -> Expr:
        of = self.algebra.of
        by = build.integer(node.right)
        if by is not None and by > 0:
            whole = of(node.left)
            if self.prover.nonnegative(whole) and self.prover.less_equal(whole, Affine(by - 1)):
                return node.left if node.op is BinaryOp.MOD else build.index(0)
        return self.algebra.simplify(node)

    def _compared(self, node: Binary, op: BinaryOp, a: Affine, b: Affine) -> Expr:
        if any(isinstance(self.algebra.atom(n), Select) for n, _ in (a - b).terms):
            return node  # a value, not a position: following every arm of a long chain of them would take long
        prove = self.prover.less_equal
        yes = build.const(True, node.dtype)
        no = build.const(False, node.dtype)
        match op:
            case BinaryOp.LT:
                return yes if prove(a, b - 1) else no if prove(b, a) else node
            case BinaryOp.LE:
                return yes if prove(a, b) else no if prove(b, a - 1) else node
            case BinaryOp.EQ | BinaryOp.NE:
                apart = prove(a, b - 1) or prove(b, a - 1)
                equal = a == b or (prove(a, b) and prove(b, a))
                if not apart and not equal:
                    return node
                return yes if equal == (op is BinaryOp.EQ) else no
            case _:
                return node


def tidy_loops(program: Program, algebra: Algebra, at_least: Mapping[int, int]) -> Program:
    """Return `program` simplified."""
    return replace(program, body=as_block(tidy(program.body, Scope(algebra, at_least))))


def tidy(stmt: Stmt, scope: Scope) -> Block:
    """Return `stmt` simplified by what `scope` knows."""
    match stmt:
        case Block(stmts=stmts):
            out: list[Stmt] = []
            for s in stmts:
                match s:
                    case Let(name=name, value=value) if name.dtype is INDEX and not name.axes:
                        scope = scope.named(name.name, scope.simplified((value,))[0])
                    case _:
                        out += tidy(s, scope).stmts
            return Block(tuple(out))
        case Let(name=name, value=value):
            return Block((Let(name, scope.simplified((value,))[0]),))
        case Allocate(buffer=buffer):
            return Block((Allocate(replace(buffer, shape=scope.simplified(buffer.shape))),))
        case Store(index=index, value=value, mask=mask):
            new = scope.simplified((value, *index, *mask))
            kept = _conjuncts(new[1 + len(index) :])
            if any(build.integer(m) == 0 for m in kept):
                return Block()
            return Block((replace(stmt, value=new[0], index=new[1 : 1 + len(index)], mask=kept),))
        case Prefetch(index=index):
            return Block((replace(stmt, index=scope.simplified(index)),))
        case If(cond=cond, then=then, orelse=orelse):
            return _branch(scope.simplified((cond,))[0], then, orelse, scope)
        case For():
            return _loop(stmt, scope)
        case Timed(body=body):
            return Block((replace(stmt, body=tidy(body, scope)),))


def _branch(cond: Expr, then: Block, orelse: Block, scope: Scope) -> Block:
    known = build.integer(cond)
    if known is not None:
        return tidy(then if known else orelse, scope)
    a, b = tidy(then, scope.assuming(cond)), tidy(orelse, scope)
    return Block((If(cond, a, b),)) if a.stmts or b.stmts else Block()


def _loop(loop: For, scope: Scope) -> Block:
    inits = scope.simplified((loop.start, loop.extent, *(c.init for c in loop.carries)))
    start, extent = inits[:2]
    of = scope.algebra.of
    count = build.integer(extent)
    if count is None and scope.prover.nonnegative(of(extent) * -1):
        count = 0
    if count is not None and not loop.carries:
        if count <= 0:
            return Block()
        if count == 1:
            return tidy(loop.body, scope.named(loop.var.name, start))
    inner = scope.inside(loop.var, of(start), of(start) + of(extent) - 1)
    body = tidy(loop.body, inner)
    if not body.stmts and not loop.carries:
        return Block()
    carries = tuple(
        Carry(c.name, init, inner.simplified((c.next,))[0]) for c, init in zip(loop.carries, inits[2:], strict=True)
    )
    width = count if count is not None and loop.kind in (LoopKind.VECTOR, LoopKind.UNROLL) else loop.width
    return Block((replace(loop, start=start, extent=extent, body=body, carries=carries, width=width),))


def _scalar(atom: Expr) -> bool:
    return isinstance(atom, Size | Param) or (isinstance(atom, Cast) and isinstance(atom.value, Param))


def _position(node: Expr) -> bool:
    return node.dtype is INDEX and not node.axes


def _conjuncts(mask: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return the conditions of `mask` that are not known to hold."""
    return tuple(m for m in mask if build.integer(m) != 1)
