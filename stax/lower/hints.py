"""What a schedule says of a machine of blocks, by stage: warps, stages of loads, groups of programs, matrix units."""

from __future__ import annotations

from dataclasses import replace

from stax.loops.launches import Hints
from stax.schedule.directives import MatrixUnit, StageRef, Stages, Swizzle, Warps
from stax.schedule.legal import Legal


def hints(legal: Legal) -> dict[str, Hints]:
    """Return what is said of the kernel of each stage that is computed at root, by it and the stages in its loops."""
    found: dict[str, Hints] = {}
    for ref, nest in legal.resolved.nests.items():
        if ref in legal.points:
            root, now = str(_root(legal, ref)), Hints()
            for said in nest.permits:
                match said:
                    case Warps(n=n):
                        now = replace(now, warps=n)
                    case Stages(n=n):
                        now = replace(now, stages=n)
                    case Swizzle(n=n):
                        now = replace(now, swizzle=n)
                    case MatrixUnit(precision=precision):
                        now = replace(now, precision=precision)
                    case _:
                        pass
            found[root] = both(found.get(root, Hints()), now)
    return {stage: said for stage, said in found.items() if said != Hints()}


def both(first: Hints, then: Hints) -> Hints:
    """Return what is said twice: the second holds where it says something."""
    return Hints(
        then.warps or first.warps, then.stages or first.stages, then.swizzle or first.swizzle,
        then.precision or first.precision,
    )  # fmt: skip


def units(legal: Legal) -> dict[str, MatrixUnit]:
    """Return the stages that are to use a matrix unit, and the directive that says so."""
    return {
        str(ref): d for ref, nest in legal.resolved.nests.items() for d in nest.permits if isinstance(d, MatrixUnit)
    }


def _root(legal: Legal, ref: StageRef) -> StageRef:
    """Return the stage at root whose loops a stage is computed in: itself, where it is at root."""
    place = legal.placed[ref.func].compute
    while place is not None:
        ref = place.stage
        place = legal.placed[ref.func].compute
    return ref
