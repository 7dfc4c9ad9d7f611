"""What a program moves to and from memory under a schedule, beside what it would move Func by Func, and the least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stax.algorithm.nodes import Pipeline
from stax.bounds.infer import infer
from stax.compiler import freeze_for
from stax.errors import ArgumentError
from stax.legality.check import check
from stax.measure.extents import Extents
from stax.measure.passes import NOTHING, Moved, least, one_by_one, scheduled
from stax.measure.polynomial import Polynomial
from stax.measure.text import bytes_text, table
from stax.runtime.kernel import Kernel
from stax.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes to and from memory: of each of `passes` of a schedule, `apart`, each Func by itself, and at `least`.

    Where sizes are not all known, bytes are polynomials in them; `bytes_moved`, `bytes_apart` and `bytes_least` are
    numbers, or None. Printed, a table.
    """

    program: str
    passes: tuple[Moved, ...]
    apart: tuple[Moved, ...]
    least: Moved

    @property
    def moved(self) -> Polynomial:
        """All that the schedule reads and writes."""
        return _all(self.passes)

    @property
    def bytes_moved(self) -> int | None:
        """What the schedule reads and writes."""
        return self.moved.number

    @property
    def bytes_apart(self) -> int | None:
        """What Funcs would read and write, each computed whole before what reads it."""
        return _all(self.apart).number

    @property
    def bytes_least(self) -> int | None:
        """What any schedule must read and write: cells of inputs that are read, and those of outputs, once each."""
        return _all((self.least,)).number

    @property
    def rho(self) -> float | None:
        """How many times as much Funcs would move one by one; without numbers, as all sizes grow."""
        return self.ratio()

    @property
    def over_least(self) -> float | None:
        """How many times the least the schedule moves; without numbers, as all sizes grow."""
        return _over(self.moved, _all((self.least,)))

    def ratio(self, write_factor: float = 1.0) -> float | None:
        """Return `rho` where a byte that is written costs `write_factor` times one that is read.

        A cache that reads a line before it writes to it makes that 2, where stores do not go past it.
        """
        scale = round(write_factor * 1000)
        return _over(_all(self.apart, scale), _all(self.passes, scale))

    def __str__(self) -> str:
        rows = [(self.program, "read", "written", "")]
        for one in self.passes:
            also = [name for name in one.stages if name != one.name]
            inside = f"  with {', '.join(also)}" if also else ""
            rows.append((one.name, _text(one.read), _text(one.written), inside))
        notes = (
            ("all passes", self.passes, ""),
            ("Func by Func", self.apart, "" if self.rho is None else f"  rho {self.rho:.2f}"),
            ("the least", (self.least,), "" if self.over_least is None else f"  moved {self.over_least:.2f}x"),
        )
        for name, passes, note in notes:
            rows.append((name, _text(_sum(passes, reads=True)), _text(_sum(passes, reads=False)), note))
        lines = table([row[:3] for row in rows])
        return "\n".join(line + row[3] for line, row in zip(lines, rows, strict=True))


def traffic(program: Any, schedule: Schedule | None = None, /, **shapes: Any) -> Traffic:
    """Return the bytes that `program`, a Func, a tuple of Funcs or a Kernel, moves to and from memory.

    Nothing is compiled. schedule: how it is run; without one, the default schedule, or the Kernel's own. shapes: by
    name, shapes of Inputs and outputs, or arrays, and values of Params; what is not given stays a symbol.

    Model: each nest of loops that stands in no other reads each cell that it needs once and writes each cell once;
    whatever is kept in rows or tiles, up to two MiB, stays in caches. Blocking is not seen: a product of matrices whose
    operands fit no cache moves more, a recurrence in tiles of time less. `rho` is the ratio of the bytes that Funcs
    would move one by one to those of the schedule. Boxes are counted whole: of a triangle that is read, twice as much.

    >>> import stax as sx
    >>> y, x, a = sx.Var("y"), sx.Var("x"), sx.Input("a", sx.float32, 2)
    >>> f, g = sx.Func("f"), sx.Func("g")
    >>> f[y, x] = a[y, x] * 2
    >>> g[y, x] = sx.exp(f[y, x])
    >>> t = sx.traffic(g)
    >>> str(t.moved), t.rho, t.over_least
    ('8*a.shape[0]*a.shape[1]', 2.0, 1.0)
    >>> print(sx.traffic(g, a=(1024, 256)))
    g                read  written
    g             1.0 MiB  1.0 MiB
    all passes    1.0 MiB  1.0 MiB
    Func by Func  2.0 MiB  2.0 MiB  rho 2.00
    the least     1.0 MiB  1.0 MiB  moved 1.00x
    """
    if isinstance(program, Kernel):
        if schedule is not None:
            raise ArgumentError("a kernel has its schedule already", hint="give the Funcs to see another schedule")
        schedule = program.schedule
        assert isinstance(schedule, Schedule)
        pipeline = schedule.pipeline
    else:
        pipeline = freeze_for(program, schedule, None, None, None)
    legal = check(pipeline, schedule.lines if schedule else ())
    regions = infer(pipeline)
    sizes, params = _given(pipeline, shapes)
    extents = Extents(pipeline, regions, sizes, params)
    bound, inlined = (least(*one, extents) for one in ((pipeline, regions), (legal.pipeline, legal.regions)))
    if _all((inlined,)).at_most(_all((bound,))):  # boxes of Funcs that are not kept hold more than is read
        bound = inlined
    return Traffic(
        ", ".join(pipeline.outputs), scheduled(legal, extents), one_by_one(pipeline, regions, extents), bound
    )


def _given(pipeline: Pipeline, shapes: Mapping[str, Any]) -> tuple[dict[tuple[str, int], int], dict[str, int]]:
    """Return the sizes and the values of Params that `shapes` gives."""
    ranks = {i.name: len(i.dims) for i in pipeline.inputs}
    ranks |= {name: len(pipeline.func(name).dims) for name in pipeline.outputs}
    scalars = {s.name: s.dtype.is_integer for s in pipeline.scalars}
    sizes: dict[tuple[str, int], int] = {}
    params = {s.name: int(s.default) for s in pipeline.scalars if s.default is not None and s.dtype.is_integer}
    params = params if shapes else {}
    for name, given in shapes.items():
        if name in scalars:
            params |= {name: int(given)} if scalars[name] else {}
            continue
        if name not in ranks:
            known = ", ".join((*ranks, *sorted(scalars))) or "none"
            raise ArgumentError(f"there is no Input, output or Param {name!r}", hint=f"there are {known}")
        shape = getattr(given, "shape", given)
        shape = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
        if len(shape) != ranks[name]:
            raise ArgumentError(f"{name!r} has {ranks[name]} dims, and {len(shape)} extents are given")
        if any(n < 0 for n in shape):
            raise ArgumentError(f"{name!r} cannot have the shape {shape}")
        sizes |= {(name, d): n for d, n in enumerate(shape)}
    return sizes, params


def _sum(passes: tuple[Moved, ...], *, reads: bool) -> Polynomial:
    return sum((p.read if reads else p.written for p in passes), NOTHING)


def _all(passes: tuple[Moved, ...], write_factor: int = 1000) -> Polynomial:
    """Return what `passes` move, writes counted `write_factor` thousandths; in bytes, where that is 1000."""
    if write_factor == 1000:
        return _sum(passes, reads=True) + _sum(passes, reads=False)
    return _sum(passes, reads=True) * 1000 + _sum(passes, reads=False) * write_factor


def _over(first: Polynomial, second: Polynomial) -> float | None:
    if first.number is None or second.number is None:
        found = first.over(second)
        return None if found is None else float(found)
    return first.number / second.number if second.number else None


def _text(moved: Polynomial) -> str:
    return f"{moved} B" if moved.number is None else bytes_text(moved.number)
