"""Which axes become lanes, and what the components of a value are.

Axes that meet in one expression form a group; the last of each group is its lane axis. A value that has it is a list of
vectors, one for each point of its other axes and each run of lanes: runs are powers of two, since LLVM is poor at other
vectors. The other axes are unrolled.

A component is a vector, or `text + offset + slope * lane`: so positions stay scalar, and what all lanes share is
computed once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product

from stax.backends.llvm import types
from stax.backends.llvm.writer import Function
from stax.dtypes import DType
from stax.errors import InternalError
from stax.expr.build import wrap
from stax.expr.nodes import Axes, Axis, Dot
from stax.loops import walk
from stax.loops.nodes import Program, Store

Point = tuple[int, ...]
_MOST = 64


@dataclass(frozen=True, slots=True)
class Part:
    """A component: the vector `text` where `slope` is None, else lane l is the scalar `text + offset + slope * l`."""

    text: str
    slope: int | None = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """`width` lanes of a lane axis from `start` on; width 0 where there is no lane axis."""

    start: int
    width: int


NO_RUN = Run(0, 0)


@dataclass(slots=True)
class Layout:
    """The runs of each lane axis, and the points of axes found so far."""

    order: dict[str, int]
    runs: dict[str, tuple[Run, ...]]
    _points: dict[Axes, list[Point]] = field(default_factory=dict[Axes, list[Point]])
    _runs: dict[Axes, list[Run]] = field(default_factory=dict[Axes, list[Run]])
    _places: dict[tuple[Axes, Axes], list[int]] = field(default_factory=dict[tuple[Axes, Axes], list[int]])

    def lane(self, axes: Axes) -> Axis | None:
        """Return the lane axis among `axes`."""
        for axis in axes:
            if axis.name in self.runs:
                return axis
        return None

    def points(self, axes: Axes) -> list[Point]:
        """Return the components of a value with `axes`; along the lane axis a point counts runs."""
        found = self._points.get(axes)
        if found is None:
            sizes = [range(len(self.runs[a.name]) if a.name in self.runs else a.size) for a in axes]
            found = self._points[axes] = list(product(*sizes))
        return found

    def widths(self, axes: Axes) -> list[Run]:
        """Return the run of lanes of each component."""
        found = self._runs.get(axes)
        if found is None:
            lane = self.lane(axes)
            points = self.points(axes)
            if lane is None:
                found = [NO_RUN] * len(points)
            else:
                at, runs = axes.index(lane), self.runs[lane.name]
                found = [runs[p[at]] for p in points]
            self._runs[axes] = found
        return found

    def spread(self, parts: list[Part], own: Axes, axes: Axes) -> list[Part]:
        """Return the components of a value with axes `own` as those of one with `axes`, which has more."""
        if own == axes:
            return parts
        if not own:
            return parts * len(self.points(axes))
        places = self._places.get((own, axes))
        if places is None:
            at = [axes.index(a) for a in own]
            index = {p: k for k, p in enumerate(self.points(own))}
            places = [index[tuple(p[k] for k in at)] for p in self.points(axes)]
            self._places[own, axes] = places
        return [parts[k] for k in places]

    def union(self, several: Iterable[Axes]) -> Axes:
        """Return the axes that any of `several` have, in nest order."""
        found = {axis: None for axes in several for axis in axes}
        return tuple(sorted(found, key=lambda a: self.order[a.name]))


def layout(program: Program) -> Layout:
    """Return which axes of `program` are lanes."""
    order = {axis.name: k for k, axis in enumerate(program.axes)}
    group = {axis.name: axis.name for axis in program.axes}

    def find(name: str) -> str:
        while group[name] != name:
            group[name] = group[group[name]]
            name = group[name]
        return name

    def join(several: Iterable[Axes]) -> None:
        names = [axis.name for axes in several for axis in axes]
        for name in names[1:]:
            group[find(name)] = find(names[0])

    for stmt in walk.statements(program.body):
        if isinstance(stmt, Store):
            join(e.axes for e in (*stmt.index, stmt.value, *stmt.mask))
    for node in walk.nodes(program.body):
        for axis in node.axes:
            if axis.name not in order:
                raise InternalError(f"axis {axis.name} is not among those of program {program.name}")
        if isinstance(node, Dot):
            join((node.acc.axes, node.left.axes, node.right.axes))
        elif len(node.axes) > 1:
            join((node.axes,))
    last = {find(axis.name): axis for axis in program.axes}
    return Layout(order, {axis.name: _runs(axis.size) for axis in last.values()})


def _runs(size: int) -> tuple[Run, ...]:
    found: list[Run] = []
    at = 0
    while at < size:
        width = min(_MOST, 1 << ((size - at).bit_length() - 1))
        found.append(Run(at, width))
        at += width
    return tuple(found)


def is_linear(dtype: DType) -> bool:
    """Return whether values of `dtype` are kept as text, slope and offset."""
    return dtype.bits == 64 and dtype.is_signed and not dtype.is_float


def number(n: int, dtype: DType) -> Part:
    """Return an integer constant of a 64-bit type."""
    return Part("0", 0, wrap(n, dtype))


def exact(dtype: DType) -> str:
    """Return the flag of sums and products of a 64-bit type: positions do not overflow, int64 wraps."""
    return " nsw" if dtype.name == "index" else ""


def scalar(f: Function, part: Part, dtype: DType) -> str:
    """Return the value of the first lane; `part` is no vector."""
    return f.add(part.text, str(part.offset), exact(dtype)) if part.offset else part.text


def vector(f: Function, part: Part, dtype: DType, lanes: int) -> str:
    """Return all lanes as one vector; a scalar where `lanes` is 0."""
    if part.slope is None:
        return part.text
    if not lanes:
        return scalar(f, part, dtype)
    first = scalar(f, part, dtype)
    return ramp(f, first, part.slope, dtype, lanes) if part.slope else f.splat(first, types.element(dtype), lanes)


def ramp(f: Function, first: str, slope: int, dtype: DType, lanes: int) -> str:
    """Return first, first + slope, ..., wrapping."""
    element, start = types.element(dtype), types.known(first)
    if start is not None:
        return types.row([wrap(start + slope * k, dtype) for k in range(lanes)], element)
    steps = types.row([wrap(slope * k, dtype) for k in range(lanes)], element)
    return f.put(f"add {types.vector(element, lanes)} {f.splat(first, element, lanes)}, {steps}")
