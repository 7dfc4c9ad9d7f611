"""Smaller expressions of the same value, bit for bit (any NaN being like any other).

before                                after
    (x + 3) - 1                           x + 2            integers, wrapping or not
    int32(uint8) as uint8                 the uint8
    select(~c, a, b)                      select(c, b, a)
    v * 1.0, v - 0.0, fma(v, 1.0, w)      v, v, v + w      but never v + 0.0: -0.0 + 0.0 is 0.0

Needs: nothing. Gives: equal nodes are one node; no operator has constants alone, but for functions spelled out later.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stax.dtypes import DType
from stax.expr import build
from stax.expr.evaluate import constant, primitive
from stax.expr.intrinsics import PRIMITIVES
from stax.expr.nodes import (
    Binary,
    BinaryOp,
    Bitcast,
    Broadcast,
    Call,
    Cast,
    Const,
    Expr,
    Fn,
    Select,
    Unary,
    UnaryOp,
)  # fmt: skip
from stax.expr.number import Numbering
from stax.expr.walk import children, rewrite_all


def simplify(expr: Expr) -> Expr:
    """Return `expr` made smaller.

    >>> from stax import dtypes
    >>> x = build.local("x", dtypes.int32)
    >>> simplify(build.sub(build.add(x, 1), 1)) is x
    True
    """
    return simplify_all((expr,))[0]


def simplify_all(roots: Sequence[Expr]) -> tuple[Expr, ...]:
    """Return `roots` made smaller, sharing what is equal."""
    numbering = Numbering()
    known: dict[int, Expr] = {}

    def rule(node: Expr) -> Expr:
        while True:
            smaller = _step(node)
            if smaller is node:
                return known.setdefault(numbering.of(node), node)
            node = smaller

    return rewrite_all(roots, rule)


def _step(node: Expr) -> Expr:
    """Return `node` after one rule; `node` itself where none applies. Its children are simple and shared."""
    folded = _folded(node)
    if folded is not None:
        return folded
    match node:
        case Unary():
            return _unary(node)
        case Binary():
            return _integer(node) if node.left.dtype.is_integer else _boolean(node) if _is_bool(node) else _float(node)
        case Select():
            return _select(node)
        case Cast():
            return _cast(node)
        case Bitcast(value=value) if value.dtype.name == node.dtype.name:
            return value
        case Call(fn=Fn.FMA, args=(a, b, c)):
            if _is(b, 1.0):
                return Binary(node.dtype, BinaryOp.ADD, a, c, axes=node.axes, span=node.span)
            if _is(a, 1.0):
                return Binary(node.dtype, BinaryOp.ADD, b, c, axes=node.axes, span=node.span)
            return Binary(node.dtype, BinaryOp.MUL, a, b, axes=node.axes, span=node.span) if _is(c, -0.0) else node
        case _:
            return node


def _folded(node: Expr) -> Expr | None:
    """Return the constant that an operator of constants is."""
    if not isinstance(node, Unary | Binary | Select | Cast | Bitcast | Call):
        return None
    if isinstance(node, Call) and node.fn not in PRIMITIVES:
        return None
    consts = [_const(child) for child in children(node)]
    known = [constant(c) for c in consts if c is not None]
    if len(known) < len(consts):
        return None
    return build.const(primitive(node, known).item(), node.dtype, node.axes)


def _const(expr: Expr) -> Const | None:
    while isinstance(expr, Broadcast):
        expr = expr.value
    return expr if isinstance(expr, Const) else None


def _is(expr: Expr, value: float) -> bool:
    """Return whether `expr` is that constant, its sign of zero included."""
    found = _const(expr)
    return found is not None and found.value == value and math.copysign(1, found.value) == math.copysign(1, value)


def _is_bool(node: Binary) -> bool:
    return node.left.dtype.is_bool


def _unary(node: Unary) -> Expr:
    match node:
        case Unary(op=UnaryOp.NEG | UnaryOp.NOT as op, value=Unary(op=inner, value=value)) if op is inner:
            return value
        case Unary(op=UnaryOp.ABS, value=Unary(op=UnaryOp.NEG, value=value)):
            return build.unary(UnaryOp.ABS, value, node.span)
        case Unary(op=UnaryOp.ABS, value=Unary(op=UnaryOp.ABS)) if node.dtype.is_float or node.dtype.is_integer:
            return node.value
        case Unary(op=UnaryOp.ABS, value=value) if not (value.dtype.is_float or value.dtype.is_signed):
            return value
        case Unary(op=UnaryOp.NOT, value=Binary(op=op, left=left)) if node.dtype.is_bool:
            if left.dtype.is_integer or op in (BinaryOp.EQ, BinaryOp.NE):
                return _opposite(node)
            return node
        case _:
            return node


def _opposite(node: Unary) -> Expr:
    value = node.value
    if isinstance(value, Binary) and not value.left.dtype.is_integer:
        op = BinaryOp.NE if value.op is BinaryOp.EQ else BinaryOp.EQ
        return Binary(node.dtype, op, value.left, value.right, axes=node.axes, span=node.span)
    turned = build.negate(value)
    return node if isinstance(turned, Unary) else turned


_ASSOCIATIVE = frozenset(
    {BinaryOp.ADD, BinaryOp.MUL, BinaryOp.AND, BinaryOp.OR, BinaryOp.XOR, BinaryOp.MIN, BinaryOp.MAX}
)


def _integer(node: Binary) -> Expr:
    op, left, right = node.op, node.left, node.right
    simple = build.binary(op, left, right, node.span)
    if not isinstance(simple, Binary) or simple.left is not left:
        return simple
    if left is right:
        return _of_equals(node)
    known = build.integer(right)
    if known is None:
        if build.integer(left) is not None and op in _ASSOCIATIVE:
            return build.binary(op, right, left, node.span)  # constants stand right
        return _constants_last(node)
    if op is BinaryOp.SUB:
        return build.add(left, build.const(build.wrap(-known, left.dtype), left.dtype, left.axes))
    if (op is BinaryOp.MOD and known in (1, -1)) or (op is BinaryOp.AND and known == 0):
        return build.const(0, node.dtype, node.axes)
    if op is BinaryOp.AND and build.wrap(known + 1, left.dtype) == 0:
        return left
    if isinstance(left, Binary) and left.op is op:
        inner = build.integer(left.right)
        if inner is not None and op in _ASSOCIATIVE:
            return build.binary(op, left.left, build.binary(op, left.right, right), node.span)
        if (
            inner is not None
            and op is BinaryOp.FLOORDIV
            and inner > 0
            and known > 0
            and inner * known <= node.dtype.high
        ):
            return build.floordiv(left.left, build.const(inner * known, node.dtype, node.axes))
        if inner == known and op is BinaryOp.MOD:
            return left
    return node


def _constants_last(node: Binary) -> Expr:
    """Return (x + c) + (y + d) as (x + y) + (c + d): LLVM's time is quadratic in chains that have constants inside."""
    if node.op not in (BinaryOp.ADD, BinaryOp.SUB):
        return node
    (x, c), (y, d) = _with_constant(node.left), _with_constant(node.right)
    if not c and not d:
        return node
    total = build.wrap(c + d if node.op is BinaryOp.ADD else c - d, node.dtype)
    return build.add(build.binary(node.op, x, y, node.span), build.const(total, node.dtype, node.axes))


def _with_constant(expr: Expr) -> tuple[Expr, int]:
    match expr:
        case Binary(op=BinaryOp.ADD, left=left, right=right) if (known := build.integer(right)) is not None:
            return left, known
        case _:
            return expr, 0


def _of_equals(node: Binary) -> Expr:
    """Return `x op x` for an integer or bool x."""
    match node.op:
        case BinaryOp.SUB | BinaryOp.XOR | BinaryOp.LT | BinaryOp.NE | BinaryOp.MOD:
            return build.const(0, node.dtype, node.axes)
        case BinaryOp.LE | BinaryOp.EQ:
            return build.const(1, node.dtype, node.axes)
        case BinaryOp.MIN | BinaryOp.MAX | BinaryOp.AND | BinaryOp.OR:
            return node.left
        case _:
            return node


def _boolean(node: Binary) -> Expr:
    simple = build.binary(node.op, node.left, node.right, node.span)
    if not isinstance(simple, Binary):
        return simple
    if node.left is node.right:
        return node.left if node.op in (BinaryOp.ADD, BinaryOp.MUL) else _of_equals(node)
    known = build.integer(node.right)
    if known is not None and node.op in (BinaryOp.EQ, BinaryOp.NE, BinaryOp.XOR):
        same = bool(known) == (node.op is BinaryOp.EQ)
        return node.left if same else build.negate(node.left)
    return node


def _float(node: Binary) -> Expr:
    op, left, right = node.op, node.left, node.right
    if op in (BinaryOp.MIN, BinaryOp.MAX) and left is right:
        return left
    if op is BinaryOp.LT and left is right:
        return build.const(False, node.dtype, node.axes)
    if (op in (BinaryOp.MUL, BinaryOp.DIV) and _is(right, 1.0)) or (op is BinaryOp.SUB and _is(right, 0.0)):
        return left
    if op is BinaryOp.ADD and _is(right, -0.0):
        return left
    if (op is BinaryOp.MUL and _is(left, 1.0)) or (op is BinaryOp.ADD and _is(left, -0.0)):
        return right
    if op in (BinaryOp.MUL, BinaryOp.DIV) and _is(right, -1.0):
        return build.unary(UnaryOp.NEG, left, node.span)
    if op is BinaryOp.DIV:
        known = _const(right)
        inverse = None if known is None else _exact_inverse(float(known.value), node.dtype)
        if inverse is not None:
            factor = build.const(inverse, node.dtype, node.axes)
            return Binary(node.dtype, BinaryOp.MUL, left, factor, axes=node.axes, span=node.span)
    return node


def _exact_inverse(value: float, dtype: DType) -> float | None:
    """Return 1 / value where both are normal powers of two of `dtype`."""
    exponent = math.frexp(value)[1] - 1
    most = {16: 14, 32: 126, 64: 1022}[dtype.bits]
    if value == 0 or not math.isfinite(value) or abs(value) != math.ldexp(1.0, exponent) or abs(exponent) > most:
        return None
    return 1 / value


def _select(node: Select) -> Expr:
    cond, yes, no = node.cond, node.yes, node.no
    known = build.integer(cond)
    if known is not None:
        return yes if known else no
    if yes is no:
        return yes
    if isinstance(cond, Unary) and cond.op is UnaryOp.NOT:
        return Select(node.dtype, cond.value, no, yes, axes=node.axes, span=node.span)
    if node.dtype.is_bool:
        if build.integer(yes) == 1 and build.integer(no) == 0:
            return cond
        if build.integer(yes) == 0 and build.integer(no) == 1:
            return build.negate(cond)
    if isinstance(yes, Select) and yes.cond is cond:
        return Select(node.dtype, cond, yes.yes, no, axes=node.axes, span=node.span)
    if isinstance(no, Select) and no.cond is cond:
        return Select(node.dtype, cond, yes, no.no, axes=node.axes, span=node.span)
    return node


def _cast(node: Cast) -> Expr:
    value = node.value
    if value.dtype.name == node.dtype.name:
        return value
    if isinstance(value, Cast):
        source, middle = value.value.dtype, value.dtype
        # What keeps every value may be left out; so may a wrap to no fewer bits than are left at the end.
        wraps = source.is_integer and middle.is_integer and node.dtype.is_integer and middle.bits >= node.dtype.bits
        # Through a float a conversion to an integer saturates, without it wraps.
        saturates = source.is_integer and middle.is_float and node.dtype.is_integer
        if wraps or (_keeps_values(source, middle) and not (saturates and not _keeps_values(source, node.dtype))):
            return build.cast(value.value, node.dtype, node.span)
    return node


def _keeps_values(source: DType, target: DType) -> bool:
    """Return whether every value of `source` is one of `target`."""
    if source.is_float:
        return target.is_float and (target.bits > source.bits or target.name == source.name)
    if target.is_float:
        digits = 8 if target.name == "bfloat16" else {16: 11, 32: 24, 64: 53}[target.bits]
        return max(source.high, -source.low) <= 1 << digits
    return not target.is_bool and target.low <= source.low and source.high <= target.high
