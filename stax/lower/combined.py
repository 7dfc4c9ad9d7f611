"""What a store that combines values into its cell adds to it."""

from __future__ import annotations

from stax.algorithm.combine import arms
from stax.errors import InternalError
from stax.expr import build
from stax.expr.nodes import Binary, BinaryOp, Expr, Load, UnaryOp
from stax.expr.number import Numbering
from stax.expr.walk import postorder
from stax.loops.nodes import Store


def operator_of(store: Store) -> BinaryOp | None:
    """Return `op` of a store `cell = cell op e`, where `e` does not read the buffer; None for any other."""
    found = _parts(store.value, store.buffer, store.index)
    return None if found is None or found[1].mask or store.mask or store.atomic is not None else found[0]


def combined(value: Expr, buffer: str, index: tuple[Expr, ...]) -> Expr:
    """Return `e` of the value `cell op e` that is to be stored in the cell `buffer[index]`.

    Where the cell is read under a mask, as in lanes past an end, it is padding that is combined with.
    """
    found = _parts(value, buffer, index)
    if found is None:
        raise InternalError(f"the value stored in `{buffer}` does not combine with it")
    _, _, others = found
    if len(others) == 2:
        return build.binary(BinaryOp.MUL, *others)
    if isinstance(value, Binary) and value.op is BinaryOp.SUB:
        return build.unary(UnaryOp.NEG, others[0])
    return others[0]


def _parts(value: Expr, buffer: str, index: tuple[Expr, ...]) -> tuple[BinaryOp, Load, tuple[Expr, ...]] | None:
    for op, cell, others in arms(value):
        if not isinstance(cell, Load) or cell.buffer != buffer:
            continue
        numbering = Numbering()
        if [numbering.of(i) for i in cell.index] != [numbering.of(i) for i in index]:
            continue
        if not any(isinstance(n, Load) and n.buffer == buffer for n in postorder((*others, *index))):
            return op, cell, others
    return None
