"""Expressions over sizes and Params as one Python function, so that a call evaluates them in microseconds.

One assignment a distinct node, written in order: neither depth nor sharing costs more than its nodes. Integers of 64
bits are exact here, so that a region that overflows is refused and does not wrap into one that fits; narrower ones
wrap as in the program. `//` and `%` by zero give 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, assert_never, cast

import numpy as np

from stax.dtypes import DType
from stax.errors import InternalError
from stax.expr.nodes import (
    Binary,
    BinaryOp,
    Bitcast,
    Broadcast,
    Call,
    Cast,
    Const,
    Dot,
    Expr,
    Fn,
    Load,
    Local,
    Param,
    Ramp,
    Read,
    Reduce,
    Select,
    Size,
    Unary,
    UnaryOp,
    Var,
)  # fmt: skip
from stax.expr.walk import postorder

Number: TypeAlias = int | float | bool
Sizes: TypeAlias = Mapping[str, Sequence[int]]
Scalars: TypeAlias = Mapping[str, Number]
Formula: TypeAlias = Callable[[Sizes, Scalars], tuple[Number, ...]]


def formula(exprs: Sequence[Expr]) -> Formula:
    """Return a function of the arrays' shapes and the scalars that gives the values of `exprs`.

    A Local is a scalar too: what the host of a GPU counts.
    """
    if not exprs:
        return lambda sizes, scalars: ()
    lines: list[str] = []
    named: dict[str, str] = {}
    text: dict[int, str] = {}
    for node in postorder(exprs):
        right = _right(node, text)
        if isinstance(node, Const):
            text[id(node)] = right
        else:
            if right not in named:
                named[right] = f"v{len(named)}"
                lines.append(f"    {named[right]} = {right}")
            text[id(node)] = named[right]
    results = ", ".join(text[id(e)] for e in exprs)
    source = "\n".join(["def formula(sizes, scalars):", *lines, f"    return ({results},)"])
    space: dict[str, object] = {
        "wrap": _wrap, "div": _div, "mod": _mod, "shl": _shl, "shr": _shr, "fdiv": _float_div, "rounded": _rounded,
        "whole": _whole, "inf": math.inf, "nan": math.nan, "floor": _floor,
    }  # fmt: skip
    exec(compile(source, "<sizes>", "exec"), space)
    return cast(Formula, space["formula"])


def _right(node: Expr, text: Mapping[int, str]) -> str:
    match node:
        case Const(value=value, dtype=dtype):
            return f"({(float(value) if dtype.is_float else int(value))!r})"
        case Size(array=array, dim=dim):
            return f"sizes[{array!r}][{dim}]"
        case Param(name=name) | Local(name=name):
            return f"scalars[{name!r}]"
        case Unary(op=op, value=value):
            return _narrow(_unary(op, text[id(value)], value.dtype), node.dtype)
        case Binary(op=op, left=left, right=right):
            made = _binary(op, text[id(left)], text[id(right)], left.dtype)
            return made if node.dtype.is_bool else _narrow(made, node.dtype)
        case Select(cond=cond, yes=yes, no=no):
            return f"{text[id(yes)]} if {text[id(cond)]} else {text[id(no)]}"
        case Cast(value=value):
            return _cast(text[id(value)], value.dtype, node.dtype)
        case Broadcast(value=value):
            return text[id(value)]
        case Call(fn=Fn.FLOOR, args=(value,)):
            return f"floor({text[id(value)]})"
        case Call() | Bitcast() | Var() | Ramp() | Read() | Load() | Reduce() | Dot():
            raise InternalError(f"a size or region is made of {type(node).__name__}, which a call cannot evaluate")
        case _:
            assert_never(node)


def _narrow(text: str, dtype: DType) -> str:
    if dtype.is_float:
        return text if dtype.bits == 64 else f"rounded({text}, {dtype.name!r})"
    return text if dtype.bits == 64 or dtype.is_bool else f"wrap({text}, {dtype.bits}, {dtype.is_signed})"


def _unary(op: UnaryOp, a: str, dtype: DType) -> str:
    match op:
        case UnaryOp.NEG:
            return f"-{a}"
        case UnaryOp.ABS:
            return f"abs({a})"
        case UnaryOp.NOT:
            if dtype.is_bool:
                return f"not {a}"
            return f"~{a}" if dtype.is_signed else f"{a} ^ {dtype.high}"
        case _:
            assert_never(op)


def _binary(op: BinaryOp, a: str, b: str, dtype: DType) -> str:
    match op:
        case BinaryOp.ADD if dtype.is_bool:
            return f"{a} | {b}"
        case BinaryOp.MUL if dtype.is_bool:
            return f"{a} & {b}"
        case BinaryOp.DIV:
            return f"fdiv({a}, {b})"
        case BinaryOp.FLOORDIV:
            return f"floor(fdiv({a}, {b}))" if dtype.is_float else f"div({a}, {b})"
        case BinaryOp.MOD:
            return f"mod({a}, {b})"
        case BinaryOp.MIN:
            return f"{a} if {a} < {b} else {b}"
        case BinaryOp.MAX:
            return f"{a} if {a} > {b} else {b}"
        case BinaryOp.SHL | BinaryOp.SHR:
            return f"{'shl' if op is BinaryOp.SHL else 'shr'}({a}, {b}, {dtype.bits})"
        case (
            BinaryOp.ADD | BinaryOp.SUB | BinaryOp.MUL | BinaryOp.AND | BinaryOp.OR | BinaryOp.XOR | BinaryOp.LT
            | BinaryOp.LE | BinaryOp.EQ | BinaryOp.NE
        ):  # fmt: skip
            return f"{a} {op.value} {b}"
        case _:
            assert_never(op)


def _cast(a: str, old: DType, new: DType) -> str:
    if new.is_float:
        return _narrow(f"float({a})", new)
    if new.is_bool:
        return f"{a} != 0"
    if old.is_float:
        return f"whole({a}, {new.low}, {new.high})"
    if new.bits >= old.bits and (new.is_signed == old.is_signed or (new.is_signed and new.bits > old.bits)):
        return f"int({a})" if old.is_bool else a
    return f"wrap({a}, {new.bits}, {new.is_signed})"


def _wrap(value: int, bits: int, signed: bool) -> int:
    low = value & ((1 << bits) - 1)
    return low - (1 << bits) if signed and low >> (bits - 1) else low


def _div(a: int, b: int) -> int:
    return a // b if b else 0


def _mod(a: float, b: float) -> float:
    if isinstance(a, int) and isinstance(b, int):
        return a % b if b else 0
    return math.nan if b == 0 or math.isinf(a) else a % b


def _shl(a: int, b: int, bits: int) -> int:
    return a << b if 0 <= b < bits else 0


def _shr(a: int, b: int, bits: int) -> int:
    return a >> (b if 0 <= b < bits else bits)


def _float_div(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


def _floor(a: float) -> float:
    return float(np.floor(a))


def _rounded(a: float, name: str) -> float:
    with np.errstate(all="ignore"):
        return float(np.dtype(name).type(a))


def _whole(a: float, low: int, high: int) -> int:
    if math.isnan(a):
        return 0
    return low if a <= low else high if a >= high else int(a)
