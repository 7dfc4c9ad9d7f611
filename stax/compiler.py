"""The whole compiler on one page: freeze, schedule, prove, lower, emit, load."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from stax.algorithm import nodes
from stax.algorithm.nodes import Pipeline, origin_name
from stax.algorithm.positions import position_params
from stax.backends.artifact import Artifact, Facts
from stax.bounds.infer import RegionCheck, Regions, SizeCheck, infer
from stax.dtypes import int64
from stax.errors import ArgumentError, LegalityError, ScheduleError, StaxWarning, UnsupportedError, UserError
from stax.expr import build
from stax.expr.nodes import INDEX, Expr, Size
from stax.lang.freeze import freeze
from stax.lang.func import Func
from stax.legality.check import check as prove
from stax.legality.known import Known
from stax.legality.sequence import in_sequence
from stax.legality.summation import roundings
from stax.loops.nodes import Program
from stax.loops.show import show as show_loops
from stax.loops.walk import MOST_CHANNELS, pixels
from stax.lower.hints import hints
from stax.lower.notes import ignored, notes
from stax.lower.passes import lower, lower_to_blocks
from stax.lower.split_kernels import split_kernels
from stax.lower.time_stages import TIMES, time_stages
from stax.options import Options
from stax.poly.proofs import Proofs
from stax.runtime.arguments import Cpu
from stax.runtime.cache import Store, default_folder, object_key
from stax.runtime.fallback import failure, meant
from stax.runtime.jobs import Batch, Progress, compile_jobs
from stax.runtime.kernel import Build, Device, Kernel
from stax.runtime.log import Log, step, whole
from stax.runtime.pool import pool
from stax.runtime.signature import Check, CheckKind, Output, Signature
from stax.runtime.summary import (
    Key,
    Summary,
    program_key,
    read_artifact,
    read_summary,
    write_artifact,
    write_summary,
)
from stax.schedule.legal import Demand, Legal
from stax.schedule.resolve import rewritten
from stax.schedule.schedule import Schedule
from stax.target import CUDA, Target, cores

MOST_IN_BLOCKS = 1 << 16
"""Lanes that one loop may become on machines of blocks."""


def compile(
    outputs: Func | tuple[Func, ...],
    schedule: Schedule | None = None,
    *,
    shape: Any = None,
    inputs: Sequence[Any] | None = None,
    target: Target | str | None = None,
    mode: str = "default",
    fp: str | None = None,
    require: str | None = None,
    strict_native: bool | None = None,
    options: Options | None = None,
) -> Kernel:
    """Return a Kernel that computes `outputs`, a Func or a tuple of them.

    schedule: how it is run; without one, the default schedule. shape: symbolic extents of the outputs. inputs: the
    positional order of arguments. fp: "strict", "default" or "fast" for Funcs that do not say. strict_native: raise
    BackendError where machine code cannot be had, instead of interpreting. require: "bitwise" refuses directives that
    reassociate. target: the machine, by default the processor at hand; "cuda" for NVIDIA's GPUs, whose kernels take
    arrays of torch, CuPy or whatever has `__cuda_array_interface__`, and run on the current stream. options: what else
    may be chosen; where they are given, `mode` is theirs.

    Raises DefinitionError, BoundsError, ScheduleError and LegalityError.

    >>> import numpy as np, stax as sx
    >>> x, a = sx.Var("x"), sx.Input("a", sx.int32, 1)
    >>> f = sx.Func("f")
    >>> f[x] = a[x] + a[x + 1]
    >>> sx.compile(f)(np.arange(5, dtype=np.int32))
    array([1, 3, 5, 7], dtype=int32)
    """
    options = Options(mode=mode) if options is None else options
    if require not in (None, "bitwise", "reassociates"):
        raise ArgumentError(f"require is {require!r}", hint='it is "bitwise" or "reassociates"')
    if target != CUDA and target is not None and not isinstance(target, Target):
        raise UnsupportedError(
            f"there is no target {target!r}", hint=f'"{CUDA}", a Target, or leave it out: the processor at hand'
        )
    if require is None:
        require = str(options.chosen["require"] or "") or None
    for name in ("autotune", "graphs"):
        if options.chosen[name]:
            warnings.warn(f"`{name}` of mode {options.mode!r} is not there yet, and changes nothing", StaxWarning, 2)
    log = _log()
    with whole(log, "compile"):
        with step(log, "freeze"):
            program = freeze_for(outputs, schedule, shape, inputs, fp)
        if isinstance(target, str):
            return _gpu_kernel(program, schedule, options, require)
        strict = options.strict_native if strict_native is None else strict_native
        return _kernel(program, schedule, target, options, strict, require, log)


def _log() -> Log | None:
    """Return who tells of each step and its time: STAX_LOG=trace asks for that."""
    asked = "trace" in os.environ.get("STAX_LOG", "").split(",")
    return Log(lambda line: print(line, file=sys.stderr)) if asked else None


def check(outputs: Func | tuple[Func, ...], schedule: Schedule | None = None) -> Legal:
    """Return the proof that `schedule` changes no value of `outputs`; raise LegalityError where it would.

    >>> import stax as sx
    >>> y, x, a = sx.Var("y"), sx.Var("x"), sx.Input("a", sx.float32, 2)
    >>> f = sx.Func("f")
    >>> f[y, x] = a[y, x] * 2
    >>> s = sx.Schedule(f)
    >>> _ = s[f].parallel(y).vectorize(x, 8)
    >>> legal = sx.check(f, s)
    """
    return prove(freeze_for(outputs, schedule, None, None, None), schedule.lines if schedule else ())


def auto_schedule(
    outputs: Func | tuple[Func, ...],
    *,
    shape: Any = None,
    arrays: Mapping[str, Any] | None = None,
    target: Target | str | None = None,
    require: str | None = None,
) -> Schedule:
    """Return a schedule of `outputs` that is worked out for this machine: print it, edit it, save it.

    It is legal at all sizes. shape: extents of the output, or of each output, to choose by. arrays: Inputs by name, as
    arrays or as shapes, to choose by. target: another machine; for "cuda", the default schedule of GPUs. require:
    "bitwise" leaves sums in their order. The text is the same on every run and says why its lines are there; `refused`
    of the schedule says what else was tried.

    >>> import stax as sx
    >>> x, a = sx.Var("x"), sx.Input("a", sx.float32, 1)
    >>> f = sx.Func("f")
    >>> f[x] = a[x] * 2
    >>> "vectorize" in str(sx.auto_schedule(f))
    True
    """
    from stax.auto.choose import choose
    from stax.auto.machine import Machine

    if require not in (None, "bitwise", "reassociates"):
        raise ArgumentError(f"require is {require!r}", hint='it is "bitwise" or "reassociates"')
    if isinstance(target, str):
        return default_schedule(outputs, target=target, bitwise=require == "bitwise")
    pipeline = freeze(outputs)
    machine = Machine.host() if target is None else Machine.of(target)
    chosen = choose(pipeline, machine, _known_shapes(pipeline, shape, arrays or {}), require != "bitwise")
    return Schedule.of(outputs, chosen.lines, chosen.refused)


def default_schedule(
    outputs: Func | tuple[Func, ...], *, target: Target | str | None = None, bitwise: bool = False
) -> Schedule:
    """Return the schedule that `outputs` have where nobody writes one; `bitwise`, on GPUs with sums in their order."""
    from stax.schedule import default, default_gpu

    sequenced = in_sequence(freeze(outputs))
    if target == CUDA:
        return Schedule.of(outputs, default_gpu.complete(sequenced, (), bitwise=bitwise))
    return Schedule.of(outputs, default.complete(sequenced, ()))


def _known_shapes(pipeline: Pipeline, shape: Any, arrays: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of outputs and Inputs as far as they are given."""
    known: dict[str, tuple[int, ...]] = {}
    ranks = {i.name: len(i.dims) for i in pipeline.inputs}
    for name, given in arrays.items():
        if name not in ranks:
            raise ArgumentError(f"there is no Input {name!r}", hint=f"there are {', '.join(ranks) or 'none'}")
        known[name] = tuple(int(n) for n in getattr(given, "shape", given))
    if shape is not None:
        each = [shape] if len(pipeline.outputs) == 1 else list(shape)
        known |= {name: tuple(int(n) for n in one) for name, one in zip(pipeline.outputs, each, strict=True)}
    ranks |= {name: len(pipeline.func(name).dims) for name in pipeline.outputs}
    for name, found in known.items():
        if len(found) != ranks[name]:
            raise ArgumentError(f"{name!r} has {ranks[name]} dims, and {len(found)} extents are given")
    return known


def realize(
    outputs: Func | tuple[Func, ...],
    shape: Any = None,
    inputs: Mapping[str, Any] | Sequence[Any] | None = None,
    schedule: Schedule | None = None,
) -> Any:
    """Compile `outputs` and call the kernel at once, on `inputs` by name or in order.

    >>> import stax as sx
    >>> x, f = sx.Var("x"), sx.Func("f")
    >>> f[x] = x * x
    >>> sx.realize(f, (4,)).tolist()
    [0, 1, 4, 9]
    """
    kernel = compile(outputs, schedule)
    given: Mapping[str, Any] = inputs if isinstance(inputs, Mapping) else {}
    args: Sequence[Any] = () if inputs is None or isinstance(inputs, Mapping) else inputs
    return kernel(*args, shape=shape, **given)


def compile_all(
    programs: Sequence[Any],
    *,
    options: Options | None = None,
    workers: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Batch:
    """Return a list of a Kernel for each of `programs`: a Func, a tuple of Funcs, or a pair of those and a Schedule.

    Machine code for dense arrays is made at once, by `workers` threads, as many as processors by default; `progress`
    is told of each that is ready. Printed, the list says how long that took, and between which bounds.

    >>> import stax as sx
    >>> x, f = sx.Var("x"), sx.Func("f")
    >>> f[x] = x + 1
    >>> [k(shape=(2,)).tolist() for k in sx.compile_all([f])]
    [[1, 2]]
    """
    if isinstance(programs, Func):
        raise ArgumentError("compile_all takes a list of programs", hint="sx.compile takes one")
    if workers is not None and workers < 1:
        raise ArgumentError(f"workers is {workers!r}, and must be an integer of at least 1")

    def made(one: Any) -> Kernel:
        pair = isinstance(one, tuple) and len(one) == 2 and isinstance(one[1], Schedule)  # pyright: ignore
        return compile(one[0], one[1], options=options) if pair else compile(one, options=options)  # pyright: ignore

    return compile_jobs((partial(made, one) for one in programs), workers or cores(), progress)


def explain(outputs: Func | tuple[Func, ...], schedule: Schedule | None = None) -> str:
    """Return the loops that `outputs` become under `schedule`, with their bounds and the bytes of their storage.

    After them, which loops became lanes, with which tails, and why others did not.

    >>> import stax as sx
    >>> x, f = sx.Var("x"), sx.Func("f")
    >>> f[x] = x + 1
    >>> "f" in sx.explain(f)
    True
    """
    legal = check(outputs, schedule)
    program = lower(legal)
    tried = [f"not taken: {text}" for text in (schedule.refused if schedule else ())]
    return "\n".join([show_loops(program), *notes(legal, program), *tried]) + "\n"


def freeze_for(
    outputs: Any, schedule: Schedule | None, shape: Any, inputs: Sequence[Any] | None, fp: str | None
) -> Pipeline:
    """Return the frozen program, after checking that `schedule` is one of it."""
    if schedule is not None and not isinstance(schedule, Schedule):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ScheduleError(
            f"a schedule is a Schedule, not {type(schedule).__name__}",
            hint="sx.Schedule.parse(text, f) or sx.Schedule.load(path, f)",
        )
    return freeze(outputs, shape=shape, inputs=inputs, fp=fp)


@dataclass(frozen=True, slots=True)
class _Sources:
    """The texts of a kernel, made when asked for."""

    program: Program
    facts: Facts
    target: Target

    def __call__(self, kind: str) -> str:
        from stax.backends.llvm.build import assembly, text

        match kind:
            case "loops":
                return show_loops(self.program)
            case "llvm":
                return text(self.program, self.facts, self.target)
            case "asm":
                return assembly(text(self.program, self.facts, self.target), self.target)
            case _:
                raise ArgumentError(f"there is no source {kind!r}", hint='"loops", "llvm" or "asm"')


def _kernel(
    pipeline: Pipeline,
    schedule: Schedule | None,
    target: Target | None,
    options: Options,
    strict: bool,
    require: str | None,
    log: Log | None = None,
) -> Kernel:
    """Return a kernel; what the cache knows of the program is not proved and lowered again before it is asked for."""
    store, machine = Store(cache_folder(options)), target or host()
    lines, quick = schedule.lines if schedule else (), options.chosen["effort"] == "quick"

    @cache
    def proved() -> tuple[Legal, Signature, Regions]:
        with step(log, "regions"):
            regions = infer(pipeline)
        with step(log, "proof"):
            legal = prove(pipeline, lines, regions, Known(Proofs(store)))
            if require == "bitwise":
                _refuse_reordered(legal)
            return legal, signature(pipeline, regions, legal), regions

    @cache
    def lowered() -> Program:
        with step(log, "lowering"):
            return lower(proved()[0])

    with step(log, "key"):
        key = program_key(pipeline, lines, (options.chosen["effort"], require), machine)
        known = read_summary(store, key) if key is not None else None
    meaning = None
    if known is None:
        legal, taken, regions = proved()
        try:
            lowered()
        except UserError:
            raise
        except Exception as error:  # a fault of lowering: what the program means is known all the same
            if strict:
                raise failure(error) from error
            key, meaning = None, meant(pipeline, regions, dict(taken.overwritten))
        known = _summary(legal, None if meaning else lowered(), taken)
        if key is not None:
            write_summary(store, key, known)
    for text in known.notes:
        warnings.warn(text, StaxWarning, stacklevel=3)
    taken, kept = known.signature(pipeline), key

    def respecialise(facts: Facts) -> Artifact:
        found = read_artifact(store, kept, facts) if kept is not None else None
        return compiled(lowered(), facts, kept=kept) if found is None else found

    def compiled(program: Program, facts: Facts, *, kept: Key | None) -> Artifact:
        from stax.backends.llvm.build import artifact

        def kept_object(text: str, make: Callable[[], bytes]) -> bytes:
            with step(log, "LLVM"):
                return store.entry(object_key(text, machine, effort), make)

        effort = "quick" if quick else ""
        made = artifact(program, facts, machine, kept_object, quick)
        if kept is not None:
            write_artifact(store, kept, made, object_key(made.text, machine, effort))
        return made

    def symbols() -> Mapping[str, int]:
        return pool(lambda text, make: store.entry(object_key(text, machine, "pool"), make)).symbols

    def entries(text: str) -> bytes:
        from stax.backends.llvm.optimize import compile_text

        return store.entry(object_key(text, machine, "entry"), lambda: compile_text(text, machine))

    def elsewhere() -> Kernel:
        return _kernel(replace(pipeline, origins=True), schedule, target, options, strict, require, log)

    def printed(facts: Facts) -> str:
        from stax.backends.llvm.build import text

        return text(lowered(), facts, machine)

    def sources(kind: str) -> str:
        return _Sources(lowered(), plain_facts(taken, lowered()), machine)(kind)

    made = Build(
        signature=taken,
        respecialise=respecialise,
        program=lambda: lowered(),
        source=sources,
        schedule=lambda: Schedule.of(pipeline, proved()[0].resolved.lines),
        contract=known.contract,
        roundings=dict(known.roundings),
        threads=options.threads or threads_of(machine),
        strict_native=strict,
        symbols=symbols,
        elsewhere=None if pipeline.origins or taken.overwritten else elsewhere,
        pixels=known.pixels,
        packed=known.packed,
        target=machine,
        entries=entries,
        printed=printed,
        meaning=meaning,
        log=log,
    )

    def timed() -> tuple[Kernel, tuple[str, ...]]:
        clocked, names = time_stages(lowered())
        times = Output(TIMES, (int64,), (build.index(len(names) + 1), build.index(2)))
        return Kernel(
            replace(
                made,
                signature=replace(taken, outputs=(*taken.outputs, times)),
                respecialise=partial(compiled, clocked, kept=None),
                program=lambda: clocked,
                source=_Sources(clocked, plain_facts(taken, clocked), machine),
                elsewhere=None,
            )
        ), names

    return Kernel(replace(made, timed=timed))


def _gpu_kernel(pipeline: Pipeline, schedule: Schedule | None, options: Options, require: str | None) -> Kernel:
    """Return a kernel for NVIDIA's GPUs; where TRITON_INTERPRET=1 is set, for Triton's interpreter on NumPy arrays."""
    from stax.backends.triton.source import emit
    from stax.runtime import launches
    from stax.runtime.device import Gpu
    from stax.schedule import default_gpu

    store = Store(cache_folder(options))
    sequenced, said = in_sequence(pipeline), schedule.lines if schedule else ()
    lines = default_gpu.complete(rewritten(sequenced, said), said, bitwise=require == "bitwise")
    legal = prove(sequenced, lines, None, Known(Proofs(store), MOST_IN_BLOCKS))
    if require == "bitwise":
        _refuse_reordered(legal)
    program = lower_to_blocks(legal)
    host = split_kernels(program, hints(legal))
    taken = signature(sequenced, legal.regions, legal)

    def source(kind: str) -> str:
        match kind:
            case "loops":
                return show_loops(program)
            case "triton":
                return "\n\n".join(s.text for s in emit(host, plain_facts(taken, program)))
            case _:
                raise ArgumentError(f"there is no source {kind!r} for GPUs", hint='"loops" or "triton"')

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
            else lambda: _gpu_kernel(replace(pipeline, origins=True), schedule, options, require),
        )
    )


def _summary(legal: Legal, program: Program | None, taken: Signature) -> Summary:
    """Return what a call must know; without a program, that nothing is known of pixels."""
    wanted, packed = frozenset[str](), frozenset[tuple[str, int]]()
    if program is not None:
        wanted, packed = pixels(program), plain_facts(taken, program).packed
    return Summary(
        taken.outputs, taken.checks, taken.overwritten, taken.positions, legal.contract, wanted, packed,
        tuple(roundings(legal).items()), tuple(ignored(legal)),
    )  # fmt: skip


def cache_folder(options: Options) -> str | Path | None:
    """Return where what is compiled is kept: `cache_dir`, STAX_CACHE_DIR, or the platform's folder; None: nowhere."""
    if not options.cache:
        return None
    return options.cache_dir or os.environ.get("STAX_CACHE_DIR") or default_folder()


def _refuse_reordered(legal: Legal) -> None:
    for one in legal.reordered:
        raise LegalityError(
            f'require="bitwise": the sums of `{one.stage}` would be taken in another order',
            [(one.span, "this directive lets them")],
            hint='leave it out, or compile with require="reassociates"',
        )


@cache
def host() -> Target:
    """Return the machine at hand."""
    return Target.host()


def threads_of(machine: Target) -> int:
    """Return how many threads a call may use: STAX_THREADS, or what this process may run at once."""
    given = os.environ.get("STAX_THREADS", "")
    return max(1, int(given)) if given.isdigit() else machine.cores


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
