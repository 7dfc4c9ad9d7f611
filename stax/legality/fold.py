"""Storage of a recurrence that keeps a few cells along one dim, each in the place of one that is done with.

What is read a constant number of steps behind along a loop that is outermost, serial and in order needs that many cells
and its own: so storage is folded without being asked. Any other folding that a schedule asks for is proved: no cell is
replaced, in the order of the algorithm, before its last reader; the loops keep the order of every two accesses to a
place in storage; and other Funcs read only what is there at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stax.algorithm.domain import fixed_dims
from stax.algorithm.keep import Kept, keeps
from stax.algorithm.nodes import Func
from stax.bounds.accesses import Access, Fact, conditions, domain_facts
from stax.bounds.infer import Box, Context
from stax.dtypes import int64
from stax.errors import LegalityError
from stax.expr.affine import Affine, Algebra, Interval, Prover, Ranges
from stax.expr.nodes import Binary, Cast, Expr, Param, Read, Var
from stax.expr.walk import names, postorder, substitute
from stax.legality.witness import clashed, point
from stax.loops.nodes import LoopKind
from stax.poly.clash import TooHard, problem
from stax.poly.proofs import Proofs
from stax.schedule.nest import Nest
from stax.schedule.points import Points

Fold = tuple[int, int]
MOST_MORE = 8


@dataclass(frozen=True, slots=True)
class Step:
    """A read of a Func from inside its step: by itself, or by a member of its group that comes before or `later`.

    `time` is the dim that the other member steps, `lag` how many steps late.
    """

    access: Access
    ranges: Ranges
    time: str | None
    later: bool
    lag: int = 0


@dataclass(frozen=True, slots=True)
class Storage:
    """The storage of a recurrence: its loops, who reads it in its steps, and what other Funcs read of it at the end."""

    f: Func
    points: Points
    steps: tuple[Step, ...]
    outside: tuple[tuple[Access, Ranges], ...]
    asked: tuple[Interval | None, ...]
    box: Box
    context: Context
    prover: Prover

    def found(self) -> Fold | None:
        """Return the fold that needs no proof of isl, None where there is none."""
        for d in range(len(self.f.dims)):
            n = self.enough(d)
            if n is not None and self.still_there((d, n)):
                return d, n
        return None

    def enough(self, d: int) -> int | None:
        """Return how many cells along dim `d` suffice, where its loop is the outermost and runs in order."""
        f, points = self.f, self.points
        dim = f.dims[d]
        if not points.loops or points.loops[0].loop.kind is not LoopKind.SERIAL or points.skewed:
            return None
        if points.leaves(dim) != frozenset({0}) or not points.in_order(dim):
            return None
        if sum(0 in points.leaves(other) for other in f.dims) > 1:
            return None
        most, moves = 1, False
        for step in self.steps:
            behind = self._behind(step, d)
            if behind is None or behind < 0:
                return None
            moves |= behind > 0 or step.time is not None
            free = step.time is not None and not step.later and f.together == 1
            most = max(most, behind if free or (behind and self._in_place(step, d)) else behind + 1)
        return most if moves else None

    def _behind(self, step: Step, d: int) -> int | None:
        gap = self._now(step, d) - step.access.index[d]
        gap = gap * -1 if self.f.dims[d] in self.f.backwards else gap
        return None if gap.terms else gap.const

    def _now(self, step: Step, d: int) -> Affine:
        now = self.context.algebra.of(Var(int64, self.f.dims[d] if step.time is None else step.time))
        behind = step.lag - self.f.lag if step.time is not None else 0
        return now + (-behind if self.f.dims[d] in self.f.backwards else behind)

    def _in_place(self, step: Step, d: int) -> bool:
        """Return whether the cell that is read is replaced in this step by its reader, after it, or not at all."""
        own = step.time is None
        if own and (self._is_own(step, d) or self._ahead(step, d)):
            return True
        return self._untouched(step.access, step.ranges, d, self._now(step, d), own)

    def _is_own(self, step: Step, d: int) -> bool:
        names = map(self.context.algebra.name, step.access.index)
        return all(k == d or name == dim for k, (name, dim) in enumerate(zip(names, self.f.dims, strict=True)))

    def _ahead(self, step: Step, d: int) -> bool:
        """Return whether the loops run the reader before the point whose cell it reads, lanes and threads included."""
        f, algebra = self.f, self.context.algebra
        moved: list[str] = []
        for k, (dim, at) in enumerate(zip(f.dims, step.access.index, strict=True)):
            gap = at - algebra.of(Var(int64, dim))
            if k == d or gap == Affine(0):
                continue
            sign = -1 if dim in f.backwards else 1
            if gap.terms or (not moved and gap.const * sign < 0):
                return False
            moved.append(dim)
        mine = self.points.leaves(moved[0])
        serial = all(self.points.loops[at].loop.kind in (LoopKind.SERIAL, LoopKind.UNROLL) for at in mine)
        outside = all(max(mine) < min(self.points.leaves(other)) for other in moved[1:])
        alone = all(not mine & self.points.leaves(other) for other in f.dims if other != moved[0])
        return serial and outside and alone and self.points.in_order(moved[0])

    def _untouched(self, access: Access, ranges: Ranges, d: int, time: Affine, own: bool, after: bool = False) -> bool:
        """Return whether the cell of `access` is not written at `time`; with `after`, nor at any later one."""
        algebra = self.context.algebra
        dims = {dim: algebra.expr(i) for dim, i in zip(self.f.dims, access.index, strict=True)}
        dims[self.f.dims[d]] = algebra.expr(time)
        bounder = self.context.bounder(ranges, self.prover)
        forwards = -1 if self.f.dims[d] in self.f.backwards else 1
        now = algebra.of(Var(int64, self.f.dims[d])).terms[0][0]
        facts = domain_facts(self.f, 0, algebra)
        if own or after:
            facts += self._running(d)
        for fact in facts:
            if after and (fact.sum.factor(now) * forwards > 0 or _hides(fact.sum, now, self.f.dims[d], algebra)):
                continue
            high = bounder.interval(algebra.of(substitute(algebra.expr(fact.sum), dims)), access.facts).hi
            if high is not None and self.prover.nonnegative(high * -1 - 1):
                return True
        return False

    def _running(self, d: int) -> list[Fact]:
        """Return what holds of the points that compute something, those of the first step apart."""
        algebra = self.context.algebra
        kept = keeps(self.f, d, algebra)
        if kept is None or not all(self._is_first(fixed_dims(start, self.f.dims) or {}, d) for start in kept.starts):
            return []
        return self._moving(kept)

    def _moving(self, kept: Kept) -> list[Fact]:
        """Return what holds of positions where something is computed, start values apart."""
        algebra = self.context.algebra
        bounder = self.context.bounder(dict(zip(self.f.dims, self.box, strict=True)), self.prover)
        out: list[Fact] = []
        for fact in conditions(kept.runs, algebra, frozenset())[0]:
            if _at_data(fact.sum, algebra):
                continue
            if not fact.unequal:
                out.append(fact)
                continue
            for ahead in (fact.sum, fact.sum * -1):  # what is never below 0, and not 0, is at least 1
                low = bounder.interval(ahead, frozenset()).lo
                if low is not None and self.prover.nonnegative(low):
                    out.append(Fact(ahead - 1))
        return sorted(out, key=lambda fact: (fact.sum.terms, fact.sum.const))

    def _is_first(self, fixed: Mapping[str, Expr], d: int) -> bool:
        """Return whether a start value is one of the first step."""
        dim = self.f.dims[d]
        first = self.box[d].hi if dim in self.f.backwards else self.box[d].lo
        return dim in fixed and first is not None and self.context.algebra.of(fixed[dim]) == first

    def what_runs(self, kept: Kept) -> list[Fact]:
        """Return what holds of all points that compute something, start values included."""
        algebra = self.context.algebra
        ranges = dict(zip(self.f.dims, self.box, strict=True))
        bounder = self.context.bounder(ranges, self.prover)

        def everywhere(fact: Fact) -> bool:
            for start in kept.starts:
                fixed = fixed_dims(start, self.f.dims) or {}
                low = bounder.interval(algebra.of(substitute(algebra.expr(fact.sum), fixed)), frozenset()).lo
                if low is None or not self.prover.nonnegative(low):
                    return False
            return True

        return [fact for fact in self._moving(kept) if everywhere(fact)]

    def still_there(self, fold: Fold) -> bool:
        """Return whether all that other Funcs read is among the last cells, or was not replaced after."""
        asked = self.asked[fold[0]]
        return (asked is not None and self._is_last(asked, fold)) or not self.gone(fold)

    def gone(self, fold: Fold) -> list[Access]:
        """Return what other Funcs read that is not seen to be there."""
        d, n = fold
        return [
            access
            for access, ranges in self.outside
            if not self._is_last(
                self.context.bounder(ranges, self.prover).interval(access.index[d], access.facts), fold
            )
            and not (n == 1 and self._untouched(access, ranges, d, self._next(access.index[d], d), False, True))
        ]

    def _next(self, time: Affine, d: int) -> Affine:
        return time + (-1 if self.f.dims[d] in self.f.backwards else 1)

    def _is_last(self, wanted: Interval, fold: Fold) -> bool:
        d, n = fold
        whole = self.box[d]
        if wanted.lo is None or wanted.hi is None or whole.lo is None or whole.hi is None:
            return False
        if self.f.dims[d] in self.f.backwards:
            return self.prover.less_equal(wanted.hi, whole.lo + (n - 1))
        return self.prover.less_equal(whole.hi - (n - 1), wanted.lo)


def _hides(a: Affine, now: int, dim: str, algebra: Algebra) -> bool:
    """Return whether `a` depends on the time in another way than by a multiple of it."""
    return any(n != now and dim in names((algebra.atom(n),)) for n, _ in a.terms)


def _at_data(a: Affine, algebra: Algebra) -> bool:
    return any(isinstance(node, Read) for node in postorder(algebra.atom(n) for n, _ in a.terms))


def _wrapping(found: list[Access], d: int, algebra: Algebra) -> str | None:
    """Return a hint where sums of narrow Params hide which step is read: such sums may wrap."""
    atoms = [algebra.atom(n) for access in found for n, _ in access.index[d].terms]
    sums = [a.value for a in atoms if isinstance(a, Cast) and isinstance(a.value, Binary) and a.value.dtype.bits < 64]
    named = [n for n in postorder(sums) if isinstance(n, Param)]
    return f"declare `{named[0].name}` as sx.int64: a sum of {named[0].dtype} may wrap" if named else None


def check_fold(storage: Storage, fold: Fold, nest: Nest, found: tuple[Access, ...], proofs: Proofs) -> None:
    """Raise LegalityError where storage folded so may lose a value."""
    f, context = storage.f, storage.context
    dim = f.dims[fold[0]]
    if f.updates:
        raise LegalityError(f"the storage of `{f.name}` cannot be folded: it has updates", [(f.span, "defined here")])
    if not storage.still_there(fold):
        raise LegalityError(
            f"the storage of `{f.name}` cannot keep {fold[1]} along `{dim}`: other Funcs read more than the last",
            [
                *((a.read.span, "read here") for a in storage.gone(fold)[:1] if a.read is not None),
                (f.span, "defined here"),
            ],
            hint=_wrapping(storage.gone(fold), fold[0], context.algebra),
        )
    needed = storage.enough(fold[0])
    if needed is not None and needed <= fold[1]:
        return
    if any(step.access.func != f.name for step in storage.steps):
        raise LegalityError(
            f"the storage of `{f.name}` cannot keep {fold[1]} along `{dim}`: Funcs of its group read more",
            [(f.span, "defined here")],
            [] if needed is None else [f"they need {needed} steps of it"],
            None if needed is None else f"s[{f.name!r}].fold_storage({dim!r}, {needed})",
        )
    points, algebra, at_least = storage.points, context.algebra, context.at_least
    try:
        error = _lost(f, fold, nest, points, found, algebra, at_least, proofs)
        if error is not None:
            for n in range(fold[1] + 1, fold[1] + MOST_MORE):
                if _lost(f, (fold[0], n), nest, points, found, algebra, at_least, proofs) is None:
                    hint = f"s[{f.name!r}].fold_storage({dim!r}, {n})"
                    raise LegalityError(error.message, error.places, error.facts, hint)
            raise error
    except TooHard:
        raise LegalityError(
            f"whether the storage of `{f.name}` may be folded to {fold[1]} along `{dim}` was not found out",
            [(f.span, "defined here")],
        ) from None


def _lost(
    f: Func, fold: Fold, nest: Nest, points: Points, found: tuple[Access, ...], algebra: Algebra,
    at_least: Mapping[int, int], proofs: Proofs,
) -> LegalityError | None:  # fmt: skip
    """Return how a value is lost, None where none is."""
    plain = problem(f, 0, nest, points, found, False, algebra, at_least, unequal=False)
    folded = problem(f, 0, nest, points, found, False, algebra, at_least, unequal=False, fold=fold)
    lost = proofs.replaced(plain, folded)
    dim = f.dims[fold[0]]
    if lost is not None:
        first, second, third = (point(f.dims, p) for p in lost)
        return LegalityError(
            f"the storage of `{f.name}` cannot keep only {fold[1]} along `{dim}`",
            [(f.span, "defined here")],
            [f"{second} is stored over {first}, which {third} reads after that"],
        )
    bad = proofs.clash(folded)
    if bad is None:
        return None
    own = [a for a in found if a.source == f.name]
    return clashed(f, 0, points, own, folded, bad, None, fold)
