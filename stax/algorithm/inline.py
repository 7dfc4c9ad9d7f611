"""Put the definitions of chosen Funcs where they are read.

before                              after
    f[x] = a[x] * 2                     g[x] = a[x] * 2 + a[x + 1] * 2
    g[x] = f[x] + f[x + 1]

Needs: the chosen Funcs have no updates, do not read themselves and are no outputs.
Gives: a pipeline without them, and without Funcs that nothing reads any more; equal reads share one expression.
Method: from the readers down, each Func once for each index it is read at, so that a chain of stages that all read
their producer twice stays small: `x + 1 + 1` and `x + 2` are one index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from stax.algorithm.nodes import Func, Pipeline, Range, Update
from stax.errors import ScheduleError
from stax.expr import build
from stax.expr.affine import Algebra
from stax.expr.nodes import Binary, Expr, Read, Var
from stax.expr.number import Numbering
from stax.expr.walk import children, reads, substitute, with_children

MOST_COPIES = 20_000
Key = tuple[str, int, tuple[int, ...]]


def inline(pipeline: Pipeline, chosen: AbstractSet[str]) -> Pipeline:
    """Return `pipeline` with the Funcs named in `chosen` inlined."""
    if not chosen:
        return pipeline
    inliner = _Inliner({f.name: f for f in pipeline.funcs if f.name in chosen})
    kept = [_inlined(f, inliner) for f in pipeline.funcs if f.name not in chosen]
    reached = _reached(pipeline, kept)
    names = {f.name for f in reached}
    groups = tuple(tuple(n for n in group if n in names) for group in pipeline.groups)
    return replace(pipeline, funcs=reached, groups=tuple(g for g in groups if len(g) > 1))


def _reached(pipeline: Pipeline, kept: list[Func]) -> tuple[Func, ...]:
    """Return the Funcs below the outputs."""
    known = {f.name: f for f in kept}
    reached: set[str] = set()
    pending = list(pipeline.outputs)
    while pending:
        name = pending.pop()
        if name in known and name not in reached:
            reached.add(name)
            pending += {r.source for r in reads(roots(known[name]))}
    return tuple(f for f in kept if f.name in reached)


def _inlined(f: Func, inliner: _Inliner) -> Func:
    new = iter(inliner.of(roots(f)))
    values = tuple(next(new) for _ in f.values)
    return replace(f, values=values, updates=tuple(_update(u, new) for u in f.updates))


class _Inliner:
    """Replaces reads of `bodies`; what was made for an index is kept."""

    def __init__(self, bodies: Mapping[str, Func]) -> None:
        self._bodies = bodies
        self._numbering, self._algebra = Numbering(), Algebra()
        self._done: dict[int, tuple[Expr, Expr]] = {}
        self._made: dict[Key, Expr] = {}

    def of(self, roots: list[Expr]) -> list[Expr]:
        """Return `roots` without reads of the bodies."""
        pending: list[tuple[Expr, Expr | None, Key | None]] = [(root, None, None) for root in reversed(roots)]
        while pending:
            node, body, key = pending[-1]
            if id(node) in self._done:
                pending.pop()
            elif body is not None and key is not None:
                pending.pop()
                self._made[key] = self._done[id(body)][1]
                self._done[id(node)] = node, self._made[key]
            elif new := [c for c in children(node) if id(c) not in self._done]:
                pending += [(c, None, None) for c in new]
            else:
                pending.pop()
                self._replace(node, pending)
        return [self._done[id(root)][1] for root in roots]

    def _replace(self, node: Expr, pending: list[tuple[Expr, Expr | None, Key | None]]) -> None:
        fresh = with_children(node, tuple(self._done[id(c)][1] for c in children(node)))
        if not (isinstance(fresh, Read) and fresh.source in self._bodies):
            self._done[id(node)] = node, fresh
            return
        index = tuple(self._normal(i) for i in fresh.index)
        key = (fresh.source, fresh.part, tuple(self._numbering.of(i) for i in index))
        if key in self._made:
            self._done[id(node)] = node, self._made[key]
            return
        if len(self._made) >= MOST_COPIES:
            raise ScheduleError(
                f"inlining `{fresh.source}` and the Funcs around it makes more than {MOST_COPIES:,} copies of them",
                [(fresh.span, "one read of it")],
                ["a Func that is inlined is copied for each index at which it is read, and its readers are copied too"],
                f"s[{fresh.source!r}].compute_root()",
            )
        f = self._bodies[fresh.source]
        body = substitute(f.values[fresh.part], dict(zip(f.dims, index, strict=True)))
        pending += [(node, body, key), (body, None, None)]

    def _normal(self, index: Expr) -> Expr:
        """Return `index` as a Var plus a constant where it is one."""
        if not isinstance(index, Binary):
            return index
        found = self._algebra.of(index)
        name = self._algebra.name(found - found.const)
        return index if name is None else build.add(Var(index.dtype, name), found.const)


def roots(f: Func) -> list[Expr]:
    """Return all expressions of `f`, stage by stage."""
    found: list[Expr] = list(f.values)
    for u in f.updates:
        found += [*u.index, *u.values, *(e for r in u.domain for e in (r.lo, r.hi)), *([u.where] if u.where else [])]
    return found


def _update(u: Update, fresh: Iterator[Expr]) -> Update:
    index = tuple(next(fresh) for _ in u.index)
    values = tuple(next(fresh) for _ in u.values)
    domain = tuple(Range(r.name, next(fresh), next(fresh)) for r in u.domain)
    return replace(u, index=index, values=values, domain=domain, where=next(fresh) if u.where else None)
