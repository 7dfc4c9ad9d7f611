"""The steps of a compilation and of its calls with their times, for STAX_LOG=trace."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator


class Log:
    """Tells `write` of each step, a line each, and after a whole of what it took besides its steps."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self.write = write
        self._steps_s: list[float] = []
        self._depth = 0

    @contextlib.contextmanager
    def step(self, what: str) -> Generator[None]:
        """Tell of what is done inside; of a step inside another one only the outer counts in the whole."""
        start = time.perf_counter()
        self._depth += 1
        try:
            yield
        finally:
            took_s = time.perf_counter() - start
            self._depth -= 1
            if not self._depth:
                self._steps_s.append(took_s)
            self.write(f"stax: {'  ' * (self._depth + 1)}{what:28} {1e3 * took_s:9.3f} ms")

    @contextlib.contextmanager
    def whole(self, what: str) -> Generator[None]:
        """Tell of the steps inside, then how long all took."""
        start, self._steps_s = time.perf_counter(), []
        self.write(f"stax: {what}")
        try:
            yield
        finally:
            took_s = time.perf_counter() - start
            rest_s = took_s - sum(self._steps_s)
            self.write(f"stax: {what:30} {1e3 * took_s:9.3f} ms, of which {1e3 * rest_s:.3f} ms in none of its steps")


def step(log: Log | None, what: str) -> contextlib.AbstractContextManager[None]:
    """Return the context of a step, which is nothing where nobody wants to know."""
    return contextlib.nullcontext() if log is None else log.step(what)


def whole(log: Log | None, what: str) -> contextlib.AbstractContextManager[None]:
    """Return the context of a whole."""
    return contextlib.nullcontext() if log is None else log.whole(what)
