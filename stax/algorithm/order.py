"""In which order the values of a recurrence can be computed.

Accepted are self-reads at lexicographically earlier indices, where some dims may run downwards. A group of Funcs that
read each other steps its first dim together. Method: signs of affine differences between the index that is read and
the one that is defined; start values, `select(dim == e, ...)`, count with dim = e.
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
    """Return `func` with the dims that it must run downwards; refuse where no order is found."""
    algebra = Algebra()
    steps = list(_steps(func, {func.name}, algebra))
    for step in steps:
        if step.main:
            _needs_shape(func, func, step)
    backwards: set[str] = set()
    left = steps
    for k, dim in enumerate(func.dims):
        signs = [_sign(s.distance[k], algebra, limits) for s in left]
        unknown = next((s for s, sign in zip(left, signs, strict=True) if sign is None), None)
        if unknown is not None:
            raise UnsupportedError(
                f"a recurrence that reads `{func.name}` at no fixed step along `{dim}` comes with a later version",
                [(unknown.read.span, "read here"), (func.span, "while this is defined")],
                (),
                "reads one or more whole steps earlier in an outer dim may be anywhere in the inner ones",
            )
        if -1 in signs and 1 in signs:
            _no_order(func, dim, left, signs)
        if 1 in signs:
            backwards.add(dim)
        left = [s for s, sign in zip(left, signs, strict=True) if sign == 0]
    if left:
        raise DefinitionError(
            f"`{func.name}` is defined by its own value at the same index",
            [(left[0].read.span, "this is what is being defined")],
        )
    return replace(func, backwards=frozenset(backwards)) if backwards else func


def order_group(funcs: Sequence[Func], limits: Limits) -> list[Func]:
    """Return the Funcs of a cycle in the order of one step of their first dim; refuse where there is none."""
    names = {f.name for f in funcs}
    cycle = ", ".join(f"`{f.name}`" for f in funcs)
    algebra = Algebra()
    down = any(f.dims and f.dims[0] in f.backwards for f in funcs)
    same_step: dict[str, set[str]] = {f.name: set() for f in funcs}
    by_name = {f.name: f for f in funcs}
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
        for step in _steps(f, names - {f.name}, algebra):
            g = by_name[step.read.source]
            if step.main:
                _needs_shape(f, g, step)
            sign = _sign(step.distance[0], algebra, limits)
            if sign is None or (sign == 1 and not down) or (sign == -1 and down):
                raise UnsupportedError(
                    f"{cycle} read each other, and `{f.name}` reads `{g.name}` at another step than the same or an "
                    f"earlier one along `{f.dims[0]}`",
                    [(step.read.span, "read here"), (f.span, "while this is defined")],
                    (),
                    "Funcs that read each other step their first dims together",
                )
            if sign == 0:
                same_step[f.name].add(g.name)
    order: list[Func] = []
    left = list(funcs)
    while left:
        ready = [f for f in left if not same_step[f.name] & {g.name for g in left}]
        if not ready:
            stuck = " -> ".join(f"`{f.name}`" for f in left)
            raise DefinitionError(
                f"{stuck} need each other at the same step",
                [(f.span, "in this cycle") for f in left],
                (),
                "let one of them read the step before",
            )
        order.append(ready[0])
        left.remove(ready[0])
    return [replace(f, backwards=f.backwards | {f.dims[0]}) for f in order] if down else order


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


def _no_order(func: Func, dim: str, left: list[Step], signs: list[int | None]) -> None:
    before = next(s for s, sign in zip(left, signs, strict=True) if sign == -1)
    after = next(s for s, sign in zip(left, signs, strict=True) if sign == 1)
    places = [(before.read.span, "an earlier index"), (after.read.span, "a later one")]
    a, b = _constants(before), _constants(after)
    if a is not None and b is not None and _opposite(a, b):
        one = f"{func.name}[{', '.join('0' for _ in a)}]"
        other = f"{func.name}[{', '.join(str(x) for x in b)}]"
        raise DefinitionError(
            f"`{func.name}` needs itself: there is no order of `{dim}` in which each value comes after those it reads",
            places,
            (f"{one} reads {other}, and that leads back to {one}",),
            "read the step before in an outer dim, such as u[t - 1, x + 1]",
        )
    raise UnsupportedError(
        f"a recurrence that reads `{func.name}` both before and after along its first moving dim `{dim}` "
        "comes with a later version",
        places,
    )


def _constants(step: Step) -> list[int] | None:
    return None if any(d.terms for d in step.distance) else [d.const for d in step.distance]


def _opposite(a: list[int], b: list[int]) -> bool:
    """Return whether some number of steps `a` and some of steps `b` end where they began."""
    k = next(i for i, x in enumerate(a) if x)
    return all(x * b[k] == y * a[k] for x, y in zip(a, b, strict=True)) and a[k] * b[k] < 0
