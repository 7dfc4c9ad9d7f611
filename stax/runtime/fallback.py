"""What happens where machine code cannot be had: raise when strict, else interpret the loop program and warn."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeAlias

from stax.errors import StaxError, StaxWarning
from stax.loops.interpret import interpret
from stax.loops.nodes import Program
from stax.runtime.arguments import Bound

Runner: TypeAlias = Callable[[Bound, int], Callable[[], None]]
"""Takes arguments and how many threads may run, and returns what runs the kernel on them, as often as it is called."""


def interpreted(program: Program, error: StaxError) -> Runner:
    """Return a runner that interprets `program`, after a warning that says why there is no machine code."""
    warnings.warn(
        StaxWarning(f"`{program.name}` is interpreted, slowly, as there is no machine code for it: {error.message}"),
        stacklevel=5,
    )

    def run(bound: Bound, threads: int) -> Callable[[], None]:
        sizes = {(name, dim): extent for name, shape in bound.sizes.items() for dim, extent in enumerate(shape)}
        return lambda: interpret(program, bound.arrays, bound.scalars, sizes)

    return run
