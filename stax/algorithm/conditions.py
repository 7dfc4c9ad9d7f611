"""What of a condition removes reads: its part in Vars, Params and Sizes by integer arithmetic (LANGUAGE 1.6).

`select(c, yes, no)` needs `yes` only where the affine part of c holds, and `no` only where that of not-c does. A part
is implied by the condition, so it is never stricter; what depends on data adds nothing to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from stax.expr import build
from stax.expr.nodes import Binary, BinaryOp, Cast, Const, Expr, Param, Select, Size, Unary, UnaryOp, Var
from stax.expr.walk import children, postorder

Part: TypeAlias = Expr | None


def affine_parts(conds: Iterable[Expr]) -> list[tuple[Part, Part]]:
    """Return for each of `conds` what follows where it holds, and what follows where it does not.

    What follows is said by sizes and positions alone: it has no Read, and is evaluated exactly, products and all. None
    says that nothing follows.

    >>> from stax import dtypes
    >>> from stax.expr.nodes import Read
    >>> x, zero = Var(dtypes.int64, "x"), Const(dtypes.int64, 0)
    >>> inside, dark = build.less(zero, x), build.less(Read(dtypes.int64, "a", (x,)), zero)
    >>> affine_parts([build.both(inside, dark)])[0] == (inside, None)
    True
    """
    kept = tuple(conds)
    plain: set[int] = set()
    parts: dict[int, tuple[Part, Part]] = {}
    for node in postorder(kept):
        if _is_plain(node) and all(id(child) in plain for child in children(node)):
            plain.add(id(node))
        if node.dtype.is_bool:
            parts[id(node)] = (node, build.negate(node)) if id(node) in plain else _parts(node, parts)
    return [parts[id(cond)] for cond in kept]


def _is_plain(node: Expr) -> bool:
    return not node.dtype.is_float and isinstance(node, Const | Var | Param | Size | Unary | Binary | Cast | Select)


def _parts(node: Expr, known: dict[int, tuple[Part, Part]]) -> tuple[Part, Part]:
    match node:
        case Unary(op=UnaryOp.NOT, value=value):
            yes, no = known[id(value)]
            return no, yes
        case Binary(op=BinaryOp.AND | BinaryOp.MUL, left=left, right=right) if left.dtype.is_bool:
            a, b = known[id(left)], known[id(right)]
            return _both(a[0], b[0]), _either(a[1], b[1])
        case Binary(op=BinaryOp.OR | BinaryOp.ADD, left=left, right=right) if left.dtype.is_bool:
            a, b = known[id(left)], known[id(right)]
            return _either(a[0], b[0]), _both(a[1], b[1])
        case Select(cond=cond, yes=yes, no=no):
            c, a, b = known[id(cond)], known[id(yes)], known[id(no)]
            return _either(_both(c[0], a[0]), _both(c[1], b[0])), _either(_both(c[0], a[1]), _both(c[1], b[1]))
        case _:
            return None, None


def _both(a: Part, b: Part) -> Part:
    return build.both(a, b) if a is not None and b is not None else a if b is None else b


def _either(a: Part, b: Part) -> Part:
    return build.binary(BinaryOp.OR, a, b) if a is not None and b is not None else None
