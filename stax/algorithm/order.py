"""In which order the values of a recurrence can be computed, as far as distances by dim say; `poly` is asked for more.

Self-reads lie at earlier indices, the dims compared in some order, some of them downwards. A group of Funcs that read
each other steps its first dim together, or its first dims, and members may lag behind others. Method: signs of affine
differences between the index that is read and the one that is defined; start values, `select(dim == e, ...)`, count
with dim = e.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from stax.algorithm.domain import fixed_dims, inner_values
from stax.algorithm.nodes import Func
from stax.errors import DefinitionError, UnsupportedError
from stax.expr import walk
from stax.expr.affine import Affine, Algebra
from stax.expr.nodes import Cast, Expr, Param, Read, Select, Size, Var

Limits = Mapping[str, tuple[float, float]]
"""What is known of Params, by name: the least and the greatest value."""


@dataclass(frozen=True, slots=True)
class Step:
    """A read of a Func, and how far it lies from the index being defined; `main` outside start values."""

    read: Read
    distance: tuple[Affine, ...]
    main: bool


def order_self(func: Func, limits: Limits) -> Func:
    """Return `func` with the dims that it must run downwards, and the order of its dims where that is another one.

    `order` is None where none was seen.
    """
    algebra = Algebra()
    steps = list(_steps(func, {func.name}, algebra))
    for step in steps:
        if step.main:
            _needs_shape(func, func, step)
    found: list[tuple[str, int]] = []
    left, dims = steps, list(func.dims)
    while dims:
        chosen = next(
            ((d, w) for d in dims if (w := _way(left, func.dims.index(d), algebra, limits)) is not None), None
        )
        if chosen is None:
            break
        found.append(chosen)
        k = func.dims.index(chosen[0])
        left = [s for s in left if _sign(s.distance[k], algebra, limits) == 0]
        dims.remove(chosen[0])
    same = [s for s in left if all(d == Affine(0) for d in s.distance)]
    if same:
        raise DefinitionError(
            f"`{func.name}` is defined by its own value at the same index",
            [(same[0].read.span, "this is what is being defined")],
        )
    if dims:
        return replace(func, order=None)
    backwards = frozenset(d for d, way in found if way > 0)
    plain = [d for d, _ in found] == list(func.dims)
    return replace(func, backwards=backwards, order=() if plain else tuple(((d, -w or 1),) for d, w in found))


def _way(steps: Sequence[Step], k: int, algebra: Algebra, limits: Limits) -> int | None:
    """Return on which side all of `steps` read along dim `k`: -1 or 1, or 0; None where that is not one side."""
    signs = {_sign(s.distance[k], algebra, limits) for s in steps} - {0}
    return None if None in signs or len(signs) > 1 else next(iter(signs), 0)


def order_group(funcs: Sequence[Func], limits: Limits) -> list[Func]:
    """Return the Funcs of a cycle in the order of one step, with how many of their first dims they step together.

    That is 0 where it was not found. Method: a step is of the first dim; Funcs that need each other in one take in
    the next. Where distances are constant, Funcs may lag some steps behind: longest paths, by Bellman and Ford.
    """
    names = {f.name for f in funcs}
    cycle = ", ".join(f"`{f.name}`" for f in funcs)
    algebra = Algebra()
    by_name = {f.name: f for f in funcs}
    edges: list[Edge] = []
    for f in funcs:
        if not f.dims:
            raise DefinitionError(f"{cycle} read each other without an index to step", [(f.span, "in this cycle")])
        for u in f.updates:
            for r in walk.reads([*u.values, *u.index, *([] if u.where is None else [u.where])]):
                if r.source in names - {f.name}:
                    raise UnsupportedError(
                        f"an update of `{f.name}` reads `{r.source}`, which reads `{f.name}`; "
                        "updates inside a cycle come with a later version",
                        [(r.span, "read here"), (u.span, "in this update")],
                    )
        for step in _steps(f, names, algebra):
            g = by_name[step.read.source]
            if step.main and g is not f:
                _needs_shape(f, g, step)
            edges.append(Edge(f.name, g.name, step.distance))
    for down in (False, True):
        ways = [_stepped(list(funcs), edges, down, algebra, limits)]
        ways += [_lagged(list(funcs), edges, down)] if ways[0] is None else []
        found = next((w for w in ways if w is not None), None)
        if found is not None:
            return found
    return [replace(f, together=0) for f in funcs]


@dataclass(frozen=True, slots=True)
class Edge:
    """A read of `source` by `reader`, both of one group or the same, and how far it lies, dim by dim."""

    reader: str
    source: str
    distance: tuple[Affine, ...]


def _stepped(
    funcs: list[Func],
    edges: Sequence[Edge],
    down: bool,
    algebra: Algebra,
    limits: Limits,
    lags: Mapping[str, int] | None = None,
) -> list[Func] | None:
    """Return the members in the order of a step that is as short as can be, None where there is none."""
    left, depth = list(edges), 0
    backwards: dict[str, set[str]] = {f.name: set() for f in funcs}
    for depth in range(min(len(f.dims) for f in funcs)):
        ahead = 1 if down and not depth else -1
        signs = [_sign(e.distance[depth], algebra, limits) for e in left]
        if depth:
            ahead = 1 if 1 in signs else -1
        if any(sign is None or sign == -ahead for sign in signs):
            return None
        if ahead > 0:
            for f in funcs:
                backwards[f.name].add(f.dims[depth])
        left = [e for e, sign in zip(left, signs, strict=True) if sign == 0]
        order = _in_step(funcs, [e for e in left if e.reader != e.source])
        if order is not None:
            steps = {f.name: depth + 1 for f in funcs}
            if any(f.order != () or (f.backwards & set(f.dims[: depth + 1])) - backwards[f.name] for f in funcs):
                return None
            return [replace(f, backwards=f.backwards | backwards[f.name], together=steps[f.name]) for f in order]
    return None


def _in_step(funcs: Sequence[Func], edges: Sequence[Edge]) -> list[Func] | None:
    """Return the members so that each comes after those that it reads in the same step; None where that is a cycle."""
    order: list[Func] = []
    left = list(funcs)
    while left:
        names = {f.name for f in left}
        ready = next((f for f in left if not any(e.reader == f.name and e.source in names for e in edges)), None)
        if ready is None:
            return None
        order.append(ready)
        left.remove(ready)
    return order


def _lagged(funcs: list[Func], edges: Sequence[Edge], down: bool) -> list[Func] | None:
    """Return the members with the steps that each lags behind, where all move by constants along their first dims."""
    if any(e.distance[0].terms for e in edges):
        return None
    lag = {f.name: 0 for f in funcs}
    for _ in range(len(funcs) + 1):
        before = dict(lag)
        for e in edges:
            d = -e.distance[0].const if down else e.distance[0].const
            lag[e.reader] = max(lag[e.reader], lag[e.source] + d)
        if lag == before:
            break
    else:
        return None
    behind = [(e, e.distance[0].const * (-1 if down else 1) + lag[e.source] - lag[e.reader]) for e in edges]
    order = _in_step(funcs, [e for e, gap in behind if gap == 0 and e.reader != e.source])
    if order is None or any(f.order != () for f in funcs):
        return None
    least = min(lag.values())
    made = [replace(f, lag=lag[f.name] - least) for f in order]
    return [replace(f, backwards=f.backwards | {f.dims[0]}) for f in made] if down else made


def _steps(func: Func, sources: set[str], algebra: Algebra) -> Iterator[Step]:
    """Yield the reads of `sources` by the definition of `func`."""
    for root in inner_values(func):
        for part, known, main in _arms(root, func.dims):
            for r in walk.reads([part]):
                if r.source in sources:
                    own = (algebra.of(known.get(d, Var(r.index[0].dtype, d))) for d in func.dims)
                    yield Step(r, tuple(algebra.of(i) - o for i, o in zip(r.index, own, strict=False)), main)


def _arms(root: Expr, dims: Sequence[str]) -> Iterator[tuple[Expr, dict[str, Expr], bool]]:
    """Yield the start values of a definition with the dims they fix, then the rest."""
    while isinstance(root, Select):
        fixed = fixed_dims(root.cond, dims)
        if fixed is None:
            break
        yield root.yes, fixed, False
        root = root.no
    yield root, {}, True


def least_and_greatest(a: Affine, algebra: Algebra, limits: Limits) -> tuple[float, float]:
    """Return what `a` is never below and never above, sizes being at least 0."""
    low = high = float(a.const)
    for number, factor in a.terms:
        lo, hi = _range(algebra.atom(number), limits)
        low += factor * (lo if factor > 0 else hi)
        high += factor * (hi if factor > 0 else lo)
    return low, high


def _range(atom: Expr, limits: Limits) -> tuple[float, float]:
    while isinstance(atom, Cast) and atom.dtype.is_integer and atom.value.dtype.is_integer:
        atom = atom.value
    match atom:
        case Size():
            return 0, math.inf
        case Param(name=name):
            lo, hi = limits.get(name, (-math.inf, math.inf))
            return (math.ceil(lo) if math.isfinite(lo) else lo), (math.floor(hi) if math.isfinite(hi) else hi)
        case _:
            return -math.inf, math.inf


def _sign(distance: Affine, algebra: Algebra, limits: Limits) -> int | None:
    low, high = least_and_greatest(distance, algebra, limits)
    if low > 0:
        return 1
    if high < 0:
        return -1
    return 0 if low == high == 0 else None


def _needs_shape(reader: Func, func: Func, step: Step) -> None:
    for k, at in enumerate(step.read.index):
        still = isinstance(at, Var) and at.name in reader.dims and (func is not reader or at.name == func.dims[k])
        if not still and func.shape[k] is None:
            raise DefinitionError(
                f"the recurrence `{func.name}` moves along `{func.dims[k]}`, where it has no declared extent",
                [(step.read.span, "read here"), (func.span, "while this is defined")],
                (),
                f'declare it: sx.Func("{func.name}", shape=(...)), with None for dims that every read keeps',
            )
