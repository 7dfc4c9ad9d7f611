"""How long each stage of a kernel takes, and what it moves."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stax.errors import UnsupportedError
from stax.loops.count import Counts, count
from stax.measure.text import bytes_text, table, time_text
from stax.runtime.arguments import Arguments
from stax.runtime.kernel import Kernel, refuse_other

ROUNDS = 3


@dataclass(frozen=True, slots=True)
class StageProfile:
    """One stage, or several that one loop computes.

    `time_s` is summed over threads, as are `calls`, how often its loops were begun. `read_bytes` and `written_bytes`
    are what its instructions load and store, from whichever cache; masked lanes and what depends on data count as
    taken. `allocated_bytes` is the most that its storage has at a time, in each of the threads that have one.
    """

    stage: str
    time_s: float
    calls: int
    read_bytes: int
    written_bytes: int
    allocations: int
    allocated_bytes: int


@dataclass(frozen=True, slots=True)
class Profile:
    """What `sx.profile` found; printed, a table.

    `plain_s` is what a call of the ordinary kernel takes, `timed_s` one of the version with clocks.
    """

    kernel: str
    threads: int
    plain_s: float
    timed_s: float
    stages: tuple[StageProfile, ...]

    def stage(self, name: str) -> StageProfile:
        """Return what was found of a stage, by its name; KeyError where there is none."""
        for one in self.stages:
            if one.stage == name:
                return one
        raise KeyError(name)

    def __str__(self) -> str:
        total = sum(s.time_s for s in self.stages) or 1.0
        rows = [("stage", "time", "share", "calls", "read", "written", "allocated")]
        for s in self.stages:
            kept = f"{s.allocations:,} x {bytes_text(s.allocated_bytes)}" if s.allocations else "-"
            read, written = bytes_text(s.read_bytes), bytes_text(s.written_bytes)
            rows.append((s.stage, time_text(s.time_s), f"{s.time_s / total:.0%}", f"{s.calls:,}", read, written, kept))
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads, whose time is summed"
        head = f"{self.kernel}: {time_text(self.plain_s)}, {time_text(self.timed_s)} with clocks; {threads}"
        return "\n".join([head, *table(rows)])


def profile(kernel: Kernel, /, *arrays: Any, threads: int | None = None, shape: Any = None, **named: Any) -> Profile:
    """Return time, calls, bytes and allocation of each stage of `kernel`, called with these arguments.

    A second version of the kernel is compiled, with clocks around loops; the ordinary one has none. The fastest of
    three calls counts. Where stages are short, compare `timed_s` with `plain_s`: clocks take time too.

    >>> import numpy as np, stax as sx
    >>> y, x, a = sx.Var("y"), sx.Var("x"), sx.Input("a", sx.float32, 2)
    >>> f, g = sx.Func("f"), sx.Func("g")
    >>> f[y, x] = sx.exp(a[y, x])
    >>> g[y, x] = f[y, x] + f[y + 1, x]
    >>> s = sx.Schedule(g)
    >>> _ = s[f].compute_root()
    >>> found = sx.profile(sx.compile(g, s), np.zeros((65, 64), np.float32))
    >>> [(one.stage, one.written_bytes, one.allocated_bytes) for one in found.stages]
    [('f', 16640, 16640), ('g', 16384, 0)]
    """
    refuse_other(kernel, "profile")
    if kernel.build.timed is None:
        raise UnsupportedError("this kernel cannot be made again with clocks")
    clocked, names = kernel.build.timed()
    bound = Arguments(kernel.signature).bind(arrays, named, None, shape)
    held = dict(kernel.signature.overwritten)

    def given() -> dict[str, Any]:
        """Return the arguments, those that are written over as copies."""
        names = [i.name for i in kernel.signature.inputs]
        arrays = {name: bound.arrays[held.get(name, name)] for name in names}
        return {n: a.copy() if n in held else a for n, a in arrays.items()} | dict(bound.scalars)

    extents = [bound.sizes[o.name] for o in kernel.signature.outputs]
    shapes = (*extents, (len(names) + 1, 2))
    plain = kernel.bind(shape=tuple(extents) if len(extents) > 1 else extents[0], threads=threads, **given())
    timed = clocked.bind(shape=shapes, threads=threads, **given())
    plain_s, _ = _fastest(plain)
    timed_s, times = _fastest(lambda: np.array(timed()[-1]))
    rate = timed_s / max(1, int(times[0, 0]))
    program = None if clocked.build.program is None else clocked.build.program()
    sizes = {(name, dim): n for name, extents in bound.sizes.items() for dim, n in enumerate(extents)}
    sizes |= {(clocked.signature.outputs[-1].name, dim): n for dim, n in enumerate(times.shape)}
    counted = {} if program is None or bound.empty else count(program, bound.scalars, sizes)
    stages: list[StageProfile] = []
    for row, name in enumerate(names, 1):
        c = counted.get(row, Counts())
        moved = (c.read_bytes, c.written_bytes, c.allocations, c.allocated_bytes)
        stages.append(StageProfile(name, int(times[row, 0]) * rate, int(times[row, 1]), *moved))
    return Profile(kernel.signature.name, threads or kernel.build.threads, plain_s, timed_s, tuple(stages))


def _fastest(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of the fastest call, and what it gave."""
    run()
    best, kept = float("inf"), None
    for _ in range(ROUNDS):
        start = time.perf_counter()
        found = run()
        took = time.perf_counter() - start
        if took < best:
            best, kept = took, found
    return best, kept
