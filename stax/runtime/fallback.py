"""What happens where machine code cannot be had: raise when strict, else interpret and warn.

The loop program is interpreted; where there is none, since lowering failed, the algorithm itself is. The interpreters
are loaded where they are needed, since hardly any kernel does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from stax.algorithm.nodes import Pipeline, part_name
from stax.bounds.infer import Regions
from stax.errors import (
    ArgumentError,
    BackendError,
    DeviceError,
    InternalError,
    RunError,
    StaxWarning,
    UnsupportedError,
    UserError,
)
from stax.expr.evaluate import evaluate_sizes
from stax.loops.nodes import Program
from stax.runtime.arguments import Bound

Runner: TypeAlias = Callable[[Bound, int], Callable[[], None]]
"""Takes arguments and how many threads may run, and returns what runs the kernel on them, as often as it is called."""


def interpreted(program: Program) -> Runner:
    """Return a runner that interprets `program`."""
    from stax.loops.interpret import interpret

    def run(bound: Bound, threads: int) -> Callable[[], None]:
        sizes = _sizes(bound)
        return lambda: interpret(program, bound.arrays, bound.scalars, sizes)

    return run


def meant(pipeline: Pipeline, regions: Regions, over: Mapping[str, str]) -> Runner:
    """Return a runner that works out the algorithm in NumPy; `over` has the buffers of Inputs that are written over."""
    from stax.algorithm.interpret import interpret

    names = list(regions.boxes)
    sides = [end for name in names for side in regions.boxes[name] for end in (side.lo, side.hi) if end is not None]
    ends = [regions.context.algebra.expr(end) for end in sides]

    def run(bound: Bound, threads: int) -> Callable[[], None]:
        sizes = _sizes(bound)

        def work() -> None:
            values = iter(evaluate_sizes(ends, sizes, bound.scalars))
            boxes = {name: tuple((next(values), next(values)) for _ in regions.boxes[name]) for name in names}
            arrays = {i.name: bound.arrays[over.get(i.name, i.name)] for i in pipeline.inputs}
            found = interpret(pipeline, arrays, bound.scalars, boxes, sizes)
            for name in pipeline.outputs:
                parts = found[name]
                for k, part in enumerate(parts):
                    np.copyto(bound.arrays[part_name(name, len(parts), k)], part)

        return work

    return run


def _sizes(bound: Bound) -> dict[tuple[str, int], int]:
    return {(name, dim): extent for name, shape in bound.sizes.items() for dim, extent in enumerate(shape)}


def failure(error: Exception) -> BackendError:
    """Return `error` as the failure of a backend that it is; raise it where the user or memory is at fault."""
    match error:
        case BackendError():
            return error
        case UnsupportedError():
            return BackendError(error.message, error.places, error.facts, error.hint)
        case UserError() | ArgumentError() | DeviceError():
            raise error
        case InternalError() | RunError():
            return BackendError(error.message, error.places, error.facts, "please report this: it is a fault of stax")
        case _:
            words = f"{type(error).__name__}: {error}"
            return BackendError("a backend failed", facts=[words], hint="please report this: it is a fault of stax")


def warn(name: str, error: BackendError) -> None:
    """Say that `name` is interpreted, and why."""
    why = f"{error.message}{f' ({error.facts[0]})' if error.facts else ''}"
    warnings.warn(
        StaxWarning(f"`{name}` is interpreted, slowly, as there is no machine code for it: {why}"), stacklevel=6
    )
