"""Write the loops of a prefetch: one instruction for each line of the caches that a box of an array may lie in.

A box of rows is fetched row by row, each from its first element on, a line's bytes apart. What lies outside of the
array is not there, and is not fetched: the instruction has no effect then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stax.algorithm.nodes import MARK
from stax.bounds.infer import Box
from stax.dtypes import DType
from stax.expr import build
from stax.expr.affine import Affine, Algebra
from stax.expr.nodes import Expr
from stax.loops.nodes import Block, For, LoopKind, Prefetch, Stmt

LINE_BYTES = 64


def fetches(
    buffers: Sequence[tuple[str, DType]], box: Box, algebra: Algebra, place: Callable[[list[Affine]], tuple[Expr, ...]],
    name: str,
) -> list[Stmt]:  # fmt: skip
    """Return the loops that fetch `box` of each of `buffers`; `place` says where in them a cell lies."""
    out: list[Stmt] = []
    for k, (buffer, dtype) in enumerate(buffers):
        step = max(1, LINE_BYTES // dtype.size_bytes)
        names = [build.local(f"{name}{MARK}fetch{k}.{d}") for d in range(len(box))]
        cell: list[Affine] = []
        extents: list[Expr] = []
        for d, (i, var) in enumerate(zip(box, names, strict=True)):
            extent = i.last - i.first + 1
            last = d == len(box) - 1
            extents.append(algebra.expr(algebra.divided(extent + (step - 1), step) if last else extent))
            cell.append(i.first + algebra.of(var) * (step if last else 1))
        body: Stmt = Prefetch(buffer, place(cell))
        for var, extent in zip(reversed(names), reversed(extents), strict=True):
            body = For(var, build.index(0), extent, LoopKind.SERIAL, Block((body,)))
        out.append(body)
    return out
