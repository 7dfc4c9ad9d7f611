"""isl, imported when it is first used: one context for the process, and a limit on what a question may cost.

isl counts its operations, so that a limit means the same on every machine.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from threading import RLock
from typing import Any

_LOCK = RLock()


class TooHard(Exception):
    """A question that took more operations than it may, or that isl cannot put."""


def library() -> Any:
    """Return the module islpy."""
    import islpy  # pyright: ignore[reportMissingImports]

    return islpy


@contextmanager
def limited(operations: int) -> Generator[Any]:
    """Give the module for a question of at most `operations`; TooHard where it takes more.

    isl runs on one thread at a time. Text is parsed before: a parse that runs out of operations tells another story.
    """
    isl = library()
    context = isl.DEFAULT_CONTEXT
    with _LOCK:
        context.reset_operations()
        context.set_max_operations(operations)
        try:
            yield isl
        except isl.Error as error:
            raise TooHard(str(error)) from None
        finally:
            context.set_max_operations(0)
            context.reset_operations()
