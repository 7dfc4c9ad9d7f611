"""Would a schedule change a value? Regions, placement and order, by intervals; what is not seen to be safe is refused.

The whole schedule is judged. Where it is illegal, the directive after the longest legal prefix is blamed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

from stax.algorithm.combine import combine
from stax.algorithm.keep import Kept, keeps
from stax.algorithm.nodes import Func, Pipeline
from stax.bounds.accesses import Access, Facts, accesses, at_data, domain_facts, kept_inside
from stax.bounds.infer import Box, Regions, box_of, hull, stage_name
from stax.bounds.interval import Bounder
from stax.errors import LegalityError, ScheduleError, UnsupportedError
from stax.expr import build
from stax.expr.affine import Affine, Algebra, Interval, Prover, Ranges
from stax.expr.nodes import Expr, Local
from stax.expr.show import show
from stax.expr.walk import postorder, substitute
from stax.legality.combining import Combining, combining
from stax.legality.domain import check_domains
from stax.legality.fold import Step, Storage, check_fold
from stax.legality.hoist import check_hoist
from stax.legality.known import Judged, Known
from stax.legality.once import check_once
from stax.legality.order import check_order
from stax.legality.overwrite import Overwriting
from stax.legality.promises import of_lanes, of_region, promises
from stax.legality.remedy import remedy
from stax.legality.rounding import check_rounding, check_unfolded
from stax.legality.sequence import in_sequence
from stax.legality.slide import Slide, at_first, names_of, slide
from stax.legality.together import check_there, done_before, together
from stax.legality.within import Path, Within
from stax.legality.witness import Clashed
from stax.loops.nodes import LoopKind
from stax.schedule.default import complete
from stax.schedule.directives import (
    Atomic,
    FoldStorage,
    Line,
    Parallel,
    Reassociate,
    Rfactor,
    StageRef,
    Unroll,
    Vectorize,
)
from stax.schedule.legal import Demand, Fetch, Legal, Level, Placed, Reordered, Together
from stax.schedule.nest import Loop
from stax.schedule.points import Points, Root, points
from stax.schedule.resolve import At, Inline, Resolved, resolve, rewritten
from stax.schedule.resolve import Root as AtRoot
from stax.source import Span

MOST_COPIES = 256


def check(
    pipeline: Pipeline, lines: Iterable[Line], regions: Regions | None = None, known: Known | None = None
) -> Legal:
    """Return the proof that `lines`, completed by the default schedule, change no value of `pipeline`.

    `known` remembers what was found, and may be given again for another schedule of the same program.
    Raises LegalityError with the line to blame, ScheduleError where the lines do not fit together.
    """
    whole = in_sequence(pipeline, regions)
    if whole is not pipeline:
        pipeline, regions = whole, None
    said = tuple(lines)
    known = known or Known()
    try:
        return _judge(pipeline, said, regions, known)
    except LegalityError as error:
        raise _blamed(pipeline, said, error, known) from None


def _blamed(pipeline: Pipeline, said: tuple[Line, ...], error: LegalityError, known: Known) -> LegalityError:
    def legal(lines: tuple[Line, ...]) -> bool:
        try:
            _judge(pipeline, lines, None, known)
        except (ScheduleError, UnsupportedError):
            return False
        return True

    hint, places = error.hint, list(error.places)
    for k in reversed(range(len(said))):
        if legal(said[:k]):
            span = said[k].directive.span
            places = [(span, "asked for here"), *(p for p in places if p[0] != span)]
            if isinstance(error, Clashed):
                hint = remedy(said, k, error, legal) or hint
            break
    blamed = LegalityError(error.message, places, error.facts, hint)
    blamed.witness = error.witness
    return blamed


def _judge(pipeline: Pipeline, said: tuple[Line, ...], regions: Regions | None, known: Known) -> Legal:
    resolved = resolve(pipeline, complete(rewritten(pipeline, said), said))
    if resolved.pipeline is not pipeline:
        pipeline, regions = resolved.pipeline, None
    if any(f.where is not None for f in pipeline.funcs):
        regions = regions or known.inferred(pipeline, {})
        check_domains(pipeline, regions)
    gone = frozenset(name for name, p in resolved.placements.items() if isinstance(p, Inline))
    _inline_keeps_reads_inside(pipeline, gone)
    smaller = known.inlined(pipeline, gone)
    given = promises(smaller, resolved.storage.bounds)
    if gone or regions is None or given:
        regions = known.inferred(smaller, given)
    return _Check(smaller, resolved, regions, known).run()


def _inline_keeps_reads_inside(pipeline: Pipeline, gone: frozenset[str]) -> None:
    """Refuse to inline at data what conditions on positions keep inside: there, they are conditions on data."""
    algebra = Algebra()
    narrow: set[str] = set()
    for f in pipeline.funcs if gone else ():
        for stage in range(len(f.updates) + 1):
            found = accesses(f, stage, algebra)
            for access in found:
                if access.source in narrow and at_data(access, algebra):
                    raise LegalityError(
                        f"`{access.source}` cannot be inlined into `{stage_name(f.name, stage)}`, which reads it at "
                        "data: its own reads stay inside by conditions on positions",
                        [(access.read.span if access.read else None, "read here")],
                        hint=f"s[{access.source!r}].compute_root()",
                    )
            if f.name in gone and (kept_inside(found) or any(a.source in narrow for a in found)):
                narrow.add(f.name)


class _Check:
    def __init__(self, pipeline: Pipeline, resolved: Resolved, regions: Regions, known: Known) -> None:
        self.known, self.proofs = known, known.proofs
        self.judged: dict[str, Judged] = {}
        self.pipeline, self.resolved, self.regions = pipeline, resolved, regions
        self.context = regions.context
        self.algebra = regions.context.algebra
        self.placed: dict[str, Placed] = {}
        self.paths: dict[str, Path] = {}
        self.points: dict[StageRef, Points] = {}
        self.within = Within(self.context, self.placed, self.paths, self.points)
        self.taken: set[str] = set()
        self.lanes: list[Demand] = []
        self.inputs = {i.name for i in pipeline.inputs}
        self.combining: dict[StageRef, Combining] = {}
        self.carried: dict[str, list[str]] = {}
        self.kept: dict[str, Kept] = {}
        self.readers: dict[str, list[tuple[Func, int, Access]]] = {}
        for f in pipeline.funcs:
            for stage, found in enumerate(self.context.accesses[f.name]):
                for access in found:
                    if access.source != f.name:
                        self.readers.setdefault(access.source, []).append((f, stage, access))

    def run(self) -> Legal:
        grouped = {name for group in self.pipeline.groups for name in group}
        for f in reversed(self.pipeline.funcs):
            place = self.resolved.placements.get(f.name, AtRoot())
            if isinstance(place, At) and place.consumer.func not in self.paths:
                raise LegalityError(f"`{f.name}` is computed in loops of `{place.consumer}`, which is inlined")
            if isinstance(place, At) and (f.name in grouped or f.name in self.pipeline.outputs):
                what = "is an output" if f.name in self.pipeline.outputs else "reads Funcs that read it"
                raise LegalityError(
                    f"`{f.name}` {what}, so it is computed whole, not at a loop of `{place.consumer}`",
                    hint=f"s[{f.name!r}].compute_root()",
                )
            by = None if f.name in grouped else self._judged_by(f, place)
            before = None if by is None else self.known.judged(self.context, by)
            if before is not None and self.taken.isdisjoint(before.names):
                self._take(f, before)
                continue
            demands = len(self.lanes)
            self._judge_anew(f, place, f.name not in grouped)
            if by is not None and len(self.lanes) == demands:
                self.judged[f.name] = self._found(f)
                self.known.judge(by, self.judged[f.name])
        for group in self.pipeline.groups:
            for name in group:
                self._steps_first(self.pipeline.func(name))
            for name in group:
                if name not in self.pipeline.outputs:
                    self._fold(self.pipeline.func(name))
        with self.proofs.noted("in place", ", ".join(self.resolved.overwrites)):
            over = Overwriting(self.pipeline, self.resolved, self.regions, self.within, self.proofs).stored()
        shared = together(self.resolved, self.pipeline, self.placed, self.points)
        for one in shared:
            self._in_time(one)
        return Legal(
            self.pipeline, self.resolved, self.regions, self.placed, self.points,
            {ref: how.apart for ref, how in self.combining.items() if how.apart},
            {ref: how.how.op for ref, how in self.combining.items() if how.atomic},
            self._reordered(), self.kept, over.holders, over.checks, (*self._promised(), *self.lanes),
            self._fetches(), shared,
        )  # fmt: skip

    def _judge_anew(self, f: Func, place: AtRoot | At | Inline, alone: bool) -> None:
        with self.proofs.noted("region", f.name):
            self._place(f, place)
        for stage in range(len(f.updates) + 1):
            with self.proofs.noted("order", stage_name(f.name, stage)):
                self._nest(f, stage)
        self._hoisted(f)
        if alone and f.name not in self.pipeline.outputs:
            with self.proofs.noted("storage", f.name):
                self._fold(f)
        elif f.name in self.resolved.storage.folds and f.name in self.pipeline.outputs:
            span = self.resolved.storage.folds[f.name][0].span
            raise LegalityError(f"`{f.name}` is an output, so all of it is kept", [(span, "folded here")])

    def _judged_by(self, f: Func, place: AtRoot | At | Inline) -> Hashable:
        """Return all that `f` is judged by, None where a reader of it was not judged alone."""
        overwrites, folds = self.resolved.overwrites, self.resolved.storage.folds.get(f.name)
        around = {place.consumer.func} if isinstance(place, At) else set[str]()
        if around or folds or any(a.source == f.name for a in self.context.accesses[f.name][0]):
            around |= {g.name for g, _, _ in self.readers.get(f.name, [])}
        if not around <= self.judged.keys():
            return None
        return (
            f.name, place, tuple(self.resolved.nests[StageRef(f.name, k)] for k in range(len(f.updates) + 1)),
            self.resolved.hoists.get(f.name), folds,
            f.name in overwrites or any(o.target == f.name for o in overwrites.values()),
            tuple(self.judged[name] for name in sorted(around)),
        )  # fmt: skip

    def _found(self, f: Func) -> Judged:
        refs = [StageRef(f.name, k) for k in range(len(f.updates) + 1)]
        return Judged(
            self.context, self.placed[f.name], self.paths[f.name], tuple(self.points[r] for r in refs),
            tuple(self.combining.get(r) for r in refs), tuple(self.carried.get(f.name, ())), self.kept.get(f.name),
        )  # fmt: skip

    def _take(self, f: Func, found: Judged) -> None:
        """Take what was found of `f` under another schedule."""
        self.judged[f.name] = found
        self.placed[f.name], self.paths[f.name] = found.placed, found.path
        for k, (points_, how) in enumerate(zip(found.points, found.combining, strict=True)):
            self.points[StageRef(f.name, k)] = points_
            if how is not None:
                self.combining[StageRef(f.name, k)] = how
        self.taken |= found.names
        self.carried[f.name] = list(found.carried)
        if found.kept is not None:
            self.kept[f.name] = found.kept

    def _in_time(self, shared: Together) -> None:
        """Refuse stages in loops of another that would read, of it or of each other, what is not there yet."""
        stages = [shared.host, *(at for at, _ in shared.guests)]
        for name, placed in self.placed.items():
            for level in (placed.compute, placed.store, placed.hoist):
                if level is not None and level.stage in stages and level.depth < shared.depth:
                    raise LegalityError(
                        f"`{level.stage}` shares its outermost loops, and `{name}` is placed in one of them",
                        hint="place it at the last loop that is shared, or further in or out",
                    )
        for at, shift in ((shared.host, 0), *shared.guests):
            line = self.resolved.joined[shared.guests[0][0] if at == shared.host else at]
            f, path = self.pipeline.func(at.func), (*self.paths[at.func], *((at, k) for k in range(shared.depth)))
            prover = Prover(self.algebra, self.within.loops(path), self.context.at_least)
            for other in stages:
                source = self.pipeline.func(other.func)
                early = [
                    k
                    for k in range(at.stage + 1)
                    if any(a.source == other.func for a in self.context.accesses[at.func][k])
                ]
                if other == at or not early:
                    continue
                there, asked = None, [None] * len(source.dims)
                if other == shared.host and early == [at.stage]:
                    own, theirs = self.points[at], self.points[other]
                    there = done_before(source, other.stage, theirs, shared.depth, own, shift, self.algebra)
                    asked = self._asked_by(f, at.stage, other.func, path, shared.depth)
                check_there(at, source, asked, there, prover, line)

    def _asked_by(self, f: Func, stage: int, source: str, path: Path, depth: int) -> list[Interval | None]:
        """Return what a stage reads of `source` in an iteration of `path`, the last `depth` loops of it its own."""
        outer = self.within.loops(path)
        prover = Prover(self.algebra, outer, self.context.at_least)
        bounder = self.context.bounder(self.within.variables(f, stage, depth), prover)
        own = [(StageRef(f.name, stage), k) for k in range(depth, len(self.points[StageRef(f.name, stage)].loops))]
        inner = self.within.loops(tuple(own))
        asked: list[Interval | None] = []
        for access in self.context.accesses[f.name][stage]:
            if access.source == source and access.read is not None:
                found = [self.within.over(bounder.interval(i, access.facts), inner, outer) for i in access.index]
                asked = [hull(prover, a, b) for a, b in zip(asked or [None] * len(found), found, strict=True)]
        return asked

    def _fetches(self) -> tuple[Fetch, ...]:
        """Return what loops fetch ahead."""
        out: list[Fetch] = []
        for at, line in self.resolved.fetches:
            nest, f = self.resolved.nests[at], next((f for f in self.pipeline.funcs if f.name == at.func), None)
            depth = nest.place(line.loop)
            if f is None or depth is None or (line.source not in self.placed and line.source not in self.inputs):
                gone = line.source if f is not None else at.func
                raise LegalityError(f"`{gone}` is inlined, so nothing of it is fetched", [(line.span, "fetched here")])
            if (f.name, at.stage) not in {(g.name, stage) for g, stage, _ in self.readers.get(line.source, [])}:
                raise LegalityError(
                    f"`{at}` no longer reads `{line.source}`, which another line gave it a copy of",
                    [(line.span, "fetched here")], hint="fetch the copy",
                )  # fmt: skip
            around = [loop.name for loop in nest.loops[: depth + 1] if loop.kind is LoopKind.VECTOR]
            if around:
                raise LegalityError(
                    f"loop `{around[0]}` of `{at}` is vectorized, and fetches nothing for its lanes",
                    [(line.span, "fetched here")], hint="fetch in a loop further out",
                )  # fmt: skip
            path = (*self.paths[f.name], *((at, k) for k in range(depth + 1)))
            source = self.placed.get(line.source)
            kept = () if source is None else self.within.path(source.hoist or source.store)
            if path[: len(kept)] != kept:
                raise LegalityError(
                    f"`{line.source}` is kept further in than loop `{line.loop}` of `{at}`, so that nothing is fetched",
                    [(line.span, "fetched here")], hint="fetch in a loop further in",
                )  # fmt: skip
            asked = self._asked_by(f, at.stage, line.source, path, depth + 1)
            var = self.points[at].loops[depth].var
            ahead, box = {var.name: build.add(var, line.ahead)}, list[Interval]()
            for i in asked:
                if i is None or i.lo is None or i.hi is None:
                    raise LegalityError(
                        f"what `{at}` reads of `{line.source}` has no bound that is seen", [(line.span, "fetched here")]
                    )
                lo, hi = (self.algebra.of(substitute(self.algebra.expr(e), ahead)) for e in (i.lo, i.hi))
                box.append(Interval(lo, hi))
            out.append(Fetch(at, depth + 1, line.source, tuple(box)))
        return tuple(out)

    def _hoisted(self, f: Func) -> None:
        """Let the storage of `f` be allocated further out, as large as it may be there."""
        placed, hoist = self.placed[f.name], self.resolved.hoists.get(f.name)
        if hoist is None:
            return
        if placed.store is None:
            raise LegalityError(
                f"`{f.name}` is kept as long as the kernel runs, so its storage lies outside of all loops",
                [(hoist.span, "allocated here")],
            )
        level = self._level(hoist.stage, hoist.loop)
        outer, kept = self.within.path(level), self.within.path(placed.store)
        between = kept[len(outer) :]
        check_hoist(f, hoist, outer, kept, [(stage, self.points[stage].loops[k].loop) for stage, k in between])
        inner, ranges = self.within.loops(between), self.within.loops(outer)
        most = [self.within.over(Interval(None, i.last - i.first + 1), inner, ranges).hi for i in placed.kept]
        sizes = tuple(n for n in most if n is not None)
        if len(sizes) < len(most):
            raise LegalityError(
                f"how much of `{f.name}` there may be in loop `{hoist.loop}` of `{hoist.stage}` is not seen",
                [(hoist.span, "allocated here")], hint="allocate it further in",
            )  # fmt: skip
        self.placed[f.name] = replace(placed, hoist=level, extents=sizes)

    def _promised(self) -> list[Demand]:
        """Return what calls must keep of promises about regions."""
        out: list[Demand] = []
        for found in self.regions.promised:
            dim = self.pipeline.func(found.func).dims[found.dim]
            out.append(of_region(found, dim, self.resolved.storage.bounds[found.func, dim], self.algebra))
        return out

    def _up_to(self, ref: StageRef, at: int) -> None:
        """Let calls check that a loop whose extent is a run-time one has no more iterations than lanes."""
        loop = self.points[ref].loops[at]
        upto = loop.loop.upto
        if upto is None:
            return
        path = (*self.paths[ref.func], *((ref, k) for k in range(at)))
        extent = self.algebra.of(loop.extent)
        if Prover(self.algebra, self.within.loops(path), self.context.at_least).less_equal(extent, Affine(upto)):
            return
        most = self.within.over(Interval(None, extent), self.within.loops(path), {}).hi
        if most is None or any(isinstance(n, Local) for n in postorder(self.algebra.atom(t) for t, _ in most.terms)):
            raise ScheduleError(
                f"how often loop `{loop.loop.name}` of `{ref}` runs is not known before it does",
                [(self._said(ref, loop.loop), "here")], hint=f"vectorize({loop.loop.name!r}, {upto})",
            )  # fmt: skip
        self.lanes.append(of_lanes(str(ref), loop.loop.name, most, upto, self._said(ref, loop.loop), self.algebra))

    def _reordered(self) -> tuple[Reordered, ...]:
        """Return the stages whose sums may be taken in another order than the definition says, and who says so."""
        out: list[Reordered] = []
        for line in self.resolved.lines:
            f = next((g for g in self.pipeline.funcs if g.name == line.at.func), None)
            match line.directive:
                case Reassociate() | Atomic() if f is not None and line.at in self.combining:
                    if not self.combining[line.at].exact:
                        out.append(Reordered(line.at, line.directive.span))
                case Rfactor() if f is not None:
                    how = combine(f, f.updates[line.at.stage - 1])
                    if how is None or not how.exact:
                        out.append(Reordered(line.at, line.directive.span))
                case _:
                    pass
        return tuple(out)

    def _place(self, f: Func, place: AtRoot | At | Inline) -> None:
        if not isinstance(place, At):
            box = self.regions.boxes[f.name]
            self.placed[f.name], self.paths[f.name] = Placed(None, None, box, box, box, (None,) * len(f.dims)), ()
            return
        compute = self._level(place.consumer, place.loop)
        path = self.within.path(compute)
        for stage, at in path:
            loop = self.points[stage].loops[at].loop
            if loop.kind is LoopKind.VECTOR:
                raise LegalityError(
                    f"`{f.name}` cannot be computed inside loop `{loop.name}` of `{stage}`, which is vectorized",
                    [(self._said(stage, loop), "vectorized here")],
                    hint="compute it at a loop further out",
                )
            if any(c.shift is not None and c.shift.outer == at for c in self.points[stage].loops):
                raise LegalityError(
                    f"`{f.name}` cannot be computed inside loop `{loop.name}` of `{stage}`, whose last run is moved",
                    hint='tail="guard", or compute it at a loop further out',
                )
        store = compute if place.store is None else None
        if isinstance(place.store, tuple):
            store = self._level(*place.store)
        kept_path = self.within.path(store)
        if path[: len(kept_path)] != kept_path:
            raise LegalityError(f"`{f.name}` is kept at a loop that is not around the one where it is computed")
        for stage, at in path[len(kept_path) :]:
            loop = self.points[stage].loops[at].loop
            if loop.kind is LoopKind.PARALLEL:
                raise LegalityError(
                    f"iterations of the parallel loop `{loop.name}` of `{stage}` would share the storage of `{f.name}`",
                    [(self._said(stage, loop), "these run at the same time")],
                    [f"`{f.name}` is kept outside loop `{loop.name}` and computed inside it"],
                    hint=f"store `{f.name}` inside that loop",
                )
        whole = self.regions.boxes[f.name]
        kept = self._box(f, kept_path)
        box = self._common(kept if kept_path == path else self._box(f, path), whole, path)
        if kept_path != path or any(self.placed[stage.func].new != self.placed[stage.func].box for stage, _ in path):
            kept = self._common(kept, whole, kept_path)
            box = self._common(box, kept, path)
        between = path[len(kept_path) :]
        found = self._slide(f, box, path, between)
        if found is not None:
            self.carried[f.name] = [self.points[stage].loops[at].var.name for stage, at in between[found.at + 1 :]]
        new = box if found is None else found.new
        self.placed[f.name] = Placed(compute, store, box, kept, new, (None,) * len(f.dims))
        self.paths[f.name] = path

    def _common(self, box: Box, other: Box, path: Path) -> Box:
        """Return what both hold of what is needed: each may hold more, as intervals are not exact."""
        prover = Prover(self.algebra, self.within.loops(path), self.context.at_least)
        return tuple(
            Interval(prover.maximum(a.first, b.first), prover.minimum(a.last, b.last))
            for a, b in zip(box, other, strict=True)
        )

    def _slide(self, f: Func, box: Box, path: Path, between: Path) -> Slide | None:
        """Return how what is computed of `f` slides along a loop of `between`."""
        if f.updates or any(a.source == f.name for a in self.context.accesses[f.name][0]):
            return None
        prover = Prover(self.algebra, self.within.loops(path), self.context.at_least)
        return slide(box, [self.points[stage].loops[at] for stage, at in between], self.algebra, prover)

    def _overwritten(self, f: Func, fold: FoldStorage, whole: Interval, path: Path, ranges: Ranges) -> LegalityError:
        lo, hi = whole.first, whole.last
        where = "at once" if not path else f"in one iteration of `{self._loop_name(path[-1])}` of `{path[-1][0]}`"
        extent = show(self.algebra.expr(hi - lo + 1))
        first = at_first(lo, ranges, self.algebra)
        facts = [f"{extent} values of `{fold.dim}` are needed {where}"]
        if first is not None:
            facts.append(f"for example, `{fold.dim}` = {first} would be overwritten by {first + fold.n}, and is needed")
        return LegalityError(
            f"{fold.n} values of `{fold.dim}` are too few to keep of `{f.name}`",
            [(fold.span, "folded here")], facts,
            f"fold_storage({fold.dim!r}, {hi.const - lo.const + 1})" if not (hi - lo).terms else "keep it further in",
        )  # fmt: skip

    def _loop_name(self, at: tuple[StageRef, int]) -> str:
        return self.points[at[0]].loops[at[1]].loop.name

    def _fold(self, f: Func) -> None:
        """Fold the storage of `f` as the schedule says, or where it is seen that it may be; refuse to keep too few."""
        placed, path, ref = self.placed[f.name], self.paths[f.name], StageRef(f.name)
        wanted = self.resolved.storage.folds.get(f.name, ())
        grouped = any(f.name in group for group in self.pipeline.groups)
        recurs = grouped or any(a.source == f.name for a in self.context.accesses[f.name][0])
        shared = {*self.resolved.overwrites, *(o.target for o in self.resolved.overwrites.values())}
        steps = f.name not in shared and not f.updates and recurs and placed.compute == placed.store
        if not wanted and not steps:
            return
        storage = self._storage(f, path)
        out: list[int | None] = [None] * len(f.dims)
        if not wanted:
            own = storage.found()
            if own is not None and f.dims[own[0]] not in self._rounded(f):
                out[own[0]] = own[1]
        check_unfolded(f, self._rounded(f), {fold.dim for fold in wanted})
        proved = False
        for fold in wanted:
            d = f.dims.index(fold.dim)
            out[d] = fold.n
            if self._all_kept(f, fold, placed.box[d], storage.prover):
                continue
            if not steps or proved:
                raise self._overwritten(f, fold, placed.box[d], path, self.within.loops(path))
            proved = True
            found = self.context.accesses[f.name][0]
            check_fold(storage, (d, fold.n), self.resolved.nests[ref], found, self.proofs)
        self.placed[f.name] = replace(placed, fold=tuple(out))
        for d in (d for d, n in enumerate(out) if n == 1):
            kept = keeps(f, d, self.algebra)
            if kept is not None and f.name not in self.kept and not f.updates:
                self.kept[f.name] = kept
                self._nest(f, 0, tuple(self.algebra.expr(fact.sum) for fact in storage.what_runs(kept)))

    def _storage(self, f: Func, path: Path) -> Storage:
        """Return what is known of the storage of `f`: reads of its group are of its steps, others come after them."""
        group = next((g for g in self.pipeline.groups if f.name in g), (f.name,))
        steps = [
            Step(access, self.within.variables(f, 0, 0), None, False)
            for access in self.context.accesses[f.name][0]
            if access.source == f.name
        ]
        outside: list[tuple[Access, Ranges]] = []
        for reader, stage, access in self.readers.get(f.name, []):
            ranges = self.within.variables(reader, stage, len(path) - len(self.paths[reader.name]))
            if reader.name in group:
                later = group.index(reader.name) > group.index(f.name)
                steps.append(Step(access, ranges, reader.dims[0], later, reader.lag))
            else:
                outside.append((access, ranges))
        prover = Prover(self.algebra, self.within.loops(path), self.context.at_least)
        box = self.placed[f.name].box
        asked = self._asked(f, path, frozenset(group))
        points_ = self.points[StageRef(f.name)]
        return Storage(f, points_, tuple(steps), tuple(outside), tuple(asked), box, self.context, prover)

    def _rounded(self, f: Func) -> set[str]:
        return {r for k in range(len(f.updates) + 1) for r in self.points[StageRef(f.name, k)].rounded}

    def _all_kept(self, f: Func, fold: FoldStorage, whole: Interval, prover: Prover) -> bool:
        """Return whether `fold` keeps all that is needed in one iteration; refuse to lose what a later one needs."""
        moved = names_of(whole, self.algebra) & set(self.carried.get(f.name, ()))
        if moved:
            raise LegalityError(
                f"`{f.name}` cannot be folded in `{fold.dim}`: what is kept for a later iteration of a loop "
                f"around moves with `{sorted(moved)[0]}` too",
                [(fold.span, "folded here")],
            )
        return prover.less_equal(whole.last - whole.first + 1, Affine(fold.n))

    def _said(self, stage: StageRef, loop: Loop) -> Span | None:
        """Return where the directive was written that made `loop` parallel, vectorized or unrolled."""
        word = {LoopKind.PARALLEL: Parallel, LoopKind.VECTOR: Vectorize, LoopKind.UNROLL: Unroll}[loop.kind]
        return next(
            (
                d.span
                for line in reversed(self.resolved.lines)
                if line.at == stage and isinstance(d := line.directive, word) and loop.name in (d.var, f"{d.var}.in")
            ),
            None,
        )

    def _level(self, stage: StageRef, loop: str) -> Level:
        at = self.resolved.nests[stage].place(loop)
        assert at is not None
        return Level(stage, at + 1)

    def _box(self, f: Func, path: Path) -> Box:
        """Return what is needed of `f` in one iteration of the loops of `path`."""
        outer = self.within.loops(path)
        prover = Prover(self.algebra, outer, self.context.at_least)
        asked = self._asked(f, path)
        if any(i is not None and (i.lo is None or i.hi is None) for i in asked):
            last, at = path[-1] if path else (StageRef(f.name), 0)
            raise LegalityError(
                f"what `{f.name}` needs inside loop `{self.points[last].loops[at].loop.name}` of `{last}` has no bound "
                "that is seen",
                [(f.span, "defined here")],
                hint="compute it and keep it at the same loop, or at another one",
            )
        return box_of(self.context, f, asked, prover, outer)

    def _asked(self, f: Func, path: Path, but: frozenset[str] = frozenset()) -> list[Interval | None]:
        """Return what the readers of `f`, `but` for some, need of it in one iteration of the loops of `path`."""
        outer = self.within.loops(path)
        prover = Prover(self.algebra, outer, self.context.at_least)
        asked: list[Interval | None] = [None] * len(f.dims)
        known: dict[tuple[str, int, Affine, Facts], Interval] = {}
        for reader, stage, access in self.readers.get(f.name, []):
            if reader.name in but:
                continue
            own = self.paths[reader.name]
            whole = self.within.whole(reader.name, stage)
            if whole[: len(path)] != path:
                self._outside(f, access, path)
                continue
            inner = self.within.loops(whole[len(path) :])
            bounder: Bounder | None = None
            for d, index in enumerate(access.index):
                key = (reader.name, stage, index, access.facts)
                if key not in known:
                    if bounder is None:
                        ranges = self.within.variables(reader, stage, len(path) - len(own))
                        bounder = self.context.bounder(ranges, prover)
                    known[key] = self.within.over(bounder.interval(index, access.facts), inner, outer)
                asked[d] = hull(prover, asked[d], known[key])
        return asked

    def _outside(self, f: Func, access: Access, path: Path) -> None:
        """Refuse a reader outside the loops where `f` is computed."""
        (at, _), loop = path[-1], self._loop_name(path[-1])
        beyond = self.readers.get(access.func, [])
        may_follow = beyond and all(self.within.whole(r.name, k)[: len(path)] == path for r, k, _ in beyond)
        place = f"compute `{access.func}` in that loop too, or " if may_follow else ""
        raise LegalityError(
            f"`{f.name}` is computed inside loop `{loop}` of `{at}`, but "
            f"`{stage_name(access.func, access.stage)}`, which reads it, is outside that loop",
            [(access.read.span if access.read else None, "read here")],
            hint=f"{place}compute `{f.name}` further out",
        )

    def _nest(self, f: Func, stage: int, runs: tuple[Expr, ...] = ()) -> None:
        """Find the points of a stage, where the sums `runs` are at least 0, and judge their order."""
        ref = StageRef(f.name, stage)
        if ref in self.points:
            self.taken -= {loop.var.name for loop in self.points[ref].loops}
        expr, of = self.algebra.expr, self.algebra.of
        roots: list[Root] = []
        nest = self.resolved.nests[ref]
        for dim, i in zip(f.dims, self.placed[f.name].new, strict=True):
            if dim in nest.roots:
                roots.append(Root(dim, expr(i.first), expr(i.last - i.first + 1)))
        if stage:
            roots += [Root(r.name, expr(of(r.lo)), expr(of(r.hi) - of(r.lo))) for r in f.updates[stage - 1].domain]
        inside = (*(expr(fact.sum) for fact in domain_facts(f, stage, self.algebra)), *runs)
        found = points(nest, tuple(roots), str(ref), f.backwards if stage == 0 else frozenset(), self.taken, inside)
        self.points[ref] = found
        self._outer_first(found)
        check_rounding(f, stage, found, self.placed[f.name], f.name in self.pipeline.outputs)
        for at, loop in enumerate(found.loops):
            self._up_to(ref, at)
            most = {LoopKind.VECTOR: self.known.most_lanes, LoopKind.UNROLL: MOST_COPIES}.get(loop.loop.kind)
            if most is not None and (loop.width is None or loop.width > most):
                word = "vectorize" if loop.loop.kind is LoopKind.VECTOR else "unroll"
                why = "its extent is not a constant" if loop.width is None else f"{loop.width} is more than {most}"
                wrong = loop.width is None
                raise ScheduleError(
                    f"cannot {word} loop `{loop.loop.name}` of `{ref}`: {why}",
                    [(self._said(ref, loop.loop), "here")],
                    hint=f"{word}({loop.loop.name!r}, n) splits it by a constant" if wrong else "take a smaller factor",
                )
        own = self.context.accesses[f.name][stage]
        check_once(f, stage, found, own)
        how = combining(f, stage, nest, found, own, self.algebra)
        if how is not None:
            self.combining[ref] = how
        else:
            check_order(f, stage, nest, found, own, self.algebra, self.context.at_least, self.proofs)

    def _outer_first(self, found: Points) -> None:
        """Let sums name the loops of a stage in their order: an algebra numbers what it meets."""
        for loop in found.loops:
            self.algebra.of(loop.var)

    def _steps_first(self, f: Func) -> None:
        found = self.points[StageRef(f.name, 0)]
        for k, dim in enumerate(f.dims[: f.together]):
            alone = found.leaves(dim) == frozenset({k}) and not any(k in found.leaves(d) for d in f.dims if d != dim)
            kind = found.loops[k].loop.kind if k < len(found.loops) else None
            if not alone or kind is not LoopKind.SERIAL or found.loops[k].loop.reversed:
                where = "stays outermost and serial" if not k else "stays serial, inside it"
                raise LegalityError(
                    f"`{f.name}` is stepped together with Funcs that read it: loop `{dim}` {where}",
                    [(f.span, "defined here")],
                )
