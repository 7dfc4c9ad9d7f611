"""Integer expressions as sums `c0 + c1 * atom1 + ...`, so that equal positions look equal, and proofs about them.

int64 and `index` are one here: positions do not overflow. A value that depends on data may, so that sums of it that
could are no sums here. An atom is whatever is not a sum or a multiple: a name, a size, a floor division, a minimum, a
value that depends on data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from stax.expr import build
from stax.expr.nodes import (
    INDEX,
    Binary,
    BinaryOp,
    Broadcast,
    Cast,
    Const,
    Expr,
    Local,
    Param,
    Ramp,
    Select,
    Size,
    Unary,
    UnaryOp,
    Var,
)  # fmt: skip
from stax.expr.number import Numbering
from stax.expr.value_range import of_dtype, value_ranges
from stax.expr.walk import children, names, with_children


@dataclass(frozen=True, slots=True)
class Affine:
    """`const` plus, for each `(atom, factor)` of `terms`, factor times that atom of the `Algebra` that made it."""

    const: int
    terms: tuple[tuple[int, int], ...] = ()

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.const + other, self.terms)
        sums = dict(self.terms)
        for atom, factor in other.terms:
            sums[atom] = sums.get(atom, 0) + factor
        return Affine(self.const + other.const, tuple(sorted((a, f) for a, f in sums.items() if f)))

    def __sub__(self, other: Affine | int) -> Affine:
        return self + other * -1

    def __mul__(self, factor: int) -> Affine:
        if not factor:
            return Affine(0)
        return Affine(self.const * factor, tuple((a, f * factor) for a, f in self.terms))

    def factor(self, atom: int) -> int:
        """Return the factor of `atom`."""
        return next((f for a, f in self.terms if a == atom), 0)

    def without(self, atom: int) -> Affine:
        """Return the sum less its term of `atom`."""
        return Affine(self.const, tuple((a, f) for a, f in self.terms if a != atom))


@dataclass(frozen=True, slots=True)
class Interval:
    """What lies between `lo` and `hi`, both included; None where nothing is known on that side."""

    lo: Affine | None
    hi: Affine | None

    @property
    def first(self) -> Affine:
        """The lower end, of an interval that is known on that side."""
        assert self.lo is not None
        return self.lo

    @property
    def last(self) -> Affine:
        """The upper end, of an interval that is known on that side."""
        assert self.hi is not None
        return self.hi


EVERYTHING = Interval(None, None)
POSITION = 1 << 47  # what positions, sizes and the Params that they are computed from stay below
EVERY_WORD = (-math.inf, math.inf)
WORD = 1 << 62  # sums that stay below it are those of 64-bit integers
Ranges = Mapping[str, Interval]


class Algebra:
    """Makes sums of expressions and expressions of sums; equal atoms get equal numbers."""

    def __init__(self) -> None:
        self._numbering = Numbering()
        self._atoms: dict[int, Expr] = {}
        self._spans: dict[int, tuple[float, float]] = {}
        self._memo: dict[int, tuple[Expr, Affine]] = {}
        self._names: dict[int, frozenset[str]] = {}
        self._exprs: dict[Affine, Expr] = {}

    def atom(self, number: int) -> Expr:
        """Return the expression of an atom, of dtype `index`."""
        return self._atoms[number]

    def names(self, number: int) -> frozenset[str]:
        """Return the names of the Vars and Locals in an atom."""
        if number not in self._names:
            self._names[number] = frozenset(names((self._atoms[number],)))
        return self._names[number]

    def of(self, expr: Expr) -> Affine:
        """Return the sum of the integer expression `expr`.

        >>> from stax.expr.build import add, floordiv, mul, sub
        >>> x, a = build.local("x"), Algebra()
        >>> a.of(sub(add(x, 3), x)), a.of(floordiv(add(mul(x, 4), 6), 4)) == a.of(add(x, 1))
        (Affine(const=3, terms=()), True)
        """
        stack = [expr]
        while stack:
            node = stack[-1]
            if id(node) in self._memo:
                stack.pop()
                continue
            new = [c for c in self._below(node) if id(c) not in self._memo]
            if new:
                stack += new
            else:
                stack.pop()
                self._memo[id(node)] = (node, self._sum(node))
        return self._memo[id(expr)][1]

    def expr(self, affine: Affine) -> Expr:
        """Return `affine` as an expression of dtype `index`: positive terms first."""
        if affine not in self._exprs:
            self._exprs[affine] = self._made(affine)
        return self._exprs[affine]

    def _made(self, affine: Affine) -> Expr:
        total: Expr | None = None
        for number, factor in sorted(affine.terms, key=lambda t: t[1] < 0):
            term = build.mul(self._atoms[number], abs(factor))
            if total is None:
                total = term if factor > 0 else build.mul(self._atoms[number], factor)
            else:
                total = build.add(total, term) if factor > 0 else build.sub(total, term)
        if total is None:
            return build.index(affine.const)
        if affine.const < 0:
            return build.sub(total, -affine.const)
        return build.add(total, affine.const)

    def simplify(self, expr: Expr) -> Expr:
        """Return the position `expr` in normal form."""
        return self.expr(self.of(expr))

    def holds(self, affine: Affine) -> bool:
        """Return whether 64 bits hold the sum whatever its atoms are."""
        return not self._is_wild(affine)

    def name(self, affine: Affine) -> str | None:
        """Return the name of the Var or Local that `affine` is, or None."""
        if affine.const == 0 and len(affine.terms) == 1 and affine.terms[0][1] == 1:
            atom = self._atoms[affine.terms[0][0]]
            return atom.name if isinstance(atom, Var | Local) else None
        return None

    def minimum(self, a: Affine, b: Affine) -> Affine:
        """Return the smaller of two sums, plainly where their difference is constant."""
        return self._extreme(BinaryOp.MIN, a, b)

    def maximum(self, a: Affine, b: Affine) -> Affine:
        """Return the larger of two sums."""
        return self._extreme(BinaryOp.MAX, a, b)

    def divided(self, a: Affine, by: int) -> Affine:
        """Return floor(a / by) for `by` > 0."""
        if by == 1:
            return a
        whole = Affine(a.const // by, tuple((t, f // by) for t, f in a.terms if f % by == 0))
        rest = Affine(a.const % by, tuple((t, f) for t, f in a.terms if f % by))
        if not rest.terms:
            return whole
        return whole + self._leaf(build.floordiv(self.expr(rest), by))

    def remainder(self, a: Affine, by: int) -> Affine:
        """Return a - by * floor(a / by) for `by` > 0."""
        rest = Affine(a.const % by, tuple((t, f % by) for t, f in a.terms if f % by))
        return Affine(rest.const) if not rest.terms else self._leaf(build.mod(self.expr(rest), by))

    def _extreme(self, op: BinaryOp, a: Affine, b: Affine) -> Affine:
        gap = a - b
        if not gap.terms:
            return (a if gap.const < 0 else b) if op is BinaryOp.MIN else (a if gap.const > 0 else b)
        shift = min(a.const, b.const)
        if any(map(self._is_wild, (a, b, a - shift, b - shift))):
            shift = 0
        parts = {*self.arms(op, a - shift), *self.arms(op, b - shift)}
        ordered = sorted(parts, key=lambda p: (p.terms, p.const))
        kept = [p for p in ordered if not any(self._beaten(op, p, q) for q in ordered)]
        total = self.expr(kept[0])
        for p in kept[1:]:
            total = build.binary(op, total, self.expr(p))
        return (self.of(total) if len(kept) == 1 else self._leaf(total)) + shift

    def arms(self, op: BinaryOp, a: Affine) -> list[Affine]:
        """Return the arms of `a` where it is a constant more than one `op`, a minimum or a maximum; else `a` alone.

        It stays whole, too, where 64 bits may not hold the constant more than one of the arms.
        """
        if len(a.terms) == 1 and a.terms[0][1] == 1:
            arms: list[Affine] = []
            stack = [self._atoms[a.terms[0][0]]]
            while stack:
                match stack.pop():
                    case Binary(op=found, left=left, right=right) if found is op:
                        stack += [left, right]
                    case other:
                        arms.append(self.of(other) + a.const)
            return [a] if a.const and any(map(self._is_wild, arms)) else arms
        return [a]

    def _beaten(self, op: BinaryOp, p: Affine, q: Affine) -> bool:
        gap = p - q
        return not gap.terms and (gap.const > 0 if op is BinaryOp.MIN else gap.const < 0)

    def _below(self, node: Expr) -> tuple[Expr, ...]:
        match node:
            case Binary(op=BinaryOp.ADD | BinaryOp.SUB | BinaryOp.MUL | BinaryOp.FLOORDIV | BinaryOp.MOD) if whole(
                node
            ):
                return children(node)
            case Binary(op=BinaryOp.MIN | BinaryOp.MAX) | Unary(op=UnaryOp.NEG | UnaryOp.ABS) | Broadcast() if whole(
                node
            ):
                return children(node)
            case Cast(value=value) if whole(node) and whole(value):
                return (value,)
            case Select(yes=yes, no=no) if whole(node):
                return (yes, no)
            case _:
                return ()

    def _sum(self, node: Expr) -> Affine:
        below = [self._memo[id(c)][1] for c in self._below(node)]
        match node:
            case Const(value=value) if not node.dtype.is_float:
                return Affine(int(value))
            case Binary(op=BinaryOp.ADD) if below:
                return self._exact(below[0] + below[1], node)
            case Binary(op=BinaryOp.SUB) if below:
                return self._exact(below[0] - below[1], node)
            case Binary(op=BinaryOp.MUL) if below and not (below[0].terms and below[1].terms):
                a, b = below
                return self._exact(b * a.const if not a.terms else a * b.const, node)
            case Binary(op=BinaryOp.FLOORDIV) if below and not below[1].terms and below[1].const > 0:
                return self.divided(below[0], below[1].const)
            case Binary(op=BinaryOp.MOD) if below and not below[1].terms and below[1].const > 0:
                return self.remainder(below[0], below[1].const)
            case Binary(op=(BinaryOp.MIN | BinaryOp.MAX) as op) if below:
                return self._extreme(op, below[0], below[1])
            case Binary(op=BinaryOp.MUL) if below and self._is_wild(below[0] + below[1]):
                return self._leaf(_as_index(node))
            case Binary(op=op) if below:
                return self._leaf(build.binary(op, self.expr(below[0]), self.expr(below[1])))
            case Unary(op=UnaryOp.NEG) if below:
                return self._exact(below[0] * -1, node)
            case Cast() | Broadcast() if below:
                return below[0]
            case Select(cond=cond) if below:
                return self._leaf(build.select(cond, self.expr(below[0]), self.expr(below[1])))
            case _:
                return self._leaf(_as_index(node))

    def _leaf(self, node: Expr) -> Affine:
        number = self._numbering.of(node)
        if number not in self._atoms:
            self._atoms[number] = node
            self._spans[number] = self._span_of(node)
        return Affine(0, ((number, 1),))

    def _exact(self, a: Affine, node: Expr) -> Affine:
        """Return `a`, or `node` as an atom where 64 bits may not hold what `a` is: a sum that wraps is no sum."""
        return self._leaf(_as_index(node)) if self._is_wild(a) else a

    def _is_wild(self, a: Affine) -> bool:
        lo, hi = self._span(a)
        return lo <= -WORD or hi >= WORD

    def _span(self, a: Affine) -> tuple[float, float]:
        """Return numbers that `a` lies between."""
        ends = [sorted((lo * f, hi * f)) for number, f in a.terms for lo, hi in (self._spans[number],)]
        return a.const + sum(lo for lo, _ in ends), a.const + sum(hi for _, hi in ends)

    def _span_of(self, atom: Expr) -> tuple[float, float]:
        match atom:
            case Var() | Local() | Size() | Ramp() | Cast(value=Param()):
                return -POSITION, POSITION
            case Binary(op=BinaryOp.MOD, right=Const(value=by)) if by > 0:
                return 0, int(by) - 1
            case Binary(op=BinaryOp.FLOORDIV, left=left):
                return self._span(self.of(left))
            case Binary(op=BinaryOp.MIN | BinaryOp.MAX as op, left=left, right=right):
                (a, b), (c, d) = self._span(self.of(left)), self._span(self.of(right))
                return (min(a, c), min(b, d)) if op is BinaryOp.MIN else (max(a, c), max(b, d))
            case Binary(op=BinaryOp.MUL | BinaryOp.MOD as op, left=left, right=right) if whole(atom):
                wild = self._is_wild(self.of(right)) or (op is BinaryOp.MUL and self._is_wild(self.of(left)))
                return EVERY_WORD if wild else (-POSITION, POSITION)
            case Select(yes=yes, no=no):
                (a, b), (c, d) = self._span(self.of(yes)), self._span(self.of(no))
                return min(a, c), max(b, d)
            case Unary(op=UnaryOp.ABS, value=value) | Cast(value=Unary(op=UnaryOp.ABS, value=value)) if whole(value):
                lo, hi = self._span(self.of(value))
                return EVERY_WORD if self._is_wild(self.of(value)) else (0, max(-lo, hi))
            case Cast(value=value) if value.dtype.bits < 64:
                return of_dtype(value.dtype)
            case Cast(value=value):
                return value_ranges((value,), lambda read: of_dtype(read.dtype))[0]
            case _:
                return EVERY_WORD


class Prover:
    """Proves that sums are at least 0, from ranges of names, what sizes are, and `facts` that are at least 0."""

    def __init__(self, algebra: Algebra, ranges: Ranges, at_least: Mapping[int, int] | None = None) -> None:
        self._algebra, self._ranges, self._at_least = algebra, ranges, at_least or {}
        self._budget = 0
        self._late = False  # whether quotients that no name moves are replaced last, as sizes are
        self._seen: dict[Affine, bool] = {}

    def nonnegative(self, a: Affine) -> bool:
        """Return whether `a` >= 0 was proved.

        >>> from stax.expr.build import add, local
        >>> g = Algebra()
        >>> n, x = Affine(0, ((g.of(Size(INDEX, "a", 0)).terms[0][0], 1),)), local("x")
        >>> Prover(g, {"x": Interval(Affine(0), n - 1)}).nonnegative(n - 1 - g.of(x))
        True
        """
        if a not in self._seen:
            self._budget, self._late = 120, False
            self._seen[a] = self._prove(a) or (self._has_rigid(a) and self._again(a))
        return self._seen[a]

    def _again(self, a: Affine) -> bool:
        """Return whether `a` >= 0 is proved with the quotients that no name moves replaced last."""
        self._budget, self._late = 120, True
        return self._prove(a)

    def less_equal(self, a: Affine, b: Affine) -> bool:
        """Return whether `a` <= `b` was proved."""
        return self.nonnegative(b - a)

    def minimum(self, a: Affine, b: Affine) -> Affine:
        """Return the smaller of the two, plainly where that is proved."""
        if self.less_equal(a, b):
            return a
        return b if self.less_equal(b, a) else self._algebra.minimum(a, b)

    def maximum(self, a: Affine, b: Affine) -> Affine:
        """Return the larger of the two, plainly where that is proved."""
        if self.less_equal(b, a):
            return a
        return b if self.less_equal(a, b) else self._algebra.maximum(a, b)

    def _prove(self, a: Affine, waiting: frozenset[int] = frozenset()) -> bool:
        """Return whether `a` >= 0 is proved, the atoms `waiting` being left for others to cancel."""
        self._budget -= 1
        if self._budget < 0:
            return False
        if not a.terms:
            return a.const >= 0
        by = gcd(*(f for _, f in a.terms))
        if by > 1:
            a = Affine(a.const // by, tuple((t, f // by) for t, f in a.terms))
        left_over = Affine(0, tuple(t for t in a.terms if t[0] not in waiting))
        if not left_over.terms:
            return False
        number, factor = self._next(left_over)
        atom, rest, of = self._algebra.atom(number), a.without(number), self._algebra.of
        match atom:
            case Var(name=name) | Local(name=name) if name in self._ranges:
                bound = self._ranges[name].lo if factor > 0 else self._ranges[name].hi
                return bound is not None and self._prove(rest + bound * factor, waiting)
            case Binary(op=(BinaryOp.MIN | BinaryOp.MAX) as op, left=left, right=right):
                arms = [(rest + of(arm) * factor, waiting) for arm in (left, right)]
                if (op is BinaryOp.MIN) == (factor > 0):
                    return all(self._prove(arm, waiting) for arm, _ in arms)
                return self._prove_any([*arms, (a, waiting | {number})] if rest.terms else arms)
            case Binary(op=BinaryOp.FLOORDIV, left=left, right=Const(value=int(by))) if by > 0:
                slack = {1: 0, -1: by - 1}.get(factor, by - 1 if factor > 0 else 0)  # exact for one: all are integers
                return self._prove(rest * by + (of(left) - slack) * factor, waiting)
            case Binary(op=BinaryOp.MOD, right=Const(value=int(by))) if by > 0:
                return self._prove(rest + (0 if factor > 0 else (by - 1) * factor), waiting)
            case Select(yes=yes, no=no):
                return all(self._prove(rest + of(arm) * factor, waiting) for arm in (yes, no))
            case _:
                low = self._low(number, atom)
                return factor > 0 and low is not None and self._prove(rest + low * factor, waiting)

    def _prove_any(self, ways: Sequence[tuple[Affine, frozenset[int]]]) -> bool:
        """Return whether one of `ways` was proved; one that leads nowhere leaves half of the budget to the next."""
        for a, waiting in ways:
            kept = self._budget // 2
            self._budget -= kept
            if self._prove(a, waiting):
                return True
            self._budget = max(self._budget, 0) + kept
        return False

    def _low(self, number: int, atom: Expr) -> int | None:
        if number in self._at_least:
            return self._at_least[number]
        return 0 if isinstance(atom, Size | Ramp) else None

    def _next(self, a: Affine) -> tuple[int, int]:
        """Return the term to replace: composite atoms and inner names first, sizes last."""

        def rank(term: tuple[int, int]) -> tuple[int, int]:
            atom = self._algebra.atom(term[0])
            match atom:
                case Var(name=name) | Local(name=name) if name in self._ranges:
                    return (1, -self._order(name))
                case Size() | Param() | Ramp() | Cast() | Local() | Var():
                    return (2, term[0])
                case Binary(op=BinaryOp.FLOORDIV) if self._late and self._rigid(term[0]):
                    return (2, term[0])
                case _:
                    return (0, -term[0])

        return min(a.terms, key=rank)

    def _has_rigid(self, a: Affine) -> bool:
        """Return whether `a` is of a quotient that no name moves and of something that one does."""
        atoms = [(t, self._algebra.atom(t)) for t, _ in a.terms]
        rigid = [isinstance(e, Binary) and e.op is BinaryOp.FLOORDIV and self._rigid(t) for t, e in atoms]
        return any(rigid) and not all(rigid)

    def _rigid(self, number: int) -> bool:
        return self._algebra.names(number).isdisjoint(self._ranges)

    def _order(self, name: str) -> int:
        return next(k for k, other in enumerate(self._ranges) if other == name)


def whole(node: Expr) -> bool:
    """Return whether `node` has one of the types that positions are counted in."""
    return node.dtype.name in ("int64", "index")


def _as_index(node: Expr) -> Expr:
    match node:
        case Var() | Local() | Size() if whole(node):
            return node if node.dtype is INDEX else replace(node, dtype=INDEX)
        case Ramp():
            return node
        case Cast(value=value) if whole(node):
            return build.cast(value, INDEX)
        case _:
            return with_children(node, children(node)) if node.dtype is INDEX else build.cast(node, INDEX)
