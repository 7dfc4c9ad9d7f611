"""Compute float16 in float32.

before: half[x] * half[x + 1]        (float16)
after:  float16(float32(half[x]) * float32(half[x + 1]))

Leaves and casts give float16 values; between them values stay float32, and a definition rounds once. With `strict`
each operation rounds. Gives: float16 stands only on constants, reads, Params and Casts, and at the roots.
"""

from __future__ import annotations

from dataclasses import replace

from stax import dtypes
from stax.expr import build
from stax.expr.nodes import Bitcast, Cast, Const, Expr, Param, Read
from stax.expr.walk import children, postorder, with_children

HALF, SINGLE = dtypes.float16, dtypes.float32


def widen_half(roots: tuple[Expr, ...], strict: bool) -> tuple[Expr, ...]:
    """Return `roots`, computed in float32 where they are float16."""
    order = postorder(roots)
    if all(node.dtype.name != HALF.name for node in order):
        return roots
    new: dict[int, Expr] = {}
    for node in order:
        parts = tuple(new[id(c)] for c in children(node))
        new[id(node)] = _widened(node, parts, strict)
    return tuple(_round(new[id(root)]) if root.dtype.name == HALF.name else new[id(root)] for root in roots)


def _widened(node: Expr, parts: tuple[Expr, ...], strict: bool) -> Expr:
    half = node.dtype.name == HALF.name
    match node:
        case Const() if half:
            return Const(SINGLE, node.value)
        case Read() | Param():
            made = with_children(node, parts)
            return Cast(SINGLE, made) if half else made
        case Cast():
            made = with_children(node, parts)
            return Cast(SINGLE, made) if half else build.cast(parts[0], node.dtype)
        case Bitcast(value=value):
            if value.dtype.name == HALF.name:
                return replace(node, value=_round(parts[0]))
            return Cast(SINGLE, with_children(node, parts)) if half else with_children(node, parts)
        case _:
            made = with_children(node, parts)
            if not half:
                return made
            made = replace(made, dtype=SINGLE)
            return Cast(SINGLE, Cast(HALF, made)) if strict else made


def _round(node: Expr) -> Expr:
    if isinstance(node, Cast) and node.value.dtype.name == HALF.name:
        return node.value
    if isinstance(node, Const):
        return Const(HALF, node.value)
    return Cast(HALF, node)
