"""Would a schedule change a value? Regions, placement and order, by intervals; what is not seen to be safe is refused.

The whole schedule is judged. Where it is illegal, the directive after the longest legal prefix is blamed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from stax.algorithm.combine import combine
from stax.algorithm.inline import inline
from stax.algorithm.keep import Kept, keeps
from stax.algorithm.nodes import Func, Pipeline
from stax.bounds.accesses import Access, accesses, at_data, domain_facts, kept_inside
from stax.bounds.infer import Box, Regions, box_of, hull, infer, stage_name
from stax.errors import LegalityError, ScheduleError, UnsupportedError
from stax.expr.affine import Affine, Algebra, Interval, Prover, Ranges
from stax.expr.nodes import Expr
from stax.expr.show import show
from stax.legality.combining import Combining, combining
from stax.legality.domain import check_domains
from stax.legality.fold import Step, Storage, check_fold
from stax.legality.order import check_order
from stax.legality.overwrite import Overwriting
from stax.legality.remedy import remedy
from stax.legality.slide import Slide, at_first, names_of, slide
from stax.legality.within import Path, Within
from stax.legality.witness import Clashed
from stax.loops.nodes import LoopKind
from stax.poly.clash import Proofs
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
from stax.schedule.legal import Legal, Level, Placed, Reordered
from stax.schedule.nest import Loop
from stax.schedule.points import Points, Root, points
from stax.schedule.resolve import At, Inline, Resolved, resolve, rewritten
from stax.schedule.resolve import Root as AtRoot
from stax.source import Span

MOST_LANES = 256
MOST_COPIES = 256


def check(
    pipeline: Pipeline, lines: Iterable[Line], regions: Regions | None = None, proofs: Proofs | None = None
) -> Legal:
    """Return the proof that `lines`, completed by the default schedule, change no value of `pipeline`.

    `proofs` remembers what was asked of isl, and may be given again for another schedule of the same program.
    Raises LegalityError with the line to blame, ScheduleError where the lines do not fit together.
    """
    said = tuple(lines)
    known = proofs or Proofs()
    try:
        return _judge(pipeline, said, regions, known)
    except LegalityError as error:
        raise _blamed(pipeline, said, error, known) from None


def _blamed(pipeline: Pipeline, said: tuple[Line, ...], error: LegalityError, known: Proofs) -> LegalityError:
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
    return LegalityError(error.message, places, error.facts, hint)


def _judge(pipeline: Pipeline, said: tuple[Line, ...], regions: Regions | None, known: Proofs) -> Legal:
    resolved = resolve(pipeline, complete(rewritten(pipeline, said), said))
    if resolved.pipeline is not pipeline:
        pipeline, regions = resolved.pipeline, None
    if any(f.where is not None for f in pipeline.funcs):
        regions = regions or infer(pipeline)
        check_domains(pipeline, regions)
    gone = frozenset(name for name, p in resolved.placements.items() if isinstance(p, Inline))
    _inline_keeps_reads_inside(pipeline, gone)
    smaller = inline(pipeline, gone)
    if gone or regions is None:
        regions = infer(smaller)
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
    def __init__(self, pipeline: Pipeline, resolved: Resolved, regions: Regions, proofs: Proofs) -> None:
        self.proofs = proofs
        self.pipeline, self.resolved, self.regions = pipeline, resolved, regions
        self.context = regions.context
        self.algebra = regions.context.algebra
        self.placed: dict[str, Placed] = {}
        self.paths: dict[str, Path] = {}
        self.points: dict[StageRef, Points] = {}
        self.within = Within(self.context, self.placed, self.paths, self.points)
        self.taken: set[str] = set()
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
            self._place(f, place)
            for stage in range(len(f.updates) + 1):
                self._nest(f, stage)
            if f.name not in grouped and f.name not in self.pipeline.outputs:
                self._fold(f)
            elif f.name in self.resolved.folds and f.name in self.pipeline.outputs:
                span = self.resolved.folds[f.name][0].span
                raise LegalityError(f"`{f.name}` is an output, so all of it is kept", [(span, "folded here")])
        for group in self.pipeline.groups:
            for name in group:
                self._steps_first(self.pipeline.func(name))
            for name in group:
                if name not in self.pipeline.outputs:
                    self._fold(self.pipeline.func(name))
        over = Overwriting(self.pipeline, self.resolved, self.regions, self.within, self.proofs).stored()
        return Legal(
            self.pipeline, self.resolved, self.regions, self.placed, self.points,
            {ref: how.apart for ref, how in self.combining.items() if how.apart},
            {ref: how.how.op for ref, how in self.combining.items() if how.atomic},
            self._reordered(), self.kept, over.holders, over.checks,
        )  # fmt: skip

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
        wanted = self.resolved.folds.get(f.name, ())
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
            if own is not None:
                out[own[0]] = own[1]
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
                steps.append(Step(access, ranges, reader.dims[0], later))
            else:
                outside.append((access, ranges))
        prover = Prover(self.algebra, self.within.loops(path), self.context.at_least)
        box = self.placed[f.name].box
        asked = self._asked(f, path, frozenset(group))
        points_ = self.points[StageRef(f.name)]
        return Storage(f, points_, tuple(steps), tuple(outside), tuple(asked), box, self.context, prover)

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
        for reader, stage, access in self.readers.get(f.name, []):
            if reader.name in but:
                continue
            own = self.paths[reader.name]
            whole = self.within.whole(reader.name, stage)
            if whole[: len(path)] != path:
                last, at = path[-1]
                raise LegalityError(
                    f"`{f.name}` is computed inside loop `{self.points[last].loops[at].loop.name}` of `{last}`, but "
                    f"`{stage_name(reader.name, stage)}`, which also reads it, is outside that loop",
                    [(access.read.span if access.read else None, "read here")],
                    hint=f"compute `{f.name}` further out",
                )
            ranges = self.within.variables(reader, stage, len(path) - len(own))
            bounder = self.context.bounder(ranges, prover)
            inner = self.within.loops(whole[len(path) :])
            for d, index in enumerate(access.index):
                found = self.within.over(bounder.interval(index, access.facts), inner, outer)
                asked[d] = hull(prover, asked[d], found)
        return asked

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
        for loop in found.loops:
            most = {LoopKind.VECTOR: MOST_LANES, LoopKind.UNROLL: MOST_COPIES}.get(loop.loop.kind)
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
        if any(loop.shift for loop in found.loops) and (stage or any(a.source == f.name for a in own)):
            raise LegalityError(
                f"`{ref}` reads its own Func, so that no run of it may be repeated",
                [(f.span, "defined here")],
                hint='tail="guard" or "predicate": a shifted tail is for plain definitions',
            )
        how = combining(f, stage, nest, found, own, self.algebra)
        if how is not None:
            self.combining[ref] = how
        else:
            check_order(f, stage, nest, found, own, self.algebra, self.context.at_least, self.proofs)

    def _steps_first(self, f: Func) -> None:
        found = self.points[StageRef(f.name, 0)]
        alone = found.leaves(f.dims[0]) == frozenset({0}) and not any(0 in found.leaves(d) for d in f.dims[1:])
        if not alone or found.loops[0].loop.kind is not LoopKind.SERIAL:
            raise LegalityError(
                f"`{f.name}` is stepped together with Funcs that read it: loop `{f.dims[0]}` stays outermost and serial"
            )
