"""What can be said of a schedule: one node for each directive, holding names and numbers only."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from stax.source import Span


class Tail(Enum):
    """What a split does with the iterations that do not fill its factor; `GUARD` runs only those that exist."""

    GUARD = "guard"


@dataclass(frozen=True, slots=True)
class StageRef:
    """A stage of the Func `func`: 0 is its definition, k + 1 its update k.

    >>> print(StageRef("f", 0), StageRef("f", 1))
    f f.update(0)
    """

    func: str
    stage: int = 0

    def __str__(self) -> str:
        return self.func if self.stage == 0 else f"{self.func}.update({self.stage - 1})"


@dataclass(frozen=True, slots=True)
class Said:
    """A directive; `span` says where it was written and is no part of what it means."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Split(Said):
    """Loop `var` becomes `outer` of `inner`, which takes `factor` steps."""

    var: str
    outer: str
    inner: str
    factor: int
    tail: Tail = Tail.GUARD


@dataclass(frozen=True, slots=True)
class Tile(Said):
    """Each of `vars` is split by its size; all of `outers` stand outside all of `inners`."""

    vars: tuple[str, ...]
    outers: tuple[str, ...]
    inners: tuple[str, ...]
    sizes: tuple[int, ...]
    tail: Tail = Tail.GUARD


@dataclass(frozen=True, slots=True)
class Fuse(Said):
    """Loop `outer` and the loop `inner` directly inside it become the one loop `fused`."""

    outer: str
    inner: str
    fused: str


@dataclass(frozen=True, slots=True)
class Reorder(Said):
    """The loops `vars`, outermost first, take among them the places that they hold."""

    vars: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Vectorize(Said):
    """The iterations of `var` are lanes in step; with `n`, those of its inner part `var.in` are."""

    var: str
    n: int | None = None


@dataclass(frozen=True, slots=True)
class Parallel(Said):
    """The iterations of `var` are run by independent workers; with `n`, in runs of `n`."""

    var: str
    n: int | None = None


@dataclass(frozen=True, slots=True)
class Unroll(Said):
    """The iterations of `var` are written out; with `n`, those of its inner part `var.in` are."""

    var: str
    n: int | None = None


@dataclass(frozen=True, slots=True)
class Inline(Said):
    """The Func is computed wherever it is read."""


@dataclass(frozen=True, slots=True)
class ComputeRoot(Said):
    """The Func is computed before its readers, whole."""


@dataclass(frozen=True, slots=True)
class ComputeAt(Said):
    """The Func is computed in each iteration of `loop` of `consumer`, and kept from loop `store` of it on.

    `stage` is None where only the Func was named: then the stage of it that reads is meant.
    """

    consumer: str
    stage: int | None
    loop: str
    store: str | None = None


@dataclass(frozen=True, slots=True)
class StoreAt(Said):
    """The Func is kept as long as an iteration of `loop` of `consumer` lasts; `stage` as in `ComputeAt`."""

    consumer: str
    stage: int | None
    loop: str


@dataclass(frozen=True, slots=True)
class StoreRoot(Said):
    """The Func is kept as long as the kernel runs."""


LoopDirective: TypeAlias = Split | Tile | Fuse | Reorder | Vectorize | Parallel | Unroll
PlaceDirective: TypeAlias = Inline | ComputeRoot | ComputeAt | StoreAt | StoreRoot
Directive: TypeAlias = LoopDirective | PlaceDirective


@dataclass(frozen=True, slots=True)
class Line:
    """A directive and the stage that it was said of."""

    at: StageRef
    directive: Directive


NAMES = (
    "split", "tile", "fuse", "reorder", "vectorize", "parallel", "unroll", "inline", "compute_root", "compute_at",
    "store_at", "store_root",
)  # fmt: skip

LATER = (
    "reverse", "skew", "affine", "partition", "specialize", "hoist_storage", "compute_with", "fold_storage",
    "overwrite", "layout", "memory", "cache_read", "clone", "bound", "align_bounds", "reassociate", "rfactor", "split_reduction",
    "accumulators", "online", "atomic", "prefetch", "stream", "warps", "stages", "swizzle", "matrix_unit",
)  # fmt: skip
