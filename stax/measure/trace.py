"""What a program does, one load and one store after the other, in the interpreters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from stax.algorithm.nodes import MARK
from stax.errors import ArgumentError, UnsupportedError
from stax.lang.freeze import freeze
from stax.loops.interpret import interpret
from stax.runtime.arguments import Arguments
from stax.runtime.kernel import Kernel
from stax.testing import meaning

Array: TypeAlias = np.ndarray[Any, Any]
KINDS = ("load", "store", "realize")
_SHOWN = 40


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """A load of `func` by stage `by`, a store to it, or its realization.

    `cells` has a row for each cell that is touched at once, `values` what was read or written there. Of a realization,
    `cells` has two rows: its first and its last cell.
    """

    kind: str
    func: str
    by: str
    cells: Array
    values: Array

    def __str__(self) -> str:
        if self.kind == "realize":
            box = ", ".join(f"{lo}..{hi}" for lo, hi in self.cells.T.tolist())
            return f"realize {self.func}[{box}]"
        by = "" if self.by in ("", self.func) else f"  by {self.by}"
        lines = (
            f"{self.kind} {self.func}[{', '.join(map(str, cell))}] = {value}{by}"
            for cell, value in zip(self.cells.tolist(), self.values.tolist(), strict=True)
        )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What `sx.trace` saw, in order; printed, a line for each of the first cells. `left` cells were not kept."""

    events: tuple[Event, ...]
    left: int

    def count(self, kind: str, func: Any) -> int:
        """Return how many cells of `func` were loaded ("load") or stored ("store"), or how often it is realized."""
        found = [e for e in self.events if e.kind == kind and e.func == _name(func)]
        return len(found) if kind == "realize" else sum(len(e.cells) for e in found)

    def __str__(self) -> str:
        lines: list[str] = []
        for event in self.events:
            lines += str(event).split("\n")
            if len(lines) > _SHOWN:
                break
        more = sum(1 if e.kind == "realize" else len(e.cells) for e in self.events) + self.left - _SHOWN
        return "\n".join([*lines[:_SHOWN], *([f"and {more:,} more"] if more > 0 else [])])


def trace(
    program: Any,
    /,
    *arrays: Any,
    of: Any = None,
    kinds: Collection[str] = KINDS,
    shape: Any = None,
    most: int = 100_000,
    **named: Any,
) -> Trace:
    """Return the loads, stores and realizations of `program`, called with these arguments.

    A Kernel is run as its loops say, in order and in one thread, and cells are those of its storage, from 0 on; a Func,
    or a tuple of them, as the algorithm says, stage by stage, and cells are its own indices. of: a Func, an Input or a
    name, or a list of those, whose events are wanted; kinds: which. `most` cells are kept.

    >>> import numpy as np, stax as sx
    >>> x, a = sx.Var("x"), sx.Input("a", sx.int32, 1)
    >>> f, g = sx.Func("f"), sx.Func("g")
    >>> f[x] = a[x] * 2
    >>> g[x] = f[x] + f[x + 1]
    >>> print(sx.trace(g, np.arange(3, dtype=np.int32), of=f))
    realize f[0..2]
    store f[0] = 0
    store f[1] = 2
    store f[2] = 4
    load f[0] = 0  by g
    load f[1] = 2  by g
    load f[1] = 2  by g
    load f[2] = 4  by g
    >>> s = sx.Schedule(g)
    >>> _ = s[f].inline()
    >>> sx.trace(sx.compile(g, s), np.arange(3, dtype=np.int32)).count("load", a)
    4
    """
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown:
        raise ArgumentError(f"there is no kind of event {unknown[0]!r}", hint=f"kinds are {', '.join(KINDS)}")
    wanted = None if of is None else frozenset(map(_name, of if isinstance(of, list | tuple | set) else (of,)))  # pyright: ignore[reportUnknownArgumentType]
    seen = _Seen(wanted, frozenset(kinds), most)
    if isinstance(program, Kernel):
        _of_kernel(program, arrays, named, shape, seen)
    else:
        meaning(program, _by_name(program, arrays, named), shape, watch=seen)
    return Trace(tuple(seen.events), seen.left)


def _of_kernel(kernel: Kernel, arrays: tuple[Any, ...], named: Mapping[str, Any], shape: Any, seen: _Seen) -> None:
    if kernel.build.program is None:
        raise UnsupportedError("this kernel keeps no loops")
    bound = Arguments(kernel.signature).bind(arrays, named, None, shape)
    sizes = {(name, dim): n for name, extents in bound.sizes.items() for dim, n in enumerate(extents)}
    copies = {buffer: bound.arrays[buffer].copy() for _, buffer in kernel.signature.overwritten}
    if not bound.empty:
        interpret(kernel.build.program(), {**bound.arrays, **copies}, bound.scalars, sizes, seen)


def _by_name(program: Any, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    names = freeze(program).arguments
    if len(arrays) > len(names):
        raise ArgumentError(f"{len(arrays)} arrays were given, and the program takes {len(names)}: {', '.join(names)}")
    given = dict(zip(names, arrays, strict=False)) | dict(named)
    missing = [name for name in names if name not in given]
    if missing:
        raise ArgumentError(f"`{missing[0]}` was not given")
    return given


def _name(of: Any) -> str:
    return of if isinstance(of, str) else of.name


@dataclass(slots=True)
class _Seen:
    """Keeps what is wanted of what an interpreter tells."""

    of: frozenset[str] | None
    kinds: frozenset[str]
    room: int
    events: list[Event]
    left: int

    def __init__(self, of: frozenset[str] | None, kinds: frozenset[str], room: int) -> None:
        self.of, self.kinds, self.room, self.events, self.left = of, kinds, room, [], 0

    def loaded(self, source: str, by: str, at: tuple[Array, ...], values: Array, on: Any) -> None:
        self._keep("load", source, by, at, values, on)

    def stored(self, target: str, by: str, at: tuple[Array, ...], values: Array, on: Any) -> None:
        self._keep("store", target, by, at, values, on)

    def realized(self, name: str, box: tuple[tuple[int, int], ...]) -> None:
        if self._wants("realize", name):
            ends = np.array(box, np.int64).reshape(-1, 2).T
            self.events.append(Event("realize", name.split(MARK)[0], "", ends, np.zeros(0)))

    def _wants(self, kind: str, name: str) -> bool:
        return kind in self.kinds and (self.of is None or name.split(MARK)[0] in self.of)

    def _keep(self, kind: str, name: str, by: str, at: tuple[Array, ...], values: Array, on: Any) -> None:
        if not self._wants(kind, name):
            return
        mask = np.asarray(True if on is None else on)
        shape = np.broadcast_shapes(np.shape(values), mask.shape, *(np.shape(i) for i in at))
        chosen = np.broadcast_to(mask, shape).reshape(-1)
        cells = np.array([np.broadcast_to(i, shape).reshape(-1) for i in at], np.int64).reshape(len(at), len(chosen)).T
        cells, kept = cells[chosen], np.broadcast_to(values, shape).reshape(-1)[chosen]
        if len(kept) > self.room:
            self.left += len(kept) - self.room
            cells, kept = cells[: self.room], kept[: self.room]
        self.room -= len(kept)
        if len(kept):
            self.events.append(Event(kind, name.split(MARK)[0], by, cells, kept))
