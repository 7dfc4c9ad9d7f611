"""The schedule of who writes none."""

from __future__ import annotations

from collections.abc import Iterable

from stax.algorithm.nodes import Pipeline
from stax.schedule.directives import ComputeRoot, Line, StageRef


def complete(pipeline: Pipeline, lines: Iterable[Line]) -> tuple[Line, ...]:
    """Return `lines` with a choice for every Func they do not name."""
    said = tuple(lines)
    named = {line.at.func for line in said}
    return (*said, *(Line(StageRef(f.name), ComputeRoot()) for f in pipeline.funcs if f.name not in named))
