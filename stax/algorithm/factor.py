"""Give each value of a reduced variable a result of its own, in a new Func, and combine those.

before                              after
    h[b] = 0                            part[u, b] = 0
    h[a[r.y, r.x]] += 1                 part[u, a[u, r.x]] += 1
                                        h[b] = 0
                                        h[b] += part[u, b]          over u, as r.y was

Needs: an update that combines values into its cell (`combine`).
Gives: the same values, but for the order in which they are combined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stax.algorithm.combine import Combine
from stax.algorithm.nodes import Func, Pipeline, Range, Update
from stax.dtypes import bool_, int64
from stax.expr import build
from stax.expr.nodes import Binary, Expr, Read, Size, Var
from stax.expr.walk import reads, rewrite_all


def split_range(update: Update, var: str, outer: str, inner: str, n: int, keep: str) -> Update:
    """Return `update` with variable `var` of its domain as `outer` and `inner`, which takes `n` steps.

    `keep` is the one of them that is to be a dim: its range depends on no other.
    """
    chosen = next(r for r in update.domain if r.name == var)
    extent = build.sub(chosen.hi, chosen.lo)
    o, i = Var(int64, outer), Var(int64, inner)
    value = build.add(build.add(chosen.lo, build.mul(o, n)), i)
    steps = _int(n) if keep == inner else build.minimum(_int(n), build.sub(extent, build.mul(o, n)))
    parts = (Range(outer, _int(0), build.floordiv(build.add(extent, n - 1), n)), Range(inner, _int(0), steps))
    changed = _substituted(update, {var: value})
    domain = tuple(p for r in changed.domain for p in (parts if r.name == var else (r,)))
    inside = build.less(value, chosen.hi)
    where = changed.where
    if where is not None and reads((where,)):  # data past the end are not asked for
        where = build.select(inside, where, build.const(False, bool_))
    return replace(changed, domain=domain, where=inside if where is None else build.both(where, inside))


def factor(pipeline: Pipeline, f: Func, update: int, how: Combine, var: str, new: str, name: str) -> Pipeline:
    """Return `pipeline` where update number `update` of `f` combines a new Func `name` over its first dim `new`.

    `var` is the variable of the domain that becomes `new`; its range depends on no other.
    """
    old = f.updates[update]
    chosen = next(r for r in old.domain if r.name == var)
    u = Var(int64, new)
    (dtype,) = f.dtypes
    moved = _substituted(
        replace(old, domain=tuple(r for r in old.domain if r.name != var)), {var: u}, {f.name: (name, u)}
    )
    plain = [isinstance(i, Var) and i.name == d for i, d in zip(old.index, f.dims, strict=True)]
    sizes = f.shape or (None,) * len(f.dims)
    shape = tuple(
        Size(int64, f.name, d) if s is None and not plain[d] and f.name in pipeline.outputs else s
        for d, s in enumerate(sizes)
    )
    part = Func(
        name, (new, *f.dims), f.dtypes, (build.identity(how.op, dtype),),
        (replace(moved, index=(u, *moved.index)),), (None, *shape), frozenset(), f.fp, f.span,
    )  # fmt: skip
    cell = tuple(Var(int64, d) for d in f.dims)
    joined = Binary(dtype, how.op, Read(dtype, f.name, cell), Read(dtype, name, (u, *cell)), span=old.span)
    merge = Update(cell, (joined,), (Range(new, chosen.lo, chosen.hi),), None, old.span)
    changed = replace(f, updates=(*f.updates[:update], merge, *f.updates[update + 1 :]))
    at = next(k for k, g in enumerate(pipeline.funcs) if g.name == f.name)
    return replace(pipeline, funcs=(*pipeline.funcs[:at], part, changed, *pipeline.funcs[at + 1 :]))


def _substituted(
    update: Update, new: Mapping[str, Expr], funcs: Mapping[str, tuple[str, Expr]] | None = None
) -> Update:
    """Return `update` with variables replaced, and reads of `funcs` made reads of others, at one more index."""

    def rule(node: Expr) -> Expr:
        match node:
            case Var(name=name) if name in new:
                return new[name]
            case Read(source=source, index=index) if funcs and source in funcs:
                other, first = funcs[source]
                return replace(node, source=other, index=(first, *index))
            case _:
                return node

    bounds = [e for r in update.domain for e in (r.lo, r.hi)]
    where = [] if update.where is None else [update.where]
    made = rewrite_all((*update.index, *update.values, *bounds, *where), rule)
    at, last = len(update.index), len(update.index) + len(update.values)
    ranges = tuple(
        Range(r.name, made[last + 2 * k], made[last + 2 * k + 1]) for k, r in enumerate(update.domain)
    )  # fmt: skip
    return Update(
        made[:at], made[at:last], ranges, made[-1] if where else None, update.span
    )  # fmt: skip


def _int(value: int) -> Expr:
    return build.const(value, int64)
