"""Times of callables, read in turns, with an interval for each median that no distribution is assumed for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb
from statistics import median
from typing import Any

from stax.errors import ArgumentError
from stax.measure.text import digits, table, time_text

LEAST_READING_S = 1e-3
MOST_CALLS = 1_000_000
COVERED = 0.95


@cache
def median_places(count: int, least: float = COVERED) -> tuple[int, int, float]:
    """Return places j < k, and the chance that the median lies between the j-th and k-th smallest of `count` readings.

    They are the closest pair, as far from either end, whose chance is `least` or more; the ends, where none has that.
    Readings are independent and of one continuous distribution, whichever: the number below the median is binomial.

    >>> median_places(15)
    (4, 12, 0.96484375)
    """
    best = (1, count)
    for j in range(1, count // 2 + 1):
        if _chance(count, j, count + 1 - j) >= least:
            best = (j, count + 1 - j)
    j, k = best
    return j, k, _chance(count, j, k)


def _chance(count: int, j: int, k: int) -> float:
    return sum(comb(count, i) for i in range(j, k)) / 2**count


@dataclass(frozen=True, slots=True)
class Interval:
    """The median of readings, and the two readings that it lies between with the chance `chance`."""

    median: float
    low: float
    high: float
    chance: float

    @staticmethod
    def of(readings: Iterable[float]) -> Interval:
        """Return the interval of the median of `readings`.

        >>> Interval.of(range(1, 16))
        Interval(median=8, low=4, high=12, chance=0.96484375)
        """
        ordered = sorted(readings)
        j, k, chance = median_places(len(ordered))
        return Interval(median(ordered), ordered[j - 1], ordered[k - 1], chance)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one callable: a reading a round, each the mean of so many `calls` in a row."""

    name: str
    readings: tuple[float, ...]
    calls: int

    @property
    def interval(self) -> Interval:
        """The median, which tells what usually happens, and its interval."""
        return Interval.of(self.readings)

    @property
    def median_s(self) -> float:
        """The median."""
        return self.interval.median

    @property
    def least_s(self) -> float:
        """The smallest reading: what else happens only slows, so that it tells what the machine can do."""
        return min(self.readings)


@dataclass(frozen=True, slots=True)
class Bench:
    """What `sx.bench` found; printed, a table."""

    timings: tuple[Timing, ...]

    def timing(self, name: str) -> Timing:
        """Return the times of a callable by its name; KeyError where there is none."""
        for one in self.timings:
            if one.name == name:
                return one
        raise KeyError(name)

    def ratio(self, slow: str, fast: str) -> Interval:
        """Return how many times as long `slow` takes as `fast`, by the ratios within rounds."""
        pairs = zip(self.timing(slow).readings, self.timing(fast).readings, strict=True)
        return Interval.of(a / b for a, b in pairs)

    def __str__(self) -> str:
        rows = [("", "median", "between", "fastest", "ratio", "between")]
        first = self.timings[0].name
        for one in self.timings:
            found, ratio = one.interval, self.ratio(one.name, first)
            times = (
                time_text(found.median),
                f"{time_text(found.low)} .. {time_text(found.high)}",
                time_text(one.least_s),
            )
            beside = "" if one.name == first else f"{digits(ratio.low, 3)} .. {digits(ratio.high, 3)}"
            rows.append((one.name, *times, digits(ratio.median, 3), beside))
        n, chance = len(self.timings[0].readings), self.timings[0].interval.chance
        note = f"{n} rounds in turns; medians lie between with a chance of {chance:.1%}"
        return "\n".join([*(line.rstrip() for line in table(rows)), note])


def bench(
    *callables: Callable[[], Any], rounds: int = 15, warmup: int = 3, names: Sequence[str] | None = None
) -> Bench:
    """Return the times of `callables`, each called once a round, in an order that turns from round to round.

    rounds: how many readings each gets, after `warmup` calls that are not counted. names: what to call them, else by
    their own names. Where a call takes less than a millisecond, a reading is the mean of as many as last that long.
    What the machine does besides meets all of them alike, so that they may be compared within one run, and not with
    those of another. A callable must be done when it returns.

    >>> import stax as sx
    >>> found = sx.bench(lambda: sum(range(99)), lambda: sum(range(999)), names=["short", "long"], rounds=7)
    >>> [t.name for t in found.timings], len(found.timings[0].readings)
    (['short', 'long'], 7)
    >>> found.timing("short").least_s <= found.timing("short").median_s
    True
    """
    called = _names(callables, names)
    if rounds < 1 or warmup < 0:
        raise ArgumentError(f"{rounds} rounds after {warmup} calls cannot be had", hint="rounds >= 1, warmup >= 0")
    calls = [_calls(call, warmup) for call in callables]
    readings: list[list[float]] = [[] for _ in callables]
    places = range(len(callables))
    for turn in range(rounds):
        for at in (*places[turn % len(places) :], *places[: turn % len(places)]):
            readings[at].append(_reading(callables[at], calls[at]))
    return Bench(tuple(Timing(n, tuple(r), c) for n, r, c in zip(called, readings, calls, strict=True)))


def _names(callables: Sequence[Callable[[], Any]], names: Sequence[str] | None) -> list[str]:
    if not callables:
        raise ArgumentError("there is nothing to time", hint="sx.bench(first, second)")
    for one in callables:
        if not callable(one):
            raise ArgumentError(f"{one!r:.60} is not callable", hint="lambda: kernel(array)")
    if names is not None and len(names) != len(callables):
        raise ArgumentError(f"{len(names)} names do not fit {len(callables)} callables")
    found: list[str] = []
    for one, given in zip(callables, names or (None,) * len(callables), strict=True):
        name = given or str(getattr(one, "__name__", type(one).__name__))
        count = 1 + sum(n == name or n.startswith(f"{name}.") for n in found)
        found.append(name if count == 1 else f"{name}.{count}")
    return found


def _calls(call: Callable[[], Any], warmup: int) -> int:
    """Return how many calls make a reading that is long enough, after `warmup` calls."""
    for _ in range(warmup):
        call()
    calls = 1
    while (took := _reading(call, calls) * calls) < LEAST_READING_S and calls < MOST_CALLS:
        calls = min(MOST_CALLS, max(2 * calls, int(calls * LEAST_READING_S / max(took, 1e-9)) + 1))
    return calls


def _reading(call: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls
