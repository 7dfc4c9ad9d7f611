"""The check beside an oracle that runs every instance: nothing accepted differs, and each part is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from stax.errors import LegalityError, ScheduleError, UnsupportedError
from stax.legality.check import check
from stax.poly import clash
from stax.poly.clash import How, Kind
from stax.schedule.directives import Line
from tests.legality.brute import differs
from tests.legality.programs import KINDS, Program, program, schedule


def drawn(seed: int, kinds: tuple[str, ...] = KINDS) -> tuple[Program, tuple[Line, ...]]:
    rng = Random(seed)
    made = program(rng, kinds)
    return made, schedule(rng, made.pipeline)


def judged(made: Program, lines: tuple[Line, ...]) -> bool | None:
    """Return whether a schedule is accepted; None where it does not fit the program."""
    try:
        check(made.pipeline, lines)
    except LegalityError:
        return False
    except (ScheduleError, UnsupportedError):
        return None
    return True


def tally(seeds: range) -> Counter[tuple[bool, bool]]:
    """Return how many schedules were accepted or not, and differ or not; fail on the first accepted that differs."""
    found: Counter[tuple[bool, bool]] = Counter()
    for seed in seeds:
        made, lines = drawn(seed)
        accepted = judged(made, lines)
        if accepted is not None:
            wrong = differs(made.pipeline, lines, made.sizes, seed=seed, dead=not accepted)
            assert not (accepted and wrong), f"seed {seed}: {wrong}"
            found[accepted, bool(wrong)] += 1
    return found


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_nothing_that_is_accepted_differs_and_little_else_is_refused(start: int) -> None:
    """Refused all the same: storage that threads share to write equal values, scatters at data that do not meet."""
    found = tally(range(start, start + 50))
    harmless = found[True, False] + found[False, False]
    assert found[False, True] > 10
    assert found[True, False] >= 0.85 * harmless


def no(kind: Kind) -> Callable[[pytest.MonkeyPatch], None]:
    """Leave out the dependences of a kind."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        whole = clash._Sets._pairs
        monkeypatch.setattr(clash._Sets, "_pairs", lambda self: [p for p in whole(self) if p.kind is not kind])

    return patch


def without(how: How) -> Callable[[pytest.MonkeyPatch], None]:
    """Leave out one way to break a dependence."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        whole = clash._Sets._broken

        def broken(self: Any, pair: Any, kind: Kind) -> Iterator[Any]:
            return (b for b in whole(self, pair, kind) if b[0] is not how)

        monkeypatch.setattr(clash._Sets, "_broken", broken)

    return patch


MUTANTS = {
    "no flow": no(Kind.FLOW),
    "no anti": no(Kind.ANTI),
    "no output": no(Kind.OUTPUT),
    "no order": without(How.ORDER),
    "no parallel": without(How.PARALLEL),
    "no lanes": without(How.LANES),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_check_with_a_part_left_out_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the oracle sees what each part is for."""
    MUTANTS[name](monkeypatch)
    for seed in range(400):
        made, lines = drawn(seed, ("in place", "scatter"))
        if judged(made, lines) and differs(made.pipeline, lines, made.sizes, seed=seed):
            return
    raise AssertionError("nobody noticed")
