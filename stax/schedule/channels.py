"""Which Funcs hold pixels: their last dim is a few channels, told by a constant extent.

It is a guess about speed, never about meaning: a constant extent of an Input or of a declared shape is handed to the
Funcs that read it in place, then back to those they read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stax.algorithm.nodes import Func, Pipeline
from stax.bounds.accesses import Access
from stax.expr import build
from stax.expr.affine import Algebra
from stax.expr.nodes import Expr
from stax.loops.walk import MOST_CHANNELS


def channels(pipeline: Pipeline, made: Mapping[tuple[str, int], Sequence[Access]], algebra: Algebra) -> dict[str, int]:
    """Return, by name, how many channels the Funcs of pixels have; `made` are the accesses of each stage."""
    found: dict[str, int] = {}
    given = dict(zip(pipeline.outputs, pipeline.shapes, strict=False))
    for f in pipeline.funcs:
        shape = given.get(f.name) or f.shape
        extent = _few(shape[-1]) if shape else None
        if extent is not None:
            found[f.name] = extent
    for f in pipeline.funcs:
        for access in _reads(f, made):
            extent = _read_extent(pipeline, f, access, algebra, found)
            if extent is not None:
                found.setdefault(f.name, extent)
    for f in reversed(pipeline.funcs):
        for access in _reads(f, made) if f.name in found else ():
            if access.index and algebra.name(access.index[-1]) == f.dims[-1]:
                found.setdefault(access.source, found[f.name])
    return found


def _reads(f: Func, made: Mapping[tuple[str, int], Sequence[Access]]) -> list[Access]:
    stages = (made[f.name, stage] for stage in range(len(f.updates) + 1))
    return [a for found in stages for a in found if a.read is not None and a.source != f.name]


def _read_extent(pipeline: Pipeline, f: Func, access: Access, algebra: Algebra, found: Mapping[str, int]) -> int | None:
    """Return how many channels `f` has by a read whose index is its last dim, of something as long."""
    if not f.dims:
        return None
    places = [k for k, i in enumerate(access.index) if algebra.name(i) == f.dims[-1]]
    sizes = next((i.sizes for i in pipeline.inputs if i.name == access.source), None)
    tables = next((t.array.shape for t in pipeline.tables if t.name == access.source), None)
    for k in places:
        if sizes is not None and _few(sizes[k]) is not None:
            return _few(sizes[k])
        if tables is not None and 1 < tables[k] <= MOST_CHANNELS:
            return tables[k]
        if access.source in found and k == len(access.index) - 1:
            return found[access.source]
    return None


def _few(extent: Expr | None) -> int | None:
    n = None if extent is None else build.integer(extent)
    return n if n is not None and 1 < n <= MOST_CHANNELS else None
