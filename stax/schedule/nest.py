"""The loops of one stage, as directives change them.

A nest begins with one serial loop for each of its roots. Loop names are local to it: a directive consumes the loops it
names, a new name must not be alive, and a consumed one is free again. So `derivations` rebind names, and are undone
from last to first: the values of the loops give, in the end, the values of the roots.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from stax.algorithm.domain import plain_dims
from stax.algorithm.nodes import Func
from stax.errors import ScheduleError
from stax.loops.nodes import LoopKind
from stax.schedule import directives as said
from stax.schedule.directives import LoopDirective, StageDirective
from stax.schedule.directives import Tail as Tail
from stax.schedule.unimodular import determinant, inverse
from stax.source import Span

MOST = 2**31 - 1
MOST_FACTOR = 1000
MOST_HINT = 1024
MOST_WARPS = 32


@dataclass(frozen=True, slots=True)
class Split:
    """`parent` counts `outer * factor + inner`, from the start of its range."""

    parent: str
    outer: str
    inner: str
    factor: int
    tail: Tail


@dataclass(frozen=True, slots=True)
class Fuse:
    """`fused` runs through `inner` for each `outer`."""

    outer: str
    inner: str
    fused: str


@dataclass(frozen=True, slots=True)
class Skew:
    """`new` counts `parent + factor * along`, each from the start of its range; `along` stays."""

    parent: str
    along: str
    factor: int
    new: str


@dataclass(frozen=True, slots=True)
class Affine:
    """Number k of `new` counts a sum of `parents`, each from the start of its range; `inverse` gives them back."""

    parents: tuple[str, ...]
    inverse: tuple[tuple[int, ...], ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop that is alive; `reversed` runs against the order it would have.

    With `apart`, each of its iterations has an accumulator of its own; with `cut`, it is cut where conditions change.
    With `upto`, it has as many lanes as there are iterations, up to that number.
    """

    name: str
    kind: LoopKind
    reversed: bool = False
    apart: bool = False
    cut: bool = False
    upto: int | None = None


@dataclass(frozen=True, slots=True)
class Nest:
    """`loops`, outermost first, made from `roots` by `derivations` in the order they were applied.

    `permits` are the directives that allow more of the stage as a whole.
    """

    roots: tuple[str, ...]
    derivations: tuple[Split | Fuse | Skew | Affine, ...]
    loops: tuple[Loop, ...]
    permits: tuple[StageDirective, ...] = ()

    def place(self, name: str) -> int | None:
        """Return how many loops stand outside the loop `name`; None where none has that name."""
        for k, loop in enumerate(self.loops):
            if loop.name == name:
                return k
        return None


def initial(func: Func, stage: int) -> Nest:
    """Return the loops of a stage that no directive has touched.

    Stage 0 has the dims of `func`. Stage k + 1 has those dims that update k leaves in their place, then the variables
    of its domain.
    """
    if stage == 0:
        roots = func.dims
    else:
        update = func.updates[stage - 1]
        roots = (*plain_dims(func, update), *(r.name for r in update.domain))
    return Nest(roots, (), tuple(Loop(name, LoopKind.SERIAL) for name in roots))


def apply(nest: Nest, directive: LoopDirective | StageDirective) -> Nest:
    """Return `nest` as it is after `directive`.

    Raises ScheduleError where the directive names a loop that is not alive, makes one that is, repeats a name, has
    lists of different lengths or a factor that is not a positive int, consumes a loop whose kind would be lost, or
    fuses loops that are not directly nested: no later line could repair that.
    """
    match directive:
        case said.Split(var=var, outer=outer, inner=inner, factor=factor, tail=tail, span=span):
            return _split(nest, Split(var, outer, inner, factor, tail), span)
        case said.Tile():
            return _tile(nest, directive)
        case said.Fuse(outer=outer, inner=inner, fused=fused, span=span):
            return _fuse(nest, Fuse(outer, inner, fused), span)
        case said.Reorder(vars=names, span=span):
            return _reorder(nest, names, span)
        case said.Reverse(var=var, span=span):
            at = _find(nest, var, span)
            loop = replace(nest.loops[at], reversed=not nest.loops[at].reversed)
            return replace(nest, loops=(*nest.loops[:at], loop, *nest.loops[at + 1 :]))
        case said.Skew(var=var, along=along, factor=factor, new=new, span=span):
            return _skew(nest, Skew(var, along, factor, var if new is None else new), span)
        case said.Affine():
            return _affine(nest, directive)
        case said.Vectorize(var=var, upto=int(upto), span=span):
            return _any_lanes(_marked(nest, var, None, LoopKind.VECTOR, span), var, upto, span)
        case said.Vectorize(var=var, n=n, span=span):
            return _marked(nest, var, n, LoopKind.VECTOR, span)
        case said.Partition(var=var, span=span):
            at = _find(nest, var, span)
            return replace(nest, loops=(*nest.loops[:at], replace(nest.loops[at], cut=True), *nest.loops[at + 1 :]))
        case said.Parallel(var=var, n=n, span=span):
            return _marked(nest, var, n, LoopKind.PARALLEL, span)
        case said.Unroll(var=var, n=n, span=span):
            return _marked(nest, var, n, LoopKind.UNROLL, span)
        case said.Accumulators(var=var, n=n, span=span):
            inner = f"{var}.acc"
            split = _split(nest, Split(var, var, inner, n, Tail.GUARD), span)
            made = Loop(inner, LoopKind.UNROLL, apart=True)
            return replace(split, loops=tuple(made if loop.name == inner else loop for loop in split.loops))
        case said.Reassociate() | said.Atomic() | said.Stream() | said.Specialize():
            return replace(nest, permits=(*nest.permits, directive))
        case said.Warps(n=n) | said.Stages(n=n) | said.Swizzle(n=n):
            if not 0 < n <= MOST_HINT:
                raise ScheduleError(f"a hint is a number from 1 to {MOST_HINT}, not {n}", [(directive.span, "here")])
            if isinstance(directive, said.Warps) and (n > MOST_WARPS or n & (n - 1)):
                few = min(MOST_WARPS, 1 << n.bit_length() - 1)
                raise ScheduleError(
                    f"a program has a power of two of warps, {MOST_WARPS} at most, and not {n}",
                    [(directive.span, "here")],
                    hint=f"warps({few})" if few == MOST_WARPS else f"warps({few}) or warps({2 * few})",
                )
            return replace(nest, permits=(*nest.permits, directive))
        case said.MatrixUnit(i=i, j=j, k=k, span=span):
            _distinct((i, j, k), "matrix_unit", span)
            for name in (i, j, k):
                _find(nest, name, span)
            return replace(nest, permits=(*nest.permits, directive))
        case _:
            assert_never(directive)


def followed(directive: LoopDirective | StageDirective) -> dict[str, str]:
    """Return, for each loop that `directive` consumes, the loop where a Func placed at it stands afterwards.

    It is the inner one of a split, whose iterations are the same instants, and the one loop of a fusion.
    """
    match directive:
        case said.Split(var=var, inner=inner):
            return {var: inner}
        case said.Tile(vars=names, inners=inners):
            return dict(zip(names, inners, strict=True))
        case said.Fuse(outer=outer, inner=inner, fused=fused):
            return {outer: fused, inner: fused}
        case said.Reorder() | said.Reverse() | said.Partition():
            return {}
        case said.Skew(var=var, new=new):
            return {} if new is None else {var: new}
        case said.Affine(vars=names, new=new):
            return {} if new is None else dict(zip(names, new, strict=True))
        case said.Vectorize(var=var, n=n) | said.Parallel(var=var, n=n) | said.Unroll(var=var, n=n):
            return {} if n is None else {var: inner_name(var)}
        case said.Accumulators(var=var):
            return {var: f"{var}.acc"}
        case said.Reassociate() | said.Atomic() | said.Stream() | said.Specialize():
            return {}
        case said.Warps() | said.Stages() | said.Swizzle() | said.MatrixUnit():
            return {}
        case _:
            assert_never(directive)


def inner_name(var: str) -> str:
    """Return the name of the inner loop that `vectorize(var, n)` and its like make."""
    return f"{var}.in"


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return a hint with those of `known` that read like `name`; None where none does."""
    found = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f"did you mean {' or '.join(map(repr, found))}?" if found else None


def missing_loop(name: str, stage: str, nest: Nest, span: Span | None) -> ScheduleError:
    """Return the error for a loop that is not alive; `stage` says whose loops are meant."""
    names = [loop.name for loop in nest.loops]
    consumed = {d.parent for d in nest.derivations if isinstance(d, Split | Skew)}
    consumed |= {n for d in nest.derivations if isinstance(d, Fuse) for n in (d.outer, d.inner)}
    consumed |= {n for d in nest.derivations if isinstance(d, Affine) for n in d.parents}
    what = "was consumed by an earlier directive" if name in consumed else "is not there"
    facts = [f"loops {'of ' + stage if stage else 'here'}, outermost first: {', '.join(names) or 'none'}"]
    near = closest(name, names)
    order = None if name in consumed else "a loop is there after the line that makes it, not before"
    hint = f"{near} ({order})" if near and order else near or order
    return ScheduleError(f"loop {name!r} {what}", [(span, "here")], facts, hint)


def _split(nest: Nest, split: Split, span: Span | None) -> Nest:
    at = _find(nest, split.parent, span)
    factor = split.factor
    if type(factor) is not int or not 0 < factor <= MOST:
        raise ScheduleError(f"a factor is an int from 1 to 2**31 - 1, not {factor!r}", [(span, "here")])
    kind = nest.loops[at].kind
    if kind not in (LoopKind.SERIAL, LoopKind.PARALLEL):
        raise _kept(nest.loops[at], "split", span)
    _fresh(nest, (split.parent,), (split.outer, split.inner), span)
    down = nest.loops[at].reversed
    cut = nest.loops[at].cut
    made = (Loop(split.outer, kind, down, cut=cut), Loop(split.inner, LoopKind.SERIAL, down, cut=cut))
    loops = (*nest.loops[:at], *made, *nest.loops[at + 1 :])
    return replace(nest, derivations=(*nest.derivations, split), loops=loops)


def _tile(nest: Nest, tile: said.Tile) -> Nest:
    span = tile.span
    lengths = {len(tile.vars), len(tile.outers), len(tile.inners), len(tile.sizes)}
    if len(lengths) != 1 or not tile.vars:
        raise ScheduleError("tile takes as many outer names, inner names and sizes as loops", [(span, "here")])
    _distinct(tile.vars, "tile", span)
    _distinct((*tile.outers, *tile.inners), "tile", span)
    for name in tile.vars:
        _find(nest, name, span)
    for var, outer, inner, size in zip(tile.vars, tile.outers, tile.inners, tile.sizes, strict=True):
        nest = _split(nest, Split(var, outer, inner, size, tile.tail), span)
    return _reorder(nest, (*tile.outers, *tile.inners), span)


def _fuse(nest: Nest, fuse: Fuse, span: Span | None) -> Nest:
    _distinct((fuse.outer, fuse.inner), "fuse", span)
    a, b = _find(nest, fuse.outer, span), _find(nest, fuse.inner, span)
    if b != a + 1:
        names = ", ".join(loop.name for loop in nest.loops)
        raise ScheduleError(
            f"fuse needs loop {fuse.outer!r} directly outside loop {fuse.inner!r}", [(span, "here")],
            [f"loops here, outermost first: {names}"], "reorder them first",
        )  # fmt: skip
    outer, inner = nest.loops[a], nest.loops[b]
    for loop, other in ((outer, inner), (inner, outer)):
        if loop.kind not in (LoopKind.SERIAL, LoopKind.PARALLEL) or (loop.kind, other.kind) == (
            LoopKind.PARALLEL,
            LoopKind.SERIAL,
        ):
            raise _kept(loop, "fused", span)
    _fresh(nest, (fuse.outer, fuse.inner), (fuse.fused,), span)
    if outer.reversed != inner.reversed:
        raise ScheduleError(
            f"loops {fuse.outer!r} and {fuse.inner!r} run opposite ways, and cannot be one", [(span, "here")],
            hint="reverse the fused loop",
        )  # fmt: skip
    made = (Loop(fuse.fused, outer.kind, outer.reversed, cut=outer.cut or inner.cut),)
    loops = (*nest.loops[:a], *made, *nest.loops[b + 1 :])
    return replace(nest, derivations=(*nest.derivations, fuse), loops=loops)


def _skew(nest: Nest, skew: Skew, span: Span | None) -> Nest:
    at = _find(nest, skew.parent, span)
    _find(nest, skew.along, span)
    if skew.parent == skew.along:
        raise ScheduleError(f"loop {skew.parent!r} cannot be skewed along itself", [(span, "here")])
    if type(skew.factor) is not int or not -MOST <= skew.factor <= MOST:
        raise ScheduleError(f"a skew is by an int below 2**31, not {skew.factor!r}", [(span, "here")])
    if nest.loops[at].kind is not LoopKind.SERIAL:
        raise _kept(nest.loops[at], "skewed", span)
    _fresh(nest, (skew.parent,), (skew.new,), span)
    made = replace(nest.loops[at], name=skew.new)
    loops = (*nest.loops[:at], made, *nest.loops[at + 1 :])
    return replace(nest, derivations=(*nest.derivations, skew), loops=loops)


def _affine(nest: Nest, affine: said.Affine) -> Nest:
    names, matrix, span = affine.vars, affine.matrix, affine.span
    new = names if affine.new is None else affine.new
    if not names or len(new) != len(names) or [len(row) for row in matrix] != [len(names)] * len(names):
        raise ScheduleError(
            f"affine takes a square matrix with a row for each of its loops, and as many names: {len(names)} loops "
            f"are given, and rows of {', '.join(str(len(row)) for row in matrix) or 'none'}",
            [(span, "here")],
        )
    _distinct(names, "affine", span)
    places = [_find(nest, name, span) for name in names]
    if any(not -MOST_FACTOR <= n <= MOST_FACTOR for row in matrix for n in row):
        raise ScheduleError(f"a factor of affine is an int from -{MOST_FACTOR} to {MOST_FACTOR}", [(span, "here")])
    for at in places:
        if nest.loops[at].kind is not LoopKind.SERIAL:
            raise _kept(nest.loops[at], "mapped", span)
    found = determinant(matrix)
    if abs(found) != 1:
        how = "some points would fall together" if not found else f"only one point in {abs(found)} would be a whole one"
        raise ScheduleError(
            f"the map of affine is no bijection of whole numbers: its determinant is {found}, and must be 1 or -1",
            [(span, "here")], [f"backwards, {how}" if found else how],
        )  # fmt: skip
    _fresh(nest, names, new, span)
    loops = list(nest.loops)
    for at, name in zip(places, new, strict=True):
        loops[at] = replace(loops[at], name=name)
    made = Affine(names, inverse(matrix), new)
    return replace(nest, derivations=(*nest.derivations, made), loops=tuple(loops))


def _reorder(nest: Nest, names: tuple[str, ...], span: Span | None) -> Nest:
    if not names:
        raise ScheduleError("reorder takes loops, outermost first", [(span, "here")])
    _distinct(names, "reorder", span)
    places = [_find(nest, name, span) for name in names]
    loops = list(nest.loops)
    for place, source in zip(sorted(places), places, strict=True):
        loops[place] = nest.loops[source]
    return replace(nest, loops=tuple(loops))


def _marked(nest: Nest, var: str, n: int | None, kind: LoopKind, span: Span | None) -> Nest:
    if n is not None:
        inner = inner_name(var)
        if nest.place(inner) is not None and nest.place(var) is not None:
            raise ScheduleError(
                f"the inner loop would be called {inner!r}, and there is one already", [(span, "here")],
                hint=f"name it yourself: split({var!r}, {var!r}, 'another', {n}), then the directive without a number",
            )  # fmt: skip
        nest = _split(nest, Split(var, var, inner, n, Tail.GUARD), span)
        var = var if kind is LoopKind.PARALLEL else inner
    at = _find(nest, var, span)
    if nest.loops[at].kind not in (LoopKind.SERIAL, kind):
        raise ScheduleError(
            f"loop {var!r} is {_word(nest.loops[at].kind)} already, and cannot be {_word(kind)} too", [(span, "here")],
            hint="split it, and say each of one part",
        )  # fmt: skip
    return replace(nest, loops=(*nest.loops[:at], replace(nest.loops[at], kind=kind), *nest.loops[at + 1 :]))


def _any_lanes(nest: Nest, var: str, upto: int, span: Span | None) -> Nest:
    if not 0 < upto <= MOST:
        raise ScheduleError(f"lanes are up to an int from 1 to 2**31 - 1, not {upto}", [(span, "here")])
    loops = (replace(loop, upto=upto) if loop.name == var else loop for loop in nest.loops)
    return replace(nest, loops=tuple(loops))


def _find(nest: Nest, name: str, span: Span | None) -> int:
    at = nest.place(name)
    if at is None:
        raise missing_loop(name, "", nest, span)
    return at


def _fresh(nest: Nest, consumed: Sequence[str], new: Sequence[str], span: Span | None) -> None:
    _distinct(new, "a directive", span)
    alive = {loop.name for loop in nest.loops} - set(consumed)
    for name in new:
        if not name:
            raise ScheduleError("a loop needs a name", [(span, "here")])
        if name in alive:
            raise ScheduleError(
                f"there is a loop {name!r} already", [(span, "here")],
                [f"loops here, outermost first: {', '.join(loop.name for loop in nest.loops)}"], "choose another name",
            )  # fmt: skip


def _distinct(names: Sequence[str], who: str, span: Span | None) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ScheduleError(f"{who} names loop {name!r} twice", [(span, "here")])


def _kept(loop: Loop, done: str, span: Span | None) -> ScheduleError:
    return ScheduleError(
        f"loop {loop.name!r} is {_word(loop.kind)}, and would not be when {done}", [(span, "here")],
        hint="put this directive before the one that made it so",
    )  # fmt: skip


def _word(kind: LoopKind) -> str:
    match kind:
        case LoopKind.SERIAL:
            return "serial"
        case LoopKind.PARALLEL:
            return "parallel"
        case LoopKind.VECTOR:
            return "vectorized"
        case LoopKind.UNROLL:
            return "unrolled"
        case _:
            assert_never(kind)
