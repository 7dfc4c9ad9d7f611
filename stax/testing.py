"""What a program means, worked out in NumPy: to test programs and schedules against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from stax.algorithm.interpret import interpret as _interpret
from stax.bounds.infer import Regions, infer
from stax.errors import ArgumentError, BoundsError
from stax.expr.evaluate import evaluate_sizes
from stax.expr.watch import Watch
from stax.lang.freeze import freeze


def interpret(outputs: Any, arguments: Mapping[str, Any], shape: Any = None, fp: str | None = None) -> Any:
    """Return what `outputs` are for `arguments`, by name, as the algorithm says: no schedule, no compiler, slow.

    shape: the extents of the output, or a tuple of those for several outputs, where they are not inferred.

    Raises BoundsError where that needs what is not there.

    >>> import numpy as np, stax as sx
    >>> from stax.testing import interpret
    >>> x, a, f = sx.Var("x"), sx.Input("a", sx.int32, 1), sx.Func("f")
    >>> f[x] = a[x] + a[x + 1]
    >>> interpret(f, {"a": np.arange(4, dtype=np.int32)})
    array([1, 3, 5], dtype=int32)
    """
    return meaning(outputs, arguments, shape, fp)


def meaning(
    outputs: Any, arguments: Mapping[str, Any], shape: Any = None, fp: str | None = None, watch: Watch | None = None
) -> Any:
    """Return what `interpret` does, and tell `watch` of each load, store and realization."""
    pipeline = freeze(outputs, fp=fp)
    regions = infer(pipeline)
    arrays = {a.name: np.asarray(arguments[a.name]) for a in pipeline.inputs}
    scalars = {s.name: arguments.get(s.name, s.default) for s in pipeline.scalars}
    sizes: dict[tuple[str, int], int] = {(n, d): k for n, a in arrays.items() for d, k in enumerate(a.shape)}

    single = not isinstance(outputs, tuple)
    given: tuple[Any, ...] | None = None if shape is None else ((shape,) if single else tuple(shape))
    for k, name in enumerate(pipeline.outputs):
        for d, inferred in enumerate(regions.shapes[name]):
            if given is not None:
                sizes[name, d] = int(given[k][d])
            elif inferred is not None:
                sizes[name, d] = evaluate_sizes([inferred], sizes, scalars)[0]
            else:
                raise ArgumentError(f"nothing says how far `{name}` extends in dimension {d}", hint="give shape=")
    _check(regions, sizes, scalars)
    algebra, boxes = regions.context.algebra, {}
    for name, box in regions.boxes.items():
        ends = [algebra.expr(end) for side in box for end in (side.first, side.last)]
        found = evaluate_sizes(ends, sizes, scalars)
        boxes[name] = tuple(zip(found[::2], found[1::2], strict=True))
    found = _interpret(pipeline, arrays, scalars, boxes, sizes, watch)  # pyright: ignore
    results = [parts[0] if len(parts) == 1 else parts for parts in (found[name] for name in pipeline.outputs)]
    return results[0] if single else tuple(results)


def _check(regions: Regions, sizes: Mapping[tuple[str, int], int], scalars: Mapping[str, Any]) -> None:
    """Raise BoundsError where a read or a write lies outside of what it is of, for extents that were asked for."""
    for check in regions.checks:
        holds, lo, hi, size = evaluate_sizes((check.cond, check.lo, check.hi, check.size), sizes, scalars)
        if not holds and lo <= hi:
            word = "reads" if check.reads else "may write"
            raise BoundsError(
                f"`{check.stage}` {word} `{check.source}` outside its dimension {check.dim}: it needs {lo} to {hi}, "
                f"and the extent is {size}",
                [(check.span, "here")],
                hint="ask for another shape=, or clip the index",
            )
