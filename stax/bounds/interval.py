"""Symbolic intervals of index expressions, over boxes of variables and under what is known of them.

Method: interval arithmetic on sums in normal form, so that `x - x` is 0; a known `fact >= 0` that cancels a variable
gives one more bound (one step of Fourier-Motzkin elimination, and a second one).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from stax.bounds.accesses import Facts
from stax.expr.affine import EVERYTHING, Affine, Algebra, Interval, Prover, Ranges
from stax.expr.nodes import Binary, BinaryOp, Call, Cast, Const, Expr, Local, Param, Read, Select, Size, Var
from stax.expr.value_range import ValueRange, of_dtype, value_ranges
from stax.expr.walk import postorder

MOST_DEPTH = 60
MOST_FACTS = 8


class Bounder:
    """Finds intervals over `ranges`, the box of each variable, outermost first."""

    def __init__(self, algebra: Algebra, ranges: Ranges, prover: Prover, of_read: Callable[[Read], ValueRange]) -> None:
        self._algebra, self._ranges, self._prover, self._of_read = algebra, ranges, prover, of_read
        self._known: dict[int, Interval] = {}
        self._depth = 0

    def interval(self, a: Affine, facts: Facts) -> Interval:
        """Return what `a` lies between, where all of `facts` hold."""
        known = self._usable(facts)
        natural = self._narrowed(a, known)._plain(a)
        return Interval(self._bounded(a, natural.lo, known, 1), self._bounded(a, natural.hi, known, -1))

    def tightens(self, a: Affine, facts: Facts) -> bool:
        """Return whether `facts` make the interval of `a` smaller."""
        return bool(facts) and self.interval(a, facts) != self._plain(a)

    def _narrowed(self, a: Affine, facts: list[Affine]) -> Bounder:
        """Return what knows of variables inside quotients and the like of `a` how far `facts` let them go."""
        moved = {number for fact in facts for number, _ in fact.terms}
        atoms = [self._algebra.atom(number) for number, _ in a.terms] if moved else []
        inside = postorder(atom for atom in atoms if not isinstance(atom, Var | Local))
        narrower: dict[str, Interval] = {}
        for v in (n for n in inside if isinstance(n, Var | Local) and n.name in self._ranges):
            one = self._algebra.of(v)
            if len(one.terms) == 1 and one.terms[0][0] in moved:
                ends = self._plain(one)
                narrower[v.name] = Interval(
                    self._bounded(one, ends.lo, facts, 1), self._bounded(one, ends.hi, facts, -1)
                )
        if all(found == self._ranges[name] for name, found in narrower.items()):
            return self
        return Bounder(self._algebra, {**self._ranges, **narrower}, self._prover, self._of_read)

    def _better(self, known: Affine | None, other: Affine | None, sign: int) -> Affine | None:
        """Return `other` where it is seen to be the better of two bounds."""
        if known is None or other is None:
            return other if known is None else known
        better = self._prover.less_equal(known, other) if sign > 0 else self._prover.less_equal(other, known)
        return other if better else known

    def _bounded(
        self, a: Affine, natural: Affine | None, facts: list[Affine], sign: int, twice: bool = True
    ) -> Affine | None:
        """Return the best lower (`sign` 1) or upper (-1) bound that one fact gives, or with `twice` two."""
        best = natural
        for fact in facts:
            for number, factor in a.terms:
                other = fact.factor(number)
                if other and (factor > 0) == (other * sign > 0):
                    # |other| * a - sign * |factor| * fact no longer has this atom, and bounds |other| * a
                    moved = a * abs(other) - fact * (sign * abs(factor))
                    plain = self._plain(moved)
                    found = plain.lo if sign > 0 else plain.hi
                    if twice and len(facts) <= MOST_FACTS:
                        found = self._better(
                            found, self._bounded(moved, found, [f for f in facts if f is not fact], sign, False), sign
                        )
                    if found is None:
                        continue
                    if abs(other) > 1:
                        up = found * -1
                        found = (
                            self._algebra.divided(up, abs(other)) * -1
                            if sign > 0
                            else (self._algebra.divided(found, abs(other)))
                        )
                    if best is None:
                        best = found
                    else:
                        best = self._prover.maximum(best, found) if sign > 0 else self._prover.minimum(best, found)
        return best

    def _usable(self, facts: Facts) -> list[Affine]:
        """Return sums >= 0; an inequality at the end of what is left of a range moves that end by one."""
        ordered = sorted(facts, key=lambda f: (f.unequal, f.sum.terms, f.sum.const))
        known = [fact.sum for fact in ordered if not fact.unequal]
        open_ones = [fact.sum for fact in ordered if fact.unequal]
        while open_ones:
            moved = [(s, end) for s in open_ones if (end := self._as_bound(s, known)) is not None]
            if not moved:
                break
            known += [end for _, end in moved]
            open_ones = [s for s in open_ones if all(s is not done for done, _ in moved)]
        return known

    def _as_bound(self, unequal: Affine, known: list[Affine]) -> Affine | None:
        plain = self._plain(unequal)
        lo, hi = self._bounded(unequal, plain.lo, known, 1), self._bounded(unequal, plain.hi, known, -1)
        if lo is not None and self._prover.nonnegative(lo):
            return unequal - 1
        if hi is not None and self._prover.nonnegative(hi * -1):
            return unequal * -1 - 1
        return None

    def _plain(self, a: Affine) -> Interval:
        lo: Affine | None = Affine(a.const)
        hi: Affine | None = Affine(a.const)
        for number, factor in a.terms:
            part = self._atom(number)
            low, high = (part.lo, part.hi) if factor > 0 else (part.hi, part.lo)
            lo = None if lo is None or low is None else lo + low * factor
            hi = None if hi is None or high is None else hi + high * factor
        return Interval(lo, hi)

    def _atom(self, number: int) -> Interval:
        """Return the interval of an atom, found once; of those nested deeper than any position is, nothing."""
        known = self._known.get(number)
        if known is None:
            if self._depth > MOST_DEPTH:
                return EVERYTHING
            self._depth += 1
            known = self._known[number] = self._found(number)
            self._depth -= 1
        return known

    def _found(self, number: int) -> Interval:
        atom = self._algebra.atom(number)
        exact = Affine(0, ((number, 1),))
        match atom:
            case Var(name=name) | Local(name=name):
                return self._ranges.get(name, Interval(exact, exact))
            case Size() | Param() | Cast(value=Param()):
                return Interval(exact, exact)
            case Binary(op=(BinaryOp.MIN | BinaryOp.MAX) as op, left=left, right=right):
                return self._extreme(op, self._of(left), self._of(right))
            case Binary(op=BinaryOp.FLOORDIV, left=left, right=Const(value=int(by))) if by > 0:
                part = self._of(left)
                return Interval(*(None if e is None else self._algebra.divided(e, by) for e in (part.lo, part.hi)))
            case Binary(op=BinaryOp.MOD, left=left, right=Const(value=int(by))) if by > 0:
                return self._remainder(self._of(left), by)
            case Binary(op=BinaryOp.MOD, left=left, right=right):
                return self._symbolic_remainder(self._of(left), self._algebra.of(right))
            case Select(yes=yes, no=no):
                a, b = self._of(yes), self._of(no)
                lo = None if a.lo is None or b.lo is None else self._prover.minimum(a.lo, b.lo)
                hi = None if a.hi is None or b.hi is None else self._prover.maximum(a.hi, b.hi)
                return Interval(lo, hi)
            case Cast(value=value) if not (_in_integers(value) and self._stands_still(value)):
                return self._value(value)
            case _ if self._stands_still(atom):
                return Interval(exact, exact)
            case _:
                return self._value(atom)

    def _stands_still(self, atom: Expr) -> bool:
        """Return whether `atom` depends on no variable with a range, and on no data."""
        return not any(
            isinstance(n, Read) or (isinstance(n, Var | Local) and n.name in self._ranges) for n in postorder((atom,))
        )

    def _of(self, expr: Expr) -> Interval:
        return self._plain(self._algebra.of(expr))

    def _extreme(self, op: BinaryOp, a: Interval, b: Interval) -> Interval:
        pick = self._prover.minimum if op is BinaryOp.MIN else self._prover.maximum

        def end(x: Affine | None, y: Affine | None, either: bool) -> Affine | None:
            if x is None or y is None:
                return (x if y is None else y) if either else None
            return pick(x, y)

        return Interval(end(a.lo, b.lo, op is BinaryOp.MAX), end(a.hi, b.hi, op is BinaryOp.MIN))

    def _remainder(self, part: Interval, by: int) -> Interval:
        whole = Interval(Affine(0), Affine(by - 1))
        if part.lo is None or part.hi is None:
            return whole
        inside = self._prover.nonnegative(part.lo) and self._prover.nonnegative(part.hi * -1 + (by - 1))
        return part if inside else whole

    def _symbolic_remainder(self, part: Interval, by: Affine) -> Interval:
        """Return the interval of a remainder by a size: 0 where the size is 0, else below it."""
        if not self._prover.nonnegative(by):
            return EVERYTHING
        return Interval(Affine(0), self._prover.maximum(by - 1, Affine(0)))

    def _value(self, expr: Expr) -> Interval:
        lo, hi = value_ranges((expr,), self._of_read)[0]
        return Interval(*(None if math.isinf(e) else Affine(int(e)) for e in (lo, hi)))


def _in_integers(expr: Expr) -> bool:
    """Return whether a call can work `expr` out, of sizes and Params as they are then: in integers alone."""
    return not any(n.dtype.is_float or isinstance(n, Call) for n in postorder((expr,)))


def plain_read(read: Read) -> ValueRange:
    """Return the range of what a read can give, by its type alone."""
    return of_dtype(read.dtype)
