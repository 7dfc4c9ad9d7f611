"""sum, prod, min, max, argmin, argmax, any, all, mean, var: reductions inside an expression, over an RDom."""

from __future__ import annotations

import builtins
import math
from functools import partial
from typing import Any

from stax import dtypes
from stax.algorithm.order import least_and_greatest
from stax.dtypes import DType
from stax.expr.affine import Algebra
from stax.expr.nodes import BinaryOp, Call, Const, Expr, Fn
from stax.lang import promote
from stax.lang.reduction import Reduction, domain_of, elements_of
from stax.lang.resolve import Context, resolve
from stax.lang.scan import scan
from stax.lang.terms import as_tuple, refuse, scalar_type
from stax.lang.value import Value, apply, value_of
from stax.lang.var import RDom

Op = BinaryOp


def sum(e: object, over: RDom, dtype: Any = None, name: str | None = None, *, initial: object = 0) -> Value:
    """Return `initial` plus the sum of `e` over an RDom, in its order; of type `dtype`, else NumPy's choice.

    >>> import stax as sx
    >>> x = sx.Var("x")
    >>> a = sx.Input("a", sx.uint8, 2)
    >>> r = sx.RDom("r", k=a.shape[1])
    >>> sx.sum(a[x, r], over=r).dtype
    uint64
    """
    return _folded("sum", Op.ADD, e, over, dtype, name, initial)


def prod(e: object, over: RDom, dtype: Any = None, name: str | None = None, *, initial: object = 1) -> Value:
    """Return `initial` times the product of `e` over an RDom, in its order.

    >>> import stax as sx
    >>> r = sx.RDom("r", k=(1, 6))
    >>> f = sx.Func("f")
    >>> f[()] = sx.prod(r, over=r)
    >>> f.dtype
    int64
    """
    return _folded("prod", Op.MUL, e, over, dtype, name, initial)


def min(e: object, over: RDom, dtype: Any = None, name: str | None = None, *, initial: object = None) -> Value:
    """Return the least of `initial` and `e` over an RDom; NaN where any is. Without `initial` never over nothing.

    >>> import stax as sx
    >>> a = sx.Input("a", sx.float32, 1)
    >>> r = sx.RDom("r", k=a.shape[0])
    >>> sx.min(a[r], over=r, initial=sx.inf).dtype
    float32
    """
    return _extreme("min", Op.MIN, e, over, dtype, name, initial)


def max(e: object, over: RDom, dtype: Any = None, name: str | None = None, *, initial: object = None) -> Value:
    """Return the greatest of `initial` and `e` over an RDom; NaN where any is. Without `initial` never over nothing.

    >>> import stax as sx
    >>> a = sx.Input("a", sx.float32, (None, 4))
    >>> x = sx.Var("x")
    >>> r = sx.RDom("r", k=a.shape[1])
    >>> sx.max(a[x, r], over=r).dtype
    float32
    """
    return _extreme("max", Op.MAX, e, over, dtype, name, initial)


def any(e: object, over: RDom, name: str | None = None) -> Value:
    """Return whether `e` is not 0 somewhere over an RDom.

    >>> import stax as sx
    >>> a = sx.Input("a", sx.float32, 1)
    >>> r = sx.RDom("r", k=a.shape[0])
    >>> sx.any(sx.isnan(a[r]), over=r).dtype
    bool
    """
    return _logical("any", Op.OR, e, over, name)


def all(e: object, over: RDom, name: str | None = None) -> Value:
    """Return whether `e` is not 0 everywhere over an RDom.

    >>> import stax as sx
    >>> a = sx.Input("a", sx.float32, 1)
    >>> r = sx.RDom("r", k=a.shape[0])
    >>> sx.all(a[r] > 0, over=r).dtype
    bool
    """
    return _logical("all", Op.AND, e, over, name)


def argmin(e: object, over: RDom, name: str | None = None, *, initial: object = None) -> Any:
    """Return where `e` is least over an RDom: the first such position, NaN counting as less than all.

    A number, or a tuple for an RDom of several variables. `initial` is the position given for an empty RDom.

    >>> import stax as sx
    >>> a = sx.Input("a", sx.float32, (8,))
    >>> r = sx.RDom("r", k=8)
    >>> sx.argmin(a[r], over=r).dtype
    int64
    """
    return _position("argmin", e, over, name, initial)


def argmax(e: object, over: RDom, name: str | None = None, *, initial: object = None) -> Any:
    """Return where `e` is greatest over an RDom: the first such position, NaN counting as greater than all.

    A number, or a tuple for an RDom of several variables. `initial` is the position given for an empty RDom.

    >>> import stax as sx
    >>> a = sx.Input("a", sx.float32, (8, 9))
    >>> r = sx.RDom("r", y=8, x=9)
    >>> y, x = sx.argmax(a[r.y, r.x], over=r)
    """
    return _position("argmax", e, over, name, initial)


def mean(e: object, over: RDom, dtype: Any = None, name: str | None = None) -> Value:
    """Return the sum of `e` over an RDom by the number of points taken; float64 for integers, as NumPy.

    >>> import stax as sx
    >>> a = sx.Input("a", sx.uint8, 1)
    >>> r = sx.RDom("r", k=a.shape[0])
    >>> sx.mean(a[r], over=r).dtype
    float64
    """
    domain, value = domain_of(over), value_of(e)
    result, inner = _mean_types(value.dtype, dtype)
    return _as(_mean(_as(value, inner), domain, inner, name), result)


def var(e: object, over: RDom, dtype: Any = None, name: str | None = None, *, ddof: float = 0) -> Value:
    """Return the variance of `e` over an RDom, in two passes: the mean first, then the squares about it.

    >>> import stax as sx
    >>> a = sx.Input("a", sx.float32, 1)
    >>> r = sx.RDom("r", k=a.shape[0])
    >>> sx.var(a[r], over=r, ddof=1).dtype
    float32
    """
    domain, value = domain_of(over), value_of(e)
    result, inner = _mean_types(value.dtype, dtype)
    typed = _as(value, inner)
    away = typed - _mean(typed, domain, inner, None)
    total = _folded("sum", Op.ADD, away * away, domain, inner, name, 0)
    number = _count(domain, inner)
    left = number if ddof == 0 else apply(partial(promote.operate, Op.MAX), number - ddof, 0)
    return _as(total / left, result)


def not_empty(domain: RDom) -> bool:
    """Return whether `domain` has a point at every call, by constants and the `low` of Params."""
    if domain.predicate is not None:
        return False
    return builtins.all(_at_least(promote.operate(Op.SUB, b.hi, b.lo)) >= 1 for b in domain.bounds)


def _folded(op: str, combine: BinaryOp, e: object, over: RDom, dtype: Any, name: str | None, initial: object) -> Value:
    domain, value = domain_of(over), value_of(e)
    (value,) = elements_of((value,))
    result = _sum_type(value.dtype) if dtype is None else scalar_type(dtype)
    inner = dtypes.float32 if result.is_half else result
    element = _as(value, inner)
    made = Reduction(
        op, (element,), domain, (inner,), (value_of(initial),),
        lambda p, q: (apply(partial(promote.operate, combine), p[0], q[0]),), name,
    )  # fmt: skip
    return _as(made.values()[0], result)


def _extreme(op: str, combine: BinaryOp, e: object, over: RDom, dtype: Any, name: str | None, initial: object) -> Value:
    domain, value = domain_of(over), value_of(e)
    (value,) = elements_of((value,))
    result = value.dtype if dtype is None else scalar_type(dtype)
    if initial is None and not not_empty(domain):
        _may_be_empty(op, domain, "initial=, the value over nothing")
    start = value_of(initial) if initial is not None else Value(_worst(op, result))
    made = Reduction(
        op, (_as(value, result),), domain, (result,), (start,),
        lambda p, q: (apply(partial(promote.operate, combine), p[0], q[0]),), name,
    )  # fmt: skip
    return made.values()[0]


def _logical(op: str, combine: BinaryOp, e: object, over: RDom, name: str | None) -> Value:
    domain, value = domain_of(over), value_of(e)
    (value,) = elements_of((value,))
    element = value if value.node.dtype.is_bool else value != 0
    made = Reduction(
        op, (element,), domain, (dtypes.bool_,), (value_of(op == "all"),),
        lambda p, q: (apply(partial(promote.operate, combine), p[0], q[0]),), name,
    )  # fmt: skip
    return made.values()[0]


def _position(op: str, e: object, over: RDom, name: str | None, initial: object) -> Value | tuple[Value, ...]:
    domain, value = domain_of(over), value_of(e)
    (value,) = elements_of((value,))
    dtype = value.dtype
    steps = tuple(domain.variables.values())
    if initial is None and not not_empty(domain):
        _may_be_empty(op, domain, "initial=, the position over nothing")
    first = Value(domain.bounds[0].lo) - 1

    def combine(p: tuple[Value, ...], q: tuple[Value, ...]) -> tuple[Value, ...]:
        better = q[0] < p[0] if op == "argmin" else q[0] > p[0]
        if dtype.is_float:
            better = better | (apply(_isnan, q[0]) & ~apply(_isnan, p[0]))
        better = better | (p[1] == first)
        return tuple(apply(promote.choose_between, better, b, a) for a, b in zip(p, q, strict=True))

    start = (Value(_worst(op[3:], dtype)), first, *(value_of(0) for _ in steps[1:]))
    types = (dtype, *(dtypes.int64 for _ in steps))
    made = Reduction(op, (_as(value, dtype), *steps), domain, types, start, combine, name)
    found = made.values()[1:]
    if initial is not None:
        given = as_tuple(initial)
        if len(given) != len(steps):
            refuse(f"{op} has {len(steps)} positions, and `initial` {len(given)}")
        none = found[0] == first
        found = tuple(apply(promote.choose_between, none, g, f) for g, f in zip(given, found, strict=True))
    return found[0] if len(found) == 1 else found


def _mean(value: Value, domain: RDom, inner: DType, name: str | None) -> Value:
    return _folded("sum", Op.ADD, value, domain, inner, name, 0) / _count(domain, inner)


def _mean_types(dtype: DType, asked: Any) -> tuple[DType, DType]:
    result = scalar_type(asked) if asked is not None else dtype if dtype.is_float else dtypes.float64
    if not result.is_float:
        refuse(f"a mean of type {result}", hint="cast the result")
    return result, dtypes.float32 if result.is_half else result


def _count(domain: RDom, dtype: DType) -> Value:
    """Return how many points `domain` has."""
    own = {b.name for b in domain.bounds}
    ragged = domain.predicate is not None or builtins.any(
        name in own for b in domain.bounds for _, name in scan((b.lo, b.hi)).steps
    )
    if ragged:
        return _as(_folded("sum", Op.ADD, 1, domain, dtypes.int64, None, 0), dtype)
    total = value_of(1)
    for b in domain.bounds:
        extent = promote.operate(Op.SUB, b.hi, b.lo)
        if _at_least(extent) < 0:
            extent = promote.operate(Op.MAX, extent, Const(dtypes.int64, 0))
        total = total * Value(extent)
    return _as(total, dtype)


def _as(value: Value, dtype: DType) -> Value:
    return value if value.node.dtype.name == dtype.name else apply(partial(promote.convert, dtype=dtype), value)


def _isnan(node: Expr) -> Expr:
    return Call(dtypes.bool_, Fn.ISNAN, (node,))


def _sum_type(dtype: DType) -> DType:
    if dtype.is_float:
        return dtype
    return dtypes.uint64 if dtype.is_integer and not dtype.is_signed else dtypes.int64


def _worst(op: str, dtype: DType) -> Expr:
    """Return the value of `dtype` that any other replaces."""
    if dtype.is_float:
        return Const(dtype, math.inf if op == "min" else -math.inf)
    if dtype.is_bool:
        return Const(dtype, op == "min")
    return Const(dtype, dtype.high if op == "min" else dtype.low)


def _may_be_empty(op: str, domain: RDom, remedy: str) -> None:
    refuse(
        f"{op} over {domain!r}, which may have no point",
        word="this has no value over nothing",
        hint=f"give {remedy}; or fix the extent: Input(..., (None, 8)), Param(..., low=1)",
    )


def _at_least(node: Expr) -> float:
    """Return a number that the integer `node` is never below: -inf where none is known."""
    used = scan([node])
    params = list(used.params.values())
    names = {id(p): f"{p.name}#{p.serial}" for p in (*params, *used.owners.values())}
    context = Context(names, lambda owner, part: (owner.name, owner.dtypes[part], None))
    limits = {
        names[id(p)]: (-math.inf if p.low is None else p.low, math.inf if p.high is None else p.high) for p in params
    }
    if used.reads or used.reductions:
        return -math.inf
    algebra = Algebra()
    (typed,) = resolve([(node, dtypes.int64)], context)
    return least_and_greatest(algebra.of(typed), algebra, limits)[0]
