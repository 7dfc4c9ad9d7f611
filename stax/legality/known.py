"""What is known of a program from the schedules that were judged before: editing a directive judges what it touches."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from stax.algorithm.inline import inline
from stax.algorithm.keep import Kept
from stax.algorithm.nodes import Pipeline
from stax.bounds.infer import Context, Promises, Regions, infer
from stax.legality.combining import Combining
from stax.legality.within import Path
from stax.poly.proofs import Proofs
from stax.schedule.legal import Placed
from stax.schedule.points import Points

MOST_LANES = 256


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """What was found of a Func: the loops around it, the points of its stages and which may be taken in any order.

    `carried` are the loops that what is kept of it slides along, `kept` its arm that keeps the value of a step before.
    """

    context: Context
    placed: Placed
    path: Path
    points: tuple[Points, ...]
    combining: tuple[Combining | None, ...]
    carried: tuple[str, ...]
    kept: Kept | None

    @property
    def names(self) -> frozenset[str]:
        """The variables of its loops."""
        return frozenset(loop.var.name for points in self.points for loop in points.loops)


class Known:
    """Answers of isl; Funcs that were judged, by all that they were judged by; programs with Funcs inlined.

    It is of one machine, on which a loop may become `most_lanes` lanes: those of some registers, or of a block.
    """

    def __init__(self, proofs: Proofs | None = None, most_lanes: int = MOST_LANES) -> None:
        self.proofs = proofs or Proofs()
        self.most_lanes = most_lanes
        self._judged: dict[tuple[int, Hashable], Judged] = {}
        self._inlined: dict[tuple[int, frozenset[str]], tuple[Pipeline, Pipeline]] = {}
        self._inferred: dict[tuple[int, Hashable], Regions] = {}

    def judged(self, context: Context, by: Hashable) -> Judged | None:
        """Return what was found `by` the same, if anything was."""
        return self._judged.get((id(context), by))

    def judge(self, by: Hashable, found: Judged) -> None:
        """Keep what was found."""
        self._judged[id(found.context), by] = found

    def inlined(self, pipeline: Pipeline, gone: frozenset[str]) -> Pipeline:
        """Return `pipeline` without the Funcs `gone`."""
        key = (id(pipeline), gone)
        if key not in self._inlined:
            self._inlined[key] = (pipeline, inline(pipeline, gone))
        return self._inlined[key][1]

    def inferred(self, pipeline: Pipeline, given: Promises) -> Regions:
        """Return the regions of `pipeline`."""
        key = (id(pipeline), tuple(sorted(given.items(), key=lambda item: item[0])))
        if key not in self._inferred:
            self._inferred[key] = infer(pipeline, given)
        return self._inferred[key]
