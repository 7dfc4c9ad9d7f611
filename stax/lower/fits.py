"""Refuse kernels that no GPU launches: blocks larger than Triton takes, tiles that shared memory cannot hold.

Needs: kernels (`split_kernels`). Gives: nothing but the refusal, at the line that asks for the most.
"""

from __future__ import annotations

from collections.abc import Iterable

from stax.errors import ScheduleError
from stax.expr.nodes import Axes, Dot, Expr
from stax.loops import walk
from stax.loops.launches import Host, Kernel, kernels
from stax.schedule.directives import Directive, Stages, Vectorize
from stax.schedule.legal import Legal
from stax.schedule.script import show_directive
from stax.source import Span
from stax.target import GPU_SHARED_BYTES

MOST_ELEMENTS = 1 << 20
USUAL_STAGES = 3


def refuse_unlaunchable(legal: Legal, host: tuple[Host, ...]) -> None:
    """Raise ScheduleError where a kernel cannot be launched on an H100 or H200."""
    for kernel in kernels(host):
        nodes = walk.nodes(kernel.body)
        largest: Axes = max((n.axes for n in nodes), key=_elements, default=())
        if _elements(largest) > MOST_ELEMENTS:
            lanes = {axis.name: axis.size for axis in largest}
            raise ScheduleError(
                f"a program would hold a block of {_elements(largest)} elements, and a GPU's takes {MOST_ELEMENTS}",
                _places(legal, lanes),
                [f"its lanes: {' by '.join(f'{size} of `{name}`' for name, size in lanes.items())}"],
                "vectorize fewer of them: split off an outer loop first",
            )
        _refuse_tiles(legal, kernel, nodes)


def _refuse_tiles(legal: Legal, kernel: Kernel, nodes: Iterable[Expr]) -> None:
    """Refuse factors of products that shared memory does not hold as often as loads run ahead."""
    for node in nodes:
        if not isinstance(node, Dot):
            continue
        sizes = [_elements(side.axes) * side.dtype.size_bytes for side in (node.left, node.right)]
        stages = kernel.hints.stages or USUAL_STAGES
        copies = max(1, stages - 1)
        if copies * sum(sizes) > GPU_SHARED_BYTES:
            lanes = {axis.name: axis.size for side in (node.left, node.right) for axis in side.axes}
            asked = [
                (d.span, "so many are kept ahead") for d in _said(legal) if isinstance(d, Stages) and d.n == stages
            ]
            raise ScheduleError(
                f"the factors of a product take {copies * sum(sizes)} bytes of shared memory, and a GPU has "
                f"{GPU_SHARED_BYTES}",
                [*_places(legal, lanes), *asked],
                [f"{copies} times {sizes[0]} and {sizes[1]} bytes: {_text(node.left)} and {_text(node.right)}"],
                "take smaller tiles, or fewer stages",
            )


def _elements(axes: Axes) -> int:
    found = 1
    for axis in axes:
        found *= 1 << max(0, axis.size - 1).bit_length()
    return found


def _text(side: Expr) -> str:
    return f"{' by '.join(str(axis.size) for axis in side.axes)} of {side.dtype.name}"


def _said(legal: Legal) -> list[Directive]:
    return [line.directive for line in legal.resolved.lines]


def _places(legal: Legal, lanes: dict[str, int]) -> list[tuple[Span | None, str]]:
    """Return where the widest of some lanes were asked for."""
    widest = max(lanes, key=lambda name: lanes[name])
    for line in legal.resolved.lines:
        d = line.directive
        if isinstance(d, Vectorize):
            made = d.var if d.n is None else f"{d.var}.in"
            if widest.startswith(str(line.at)) and widest.removeprefix(f"{line.at}.").startswith(made):
                return [(d.span, f"{show_directive(d)} asks for {lanes[widest]} here")]
    return []
