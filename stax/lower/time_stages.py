"""Put a clock around what belongs to one stage, for `sx.profile`; the ordinary kernel has none of it.

before                              after
    parallel for g.yo:                  for t in 0 +: 2: times[t, 0] = times[t, 1] = 0
        f = scratch                     timed times[0]:
        for f.y, f.x: f[...] = ...          parallel for g.yo:
        for g.yi, g.x: g[...] = ...             f = scratch
                                                timed times[1]: for f.y, f.x: f[...] = ...
                                                timed times[2]: for g.yi, g.x: g[...] = ...

Needs: the last form of a program: each store says whose value it is.
Gives: the same program, and a buffer of ticks and calls, a row for the whole and one for each stage. Clocks are read in
the thread that works, so inside parallel loops; never in straight-line code: a loop without loops in it, that computes
several stages, has one row, named for all of them.
"""

from __future__ import annotations

from dataclasses import replace

from stax.algorithm.nodes import MARK
from stax.dtypes import int64
from stax.expr import build
from stax.expr.nodes import INDEX, Size
from stax.loops.nodes import Allocate, Block, Buffer, For, If, LoopKind, Program, Role, Stmt, Store, Timed
from stax.loops.walk import statements, stores

TIMES = f"times{MARK}"
"""The buffer that holds, for each row, ticks and calls."""
WHOLE = 0
"""The row of the whole program."""


def time_stages(program: Program) -> tuple[Program, tuple[str, ...]]:
    """Return `program` with clocks, and the name of each row of its last buffer but that of the whole, row 0."""
    clocks = _Clocks()
    body = clocks.block(program.body)
    shape = (Size(INDEX, TIMES, 0), Size(INDEX, TIMES, 1))
    times = Buffer(TIMES, int64, shape, Role.OUTPUT)
    row = build.local(f"{TIMES}row")
    cells = tuple(Store(TIMES, (row, build.index(k)), build.const(0, int64)) for k in range(2))
    clear = For(row, build.index(0), shape[0], LoopKind.SERIAL, Block(cells))
    whole = Block((clear, Timed(TIMES, WHOLE, body)))
    scalars = (*program.scalars, *shape)
    return replace(program, buffers=(*program.buffers, times), scalars=scalars, body=whole), tuple(clocks.rows)


class _Clocks:
    """Gives each name a row, from 1 on."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}

    def block(self, block: Block) -> Block:
        """Return `block` with a clock around each run of statements that work for the same stage."""
        out: list[Stmt] = []
        run: list[Stmt] = []
        name = ""

        def close() -> None:
            nonlocal name
            if name:
                row = self.rows.setdefault(name, len(self.rows) + 1)
                out.append(Timed(TIMES, row, Block(tuple(run))))
            else:
                out.extend(run)
            run.clear()
            name = ""

        for stmt in block.stmts:
            found = self._name(stmt)
            if isinstance(stmt, Allocate) or found is None:
                close()
                out.append(stmt if isinstance(stmt, Allocate) else self._inside(stmt))
                continue
            if found and name and found != name:
                close()
            name = found or name
            run.append(stmt)
        close()
        return Block(tuple(out))

    def _name(self, stmt: Stmt) -> str | None:
        """Return whom `stmt` works for, "" where it stores nothing, None where clocks belong further inside."""
        found = list(dict.fromkeys(s.stage for s in stores(stmt)))
        loops = [s for s in statements(stmt) if isinstance(s, For)]
        if any(loop.kind is LoopKind.PARALLEL for loop in loops):
            return None
        return " + ".join(found) if len(found) < 2 or len(loops) < 2 else None

    def _inside(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For(body=body):
                return replace(stmt, body=self.block(body))
            case If(then=then, orelse=orelse):
                return replace(stmt, then=self.block(then), orelse=self.block(orelse))
            case Block():
                return self.block(stmt)
            case _:
                return stmt
