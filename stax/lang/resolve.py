"""Give every value of a definition its exact type.

before                                      after
    cast(x / 8, float32) * f[x + 1]             float32(x) / 8f * f[x + 1]

A weak value is computed in the type of the `Cast` around it; index numbers in int64, then converted. Names of Vars,
Funcs, Inputs and Params become those of the frozen program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stax import dtypes
from stax.dtypes import DType
from stax.expr import build, nodes
from stax.expr.evaluate import constant as evaluated
from stax.expr.nodes import Binary, BinaryOp, Call, Cast, Const, Expr, Read, Select, Unary
from stax.expr.walk import children
from stax.lang.promote import does_not_fit, fits
from stax.lang.terms import LITERAL, REAL, Access, Argument, Extent, Lead, Nodes, Step, is_weak

Op = BinaryOp
Key = tuple[int, str]


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """What names are called. `read` gives a Func's or reduction's name, the type of a part, and the index if known."""

    names: Mapping[int, str]
    read: Callable[[Any, int], tuple[str, DType, Nodes | None]]
    vars: Mapping[str, str] = field(default_factory=dict[str, str])
    leads: Mapping[int, str] = field(default_factory=dict[int, str])
    strict: bool = False

    def name_of(self, var: nodes.Var) -> str:
        """Return what `var` is called in the frozen Func."""
        if isinstance(var, Lead):
            return self.leads[var.place]
        return var.name if isinstance(var, Step) else self.vars.get(var.name, var.name)


def resolve(roots: list[tuple[Expr, DType]], context: Context) -> Nodes:
    """Return each root, computed in and converted to its type."""
    done: dict[Key, Expr] = {}
    for root, dtype in roots:
        stack: list[tuple[Expr, DType]] = [(root, dtype)]
        while stack:
            node, target = stack[-1]
            key = (id(node), target.name)
            if key in done:
                stack.pop()
                continue
            needs = _needs(node, target, context)
            missing = [n for n in needs if (id(n[0]), n[1].name) not in done]
            if missing:
                stack += reversed(missing)
                continue
            stack.pop()
            done[key] = _built(node, target, [done[id(n), t.name] for n, t in needs], context)
    return tuple(done[id(root), dtype.name] for root, dtype in roots)


def _needs(node: Expr, target: DType, context: Context) -> list[tuple[Expr, DType]]:
    """Return which nodes, in which types, make `node` as `target`."""
    dtype = node.dtype
    if not is_weak(dtype):
        if dtype.name != target.name:
            return [(node, dtype)]
        if isinstance(node, Cast) and is_weak(node.value.dtype):
            return [(node.value, dtype)]
        return [(c, c.dtype) for c in children(node)]
    match node:
        case Const():
            return []
        case Access():
            return [(c, c.dtype) for c in node.index]
        case nodes.Var() | nodes.Size():
            return []
        case Select(cond=cond, yes=yes, no=no):
            return [(cond, cond.dtype), (yes, target), (no, target)]
        case _:
            pass
    if _by_itself(dtype, target):
        return [(node, dtypes.int64 if dtype is not REAL else dtypes.float64)]
    return [(c, target) for c in children(node)]


def _by_itself(dtype: DType, target: DType) -> bool:
    """Return whether a weak operation of `dtype` is done in its own type first: all but literals, in another kind."""
    if dtype is REAL:
        return not target.is_float
    return target.name != "int64" and not (dtype is LITERAL and target.is_integer)


def _built(node: Expr, target: DType, parts: list[Expr], context: Context) -> Expr:
    dtype = node.dtype
    if not is_weak(dtype):
        if dtype.name != target.name:
            return _cast(parts[0], target)
        if isinstance(node, Cast) and is_weak(node.value.dtype):
            return parts[0]
        return _strong(node, parts, context)
    match node:
        case Const(value=value):
            return constant(value, target)
        case Access():
            read = _strong(node, parts, context)
            return _cast(read, target)
        case Extent(owner=owner, dim=dim):
            return _cast(nodes.Size(dtypes.int64, context.names[id(owner)], dim), target)
        case nodes.Var():
            return _cast(nodes.Var(dtypes.int64, context.name_of(node)), target)
        case Select():
            return build.select(parts[0], parts[1], parts[2])
        case _:
            pass
    if _by_itself(dtype, target):
        return _cast(parts[0], target)
    return _operation(node, target, parts, context)


def _strong(node: Expr, parts: list[Expr], context: Context) -> Expr:
    match node:
        case Const(value=value, dtype=dtype):
            return constant(value, dtype)
        case Access(owner=owner, part=part, span=span):
            name, dtype, index = context.read(owner, part)
            return Read(dtype, name, tuple(parts) if index is None else index, part, span=span)
        case Argument(owner=owner, dtype=dtype):
            return nodes.Param(dtype, context.names[id(owner)])
        case Cast(dtype=dtype):
            return _cast(parts[0], dtype)
        case Select():
            return build.select(parts[0], parts[1], parts[2])
        case _:
            return _operation(node, node.dtype, parts, context)


def _operation(node: Expr, dtype: DType, parts: list[Expr], context: Context) -> Expr:
    match node:
        case Binary(op=op, left=left):
            if op is Op.ADD and dtype.is_float and not context.strict and _is_zero(left):
                return parts[1]
            return build.binary(op, parts[0], parts[1])
        case Unary(op=op):
            known = build.integer(parts[0])
            if op is nodes.UnaryOp.NEG and known is not None and dtype.is_integer:
                return Const(dtype, build.wrap(-known, dtype))
            return build.unary(op, parts[0])
        case Call(fn=fn):
            return build.call(fn, tuple(parts), dtype)
        case _:
            raise AssertionError(f"{type(node).__name__} in a definition")


def _cast(value: Expr, dtype: DType) -> Expr:
    if isinstance(value, Const) and dtype.is_float and not value.dtype.is_float:
        return constant(value.value, dtype)
    return build.cast(value, dtype)


def _is_zero(node: Expr) -> bool:
    """Return whether `node` is Python's 0, with which `sum` starts."""
    if isinstance(node, Cast):
        node = node.value
    return isinstance(node, Const) and node.dtype is LITERAL and node.value == 0


def constant(value: float | bool, dtype: DType) -> Expr:
    """Return a Python number as a constant of `dtype`, rounded to it."""
    if dtype.is_float:
        return Const(dtype, float(evaluated(Const(dtype, value))))
    if dtype.is_integer and not fits(value, dtype):
        does_not_fit(value, dtype)
    return Const(dtype, bool(value) if dtype.is_bool else int(value))
