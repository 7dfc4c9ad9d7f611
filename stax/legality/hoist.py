"""Storage that is allocated further out than where values are kept: each time anew, in the same place.

Iterations that run at the same time would share it, so no parallel loop may lie between.
"""

from __future__ import annotations

from collections.abc import Sequence

from stax.algorithm.nodes import Func
from stax.errors import LegalityError
from stax.loops.nodes import LoopKind
from stax.schedule.directives import StageRef
from stax.schedule.nest import Loop
from stax.schedule.resolve import Hoist


def check_hoist(
    f: Func, hoist: Hoist, outer: Sequence[object], kept: Sequence[object], between: Sequence[tuple[StageRef, Loop]]
) -> None:
    """Raise LegalityError where storage of `f` cannot be at `outer`; both are paths of loops, outermost first.

    `between` are the loops inside `outer` that are around where the values are kept.
    """
    span = hoist.span
    if tuple(kept[: len(outer)]) != tuple(outer):
        raise LegalityError(
            f"storage of `{f.name}` cannot be allocated in loop `{hoist.loop}` of `{hoist.stage}`, which is not around "
            "where it is kept",
            [(span, "allocated here")], hint="name a loop further out",
        )  # fmt: skip
    for stage, loop in between:
        if loop.kind is LoopKind.PARALLEL:
            raise LegalityError(
                f"iterations of the parallel loop `{loop.name}` of `{stage}` would share the storage of `{f.name}`",
                [(span, "allocated here")],
                [f"`{f.name}` is allocated outside loop `{loop.name}` and kept inside it"],
                "allocate it inside that loop",
            )
