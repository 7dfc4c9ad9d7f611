"""Times of two functions, measured in turns in one run, so that what else the machine does meets both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any


def alternate(first: Callable[[], Any], second: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Return the median seconds of `first` and of `second` over `rounds` turns, after one turn that is not counted."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds + 1):
        for kept, call in zip(times, (first, second), strict=True):
            start = time.perf_counter()
            call()
            if turn:
                kept.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])
