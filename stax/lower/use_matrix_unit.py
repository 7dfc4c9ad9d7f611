"""Turn sums of products into nodes for a matrix unit, in stages that a schedule says it of.

before                                              after
    c[m, n] = c[m, n] + sum(a[m, k] * b[k, n], k)       c[m, n] = dot(c[m, n], a[m, k], b[k, n], k)

Products of 16 bits that are summed in 32 keep their type, since the unit takes them as they are and their products are
exact. Lanes of `k` that do not exist are 0 in both factors.

Needs: values have axes (`vectorize_loops`). Gives: the same sums, in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stax.errors import UnsupportedError
from stax.expr import build
from stax.expr.nodes import Axes, Axis, Binary, BinaryOp, Broadcast, Cast, Const, Dot, Expr, Load, Reduce
from stax.expr.number import Numbering
from stax.loops import walk
from stax.loops.nodes import Program, Stmt, Store
from stax.lower.share_axes import with_axes
from stax.schedule.directives import MatrixUnit

PRECISIONS = ("tf32", "tf32x3", "ieee")


def use_matrix_unit(program: Program, said: Mapping[str, MatrixUnit]) -> Program:
    """Return `program` with dots in the stages that they are `said` of; refuse a stage that has no such sum."""

    def rule(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Store) or stmt.stage not in said:
            return stmt
        found = _dot(stmt.value)
        if found is None:
            raise _refused(stmt, said[stmt.stage])
        return replace(stmt, value=found)

    for unit in said.values():
        if unit.precision not in (None, *PRECISIONS):
            raise UnsupportedError(
                f"there is no precision {unit.precision!r} of a matrix unit", [(unit.span, "here")],
                hint=f"one of {', '.join(PRECISIONS)}",
            )  # fmt: skip
    if not said:
        return program
    return walk.with_body(program, walk.rewrite_statements(program.body, rule))


def rows_first(program: Program) -> Program:
    """Return `program` with reduced axes of dots between rows and columns, as factors lie then; no value changes."""
    order = list(program.axes)
    for dot in (n for n in walk.nodes(program.body) if isinstance(n, Dot)):
        columns = [a for a in dot.right.axes if a != dot.axis]
        order.remove(dot.axis)
        order.insert(min((order.index(a) for a in columns), default=len(order)), dot.axis)

    def sort(axes: Axes) -> Axes:
        return tuple(sorted(axes, key=order.index))

    body = with_axes(program.body, sort, lambda axis: axis)
    return replace(program, body=walk.as_block(body), axes=tuple(order))


def _refused(store: Store, unit: MatrixUnit) -> UnsupportedError:
    return UnsupportedError(
        f"`{store.stage}` cannot use a matrix unit: it is no sum of products of two values that lanes of it share out",
        [(unit.span, "asked for here"), (store.span, "this sum")],
        hint=f"reassociate(), and vectorize {unit.i!r}, {unit.j!r} and {unit.k!r}: {unit.k!r} is reduced, one factor "
        f"moves with {unit.i!r} and the other with {unit.j!r}",
    )


def _dot(value: Expr) -> Dot | None:
    match value:
        case Binary(op=BinaryOp.ADD, left=acc, right=Reduce(op=BinaryOp.ADD) as summed):
            pass
        case _:
            return None
    product = summed.value
    if not isinstance(product, Binary) or product.op is not BinaryOp.MUL or acc.axes != summed.axes:
        return None
    left, right = (_narrow(e) for e in (product.left, product.right))
    if left.dtype != right.dtype:
        left, right = (_bare(e) for e in (product.left, product.right))
    shared = set(left.axes) & set(right.axes)
    if shared != {summed.axis} or {*left.axes, *right.axes} != {*acc.axes, summed.axis}:
        return None
    if acc.axes and left.axes and acc.axes[0] not in left.axes:
        left, right = right, left
    left, right = (_zero_beyond(e, summed.axis, summed.where) for e in (left, right))
    return Dot(value.dtype, acc, left, right, summed.axis, axes=value.axes)


def _bare(value: Expr) -> Expr:
    """Return `value` before it was spread."""
    while isinstance(value, Broadcast):
        value = value.value
    return value


def _narrow(value: Expr) -> Expr:
    """Return `value` before it was spread, and before it was made wider where no product of it loses by that."""
    found = _bare(value)
    if isinstance(found, Cast):
        inner, wide = found.value, found.dtype
        halves = wide.name == "float32" and inner.dtype.name in ("float16", "bfloat16")
        if halves or (wide.name == "int32" and inner.dtype.name == "int8"):
            return _bare(inner)
    return found


def _zero_beyond(value: Expr, axis: Axis, where: tuple[Expr, ...]) -> Expr:
    """Return `value` with 0 in the lanes of `axis` that are not summed."""
    zero = Const(value.dtype, 0)
    conds = [w for w in where if axis in w.axes]
    if isinstance(value, Load):
        numbering = Numbering()
        known = {numbering.of(m) for m in value.mask}
        if all(numbering.of(c) in known for c in conds):
            return replace(value, other=zero)
    for cond in conds:
        value = build.select(build.spread(cond, value.axes), value, build.spread(zero, value.axes))
    return value
