"""Bytes that a program moves: counted from its loops, and seen by the interpreter."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.loops.count import count
from stax.loops.interpret import interpret
from stax.loops.nodes import Program
from stax.lower.passes import lower
from stax.lower.time_stages import TIMES, time_stages

y, x = sx.vars("y x")


class Moved:
    """Bytes that an interpreter says it has loaded and stored, and the storage it has made."""

    def __init__(self) -> None:
        self.read, self.written, self.made = 0, 0, Counter[str]()

    def loaded(self, source: str, by: str, at: Any, values: Any, on: Any) -> None:
        assert on is None
        self.read += values.nbytes

    def stored(self, target: str, by: str, at: Any, values: Any, on: Any) -> None:
        assert on is None
        shape = np.broadcast_shapes(values.shape, *(np.shape(i) for i in at))
        self.written += 0 if target == TIMES else values.itemsize * int(np.prod(shape))

    def realized(self, name: str, box: Any) -> None:
        self.made[name] += 1


def agrees(program: Program, shape: tuple[int, ...], a: np.ndarray[Any, Any]) -> None:
    clocked, names = time_stages(program)
    out = clocked.buffers[1].name
    times = np.zeros((len(names) + 1, 2), np.int64)
    arrays = {"a": a, out: np.zeros(shape, a.dtype), TIMES: times}
    sizes = {(name, d): n for name, array in arrays.items() for d, n in enumerate(array.shape)}
    moved = Moved()
    interpret(clocked, arrays, {}, sizes, moved)
    found = count(clocked, {}, sizes)
    assert sum(c.read_bytes for c in found.values()) == moved.read
    # The rows of the times themselves are cleared by two stores each.
    assert sum(c.written_bytes for c in found.values()) - times.nbytes == moved.written
    assert sum(c.allocations for c in found.values()) == sum(moved.made.values())
    assert {row for row, c in found.items() if c.written_bytes} == set(range(len(names) + 1))


@pytest.mark.parametrize("width", [1, 5, 16, 37])
def test_what_is_counted_is_what_the_interpreter_moves(width: int) -> None:
    a = sx.Input("a", sx.float32, 2)
    f, g = sx.Func("f"), sx.Func("g")
    f[y, x] = a[y, x] * a[y, x + 1]
    g[y, x] = f[y, x] + f[y + 1, x]
    plain, tiled, sliding = sx.Schedule(g), sx.Schedule(g), sx.Schedule(g)
    plain[f].compute_root()
    yo, yi = sx.vars("yo yi")
    tiled[g].split(y, yo, yi, 4).parallel(yo).vectorize(x, 8)
    tiled[f].compute_at(g, yo).vectorize(x, 8)
    sliding[g].split(y, yo, yi, 4).parallel(yo)
    sliding[f].store_at(g, yo).compute_at(g, yi)
    given = np.ones((11, width + 1), np.float32)
    for schedule in (plain, tiled, sliding, None):
        agrees(lower(sx.check(g, schedule)), (10, width), given)


def test_ragged_loops_and_conditions_are_followed() -> None:
    a, r = sx.Input("a", sx.int32, 1), sx.RDom("r", k=x + 1, where=lambda r: (r.k * x) % 2 == 0)
    f = sx.Func("f", shape=a.shape)
    f[x] = 0
    f[x] += a[r.k] * 2
    agrees(lower(sx.check(f, sx.Schedule(f))), (9,), np.arange(9, dtype=np.int32))
