"""Affine domains: a Func has the cells where its `where` holds; the others are 0, and nobody reads them.

before                                  after, where x <= y
    f[y, x] = a[y] * b[x]                   f[y, x] = select(x <= y, a[y] * b[x], 0)
    f[y, x] += c[r.k, x] over r             the same, where x <= y
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stax.algorithm.nodes import Func, Update
from stax.expr import build
from stax.expr.nodes import Binary, BinaryOp, Expr, Select, Var
from stax.expr.number import Numbering
from stax.expr.walk import names


def within(f: Func, where: Expr) -> Func:
    """Return `f` with the cells where `where` holds: those of its definition and of the plain dims of its updates."""
    zeros = tuple(build.const(False if t.is_bool else 0.0 if t.is_float else 0, t) for t in f.dtypes)
    values = tuple(build.select(where, v, zero) for v, zero in zip(f.values, zeros, strict=True))
    return replace(f, values=values, updates=tuple(_update(f, u, where) for u in f.updates), where=where)


def _update(f: Func, u: Update, where: Expr) -> Update:
    plain = set(plain_dims(f, u))
    cond = u.where
    for part in conjuncts(where):
        if names((part,)) <= plain:
            cond = part if cond is None else build.both(part, cond)
    return replace(u, where=cond)


def plain_dims(f: Func, update: Update) -> tuple[str, ...]:
    """Return the dims that an update leaves in their place."""
    return tuple(d for d, i in zip(f.dims, update.index, strict=True) if isinstance(i, Var) and i.name == d)


def conjuncts(cond: Expr) -> list[Expr]:
    """Return the conditions that together are `cond`, left to right."""
    found: list[Expr] = []
    stack = [cond]
    while stack:
        match stack.pop():
            case Binary(op=BinaryOp.AND, left=left, right=right):
                stack += [right, left]
            case node:
                found.append(node)
    return found


def inner_values(f: Func) -> tuple[Expr, ...]:
    """Return the values of the definition where its domain is known to hold."""
    if f.where is None:
        return f.values
    numbers = Numbering()
    same = numbers.of(f.where)
    return tuple(v.yes if isinstance(v, Select) and numbers.of(v.cond) == same else v for v in f.values)


def fixed_dims(cond: Expr, dims: Sequence[str]) -> dict[str, Expr] | None:
    """Return the dims to which `cond`, that of a start value, gives one value; None where it is no such condition."""
    fixed: dict[str, Expr] = {}
    for part in conjuncts(cond):
        match part:
            case Binary(op=BinaryOp.EQ, left=Var(name=name), right=right) if name in dims:
                fixed[name] = right
            case _:
                return None
    return fixed
