"""Where the variables of a stage lie while some of the loops around it stand still."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stax.algorithm.nodes import Func
from stax.bounds.infer import Context, stage_ranges
from stax.bounds.interval import Bounder
from stax.expr.affine import Interval, Prover, Ranges
from stax.schedule.directives import StageRef
from stax.schedule.legal import Level, Placed
from stax.schedule.points import Points

Path = tuple[tuple[StageRef, int], ...]
"""The loops around something, outermost first: each a stage and the place of a loop in its nest."""
Loops = tuple[tuple[str, Interval], ...]
"""Loops, outermost first: their variables, and what these count."""


@dataclass(frozen=True, slots=True)
class Within:
    """The nests that are known so far: boxes, the loops around each Func, the loops of each stage."""

    context: Context
    placed: Mapping[str, Placed]
    paths: Mapping[str, Path]
    points: Mapping[StageRef, Points]
    _bounders: dict[Loops, Bounder] = field(default_factory=dict[Loops, Bounder])

    def path(self, level: Level | None) -> Path:
        """Return the loops around a level."""
        if level is None:
            return ()
        return (*self.paths[level.stage.func], *((level.stage, k) for k in range(level.depth)))

    def whole(self, f: str, stage: int) -> Path:
        """Return all the loops around a point of a stage, its own too."""
        ref = StageRef(f, stage)
        return (*self.paths[f], *((ref, k) for k in range(len(self.points[ref].loops))))

    def loops(self, path: Path) -> dict[str, Interval]:
        """Return what the loops of `path` count."""
        of, found = self.context.algebra.of, dict[str, Interval]()
        for stage, at in path:
            loop = self.points[stage].loops[at]
            first = of(loop.start)
            found[loop.var.name] = Interval(first, first + of(loop.extent) - 1)
        return found

    def variables(self, f: Func, stage: int, depth: int) -> dict[str, Interval]:
        """Return the variables of a stage while `depth` of its own loops stand still, over the loops around it."""
        of = self.context.algebra.of
        dims = dict(zip(f.dims, self.placed[f.name].box, strict=True))
        if depth <= 0:
            return stage_ranges(f, stage, dims, self.context.algebra, self.context.at_least)
        found = self.points[StageRef(f.name, stage)]
        ranges = {root: Interval(*map(of, found.within(root, depth))) for root in found.values}
        return {**{d: i for d, i in dims.items() if d not in ranges}, **ranges}

    def over(self, found: Interval, inner: Ranges, outer: Ranges) -> Interval:
        """Return `found` over all iterations of the loops `inner`."""
        names = list(inner)
        for k in reversed(range(len(names))):
            bounder = self._bounder(names[k], inner[names[k]], {**outer, **{n: inner[n] for n in names[:k]}})
            lo = None if found.lo is None else bounder.interval(found.lo, frozenset()).lo
            hi = None if found.hi is None else bounder.interval(found.hi, frozenset()).hi
            found = Interval(lo, hi)
        return found

    def _bounder(self, name: str, interval: Interval, around: Ranges) -> Bounder:
        """Return what finds intervals over a loop inside others, the same one for the same loops."""
        key = (*around.items(), (name, interval))
        if key not in self._bounders:
            prover = Prover(self.context.algebra, around, self.context.at_least)
            self._bounders[key] = self.context.bounder({name: interval}, prover)
        return self._bounders[key]
