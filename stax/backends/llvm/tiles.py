"""Which loads are the columns of a tile: as many neighbours in memory as there are lanes, in rows that lie apart.

Such loads are made together, a vector of each row, and turned in registers; lane by lane they would take a load and an
insertion for every element. It is what a sum along rows becomes when its lanes are rows and its loop is unrolled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stax.expr.affine import Algebra
from stax.expr.nodes import Expr, Load
from stax.expr.number import Numbering
from stax.expr.walk import postorder
from stax.loops import walk
from stax.loops.nodes import For, Let, Program, Store

SIDES = (4, 8, 16)


@dataclass(frozen=True, slots=True)
class Tile:
    """`columns[k]` are the loads of column k: equal ones, at one position more than those of column k - 1."""

    columns: tuple[tuple[Load, ...], ...]

    def column(self, node: Load) -> int:
        """Return the column that `node` loads."""
        return next(k for k, loads in enumerate(self.columns) if any(one is node for one in loads))


def find(program: Program) -> dict[int, Tile]:
    """Return, by the id of each load that is part of one, its tile: of arrays that its loop does not store to."""
    found: dict[int, Tile] = {}
    for stmt in walk.statements(program.body):
        if isinstance(stmt, For):
            roots = [e for s in stmt.body.stmts if isinstance(s, Let | Store) for e in walk.expressions(s)]
            found |= _tiles([*roots, *(c.next for c in stmt.carries)], walk.buffers_stored(stmt.body))
    return found


def _tiles(roots: Iterable[Expr], stored: set[str]) -> dict[int, Tile]:
    algebra, numbering = Algebra(), Numbering()
    groups: dict[object, dict[int, list[Load]]] = {}
    for node in postorder(roots):
        if isinstance(node, Load) and node.buffer not in stored and not node.mask and len(node.axes) == 1:
            (axis,) = node.axes
            *others, last = node.index
            if axis.size in SIDES and not last.axes:
                at = algebra.of(last)
                key = (node.buffer, axis, tuple(numbering.of(i) for i in others), at.terms)
                groups.setdefault(key, {}).setdefault(at.const, []).append(node)
    found: dict[int, Tile] = {}
    for columns in groups.values():
        side = next(iter(columns.values()))[0].axes[0].size
        least = min(columns)
        for start in sorted(columns):
            wanted = range(start, start + side)
            if start >= least and all(k in columns for k in wanted):
                tile = Tile(tuple(tuple(columns[k]) for k in wanted))
                found |= {id(one): tile for loads in tile.columns for one in loads}
                least = start + side
    return found
