"""The token that opens the compiler: a schedule that was proved, with every region of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stax.algorithm.keep import Kept
from stax.algorithm.nodes import Pipeline
from stax.bounds.infer import Box, RegionCheck, Regions
from stax.expr.affine import Affine
from stax.expr.nodes import BinaryOp, Expr
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
    in the place of another. Storage is allocated at `hoist`, where that is further out, with these extents.
    """

    compute: Level | None
    store: Level | None
    box: Box
    kept: Box
    new: Box
    fold: tuple[int | None, ...]
    hoist: Level | None = None
    extents: tuple[Affine, ...] = ()


@dataclass(frozen=True, slots=True)
class Reordered:
    """A stage whose sums of floats a directive lets be taken in another order."""

    stage: StageRef
    span: Span | None


@dataclass(frozen=True, slots=True)
class Fetch:
    """What a prefetch fetches in the iteration of the loops around `depth` of `stage`: the box `box` of `source`."""

    stage: StageRef
    depth: int
    source: str
    box: Box


@dataclass(frozen=True, slots=True)
class Together:
    """Stages that run in the outermost `depth` loops of `host`, each so many iterations of the last of them later."""

    host: StageRef
    depth: int
    guests: tuple[tuple[StageRef, int], ...]


@dataclass(frozen=True, slots=True)
class Demand:
    """`cond` must hold at a call: `name`, a dim of `source` or with `loop` a loop of it, goes from `lo` to `hi`.

    `text` is the directive that takes it for granted.
    """

    cond: Expr
    source: str
    name: str
    lo: Expr
    hi: Expr
    text: str
    span: Span | None
    loop: bool = False


@dataclass(frozen=True, slots=True)
class Legal:
    """A schedule that changes no value. Only `legality.check` makes one; `lower` takes nothing else.

    `pipeline` is the program after directives that make Funcs, and after inlining; `placed` has its Funcs and `points`
    its stages. `apart` are, by stage, the places of loops whose iterations keep partial results; `atomic` the stages
    whose iterations meet in cells, and the operator that joins them. Values keep their bits but for `reordered` sums.
    What is stored over the step before runs only where `kept` says that there is something to do.
    `holders` has, for Funcs and Inputs that share storage, the one whose storage it is; `checks` are for the call.
    All holds of calls that keep `demands`.
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
    demands: tuple[Demand, ...]
    fetches: tuple[Fetch, ...]
    together: tuple[Together, ...]

    @property
    def contract(self) -> str:
        """How values keep to the definition: "bitwise", or "reassociates"."""
        return "reassociates" if self.reordered else "bitwise"
