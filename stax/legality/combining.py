"""Updates that combine values into a cell: which of their loops may run in any order, in lanes, or at the same time.

The points of `cell = cell op e` may be taken in any order where no order changes a bit, or where `reassociate()` or
`atomic()` says that it may. Lanes and accumulators of a reduced loop keep partial results; iterations that run at the
same time, or meet in a cell that data name, need `atomic()`.
"""

from __future__ import annotations

from dataclasses import dataclass

from stax.algorithm.combine import Combine, combine
from stax.algorithm.nodes import Func
from stax.bounds.accesses import Access
from stax.bounds.infer import stage_name
from stax.errors import LegalityError, Place
from stax.expr.affine import Algebra
from stax.expr.walk import names
from stax.loops.nodes import LoopKind
from stax.schedule.directives import Atomic, Reassociate
from stax.schedule.nest import Nest
from stax.schedule.points import Points


@dataclass(frozen=True, slots=True)
class Combining:
    """What was found of a stage whose points may be taken in any order.

    `apart` are the places of loops whose iterations keep partial results; `atomic` says that cells are combined into
    one at a time; `exact` is false where bits may differ from the definition's.
    """

    how: Combine
    apart: frozenset[int]
    atomic: bool
    exact: bool


def combining(
    f: Func, stage: int, nest: Nest, points: Points, found: tuple[Access, ...], algebra: Algebra
) -> Combining | None:
    """Return how the points of a stage combine, or None where they must keep their order.

    Raises LegalityError for a directive that needs a combining update, or permission, and has none.
    """
    who = stage_name(f.name, stage)
    atomic = next((p for p in nest.permits if isinstance(p, Atomic)), None)
    free = next((p for p in nest.permits if isinstance(p, Reassociate)), None)
    marked = [loop.name for loop in nest.loops if loop.apart]
    how = combine(f, f.updates[stage - 1]) if stage else None
    if how is None:
        if atomic or marked:
            said = "atomic()" if atomic else f"accumulators on `{marked[0]}`"
            places: list[Place] = [(atomic.span, "here")] if atomic else []
            raise LegalityError(
                f"{said} cannot be had for `{who}`: partial results are not known to be joined by one operator",
                [*places, (f.updates[stage - 1].span if stage else f.span, "this definition")],
                ["an update that combines is f[...] = f[...] op e with + * & | ^ minimum maximum"],
            )
        return None
    if not how.exact and f.fp == "strict" and (atomic or free or marked):
        place = atomic or free
        raise LegalityError(
            f'`{who}` is of fp="strict", so its sums keep their order', [(place.span, "here")] if place else []
        )
    reduced = meets(f, stage, found, algebra)
    lanes = {at for at, loop in enumerate(nest.loops) if loop.kind is LoopKind.VECTOR or loop.apart}
    meeting = frozenset(at for name in reduced for at in points.leaves(name))
    if points.skewed:  # a loop that names the cell meets it again at another point of the loop it is skewed along
        meeting = frozenset(range(len(nest.loops)))
    moves = frozenset(at for name in names(f.updates[stage - 1].index) for at in _leaves(points, nest, name))
    for at, loop in enumerate(nest.loops):
        if loop.apart and (at not in meeting or at in moves):
            raise LegalityError(
                f"accumulators of `{loop.name}` in `{who}`: each of its iterations has a cell of its own already",
                hint="accumulators are for a loop that is reduced",
            )
    if not how.exact and free is None and atomic is None:
        return None
    for at in meeting:
        kind = nest.loops[at].kind
        if atomic is None and (kind is LoopKind.PARALLEL or (at in lanes and at in moves)):
            return None
    apart = frozenset(at for at in lanes & meeting if at not in moves)
    together = any(nest.loops[at].kind is LoopKind.PARALLEL or (at in lanes and at in moves) for at in meeting)
    return Combining(how, apart, atomic is not None and together, how.exact)


def _leaves(points: Points, nest: Nest, name: str) -> frozenset[int]:
    return points.leaves(name) if name in nest.roots else frozenset()


def meets(f: Func, stage: int, found: tuple[Access, ...], algebra: Algebra) -> list[str]:
    """Return the variables of the domain that do not name the cell of a point by themselves."""
    update = f.updates[stage - 1]
    cell = next(a.index for a in reversed(found) if a.source == f.name)
    own = [algebra.name(i) for i in cell]
    uses = [names((i,)) for i in update.index]
    return [r.name for r in update.domain if not (r.name in own and sum(r.name in u for u in uses) == 1)]


__all__ = ["Combining", "combining", "meets"]
