"""A frozen program -> a kernel for NVIDIA's GPUs, launched by their driver or run in Triton's interpreter."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from stax.algorithm.nodes import Pipeline
from stax.backends.artifact import Artifact, Facts
from stax.backends.triton.source import Source, emit
from stax.errors import ArgumentError, UnsupportedError, UserError
from stax.expr import build
from stax.expr.nodes import Expr
from stax.legality.check import check
from stax.legality.known import Known
from stax.legality.sequence import in_sequence
from stax.legality.summation import roundings
from stax.loops.launches import Host, kernels
from stax.loops.nodes import Program
from stax.loops.show import show as show_loops
from stax.lower.blocks import lower_to_blocks
from stax.lower.fits import refuse_unlaunchable
from stax.lower.hints import hints
from stax.lower.split_kernels import split_kernels
from stax.lowering import nests, plain_facts, refuse_reordered, signature
from stax.poly.proofs import Proofs
from stax.runtime import launches
from stax.runtime.arguments import Cpu
from stax.runtime.cache import Store
from stax.runtime.device import Gpu
from stax.runtime.fallback import Runner
from stax.runtime.kernel import Build, Device, Kernel
from stax.schedule import default_gpu
from stax.schedule.default_gpu import Extents
from stax.schedule.directives import Line
from stax.schedule.legal import Legal
from stax.schedule.resolve import rewritten
from stax.schedule.schedule import Schedule

MOST_IN_BLOCKS = 1 << 16
"""Lanes that one loop may become on machines of blocks."""


@dataclass(frozen=True, slots=True)
class _Lowered:
    """A program by one schedule: its proof, its loops, and what the host and the kernels do of them."""

    legal: Legal
    program: Program
    host: tuple[Host, ...]


def gpu_kernel(
    pipeline: Pipeline, schedule: Schedule | None, store: Store, require: str | None, graphs: bool = False
) -> Kernel:
    """Return a kernel for NVIDIA's GPUs; where TRITON_INTERPRET=1 is set, for Triton's interpreter on NumPy arrays.

    What no line says is chosen for calls of any size, and again for rows that are short and for many points. With
    `graphs`, several kernels are launched as one, where the same arrays come again.
    """
    sequenced, said = in_sequence(pipeline), schedule.lines if schedule else ()
    known, bitwise = rewritten(sequenced, said), require == "bitwise"

    def lines_for(extents: Extents) -> tuple[Line, ...]:
        return default_gpu.complete(known, said, bitwise=bitwise, extents=extents)

    @cache
    def lowered(lines: tuple[Line, ...]) -> _Lowered:
        legal = check(sequenced, lines, None, Known(Proofs(store), MOST_IN_BLOCKS))
        if require == "bitwise":
            refuse_reordered(legal)
        program = lower_to_blocks(legal)
        host = split_kernels(program, hints(legal))
        refuse_unlaunchable(legal, host)
        return _Lowered(legal, program, host)

    @cache
    def chosen(row: int, many: bool) -> _Lowered:
        """Return the program for calls of some sizes; strips whose rows would lie in memory are no gain."""
        usual = lines_for(Extents())
        for extents in (Extents(row, many), Extents(row)):
            lines = lines_for(extents)
            if lines != usual:
                made = _tried(lowered, lines)
                if made is not None and not any(k.scratch for k in kernels(made.host)):
                    return made
        return lowered(usual)

    plain = chosen(0, False)
    legal, program, host = plain.legal, plain.program, plain.host
    taken = signature(sequenced, legal.regions, legal)

    def source(kind: str) -> str:
        match kind:
            case "nests":
                return nests(legal)
            case "loops":
                return show_loops(program)
            case "triton":
                return "\n\n".join(s.text for s in emit(host, plain_facts(taken, program)))
            case _:
                raise ArgumentError(f"there is no source {kind!r} for GPUs", hint='"nests", "loops" or "triton"')

    def no_object(_: Facts) -> Artifact:
        raise UnsupportedError("a kernel for GPUs is no object code")

    def sources(facts: Facts) -> tuple[Source, ...]:
        return emit(chosen(facts.row, facts.many).host, facts)

    emit(host)
    interpreting = os.environ.get("TRITON_INTERPRET") == "1"
    tables = {t.name: t.array for t in taken.tables}

    def made(facts: Facts) -> Runner:
        of_these = chosen(facts.row, facts.many).host
        if interpreting:
            return launches.interpreted(of_these, facts)
        return launches.on_gpu(of_these, tables, store, facts, graphs)

    rows = _rows(lines_for, lowered)
    rolls = lines_for(Extents(many=True)) != lines_for(Extents())
    return Kernel(
        Build(
            signature=taken,
            respecialise=no_object,
            device=Device(
                Cpu if interpreting else Gpu, launches.facts_on_gpu(host, rows, pipeline.outputs if rolls else ()),
                made, sources,
            ),
            source=source,
            schedule=lambda: Schedule.of(sequenced, legal.resolved.lines),
            contract=legal.contract,
            roundings=roundings(legal),
            provenance={"backend": "triton"},
            elsewhere=None
            if pipeline.origins or taken.overwritten
            else lambda: gpu_kernel(replace(pipeline, origins=True), schedule, store, require, graphs),
        )
    )  # fmt: skip


def _tried(lowered: Callable[[tuple[Line, ...]], _Lowered], lines: tuple[Line, ...]) -> _Lowered | None:
    """Return a program by `lines`, or None where they may not be taken."""
    try:
        return lowered(lines)
    except UserError:
        return None


def _rows(
    lines_for: Callable[[Extents], tuple[Line, ...]], lowered: Callable[[tuple[Line, ...]], _Lowered]
) -> tuple[Expr, ...]:
    """Return how long the rows are that could be kept as lanes; none where there are no such rows."""
    usual, short = lines_for(Extents()), lines_for(Extents(row=launches.ROWS[0]))
    made = _tried(lowered, short) if short != usual else None
    if made is None:
        return ()
    held = {(d.source, d.name) for d in lowered(usual).legal.demands}
    return tuple(build.add(d.hi, 1) for d in made.legal.demands if d.loop and (d.source, d.name) not in held)
