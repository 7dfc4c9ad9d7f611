"""Programs as rows of plain data: hashed, they are a key; kept, they are made again.

A row is the name of a class and the fields of one object; objects further in are numbers of earlier rows, so sharing
stays sharing, and a deep graph is a long list. Places in the user's files are no part of a key: they are listed in the
order in which they are met, and a row that is kept says which of them it means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, cast

import numpy as np

from stax import dtypes
from stax.dtypes import DType
from stax.source import Span

Rows = list[Any]


def flatten(value: object, places: Sequence[Span | None] | None = None) -> tuple[Rows, list[Span | None]]:
    """Return `value` as rows, the last of which is its own, and the places met.

    places: those that spans are looked up in; without them, spans are left out. Raises TypeError for what is no
    dataclass, number, text, enumeration, array, or collection of such.
    """
    known = {} if places is None else {span: k for k, span in reversed(list(enumerate(places)))}
    rows: Rows = []
    met: list[Span | None] = []
    at: dict[int, int] = {}
    same: dict[str, int] = {}
    held: list[object] = []

    def plain(item: object) -> Any:
        if item is None or type(item) in (bool, int, str):
            return item
        if type(item) is float:
            return {"f": item.hex()}
        if isinstance(item, DType):
            return {"d": item.name}
        if isinstance(item, Enum):
            return {"e": [type(item).__name__, item.name]}
        if isinstance(item, Span):
            met.append(item)
            return None if places is None else {"s": known.get(item, -1)}
        if isinstance(item, np.generic | np.ndarray):
            cells = cast(Any, item)
            data = cells.tobytes()
            if isinstance(item, np.generic):
                return {"n": [cells.dtype.str, data.hex()]}
            return {"a": [cells.dtype.str, list(cells.shape), hashlib.sha256(data).hexdigest()]}
        return [at[id(item)]]

    stack: list[tuple[Any, bool]] = [(value, False)]
    while stack:
        item, done = stack.pop()
        if id(item) in at or _is_atom(item):
            continue
        names, parts = _parts(item)
        if not done:
            stack.append((item, True))
            stack += [(part, False) for part in reversed(parts)]
            continue
        row = [names[0], *(plain(part) for part in parts)]
        met += [None] * sum(name == "span" and part is None for name, part in zip(names[1:], parts, strict=False))
        held.append(item)
        at[id(item)] = len(rows) if len(names) > 1 else same.setdefault(repr(row), len(rows))
        if at[id(item)] == len(rows):
            rows.append(row)
    rows.append(["=", plain(value)])
    return rows, met


def restore(rows: Rows, classes: Mapping[str, type], places: Sequence[Span | None]) -> Any:
    """Return the value of rows whose classes are among `classes`; spans are those of `places`.

    Raises KeyError, TypeError or ValueError for rows of anything else.
    """
    made: list[Any] = []

    def value(item: Any) -> Any:
        if isinstance(item, list):
            return made[item[0]]
        if not isinstance(item, dict):
            return item
        ((kind, what),) = cast(dict[str, Any], item).items()
        match kind:
            case "f":
                return float.fromhex(what)
            case "d":
                return _dtypes()[what]
            case "e":
                return classes[what[0]][what[1]]  # pyright: ignore
            case "s":
                number = int(what)
                return places[number] if 0 <= number < len(places) else None
            case "n":
                return np.frombuffer(bytes.fromhex(what[1]), np.dtype(what[0]))[0]
            case other:
                raise ValueError(other)

    for name, *parts in rows:
        values = [value(part) for part in parts]
        match name:
            case "=":
                made.append(values[0])
            case "()":
                made.append(tuple(values))
            case "{}":
                made.append(frozenset(values))
            case "{:}":
                made.append(dict(zip(values[::2], values[1::2], strict=True)))
            case _:
                cls = classes[name]
                made.append(cls(**dict(zip(_fields(cls), values, strict=True))))
    return made[-1]


def _is_atom(item: object) -> bool:
    return item is None or isinstance(item, bool | int | float | str | DType | Enum | Span | np.generic | np.ndarray)


def _parts(item: Any) -> tuple[tuple[str, ...], Sequence[Any]]:
    """Return the name of the row of an object, with those of its fields, and its parts."""
    if isinstance(item, tuple | list):
        return ("()",), cast(Sequence[Any], item)
    if isinstance(item, set | frozenset):
        return ("{}",), sorted(cast(frozenset[Any], item), key=_order)
    if isinstance(item, Mapping):
        return ("{:}",), [part for pair in cast(Mapping[Any, Any], item).items() for part in pair]
    if is_dataclass(item) and not isinstance(item, type):
        names = _fields(type(item))
        return (type(item).__name__, *names), [getattr(item, name) for name in names]
    raise TypeError(f"{type(item).__name__} is no plain data")


def _order(item: object) -> str:
    return repr(flatten(item)[0])


@cache
def _fields(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


@cache
def _dtypes() -> dict[str, DType]:
    return {v.name: v for v in vars(dtypes).values() if isinstance(v, DType)}
