"""The token that opens the compiler: a schedule that was proved, with every region of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stax.algorithm.keep import Kept
from stax.algorithm.nodes import Pipeline
from stax.bounds.infer import Box, RegionCheck, Regions
from stax.expr.nodes import BinaryOp
from stax.schedule.directives import StageRef
from stax.schedule.points import Points
from stax.schedule.resolve import Resolved
from stax.source import Span


@dataclass(frozen=True, slots=True)
class Level:
    """Inside the outermost `depth` loops of `stage`."""

    stage: StageRef
    depth: int


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a Func is computed and kept, None being the whole kernel, and over which box.

    Boxes are inclusive sums over sizes, Params and the loop variables around their level; `kept` holds `box`. Of `box`,
    `new` is computed: all, or what earlier iterations left undone. A dim that is folded keeps `fold` values of it, one
    in the place of another.
    """

    compute: Level | None
    store: Level | None
    box: Box
    kept: Box
    new: Box
    fold: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Reordered:
    """A stage whose sums of floats a directive lets be taken in another order."""

    stage: StageRef
    span: Span | None


@dataclass(frozen=True, slots=True)
class Legal:
    """A schedule that changes no value. Only `legality.check` makes one; `lower` takes nothing else.

    `pipeline` is the program after directives that make Funcs, and after inlining; `placed` has its Funcs and `points`
    its stages. `apart` are, by stage, the places of loops whose iterations keep partial results; `atomic` the stages
    whose iterations meet in cells, and the operator that joins them. Values keep their bits but for `reordered` sums.
    What is stored over the step before runs only where `kept` says that there is something to do.
    `holders` has, for Funcs and Inputs that share storage, the one whose storage it is; `checks` are for the call.
    """

    pipeline: Pipeline
    resolved: Resolved
    regions: Regions
    placed: Mapping[str, Placed]
    points: Mapping[StageRef, Points]
    apart: Mapping[StageRef, frozenset[int]]
    atomic: Mapping[StageRef, BinaryOp]
    reordered: tuple[Reordered, ...]
    kept: Mapping[str, Kept]
    holders: Mapping[str, str]
    checks: tuple[RegionCheck, ...]

    @property
    def contract(self) -> str:
        """How values keep to the definition: "bitwise", or "reassociates"."""
        return "reassociates" if self.reordered else "bitwise"
