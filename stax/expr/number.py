"""Which nodes are equal: a number for each distinct value, found in time linear in the size of the graph."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Hashable, Iterable
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
from stax.expr.walk import children, postorder


class Numbering:
    """Gives structurally equal expressions the same number; nodes it has seen are kept alive.

    >>> from stax import dtypes
    >>> n = Numbering()
    >>> n.of(Const(dtypes.int32, 1)) == n.of(Const(dtypes.int32, 1)), n.of(Const(dtypes.int64, 1)) == 0
    (True, False)
    """

    def __init__(self) -> None:
        self._by_key: dict[Hashable, int] = {}
        self._by_id: dict[int, tuple[Expr, int]] = {}

    def of(self, expr: Expr) -> int:
        """Return the number of `expr`."""
        found = self._by_id.get(id(expr))
        if found is not None:
            return found[1]
        stack = [expr]
        while stack:
            node = stack[-1]
            new = [c for c in children(node) if id(c) not in self._by_id]
            if new:
                stack += new
                continue
            stack.pop()
            below = tuple(self._by_id[id(c)][1] for c in children(node))
            number = self._by_key.setdefault((*_head(node), below), len(self._by_key))
            self._by_id[id(node)] = (node, number)
        return self._by_id[id(expr)][1]

    def uses(self, roots: Iterable[Expr]) -> Counter[int]:
        """Return how often each value is an operand or a root, a value's operands being counted once."""
        kept = list(roots)
        uses = Counter(self.of(root) for root in kept)
        seen: set[int] = set()
        for node in postorder(kept):
            number = self.of(node)
            if number not in seen:
                seen.add(number)
                uses.update(self.of(c) for c in children(node))
        return uses


def same(a: Expr, b: Expr) -> bool:
    """Return whether `a` and `b` are structurally equal."""
    if a is b:
        return True
    numbering = Numbering()
    return numbering.of(a) == numbering.of(b)


def _head(node: Expr) -> tuple[Hashable, ...]:
    own = (type(node).__name__, node.dtype.name, node.axes)
    match node:
        case Const(value=value):
            return (*own, struct.pack("<d", value) if node.dtype.is_float else int(value))
        case Var(name=name) | Param(name=name) | Local(name=name):
            return (*own, name)
        case Size(array=array, dim=dim):
            return (*own, array, dim)
        case Ramp() | Broadcast() | Select() | Cast() | Bitcast():
            return own
        case Unary(op=op) | Binary(op=op):
            return (*own, op)
        case Call(fn=fn):
            return (*own, fn)
        case Read(source=source, part=part):
            return (*own, source, part)
        case Load(buffer=buffer, index=index, other=other):
            return (*own, buffer, len(index), None if other is None else _head(other))
        case Reduce(op=op, axis=axis):
            return (*own, op, axis)
        case Dot(axis=axis):
            return (*own, axis)
        case _:
            assert_never(node)
