"""What a schedule promises of a call: regions that are needed, and how often loops of run-time lanes run.

Nothing is proved of them but that they can be checked: each becomes a condition over sizes and Params, tested before
anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from stax.algorithm.nodes import Pipeline
from stax.bounds.infer import Promise, Promised, Promises
from stax.expr import build
from stax.expr.affine import Affine, Algebra
from stax.schedule import directives as said
from stax.schedule.legal import Demand
from stax.schedule.script import show_directive
from stax.source import Span

Bounds = Mapping[tuple[str, str], said.Bound | said.AlignBounds]


def promises(pipeline: Pipeline, bounds: Bounds) -> Promises:
    """Return what `bounds` say, by Func and number of dim; Funcs that are no more are left out."""
    dims = {f.name: f.dims for f in pipeline.funcs}
    return {
        (func, dims[func].index(dim)): Promise(b.lo if isinstance(b, said.Bound) else None, b.n)
        for (func, dim), b in bounds.items()
        if func in dims
    }


def of_region(found: Promised, dim: str, directive: said.Bound | said.AlignBounds, algebra: Algebra) -> Demand:
    """Return what a call must keep of a promise about a region."""
    lo, hi, n = algebra.expr(found.needed.first), algebra.expr(found.needed.last), found.promise.n
    extent = algebra.expr(found.needed.last - found.needed.first + 1)
    if found.promise.lo is not None:
        begins = build.binary(build.Op.EQ, lo, build.index(found.promise.lo))
        cond = build.both(begins, build.binary(build.Op.EQ, extent, build.index(n)))
    else:
        zero = build.index(0)
        begins = build.binary(build.Op.EQ, build.mod(lo, n), zero)
        runs = build.both(begins, build.binary(build.Op.EQ, build.mod(extent, n), zero))
        cond = build.binary(build.Op.OR, runs, build.less_equal(extent, zero))
    return Demand(cond, found.func, dim, lo, hi, show_directive(directive), directive.span)


def of_lanes(stage: str, loop: str, extent: Affine, upto: int, span: Span | None, algebra: Algebra) -> Demand:
    """Return what a call must keep for a loop of lanes that runs `extent` times at most."""
    last = algebra.expr(extent - 1)
    cond = build.less(last, build.index(upto))
    text = show_directive(said.Vectorize(loop, upto=upto))
    return Demand(cond, stage, loop, build.index(0), last, text, span, loop=True)
