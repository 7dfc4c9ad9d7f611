"""What a schedule says of a machine of blocks, by stage: warps, stages of loads, groups of programs."""

from __future__ import annotations

from stax.loops.launches import Hints
from stax.schedule.directives import Stages, Swizzle, Warps
from stax.schedule.legal import Legal


def hints(legal: Legal) -> dict[str, Hints]:
    """Return the hints of each stage that has some; of several of a kind the last one holds."""
    found: dict[str, Hints] = {}
    for ref, nest in legal.resolved.nests.items():
        warps = [d.n for d in nest.permits if isinstance(d, Warps)]
        stages = [d.n for d in nest.permits if isinstance(d, Stages)]
        groups = [d.n for d in nest.permits if isinstance(d, Swizzle)]
        if warps or stages or groups:
            found[str(ref)] = Hints(*(one[-1] if one else None for one in (warps, stages, groups)))
    return found
