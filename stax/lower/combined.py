"""What a store that combines values into its cell adds to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stax.algorithm.combine import arms
from stax.errors import InternalError
from stax.expr import build
from stax.expr.nodes import Binary, BinaryOp, Expr, Load, UnaryOp
from stax.expr.number import Numbering
from stax.expr.walk import children, postorder, rewrite
from stax.loops.nodes import Store


def operator_of(store: Store) -> BinaryOp | None:
    """Return `op` of a store `cell = cell op e`, where `e` does not read the buffer; None for any other."""
    found = _parts(store.value, store.buffer, store.index)
    return None if found is None or found.masked or store.mask or store.atomic is not None else found.op


def combined(value: Expr, buffer: str, index: tuple[Expr, ...]) -> Expr:
    """Return `e` of the value `cell op e` that is to be stored in the cell `buffer[index]`.

    Where the cell is read under a mask, as in lanes past an end, it is padding that is combined with.
    """
    found = _parts(value, buffer, index)
    if found is None:
        raise InternalError(f"the value stored in `{buffer}` does not combine with it")
    return found.rest


@dataclass(frozen=True, slots=True)
class _Parts:
    op: BinaryOp
    rest: Expr
    masked: bool


def _parts(value: Expr, buffer: str, index: tuple[Expr, ...]) -> _Parts | None:
    """Return what a value adds to the cell at `index`: at its root, or in a sum of integers, whose order is free."""
    numbering = Numbering()
    places = [numbering.of(i) for i in index]

    def is_cell(node: Expr) -> bool:
        return isinstance(node, Load) and node.buffer == buffer and [numbering.of(i) for i in node.index] == places

    found = _at_root(value, is_cell)
    if found is None and value.dtype.is_integer:
        found = _in_sum(value, is_cell)
    if found is None or any(isinstance(n, Load) and n.buffer == buffer for n in postorder((found.rest, *index))):
        return None
    return found


def _at_root(value: Expr, is_cell: Callable[[Expr], bool]) -> _Parts | None:
    for op, cell, others in arms(value):
        if is_cell(cell):
            assert isinstance(cell, Load)
            rest = build.binary(BinaryOp.MUL, *others) if len(others) == 2 else others[0]
            minus = isinstance(value, Binary) and value.op is BinaryOp.SUB
            return _Parts(op, build.unary(UnaryOp.NEG, rest) if minus else rest, bool(cell.mask))
    return None


def _in_sum(value: Expr, is_cell: Callable[[Expr], bool]) -> _Parts | None:
    """Return the parts of a sum in which the cell is counted once."""
    times: dict[int, int] = {}
    masked = False
    for node in postorder((value,)):
        below = [times[id(c)] for c in children(node)]
        match node:
            case Load() if is_cell(node):
                times[id(node)] = 1
                masked = masked or bool(node.mask)
            case Binary(op=BinaryOp.ADD):
                times[id(node)] = sum(below)
            case Binary(op=BinaryOp.SUB):
                times[id(node)] = below[0] - below[1]
            case _ if any(below):
                return None
            case _:
                times[id(node)] = 0
    if times[id(value)] != 1:
        return None
    zero = build.const(0, value.dtype)
    return _Parts(BinaryOp.ADD, rewrite(value, lambda node: zero if is_cell(node) else node), masked)
