"""Cut a program into a host part and kernels.

before                                     after
    tmp = scratch n                            host allocates tmp
    for t serial:                              host loop t:
        for i parallel: tmp[i] = ...               launch a kernel over i, argument t
        for i parallel: ... = tmp[i]               launch another over i, argument t

Parallel loops right below each other become the grid while their bounds are made of sizes and host variables; what is
parallel further in runs serially. Scratch inside a kernel becomes the kernel's, a copy for each point of the grid,
as large as any of them needs.

Needs: values have axes (`vectorize_loops`).
Gives: launches in order, with all memory visible between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stax.errors import UnsupportedError
from stax.expr.affine import Algebra
from stax.expr.nodes import Binary, BinaryOp, Expr, Local, Param, Size
from stax.expr.walk import names, postorder
from stax.loops import walk
from stax.loops.launches import Hints, Host, HostAllocate, HostLoop, Kernel
from stax.loops.nodes import Allocate, Block, Buffer, For, Let, LoopKind, Program, Stmt
from stax.lower.hints import both


def split_kernels(program: Program, hints: Mapping[str, Hints] | None = None) -> tuple[Host, ...]:
    """Return what the host does to run `program`; `hints` are by stage, and hold for the kernel that computes it."""
    return _Splitter(program, hints or {}).block(program.body, (), {})


class _Splitter:
    def __init__(self, program: Program, hints: Mapping[str, Hints]) -> None:
        self._program, self._hints = program, hints
        self._shared = {b.name: b for b in program.buffers}
        self._names: set[str] = set()

    def block(self, block: Block, counters: tuple[Local, ...], known: dict[str, Expr]) -> tuple[Host, ...]:
        """Return the host's form of `block`; `known` are values of Lets, to be put where they are used."""
        out: list[Host] = []
        alone: list[Stmt] = []  # what one program does, until there is something for many

        def launch() -> None:
            if alone:
                out.append(self._kernel(alone[0] if len(alone) == 1 else Block(tuple(alone)), counters))
                alone.clear()

        known = dict(known)
        for stmt in block.stmts:
            new = walk.substitute(stmt, known) if known else stmt
            match new:
                case Let(name=name, value=value) if not name.axes and not walk.loads(new):
                    known[name.name] = value
                case Allocate(buffer=buffer):
                    launch()
                    self._shared[buffer.name] = buffer
                    out.append(HostAllocate(buffer))
                case Block():
                    launch()
                    out += self.block(new, counters, {})
                case For(var=var, carries=()) if new.kind is not LoopKind.PARALLEL and _has_parallel(new.body):
                    launch()
                    body = self.block(new.body, (*counters, var), {})
                    out.append(HostLoop(var, new.start, new.extent, new.down, body))
                case _ if _has_parallel(new):
                    launch()
                    out.append(self._kernel(new, counters))
                case _:
                    alone.append(new)
        launch()
        return tuple(out)

    def _kernel(self, stmt: Stmt, counters: tuple[Local, ...]) -> Kernel:
        grid: list[For] = []
        body = walk.as_block(stmt)
        inside: set[str] = set()
        while len(body.stmts) == 1 and isinstance(loop := body.stmts[0], For) and loop.kind is LoopKind.PARALLEL:
            if names((loop.start, loop.extent)) & inside:
                break
            grid.append(loop)
            inside.add(loop.var.name)
            body = walk.as_block(loop.body)
        body, scratch = _lift_scratch(body)
        bound = {n.name for s in (stmt,) for n in walk.bound_locals(s)}
        scratch = tuple(replace(b, shape=tuple(_most(n, bound) for n in b.shape)) for b in scratch)
        for buffer in scratch:
            if names(buffer.shape) & bound:
                raise UnsupportedError(
                    f"scratch `{buffer.name}` has another extent in each iteration, which no kernel can hold",
                    hint=f"give `{buffer.name}` storage outside of the parallel loops",
                )
        touched = walk.buffers_loaded(stmt) | walk.buffers_stored(stmt)
        buffers = tuple(b for name, b in self._shared.items() if name in touched)
        used = walk.nodes(stmt)
        wanted = {_key(n) for n in used if isinstance(n, Param | Size)}
        free = {n.name for n in used if isinstance(n, Local)}
        axes = {a for n in used for a in n.axes}
        return Kernel(
            self._fresh("_".join([self._program.name, *(loop.var.name for loop in grid)])),
            buffers,
            scratch,
            tuple(s for s in _scalars(self._program) if _key(s) in wanted),
            tuple(c for c in counters if c.name in free),
            tuple(a for a in self._program.axes if a in axes),
            tuple(grid),
            body,
            self._said(stmt),
        )

    def _said(self, stmt: Stmt) -> Hints:
        """Return what is said of the stages that a kernel computes."""
        found = Hints()
        for stage in dict.fromkeys(s.stage for s in walk.stores(stmt)):
            found = both(found, self._hints.get(stage, Hints()))
        return found

    def _fresh(self, name: str) -> str:
        plain = "".join(c if c.isalnum() else "_" for c in name)
        k, found = 1, plain
        while found in self._names:
            k += 1
            found = f"{plain}_{k}"
        self._names.add(found)
        return found


def _most(extent: Expr, bound: set[str]) -> Expr:
    """Return an extent that is never smaller and the same in each iteration, where a minimum has such an arm."""
    algebra = Algebra()
    ahead = [algebra.of(extent)]
    while ahead:
        here = ahead.pop()
        found = algebra.expr(here)
        if not names((found,)) & bound:
            return found
        for number, factor in here.terms:
            match algebra.atom(number):
                case Binary(op=BinaryOp.MIN, left=left, right=right) if factor > 0:
                    ahead += [here.without(number) + algebra.of(arm) * factor for arm in (left, right)]
                case _:
                    pass
    return extent


def _scalars(program: Program) -> tuple[Param | Size, ...]:
    """Return the program's scalars, and sizes that only the shapes of its arguments name."""
    known = {_key(s): s for s in program.scalars}
    for n in postorder(n for b in program.buffers for n in b.shape):
        if isinstance(n, Size):
            known.setdefault(_key(n), n)
    return tuple(known.values())


def _key(scalar: Param | Size) -> tuple[str, int]:
    return (scalar.array, scalar.dim) if isinstance(scalar, Size) else (scalar.name, -1)


def _lift_scratch(body: Block) -> tuple[Block, tuple[Buffer, ...]]:
    """Return `body` without allocations, and what they were."""
    found = tuple(walk.allocated(body))

    def rule(stmt: Stmt) -> Stmt:
        return Block() if isinstance(stmt, Allocate) else stmt

    return walk.as_block(walk.rewrite_statements(body, rule)), found


def _has_parallel(stmt: Stmt) -> bool:
    return any(isinstance(s, For) and s.kind is LoopKind.PARALLEL for s in walk.statements(stmt))
