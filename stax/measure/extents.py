"""How long ranges are, as polynomials in the sizes that nobody said, or as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stax.algorithm.nodes import Pipeline
from stax.bounds.infer import Regions
from stax.expr import build
from stax.expr.affine import Affine, Algebra, Interval
from stax.expr.evaluate import evaluate_sizes
from stax.expr.nodes import Binary, BinaryOp, Cast, Const, Expr, Local, Param, Size, Var
from stax.expr.show import show
from stax.expr.walk import postorder, rewrite
from stax.measure.polynomial import Polynomial

LARGE_BYTES = 2 << 20
_PLANE = 2
_PROBES = (1 << 20, 1 << 21)


class Extents:
    """What sizes of arrays and Params are, as far as `sizes` and `params` and the program itself say.

    The size of an output that a call would infer is that sum of sizes of inputs; where it is no sum, it keeps its name.
    Arrays are taken to have a cell, and loops around to stand at their start.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        regions: Regions,
        sizes: Mapping[tuple[str, int], int],
        params: Mapping[str, int],
    ) -> None:
        self._params = params
        self._algebra = Algebra()
        self._known: dict[tuple[str, int], Expr] = {key: build.index(n) for key, n in sizes.items()}
        self._declared = {(i.name, d): size for i in pipeline.inputs for d, size in enumerate(i.sizes)}
        self._declared |= {(o, d): size for o in pipeline.outputs for d, size in enumerate(regions.shapes[o])}
        self._outputs = frozenset(pipeline.outputs)

    def of(self, expr: Expr) -> Polynomial:
        """Return what the expression `expr` of sizes and Params comes to."""
        found = self._algebra.of(rewrite(expr, self._rule))
        total = Polynomial.of(found.const)
        for atom, factor in found.terms:
            total += Polynomial.of(_text(self._algebra.atom(atom))) * factor
        return total

    def length(self, interval: Interval, algebra: Algebra) -> Polynomial:
        """Return how many values `interval`, of sums of `algebra`, holds."""
        found = self.of(algebra.expr(interval.last - interval.first + 1))
        return found if found.number is None else Polynomial.of(max(0, found.number))

    def is_large(self, box: Iterable[Interval], cell_bytes: int, algebra: Algebra) -> bool:
        """Return whether a box is more than caches of a core hold: `LARGE_BYTES`, or a plane of unknown sizes."""
        total, long = Polynomial.of(cell_bytes), 0
        for interval in box:
            total *= self.length(interval, algebra)
            long += grows(interval.last - interval.first + 1, algebra)
        return long >= _PLANE if total.number is None else total.number > LARGE_BYTES

    def _rule(self, node: Expr) -> Expr:
        match node:
            case Size(array=array, dim=dim):
                return self._size(node, (array, dim))
            case Local() | Var():
                return build.index(0)
            case Param(name=name) if name in self._params:
                return build.const(self._params[name], node.dtype)
            case Cast(value=Const()) | Binary(left=Const(), right=Const()) if not node.dtype.is_float:
                return build.const(evaluate_sizes((node,), {}, {})[0], node.dtype)
            case Binary(op=BinaryOp.MIN | BinaryOp.MAX as op, left=left, right=right):
                return _clear(op, left, right) or node
            case _:
                return node

    def _size(self, size: Expr, key: tuple[str, int]) -> Expr:
        if key not in self._known:
            self._known[key] = size  # until more is known, and in declarations that name each other
            declared = self._declared.get(key)
            if declared is not None:
                found = self._algebra.of(rewrite(declared, self._rule))
                plain = all(isinstance(self._algebra.atom(atom), Size | Param) for atom, _ in found.terms)
                if plain or key[0] not in self._outputs:
                    self._known[key] = self._algebra.expr(found)
        return self._known[key]


def _clear(op: BinaryOp, left: Expr, right: Expr) -> Expr | None:
    """Return the smaller or larger of a constant and a size, where any size of at least 1 says which that is."""
    number, size = (left, right) if isinstance(left, Const) else (right, left)
    if isinstance(number, Const) and isinstance(size, Size) and number.value <= 1:
        return number if op is BinaryOp.MIN else size
    return None


def _text(atom: Expr) -> str:
    match atom:
        case Cast(value=value):
            return _text(value)
        case Binary(op=op) if op not in (BinaryOp.MIN, BinaryOp.MAX):
            return f"({show(atom)})"
        case _:
            return show(atom)


def grows(extent: Affine, algebra: Algebra) -> bool:
    """Return whether `extent` is longer where arrays are: not that of a tile, nor a constant.

    >>> from stax.expr.nodes import INDEX
    >>> a = Algebra()
    >>> n = Size(INDEX, "a", 0)
    >>> grows(a.of(n), a), grows(a.of(build.minimum(n, 32)) + 2, a)
    (True, False)
    """
    expr = algebra.expr(extent)
    below = postorder((expr,))
    names = {node.name: 0 for node in below if isinstance(node, Local | Var)}
    sizes = {(node.array, node.dim) for node in below if isinstance(node, Size)}
    params = {node.name for node in below if isinstance(node, Param)}
    plain = rewrite(expr, lambda n: build.local(n.name) if isinstance(n, Var) else n)
    try:
        first, second = (
            evaluate_sizes((plain,), dict.fromkeys(sizes, n), dict.fromkeys(params, n), names)[0] for n in _PROBES
        )
    except KeyError:  # it depends on data
        return True
    return second > first
