"""python -m tests.differential: many random programs, each under several schedules; a table of what was seen."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

from tests.differential.compare import Outcome
from tests.differential.schedules import AIMS
from tests.differential.work import Job, work
from tests.differential.workers import Died, run_all

MOST_AIMED = 4000
"""How many programs are tried for a word that is seen too seldom."""


def main() -> int:
    """Run and report; 1 where anything differed, failed or died. An interrupt ends the run, and it is reported."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--schedules", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; program k has seed + k")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed-one", type=int, help="run one seed here, and print its program and first difference")
    parser.add_argument("--shrink", action="store_true", help="with --seed-one: make the program smaller first")
    parser.add_argument("--mutants", type=int, metavar="PROGRAMS", help="let each mutant be found within so many")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--recurrences", action="store_true", help="programs and schedules that are mostly of these")
    parser.add_argument("--aim", default="", choices=AIMS, metavar="WORD", help="schedules that mostly try this word")
    parser.add_argument("--fill", action="store_true", help="then aim at each word seen too seldom, until it is not")
    given = parser.parse_args()
    if given.mutants is not None:
        from tests.differential.mutants import report

        return report(given.mutants, given.schedules, given.seed, given.jobs)
    if given.seed_one is not None:
        from tests.differential.shrink import show_one

        return show_one(given.seed_one, given.schedules, given.shrink, given.recurrences, given.aim)
    return _all(
        given.programs, given.schedules, given.seed, given.jobs, given.times, given.recurrences, given.aim, given.fill
    )


def _until_interrupted(results: Iterator[Any]) -> Iterator[Any]:
    """Yield `results`; an interrupt ends them, and what there is so far is reported."""
    try:
        yield from results
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)


def _aimed(word: str) -> str:
    return f" --aim '{word}'" if word else ""


def _all(
    programs: int, schedules: int, seed: int, jobs: int, times: bool, recurrences: bool, aim: str, fill: bool
) -> int:
    from tests.differential.recurrences import COUNTED
    from tests.differential.seen import LEAST, expected, table

    wanted = [f"directive {word}" for word in COUNTED] if recurrences else expected()
    others = frozenset(expected()) - {*wanted}

    start = time.monotonic()
    bad: list[str] = []
    counts: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    directives: Counter[str] = Counter()
    drawn: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    attempts: Counter[str] = Counter()

    def todo() -> Iterator[Job]:
        for k in range(programs):
            yield Job(seed + k, schedules, recurrences, enough(), aim)
        following = count(seed + programs)
        for word in AIMS if fill else ():
            for at in islice(following, MOST_AIMED):
                if seen[f"directive {word}"] >= LEAST:
                    break
                yield Job(at, schedules, recurrences, enough(), word)

    def enough() -> frozenset[str]:
        # Words that were seen more often than they must be leave the judging of schedules to those that were not.
        return frozenset(w for w, n in seen.items() if n >= LEAST + LEAST // 4) | others

    ran = 0
    for result in _until_interrupted(run_all(work, todo(), jobs)):
        ran += 1
        match result:
            case Died(job=job, why=why):
                counts["crashed"] += 1
                bad.append(f"seed {job.seed}{_aimed(job.aim)}: {why}")
                print(bad[-1], flush=True)
            case Outcome():
                counts[result.status] += 1
                counts["runs"] += result.runs
                directives.update(result.refusals)
                drawn.update(result.drawn)
                seen.update(result.seen)
                if not (fill and result.aim):
                    attempts.update(result.attempts)
                seconds.update(result.seconds)
                if result.status == "refused":
                    refused[result.message] += 1
                elif result.status != "ok":
                    bad.append(
                        f"seed {result.seed}{_aimed(result.aim)}: {result.status}: {result.message}\n{result.schedule}"
                    )
                    print(bad[-1], flush=True)
        if ran % 100 == 0:
            print(f"{ran} programs, {time.monotonic() - start:.0f} s, {len(bad)} bad", file=sys.stderr, flush=True)
    print(table(drawn, seen, LEAST))
    few = [word for word in wanted if seen[word] < LEAST]
    print(f"{len(few)} of {len(wanted)} words seen fewer than {LEAST} times{': ' if few else ''}{', '.join(few)}")
    print(f"{sum(refused.values())} programs or calls refused:")
    for message, n in refused.most_common(12):
        print(f"  {n:5d}  {message[:140]}")
    tried = max(1, attempts.total())
    shares = ", ".join(f"{attempts[w]} {w} ({100 * attempts[w] // tried} %)" for w in ("accepted", "illegal", "unfit"))
    print(f"{attempts.total()} drawn schedules{', without the aimed ones' if fill else ''}: {shares}")
    print("directives refused: " + ", ".join(f"{word} {n}" for word, n in directives.most_common()))
    if times:
        print("seconds: " + ", ".join(f"{what} {s:.0f}" for what, s in seconds.most_common()))
    print(
        f"{ran} programs by {schedules} schedules: {counts['runs']} runs compared, {counts['ok']} programs the "
        f"same to the bit, {counts['wrong']} mismatches, {counts['error']} errors, {counts['crashed']} crashes, "
        f"{time.monotonic() - start:.0f} s"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
