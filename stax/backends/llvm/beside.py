"""Which loads are one lane beside another of the same statement: made of its register and the one element it lacks.

A vector that fills a line of the cache and does not begin with one lies in two, and takes two reads of the cache; the
lanes of `a[x - 1]` and `a[x + 1]` are those of `a[x]` but for one. Processors whose registers are as wide as a line
turn lanes over in one instruction. The same elements are read, so nothing is read that was not before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stax.expr.affine import Affine, Algebra
from stax.expr.nodes import Axis, Expr, Load, Ramp
from stax.expr.number import Numbering
from stax.expr.walk import postorder
from stax.loops import walk
from stax.loops.nodes import Let, Program, Store

LINE_BYTES = 64
_SIZES = (4, 8)


@dataclass(frozen=True, slots=True)
class Beside:
    """A load that is `by` lanes, one up or down, from `base`."""

    base: Load
    by: int


def find(program: Program) -> dict[int, Beside]:
    """Return, by the id of each load that is beside another one, which that is."""
    found: dict[int, Beside] = {}
    for stmt in walk.statements(program.body):
        if isinstance(stmt, Let | Store):
            found |= _pairs(walk.expressions(stmt))
    return found


def _pairs(roots: Iterable[Expr]) -> dict[int, Beside]:
    """Return the loads beside those that may begin a line: positions are multiples of its length, but for a sum."""
    algebra, numbering = Algebra(), Numbering()
    groups: dict[object, dict[int, list[Load]]] = {}
    for node in postorder(roots):
        if not isinstance(node, Load) or not _is_wide(node):
            continue
        at = algebra.of(node.index[-1])
        if _is_dense(algebra, at, node.axes[0]):
            key = (node.buffer, node.axes, tuple(numbering.of(i) for i in node.index[:-1]), at.terms)
            groups.setdefault(key, {}).setdefault(at.const, []).append(node)
    found: dict[int, Beside] = {}
    for group in groups.values():
        for const, bases in group.items():
            if const * bases[0].dtype.size_bytes % LINE_BYTES == 0:
                sides = [(by, one) for by in (-1, 1) for one in group.get(const + by, ())]
                found |= {id(one): Beside(bases[0], by) for by, one in sides}
    return found


def _is_wide(node: Load) -> bool:
    if len(node.axes) != 1 or node.mask or not node.index or node.dtype.size_bytes not in _SIZES:
        return False
    lines = node.axes[0].size * node.dtype.size_bytes % LINE_BYTES == 0
    return lines and node.index[-1].axes == node.axes and not any(i.axes for i in node.index[:-1])


def _is_dense(algebra: Algebra, at: Affine, axis: Axis) -> bool:
    """Return whether the lanes of a position follow each other."""
    moving = [(atom, f) for n, f in at.terms if (atom := algebra.atom(n)).axes == (axis,)]
    return sum(f for atom, f in moving if isinstance(atom, Ramp)) == 1 and all(
        isinstance(atom, Ramp) for atom, _ in moving
    )
