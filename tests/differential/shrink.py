"""One seed again: its program, and the smallest one like it that still goes wrong."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from tests.differential import recurrences
from tests.differential.compare import Outcome, run
from tests.differential.generate import Drawn, Term, draw
from tests.differential.workers import Died, run_all

ROUNDS = 400


def show_one(seed: int, schedules: int, smaller: bool, recurrence: bool = False, aim: str = "") -> int:
    """Print the program of a seed and what became of it; 1 where it went wrong."""
    drawn = (recurrences.draw if recurrence else draw)(seed)
    drawn.aim = aim
    outcome = _apart([(drawn, schedules, None)])[0]
    if smaller and _bad(outcome):
        drawn, outcome = shrink(drawn, schedules, outcome)
    print(f"# seed {seed}, fp={drawn.fp}, outputs {drawn.outputs}, shapes {drawn.shapes}")
    print(f"# params {[(p.name, p.value) for p in drawn.params]}")
    print(drawn.text())
    if isinstance(outcome, Died):
        print(outcome.why)
        return 1
    print(f"{outcome.status}: {outcome.message}")
    if outcome.status not in ("ok", "refused"):
        print(outcome.schedule)
    return 1 if _bad(outcome) else 0


def one(job: tuple[Drawn, int, int | None]) -> Outcome:
    """Run a program; called in a process of its own."""
    drawn, schedules, only = job
    return run(drawn, schedules, only, count=False)


def _apart(jobs: list[tuple[Drawn, int, int | None]]) -> list[Outcome | Died]:
    return list(run_all(one, jobs, 1, 60.0))


def _bad(outcome: Outcome | Died) -> bool:
    return isinstance(outcome, Died) or outcome.status in ("wrong", "error")


def _kind(outcome: Outcome | Died) -> str:
    if isinstance(outcome, Died):
        return "died"
    return outcome.status + (
        outcome.message.strip().splitlines()[-1].split(":")[0] if outcome.status == "error" else ""
    )


def shrink(drawn: Drawn, schedules: int, outcome: Outcome | Died) -> tuple[Drawn, Outcome | Died]:
    """Return a smaller program that goes wrong in the same way, and how."""
    wanted = _kind(outcome)
    best = (drawn, outcome)
    tries = 0
    progress = True
    while progress and tries < ROUNDS:
        progress = False
        batch = [(d, schedules, None) for d in _smaller(best[0])]
        for job, found in _tried(batch):
            tries += 1
            if _kind(found) == wanted and _bad(found):
                best = (job[0], found)
                progress = True
                break
            if tries >= ROUNDS:
                break
    return best


def _tried(
    batch: list[tuple[Drawn, int, int | None]],
) -> Iterator[tuple[tuple[Drawn, int, int | None], Outcome | Died]]:
    yield from zip(batch, run_all(one, batch, 1, 60.0), strict=False)


def _smaller(drawn: Drawn) -> Iterator[Drawn]:
    """Yield programs with one thing less."""
    if len(drawn.outputs) > 1:
        for name in drawn.outputs:
            made = copy.deepcopy(drawn)
            made.outputs = [n for n in drawn.outputs if n != name]
            yield made
    for k in reversed(range(len(drawn.lines))):
        made = copy.deepcopy(drawn)
        del made.lines[k]
        yield made
    for k, line in enumerate(drawn.lines):
        for n, term in enumerate(line.terms()):
            if term is line:
                continue
            inside = [m for m, t in enumerate(term.terms()) if m and t.dtype == term.dtype]
            for m in inside[:4]:
                made = copy.deepcopy(drawn)
                target = list(made.lines[k].terms())[n]
                target.parts = list(list(target.terms())[m].parts)
                yield made
            text = {"bool": "sx.bool_(True)", "index": "0"}.get(term.dtype, f"sx.{term.dtype}(1)")
            if str(term) != text and len(str(term)) > len(text):
                made = copy.deepcopy(drawn)
                list(made.lines[k].terms())[n].parts = [text]
                yield made


__all__ = ["Term", "show_one", "shrink"]
