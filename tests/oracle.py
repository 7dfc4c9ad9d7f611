"""What a program means: Funcs run by the oracle, for outputs of given shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from stax.algorithm.interpret import interpret
from stax.bounds.infer import infer
from stax.expr.evaluate import evaluate
from stax.expr.nodes import Expr, Param, Size
from stax.lang.freeze import freeze

Array = np.ndarray[Any, Any]


def oracle(outputs: Any, shapes: Mapping[str, tuple[int, ...]], arguments: Mapping[str, Any]) -> tuple[Array, ...]:
    """Return the parts of all outputs; `shapes` are by their names."""
    pipeline = freeze(outputs)
    regions = infer(pipeline)
    arrays = {a.name: np.asarray(arguments[a.name]) for a in pipeline.inputs}
    scalars = {s.name: arguments.get(s.name, s.default) for s in pipeline.scalars}

    def leaf(node: Expr) -> Any:
        match node:
            case Size(array=array, dim=dim):
                shape = shapes[array] if array in shapes else arrays[array].shape
                return np.asarray(shape[dim], np.int64)
            case Param(name=name):
                return np.asarray(scalars[name]).astype(node.dtype.dtype)
            case _:
                raise AssertionError(f"a box depends on {node}")

    algebra = regions.context.algebra
    boxes: dict[str, tuple[tuple[int, int], ...]] = {}
    for name, box in regions.boxes.items():
        ends = evaluate([algebra.expr(end) for side in box for end in (side.lo, side.hi)], leaf)
        boxes[name] = tuple((int(ends[2 * k]), int(ends[2 * k + 1])) for k in range(len(box)))
    sizes = {(name, d): n for name, shape in shapes.items() for d, n in enumerate(shape)}
    parts = interpret(pipeline, arrays, scalars, boxes, sizes)
    return tuple(part for name in pipeline.outputs for part in parts[name])
