"""Bounds of the loops of a skewed nest, outermost first, from what each point must fulfil.

Every root lies in its range and every inner part of a split below its factor: inequalities that are sums of the loops.
A loop's bounds are what is left of them when the loops inside it are eliminated, so that a loop may run in vain but
never out of range; the innermost one sees all of them. Loops of lanes keep their constant extent, and conditions tell
the points that are there.
Method: Fourier-Motzkin elimination over the rationals, as in Ancourt and Irigoin, PPoPP 1991; Kohler's rule (1967) says
which sums are not needed. Too weak a bound of an outer loop costs empty turns, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from stax.errors import UnsupportedError
from stax.expr import build
from stax.expr.affine import Affine, Algebra
from stax.expr.nodes import Expr, Local
from stax.expr.walk import names, substitute
from stax.loops.nodes import LoopKind
from stax.schedule.nest import Affine as Mapped
from stax.schedule.nest import Fuse, Nest, Skew, Split

MOST_CONDITIONS = 400


@dataclass(frozen=True, slots=True)
class Range:
    """A root: `extent` values from `lo` on, which may use Vars of roots before it."""

    name: str
    lo: Expr
    extent: Expr


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a loop starts, how often it runs, and a constant it runs no more often than, where one is known."""

    start: Expr
    extent: Expr
    width: int | None


_Conditions = Mapping[Affine, frozenset[int]]
"""Sums that are at least 0, each with the numbers of those it was made of: one made of too many follows from others."""


class Scan:
    """The loops of a nest with skews: `bounds` of each, `values` of the roots, and the `guards` of a point."""

    def __init__(
        self, nest: Nest, roots: Sequence[Range], locals_: Sequence[Local], stage: str, inside: Sequence[Expr] = ()
    ) -> None:
        self.algebra = Algebra()
        self._loops = [self.algebra.of(v).terms[0][0] for v in locals_]
        self._below: dict[int, int] = {}
        self._sparing = True
        self._split_alone = all(isinstance(step, Split) for step in nest.derivations)
        forms = self._forms(nest, locals_, stage)
        self._forms_of = {r: forms[r] for r in nest.roots}
        self.values: dict[str, Expr] = {}
        given = {r.name: r for r in roots}
        self._starts: dict[str, Affine] = {}
        conditions = list(self._factors)
        for name in nest.roots:
            root = given[name]
            lo, extent = (self._renamed(e) for e in (root.lo, root.extent))
            self._starts[name] = lo
            conditions += [forms[name], extent - 1 - forms[name]]
            self.values[name] = self.algebra.expr(lo + forms[name])
        conditions += [self._renamed(c) for c in inside]
        self._systems = self._eliminated(conditions)
        if not all(map(self._is_bounded, range(len(nest.loops)))):
            self._sparing = False
            self._systems = self._eliminated(conditions)
        self._lanes = {
            at
            for at, loop in enumerate(nest.loops)
            if loop.kind in (LoopKind.VECTOR, LoopKind.UNROLL) and self._loops[at] in self._below
        }
        self.guards = tuple(
            build.less_equal(build.index(0), self.algebra.expr(c))
            for c in dict.fromkeys(conditions)
            if self._innermost(c) in self._lanes and sum(bool(c.factor(n)) for n in self._loops) + len(c.terms) > 2
        )
        self.bounds = tuple(self._bounds(at) for at in range(len(nest.loops)))

    def leaves(self, root: str) -> frozenset[int]:
        """Return the places of the loops that `root` is a sum of."""
        form = self._forms_of[root]
        return frozenset(at for at, n in enumerate(self._loops) if form.factor(n))

    def in_order(self, root: str) -> bool:
        """Return whether the loops of `root` are seen to run its values in order: all are split, none skewed."""
        form, most = self._forms_of[root], 0
        for n in (self._loops[at] for at in sorted(self.leaves(root), reverse=True)):
            if most is None or form.factor(n) <= most:
                return False
            most = most + form.factor(n) * (self._below[n] - 1) if n in self._below else None
        return self._split_alone

    def within(self, root: str, depth: int) -> tuple[Expr, Expr]:
        """Return bounds of the value of `root` while the outermost `depth` loops stand still."""
        form = self._forms_of[root]
        if not any(form.factor(n) for n in self._loops[depth:]):
            return self.values[root], self.values[root]
        mark = self.algebra.of(build.local("'value"))
        whole = [*self._systems[-1], mark - form, form - mark]
        lowers, uppers = self._sides(self._of_mark(whole, depth), mark.terms[0][0])
        if self._sparing and not (lowers and uppers):
            self._sparing = False
            lowers, uppers = self._sides(self._of_mark(whole, depth), mark.terms[0][0])
        lo, hi = self._largest(lowers), self._smallest(uppers)
        start = self._starts[root]
        return self.algebra.expr(start + lo), self.algebra.expr(start + hi)

    def _of_mark(self, conditions: Iterable[Affine], depth: int) -> _Conditions:
        found = _strongest((c, frozenset({k})) for k, c in enumerate(conditions))
        for count, n in enumerate(reversed(self._loops[depth:]), start=1):
            found = self._without(found, n, count)
        return found

    def _forms(self, nest: Nest, locals_: Sequence[Local], stage: str) -> dict[str, Affine]:
        """Return each root, from the start of its range, as a sum of the loops.

        Parts of a sum below n are below n themselves, unless one of them may be negative: a loop that was skewed or
        mapped, but for the inner parts of its splits.
        """
        alive = {loop.name: self.algebra.of(v) for loop, v in zip(nest.loops, locals_, strict=True)}
        self._factors: list[Affine] = []
        positive, signed = set[int](), set[int]()
        for step in reversed(nest.derivations):
            match step:
                case Split(parent=parent, outer=outer, inner=inner, factor=n):
                    large, small = alive.pop(outer), alive.pop(inner)
                    self._factors += [small, small * -1 + (n - 1)]
                    parts = [loop for loop, _ in small.terms]
                    positive |= {*parts} if len(parts) == 1 else set[int]()
                    if all(f > 0 for _, f in small.terms) and signed.isdisjoint(parts):
                        for loop, f in small.terms:
                            self._below[loop] = min(self._below.get(loop, n), (n - 1) // f + 1)
                    alive[parent] = large * n + small
                case Skew(parent=parent, along=along, factor=factor, new=new):
                    whole = alive.pop(new)
                    signed |= {loop for loop, _ in whole.terms} - positive
                    alive[parent] = whole - alive[along] * factor
                case Mapped(parents=parents, inverse=inverse, new=new):
                    made = [alive.pop(n) for n in new]
                    signed |= {loop for m in made for loop, _ in m.terms} - positive
                    for parent, row in zip(parents, inverse, strict=True):
                        alive[parent] = sum((m * f for m, f in zip(made, row, strict=True)), Affine(0))
                case Fuse(fused=fused):
                    raise UnsupportedError(f"{stage}: loop `{fused}` is fused, and another loop skewed")
        return alive

    def _innermost(self, c: Affine) -> int:
        return max((at for at, n in enumerate(self._loops) if c.factor(n)), default=-1)

    def _renamed(self, e: Expr) -> Affine:
        return self.algebra.of(substitute(e, {n: self.values[n] for n in names((e,)) if n in self.values}))

    def _eliminated(self, conditions: Iterable[Affine]) -> list[list[Affine]]:
        """Return, for each depth, what the loops outside and at it must fulfil."""
        left = _strongest((c, frozenset({k})) for k, c in enumerate(dict.fromkeys(conditions)))
        found = [list(left)]
        for count, n in enumerate(reversed(self._loops[1:]), start=1):
            left = self._without(left, n, count)
            found.append(list(left))
        return found[::-1]

    def _without(self, conditions: _Conditions, n: int, count: int) -> _Conditions:
        """Return what is left of `conditions` for any `n`, the last of `count` loops to go."""
        lowers = [(c, of) for c, of in conditions.items() if c.factor(n) > 0]
        uppers = [(c, of) for c, of in conditions.items() if c.factor(n) < 0]
        pairs = (
            (low * -up.factor(n) + up * low.factor(n), low_of | up_of)
            for low, low_of in lowers
            for up, up_of in uppers
            if not self._sparing or len(low_of | up_of) <= count + 1
        )
        kept = _strongest((*((c, of) for c, of in conditions.items() if not c.factor(n)), *pairs))
        if len(kept) > MOST_CONDITIONS:
            raise UnsupportedError("the bounds of the skewed loops are too many", hint="skew fewer loops")
        return kept

    def _is_bounded(self, at: int) -> bool:
        """Return whether what is left for a loop bounds it: sums that follow from others are gone, and missed then."""
        return all(self._sides(self._systems[at], self._loops[at]))

    def _bounds(self, at: int) -> Bounds:
        n = self._loops[at]
        below = self._below.get(n)
        if at in self._lanes:
            assert below is not None
            return Bounds(build.index(0), build.index(below), below)
        lowers, uppers = self._sides(self._systems[at], n)
        lo, hi = self._largest(lowers), self._smallest(uppers)
        extent = self.algebra.expr(hi - lo + 1)
        known = build.integer(extent)
        return Bounds(self.algebra.expr(lo), extent, below if known is None else known)

    def _sides(self, conditions: Iterable[Affine], n: int) -> tuple[list[Affine], list[Affine]]:
        lowers: list[Affine] = []
        uppers: list[Affine] = []
        for c in conditions:
            f, rest = c.factor(n), c.without(n)
            if f > 0:
                lowers.append(self.algebra.divided(rest, f) * -1)
            elif f < 0:
                uppers.append(self.algebra.divided(rest, -f))
        return lowers, uppers

    def _largest(self, found: Sequence[Affine]) -> Affine:
        whole = found[0]
        for a in found[1:]:
            whole = self.algebra.maximum(whole, a)
        return whole

    def _smallest(self, found: Sequence[Affine]) -> Affine:
        whole = found[0]
        for a in found[1:]:
            whole = self.algebra.minimum(whole, a)
        return whole


def _strongest(conditions: Iterable[tuple[Affine, frozenset[int]]]) -> _Conditions:
    """Return the strongest of the conditions that differ by a constant, in lowest terms, but for those that say little.

    That is those that follow from the bound of one loop and what is known of the others.
    """
    best: dict[tuple[tuple[int, int], ...], tuple[int, frozenset[int]]] = {}
    for c, of in conditions:
        if c.terms:
            by = gcd(*(f for _, f in c.terms))
            terms = tuple((n, f // by) for n, f in c.terms)
            known = best.get(terms)
            if known is None or (c.const // by, len(of)) < (known[0], len(known[1])):
                best[terms] = c.const // by, of
    found = {Affine(const, terms): of for terms, (const, of) in best.items()}
    return {c: of for c, of in found.items() if not _implied(c, best)}


def _implied(c: Affine, best: Mapping[tuple[tuple[int, int], ...], tuple[int, frozenset[int]]]) -> bool:
    if len(c.terms) > 1:
        for n, f in c.terms:
            low, rest = best.get(((n, 1),)), c.without(n)
            known = best.get(rest.terms)
            if f > 0 and low is not None and known is not None and known[0] <= rest.const - low[0] * f:
                return True
    return False


__all__ = ["Bounds", "Range", "Scan"]
