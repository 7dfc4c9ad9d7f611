"""The token that opens the compiler: a schedule that was proved, with every region of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stax.algorithm.nodes import Pipeline
from stax.bounds.infer import Box, Regions
from stax.schedule.directives import StageRef
from stax.schedule.points import Points
from stax.schedule.resolve import Resolved


@dataclass(frozen=True, slots=True)
class Level:
    """Inside the outermost `depth` loops of `stage`."""

    stage: StageRef
    depth: int


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a Func is computed and kept, None being the whole kernel, and over which box.

    Both boxes are inclusive sums over sizes, Params and the loop variables around their level; `kept` holds `box`.
    With `fold`, a dim and a number of cells, only so many are kept along it, one in the place of another.
    """

    compute: Level | None
    store: Level | None
    box: Box
    kept: Box
    fold: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Legal:
    """A schedule that changes no value. Only `legality.check` makes one; `lower` takes nothing else.

    `pipeline` is the program after inlining; `placed` has its Funcs and `points` its stages.
    """

    pipeline: Pipeline
    resolved: Resolved
    regions: Regions
    placed: Mapping[str, Placed]
    points: Mapping[StageRef, Points]
