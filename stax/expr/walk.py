"""Children, rebuilding and substitution, each node once however often it is shared, without recursion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from stax.expr.nodes import (
    Binary,
    Bitcast,
    Broadcast,
    Call,
    Cast,
    Const,
    Dot,
    Expr,
    Load,
    Local,
    Param,
    Ramp,
    Read,
    Reduce,
    Select,
    Size,
    Unary,
    Var,
)  # fmt: skip


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return what `expr` is made of, in order."""
    match expr:
        case Binary(left=left, right=right):
            return (left, right)
        case Const() | Var() | Local() | Param() | Size() | Ramp():
            return ()
        case Load(index=index, mask=mask):
            return (*index, *mask)
        case Read(index=index):
            return index
        case Call(args=args):
            return args
        case Cast(value=value) | Broadcast(value=value) | Unary(value=value) | Bitcast(value=value):
            return (value,)
        case Select(cond=cond, yes=yes, no=no):
            return (cond, yes, no)
        case Reduce(value=value, where=where):
            return (value, *where)
        case Dot(acc=acc, left=left, right=right):
            return (acc, left, right)
        case _:
            assert_never(expr)


def with_children(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """Return `expr` made of `new` instead; `expr` itself where nothing differs. dtype and axes are kept."""
    if all(a is b for a, b in zip(children(expr), new, strict=True)):
        return expr
    match expr:
        case Const() | Var() | Param() | Size() | Local() | Ramp():
            return expr
        case Broadcast() | Unary() | Cast() | Bitcast():
            return replace(expr, value=new[0])
        case Binary():
            return replace(expr, left=new[0], right=new[1])
        case Select():
            return replace(expr, cond=new[0], yes=new[1], no=new[2])
        case Call():
            return replace(expr, args=new)
        case Read():
            return replace(expr, index=new)
        case Load(index=index):
            return replace(expr, index=new[: len(index)], mask=new[len(index) :])
        case Reduce():
            return replace(expr, value=new[0], where=new[1:])
        case Dot():
            return replace(expr, acc=new[0], left=new[1], right=new[2])
        case _:
            assert_never(expr)


def postorder(roots: Iterable[Expr]) -> list[Expr]:
    """Return every node below `roots` once, children before parents."""
    seen: set[int] = set()
    out: list[Expr] = []
    for root in roots:
        stack: list[tuple[Expr, bool]] = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                out.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                below = children(node)
                if below:
                    stack.append((node, True))
                    stack += [(child, False) for child in reversed(below) if id(child) not in seen]
                else:
                    out.append(node)
    return out


def rewrite_all(roots: Iterable[Expr], rule: Callable[[Expr], Expr]) -> tuple[Expr, ...]:
    """Return `roots` with `rule` applied to every node once, its children having been rewritten already."""
    kept = tuple(roots)
    new: dict[int, Expr] = {}
    for node in postorder(kept):
        new[id(node)] = rule(with_children(node, tuple([new[id(c)] for c in children(node)])))
    return tuple(new[id(root)] for root in kept)


def rewrite(expr: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    """Return `expr` with `rule` applied to every node once, bottom up."""
    return rewrite_all((expr,), rule)[0]


def substitute(expr: Expr, new: Mapping[str, Expr]) -> Expr:
    """Return `expr` with each Var or Local whose name is in `new` replaced."""

    def rule(node: Expr) -> Expr:
        return new.get(node.name, node) if isinstance(node, Var | Local) else node

    return rewrite(expr, rule)


def reads(roots: Iterable[Expr]) -> list[Read]:
    """Return every Read below `roots` once, inner ones first."""
    return [node for node in postorder(roots) if isinstance(node, Read)]


def names(roots: Iterable[Expr]) -> set[str]:
    """Return the names of the Vars and Locals below `roots`."""
    return {node.name for node in postorder(roots) if isinstance(node, Var | Local)}
