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


def smallest(isl: Any, whole: Any) -> list[int]:
    """Return the smallest parameters, from 1 on, for which the set `whole` has a point, then the smallest point."""
    dim = isl.dim_type
    whole = whole.reset_tuple_id() if whole.has_tuple_id() else whole
    count = whole.dim(dim.param)
    whole = whole.move_dims(dim.set, 0, dim.param, 0, count)
    for least in (1, 0):
        bounded = whole
        for k in range(count):
            bounded = bounded.lower_bound_val(dim.set, k, isl.Val.int_from_si(whole.get_ctx(), least))
        if not bounded.is_empty():
            whole = bounded
            break
    try:
        point = whole.lexmin().sample_point()
    except isl.Error:
        point = whole.sample_point()
    return [point.get_coordinate_val(dim.set, k).to_python() for k in range(whole.dim(dim.set))]
