"""When each point of a stage runs: a relation from moments, a number for each loop, to points.

Every moment has at most one point, since each directive gives back the values of what it consumed. The two loops that a
fused loop counts stand in its place: they come in the same order, and their product needs no words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stax.loops.nodes import LoopKind
from stax.poly.isl import TooHard
from stax.poly.words import Words, all_of
from stax.schedule.nest import Affine, Fuse, Nest, Skew, Split
from stax.schedule.points import Counted, Root


@dataclass(frozen=True, slots=True)
class Moment:
    """One number of a moment: the place of the loop that counts it, how that loop runs, and whether downwards.

    A `rough` one is said to run at the same time as others that it may be kept apart from.
    """

    place: int
    kind: LoopKind
    down: bool
    rough: bool = False


@dataclass(frozen=True, slots=True)
class Moments:
    """`text` is the relation from t0, t1, ... to i0, i1, ..., without its parameters."""

    loops: tuple[Moment, ...]
    text: str


_Form = dict[int, int]


def moments(nest: Nest, roots: Sequence[Root], loops: Sequence[Counted], words: Words) -> Moments:
    """Return when the points of `nest` run; TooHard where isl has no words for it."""
    order = list(range(len(loops)))
    made = {k: Moment(k, loop.loop.kind, loop.down) for k, loop in enumerate(loops)}
    alive: dict[str, _Form] = {loop.name: {k: 1} for k, loop in enumerate(nest.loops)}
    parts: list[tuple[_Form, int]] = []
    for step in reversed(nest.derivations):
        match step:
            case Split(parent=parent, outer=outer, inner=inner, factor=n):
                large, small = alive.pop(outer), alive.pop(inner)
                parts.append((small, n))
                alive[parent] = _sum(large, small, n)
            case Skew(parent=parent, along=along, factor=factor, new=new):
                whole = alive.pop(new)
                alive[parent] = _sum(alive[along], whole, -factor)
            case Affine(parents=parents, inverse=inverse, new=new):
                made_of = [alive.pop(n) for n in new]
                for parent, row in zip(parents, inverse, strict=True):
                    whole: _Form = {}
                    for n, f in zip(row, made_of, strict=True):
                        whole = _sum(f, whole, n)
                    alive[parent] = whole
            case Fuse(outer=outer, inner=inner, fused=fused):
                form = alive.pop(fused)
                one, other = _unfused(form, order, made)
                parts = [(small, n) for small, n in parts if not small.keys() & form.keys()]
                alive[outer], alive[inner] = {one: 1}, {other: 1}
    conditions = [f"0 <= {_said(small)} <= {n - 1}" for small, n in parts]
    names = {root.name: f"i{k}" for k, root in enumerate(roots)}
    for root in roots:
        lo = words.sum(words.algebra.of(root.lo), names)
        if lo is None:
            raise TooHard(f"the range of `{root.name}` depends on data")
        conditions.append(f"{names[root.name]} = {lo} + {_said(alive[root.name])}")
    rank = {k: at for at, k in enumerate(order)}
    text = f"{{ [{', '.join(f't{k}' for k in order)}] -> [{', '.join(names.values())}] : {all_of(conditions)} }}"
    return Moments(tuple(made[k] for k in sorted(order, key=lambda k: rank[k])), text)


def _sum(a: _Form, b: _Form, n: int) -> _Form:
    """Return n * a + b."""
    out = {k: n * f for k, f in a.items()}
    for k, f in b.items():
        out[k] = out.get(k, 0) + f
    return {k: f for k, f in out.items() if f}


def _said(form: _Form) -> str:
    return "(" + (" + ".join(f"{f}*t{k}" for k, f in form.items()) or "0") + ")"


def _unfused(form: _Form, order: list[int], made: dict[int, Moment]) -> tuple[int, int]:
    """Put the numbers of the two loops that were fused in the place of what counts them.

    Parts of a split are taken back where they stand in order: then any loop of them that is not serial may meet any
    other point of the two.
    """
    parts = sorted(form, key=lambda k: -form[k])
    places = [order.index(k) for k in parts]
    if places != list(range(places[0], places[0] + len(parts))):
        raise TooHard("parts of a fused loop stand apart")
    first = made[parts[0]]
    if any(made[k].down != first.down for k in parts):
        raise TooHard("parts of a fused loop run opposite ways")
    plain = len(parts) == 1 or all(made[k].kind in (LoopKind.SERIAL, LoopKind.UNROLL) for k in parts)
    kind = first.kind if plain else LoopKind.PARALLEL
    one = max(made) + 1
    for k in (one, one + 1):
        made[k] = Moment(first.place, kind, first.down, not plain)
    order[places[0] : places[0] + len(parts)] = [one, one + 1]
    return one, one + 1
