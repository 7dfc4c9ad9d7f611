"""Which of several kernels of one program takes the least time on the arrays of a call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import inf

from stax.errors import BackendError
from stax.runtime.arguments import Bound
from stax.runtime.kernel import Kernel

MOST_ROUNDS, LEAST_ROUNDS = 15, 3
MOST_S = 1.0
LEAST_GAIN = 0.03


def fastest(kernels: Sequence[Callable[[], Kernel]], bound: Bound, threads: int) -> int | None:
    """Return the place of the fastest of `kernels`, the first that runs unless another takes 3 % less time.

    They run in turns, once so that code and memory are warm, then for about a second; the least time of each counts.
    One of which there is no machine code (BackendError) is left out; None where that are all.
    """
    runs: dict[int, Callable[[], None]] = {}
    for at, kernel in enumerate(kernels):
        try:
            runs[at] = kernel().ready(bound, threads)
        except BackendError:
            continue
        runs[at]()
    least, begin = dict.fromkeys(runs, inf), time.perf_counter()
    for done in range(MOST_ROUNDS):
        if done >= LEAST_ROUNDS and time.perf_counter() - begin > MOST_S:
            break
        for at, run in runs.items():
            start = time.perf_counter()
            run()
            least[at] = min(least[at], time.perf_counter() - start)
    if not runs:
        return None
    first, best = min(runs), min(least, key=least.__getitem__)
    return best if least[best] < (1 - LEAST_GAIN) * least[first] else first
