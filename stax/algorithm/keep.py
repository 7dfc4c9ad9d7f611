"""Arms of a definition that keep the value of one step earlier, at the same other indices.

    u[t, x] = select(x < t, u[t - 1, x], e)         keeps where x < t

Where a step of `t` is stored over the one before, such a point has nothing to do. Conditions are those on positions.
"""

from __future__ import annotations

from dataclasses import dataclass

from stax.algorithm.domain import fixed_dims, inner_values
from stax.algorithm.nodes import Func
from stax.expr import build
from stax.expr.affine import Algebra
from stax.expr.nodes import BinaryOp, Expr, Read, Select, Var
from stax.expr.number import Numbering
from stax.expr.walk import reads


@dataclass(frozen=True, slots=True)
class Kept:
    """Each of `starts` holds at a start value; elsewhere only points where `runs` holds compute something.

    `values` are the definition for points with something to do.
    """

    starts: tuple[Expr, ...]
    runs: Expr
    values: tuple[Expr, ...]

    @property
    def needed(self) -> Expr:
        """Where there is something to do."""
        whole = self.runs
        for start in self.starts:
            whole = build.binary(BinaryOp.OR, start, whole)
        return whole


def keeps(f: Func, d: int, algebra: Algebra) -> Kept | None:
    """Return what `f` keeps along its dim `d`; None where it keeps nothing, or its parts keep at different points."""
    numbers = Numbering()
    starts: list[tuple[Expr, list[Expr]]] = []
    runs: Expr | None = None
    inner = list(inner_values(f))
    while (cond := _shared(inner, numbers)) is not None and not reads((cond,)):
        arms = [(v.yes, v.no) for v in inner if isinstance(v, Select)]
        if all(_is_step_before(no, f, part, d, algebra) for part, (_, no) in enumerate(arms)):
            inner = [yes for yes, _ in arms]
        elif all(_is_step_before(yes, f, part, d, algebra) for part, (yes, _) in enumerate(arms)):
            cond, inner = build.negate(cond), [no for _, no in arms]
        elif runs is None and fixed_dims(cond, f.dims):
            starts.append((cond, [yes for yes, _ in arms]))
            inner = [no for _, no in arms]
            continue
        else:
            break
        runs = cond if runs is None else build.both(runs, cond)
    if runs is None:
        return None
    if starts:  # what is read elsewhere may be outside its array where a start value is
        inner = [build.select(runs, v, build.const(False if v.dtype.is_bool else 0, v.dtype)) for v in inner]
    for cond, values in reversed(starts):
        inner = [build.select(cond, yes, no) for yes, no in zip(values, inner, strict=True)]
    return Kept(tuple(cond for cond, _ in starts), runs, tuple(inner))


def _shared(values: list[Expr], numbers: Numbering) -> Expr | None:
    """Return the condition that all of `values` select by at their top."""
    first = values[0]
    if not isinstance(first, Select):
        return None
    same = numbers.of(first.cond)
    return first.cond if all(isinstance(v, Select) and numbers.of(v.cond) == same for v in values) else None


def _is_step_before(value: Expr, f: Func, part: int, d: int, algebra: Algebra) -> bool:
    if not isinstance(value, Read) or value.source != f.name or value.part != part:
        return False
    step = 1 if f.dims[d] in f.backwards else -1
    for k, (dim, at) in enumerate(zip(f.dims, value.index, strict=True)):
        gap = algebra.of(at) - algebra.of(Var(at.dtype, dim))
        if gap.terms or gap.const != (step if k == d else 0):
            return False
    return True
