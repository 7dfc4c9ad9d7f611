"""A program cut for a machine that is handed kernels: what the host does, and what each kernel is.

`lower.split_kernels` makes these nodes, a printer of kernels takes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from stax.expr.nodes import Axes, Expr, Local, Param, Size
from stax.loops.nodes import Block, Buffer, For


@dataclass(frozen=True, slots=True)
class Hints:
    """What a schedule says of a GPU: warps a program, iterations that loads run ahead, rows of a group of programs.

    `precision` is that of products of float32 in a matrix unit.
    """

    warps: int | None = None
    stages: int | None = None
    swizzle: int | None = None
    precision: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """One launch: `body` for each point of `grid`, in any order, outermost loop first.

    `buffers` are in memory that all kernels see. `scratch` belongs to one point of the grid and is undefined at first.
    `scalars` are Params and Sizes, `counters` the variables of host loops that the kernel uses.
    """

    name: str
    buffers: tuple[Buffer, ...]
    scratch: tuple[Buffer, ...]
    scalars: tuple[Param | Size, ...]
    counters: tuple[Local, ...]
    axes: Axes
    grid: tuple[For, ...]
    body: Block
    hints: Hints = Hints()


@dataclass(frozen=True, slots=True, eq=False)
class HostLoop:
    """`body` for var = start, ..., start + extent - 1, or from last to first."""

    var: Local
    start: Expr
    extent: Expr
    down: bool
    body: tuple[Host, ...]


@dataclass(frozen=True, slots=True, eq=False)
class HostAllocate:
    """Memory for the rest of the host part, seen by all kernels."""

    buffer: Buffer


Host: TypeAlias = Kernel | HostLoop | HostAllocate


def kernels(host: tuple[Host, ...]) -> Iterator[Kernel]:
    """Yield the kernels of `host`, in the order of their first launch."""
    for part in host:
        if isinstance(part, Kernel):
            yield part
        elif isinstance(part, HostLoop):
            yield from kernels(part.body)
