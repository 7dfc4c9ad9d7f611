"""See that scratch which a schedule wants on the stack, or in registers, can be there.

    acc: float32[4, 16] = scratch register      acc[2, ramp(x)] = ...     is in registers
                                                acc[k, ramp(x)] = ...     is not: a loop counts k

On the stack is what has a constant size, in registers what is also read and written at constant positions alone, the
loops around being unrolled or lanes: LLVM then finds that nobody needs its address.

Needs: all loops in their last form. Gives: the same program; ScheduleError where memory cannot be what was said.
"""

from __future__ import annotations

from collections.abc import Mapping

from stax.algorithm.nodes import MARK
from stax.errors import ScheduleError
from stax.expr import build
from stax.expr.nodes import Expr, Load
from stax.expr.walk import names
from stax.loops.nodes import Buffer, Memory, Program, Store
from stax.loops.walk import allocated, nodes, statements
from stax.schedule import directives as said

MOST_STACK = 256 << 10
MOST_REGISTERS = 4 << 10


def place_memory(program: Program, said_of: Mapping[str, said.Memory]) -> Program:
    """Return `program`; `said_of` are the lines to show, by Func."""
    fixed = {b.name: b for b in allocated(program.body) if b.memory in (Memory.STACK, Memory.REGISTER)}
    for buffer in fixed.values():
        _sized(buffer, said_of)
    if any(b.memory is Memory.REGISTER for b in fixed.values()):
        accesses = [(n.buffer, n.index) for n in nodes(program.body) if isinstance(n, Load)]
        accesses += [(s.buffer, s.index) for s in statements(program.body) if isinstance(s, Store)]
        for name, index in accesses:
            if name in fixed and fixed[name].memory is Memory.REGISTER:
                _named(fixed[name], index, said_of)
    return program


def _sized(buffer: Buffer, said_of: Mapping[str, said.Memory]) -> None:
    size = buffer.dtype.size_bytes
    for extent in buffer.shape:
        n = build.integer(extent)
        if n is None:
            raise _refuse(buffer, said_of, "its size is not a constant", "split the loops around by constants")
        size *= max(n, 0)
    most = MOST_STACK if buffer.memory is Memory.STACK else MOST_REGISTERS
    if size > most:
        raise _refuse(buffer, said_of, f"{size:,} bytes are more than {most:,}", "keep less of it")


def _named(buffer: Buffer, index: tuple[Expr, ...], said_of: Mapping[str, said.Memory]) -> None:
    found = sorted(names(index))
    if found:
        loop = found[0].split(MARK)[0]
        raise _refuse(buffer, said_of, f"loop `{loop}` counts where in it", "unroll that loop, or run it in lanes")


def _refuse(buffer: Buffer, said_of: Mapping[str, said.Memory], why: str, hint: str) -> ScheduleError:
    func = buffer.name.split(MARK)[0]
    line = said_of.get(func)
    where = "on the stack" if buffer.memory is Memory.STACK else "in registers"
    return ScheduleError(
        f"`{func}` cannot be kept {where}: {why}", [(line.span if line else None, "asked for here")], hint=hint
    )
