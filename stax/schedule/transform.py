"""Loops in the order that rows of sums give, said by directives: skews where they do, else one map of all."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from stax.algorithm.nodes import Func, Order
from stax.schedule.directives import Affine, Directive, Reorder, Skew
from stax.schedule.unimodular import inverse


def directives_of(
    rows: Order, dims: Sequence[str], backwards: AbstractSet[str] = frozenset()
) -> tuple[list[Directive], tuple[str, ...]]:
    """Return directives with which the loops of `dims` count `rows`, outermost first, and the loops' names then.

    Loops of `backwards` run downwards: they count what they are the negative of.

    >>> directives_of(((("t", 1),), (("t", 1), ("x", 1))), ("t", "x"))
    ([Skew(var='x', along='t', factor=1, new=None)], ('t', 'x'))
    """
    matrix = [tuple(dict(row).get(d, 0) for d in dims) for row in rows]
    skews = _skews(
        [[-n if d in backwards else n for d, n in zip(dims, row, strict=True)] for row in matrix], dims, backwards
    )
    if skews is None or len(skews[0]) > len(dims):
        turned = tuple(tuple(-n if d in backwards else n for n in row) for d, row in zip(dims, matrix, strict=True))
        return [Affine(turned, tuple(dims))], tuple(dims)
    made, loops = skews
    return [*made, *([] if loops == tuple(dims) else [Reorder(loops)])], loops


def ordered(f: Func) -> tuple[list[Directive], tuple[str, ...]]:
    """Return directives with which the loops of `f` keep its order, and their names then."""
    if all(len(row) == 1 for row in f.order or ()):
        loops = tuple(row[0][0] for row in f.order or ()) or f.dims
        return ([] if loops == f.dims else [Reorder(loops)]), loops
    return directives_of(f.order or (), f.dims)


def _skews(
    matrix: Sequence[Sequence[int]], dims: Sequence[str], backwards: AbstractSet[str]
) -> tuple[list[Directive], tuple[str, ...]] | None:
    """Return skews after which each row is one loop, and those loops in the order of the rows."""
    now = [[int(j == k) for j in range(len(dims))] for k in range(len(dims))]
    made: list[Directive] = []
    order: list[int] = []
    for row in matrix:
        back = inverse(now)
        sums = [sum(row[j] * back[j][k] for j in range(len(dims))) for k in range(len(dims))]
        free = [k for k in range(len(dims)) if k not in order and sums[k] == 1]
        if not free:
            return None
        main = min(free, key=lambda k: (sum(s != 0 for j, s in enumerate(sums) if j != k), k))
        for k, factor in enumerate(sums):
            if k != main and factor:
                opposite = (dims[main] in backwards) != (dims[k] in backwards)
                made.append(Skew(dims[main], dims[k], -factor if opposite else factor))
                now[main] = [a + factor * b for a, b in zip(now[main], now[k], strict=True)]
        order.append(main)
    return made, tuple(dims[k] for k in order)
