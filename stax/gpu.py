"""A frozen program -> a kernel for NVIDIA's GPUs, launched by their driver or run in Triton's interpreter."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

from stax.algorithm.nodes import Pipeline
from stax.backends.artifact import Artifact, Facts
from stax.backends.triton.source import emit
from stax.errors import ArgumentError, UnsupportedError
from stax.legality.check import check
from stax.legality.known import Known
from stax.legality.sequence import in_sequence
from stax.legality.summation import roundings
from stax.loops.show import show as show_loops
from stax.lower.hints import hints
from stax.lower.passes import lower_to_blocks
from stax.lower.split_kernels import split_kernels
from stax.lowering import nests, plain_facts, refuse_reordered, signature
from stax.poly.proofs import Proofs
from stax.runtime import launches
from stax.runtime.arguments import Cpu
from stax.runtime.cache import Store
from stax.runtime.device import Gpu
from stax.runtime.kernel import Build, Device, Kernel
from stax.schedule import default_gpu
from stax.schedule.resolve import rewritten
from stax.schedule.schedule import Schedule

MOST_IN_BLOCKS = 1 << 16
"""Lanes that one loop may become on machines of blocks."""


def gpu_kernel(pipeline: Pipeline, schedule: Schedule | None, store: Store, require: str | None) -> Kernel:
    """Return a kernel for NVIDIA's GPUs; where TRITON_INTERPRET=1 is set, for Triton's interpreter on NumPy arrays."""
    sequenced, said = in_sequence(pipeline), schedule.lines if schedule else ()
    lines = default_gpu.complete(rewritten(sequenced, said), said, bitwise=require == "bitwise")
    legal = check(sequenced, lines, None, Known(Proofs(store), MOST_IN_BLOCKS))
    if require == "bitwise":
        refuse_reordered(legal)
    program = lower_to_blocks(legal)
    host = split_kernels(program, hints(legal))
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

    emit(host)
    interpreting = os.environ.get("TRITON_INTERPRET") == "1"
    tables = {t.name: t.array for t in taken.tables}
    made = partial(launches.interpreted, host) if interpreting else partial(launches.on_gpu, host, tables, store)
    return Kernel(
        Build(
            signature=taken,
            respecialise=no_object,
            device=Device(Cpu if interpreting else Gpu, launches.facts_on_gpu(host), made, partial(emit, host)),
            source=source,
            schedule=lambda: Schedule.of(sequenced, legal.resolved.lines),
            contract=legal.contract,
            roundings=roundings(legal),
            provenance={"backend": "triton"},
            elsewhere=None
            if pipeline.origins or taken.overwritten
            else lambda: gpu_kernel(replace(pipeline, origins=True), schedule, store, require),
        )
    )
