"""How many bytes a timed program loads, stores and allocates, row by row, without running it.

A loop whose variable decides no extent and no condition below it counts as its body times its extent; others are
followed, many iterations at once. What depends on data counts as taken, and masked lanes as lanes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

import numpy as np

from stax.expr.evaluate import constant, evaluate
from stax.expr.nodes import Axes, Const, Expr, Load, Local, Param, Size
from stax.expr.walk import names, postorder
from stax.loops import walk
from stax.loops.nodes import Allocate, Block, For, If, Let, Prefetch, Program, Stmt, Store, Timed

Array: TypeAlias = np.ndarray[Any, Any]
_AT_ONCE = 1 << 16


@dataclass(slots=True)
class Counts:
    """Bytes loaded and stored, from whichever cache; how often scratch is allocated, and the most bytes at a time."""

    read_bytes: int = 0
    written_bytes: int = 0
    allocations: int = 0
    allocated_bytes: int = 0


def count(
    program: Program, scalars: Mapping[str, float | bool], sizes: Mapping[tuple[str, int], int]
) -> dict[int, Counts]:
    """Return the counts of each row of the Timed statements of `program`.

    `scalars` are the values of its Params, `sizes` the extents of dimension `dim` of array `name`.
    """
    counter = _Counter(program, scalars, sizes)
    counter.block(program.body, _Runs(np.ones(1, np.int64), {}), 0)
    return counter.rows


@dataclass(frozen=True, slots=True)
class _Runs:
    """Iterations followed together: how often each one runs, and what its names stand for."""

    times: Array
    env: dict[str, Array]


class _Counter:
    def __init__(
        self, program: Program, scalars: Mapping[str, float | bool], sizes: Mapping[tuple[str, int], int]
    ) -> None:
        self._scalars, self._sizes = scalars, sizes
        self._decides: dict[int, set[str]] = {}
        self._owner: dict[str, int] = {}
        self.rows: dict[int, Counts] = {}
        for timed in walk.statements(program.body):
            if isinstance(timed, Timed):
                self._owner |= dict.fromkeys(walk.buffers_stored(timed.body), timed.row)

    def block(self, block: Block, runs: _Runs, row: int) -> None:
        """Count `block`, whose statements share what they load."""
        seen: set[int] = set()
        for stmt in block.stmts:
            self._stmt(stmt, runs, row, seen)

    def _stmt(self, stmt: Stmt, runs: _Runs, row: int, seen: set[int]) -> None:
        counts = self.rows.setdefault(row, Counts())
        match stmt:
            case Allocate(buffer=buffer):
                cells = np.ones_like(runs.times)
                for extent in self._values(buffer.shape, runs):
                    cells = cells * np.maximum(extent, 0)
                owner = self.rows.setdefault(self._owner.get(buffer.name, row), Counts())
                owner.allocations += int(runs.times.sum())
                most = int(np.where(runs.times > 0, cells, 0).max(initial=0)) * buffer.dtype.size_bytes
                owner.allocated_bytes = max(owner.allocated_bytes, most)
            case Let(name=name, value=value):
                counts.read_bytes += self._loaded((value,), runs, seen)
                if name.dtype.name == "index" and not name.axes and not walk.loads(stmt):
                    runs.env[name.name] = self._values((value,), runs)[0]
            case Store(value=value):
                counts.read_bytes += self._loaded(walk.expressions(stmt), runs, seen)
                moved = int(runs.times.sum()) * _lanes(value.axes) * value.dtype.size_bytes
                counts.written_bytes += moved
                counts.read_bytes += 0 if stmt.atomic is None else moved
            case For():
                inits = tuple(c.init for c in stmt.carries)
                counts.read_bytes += self._loaded(inits, runs, seen)
                self._loop(stmt, runs, row)
            case If(cond=cond, then=then, orelse=orelse):
                counts.read_bytes += self._loaded((cond,), runs, seen)
                on = None if self._unknown(cond, runs) else self._values((cond,), runs)[0]
                for part, taken in ((then, on), (orelse, None if on is None else ~on)):
                    times = runs.times if taken is None else np.where(taken, runs.times, 0)
                    self.block(part, _Runs(times, dict(runs.env)), row)
            case Prefetch():
                pass
            case Timed(row=inner, body=body):
                self.block(body, runs, inner)
            case Block():
                self.block(stmt, runs, row)
            case _:
                assert_never(stmt)

    def _loop(self, loop: For, runs: _Runs, row: int) -> None:
        start, extent = self._values((loop.start, loop.extent), runs)
        counts = np.broadcast_to(np.maximum(extent, 0), runs.times.shape)
        if loop.var.name not in self._deciding(loop):
            self._body(loop, _Runs(runs.times * counts, dict(runs.env)), row)
            return
        kept = np.nonzero(runs.times * counts)[0]
        owner = np.repeat(kept, counts[kept])
        step = np.arange(len(owner)) - np.repeat(np.cumsum(counts[kept]) - counts[kept], counts[kept])
        for first in range(0, len(owner), _AT_ONCE):
            part = owner[first : first + _AT_ONCE]
            env = {name: _pick(value, part) for name, value in runs.env.items()}
            env[loop.var.name] = _pick(start, part) + step[first : first + _AT_ONCE]
            self._body(loop, _Runs(runs.times[part], env), row)

    def _body(self, loop: For, runs: _Runs, row: int) -> None:
        self.block(loop.body, runs, row)
        after = tuple(c.next for c in loop.carries)
        self.rows.setdefault(row, Counts()).read_bytes += self._loaded(after, runs, set())

    def _deciding(self, loop: For) -> set[str]:
        """Return the names that decide extents, conditions and shapes below `loop`."""
        if id(loop) not in self._decides:
            roots: list[Expr] = []
            for stmt in walk.statements(loop.body):
                match stmt:
                    case For(start=start, extent=extent):
                        roots += (start, extent)
                    case If(cond=cond):
                        roots.append(cond)
                    case Allocate(buffer=buffer):
                        roots += buffer.shape
                    case Let(name=name, value=value) if name.dtype.name == "index" and not name.axes:
                        roots.append(value)
                    case _:
                        pass
            self._decides[id(loop)] = names(roots)
        return self._decides[id(loop)]

    def _unknown(self, cond: Expr, runs: _Runs) -> bool:
        return any(
            isinstance(n, Load) or n.axes or (isinstance(n, Local) and n.name not in runs.env)
            for n in postorder((cond,))
        )

    def _loaded(self, roots: tuple[Expr, ...], runs: _Runs, seen: set[int]) -> int:
        """Return the bytes that `roots` load, but for what `seen` has."""
        total = 0
        for node in postorder(roots):
            if isinstance(node, Load) and id(node) not in seen:
                seen.add(id(node))
                total += int(runs.times.sum()) * _lanes(node.axes) * node.dtype.size_bytes
        return total

    def _values(self, roots: tuple[Expr, ...], runs: _Runs) -> list[Array]:
        def leaf(node: Expr) -> Array:
            match node:
                case Local(name=name):
                    return runs.env[name]
                case Size(array=array, dim=dim):
                    return np.array([self._sizes[array, dim]])
                case Param(name=name):
                    return constant(Const(node.dtype, self._scalars[name])).reshape(1)
                case _:
                    raise AssertionError(f"an extent depends on {node}")

        return [np.asarray(value).reshape(-1) for value in evaluate(roots, leaf)]


def _lanes(axes: Axes) -> int:
    found = 1
    for axis in axes:
        found *= axis.size
    return found


def _pick(value: Array, owner: Array) -> Array:
    return value if len(value) == 1 else value[owner]
