"""One random program under several schedules: the oracle beside machine code and beside interpreted loops."""

from __future__ import annotations

import math
import signal
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import ml_dtypes  # noqa: F401  so that NumPy knows bfloat16 by its name
import numpy as np

import stax as sx
from stax.algorithm.interpret import interpret
from stax.algorithm.nodes import Pipeline
from stax.algorithm.positions import LARGEST_POSITION, position_params
from stax.backends.artifact import Artifact, Facts
from stax.backends.llvm.build import artifact
from stax.bounds.infer import Regions, infer
from stax.compiler import host
from stax.dtypes import as_dtype
from stax.errors import BoundsError, InternalError, RunError, StaxError, UserError
from stax.expr.evaluate import evaluate
from stax.expr.nodes import Expr, Param, Size
from stax.lang.freeze import freeze
from stax.legality.check import check as prove
from stax.loops.interpret import interpret as interpret_loops
from stax.loops.nodes import Program, Role
from stax.loops.show import show as show_loops
from stax.lower.passes import lower
from stax.lowering import signature
from stax.runtime.arguments import Arguments
from stax.runtime.kernel import Build, Kernel
from stax.schedule import directives as said
from stax.schedule.directives import Line
from stax.schedule.legal import Legal
from stax.schedule.schedule import Schedule
from tests.differential import layouts
from tests.differential.generate import DIMS, Drawn
from tests.differential.recurrences import is_counted
from tests.differential.schedules import draw_lines
from tests.differential.seen import words_drawn, words_of

MOST_CELLS = 1 << 17
GROWTH = 8
MOST_JUDGED = 4
ORACLE_SECONDS = 4.0
LOOP_SECONDS = 10.0


@dataclass(slots=True)
class Outcome:
    """What became of a program. `status` is ok, refused or wrong; `words` say what its code was seen to have."""

    seed: int
    status: str = "ok"
    message: str = ""
    schedule: str = ""
    aim: str = ""
    refusals: dict[str, int] = field(default_factory=dict)
    drawn: dict[str, int] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    runs: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


class Wrong(Exception):
    """Two evaluations differ."""


class Refused(Exception):
    """The program, or its arguments, is none that stax takes."""


@dataclass(frozen=True, slots=True)
class Built:
    """A program made: its outputs, frozen form, regions, and the arguments of a call."""

    outputs: tuple[Any, ...]
    pipeline: Pipeline
    regions: Regions
    arrays: dict[str, np.ndarray]
    scalars: dict[str, Any]
    shapes: dict[str, tuple[int, ...]]
    asked: Any


def execute(drawn: Drawn) -> dict[str, Any]:
    """Run the text of a program, and return the names that it makes."""
    names: dict[str, Any] = {"sx": sx, "np": np, "float": float}
    names |= {v: sx.Var(v) for v in (*DIMS, "i")}
    exec(compile(drawn.text(), f"<program {drawn.seed}>", "exec"), names)
    return names


def build(drawn: Drawn) -> Built:
    """Return the program with arguments that fit it; raise Refused where there are none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = execute(drawn)
        outputs = tuple(names[name] for name in drawn.outputs)
        pipeline = freeze(outputs, fp=drawn.fp)
    regions = infer(pipeline)
    scalars = {p.name: p.value for p in drawn.params if any(s.name == p.name for s in pipeline.scalars)}
    if any(abs(scalars[name]) > LARGEST_POSITION for name in position_params(pipeline)):
        raise Refused("call: positions are computed from a Param that is too large")
    shapes = dict(drawn.shapes)
    for name in pipeline.outputs:
        f = pipeline.func(name)
        if f.shape and all(e is not None for e in f.shape):
            found = values(regions, [e for e in f.shape if e is not None], {}, shapes, scalars)
            shapes[name] = tuple(int(v) for v in found)
    extents = _extents(drawn, pipeline, regions, scalars, shapes)
    rng = Random(f"arrays {drawn.seed}")
    arrays = {i.name: layouts.draw(rng, i.dtype.name, tuple(extents[i.name])) for i in pipeline.inputs}
    asked: Any = tuple(shapes[name] for name in pipeline.outputs)
    return Built(outputs, pipeline, regions, arrays, scalars, shapes, asked if len(asked) > 1 else asked[0])


def values(
    regions: Regions, exprs: Sequence[Expr], arrays: Mapping[str, Sequence[int]], shapes: Mapping[str, Sequence[int]],
    scalars: Mapping[str, Any],
) -> list[Any]:  # fmt: skip
    """Return what expressions over sizes and Params are."""

    def leaf(node: Expr) -> Any:
        match node:
            case Size(array=array, dim=dim):
                found = shapes[array] if array in shapes else arrays[array]
                return np.asarray(found[dim], np.int64)
            case Param(name=name):
                return np.asarray(scalars[name]).astype(node.dtype.dtype)
            case _:
                raise AssertionError(f"a size depends on {node}")

    return list(evaluate(exprs, leaf)) if exprs else []


def _extents(
    drawn: Drawn,
    pipeline: Pipeline,
    regions: Regions,
    scalars: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
) -> dict[str, list[int]]:
    """Return the smallest extents of inputs that serve what is asked of them."""
    rng = Random(f"extents {drawn.seed}")
    extents = {i.name: list(i.least) for i in drawn.inputs}
    for _ in range(GROWTH):
        grown = False
        for c in regions.checks:
            (holds,) = values(regions, [c.cond], extents, shapes, scalars)
            if bool(holds):
                continue
            lo, hi = (int(v) for v in values(regions, [c.lo, c.hi], extents, shapes, scalars))
            if c.source not in extents:
                raise Refused(f"call: `{c.source}` is asked beyond what it has")
            if lo < 0:
                raise Refused("call: an input is asked below 0")
            if hi + 1 > extents[c.source][c.dim]:
                extents[c.source][c.dim] = hi + 1
                grown = True
        if not grown:
            break
    else:
        raise Refused("call: extents chase each other")
    if rng.random() < 0.3:
        for i in drawn.inputs:
            trial = {**extents, i.name: [n + rng.choice((0, 0, 1, 2)) for n in extents[i.name]]}
            if all(bool(v) for v in values(regions, [c.cond for c in regions.checks], trial, shapes, scalars)):
                extents = trial
    if any(math.prod(e) > MOST_CELLS for e in extents.values()):
        raise Refused("call: the inputs are too large")
    return extents


@contextmanager
def _limited(seconds: float, what: str) -> Iterator[None]:
    """Raise Refused where the block takes more than so much CPU time."""

    def end(*_: object) -> None:
        raise Refused(f"call: {what}")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def oracle(built: Built) -> dict[str, tuple[np.ndarray, ...]]:
    """Return what the program means."""
    algebra = built.regions.context.algebra
    extents = {name: a.shape for name, a in built.arrays.items()}
    boxes: dict[str, tuple[tuple[int, int], ...]] = {}
    for name, box in built.regions.boxes.items():
        ends = values(
            built.regions, [algebra.expr(e) for side in box for e in (side.lo, side.hi)], extents, built.shapes,
            built.scalars,
        )  # fmt: skip
        boxes[name] = tuple((int(ends[2 * k]), int(ends[2 * k + 1])) for k in range(len(box)))
        if math.prod(max(0, hi - lo + 1) for lo, hi in boxes[name]) > MOST_CELLS:
            raise Refused("call: a Func is too large")
    sizes = {(name, d): n for name, shape in built.shapes.items() for d, n in enumerate(shape)}
    with _limited(ORACLE_SECONDS, "the oracle goes through too many points"):
        found = interpret(built.pipeline, built.arrays, built.scalars, boxes, sizes)
    out: dict[str, tuple[np.ndarray, ...]] = {}
    for name, parts in found.items():
        f, box = built.pipeline.func(name), boxes[name]
        # What others read of an output beyond its shape is no part of it.
        cut = tuple(slice(-lo, -lo + n) for (lo, _), n in zip(box, built.shapes[name], strict=True))
        out[name] = tuple(p[cut] for p in parts) if f.dims else parts
    return out


def difference(got: np.ndarray, want: np.ndarray) -> str | None:
    """Return the first place where two arrays differ to the bit, any NaN being any other."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape} is not {want.dtype}{want.shape}"
    if as_dtype(got.dtype).is_float:
        bits = f"u{got.dtype.itemsize}"
        a, b = (np.ascontiguousarray(v).reshape(v.shape) for v in (got, want))
        same = (a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))
    else:
        same = got == want
        if got.dtype.kind == "b":
            same &= np.ascontiguousarray(got).reshape(got.shape).view("u1") <= 1
    if same.all():
        return None
    at = tuple(int(k) for k in np.argwhere(~same)[0])
    count = int((~same).sum())
    return f"at {at}: {got[at]!r} is not {want[at]!r} ({count} of {same.size} differ)"


@dataclass(slots=True)
class _Texts:
    """The LLVM text of the versions that a kernel made."""

    texts: list[str] = field(default_factory=list)


def _inferred(built: Built, rng: Random) -> Built:
    """Return `built` with the shapes that a call without shape= would give, now and then, where it gives any.

    The largest extents that the inputs serve: the oracle says whether they are too large, and one more is refused.
    """
    if rng.random() > 0.2:
        return built
    arguments = Arguments(signature(built.pipeline, built.regions, prove(built.pipeline, (), built.regions)))
    given = {**built.arrays, **built.scalars}
    try:
        bound = arguments.bind((), given)
    except (UserError, RunError):
        return built
    shapes = {name: tuple(bound.sizes[name]) for name in built.pipeline.outputs}
    # Where there is nothing to compute, a call checks nothing and runs nothing; the oracle would.
    if bound.empty or any(math.prod(s) > MOST_CELLS for s in shapes.values()):
        return built
    return replace(built, shapes=shapes, asked=None)


def kernel_of(built: Built, lines: Sequence[Line]) -> tuple[Kernel, Legal, Program, _Texts]:
    """Return the program compiled under `lines`; the same steps as `compile`, each once."""
    legal = prove(built.pipeline, lines, built.regions)
    program = lower(legal)
    texts = _Texts()
    machine = host()

    def respecialise(facts: Facts) -> Artifact:
        made = artifact(program, facts, machine, lambda text, make: make())
        texts.texts.append(made.text)
        return made

    made = Kernel(
        Build(
            signature=signature(built.pipeline, built.regions, legal),
            respecialise=respecialise,
            program=lambda: program,
            threads=2,
            strict_native=True,
        )
    )
    return made, legal, program, texts


def call(built: Built, kernel: Kernel, rng: Random) -> dict[str, tuple[np.ndarray, ...]]:
    """Return what a kernel gives, into arrays of odd layouts now and then."""
    threads = rng.choice((1, 2, 2, 3))
    out: Any = None
    if rng.random() < 0.2:
        out = tuple(
            _group(tuple(layouts.place(rng, t.name, built.shapes[name]) for t in built.pipeline.func(name).dtypes))
            for name in built.pipeline.outputs
        )
        out = out if len(out) > 1 else out[0]
    named = {**built.arrays, **built.scalars}
    found = kernel(**named, out=out, shape=built.asked, threads=threads)
    many = len(built.pipeline.outputs) > 1
    results: dict[str, tuple[np.ndarray, ...]] = {}
    for name, group in zip(built.pipeline.outputs, found if many else (found,), strict=True):
        parts = group if isinstance(group, tuple) else (group,)
        results[name] = tuple(np.asarray(p) for p in parts)
    return results


def _group(parts: tuple[np.ndarray, ...]) -> Any:
    return parts if len(parts) > 1 else parts[0]


def run_loops(built: Built, program: Program) -> dict[str, tuple[np.ndarray, ...]]:
    """Return what the loop program gives when it is interpreted."""
    arrays: dict[str, np.ndarray] = dict(built.arrays) | {t.name: t.array for t in built.pipeline.tables}
    results: dict[str, tuple[np.ndarray, ...]] = {}
    sizes = {(name, d): n for name, shape in built.shapes.items() for d, n in enumerate(shape)}
    outs = [b for b in program.buffers if b.role is Role.OUTPUT]
    for name in built.pipeline.outputs:
        f = built.pipeline.func(name)
        parts: list[np.ndarray] = []
        for t in f.dtypes:
            buffer = outs.pop(0)
            arrays[buffer.name] = np.zeros(built.shapes[name], t.dtype)
            parts.append(arrays[buffer.name])
        results[name] = tuple(parts)
    for name, a in arrays.items():
        sizes |= {(name, d): n for d, n in enumerate(a.shape)}
    scalars = {s.name: s.dtype.dtype.type(built.scalars[s.name]) for s in built.pipeline.scalars}
    interpret_loops(program, arrays, scalars, sizes)
    return results


def compare(
    what: str, found: Mapping[str, tuple[np.ndarray, ...]], wanted: Mapping[str, tuple[np.ndarray, ...]]
) -> None:
    """Raise Wrong where results differ."""
    for name, parts in wanted.items():
        for k, (got, want) in enumerate(zip(found[name], parts, strict=True)):
            text = difference(got, want)
            if text is not None:
                raise Wrong(f"{what}: `{name}` part {k} {text}")


def run(
    drawn: Drawn, schedules: int, only: int | None = None, count: bool = True, enough: frozenset[str] = frozenset()
) -> Outcome:  # fmt: skip
    """Return what became of a program under the default schedule and `schedules - 1` random ones.

    Directives whose words are `enough` seen already are not judged again. Of a program with an aim, the schedules that
    have that word are run.
    """
    outcome = Outcome(drawn.seed, aim=drawn.aim)
    clock = _Clock(outcome.seconds)
    current = ""
    try:
        try:
            built = build(drawn)
            clock("freeze and infer")
            built = _inferred(built, Random(f"shape {drawn.seed}"))
            wanted = oracle(built)
            clock("oracle")
        except InternalError:
            raise
        except (StaxError, Refused) as error:
            outcome.status, outcome.message = "refused", f"{type(error).__name__}: {_head(error)}"
            return outcome
        if count:
            outcome.drawn = dict.fromkeys(words_drawn(drawn), 1)
            for name, words in drawn.words.items():
                for word in words if any(f.name == name for f in built.pipeline.funcs) else ():
                    outcome.drawn[word] = outcome.drawn.get(word, 0) + 1
        for k in range(1 if drawn.aim else 0, schedules):
            if only is not None and k != only:
                continue
            rng = Random(f"schedule {drawn.seed} {k}")
            lines: tuple[Line, ...] = ()
            current = f"schedule {k} (drawing)"
            if k:
                lines = draw_lines(
                    rng,
                    built.pipeline,
                    built.regions,
                    outcome,
                    built.shapes,
                    drawn.recurrences,
                    drawn.whole,
                    drawn.aim,
                )
            clock("draw schedule")
            if drawn.aim and all(_word(lines, at) != drawn.aim for at in range(len(lines))):
                continue
            current = "\n".join(str(Schedule.of(built.pipeline, lines)).splitlines()[2:]) if lines else "default"
            kernel, legal, program, texts = kernel_of(built, lines)
            clock("prove and lower")
            try:
                found = call(built, kernel, rng)
            except BoundsError as error:
                if "its schedule" not in error.message:
                    raise
                outcome.refusals["at the call"] = outcome.refusals.get("at the call", 0) + 1
                continue
            clock("compile and call")
            compare("machine code", found, wanted)
            if rng.random() < 0.3:
                with suppress(Refused), _limited(LOOP_SECONDS, "the loops take too long to interpret"):
                    compare("loops", run_loops(built, program), wanted)
                clock("loops")
            outcome.runs += 1
            if count:
                for word in words_of(drawn, legal.pipeline, program, texts.texts, built.arrays):
                    outcome.seen[word] = outcome.seen.get(word, 0) + 1
                if lines:
                    _count_directives(rng, built, lines, program, outcome, enough)
                clock("count")
    except Wrong as error:
        outcome.status, outcome.message, outcome.schedule = "wrong", str(error), current
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        text = "".join(traceback.format_exception(error)[-6:])
        outcome.status, outcome.message, outcome.schedule = "error", text, current
    return outcome


def _count_directives(
    rng: Random, built: Built, lines: Sequence[Line], program: Program, outcome: Outcome, enough: frozenset[str]
) -> None:
    """Count the directives of a schedule, one for each word and some words, as seen if the loops are others without.

    The word that the schedule aims at is among them.
    """
    text = show_loops(program)
    places: dict[str, list[int]] = {}
    for k in range(len(lines)):
        word = f"directive {is_counted(lines, k) or _word(lines, k)}"
        if word not in enough:
            places.setdefault(word, []).append(k)
    aimed = places.keys() & {f"directive {outcome.aim}"}
    others = sorted(places.keys() - aimed)
    for word in (*aimed, *rng.sample(others, min(len(others), MOST_JUDGED - len(aimed)))):
        outcome.drawn[word] = outcome.drawn.get(word, 0) + 1
        at = rng.choice(places[word])
        rest = [line for line in lines if line != lines[at]]
        try:
            other = show_loops(lower(prove(built.pipeline, rest, built.regions)))
        except StaxError:
            other = ""
        if other != text:
            outcome.seen[word] = outcome.seen.get(word, 0) + 1


def _word(lines: Sequence[Line], at: int) -> str:
    """Return the word of a directive, with the option that makes another of it, or what it is spelled out from."""
    directive = lines[at].directive
    name = type(directive).__name__
    word = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
    match directive:
        case said.Split(tail=tail) if tail is not said.Tail.GUARD:
            return f"{word} {tail.value}"
        case said.Vectorize(upto=int()):
            return f"{word} upto"
        case said.Rfactor(var=var) if any(
            line.at == lines[at].at and isinstance(line.directive, said.Split) and line.directive.inner == f"{var}.in"
            for line in lines[:at]
        ):
            return "split_reduction"
        case said.Layout(align=int()):
            return f"{word} align"
        case said.Memory(kind=kind):
            return f"{word} {kind.value}"
        case said.ComputeWith(shift=shift) if shift:
            return f"{word} shift"
        case _:
            return word


class _Clock:
    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds, self.last = seconds, time.perf_counter()

    def __call__(self, what: str) -> None:
        now = time.perf_counter()
        self.seconds[what] = self.seconds.get(what, 0.0) + now - self.last
        self.last = now


def _head(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else ""
