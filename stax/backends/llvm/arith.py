"""Operators of one value or two, in scalars or vectors, to the bit what `expr.evaluate` says; nothing traps.

Values of float16 are widened to float32 for every operator, and rounded after it.
"""

from __future__ import annotations

import math

from stax import dtypes
from stax.backends.llvm import divide, types
from stax.backends.llvm.convert import cast
from stax.backends.llvm.writer import Function
from stax.dtypes import DType
from stax.errors import InternalError
from stax.expr.nodes import COMPARES, BinaryOp, UnaryOp

_LOGIC = {
    BinaryOp.ADD: "or", BinaryOp.OR: "or", BinaryOp.MAX: "or", BinaryOp.MUL: "and", BinaryOp.AND: "and",
    BinaryOp.MIN: "and", BinaryOp.FLOORDIV: "and", BinaryOp.XOR: "xor", BinaryOp.SUB: "xor",
}  # fmt: skip
_FLOAT = {BinaryOp.ADD: "fadd", BinaryOp.SUB: "fsub", BinaryOp.MUL: "fmul", BinaryOp.DIV: "fdiv"}
_INTEGER = {
    BinaryOp.ADD: "add", BinaryOp.SUB: "sub", BinaryOp.MUL: "mul", BinaryOp.AND: "and", BinaryOp.OR: "or",
    BinaryOp.XOR: "xor",
}  # fmt: skip
_EXACT = frozenset({BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL})
_FLOAT_COMPARE = {BinaryOp.LT: "olt", BinaryOp.LE: "ole", BinaryOp.EQ: "oeq", BinaryOp.NE: "une"}
_INTEGER_COMPARE = {BinaryOp.LT: "lt", BinaryOp.LE: "le", BinaryOp.EQ: "eq", BinaryOp.NE: "ne"}


def unary(f: Function, op: UnaryOp, a: str, dtype: DType, lanes: int) -> str:
    """Return `op a`."""
    kind, element = types.value(dtype, lanes), types.element(dtype)
    if dtype.is_bool:
        return f.put(f"xor {kind} {a}, {types.splat('true', element, lanes)}") if op is UnaryOp.NOT else a
    match op:
        case UnaryOp.NOT:
            return f.put(f"xor {kind} {a}, {types.splat('-1', element, lanes)}")
        case UnaryOp.NEG if not dtype.is_float:
            return f.put(f"sub {kind} {types.splat('0', element, lanes)}, {a}")
        case UnaryOp.NEG if dtype.bits == 16:
            return f.put(f"xor {kind} {a}, {types.splat('-32768', element, lanes)}")
        case UnaryOp.NEG:
            return f.put(f"fneg {kind} {a}")
        case UnaryOp.ABS if dtype.is_float and dtype.bits == 16:
            return f.put(f"and {kind} {a}, {types.splat('32767', element, lanes)}")
        case UnaryOp.ABS if dtype.is_float:
            return f.over("fabs", element, lanes, a)
        case _:
            if not dtype.is_signed:
                return a
            return f.intrinsic(f"abs.{types.mangled(element, lanes)}", kind, [(kind, a), ("i1", "false")])


def binary(f: Function, op: BinaryOp, a: str, b: str, dtype: DType, lanes: int) -> str:
    """Return `a op b`, both of type `dtype`."""
    if dtype.is_bool and op not in COMPARES:
        return _logic(f, op, a, b, lanes)
    if dtype.is_float and dtype.bits == 16:
        left, right = (cast(f, x, dtype, dtypes.float32, lanes) for x in (a, b))
        wide = binary(f, op, left, right, dtypes.float32, lanes)
        return wide if op in COMPARES else cast(f, wide, dtypes.float32, dtype, lanes)
    kind, element = types.value(dtype, lanes), types.element(dtype)
    if dtype.is_float:
        if op in COMPARES:
            return f.put(f"fcmp {_FLOAT_COMPARE[op]} {kind} {a}, {b}")
        if op in _FLOAT:
            return f.put(f"{_FLOAT[op]} {kind} {a}, {b}")
        match op:
            case BinaryOp.MIN | BinaryOp.MAX:
                return _extreme(f, op, a, b, dtype, lanes)
            case BinaryOp.MOD:
                return divide.float_modulo(f, a, b, dtype, lanes)
            case BinaryOp.FLOORDIV:
                return divide.float_floor(f, a, b, dtype, lanes)
            case _:
                raise InternalError(f"{op.value} of floats")
    sign = "s" if dtype.is_signed else "u"
    if op in COMPARES:
        word = _INTEGER_COMPARE[op]
        return f.put(f"icmp {word if word in ('eq', 'ne') else sign + word} {kind} {a}, {b}")
    if op in _INTEGER:
        exact = " nsw" if dtype.name == "index" and op in _EXACT else ""
        return f.put(f"{_INTEGER[op]}{exact} {kind} {a}, {b}")
    match op:
        case BinaryOp.MIN:
            return f.over(f"{sign}min", element, lanes, a, b)
        case BinaryOp.MAX:
            return f.over(f"{sign}max", element, lanes, a, b)
        case BinaryOp.FLOORDIV:
            return divide.floor(f, a, b, dtype, lanes)
        case BinaryOp.MOD:
            return divide.modulo(f, a, b, dtype, lanes)
        case BinaryOp.SHL | BinaryOp.SHR:
            return _shift(f, op, a, b, dtype, lanes)
        case _:
            raise InternalError(f"{op.value} of integers")


def select(f: Function, cond: str, yes: str, no: str, dtype: DType, lanes: int, *, by_lane: bool) -> str:
    """Return `yes` where `cond`, else `no`; `cond` has lanes too where `by_lane`."""
    kind = types.value(dtype, lanes)
    return f.put(f"select {types.vector('i1', lanes if by_lane else 0)} {cond}, {kind} {yes}, {kind} {no}")


def _logic(f: Function, op: BinaryOp, a: str, b: str, lanes: int) -> str:
    kind = types.vector("i1", lanes)
    if op in _LOGIC:
        return f.put(f"{_LOGIC[op]} {kind} {a}, {b}")
    if op in (BinaryOp.SHL, BinaryOp.SHR):
        off = f.put(f"xor {kind} {b}, {types.splat('true', 'i1', lanes)}")
        return f.put(f"and {kind} {a}, {off}")
    if op is BinaryOp.MOD:
        return types.splat("false", "i1", lanes)
    raise InternalError(f"{op.value} of bool")


def _shift(f: Function, op: BinaryOp, a: str, b: str, dtype: DType, lanes: int) -> str:
    kind, element = types.value(dtype, lanes), types.element(dtype)
    word = "shl" if op is BinaryOp.SHL else "ashr" if dtype.is_signed else "lshr"
    count = types.known(b)
    most = types.splat(str(dtype.bits - 1), element, lanes)
    zero = types.splat("0", element, lanes)
    if count is not None:
        if 0 <= count < dtype.bits:
            return f.put(f"{word} {kind} {a}, {b}")
        return f.put(f"ashr {kind} {a}, {most}") if word == "ashr" else zero
    if word == "ashr":
        return f.put(f"ashr {kind} {a}, {f.over('umin', element, lanes, b, most)}")
    fits = f.put(f"icmp ule {kind} {b}, {most}")
    return select(f, fits, f.put(f"{word} {kind} {a}, {b}"), zero, dtype, lanes, by_lane=True)


def _extreme(f: Function, op: BinaryOp, a: str, b: str, dtype: DType, lanes: int) -> str:
    """Return the smaller or larger of two floats; against a constant, by comparing, which takes an instruction or two.

    A comparison that NaN fails leaves the other value, so that it must be the constant that is compared for; a zero of
    the sign that must win is the exception.
    """
    kind, flag = types.value(dtype, lanes), types.vector("i1", lanes)
    if types.is_constant(a):
        a, b = b, a
    number = types.known_float(b) if types.is_constant(b) and not types.is_constant(a) else None
    if number is None or number != number:
        return f.over("minimum" if op is BinaryOp.MIN else "maximum", types.element(dtype), lanes, a, b)
    word = "lt" if op is BinaryOp.MIN else "gt"
    if number == 0 and (math.copysign(1, number) < 0) == (op is BinaryOp.MIN):
        beyond = f.put(f"fcmp u{word} {kind} {a}, {b}")
        return f.put(f"select {flag} {beyond}, {kind} {a}, {kind} {b}")
    beyond = f.put(f"fcmp o{word} {kind} {b}, {a}")
    return f.put(f"select {flag} {beyond}, {kind} {b}, {kind} {a}")
