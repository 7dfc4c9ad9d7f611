"""What can be said of a schedule: one node for each directive, holding names and numbers only."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from stax.source import Span


class Tail(Enum):
    """What a split does with the iterations that do not fill its factor.

    `GUARD` runs only those that exist; `SHIFT` moves the last run down, so that it is full and repeats some of the one
    before; `ROUND_UP` runs all, those that do not exist into padding of the storage; `PREDICATE` runs all lanes, or all
    iterations that are written out, and masks those that do not exist.
    """

    GUARD = "guard"
    SHIFT = "shift"
    ROUND_UP = "round_up"
    PREDICATE = "predicate"


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
class Reverse(Said):
    """The iterations of `var` run from the last to the first."""

    var: str


@dataclass(frozen=True, slots=True)
class Skew(Said):
    """Loop `var` becomes `new`, which counts `var + factor * along`; `new` None keeps the name."""

    var: str
    along: str
    factor: int
    new: str | None = None


@dataclass(frozen=True, slots=True)
class Affine(Said):
    """The loops `vars` become as many: number k counts row k of `matrix` times them, and stands in its place.

    `new` None keeps the names.
    """

    matrix: tuple[tuple[int, ...], ...]
    vars: tuple[str, ...]
    new: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Vectorize(Said):
    """The iterations of `var` are lanes in step; with `n`, those of its inner part `var.in` are.

    With `upto`, all of them are, however many up to that number there are at the call.
    """

    var: str
    n: int | None = None
    upto: int | None = None


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
class Partition(Said):
    """Loop `var` is cut where conditions change, whatever that costs in code; a parallel one into several."""

    var: str


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


@dataclass(frozen=True, slots=True)
class HoistStorage(Said):
    """Storage is allocated once around loop `loop` of `consumer`'s body, and used anew wherever the Func is kept."""

    consumer: str
    stage: int | None
    loop: str


@dataclass(frozen=True, slots=True)
class ComputeWith(Said):
    """Down to `loop`, the loops of this stage are those of the other; `shift` iterations of `loop` later."""

    consumer: str
    stage: int
    loop: str
    shift: int = 0


@dataclass(frozen=True, slots=True)
class FoldStorage(Said):
    """Of dim `dim` of the Func, `n` values are kept: value i lies where value i - n lay."""

    dim: str
    n: int


@dataclass(frozen=True, slots=True)
class Reassociate(Said):
    """Sums of floats of the stage may be taken in another order."""


@dataclass(frozen=True, slots=True)
class Atomic(Said):
    """Iterations of the update that meet in a cell combine into it one at a time, in whatever order they come."""


@dataclass(frozen=True, slots=True)
class Stream(Said):
    """What the stage stores goes past the caches, where whole vectors lie aligned."""


@dataclass(frozen=True, slots=True)
class Specialize(Said):
    """There is a copy of the code of the stage for calls where `cond` holds, a condition on sizes and Params."""

    cond: str


@dataclass(frozen=True, slots=True)
class Prefetch(Said):
    """Each iteration of `loop` fetches into the caches what the one `ahead` later reads of `source`."""

    source: str
    loop: str
    ahead: int


@dataclass(frozen=True, slots=True)
class Warps(Said):
    """A hint for GPUs: a program has `n` warps."""

    n: int


@dataclass(frozen=True, slots=True)
class Stages(Said):
    """A hint for GPUs: loads run `n` iterations ahead."""

    n: int


@dataclass(frozen=True, slots=True)
class Swizzle(Said):
    """A hint for GPUs: programs are numbered in groups of `n` rows."""

    n: int


@dataclass(frozen=True, slots=True)
class MatrixUnit(Said):
    """A hint for GPUs: loops `i`, `j` and the reduced `k` are one multiplication of matrices."""

    i: str
    j: str
    k: str
    precision: str | None = None


@dataclass(frozen=True, slots=True)
class Accumulators(Said):
    """The reduced loop `var` is split by `n`; each step of its inner part, `var.acc`, has an accumulator of its own."""

    var: str
    n: int


@dataclass(frozen=True, slots=True)
class Rfactor(Said):
    """Results for each value of the reduced loop `var` go to a new Func `name` along dim `new`; they are combined."""

    var: str
    new: str
    name: str


@dataclass(frozen=True, slots=True)
class CacheRead(Said):
    """Those of `readers`, or all, read a new Func `name` that holds a copy of the values."""

    name: str
    readers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Clone(Said):
    """Those of `readers` read a new Func `name` that is defined as this one is."""

    name: str
    readers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout(Said):
    """The dims of the Func lie in memory in `order`, outermost first; the last one's extent is a multiple of `pad`.

    Every row of it begins at a multiple of `align` bytes, where that is given.
    """

    order: tuple[str, ...]
    pad: int = 1
    align: int | None = None


class Store(Enum):
    """Where values are kept; in registers only what constant positions name."""

    STACK = "stack"
    HEAP = "heap"
    REGISTER = "register"


@dataclass(frozen=True, slots=True)
class Memory(Said):
    """The values are kept in memory of a kind."""

    kind: Store


@dataclass(frozen=True, slots=True)
class Bound(Said):
    """A promise: along `dim`, just the `n` values from `lo` on are needed."""

    dim: str
    lo: int
    n: int


@dataclass(frozen=True, slots=True)
class AlignBounds(Said):
    """A promise: along `dim`, the first value needed and how many there are are multiples of `n`."""

    dim: str
    n: int


@dataclass(frozen=True, slots=True)
class Overwrite(Said):
    """The Func is kept in the storage of `target`, a Func or an Input, each cell in place of that of its index."""

    target: str


@dataclass(frozen=True, slots=True)
class SplitReduction(Said):
    """Runs of `n` iterations of `var` are reduced in parallel, to a new Func `name`; short for three directives."""

    var: str
    n: int
    new: str
    name: str


LoopDirective: TypeAlias = (
    Split | Tile | Fuse | Reorder | Reverse | Skew | Affine | Vectorize | Parallel | Unroll | Accumulators | Partition
)
Hint: TypeAlias = Warps | Stages | Swizzle | MatrixUnit
StageDirective: TypeAlias = Reassociate | Atomic | Stream | Specialize | Hint
PlaceDirective: TypeAlias = Inline | ComputeRoot | ComputeAt | StoreAt | StoreRoot
StorageDirective: TypeAlias = FoldStorage | Layout | Memory | Bound | AlignBounds
ProgramDirective: TypeAlias = Rfactor | CacheRead | Clone
AroundDirective: TypeAlias = HoistStorage | ComputeWith | Prefetch | Overwrite
Directive: TypeAlias = (
    LoopDirective | StageDirective | PlaceDirective | StorageDirective | ProgramDirective | AroundDirective
    | SplitReduction
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """A directive and the stage that it was said of; `why` is a reason, and no part of what it means."""

    at: StageRef
    directive: Directive
    why: str = field(default="", compare=False, repr=False)


def spelled_out(line: Line) -> tuple[Line, ...]:
    """Return the lines that `line` is short for; itself, where it is short for none.

    >>> len(spelled_out(Line(StageRef("t", 1), SplitReduction("r", 64, "u", "part"))))
    3
    """
    match line.directive:
        case SplitReduction(var=var, n=n, new=new, name=name, span=span):
            return (
                Line(line.at, Split(var, var, f"{var}.in", n, span=span)),
                Line(line.at, Rfactor(var, new, name, span=span)),
                Line(StageRef(name, 1), Parallel(new, span=span)),
            )
        case _:
            return (line,)
