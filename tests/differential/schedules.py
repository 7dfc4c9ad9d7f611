"""Random schedules: directives drawn one by one, and kept where the whole is still proved."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from stax.algorithm.nodes import Func, Pipeline
from stax.bounds.infer import Regions
from stax.errors import StaxError, UnsupportedError, UserError
from stax.expr.walk import reads
from stax.legality.check import check as prove
from stax.schedule.directives import Line, StageRef, spelled_out
from stax.schedule.schedule import Schedule
from stax.schedule.words import make

if TYPE_CHECKING:
    from tests.differential.compare import Outcome

SPLITS = (1, 2, 3, 4, 5, 7, 8, 16)
LANES = (2, 3, 4, 5, 7, 8, 16, 17)


def draw_lines(rng: Random, pipeline: Pipeline, regions: Regions, outcome: Outcome | None = None) -> tuple[Line, ...]:
    """Return the lines of a legal schedule."""
    schedule = Schedule(pipeline)
    fresh = 0
    for _ in range(rng.choice((2, 3, 4, 5, 6, 7, 8))):
        fresh += 1
        lines = _directive(rng, schedule.program, schedule, f"v{fresh}")
        if not lines:
            continue
        word = type(lines[-1].directive).__name__
        kept = schedule.lines
        try:
            for line in lines:
                schedule.say(line)
            if prove(pipeline, schedule.lines, regions).contract != "bitwise":
                raise UnsupportedError("sums in another order are compared elsewhere")
        except UserError as error:
            if outcome is not None:
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


def _directive(rng: Random, pipeline: Pipeline, schedule: Schedule, fresh: str) -> list[Line]:
    f: Func = rng.choice(pipeline.funcs)
    ref = StageRef(f.name, rng.randint(0, len(f.updates)))
    loops = [loop.name for loop in schedule.nest(ref).loops]

    def said(word: str, *args: object, at: StageRef = ref, **named: object) -> Line:
        return Line(at, make(word, args, named))  # type: ignore[arg-type]

    place = StageRef(f.name)
    others = _readers(pipeline, f.name)
    if rng.random() < 0.08:
        return _copied(rng, pipeline, fresh)
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
        return _reduced(rng, f, ref, loops, fresh)
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


def _copied(rng: Random, pipeline: Pipeline, fresh: str) -> list[Line]:
    """Return a line that gives some readers of a Func or Input one of their own."""
    sources = [i.name for i in pipeline.inputs] + [f.name for f in pipeline.funcs]
    name = rng.choice(sources)
    readers = sorted({r.func for r in _readers(pipeline, name)})
    some = rng.sample(readers, rng.randint(0, len(readers)))
    clones = name not in (i.name for i in pipeline.inputs) and rng.random() < 0.5
    made = make("clone" if clones else "cache_read", (f"{fresh}_copy", *some), {})
    return [Line(StageRef(name), made)]


def _reduced(rng: Random, f: Func, ref: StageRef, loops: list[str], fresh: str) -> list[Line]:
    """Return lines that take the points of an update in another order."""
    domain = [r.name for r in f.updates[ref.stage - 1].domain]
    v = rng.choice([loop for loop in loops if loop not in f.dims] or loops)

    def said(word: str, *args: object) -> Line:
        return Line(ref, make(word, args, {}))  # type: ignore[arg-type]

    match rng.choice(("vectorize", "accumulators", "rfactor", "split_reduction", "atomic", "reassociate", "reorder")):
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
        case "reassociate":
            return [said("reassociate")]
        case _:
            return [said("reorder", *rng.sample(loops, len(loops)))]


__all__ = ["StaxError", "draw_lines"]
