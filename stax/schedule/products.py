"""Which updates are products of matrices: sums of products of two factors, each with a dim of its own.

It is a guess about speed, as `channels` is, never about meaning.
"""

from __future__ import annotations

from dataclasses import dataclass

from stax.algorithm.combine import arms, is_cell
from stax.algorithm.nodes import Func
from stax.expr import build
from stax.expr.nodes import Binary, BinaryOp, Cast, Expr, Var
from stax.expr.walk import names

LEAST = 16
_HALVES = frozenset({"float16", "bfloat16"})


@dataclass(frozen=True, slots=True)
class Product:
    """Dims `i` of one factor and `j` of the other, in the order of the Func's dims, and `k`, which is summed.

    `halves`: the factors are of 16 bits, or of 8.
    """

    i: str
    j: str
    k: str
    halves: bool


def product(f: Func, stage: int) -> Product | None:
    """Return how update `stage` of `f` is a product of matrices for a matrix unit, if it is one."""
    update = f.updates[stage - 1]
    if len(update.values) != 1 or update.where is not None or not update.domain:
        return None
    factors = _factors(f, stage)
    if factors is None:
        return None
    small = _narrow(factors, f.dtypes[0].name)
    if small is None:
        return None
    left, right = (names((e,)) for e in factors)
    plain = [d for d, at in zip(f.dims, update.index, strict=True) if isinstance(at, Var) and at.name == d]
    mine = [d for d in plain if d in left and d not in right]
    other = [d for d in plain if d in right and d not in left]
    summed = [r for r in update.domain if r.name in left and r.name in right]
    if len(plain) < len(f.dims) or not mine or not other or not summed:
        return None
    last = (
        summed[-1] if build.integer(summed[-1].hi) is None else max(summed, key=lambda r: build.integer(r.hi) or LEAST)
    )
    extent = build.integer(last.hi) if build.integer(last.lo) == 0 else LEAST
    if extent is not None and extent < LEAST:
        return None
    if any(names((r.lo, r.hi)) & ({*f.dims} | {o.name for o in update.domain}) for r in update.domain):
        return None
    i, j = sorted((mine[-1], other[-1]), key=f.dims.index)
    return Product(i, j, last.name, small)


def _factors(f: Func, stage: int) -> tuple[Expr, Expr] | None:
    update = f.updates[stage - 1]
    for op, cell, others in arms(update.values[0]):
        if op is BinaryOp.ADD and is_cell(cell, f, update):
            if len(others) == 2:
                return others[0], others[1]
            (one,) = others
            if isinstance(one, Binary) and one.op is BinaryOp.MUL:
                return one.left, one.right
    return None


def _narrow(factors: tuple[Expr, Expr], total: str) -> bool | None:
    """Return whether the factors are narrower than what they are summed in; None where no matrix unit has them."""
    inner = {e.value.dtype.name if isinstance(e, Cast) else e.dtype.name for e in factors}
    if total == "float32":
        if len(inner) == 1 and inner <= _HALVES:
            return True
        return False if all(e.dtype.name == "float32" for e in factors) else None
    return True if total == "int32" and inner == {"int8"} else None
