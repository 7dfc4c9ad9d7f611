"""A short digest of a program, by which a saved schedule knows whether it has changed."""

from __future__ import annotations

import hashlib
from dataclasses import fields

from stax.algorithm.nodes import Pipeline
from stax.expr import walk
from stax.expr.nodes import Expr


def fingerprint(pipeline: Pipeline) -> str:
    """Return 16 hex digits that depend on what `pipeline` computes and on its names, not on where it was written."""
    text = hashlib.sha256()

    def say(*parts: object) -> None:
        text.update(("\x1f".join(map(str, parts)) + "\n").encode("utf-8", "surrogatepass"))

    for f in pipeline.inputs:
        say("input", repr(f.name), f.dtype.name, f.dims)
    for s in pipeline.scalars:
        say("param", repr(s.name), s.dtype.name, s.default, s.low, s.high)
    for t in pipeline.tables:
        say("table", repr(t.name), t.dtype.name, t.array.shape)
        text.update(t.array.tobytes())
    roots: list[Expr] = [e for f in pipeline.inputs for e in f.sizes if e is not None]
    for f in pipeline.funcs:
        say("func", repr(f.name), f.dims, [d.name for d in f.dtypes], sorted(f.backwards), f.fp, len(f.updates))
        say([None if e is None else "shape" for e in f.shape], *(["where"] if f.where is not None else []))
        roots += [*(e for e in (*f.shape, f.where) if e is not None), *f.values]
        for u in f.updates:
            say("update", [r.name for r in u.domain], u.where is not None)
            roots += [*u.index, *u.values, *(e for r in u.domain for e in (r.lo, r.hi))]
            roots += [] if u.where is None else [u.where]
    number: dict[int, int] = {}
    for node in walk.postorder(roots):
        number[id(node)] = len(number)
        own = [getattr(node, f.name) for f in fields(node) if f.name != "span"]
        children = {id(c) for c in walk.children(node)}
        plain = [repr(v) for v in own if id(v) not in children and not isinstance(v, tuple)]
        say(type(node).__name__, *plain, [number[id(c)] for c in walk.children(node)])
    say("roots", [number[id(r)] for r in roots])
    say(pipeline.outputs, pipeline.arguments, pipeline.groups)
    return text.hexdigest()[:16]
