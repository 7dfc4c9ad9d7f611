"""Random schedules: directives drawn one by one, and kept where the whole is still proved."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING

from stax.algorithm.nodes import Func, Pipeline
from stax.bounds.infer import Regions
from stax.errors import LegalityError, StaxError, UnsupportedError, UserError
from stax.expr.walk import reads
from stax.legality.check import check as prove
from stax.lower.passes import lower
from stax.schedule.directives import Line, Memory, StageRef, spelled_out
from stax.schedule.resolve import stage_roots
from stax.schedule.schedule import Schedule
from stax.schedule.words import make
from tests.differential.recurrences import directive

if TYPE_CHECKING:
    from tests.differential.compare import Outcome

SPLITS = (1, 2, 3, 4, 5, 7, 8, 16)
LANES = (2, 3, 4, 5, 7, 8, 16, 17)
OF_SUMS = ("reassociate", "rfactor", "accumulators", "split_reduction")
OF_STORED = {
    "inline": "inline", "layout": "layout", "layout align": "layout", "memory heap": "memory", "memory stack": "memory",
    "memory register": "memory", "hoist_storage": "hoist", "split round_up": "round_up", "fold_storage": "fold",
    "partition": "partition", "prefetch": "prefetch", "vectorize upto": "upto",
}  # fmt: skip
AIMS = (*OF_SUMS, *OF_STORED)
"""Words that few stages have a place for, which schedules can be made to aim at: those of sums, of stored Funcs."""


def draw_lines(
    rng: Random, pipeline: Pipeline, regions: Regions, outcome: Outcome | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None, recurrences: bool = False, whole: frozenset[str] = frozenset(),
    aim: str = "",
) -> tuple[Line, ...]:  # fmt: skip
    """Return the lines of a legal schedule; `shapes` are those of the outputs that a call will ask for.

    With `recurrences`, they are mostly of the words for these; with `aim`, of that word. The Funcs `whole` are sums of
    whole numbers, kept as floats: in any order they come to the same, so that those sums alone may be taken in another.
    """
    schedule = Schedule(pipeline)
    stored = {f.name for f in prove(pipeline, (), regions).pipeline.funcs}
    fresh = 0
    for _ in range(rng.choice((1, 2, 3, 4, 5) if recurrences else (2, 3, 4, 5, 6, 7, 8))):
        fresh += 1
        name, program = f"v{fresh}", schedule.program
        if recurrences and rng.random() < 0.7:
            lines = directive(rng, program, schedule, name)
        else:
            lines = _directive(rng, program, schedule, name, shapes or {}, whole, stored, aim)
        if not lines:
            continue
        word = type(lines[-1].directive).__name__
        kept = schedule.lines
        try:
            for line in lines:
                schedule.say(line)
            legal = prove(pipeline, schedule.lines, regions)
            if any(isinstance(line.directive, Memory) for line in schedule.lines):
                lower(legal)
            if any(r.stage.func not in whole for r in legal.reordered):
                raise UnsupportedError("sums in another order are compared in tests.directives.test_random_sums")
            if outcome is not None:
                outcome.attempts["accepted"] = outcome.attempts.get("accepted", 0) + 1
        except UserError as error:
            if outcome is not None:
                what = "illegal" if isinstance(error, LegalityError) else "unfit"
                outcome.attempts[what] = outcome.attempts.get(what, 0) + 1
                key = f"{word}: {type(error).__name__}"
                outcome.refusals[key] = outcome.refusals.get(key, 0) + 1
            schedule = Schedule.of(pipeline, kept)
    return schedule.lines


def _readers(pipeline: Pipeline, name: str) -> list[StageRef]:
    found: list[StageRef] = []
    for f in pipeline.funcs:
        stages = [list(f.values), *([*u.values, *u.index, *([] if u.where is None else [u.where])] for u in f.updates)]
        for k, roots in enumerate(stages):
            if f.name != name and any(r.source == name for r in reads(roots)):
                found.append(StageRef(f.name, k))
    return found


def _directive(
    rng: Random, pipeline: Pipeline, schedule: Schedule, fresh: str, shapes: Mapping[str, tuple[int, ...]],
    whole: frozenset[str], stored: set[str], aim: str,
) -> list[Line]:  # fmt: skip
    if aim and rng.random() < 0.7:
        return _aimed(rng, pipeline, schedule, fresh, shapes, whole, stored, aim)
    if rng.random() < 0.28:
        return _tempting(rng, pipeline, schedule, fresh)
    updated = [f for f in pipeline.funcs if any(u.domain for u in f.updates)]
    if updated and rng.random() < 0.25:
        g = rng.choice([f for f in updated if f.name in whole] or updated)
        at = StageRef(g.name, rng.choice([k for k, u in enumerate(g.updates, 1) if u.domain]))
        return _reduced(rng, g, at, [loop.name for loop in schedule.nest(at).loops], fresh, whole)
    f: Func = rng.choice(pipeline.funcs)
    ref = StageRef(f.name, rng.randint(0, len(f.updates)))
    loops = [loop.name for loop in schedule.nest(ref).loops]

    def said(word: str, *args: object, at: StageRef = ref, **named: object) -> Line:
        return Line(at, make(word, args, named))  # type: ignore[arg-type]

    place = StageRef(f.name)
    others = _readers(pipeline, f.name)
    if rng.random() < 0.1:
        return _copied(rng, pipeline, fresh)
    if rng.random() < 0.45:
        return _rarer(rng, pipeline, schedule, f, ref, loops, others, fresh, shapes, stored)
    if rng.random() < 0.5 and f.name not in pipeline.outputs and others:
        kind = rng.random()
        if kind > 0.9 and f.dims and rng.random() < 0.5:
            return [said("layout", tuple(rng.sample(f.dims, len(f.dims))), pad=rng.choice((1, 2, 8)), at=place)]
        if kind < 0.2 and not f.updates:
            return [said("inline", at=place)]
        if kind < 0.32:
            return [said("compute_root", at=place)]
        reader = rng.choice(others)
        outer = [loop.name for loop in schedule.nest(reader).loops]
        if not outer:
            return []
        d = rng.randrange(len(outer)) if rng.random() < 0.5 else len(outer) - 1
        w = rng.randint(0, max(0, d - 1))
        if kind < 0.5:
            return [said("compute_at", reader, outer[d], at=place)]
        if kind < 0.6:
            return [said("compute_at", reader, outer[d], at=place, store=outer[w])]
        kept = said("store_at", reader, outer[w], at=place) if rng.random() < 0.7 else said("store_root", at=place)
        if kind < 0.85:
            return [said("compute_at", reader, outer[d], at=place), kept]
        if kind < 0.95 and f.dims:
            fold = said("fold_storage", rng.choice(f.dims), rng.choice((1, 2, 3, 4, 5, 8, 16, 17)), at=place)
            return [said("compute_at", reader, outer[d], at=place), kept, fold]
        return [said("compute_at", reader, outer[d], at=place), said("store_root", at=place)]
    if not loops:
        return []
    v = rng.choice(loops)
    if ref.stage and rng.random() < 0.4:
        return _reduced(rng, f, ref, loops, fresh, whole)
    word = rng.choice(
        ("split", "tile", "fuse", "reorder", "vectorize", "vectorize", "parallel", "unroll", "unroll", "stream")
    )
    match word:
        case "split":
            inner = rng.choice((f"{fresh}i", v))
            tail = rng.choice(("guard", "guard", "shift", "predicate"))
            made = [said("split", v, f"{fresh}o", inner, rng.choice(SPLITS), tail=tail)]
            return [*made, said("vectorize", inner)] if tail != "guard" and rng.random() < 0.6 else made
        case "stream":
            return [said("stream")]
        case "tile":
            if len(loops) < 2:
                return []
            at = rng.randrange(len(loops) - 1)
            two = (loops[at], loops[at + 1])
            outers, inners = (f"{fresh}o", f"{fresh}p"), (f"{fresh}i", f"{fresh}j")
            return [said("tile", two, outers, inners, (rng.choice(SPLITS), rng.choice(SPLITS)))]
        case "fuse":
            if len(loops) < 2:
                return []
            at = rng.randrange(len(loops) - 1)
            return [said("fuse", loops[at], loops[at + 1], fresh)]
        case "reorder":
            some = rng.sample(loops, rng.randint(2, len(loops))) if len(loops) > 1 else []
            return [said("reorder", *some)] if some else []
        case "vectorize":
            last = loops[-1] if rng.random() < 0.6 else v
            return [said("vectorize", last, *((rng.choice(LANES),) if rng.random() < 0.9 else ()))]
        case "parallel":
            return [said("parallel", v, *((rng.choice((1, 2, 3, 4)),) if rng.random() < 0.5 else ()))]
        case _:
            return [said("unroll", v, *((rng.choice((1, 2, 3, 4, 8)),) if rng.random() < 0.9 else ()))]


def _aimed(
    rng: Random, pipeline: Pipeline, schedule: Schedule, fresh: str, shapes: Mapping[str, tuple[int, ...]],
    whole: frozenset[str], stored: set[str], aim: str,
) -> list[Line]:  # fmt: skip
    """Return lines with the word `aim`, where some stage has a place for it."""
    if aim in OF_SUMS:
        sums = [(f, k) for f in pipeline.funcs for k, u in enumerate(f.updates, 1) if u.domain and f.name in whole]
        if not sums:
            return []
        f, k = rng.choice(sums)
        at = StageRef(f.name, k)
        return _reduced(rng, f, at, [loop.name for loop in schedule.nest(at).loops], fresh, whole)
    inner = [f for f in pipeline.funcs if f.name not in pipeline.outputs and f.dims and _readers(pipeline, f.name)]
    if aim == "inline":
        inner = [
            f for f in inner if f.name in stored and not f.updates and all(r.source != f.name for r in reads(f.values))
        ]
    if not inner:
        return []
    f = rng.choice(inner)
    ref = StageRef(f.name, rng.randint(0, len(f.updates)))
    loops = [loop.name for loop in schedule.nest(ref).loops]
    others = _readers(pipeline, f.name)
    return _rarer(rng, pipeline, schedule, f, ref, loops, others, fresh, shapes, stored, aim)


def _rarer(
    rng: Random, pipeline: Pipeline, schedule: Schedule, f: Func, ref: StageRef, loops: list[str],
    others: list[StageRef], fresh: str, shapes: Mapping[str, tuple[int, ...]], stored: set[str],
    aim: str = "",
) -> list[Line]:  # fmt: skip
    """Return lines with a word that only some programs have a place for, or with `aim`."""

    def said(word: str, *args: object, at: StageRef = ref, **named: object) -> Line:
        return Line(at, make(word, args, named))  # type: ignore[arg-type]

    place, output = StageRef(f.name), f.name in pipeline.outputs
    words = ["partition", "specialize", "upto", "prefetch", "skew", "reverse", "compute_with", "compute_with"]
    words += ["bound", "align_bounds"] if output and f.name in shapes else []
    if not output and f.dims and others:
        words += ["layout", "layout", *["memory"] * 5, "hoist", "hoist", "round_up", "fold"]
        words += ["inline", "inline"] if not f.updates and f.name in stored else []
    word = OF_STORED[aim] if aim else rng.choice(words)
    v = rng.choice(loops) if loops else ""
    if not loops and word in ("partition", "upto", "prefetch", "skew", "reverse", "compute_with", "round_up"):
        return []
    match word:
        case "inline":
            return [said("inline", at=place)]
        case "partition":
            return [said("vectorize", loops[-1], rng.choice(LANES)), said("partition", rng.choice((v, loops[0])))]
        case "specialize":
            return [said("specialize", _condition(rng, pipeline))]
        case "upto":
            return [said("vectorize", v, upto=rng.choice((16, 32, 40, 64)))]
        case "prefetch":
            sources = sorted({r.source for r in reads(stage_roots(f, ref.stage))} - {f.name, *_tables(pipeline)})
            return [said("prefetch", rng.choice(sources), v, rng.choice((1, 2, 5)))] if sources else []
        case "skew":
            w = rng.choice(loops)
            return [said("skew", v, w, rng.choice((-1, 1, 2)))] if v != w else []
        case "reverse":
            return [said("reverse", v)]
        case "compute_with":
            return _beside(rng, pipeline, schedule, ref, v)
        case "bound" | "align_bounds":
            d = rng.randrange(len(f.dims)) if f.dims else 0
            if not f.dims:
                return []
            n = shapes[f.name][d] + (rng.random() < 0.1)
            more = [said("vectorize", v, rng.choice(LANES))] if loops and rng.random() < 0.7 else []
            if word == "bound":
                return [*more, said("bound", f.dims[d], 0, n, at=place)]
            fits = [k for k in range(1, max(n, 1) + 1) if n % k == 0]
            return [*more, said("align_bounds", f.dims[d], rng.choice(fits), at=place)]
        case "layout":
            order = tuple(rng.sample(f.dims, len(f.dims)))
            more = {"align": rng.choice((16, 64, 128, 256))} if rng.random() < 0.7 else {}
            return [
                *_kept(rng, schedule, f, others),
                said("layout", order, pad=rng.choice((1, 2, 8)), at=place, **more),
            ]
        case "memory":
            kinds = ("heap", "heap", "stack", "stack", "register", "register", "register")
            kind = aim.removeprefix("memory ") or rng.choice(kinds)
            near = kind != "heap" and rng.random() < 0.9
            kept = _cells(rng, schedule, f, others) if near else _kept(rng, schedule, f, others)
            return [*kept, said("memory", kind, at=place)]
        case "round_up":
            kept = [said("compute_root", at=place)] if rng.random() < 0.5 else _kept(rng, schedule, f, others)
            dims = [d for d in f.dims if d in loops]
            if not dims:
                return []
            inner = f"{fresh}i"
            split = said("split", rng.choice(dims), f"{fresh}o", inner, rng.choice(SPLITS[1:]), tail="round_up")
            return [*kept, split, *([said("vectorize", inner)] if rng.random() < 0.7 else [])]
        case _:
            reader = rng.choice(others)
            outer = [loop.name for loop in schedule.nest(reader).loops]
            if not outer:
                return []
            d = rng.randrange(min(1, len(outer) - 1), len(outer))
            w = rng.randint(0, max(0, d - 1))
            at = said("compute_at", reader, outer[d], at=place, **({} if word == "hoist" else {"store": outer[w]}))
            if word == "hoist":
                return [at, said("hoist_storage", reader, outer[w], at=place)]
            return [at, said("fold_storage", rng.choice(f.dims), rng.choice((2, 3, 4, 5, 8, 16, 32)), at=place)]


def _kept(rng: Random, schedule: Schedule, f: Func, others: list[StageRef]) -> list[Line]:
    """Return a line that keeps `f` in storage, at root or in a reader's loop."""
    reader = rng.choice(others)
    outer = [loop.name for loop in schedule.nest(reader).loops]
    if not outer or rng.random() < 0.4:
        return [Line(StageRef(f.name), make("compute_root", (), {}))]
    return [Line(StageRef(f.name), make("compute_at", (reader, rng.choice(outer)), {}))]


def _cells(rng: Random, schedule: Schedule, f: Func, others: list[StageRef]) -> list[Line]:
    """Return lines that compute the few cells of `f` which one point of a reader needs, without a loop over them."""
    reader = rng.choice(others)
    outer = [loop.name for loop in schedule.nest(reader).loops]
    if not outer:
        return []
    place = StageRef(f.name)
    stages = [StageRef(f.name, k) for k in range(len(f.updates) + 1)]
    unrolled = [Line(at, make("unroll", (loop.name,), {})) for at in stages for loop in schedule.nest(at).loops]
    return [Line(place, make("compute_at", (reader, outer[-1]), {})), *unrolled]


def _tempting(rng: Random, pipeline: Pipeline, schedule: Schedule, fresh: str) -> list[Line]:
    """Return lines that are mostly illegal: what a stage reads of itself, or others read of it, is in the way."""
    own = [
        StageRef(f.name, k)
        for f in pipeline.funcs
        for k in range(len(f.updates) + 1)
        if any(r.source == f.name for r in reads(stage_roots(f, k)))
    ]
    inner = [f for f in pipeline.funcs if f.dims and f.name not in pipeline.outputs and _readers(pipeline, f.name)]
    if own and (not inner or rng.random() < 0.6):
        at = rng.choice(own)
        f = pipeline.func(at.func)
        loops = [loop.name for loop in schedule.nest(at).loops]
        moving = [loop for loop in loops if at.stage == 0 or loop not in f.dims] or loops
        if not moving:
            return []
        v = rng.choice(moving)
        match rng.choice(("parallel", "parallel", "vectorize", "reverse", "skew", "tile")):
            case "parallel":
                return [Line(at, make("parallel", (v,), {}))]
            case "vectorize":
                return [Line(at, make("vectorize", (v, rng.choice(LANES)), {}))]
            case "reverse":
                return [Line(at, make("reverse", (v,), {}))]
            case "skew" if len(loops) > 1:
                w = rng.choice([loop for loop in loops if loop != v])
                skewed = Line(at, make("skew", (v, w, rng.choice((-1, 1))), {}))
                return [skewed, Line(at, make("parallel", (rng.choice((v, w)),), {}))]
            case _:
                names = [f"{fresh}{k}" for k in range(len(loops))]
                inside = [f"{fresh}i{k}" for k in range(len(loops))]
                sizes = [rng.choice(SPLITS[1:]) for _ in loops]
                return [Line(at, make("tile", (tuple(loops), tuple(names), tuple(inside), tuple(sizes)), {}))]
    if not inner:
        return []
    f = rng.choice(inner)
    place, readers = StageRef(f.name), _readers(pipeline, f.name)
    reader = rng.choice(readers)
    loops = [loop.name for loop in schedule.nest(reader).loops]
    if not loops:
        return []
    at = Line(place, make("compute_at", (reader, loops[-1]), {}))
    if len(readers) > 1 and rng.random() < 0.4:
        return [at]
    wide = Line(place, make("store_root", (), {}))
    return [at, wide, Line(place, make("fold_storage", (rng.choice(f.dims), rng.choice((1, 1, 2))), {}))]


def _beside(rng: Random, pipeline: Pipeline, schedule: Schedule, ref: StageRef, v: str) -> list[Line]:
    """Return lines that let a stage run in the loops of another that has a loop of that name as deep."""
    depth = schedule.nest(ref).place(v)
    hosts = [
        StageRef(g.name, k)
        for g in pipeline.funcs
        for k in range(len(g.updates) + 1)
        if g.name != ref.func and schedule.nest(StageRef(g.name, k)).place(v) == depth
    ]
    if not hosts:
        return []
    host = rng.choice(hosts)
    roots = [Line(StageRef(n), make("compute_root", (), {})) for n in (ref.func, host.func)]
    shift = {"shift": rng.choice((1, 2, 3, -1))} if rng.random() < 0.5 else {}
    return [*roots, Line(ref, make("compute_with", (host, v), shift))]


def _condition(rng: Random, pipeline: Pipeline) -> str:
    """Return a condition on sizes and Params."""
    sizes = [f"{i.name}.shape[{d}]" for i in pipeline.inputs for d in range(len(i.dims))]
    sizes += [f"{n}.shape[{d}]" for n in pipeline.outputs for d in range(len(pipeline.func(n).dims))]
    terms = [*sizes, *(s.name for s in pipeline.scalars if s.dtype.is_integer)]
    if not terms:
        return "1 == 1"

    def one() -> str:
        t = rng.choice(terms)
        return rng.choice((
            f"{t} % {rng.choice((2, 3, 4, 8))} == 0", f"{t} == {rng.choice((0, 1, 3, 8))}",
            f"{t} >= {rng.choice((1, 4, 16))}", f"{t} < {rng.choice((5, 9))}", f"not {t} == 2",
        ))  # fmt: skip

    return one() if rng.random() < 0.6 else f"{one()} {rng.choice(('and', 'or'))} {one()}"


def _tables(pipeline: Pipeline) -> set[str]:
    return {t.name for t in pipeline.tables}


def _copied(rng: Random, pipeline: Pipeline, fresh: str) -> list[Line]:
    """Return a line that gives some readers of a Func or Input one of their own."""
    sources = [i.name for i in pipeline.inputs] + [f.name for f in pipeline.funcs]
    name = rng.choice(sources)
    readers = sorted({r.func for r in _readers(pipeline, name)})
    some = rng.sample(readers, rng.randint(0, len(readers)))
    clones = name not in (i.name for i in pipeline.inputs) and rng.random() < 0.5
    made = make("clone" if clones else "cache_read", (f"{fresh}_copy", *some), {})
    return [Line(StageRef(name), made)]


def _reduced(
    rng: Random, f: Func, ref: StageRef, loops: list[str], fresh: str, whole: frozenset[str]
) -> list[Line]:  # fmt: skip
    """Return lines that take the points of an update in another order, as the sums of `whole` numbers are let."""
    let = [Line(ref, make("reassociate", (), {}))] if f.name in whole and rng.random() < 0.9 else []
    return [*let, *_joined(rng, f, ref, loops, fresh)] if loops else []


def _joined(rng: Random, f: Func, ref: StageRef, loops: list[str], fresh: str) -> list[Line]:
    domain = [r.name for r in f.updates[ref.stage - 1].domain]
    v = rng.choice([loop for loop in loops if loop not in f.dims] or loops)

    def said(word: str, *args: object) -> Line:
        return Line(ref, make(word, args, {}))  # type: ignore[arg-type]

    match rng.choice(("vectorize", "accumulators", "accumulators", "rfactor", "split_reduction", "atomic", "reorder")):
        case "vectorize":
            return [said("vectorize", v, rng.choice(LANES))]
        case "accumulators":
            both = [said("vectorize", v, rng.choice((4, 8)))] if rng.random() < 0.5 else []
            return [*both, said("accumulators", v, rng.choice((1, 2, 3, 4)))]
        case "rfactor":
            if rng.random() < 0.4:
                inner = [said("split", v, f"{fresh}o", f"{fresh}i", rng.choice(SPLITS))]
                return [*inner, said("rfactor", f"{fresh}{rng.choice('oi')}", f"{fresh}u", f"{fresh}_part")]
            return [said("rfactor", v, f"{fresh}u", f"{fresh}_part")]
        case "split_reduction":
            line = said(
                "split_reduction", rng.choice(domain or loops), rng.choice(SPLITS), f"{fresh}u", f"{fresh}_part"
            )
            return list(spelled_out(line))
        case "atomic":
            return [said("atomic"), said("parallel", v)]
        case _:
            return [said("reorder", *rng.sample(loops, len(loops)))]


__all__ = ["AIMS", "OF_SUMS", "StaxError", "draw_lines"]
