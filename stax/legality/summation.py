"""How many roundings a term of a sum may pass through: the bound on the error of reductions that a schedule gives.

A sum of n terms in turn rounds a term up to n - 1 times; k partial sums n / k - 1 times each, then k - 1 times; a
Func that `rfactor` made adds its own to those of the Func that reads it. Under `fp="fast"` any order is reckoned
with. With u half the distance from 1 to the next float and m such roundings, a sum is off by at most m u / (1 - m u)
times the sum of the sizes of its terms (Higham, 1993).
"""

from __future__ import annotations

from collections.abc import Mapping

from stax.algorithm.combine import combine
from stax.algorithm.nodes import Func
from stax.bounds.infer import stage_ranges
from stax.expr import build
from stax.expr.nodes import BinaryOp, Const, Expr, Local, Var
from stax.expr.walk import postorder
from stax.legality.combining import meets
from stax.schedule.directives import StageRef
from stax.schedule.legal import Legal


def roundings(legal: Legal) -> Mapping[str, Expr | None]:
    """Return, for each output, how often a term of its sums is rounded at most, over sizes; None where it is not seen.

    Only additions of reductions count, those of the Funcs that it reads too.
    """
    found: dict[str, Expr | None] = {}
    for f in legal.pipeline.funcs:
        total: Expr | None = build.index(0)
        for source in dict.fromkeys(a.source for s in legal.regions.context.accesses[f.name] for a in s):
            if source in found and source != f.name:
                below = found[source]
                total = None if total is None or below is None else build.maximum(total, below)
        for stage in range(1, len(f.updates) + 1):
            mine = _stage(legal, f, stage)
            total = None if total is None or mine is None else build.add(total, mine)
        found[f.name] = total
    return {name: found[name] for name in legal.pipeline.outputs}


def _stage(legal: Legal, f: Func, stage: int) -> Expr | None:
    update = f.updates[stage - 1]
    how = combine(f, update)
    if how is None or how.exact or how.op is not BinaryOp.ADD:
        return build.index(0)
    ref, context = StageRef(f.name, stage), legal.regions.context
    algebra = context.algebra
    dims = dict(zip(f.dims, legal.placed[f.name].box, strict=True))
    ranges = stage_ranges(f, stage, dims, algebra, context.at_least)
    points, apart = legal.points[ref], legal.apart.get(ref, frozenset()) if f.fp != "fast" else frozenset[int]()
    reduced = meets(f, stage, context.accesses[f.name][stage], algebra)
    terms: Expr = build.index(1)
    parts = 1
    for name in reduced:
        extent = algebra.expr(ranges[name].last - ranges[name].first + 1)
        if any(isinstance(e, Var | Local) for e in postorder((extent,))):
            return None
        lanes = 1
        for at in apart & points.leaves(name):
            width = points.loops[at].width
            assert width is not None
            lanes *= width if sum(at in points.leaves(other) for other in reduced) == 1 else 1
        parts *= lanes
        terms = build.mul(terms, build.floordiv(build.add(build.maximum(extent, 0), lanes - 1), lanes))
    first = f.values[0]
    begins = 0 if isinstance(first, Const) and first.value == 0 and stage == 1 else 1
    return build.add(build.maximum(build.sub(terms, 1), 0), parts - 1 + begins)
