"""Whether reads and writes of a Func with a domain lie inside it: by intervals, and where they do not say, by isl."""

from __future__ import annotations

from stax.algorithm.domain import conjuncts
from stax.algorithm.nodes import Func, Pipeline
from stax.bounds.accesses import Access, conditions
from stax.bounds.infer import Regions, stage_name, stage_ranges
from stax.errors import BoundsError
from stax.expr.affine import Affine, Interval, Prover
from stax.expr.nodes import Expr, Param, Var
from stax.expr.show import show
from stax.expr.walk import substitute
from stax.legality.witness import point
from stax.poly.isl import TooHard
from stax.poly.outside import Outside, outside


def check_domains(pipeline: Pipeline, regions: Regions) -> None:
    """Raise BoundsError where a cell outside the domain of a Func may be read, or written by an update."""
    domains = {f.name: f for f in pipeline.funcs if f.where is not None}
    if not domains:
        return
    for f in pipeline.funcs:
        for stage, found in enumerate(regions.context.accesses[f.name]):
            for access in found:
                if access.source in domains:
                    _inside(f, stage, access, domains[access.source], regions)


def _inside(f: Func, stage: int, access: Access, source: Func, regions: Regions) -> None:
    context = regions.context
    algebra = context.algebra
    assert source.where is not None
    dims = dict(zip(f.dims, regions.boxes[f.name], strict=True))
    if stage:
        index = f.updates[stage - 1].index
        dims = {d: i for (d, i), at in zip(dims.items(), index, strict=True) if isinstance(at, Var) and at.name == d}
    ranges = stage_ranges(f, stage, dims, algebra, context.at_least)
    prover = Prover(algebra, {}, context.at_least)
    bounder = context.bounder(ranges, prover)
    cell = dict(zip(source.dims, map(algebra.expr, access.index), strict=True))
    for part in conjuncts(source.where):
        for fact in conditions(part, algebra, frozenset(), split_only=True)[0]:
            short = algebra.of(substitute(algebra.expr(fact.sum), cell))
            low = bounder.interval(short, access.facts).lo
            if low is not None and prover.nonnegative(low):
                continue
            _ask(f, stage, access, source, part, short, ranges, regions)


def _ask(
    f: Func, stage: int, access: Access, source: Func, part: Expr, short: Affine, ranges: dict[str, Interval],
    regions: Regions,
) -> None:  # fmt: skip
    context, who = regions.context, stage_name(f.name, stage)
    does = "reads" if access.read is not None else "may write"
    text = show(part)
    places = [
        (
            access.read.span if access.read is not None else f.updates[stage - 1].span,
            f"this {does.split()[-1].rstrip('s')}",
        )
    ]
    places.append((source.span, f"has cells only where {text}"))
    hint = f"sx.select({text}, ..., 0), with the indices of this line, reads it only where it is there"
    if access.read is None:
        hint = "an RDom with where= keeps what is written inside"
    try:
        found = outside(ranges, access.facts, short, access.index, context.algebra, context.at_least)
    except TooHard:
        why = "whether the condition holds for every cell was not found out"
        raise BoundsError(f"`{who}` {does} `{source.name}` outside its domain", places, [why], hint) from None
    if found is not None:
        facts = [_witness(f, stage, source, found, list(ranges))]
        raise BoundsError(f"`{who}` {does} `{source.name}` outside its domain", places, facts, hint)


def _witness(f: Func, stage: int, source: Func, found: Outside, names: list[str]) -> str:
    cell = f"{source.name}[{', '.join(map(str, found.cell))}]"
    sizes = [f"{_named(e)} = {v}" for e, v in found.sizes if not isinstance(e, Param) or v]
    said = f", for {', '.join(sizes)}" if sizes else ""
    return f"for example, {point(names, found.point)} needs {cell}{said}"


def _named(e: Expr) -> str:
    return show(e).removeprefix("index(").removesuffix(")")
