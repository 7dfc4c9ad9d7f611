"""Give lanes of different stages one axis, where they are as many and no value has both.

before                                     after
    t[ramp(t.x)] = a[ramp(t.x)]                t[ramp(t.x)] = a[ramp(t.x)]
    f[ramp(f.x)] = t[ramp(f.x)]                f[ramp(t.x)] = t[ramp(t.x)]

An axis is a name for lanes and nothing else, so the program means the same; what one stage stores and another loads is
then seen to be the same lanes.

Needs: values have axes (`vectorize_loops`).
Gives: the same program over fewer axes, in an order that all values keep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from stax.expr.nodes import Axes, Axis, Dot, Expr, Local, Reduce
from stax.loops import walk
from stax.loops.nodes import For, Let, Program, Stmt


def share_axes(program: Program) -> Program:
    """Return `program` with axes shared."""
    together = {e.axes for e in walk.nodes(program.body) if len(e.axes) > 1}
    new: dict[Axis, Axis] = {}
    kept: list[Axis] = []
    for axis in program.axes:
        new[axis] = axis
        for other in kept:
            tried = {**new, axis: other}
            if other.size == axis.size and all(_in_order(axes, tried, kept) for axes in together):
                new = tried
                break
        else:
            kept.append(axis)
    if len(kept) == len(program.axes):
        return program
    body = with_axes(program.body, lambda axes: tuple(new.get(a, a) for a in axes), lambda a: new.get(a, a))
    return replace(program, body=walk.as_block(body), axes=tuple(kept))


def _in_order(axes: Axes, new: dict[Axis, Axis], kept: list[Axis]) -> bool:
    """Return whether the axes of a value stay apart and in order, as far as they have new names."""
    places = [kept.index(new[a]) if new[a] in kept else len(kept) for a in axes if a in new]
    return all(a < b for a, b in pairwise(places))


def with_axes(stmt: Stmt, lanes: Callable[[Axes], Axes], name: Callable[[Axis], Axis]) -> Stmt:
    """Return `stmt` with the axes of each value as `lanes` gives them, and reduced axes as `name` does."""

    def rule(node: Expr) -> Expr:
        if isinstance(node, Reduce | Dot):
            return replace(node, axes=lanes(node.axes), axis=name(node.axis))
        return replace(node, axes=lanes(node.axes)) if node.axes else node

    def local(one: Local) -> Local:
        return replace(one, axes=lanes(one.axes))

    def named(s: Stmt) -> Stmt:
        match s:
            case Let(name=one):
                return replace(s, name=local(one))
            case For(carries=carries) if carries:
                return replace(s, carries=tuple(replace(c, name=local(c.name)) for c in carries))
            case _:
                return s

    return walk.rewrite_statements(walk.rewrite_expressions(stmt, rule), named)
