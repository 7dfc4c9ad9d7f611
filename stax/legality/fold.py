"""Storage of a recurrence that keeps a few cells along one dim, each in the place of one that is done with.

What is read a constant number of steps behind along a loop that is outermost, serial and in order needs that many cells
and its own: so storage is folded without being asked. Any other folding that a schedule asks for is proved: no cell is
replaced, in the order of the algorithm, before its last reader; the loops keep the order of every two accesses to a
place in storage; and other Funcs read only what is there at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stax.algorithm.nodes import Func
from stax.bounds.accesses import Access
from stax.bounds.infer import Box
from stax.dtypes import int64
from stax.errors import LegalityError
from stax.expr.affine import Algebra, Interval, Prover
from stax.expr.nodes import Var
from stax.legality.witness import clashed, point
from stax.loops.nodes import LoopKind
from stax.poly.clash import Proofs, TooHard, problem
from stax.schedule.nest import Nest
from stax.schedule.points import Points

Fold = tuple[int, int]
MOST_MORE = 8


def fold_of_itself(
    f: Func, points: Points, found: Sequence[Access], asked: Sequence[Interval | None], box: Box, prover: Prover,
    algebra: Algebra,
) -> Fold | None:  # fmt: skip
    """Return the fold of a recurrence that needs no proof of isl, None where there is none."""
    if f.updates or not any(a.source == f.name for a in found):
        return None
    for d in range(len(f.dims)):
        n = _steps(f, d, points, found, algebra)
        if n is not None and _still_there(f, (d, n), asked, box, prover):
            return d, n
    return None


def check_fold(
    f: Func, fold: Fold, nest: Nest, points: Points, found: tuple[Access, ...], asked: Sequence[Interval | None],
    box: Box, prover: Prover, algebra: Algebra, at_least: Mapping[int, int], proofs: Proofs,
) -> None:  # fmt: skip
    """Raise LegalityError where storage folded so may lose a value."""
    dim = f.dims[fold[0]]
    if f.updates:
        raise LegalityError(f"the storage of `{f.name}` cannot be folded: it has updates", [(f.span, "defined here")])
    if not _still_there(f, fold, asked, box, prover):
        raise LegalityError(
            f"the storage of `{f.name}` cannot keep {fold[1]} along `{dim}`: other Funcs read more than the last",
            [(f.span, "defined here")],
        )
    needed = _steps(f, fold[0], points, found, algebra)
    if needed is not None and needed <= fold[1]:
        return
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


def _steps(f: Func, d: int, points: Points, found: Sequence[Access], algebra: Algebra) -> int | None:
    """Return how many cells along dim `d` suffice, where its loop is the outermost and runs in order."""
    dim = f.dims[d]
    if not points.loops or points.loops[0].loop.kind is not LoopKind.SERIAL or points.skewed:
        return None
    if points.leaves(dim) != frozenset({0}) or not points.in_order(dim):
        return None
    if sum(0 in points.leaves(other) for other in f.dims) > 1:
        return None
    most = 0
    for access in found:
        if access.source == f.name:
            at = algebra.of(Var(int64, dim))
            behind = access.index[d] - at if dim in f.backwards else at - access.index[d]
            if behind.terms or behind.const < 0:
                return None
            most = max(most, behind.const)
    return most + 1 if most else None


def _still_there(f: Func, fold: Fold, asked: Sequence[Interval | None], box: Box, prover: Prover) -> bool:
    d, n = fold
    wanted, whole = asked[d], box[d]
    if wanted is None or wanted.lo is None or wanted.hi is None or whole.lo is None or whole.hi is None:
        return False
    if f.dims[d] in f.backwards:
        return prover.less_equal(wanted.hi, whole.lo + (n - 1))
    return prover.less_equal(whole.hi - (n - 1), wanted.lo)


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
