"""Compute float16 and bfloat16 in float32.

before: half[x] * half[x + 1]        (float16)
after:  float16(float32(half[x]) * float32(half[x + 1]))

Leaves and casts give halves; between them values stay float32, and a definition rounds once. With `strict` each
operation rounds. Gives: halves stand only on constants, reads, Params and Casts, and at the roots.
"""

from __future__ import annotations

from dataclasses import replace

from stax import dtypes
from stax.dtypes import DType
from stax.expr import build
from stax.expr.nodes import Bitcast, Cast, Const, Expr, Param, Read
from stax.expr.walk import children, postorder, with_children

SINGLE = dtypes.float32


def widen_half(roots: tuple[Expr, ...], strict: bool) -> tuple[Expr, ...]:
    """Return `roots`, computed in float32 where they are halves."""
    order = postorder(roots)
    if not any(node.dtype.is_half for node in order):
        return roots
    new: dict[int, Expr] = {}
    for node in order:
        parts = tuple(new[id(c)] for c in children(node))
        new[id(node)] = _widened(node, parts, strict)
    return tuple(_round(new[id(root)], root.dtype) if root.dtype.is_half else new[id(root)] for root in roots)


def _widened(node: Expr, parts: tuple[Expr, ...], strict: bool) -> Expr:
    half = node.dtype.is_half
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
            if value.dtype.is_half:
                return replace(node, value=_round(parts[0], value.dtype))
            return Cast(SINGLE, with_children(node, parts)) if half else with_children(node, parts)
        case _:
            made = with_children(node, parts)
            if not half:
                return made
            made = replace(made, dtype=SINGLE)
            return Cast(SINGLE, Cast(node.dtype, made)) if strict else made


def _round(node: Expr, half: DType) -> Expr:
    if isinstance(node, Cast) and node.value.dtype.name == half.name:
        return node.value
    if isinstance(node, Const):
        return Const(half, node.value)
    return Cast(half, node)
