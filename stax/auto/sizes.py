"""How large arrays are taken to be: as they are given, else as a program of their rank usually has them.

What is said of sizes decides between schedules that are all legal at every size; no value depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stax.algorithm.nodes import Pipeline
from stax.bounds.infer import Regions
from stax.expr.evaluate import evaluate_sizes
from stax.expr.nodes import Expr

USUAL: Mapping[int, tuple[int, ...]] = {
    0: (),
    1: (1 << 22,),
    2: (2048, 2048),
    3: (4, 1536, 2048),
    4: (4, 128, 128, 64),
}
STEPS = 100


@dataclass(frozen=True, slots=True)
class Numbers:
    """What sizes and Params are taken to be; `extents` are those of the boxes of Funcs, `arrays` those of Inputs.

    `given` is whether somebody said how large arrays are.
    """

    extents: Mapping[str, tuple[int, ...]]
    arrays: Mapping[str, tuple[int, ...]]
    sizes: Mapping[tuple[str, int], int]
    scalars: Mapping[str, float]
    given: bool

    def spans(self, exprs: Sequence[Expr]) -> list[int]:
        """Return how many values ranges have, those that depend on other loops taken to have `STEPS`."""
        return [max(1, STEPS if n is None else n) for n in (_value(e, self.sizes, self.scalars) for e in exprs)]

    def values(self, exprs: Sequence[Expr], at: Mapping[str, int]) -> list[int]:
        """Return what `exprs` are, where the loop variables `at` stand."""
        return evaluate_sizes(exprs, self.sizes, self.scalars, at)


def numbers(pipeline: Pipeline, regions: Regions, shapes: Mapping[str, Sequence[int]]) -> Numbers:
    """Return how large everything is where Inputs and outputs have `shapes`, as far as those are given."""
    scalars = {p.name: float(STEPS if p.default is None else p.default) for p in pipeline.scalars}
    for p in pipeline.scalars:
        if p.default is None:
            scalars[p.name] = float(min(max(STEPS, p.low or 0), STEPS if p.high is None else p.high))
    sizes: dict[tuple[str, int], int] = {}
    for name, shape in shapes.items():
        sizes |= {(name, d): int(n) for d, n in enumerate(shape)}
    for i in pipeline.inputs:
        usual = _usual(len(i.dims))
        for d, said in enumerate(i.sizes):
            if (i.name, d) not in sizes:
                found = None if said is None else _value(said, sizes, scalars)
                sizes[i.name, d] = usual[d] if found is None else found
    for name in pipeline.outputs:
        usual = _usual(len(regions.shapes[name]))
        for d, said in enumerate(regions.shapes[name]):
            if (name, d) not in sizes:
                found = None if said is None else _value(said, sizes, scalars)
                sizes[name, d] = usual[d] if found is None or found < 1 else found
    algebra = regions.context.algebra
    extents: dict[str, tuple[int, ...]] = {}
    for f in pipeline.funcs:
        spans = [
            algebra.expr(i.last - i.first + 1) for i in regions.boxes[f.name] if i.lo is not None and i.hi is not None
        ]
        found = evaluate_sizes(spans, sizes, scalars) if len(spans) == len(f.dims) else _usual(len(f.dims))
        extents[f.name] = tuple(max(1, int(n)) for n in found)
    arrays = {i.name: tuple(sizes[i.name, d] for d in range(len(i.dims))) for i in pipeline.inputs}
    arrays |= {t.name: t.array.shape for t in pipeline.tables}
    return Numbers(extents, arrays, sizes, scalars, bool(shapes))


def _usual(rank: int) -> tuple[int, ...]:
    return USUAL.get(rank) or (*(2,) * (rank - 4), *USUAL[4])


def _value(expr: Expr, sizes: Mapping[tuple[str, int], int], scalars: Mapping[str, float]) -> int | None:
    try:
        return evaluate_sizes([expr], sizes, scalars)[0]
    except KeyError:
        return None
