"""Which Params positions are computed from: those stay far below 2 ** 63, so that no sum of positions wraps.

f[x] = select(x < n - 1, a[x + k], a[x] * p)        n and k are among them, p is not
"""

from __future__ import annotations

from collections.abc import Iterable

from stax.algorithm.nodes import Func, Pipeline
from stax.expr.nodes import Binary, BinaryOp, Cast, Expr, Param, Read, Select, Size, Unary, UnaryOp, Var
from stax.expr.walk import postorder

LARGEST_POSITION = 1 << 47

_SUMS = (
    BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.FLOORDIV, BinaryOp.MOD, BinaryOp.MIN, BinaryOp.MAX,
)  # fmt: skip
_ORDERS = (BinaryOp.LT, BinaryOp.LE, BinaryOp.EQ, BinaryOp.NE)


def position_params(pipeline: Pipeline) -> frozenset[str]:
    """Return the names of the 64-bit Params that indices, ranges, shapes or conditions on positions are made of."""
    found: set[str] = set()
    for f in pipeline.funcs:
        _sums(_places(f), found)
        _conditions(_roots(f), found)
    _sums([e for shape in pipeline.shapes if shape is not None for e in shape], found)
    return frozenset(found)


def _roots(f: Func) -> list[Expr]:
    roots = list(f.values)
    for u in f.updates:
        roots += [*u.index, *u.values, *([] if u.where is None else [u.where])]
    return roots


def _places(f: Func) -> list[Expr]:
    places = [e for e in f.shape if e is not None]
    for u in f.updates:
        places += [*u.index, *(e for r in u.domain for e in (r.lo, r.hi))]
    return places + [i for node in postorder(_roots(f)) if isinstance(node, Read) for i in node.index]


def _conditions(roots: Iterable[Expr], found: set[str]) -> None:
    """Add the Params of comparisons that positions take part in: loops are cut where these change."""
    for node in postorder(tuple(roots)):
        match node:
            case Binary(op=op, left=left, right=right) if op in _ORDERS and _is_word(left):
                inside = _inside((left, right))
                if any(isinstance(n, Var | Size | Binary | Unary) for n in inside):
                    _sums((left, right), found)
            case _:
                pass


def _sums(roots: Iterable[Expr], found: set[str]) -> None:
    found.update(n.name for n in _inside(roots) if isinstance(n, Param) and n.dtype.bits == 64)


def _inside(roots: Iterable[Expr]) -> list[Expr]:
    """Return the nodes of sums, minima and quotients of positions; what is read is none of them."""
    seen: dict[int, Expr] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node
        match node:
            case Binary(op=op, left=left, right=right) if op in _SUMS:
                stack += [left, right]
            case Unary(op=UnaryOp.NEG, value=value) | Cast(value=value):
                stack.append(value)
            case Select(yes=yes, no=no):
                stack += [yes, no]
            case _:
                pass
    return list(seen.values())


def _is_word(node: Expr) -> bool:
    return node.dtype.is_integer and node.dtype.bits == 64
