"""The program as loops and buffers, before any machine is chosen.

Values are those of `expr` with `Local`, `Param`, `Size`, `Ramp` and `Load` as leaves; positions, sizes and loop bounds
have dtype `index`. A `VECTOR` loop is a loop until `lower.vectorize_loops` turns it into an axis of its body's values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from stax.dtypes import DType
from stax.expr.nodes import Axes, BinaryOp, Expr, Local, Param, Size
from stax.source import Span


class LoopKind(Enum):
    """How the iterations of a loop relate."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTOR = "vector"
    UNROLL = "unroll"


class Role(Enum):
    """Who owns a buffer. Arguments have run-time byte strides; scratch is dense, row major."""

    INPUT = "input"
    OUTPUT = "output"
    TABLE = "table"
    SCRATCH = "scratch"


class Memory(Enum):
    """Where scratch lies; in registers what is at constant positions only."""

    ANY = "any"
    STACK = "stack"
    HEAP = "heap"
    REGISTER = "register"


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array in memory; `shape` is made of sizes, and for scratch of outer loop variables too.

    Scratch is in `memory` of a kind, and begins at a multiple of `align` bytes, a power of two.
    """

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    role: Role
    memory: Memory = Memory.ANY
    align: int = 64


@dataclass(frozen=True, slots=True, eq=False)
class Allocate:
    """Scratch for the rest of the block, private to the iteration of the loops around it; undefined at first."""

    buffer: Buffer


@dataclass(frozen=True, slots=True, eq=False)
class Let:
    """Bind `name` for the rest of the block; never rebound."""

    name: Local
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """Write `value` where all of `mask` hold; with `atomic`, combine it into memory cell by cell.

    With `stream`, past the caches, where the machine can. `stage` is whose value it is, for people to read.
    """

    buffer: str
    index: tuple[Expr, ...]
    value: Expr
    mask: tuple[Expr, ...] = ()
    atomic: BinaryOp | None = None
    stream: bool = False
    span: Span | None = field(default=None, repr=False)
    stage: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Carry:
    """A value handed from one iteration to the next; after the loop `name` is the last one (`init` if none ran)."""

    name: Local
    init: Expr
    next: Expr


@dataclass(frozen=True, slots=True, eq=False)
class For:
    """`body` for var = start, ..., start + extent - 1; nothing where extent <= 0. Then each carry takes its `next`.

    `down` runs the same values from last to first. `width` is a constant that `extent` does not exceed, given for
    VECTOR and UNROLL. A PARALLEL loop carries nothing. With `apart`, stores of the body combine values into cells that
    its iterations share, and each may have a partial result of its own. A `masked` VECTOR or UNROLL loop becomes code
    for all of its `width`, which masks the iterations that do not exist. One that is `cut` is cut where conditions
    change, at any cost.
    """

    var: Local
    start: Expr
    extent: Expr
    kind: LoopKind
    body: Block
    carries: tuple[Carry, ...] = ()
    width: int | None = None
    down: bool = False
    apart: bool = False
    masked: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Prefetch:
    """Fetch the cell at `index`, and what lies in its line of the cache, if it is there; nothing is changed by it."""

    buffer: str
    index: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class If:
    """`then` or `orelse`, by one scalar condition; no value leaves."""

    cond: Expr
    then: Block
    orelse: Block


@dataclass(frozen=True, slots=True, eq=False)
class Timed:
    """`body`, and what it took: in row `row` of `buffer`, the ticks of a clock, and 1, are added to two int64.

    It is a bracket and no scope: what `body` binds holds for the rest of the block.
    """

    buffer: str
    row: int
    body: Block


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Statements in order."""

    stmts: tuple[Stmt, ...] = ()


Stmt: TypeAlias = Allocate | Let | Store | Prefetch | For | If | Timed | Block


@dataclass(frozen=True, slots=True)
class Serial:
    """A loop that was to be lanes and runs serially, and why; no part of what a program means."""

    loop: str
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Loops over buffers. `buffers` are the arguments; `scalars` the Params and Sizes the body may use.

    `axes` is the nest order of all tiles, outermost first; every value's axes are a subsequence of it.
    """

    name: str
    buffers: tuple[Buffer, ...]
    scalars: tuple[Param | Size, ...]
    body: Block
    axes: Axes = ()
    serial: tuple[Serial, ...] = ()

    def buffer(self, name: str) -> Buffer:
        """Return the argument called `name`."""
        for b in self.buffers:
            if b.name == name:
                return b
        raise KeyError(name)
