"""Updates that combine values into a cell: `cell = cell op e`, where `e` does not read the Func.

Their points may be grouped, and each group combined by itself: from `build.identity` on, then into the cell.
"""

from __future__ import annotations

from dataclasses import dataclass

from stax.algorithm.nodes import Func, Update
from stax.expr.nodes import Binary, BinaryOp, Call, Expr, Fn, Read
from stax.expr.number import Numbering
from stax.expr.walk import reads

_WHOLE = frozenset({BinaryOp.ADD, BinaryOp.MUL, BinaryOp.AND, BinaryOp.OR, BinaryOp.XOR})
_EXTREMES = frozenset({BinaryOp.MIN, BinaryOp.MAX})
_SUMS = frozenset({BinaryOp.ADD, BinaryOp.MUL})


@dataclass(frozen=True, slots=True)
class Combine:
    """What joins the partial results of an update; with `exact`, no order of its points changes a bit."""

    op: BinaryOp
    exact: bool


def combine(f: Func, update: Update) -> Combine | None:
    """Return how `update` combines values into its cell, or None where it does anything else."""
    if len(update.values) != 1:
        return None
    value, others_read = update.values[0], (*update.index, *(() if update.where is None else (update.where,)))
    for op, cell, others in arms(value):
        if is_cell(cell, f, update) and not any(r.source == f.name for r in reads((*others, *others_read))):
            return Combine(op, not value.dtype.is_float or op in _EXTREMES)
    return None


def arms(value: Expr) -> list[tuple[BinaryOp, Expr, tuple[Expr, ...]]]:
    """Return the ways to see `value` as `cell op others`: what joins partial results, the cell and the rest."""
    match value:
        case Binary(op=op, left=left, right=right) if op in _EXTREMES or op in (
            _SUMS if value.dtype.is_float else _WHOLE
        ):
            return [(op, left, (right,)), (op, right, (left,))]
        case Binary(op=BinaryOp.SUB, left=left, right=right) if not value.dtype.is_bool:
            return [(BinaryOp.ADD, left, (right,))]
        case Call(fn=Fn.FMA, args=(a, b, c)):
            return [(BinaryOp.ADD, c, (a, b))]
        case _:
            return []


def is_cell(expr: Expr, f: Func, update: Update) -> bool:
    """Return whether `expr` reads the cell that `update` writes."""
    if not (isinstance(expr, Read) and expr.source == f.name):
        return False
    numbering = Numbering()
    return [numbering.of(i) for i in expr.index] == [numbering.of(i) for i in update.index]
