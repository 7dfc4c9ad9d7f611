"""Put the definitions of chosen Funcs where they are read.

before                              after
    f[x] = a[x] * 2                     g[x] = a[x] * 2 + a[x + 1] * 2
    g[x] = f[x] + f[x + 1]

Needs: the chosen Funcs have no updates, do not read themselves and are no outputs.
Gives: a pipeline without them; equal reads share one expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

from stax.algorithm.nodes import Func, Pipeline, Range, Update
from stax.expr.nodes import Expr, Read
from stax.expr.number import Numbering
from stax.expr.walk import rewrite_all, substitute


def inline(pipeline: Pipeline, chosen: AbstractSet[str]) -> Pipeline:
    """Return `pipeline` with the Funcs named in `chosen` inlined."""
    if not chosen:
        return pipeline
    bodies: dict[str, Func] = {}
    kept: list[Func] = []
    for f in pipeline.funcs:
        fresh = _inlined(f, bodies)
        if f.name in chosen:
            bodies[f.name] = fresh
        else:
            kept.append(fresh)
    return replace(pipeline, funcs=tuple(kept))


def _inlined(f: Func, bodies: dict[str, Func]) -> Func:
    numbering = Numbering()
    known: dict[tuple[str, int, tuple[int, ...]], Expr] = {}

    def rule(node: Expr) -> Expr:
        if not (isinstance(node, Read) and node.source in bodies):
            return node
        key = (node.source, node.part, tuple(numbering.of(i) for i in node.index))
        if key not in known:
            body = bodies[node.source]
            known[key] = substitute(body.values[node.part], dict(zip(body.dims, node.index, strict=True)))
        return known[key]

    roots: list[Expr] = list(f.values)
    for u in f.updates:
        roots += [*u.index, *u.values, *(e for r in u.domain for e in (r.lo, r.hi)), *([u.where] if u.where else [])]
    new = iter(rewrite_all(roots, rule))
    values = tuple(next(new) for _ in f.values)
    return replace(f, values=values, updates=tuple(_update(u, new) for u in f.updates))


def _update(u: Update, fresh: Iterator[Expr]) -> Update:
    index = tuple(next(fresh) for _ in u.index)
    values = tuple(next(fresh) for _ in u.values)
    domain = tuple(Range(r.name, next(fresh), next(fresh)) for r in u.domain)
    return replace(u, index=index, values=values, domain=domain, where=next(fresh) if u.where else None)
