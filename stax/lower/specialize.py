"""Copy code under a condition on sizes and Params, and simplify the copy by what the condition says.

before                              after
    for x in 0 +: n: ...                if n % 16 == 0:
                                            for x in 0 +: n // 16 * 16: ...
                                        else:
                                            for x in 0 +: n: ...

`size == e` puts e for the size, `size % n == c` puts `size // n * n + c` for it, a bool Param is what it must be. What
`c <= size` says is for `tidy_loops`, which sees it at the branch.
"""

from __future__ import annotations

from collections.abc import Iterator

from stax.algorithm.nodes import MARK
from stax.expr import build
from stax.expr.nodes import Binary, BinaryOp, Cast, Const, Expr, Param, Size, Unary, UnaryOp
from stax.expr.walk import postorder
from stax.loops.nodes import Block, If
from stax.loops.walk import as_block, copy_with_fresh_names, rewrite_expressions


def specialized(body: Block, cond: Expr, number: int) -> Block:
    """Return `body` with a copy of it for where `cond` holds; `number` tells its names from those of other copies."""
    copy = copy_with_fresh_names(body, f"{MARK}s{number}")
    for part in _conjuncts(cond):
        known = _known(part)
        if known is not None:
            copy = rewrite_expressions(copy, lambda node, known=known: known[1] if _is(node, known[0]) else node)
    return Block((If(cond, as_block(copy), body),))


def _conjuncts(cond: Expr) -> Iterator[Expr]:
    ahead = [cond]
    while ahead:
        match ahead.pop():
            case Binary(op=BinaryOp.AND | BinaryOp.MUL, left=left, right=right) if left.dtype.is_bool:
                ahead += [right, left]
            case other:
                yield other


def _known(cond: Expr) -> tuple[Expr, Expr] | None:
    """Return a size or Param and what it is where `cond` holds."""
    match cond:
        case Param():
            return cond, build.const(True, cond.dtype)
        case Unary(op=UnaryOp.NOT, value=Param() as param):
            return param, build.const(False, param.dtype)
        case Binary(op=BinaryOp.EQ, left=left, right=right):
            for one, other in ((left, right), (right, left)):
                match one:
                    case Cast(value=Param() as param) if isinstance(other, Const) and _fits(param, other):
                        return param, build.const(int(other.value), param.dtype)
                    case Size() if not any(_is(node, one) for node in postorder((other,))):
                        return one, other
                    case Binary(op=BinaryOp.MOD, left=Size() as size, right=Const(value=int(n))) if n > 0:
                        if isinstance(other, Const):
                            whole = build.mul(build.floordiv(size, n), n)
                            return size, build.add(whole, other)
                    case _:
                        pass
        case _:
            pass
    return None


def _is(node: Expr, other: Expr) -> bool:
    match node, other:
        case Size(array=a, dim=d), Size(array=b, dim=e):
            return a == b and d == e
        case Param(name=a), Param(name=b):
            return a == b
        case _:
            return False


def _fits(param: Param, value: Const) -> bool:
    dtype = param.dtype
    return not dtype.is_bool and dtype.low <= int(value.value) <= dtype.high
