"""Affine domains, `Func(where=)`: a conjunction of comparisons of positions says which cells a Func has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stax.errors import SymbolicValueError
from stax.expr.nodes import Binary, BinaryOp, Cast, Const, Expr, Param, Size, Unary, UnaryOp, Var
from stax.expr.show import show
from stax.expr.walk import postorder
from stax.lang.terms import NUMBER, readable, refuse
from stax.lang.value import Value, value_of
from stax.source import Span

_SUMS = frozenset({BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.FLOORDIV, BinaryOp.MIN, BinaryOp.MAX})


def domain_of(where: Callable[..., object], dims: Sequence[str], name: str, span: Span | None) -> Expr:
    """Return the condition that `where` gives of Vars named `dims`; refuse what is no affine domain."""
    try:
        given = where(*(Value(Var(NUMBER, dim)) for dim in dims))
    except SymbolicValueError:
        raise
    except TypeError as error:
        refuse(f"the `where` of `{name}` does not take its {len(dims)} dims: {error}", places=[(span, "made here")])
    cond = value_of(given, "a condition").node
    if not cond.dtype.is_bool:
        refuse(f"the `where` of `{name}` gives {cond.dtype}, not bool", places=[(span, "made here")])
    stack = [cond]
    while stack:
        match stack.pop():
            case Binary(op=BinaryOp.AND, left=left, right=right):
                stack += [left, right]
            case Unary(op=UnaryOp.NOT, value=Binary(op=BinaryOp.LT | BinaryOp.LE, left=left, right=right)):
                _positions((left, right), name, span)
            case Binary(op=BinaryOp.LT | BinaryOp.LE | BinaryOp.EQ, left=left, right=right):
                _positions((left, right), name, span)
            case part:
                _no_domain(
                    f"`{show(readable(part), limit=80)}` is no comparison of sums by <, <=, >, >= or ==", name, span
                )
    return cond


def _positions(sides: tuple[Expr, Expr], name: str, span: Span | None) -> None:
    for node in postorder(sides):
        plain = isinstance(node, Var | Const | Size | Param | Cast) or (
            isinstance(node, Unary) and not node.dtype.is_bool
        )
        if node.dtype.is_float or not (plain or (isinstance(node, Binary) and node.op in _SUMS)):
            kind = "a float" if node.dtype.is_float else "no sum of positions"
            _no_domain(f"`{show(readable(node), limit=80)}` is {kind}", name, span)


def _no_domain(fact: str, name: str, span: Span | None) -> None:
    refuse(
        f"the `where` of `{name}` is no conjunction of comparisons of positions",
        places=[(span, "made here")],
        facts=[fact],
        hint="compare sums of indices, sizes and Params, joined by &; sx.select in the definition takes any condition",
    )
