"""A cycle of cells that need each other, looked for at small sizes: the first of 1, 2, 3, ... that has one.

Plain search over the cells of a few Funcs, each read evaluated where it is needed: what it finds is a cycle whatever
else is true. Indices that depend on data are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stax.algorithm.nodes import Func, Pipeline
from stax.bounds.accesses import Access, at_data
from stax.bounds.infer import Context
from stax.expr.evaluate import evaluate
from stax.expr.nodes import Expr, Param, Size, Var
from stax.expr.show import show
from stax.expr.walk import postorder
from stax.source import Span

MOST_SIZE = 7
MOST_CELLS = 4000
MOST_SPAN = 300
Cell = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Cycle:
    """`cells[k]` reads `cells[k + 1]` at `spans[k]`, the last one the first; `sizes` are those it was found at."""

    cells: tuple[Cell, ...]
    spans: tuple[Span | None, ...]
    sizes: tuple[tuple[str, int], ...]


def find_cycle(pipeline: Pipeline, names: Sequence[str], context: Context) -> Cycle | None:
    """Return a short cycle among the cells of the Funcs `names`, at the smallest size that has one."""
    for size in range(1, MOST_SIZE + 1):
        found = _Search(pipeline, names, context, size).run()
        if found is not None:
            return found
    return _Search(pipeline, names, context, MOST_SPAN).along_a_line()


class _Search:
    def __init__(self, pipeline: Pipeline, names: Sequence[str], context: Context, size: int) -> None:
        self.size, self.context = size, context
        self.funcs = [pipeline.func(n) for n in names]
        self.limits = {s.name: (s.low, s.high) for s in pipeline.scalars}
        self.used: dict[str, int] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        for f in self.funcs:
            extents = f.shape or (None,) * len(f.dims)
            declared = [None if e is None else self._number(e) for e in extents]
            self.shapes[f.name] = tuple(size if n is None else min(n, size) for n in declared)

    def run(self) -> Cycle | None:
        """Return the first shortest cycle of those through one cell."""
        edges: dict[Cell, list[tuple[Cell, Span | None]]] = {}
        total = sum(int(np.prod(self.shapes[f.name], dtype=np.int64)) for f in self.funcs)
        if total > MOST_CELLS:
            return None
        for f in self.funcs:
            for access in self.context.accesses[f.name][0]:
                if access.source in self.shapes and not at_data(access, self.context.algebra):
                    for cell, other in self._pairs(f, access):
                        edges.setdefault(cell, []).append((other, access.read.span if access.read else None))
        for cell in edges:
            found = self._back(cell, edges)
            if found is not None:
                return found
        return None

    def along_a_line(self) -> Cycle | None:
        """Return a cycle along one dim of one Func, whose reads may lie far away."""
        if len(self.funcs) != 1 or len(self.funcs[0].dims) != 1:
            return None
        return self.run()

    def _back(self, start: Cell, edges: Mapping[Cell, list[tuple[Cell, Span | None]]]) -> Cycle | None:
        """Return the shortest way from `start` back to it."""
        came: dict[Cell, tuple[Cell, Span | None]] = {}
        front = [start]
        while front:
            after: list[Cell] = []
            for cell in front:
                for other, span in edges.get(cell, ()):
                    if other == start:
                        cells, spans = [cell], [span]
                        while cells[-1] != start:
                            before, at = came[cells[-1]]
                            cells.append(before)
                            spans.append(at)
                        sizes = tuple(sorted(self.used.items()))
                        return Cycle(tuple(reversed(cells)), tuple(reversed(spans)), sizes)
                    if other not in came and other != start:
                        came[other] = cell, span
                        after.append(other)
            front = after
        return None

    def _pairs(self, f: Func, access: Access) -> Iterator[tuple[Cell, Cell]]:
        """Yield each cell of `f` that makes a read, and the cell that it reads."""
        algebra, shape = self.context.algebra, self.shapes[f.name]
        if 0 in shape:
            return
        grid: Sequence[np.ndarray[Any, Any]] = (
            np.meshgrid(*(np.arange(n) for n in shape), indexing="ij") if shape else []
        )
        points = {d: g.ravel() for d, g in zip(f.dims, grid, strict=True)}
        count = int(np.prod(shape, dtype=np.int64))
        index = [np.broadcast_to(v, count) for v in self._values([algebra.expr(i) for i in access.index], points)]
        there = np.ones(count, np.bool_)
        for fact in access.facts:
            sums = algebra.expr(fact.sum)
            if any(not isinstance(n, Var | Size | Param) and n.dtype.is_float for n in postorder((sums,))):
                continue
            try:
                (value,) = self._values([sums], points)
            except _AtData:
                return
            there &= np.broadcast_to(value != 0 if fact.unequal else value >= 0, count)
        for i, n in zip(index, self.shapes[access.source], strict=True):
            there &= (i >= 0) & (i < n)
        for k in np.flatnonzero(there):
            cell = tuple(int(points[d][k]) for d in f.dims)
            yield (f.name, cell), (access.source, tuple(int(i[k]) for i in index))

    def _values(self, exprs: Sequence[Expr], points: Mapping[str, np.ndarray[Any, Any]]) -> list[Any]:
        def leaf(node: Expr) -> Any:
            match node:
                case Var(name=name) if name in points:
                    return points[name].astype(np.int64)
                case Size(array=array, dim=dim):
                    self.used[f"{array}.shape[{dim}]"] = self.size
                    return np.asarray(self.size, np.int64)
                case Param(name=name):
                    low, high = self.limits[name]
                    value = self.size if low is None else max(self.size, int(low))
                    value = value if high is None else min(value, int(high))
                    if low is not None and low <= 0 <= (0 if high is None else high):
                        value = value - 1
                    self.used[name] = value
                    return np.asarray(value).astype(node.dtype.dtype)
                case _:
                    raise _AtData(show(node))

        return list(evaluate(exprs, leaf)) if exprs else []

    def _number(self, e: Expr) -> int:
        try:
            return max(0, int(self._values([e], {})[0]))
        except _AtData:
            return self.size


class _AtData(Exception):
    """A position depends on data."""
