"""A frozen program -> its proof, its loops, and what a kernel must know of both: not asked where the cache has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stax.algorithm import nodes
from stax.algorithm.nodes import Pipeline, origin_name
from stax.algorithm.positions import position_params
from stax.backends.artifact import Facts
from stax.bounds.infer import RegionCheck, Regions, SizeCheck, infer
from stax.dtypes import int64
from stax.errors import ArgumentError, LegalityError
from stax.expr import build
from stax.expr.nodes import INDEX, Expr, Size
from stax.legality.check import check
from stax.legality.known import Known
from stax.legality.summation import roundings
from stax.loops.nodes import Program
from stax.loops.show import show as show_loops
from stax.loops.walk import MOST_CHANNELS, pixels
from stax.lower.build_nests import build_nests
from stax.lower.notes import ignored
from stax.lower.passes import lower
from stax.lower.time_stages import TIMES, time_stages
from stax.poly.proofs import Proofs
from stax.runtime.cache import Store
from stax.runtime.log import Log, step
from stax.runtime.signature import Check, CheckKind, Output, Signature
from stax.runtime.summary import Summary
from stax.schedule.directives import Line
from stax.schedule.legal import Demand, Legal
from stax.target import Target


def proved(
    pipeline: Pipeline, lines: Sequence[Line], store: Store, require: str | None, log: Log | None
) -> tuple[Legal, Signature, Regions]:
    """Return the proof that `lines` change no value, what a kernel takes and gives, and the regions of the program.

    Raises as `check` does, and LegalityError where sums would be reordered though `require` is "bitwise".
    """
    with step(log, "regions"):
        regions = infer(pipeline)
    with step(log, "proof"):
        legal = check(pipeline, lines, regions, Known(Proofs(store)))
        if require == "bitwise":
            refuse_reordered(legal)
        return legal, signature(pipeline, regions, legal), regions


def lowered(legal: Legal, log: Log | None) -> Program:
    """Return the loops of a proof."""
    with step(log, "lowering"):
        return lower(legal)


def timed(taken: Signature, program: Program) -> tuple[Signature, Program, tuple[str, ...]]:
    """Return `program` with clocks around its stages, what its kernel takes and gives, and the stages' names."""
    clocked, names = time_stages(program)
    times = Output(TIMES, (int64,), (build.index(len(names) + 1), build.index(2)))
    return replace(taken, outputs=(*taken.outputs, times)), clocked, names


def refuse_reordered(legal: Legal) -> None:
    """Raise LegalityError where directives let sums be taken in another order."""
    for one in legal.reordered:
        raise LegalityError(
            f'require="bitwise": the sums of `{one.stage}` would be taken in another order',
            [(one.span, "this directive lets them")],
            hint='leave it out, or compile with require="reassociates"',
        )


@dataclass(frozen=True, slots=True)
class Sources:
    """The texts of a kernel, made when asked for."""

    legal: Legal
    program: Program
    facts: Facts
    target: Target

    def __call__(self, kind: str) -> str:
        """Return a text: "nests", "loops", "llvm" or "asm"."""
        from stax.backends.llvm.build import assembly, text

        match kind:
            case "nests":
                return nests(self.legal)
            case "loops":
                return show_loops(self.program)
            case "llvm":
                return text(self.program, self.facts, self.target)
            case "asm":
                return assembly(text(self.program, self.facts, self.target), self.target)
            case _:
                raise ArgumentError(f"there is no source {kind!r}", hint='"nests", "loops", "llvm" or "asm"')


def nests(legal: Legal) -> str:
    """Return the loops as the schedule says them, before they are cut into steady parts and the rest."""
    return show_loops(build_nests(legal))


def summary(legal: Legal, program: Program | None, taken: Signature) -> Summary:
    """Return what a call must know; without a program, that nothing is known of pixels."""
    wanted, packed = frozenset[str](), frozenset[tuple[str, int]]()
    if program is not None:
        wanted, packed = pixels(program), plain_facts(taken, program).packed
    return Summary(
        taken.outputs, taken.checks, taken.overwritten, taken.positions, legal.contract, wanted, packed,
        tuple(roundings(legal).items()), tuple(ignored(legal)),
    )  # fmt: skip


def plain_facts(taken: Signature, program: Program) -> Facts:
    """Return what holds of arrays as NumPy makes them."""
    names = frozenset(b.name for b in program.buffers)
    last = {i.name: i.sizes[-1] for i in taken.inputs if i.sizes}
    last |= {name: out.shape[-1] for out in taken.outputs if out.shape for name in out.buffers}
    wanted = pixels(program)
    channels = {name: build.integer(n) or 0 for name, n in last.items() if n is not None and name in wanted}
    return Facts(names, names, frozenset((name, n) for name, n in channels.items() if 1 < n <= MOST_CHANNELS))


def signature(pipeline: Pipeline, regions: Regions, legal: Legal) -> Signature:
    """Return what the kernel takes and gives, and what a call checks: also what the schedule `legal` promises."""
    outputs = tuple(
        Output(f.name, f.dtypes, regions.shapes[f.name], f.dims, _origin(pipeline, f), f.span)
        for f in map(pipeline.func, pipeline.outputs)
    )
    checks = [_size_check(c) for c in regions.agreements]
    checks += [_read_check(c) for c in regions.checks]
    checks += [_read_check(c) for c in legal.checks]
    checks += [_fixed_check(*one) for one in regions.fixed]
    checks += [_demand_check(d) for d in legal.demands]
    return Signature(
        pipeline.inputs,
        pipeline.scalars,
        pipeline.tables,
        outputs,
        pipeline.arguments,
        tuple(checks),
        pipeline.outputs[0],
        tuple((i.name, legal.holders[i.name]) for i in pipeline.inputs if i.name in legal.holders),
        position_params(pipeline),
    )


def _origin(pipeline: Pipeline, f: nodes.Func) -> tuple[str, ...]:
    return tuple(origin_name(f.name, d) for d in range(len(f.dims))) if pipeline.origins else ()


def _read_check(c: RegionCheck) -> Check:
    kind = CheckKind.READ if c.reads else CheckKind.WRITE
    return Check(c.cond, kind, c.source, c.dim, c.lo, c.hi, c.size, c.stage, c.span)


def _size_check(c: SizeCheck) -> Check:
    size: Expr = Size(INDEX, c.output, c.dim)
    equal = build.binary(build.Op.EQ, c.first, c.second)
    return Check(equal, CheckKind.AGREE, c.sources[1], c.dim, c.first, c.second, size, c.output)


def _fixed_check(output: str, dim: int, extent: Expr) -> Check:
    size: Expr = Size(INDEX, output, dim)
    equal = build.binary(build.Op.EQ, size, extent)
    return Check(equal, CheckKind.EXTENT, output, dim, extent, extent, size)


def _demand_check(d: Demand) -> Check:
    kind = CheckKind.LANES if d.loop else CheckKind.PROMISE
    return Check(d.cond, kind, d.source, 0, d.lo, d.hi, build.add(d.hi, 1), d.text, d.span, d.name)
