"""One random program and schedule, judged by the check and by the oracle, and the tally of many."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random

from stax.errors import LegalityError, ScheduleError, UnsupportedError
from stax.legality.check import check
from stax.legality.witness import Witness
from stax.schedule.directives import Line, StageRef
from stax.schedule.legal import Legal
from tests.legality.brute import Around, Box, Truth, differs
from tests.legality.confirm import confirmed
from tests.legality.programs import KINDS, Program, program, schedule

STRUCTURE = {
    "outside that loop": "coverage", "share the storage": "parallel", "too few to keep": "fold", "cannot keep": "fold",
    "may be repeated": "exactly once", "computed again": "exactly once", "repeats some iterations": "exactly once",
    "which is vectorized": "inside lanes", "whose last run": "inside a shift", "was not found out": "unknown",
    "cannot be folded": "fold", "longer": "lifetime", "shapes differ": "shapes", "is not seen": "unknown",
}  # fmt: skip
"""What a refusal without two points is about, by words of its message."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`accepted` is None where the lines do not fit; `wrong` says what differs; `about` what a refusal is about.

    `untrue` says what of a witness is not so, None where there is none.
    """

    seed: int
    program: str
    accepted: bool | None
    wrong: str = ""
    about: tuple[str, ...] = ()
    untrue: str | None = None
    message: str = ""


def drawn(seed: int, kinds: tuple[str, ...] = KINDS) -> tuple[Program, tuple[Line, ...]]:
    """Return the program and the schedule of a seed."""
    rng = Random(seed)
    made = program(rng, kinds)
    return made, schedule(rng, made.pipeline, made.kind)


def judge(seed: int, kinds: tuple[str, ...] = KINDS) -> Verdict:
    """Return what the check says of a seed and what the oracle sees."""
    made, lines = drawn(seed, kinds)
    try:
        legal = check(made.pipeline, lines)
    except LegalityError as error:
        wrong = differs(made.pipeline, lines, made.sizes, seed=seed, dead=True)
        return _refused(seed, made, lines, wrong, error)
    except (ScheduleError, UnsupportedError) as error:
        return Verdict(seed, made.kind, None, message=error.message)
    wrong = differs(made.pipeline, lines, made.sizes, seed=seed, regions=regions_of(legal))
    return Verdict(seed, made.kind, True, wrong)


def _refused(seed: int, made: Program, lines: tuple[Line, ...], wrong: str, error: LegalityError) -> Verdict:
    found = error.witness
    if isinstance(found, Witness):
        about = (found.kind, found.how)
        untrue = confirmed(made.pipeline, lines, made.sizes, found)
        return Verdict(seed, made.kind, False, wrong, about, untrue, error.message)
    about = tuple({name for words, name in STRUCTURE.items() if words in str(error)}) or ("other",)
    return Verdict(seed, made.kind, False, wrong, about, None, error.message)


def regions_of(legal: Legal) -> Callable[[Truth, str, Around], Box]:
    """Return which box of a Func the compiler computes in an iteration."""
    algebra = legal.regions.context.algebra

    def box(truth: Truth, name: str, around: Around) -> Box:
        env = _locals(legal, around)
        ends = [(algebra.expr(i.first), algebra.expr(i.last)) for i in legal.placed[name].new]
        return [(truth.value(lo, env, None), truth.value(hi, env, None)) for lo, hi in ends]

    return box


def _locals(legal: Legal, around: Around) -> dict[str, int]:
    found: dict[str, int] = {}
    for (stage, loop), count in around.items():
        at = legal.resolved.nests[stage].place(loop)
        assert at is not None
        found[legal.points[stage].loops[at].var.name] = count
    return found


@dataclass(slots=True)
class Tally:
    """How many of each verdict there were."""

    count: int = 0
    harmless: int = 0
    accepted: int = 0
    harmful: int = 0
    unfit: int = 0
    about: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    witnessed: int = 0
    unsound: list[Verdict] = field(default_factory=list)
    untrue: list[Verdict] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        """Count a verdict."""
        self.count += 1
        if verdict.accepted is None:
            self.unfit += 1
            return
        if verdict.accepted and verdict.wrong:
            self.unsound.append(verdict)
        if verdict.untrue is not None:
            self.witnessed += 1
            if verdict.untrue:
                self.untrue.append(verdict)
        self.accepted += verdict.accepted
        self.harmful += bool(verdict.wrong)
        self.harmless += not verdict.wrong
        if verdict.wrong:
            self.about.update(verdict.about)
        elif not verdict.accepted:
            words = re.sub(r"`[^`]*`|'[^']*'|\d+", "#", verdict.message)[:80]
            self.refused[f"{verdict.program}: {words}"] += 1

    @property
    def share(self) -> float:
        """How many of the harmless are accepted."""
        return self.accepted / max(1, self.harmless)

    def text(self) -> str:
        """Return the tally as a table."""
        judged = self.count - self.unfit
        rows = [
            f"{self.count} programs x schedules, {judged} judged ({self.unfit} do not fit together)",
            f"{self.harmful} harmful ({100 * self.harmful / max(1, judged):.0f} %), {self.harmless} harmless",
            f"{self.accepted} accepted: {100 * self.share:.1f} % of the harmless; accepted and different: "
            f"{len(self.unsound)}",
            f"{self.witnessed} refusals name two points, of which the oracle denies {len(self.untrue)}",
            "harmful ones by what is broken: " + ", ".join(f"{n} {k}" for k, n in self.about.most_common()),
        ]
        rows += [f"  seed {v.seed}, {v.program}: accepted, and {v.wrong}" for v in self.unsound]
        rows += [f"  seed {v.seed}, {v.program}: {v.untrue} ({v.message})" for v in self.untrue[:20]]
        rows += [f"  refused all the same, {n}: {words}" for words, n in self.refused.most_common(12)]
        return "\n".join(rows)


def tally(seeds: Iterable[int], kinds: tuple[str, ...] = KINDS) -> Tally:
    """Return the tally of some seeds."""
    found = Tally()
    for seed in seeds:
        found.add(judge(seed, kinds))
    return found


__all__ = ["KINDS", "Mapping", "StageRef", "Tally", "Verdict", "drawn", "judge", "regions_of", "tally"]
