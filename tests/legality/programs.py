"""Random programs with much that an order can break, and random schedules of them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import stax as sx
from stax.algorithm.combine import combine
from stax.algorithm.nodes import Pipeline
from stax.bounds.infer import infer
from stax.errors import ScheduleError, StaxError
from stax.lang.freeze import freeze
from stax.schedule import directives as said
from stax.schedule.directives import Directive, Line, StageRef
from stax.schedule.schedule import Schedule

y, x, t = sx.vars("y x t")


@dataclass(frozen=True, slots=True)
class Program:
    """`kind` says what may go wrong in it; `sizes` are the extents of what it takes and gives."""

    kind: str
    outputs: Any
    pipeline: Pipeline
    sizes: dict[str, tuple[int, ...]]


KINDS = (
    "recurrence", "in place", "ahead", "scatter", "written", "chain", "steps", "kept", "taken", "placed", "repeated",
    "beside",
)  # fmt: skip
TAILS = (said.Tail.GUARD, said.Tail.GUARD, said.Tail.SHIFT, said.Tail.ROUND_UP)
OFTEN = (*KINDS, "ahead", "written", "taken", "placed")
"""Kinds as often as they are drawn."""


def program(rng: Random, kinds: tuple[str, ...] = KINDS) -> Program:
    """Return a random program of one of `kinds`; one that stax does not take is drawn again."""
    makers = {"recurrence": _recurrence, "in place": _in_place, "scatter": _scatter, "chain": _chain, "steps": _steps,
        "kept": _kept, "taken": _taken, "ahead": _ahead, "written": _written,
        "placed": _placed, "repeated": _repeated, "beside": _beside}  # fmt: skip
    while True:
        kind = rng.choice(OFTEN if kinds == KINDS else kinds)
        try:
            outputs, sizes = makers[kind](rng)
            pipeline = freeze(outputs)
            infer(pipeline)
            return Program(kind, outputs, pipeline, sizes)
        except StaxError:
            continue


def _recurrence(rng: Random) -> tuple[Any, dict[str, tuple[int, ...]]]:
    """Return a definition that reads itself behind, with start values around."""
    n, m = rng.choice([4, 5]), rng.choice([4, 6])
    u = sx.Func("u", sx.int64, shape=(n, m))
    a = sx.Input("a", sx.int64, 2)
    down = rng.random() < 0.2
    reads = []
    for _ in range(rng.randint(1, 3)):
        dy, dx = rng.choice([(-1, rng.choice([-2, -1, 0, 1, 2])), (0, -1), (-2, rng.choice([-1, 0, 1])), (-1, 1)])
        at = (y - dy if down else y + dy, x + dx)
        inside = (at[0] >= 0) & (at[0] < n) & (at[1] >= 0) & (at[1] < m)
        reads.append(sx.select(inside, u[at], a[y, x]))
    u[y, x] = sum(reads[1:], reads[0]) + a[y, x]
    return u, {"a": (9, 9), "u": (n, m)}


def _in_place(rng: Random) -> tuple[Any, dict[str, tuple[int, ...]]]:
    """Return an update that reads what it writes over, at RDom variables."""
    n, m = rng.choice([5, 6]), rng.choice([5, 7])
    f = sx.Func("f", shape=(n, m))
    a = sx.Input("a", sx.int64, 2)
    f[y, x] = a[y, x]
    where = None
    if rng.random() < 0.3:
        where = rng.choice([lambda r: r.i <= r.j, lambda r: r.i + r.j < 6, lambda r: a[r.i, r.j] % 3 != 0])
    if rng.random() < 0.3:
        r = sx.RDom("r", i=(1, n - 1), j=(1, lambda r: r.i + 1), where=where)
    else:
        r = sx.RDom("r", i=(1, n - 1), j=(1, m - 1), where=where)
    form = rng.choice(["both", "row", "column"])
    if form == "both":
        reads = [f[r.i + rng.choice([-1, 0, 1]), r.j + rng.choice([-1, 0, 1])] for _ in range(rng.randint(1, 3))]
        cell = (r.i, r.j)
    elif form == "row":
        reads = [f[0, r.j + rng.choice([-1, 0, 1])] for _ in range(rng.randint(1, 3))]
        cell = (0, r.j)
    else:
        reads = [f[r.i + rng.choice([-1, 0, 1]), x] for _ in range(rng.randint(1, 2))]
        cell = (r.i, x)
    f[cell] = sum(reads[1:], reads[0]) * 3 + a[r.i, x if form == "column" else r.j]
    return f, {"a": (9, 9), "f": (n, m)}


def _ahead(rng: Random) -> tuple[Any, dict[str, tuple[int, ...]]]:
    """Return an update that reads, of what it writes over, only what later points write."""
    n, m = rng.choice([5, 6]), rng.choice([5, 7])
    f, a = sx.Func("f", shape=(n, m)), sx.Input("a", sx.int64, 2)
    f[y, x] = a[y, x]
    where = rng.choice([None, None, lambda r: r.i <= r.j, lambda r: a[r.i, r.j] % 3 != 0])
    r = sx.RDom("r", i=(0, n - 1), j=(1, m - 1), where=where)
    ahead = [(1, rng.choice([-1, 0, 1])), (0, 1), (1, -1)]
    reads = [f[r.i + i, r.j + j] for i, j in rng.sample(ahead, rng.randint(1, 2))]
    f[r.i, r.j] = sum(reads[1:], reads[0]) * 3 + a[r.i, r.j]
    return f, {"a": (9, 9), "f": (n, m)}


def _written(rng: Random) -> tuple[Any, dict[str, tuple[int, ...]]]:
    """Return an update that only writes, to cells that several points share."""
    h, a = sx.Func("h", shape=(9,)), sx.Input("a", sx.int64, 2)
    h[x] = a[0, x]
    r = sx.RDom("r", i=4, j=5, where=rng.choice([None, None, lambda r: r.j != 2, lambda r: r.i + r.j < 6]))
    at = rng.choice([r.i + r.j, r.i * 2, r.j, r.j // 2 + r.i, r.j + 3 - r.i, (r.i + r.j * 2) % 7])
    h[at] = a[r.i, r.j] + r.j
    return h, {"a": (9, 9), "h": (9,)}


def _scatter(rng: Random) -> tuple[Any, dict[str, tuple[int, ...]]]:
    """Return updates at data or at sums of variables: only written, summed, or chained."""
    n = 6
    h = sx.Func("h", shape=(n,))
    a = sx.Input("a", sx.int64, 2)
    h[x] = a[0, x]
    r = sx.RDom("r", i=4, j=5, where=rng.choice([None, None, lambda r: r.j != 2]))
    at = rng.choice([a[r.i, r.j] % n, sx.clip(r.i + r.j - 1, 0, n - 1), (r.i * 2 + r.j) % n, r.j // 2, r.i, r.j])
    e = a[r.j, r.i]
    match rng.choice(["write", "write", "add", "max", "chain", "xor"]):
        case "write":
            h[at] = e
        case "add":
            h[at] += e
        case "max":
            h[at] = sx.maximum(h[at], e)
        case "xor":
            h[at] = h[at] ^ e
        case _:
            h[at] = h[at] * 2 + e
    return h, {"a": (9, 9), "h": (n,)}


def _chain(rng: Random) -> tuple[Any, dict[str, tuple[int, ...]]]:
    """Return two or three Funcs that read each other around, one of them in place perhaps."""
    a = sx.Input("a", sx.int64, 2)
    last: Any = a
    made = []
    for k in range(rng.randint(2, 3)):
        f = sx.Func(f"g{k}")
        off = 4 if last is a else 0
        around = [
            last[y + off + rng.choice([-1, 0, 1]), x + off + rng.choice([-1, 0, 1])] for _ in range(rng.randint(1, 3))
        ]
        if made and rng.random() < 0.6:
            around.append(rng.choice(made)[y, x + rng.choice([0, 1])])
        f[y, x] = sum(around[1:], around[0])
        if rng.random() < 0.4:
            r = sx.RDom(f"r{k}", k=3)
            f[y, x] = f[y, x] * 2 + a[y + 4, x + 4 + r] if rng.random() < 0.5 else f[y, x] + a[y + 4 + r, x + 4]
        made.append(f)
        last = f
    return last, {"a": (16, 16), last.name: (rng.choice([4, 5]), rng.choice([4, 6]))}


def _steps(rng: Random) -> tuple[Any, dict[str, tuple[int, ...]]]:
    """Return steps of a stencil along a first dim."""
    n, m = rng.choice([4, 5]), 5
    u = sx.Func("u", shape=(n, m, m))
    a = sx.Input("a", sx.int64, 2)
    u[0, y, x] = a[y, x]
    edge = (y == 0) | (x == 0) | (y == m - 1) | (x == m - 1)
    around = [u[t - 1, y + rng.choice([-1, 0, 1]), x + rng.choice([-1, 0, 1])] for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.4:
        around.append(u[t, y, x - 1] if rng.random() < 0.5 else u[t, y - 1, x + 1])
    u[t, y, x] = sx.select(edge, u[t - 1, y, x], sum(around[1:], around[0]))
    return u, {"a": (9, 9), "u": (n, m, m)}


def _kept(rng: Random) -> tuple[Any, dict[str, tuple[int, ...]]]:
    """Return the last of the steps of a recurrence along a first dim."""
    n, m = rng.choice([4, 5, 6]), rng.choice([4, 5])
    u, out = sx.Func("u", sx.int64, shape=(n, m)), sx.Func("out")
    a = sx.Input("a", sx.int64, 2)
    down = rng.random() < 0.2
    reads = []
    for _ in range(rng.randint(1, 3)):
        dt, dx = rng.choice([(1, rng.choice([-1, 0, 1])), (1, 1), (2, rng.choice([-1, 0])), (0, -1)])
        at = (t + dt if down else t - dt, x + dx)
        inside = (at[0] >= 0) & (at[0] < n) & (at[1] >= 0) & (at[1] < m)
        reads.append(sx.select(inside, u[at], a[t, x]))
    u[t, x] = sum(reads[1:], reads[0])
    last = 0 if down else n - 1
    out[x] = u[last, x] + (u[abs(last - 1), x] if rng.random() < 0.2 else 0)
    return out, {"a": (9, 9), "out": (m,)}


def _placed(rng: Random) -> tuple[Any, dict[str, tuple[int, ...]]]:
    """Return Funcs of which several read the same one, so that it may be missing where one of them runs."""
    a = sx.Input("a", sx.int64, 2)
    made: list[Any] = [a]
    for k in range(3):
        f = sx.Func(f"g{k}")
        off = 3 if k == 0 else 0
        sources = [made[-1], *rng.sample(made[1:], min(len(made) - 1, 1))]
        around = [s[y + off + rng.choice([0, 0, -1, 1]), x + off + rng.choice([0, 0, 1])] for s in sources]
        f[y, x] = sum(around[1:], around[0])
        if rng.random() < 0.3:
            f[y, x] += made[-1][y + off, x + off] * 3
        made.append(f)
    return made[-1], {"a": (16, 16), made[-1].name: (rng.choice([4, 5]), rng.choice([4, 6]))}


def _beside(rng: Random) -> tuple[Any, dict[str, tuple[int, ...]]]:
    """Return two Funcs, the second of which may read the first around, and one that reads both."""
    a = sx.Input("a", sx.int64, 2)
    f, g, h = sx.Func("f"), sx.Func("g"), sx.Func("h")
    f[y, x] = a[y + 4, x + 4] * 3
    around = [f[y + rng.choice([-1, 0, 1]), x + rng.choice([-1, 0, 0, 1])] for _ in range(rng.randint(0, 2))]
    g[y, x] = sum(around, a[y + 5, x + 5] * 1)
    h[y, x] = f[y, x] + g[y, x + rng.choice([0, 1])]
    return h, {"a": (16, 16), "h": (rng.choice([4, 5]), rng.choice([4, 6]))}


def _repeated(rng: Random) -> tuple[Any, dict[str, tuple[int, ...]]]:
    """Return a program in which a point that is run twice may give another value."""
    return rng.choice([_in_place, _ahead, _scatter])(rng)


def _taken(rng: Random) -> tuple[Any, dict[str, tuple[int, ...]]]:
    """Return Funcs of one shape that read each other around, so that they may lie in one storage."""
    n, m = rng.choice([4, 5, 6]), rng.choice([3, 5, 7])
    a = sx.Input("a", sx.int64, 2)
    made: list[Any] = [a]
    for k in range(rng.randint(1, 3)):
        f = sx.Func(f"g{k}", shape=a.shape)
        source = rng.choice([made[-1], made[-1], rng.choice(made)])
        reads = [made[-1][y, x]] if rng.random() < 0.8 else []
        for _ in range(rng.randint(0, 2)):
            at = y + rng.choice([-1, 0, 0, 1]), x + rng.choice([-2, -1, 0, 1])
            inside = (at[0] >= 0) & (at[0] < a.shape[0]) & (at[1] >= 0) & (at[1] < a.shape[1])
            reads.append(sx.select(inside, source[at], 3))
        f[y, x] = sum(reads[1:], reads[0] if reads else sx.cast(y, sx.int64))
        if rng.random() < 0.3:
            r = sx.RDom(f"r{k}", i=(1, a.shape[0]), j=a.shape[1])
            match rng.choice(["own", "source", "row"]):
                case "own":
                    f[r.i, r.j] = f[r.i, r.j] * 2 + f[r.i - 1, r.j]
                case "source":
                    f[r.i, r.j] = f[r.i, r.j] + source[r.i - rng.choice([0, 1]), r.j]
                case _:
                    f[r.i, x] = f[r.i, x] - f[r.i - 1, x]
        made.append(f)
    return made[-1], {"a": (n, m), made[-1].name: (n, m)}


def schedule(rng: Random, pipeline: Pipeline, kind: str = "") -> tuple[Line, ...]:
    """Return random lines that fit together, all Funcs named."""
    s = Schedule(pipeline)
    for f in pipeline.funcs:
        s.say(Line(StageRef(f.name), said.ComputeRoot()))
    names = [*(f.name for f in pipeline.funcs if f.name not in pipeline.outputs), "a", "a"] if kind == "taken" else []
    for f in rng.sample(pipeline.funcs, len(pipeline.funcs)) if names else ():
        if rng.random() < 0.8:
            _try(s, Line(StageRef(f.name), said.Overwrite(rng.choice(names))))
    for f in reversed(pipeline.funcs):
        if kind == "beside" and f.name == "f" and rng.random() < 0.7:  # loops that those of g are alike
            for line in [line for line in s.lines if line.at == StageRef("g")]:
                if not isinstance(
                    line.directive, said.ComputeRoot | said.ComputeAt | said.StoreRoot | said.HoistStorage
                ):
                    _try(s, Line(StageRef("f"), line.directive))
            continue
        for k in range(len(f.updates) + 1):
            at = StageRef(f.name, k)
            if kind == "repeated" and k == len(f.updates):
                v = rng.choice([loop.name for loop in s.nest(at).loops])
                _try(s, Line(at, said.Split(v, v + "o", v + "i", rng.choice([2, 3, 4]), said.Tail.SHIFT)))
            for _ in range(rng.choice([0, 0, 1] if kind == "beside" else [0, 1, 2, 3, 4])):
                loops = [loop.name for loop in s.nest(at).loops]
                if loops:
                    drawn = _directive(rng, loops)
                    if isinstance(drawn, said.Split) and drawn.tail is said.Tail.ROUND_UP:
                        own = [*f.dims, *(r.name for r in (f.updates[k - 1].domain if k else ()))]
                        if drawn.var not in own or (f.name in pipeline.outputs and rng.random() < 0.9):
                            continue
                    _try(s, Line(at, drawn))
            if k and rng.random() < 0.3 and combine(f, f.updates[k - 1]) is not None:
                _try(s, Line(at, said.Atomic()))
        if f.name not in pipeline.outputs and f.shape and kind not in ("taken", "beside") and rng.random() < 0.7:
            _try(s, Line(StageRef(f.name), said.FoldStorage(f.dims[0], rng.choice([1, 2, 2, 3, 4]))))
        if f.name not in pipeline.outputs and rng.random() < 0.7:
            g = rng.choice([g for g in pipeline.funcs if g is not f])
            stage = rng.randint(0, len(g.updates))
            loops = [loop.name for loop in s.nest(StageRef(g.name, stage)).loops]
            store = rng.choice([None, None, *loops])
            if _try(s, Line(StageRef(f.name), said.ComputeAt(g.name, stage, rng.choice(loops), store))):
                if store is None and rng.random() < 0.3:
                    _try(s, Line(StageRef(f.name), said.StoreRoot()))
                elif rng.random() < 0.3:
                    _try(s, Line(StageRef(f.name), said.HoistStorage(g.name, stage, rng.choice(loops))))
    if kind == "beside" and rng.random() < 0.8:
        placed = said.ComputeAt | said.StoreRoot | said.HoistStorage
        s = Schedule.of(pipeline, [line for line in s.lines if not isinstance(line.directive, placed)])
        loops = [loop.name for loop in s.nest(StageRef("g")).loops]
        _try(s, Line(StageRef("g"), said.ComputeWith("f", 0, rng.choice(loops), rng.choice([0, 0, 1, 2, -1]))))
    return s.lines


def _directive(rng: Random, loops: list[str]) -> Directive:
    v, n = rng.choice(loops), rng.choice([2, 2, 3, 4])
    w = rng.choice(loops)
    return rng.choice(
        [
            said.Split(v, v + "o", v + "i", n, rng.choice(TAILS)),
            said.Affine(*_map(rng, rng.sample(loops, min(len(loops), rng.choice([1, 2, 2]))))),
            said.Fuse(v, loops[min(loops.index(v) + 1, len(loops) - 1)], v + "f"),
            said.Reorder(tuple(rng.sample(loops, rng.randint(1, len(loops))))),
            said.Reorder(tuple(rng.sample(loops, len(loops)))),
            said.Skew(v, w, rng.choice([-1, 1, 1, 2]), rng.choice([None, v + "s"])),
            said.Reverse(v),
            said.Parallel(v),
            said.Vectorize(v, n),
            said.Parallel(v, n),
            said.Unroll(v, 2),
        ]
    )


def _map(rng: Random, loops: list[str]) -> tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]:
    """Return a matrix for `loops`, one with an inverse but seldom."""
    if len(loops) == 1:
        return ((rng.choice([-1, -1, 1, 2]),),), tuple(loops)
    rows = [
        ((1, 0), (1, 1)),
        ((1, 1), (0, 1)),
        ((0, 1), (1, 0)),
        ((2, 1), (1, 1)),
        ((1, 0), (2, -1)),
        ((1, 1), (1, -1)),
    ]
    return rng.choice(rows), tuple(loops)


def _try(s: Schedule, line: Line) -> bool:
    try:
        s.say(line)
        s.resolved()
    except ScheduleError:
        return False
    return True
