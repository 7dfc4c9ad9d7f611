"""Give some readers of a Func one of their own: a copy of its values, or its definition once more.

before                              cache_read("p", "g")                clone("p", "g")
    f[x] = a[x] * 2                     f[x] = a[x] * 2                     f[x] = a[x] * 2
    g[x] = f[x] + f[x + 1]              p[x] = f[x]                         p[x] = a[x] * 2
    h[x] = f[x]                         g[x] = p[x] + p[x + 1]              g[x] = p[x] + p[x + 1]
                                        h[x] = f[x]                         h[x] = f[x]

Needs: readers that read it and are in no cycle with it. Gives: the same values.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from stax.algorithm.nodes import Func, Input, Pipeline, Range, Update
from stax.dtypes import int64
from stax.expr import build
from stax.expr.nodes import Expr, Read, Size, Var
from stax.expr.walk import rewrite_all


def cache_read(pipeline: Pipeline, source: Func | Input, name: str, readers: AbstractSet[str]) -> Pipeline:
    """Return `pipeline` where `readers` read a new Func `name` that holds the values of `source`."""
    index = tuple(Var(int64, d) for d in source.dims)
    dtypes = source.dtypes if isinstance(source, Func) else (source.dtype,)
    values: tuple[Expr, ...] = tuple(Read(t, source.name, index, part) for part, t in enumerate(dtypes))
    if isinstance(source, Input):  # a reader that runs over nothing may ask for more than there is
        t = source.dtype
        nothing = build.const(False if t.is_bool else 0.0 if t.is_float else 0, t)
        for d, i in enumerate(index):
            for inside in (build.less_equal(build.const(0, int64), i), build.less(i, Size(int64, source.name, d))):
                values = (build.select(inside, values[0], nothing),)
    made = Func(name, source.dims, dtypes, values, span=source.span)
    return _with(pipeline, source.name, made, readers)


def clone(pipeline: Pipeline, f: Func, name: str, readers: AbstractSet[str]) -> Pipeline:
    """Return `pipeline` where `readers` read a new Func `name` that is defined as `f` is."""
    return _with(pipeline, f.name, replace(_reading(f, f.name, name), name=name), readers)


def _with(pipeline: Pipeline, source: str, made: Func, readers: AbstractSet[str]) -> Pipeline:
    funcs = [_reading(f, source, made.name) if f.name in readers else f for f in pipeline.funcs]
    at = next((k + 1 for k, f in enumerate(funcs) if f.name == source), 0)
    return replace(pipeline, funcs=(*funcs[:at], made, *funcs[at:]))


def _reading(f: Func, source: str, other: str) -> Func:
    """Return `f` reading `other` where it read `source`."""

    def rule(node: Expr) -> Expr:
        return replace(node, source=other) if isinstance(node, Read) and node.source == source else node

    return rewritten(f, rule)


def rewritten(f: Func, rule: Callable[[Expr], Expr]) -> Func:
    """Return `f` with `rule` applied to each node of it once."""
    roots: list[Expr] = list(f.values)
    for u in f.updates:
        roots += [*u.index, *u.values, *(e for r in u.domain for e in (r.lo, r.hi)), *([u.where] if u.where else [])]
    new = iter(rewrite_all(roots, rule))
    values = tuple(next(new) for _ in f.values)
    updates: list[Update] = []
    for u in f.updates:
        index, made = tuple(next(new) for _ in u.index), tuple(next(new) for _ in u.values)
        domain = tuple(Range(r.name, next(new), next(new)) for r in u.domain)
        updates.append(Update(index, made, domain, next(new) if u.where else None, u.span))
    return replace(f, values=values, updates=tuple(updates))
