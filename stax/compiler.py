"""The compiler as it is called: freeze, look in the cache; where it knows nothing, prove and lower; emit, load."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stax.algorithm.nodes import Pipeline
from stax.backends.artifact import Artifact, Facts
from stax.errors import ArgumentError, ScheduleError, StaxWarning, UnsupportedError, UserError
from stax.lang.freeze import freeze
from stax.lang.func import Func
from stax.loops.nodes import Program
from stax.options import Options
from stax.runtime.cache import Store, default_folder, object_key
from stax.runtime.fallback import failure, meant
from stax.runtime.kernel import Build, Kernel
from stax.runtime.log import Log, step, whole
from stax.runtime.pool import pool
from stax.runtime.summary import Key, program_key, read_artifact, read_summary, write_artifact, write_summary
from stax.target import CUDA, Target, cores

if TYPE_CHECKING:  # a warm start proves and lowers nothing, and should not wait for what does
    from stax.bounds.infer import Regions
    from stax.runtime.arguments import Bound
    from stax.runtime.jobs import Batch, Progress
    from stax.runtime.signature import Signature
    from stax.schedule.legal import Legal
    from stax.schedule.schedule import Schedule


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
    if options.chosen["autotune"] and target == CUDA:
        warnings.warn(
            f"`autotune` of mode {options.mode!r} is for processors, and changes nothing here", StaxWarning, 2
        )
    if options.chosen["graphs"] and target != CUDA:
        warnings.warn(f"`graphs` of mode {options.mode!r} is for GPUs, and changes nothing here", StaxWarning, 2)
    log = _log()
    with whole(log, "compile"):
        with step(log, "freeze"):
            program = freeze_for(outputs, schedule, shape, inputs, fp)
        if isinstance(target, str):
            from stax.gpu import gpu_kernel

            graphs = bool(options.chosen["graphs"])
            return gpu_kernel(program, schedule, Store(cache_folder(options)), require, graphs)
        strict = options.strict_native if strict_native is None else strict_native
        made = partial(_kernel, program, target=target, options=options, require=require, log=log)
        if schedule is None and options.chosen["autotune"]:
            return _tuned(program, made, target, options, strict, require)
        return made(schedule, strict=strict)


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
    from stax.legality.check import check as prove

    return prove(freeze_for(outputs, schedule, None, None, None), schedule.lines if schedule else ())


def auto_schedule(
    outputs: Func | tuple[Func, ...],
    *,
    shape: Any = None,
    arrays: Mapping[str, Any] | None = None,
    target: Target | str | None = None,
    require: str | None = None,
    budget: int = 100,
) -> Schedule:
    """Return a schedule of `outputs` that is worked out for this machine: print it, edit it, save it.

    It is legal at all sizes. shape: extents of the output, or of each output, to choose by. arrays: Inputs by name, as
    arrays or as shapes, to choose by. target: another machine; for "cuda", the default schedule of GPUs. require:
    "bitwise" leaves sums in their order. budget: how many candidates may be proved; where that is too few, what is not
    known to be legal is left to the default schedule. The text is the same on every run and says why its lines are
    there; `refused` of the schedule says what else was tried.

    >>> import stax as sx
    >>> x, a = sx.Var("x"), sx.Input("a", sx.float32, 1)
    >>> f = sx.Func("f")
    >>> f[x] = a[x] * 2
    >>> "vectorize" in str(sx.auto_schedule(f))
    True
    """
    from stax.auto.choose import choose
    from stax.auto.machine import Machine
    from stax.schedule.schedule import Schedule

    if require not in (None, "bitwise", "reassociates"):
        raise ArgumentError(f"require is {require!r}", hint='it is "bitwise" or "reassociates"')
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(f"budget is {budget!r}, and must be an integer of at least 1")
    if isinstance(target, str):
        return default_schedule(outputs, target=target, bitwise=require == "bitwise")
    pipeline = freeze(outputs)
    machine = Machine.host() if target is None else Machine.of(target)
    chosen = choose(pipeline, machine, _known_shapes(pipeline, shape, arrays or {}), require != "bitwise", budget)
    return Schedule.of(outputs, chosen.lines, chosen.refused)


def default_schedule(
    outputs: Func | tuple[Func, ...], *, target: Target | str | None = None, bitwise: bool = False
) -> Schedule:
    """Return the schedule that `outputs` have where nobody writes one; `bitwise`, on GPUs with sums in their order."""
    from stax.legality.sequence import in_sequence
    from stax.schedule import default, default_gpu
    from stax.schedule.schedule import Schedule

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
    from stax.runtime.jobs import compile_jobs

    if isinstance(programs, Func):
        raise ArgumentError("compile_all takes a list of programs", hint="sx.compile takes one")
    if workers is not None and workers < 1:
        raise ArgumentError(f"workers is {workers!r}, and must be an integer of at least 1")

    def made(one: Any) -> Kernel:
        pair = isinstance(one, tuple) and len(one) == 2 and _is_schedule(one[1])  # pyright: ignore
        return compile(one[0], one[1], options=options) if pair else compile(one, options=options)  # pyright: ignore

    return compile_jobs((partial(made, one) for one in programs), workers or cores(), progress)


def explain(outputs: Func | tuple[Func, ...], schedule: Schedule | None = None, *, cut: bool = False) -> str:
    """Return the loops that `schedule` makes of `outputs`, with their bounds and the bytes of their storage.

    After them, which loops became lanes, with which tails, and why others did not. cut: the loops as they are run, each
    cut into a steady part and the rest, which is a much longer text.

    >>> import stax as sx
    >>> x, f = sx.Var("x"), sx.Func("f")
    >>> f[x] = x + 1
    >>> "f" in sx.explain(f)
    True
    """
    from stax.loops.show import show
    from stax.lower.notes import notes
    from stax.lower.passes import lower
    from stax.lowering import nests

    legal = check(outputs, schedule)
    program = lower(legal)
    tried = [f"not taken: {text}" for text in (schedule.refused if schedule else ())]
    return "\n".join([show(program) if cut else nests(legal), *notes(legal, program), *tried]) + "\n"


def _is_schedule(given: object) -> bool:
    from stax.schedule.schedule import Schedule

    return isinstance(given, Schedule)


def freeze_for(
    outputs: Any, schedule: Schedule | None, shape: Any, inputs: Sequence[Any] | None, fp: str | None
) -> Pipeline:
    """Return the frozen program, after checking that `schedule` is one of it."""
    if schedule is not None and not _is_schedule(schedule):
        raise ScheduleError(
            f"a schedule is a Schedule, not {type(schedule).__name__}",
            hint="sx.Schedule.parse(text, f) or sx.Schedule.load(path, f)",
        )
    return freeze(outputs, shape=shape, inputs=inputs, fp=fp)


def _tuned(
    pipeline: Pipeline,
    made: Callable[..., Kernel],
    target: Target | None,
    options: Options,
    strict: bool,
    require: str | None,
) -> Kernel:
    """Return a kernel that takes, at its first call, the schedule that is the fastest on the arrays of that call.

    It is kept in the cache, by the shapes, as text; sums keep their order unless `require` says otherwise.
    """
    store, machine = Store(cache_folder(options)), target or host()
    usual = made(None, strict=strict)

    def candidates(shapes: Mapping[str, tuple[int, ...]]) -> list[Schedule | None]:
        from stax.auto.choose import choose
        from stax.auto.machine import Machine
        from stax.schedule.directives import Stream
        from stax.schedule.schedule import Schedule

        lines = choose(pipeline, Machine.of(machine), shapes, require == "reassociates").lines
        cached = tuple(line for line in lines if not isinstance(line.directive, Stream))
        return [Schedule.of(pipeline, one) for one in dict.fromkeys((lines, cached))] + [None]

    def tuned(bound: Bound, threads: int) -> Kernel:
        from stax.runtime.tune import fastest
        from stax.schedule.schedule import Schedule

        named = [i.name for i in pipeline.inputs] + list(pipeline.outputs)
        shapes = {name: tuple(bound.sizes[name]) for name in named}
        key = program_key(pipeline, (), ("autotune", require, threads, tuple(shapes.items())), machine)
        known = None if key is None else store.get(key.text)
        if known is not None:
            return made(Schedule.parse(known.decode(), pipeline), strict=strict) if known else usual
        tried = candidates(shapes)
        at = fastest([partial(made, one, strict=True) for one in tried], bound, threads)
        taken = None if at is None else tried[at]
        if key is not None and at is not None:
            store.put(key.text, b"" if taken is None else str(taken).encode(), "choice")
        return usual if taken is None else made(taken, strict=strict)

    return Kernel(replace(usual.build, tuned=tuned))


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
    def proof() -> tuple[Legal, Signature, Regions]:
        from stax.lowering import proved

        return proved(pipeline, lines, store, require, log)

    @cache
    def loops() -> Program:
        from stax.lowering import lowered

        return lowered(proof()[0], log)

    with step(log, "key"):
        key = program_key(pipeline, lines, (options.chosen["effort"], require), machine)
        known = read_summary(store, key) if key is not None else None
    meaning = None
    if known is None:
        from stax.lowering import summary

        legal, taken, regions = proof()
        try:
            loops()
        except UserError:
            raise
        except Exception as error:  # a fault of lowering: what the program means is known all the same
            if strict:
                raise failure(error) from error
            key, meaning = None, meant(pipeline, regions, dict(taken.overwritten))
        known = summary(legal, None if meaning else loops(), taken)
        if key is not None:
            write_summary(store, key, known)
    for text in known.notes:
        warnings.warn(text, StaxWarning, stacklevel=3)
    taken, kept = known.signature(pipeline), key

    def respecialise(facts: Facts) -> Artifact:
        found = read_artifact(store, kept, facts) if kept is not None else None
        return compiled(loops(), facts, kept=kept) if found is None else found

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

    def made_schedule() -> Schedule:
        from stax.schedule.schedule import Schedule

        return Schedule.of(pipeline, proof()[0].resolved.lines)

    def printed(facts: Facts) -> str:
        from stax.backends.llvm.build import text

        return text(loops(), facts, machine)

    def sources(kind: str) -> str:
        from stax.lowering import Sources, plain_facts

        return Sources(proof()[0], loops(), plain_facts(taken, loops()), machine)(kind)

    made = Build(
        signature=taken,
        respecialise=respecialise,
        program=loops,
        source=sources,
        schedule=made_schedule,
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
        from stax.lowering import Sources, plain_facts
        from stax.lowering import timed as clocks

        face, clocked, names = clocks(taken, loops())
        return Kernel(
            replace(
                made,
                signature=face,
                respecialise=partial(compiled, clocked, kept=None),
                program=lambda: clocked,
                source=Sources(proof()[0], clocked, plain_facts(taken, clocked), machine),
                elsewhere=None,
            )
        ), names

    return Kernel(replace(made, timed=timed))


def cache_folder(options: Options) -> str | Path | None:
    """Return where what is compiled is kept: `cache_dir`, STAX_CACHE_DIR, or the platform's folder; None: nowhere."""
    if not options.cache:
        return None
    return options.cache_dir or os.environ.get("STAX_CACHE_DIR") or default_folder()


@cache
def host() -> Target:
    """Return the machine at hand."""
    return Target.host()


def threads_of(machine: Target) -> int:
    """Return how many threads a call may use: STAX_THREADS, or what this process may run at once."""
    given = os.environ.get("STAX_THREADS", "")
    return max(1, int(given)) if given.isdigit() else machine.cores
