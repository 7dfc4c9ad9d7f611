"""The indices of a read or a definition: one a dim, `...` for those that lead."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

import numpy as np

from stax.lang.terms import NUMBER, Lead, as_tuple, refuse
from stax.lang.value import Value, value_of


def entries(index: object) -> tuple[object, ...]:
    """Return what stands between the brackets, one an entry."""
    return as_tuple(index)


def entry(given: object, name: str) -> Value:
    """Return one index of `name`, or refuse what NumPy would slice or select with."""
    if isinstance(given, slice):
        refuse(
            f"`{name}` is sliced", hint="an index is a number; a Func over the slice's indices does what a slice does"
        )
    if given is None or isinstance(given, list | np.ndarray | bool):
        kind = "None" if given is None else type(given).__name__  # pyright: ignore[reportUnknownArgumentType]
        refuse(f"`{name}` is indexed with {kind}", hint="an index is one integer value a dim")
    return value_of(given, f"an index of `{name}`")


def of_read(index: object, dims: Sequence[str], name: str) -> tuple[Value, ...]:
    """Return one index a dim; `...` stands for the leading dims that are not written."""
    given = entries(index)
    if any(isinstance(g, EllipsisType) for g in given):
        if not isinstance(given[0], EllipsisType) or any(isinstance(g, EllipsisType) for g in given[1:]):
            refuse(f"`...` stands once, before the other indices of `{name}`")
        count = len(dims) - len(given) + 1
        if count < 0:
            wrong_count(name, dims, len(given) - 1)
        lead = [Value(Lead(NUMBER, dims[k], place=count - k)) for k in range(count)]
        return (*lead, *(entry(g, name) for g in given[1:]))
    if len(given) != len(dims):
        wrong_count(name, dims, len(given))
    return tuple(entry(g, name) for g in given)


def wrong_count(name: str, dims: Sequence[str], count: int) -> None:
    """Refuse an index of another length than `dims`."""
    shown = ", ".join(dims) if dims else "()"
    refuse(
        f"`{name}` has {len(dims)} dim{'s' if len(dims) != 1 else ''} and is indexed with {count}",
        facts=[f"its dims are {name}[{shown}]"],
    )
