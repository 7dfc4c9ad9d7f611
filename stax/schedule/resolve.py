"""What the lines of a schedule add up to: the nest of each stage, and where each Func is computed and kept.

Lines are replayed in order, and each sees the loops as they stand. What no later line could repair is refused at its
line; what the lines must add up to is refused at the end. Whether values stay the same is for `legality` to say.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from stax.algorithm.combine import combine
from stax.algorithm.copies import cache_read, clone
from stax.algorithm.factor import factor, split_range
from stax.algorithm.nodes import Func, Input, Pipeline
from stax.errors import ScheduleError, StaxWarning
from stax.expr import walk
from stax.loops.nodes import LoopKind
from stax.schedule import directives as said
from stax.schedule.conditions import condition
from stax.schedule.directives import Directive, Line, StageRef
from stax.schedule.nest import MOST, Nest, Split, apply, closest, followed, initial, missing_loop
from stax.schedule.storage import Storage
from stax.source import Span


@dataclass(frozen=True, slots=True)
class Root:
    """Computed before its readers, whole; as a place to keep values: as long as the kernel runs."""


@dataclass(frozen=True, slots=True)
class Inline:
    """Computed wherever it is read."""


@dataclass(frozen=True, slots=True)
class At:
    """Computed in each iteration of `loop` of `consumer`.

    `store` is where the values are kept: Root, a loop around it of some stage, or, where None, that same loop.
    """

    consumer: StageRef
    loop: str
    store: Root | tuple[StageRef, str] | None = None


Placement: TypeAlias = Root | Inline | At


@dataclass(frozen=True, slots=True)
class Hoist:
    """Storage is allocated inside `loop` of `stage`."""

    stage: StageRef
    loop: str
    span: Span | None


@dataclass(frozen=True, slots=True)
class Resolved:
    """`placements` has the Funcs that some line places; `nests` has every stage of the program.

    `pipeline` is the program with the Funcs that directives made. `storage` is what is said of how Funcs are kept,
    `overwrites` what a Func is kept in the storage of, `hoists` at which loop storage is allocated, `fetches` what
    loops of a stage fetch ahead. `joined` are stages that run in the loops of others.
    """

    pipeline: Pipeline
    placements: dict[str, Placement]
    nests: dict[StageRef, Nest]
    lines: tuple[Line, ...]
    storage: Storage
    hoists: dict[str, Hoist]
    fetches: tuple[tuple[StageRef, said.Prefetch], ...]
    joined: dict[StageRef, said.ComputeWith]
    overwrites: dict[str, said.Overwrite]


def resolve(pipeline: Pipeline, lines: Iterable[Line], warn: bool = False) -> Resolved:
    """Return what `lines` add up to on `pipeline`.

    With `warn`, also say with a StaxWarning where loops of a definition are scheduled and those of its updates are not.
    Raises ScheduleError for a line that no later one could repair, and for a whole that does not fit together.
    """
    replay = Replay(pipeline)
    for line in lines:
        replay.step(line)
    return replay.finish(warn)


def rewritten(pipeline: Pipeline, lines: Iterable[Line]) -> Pipeline:
    """Return `pipeline` with the Funcs that `lines` make."""
    found = tuple(lines)
    if not any(isinstance(line.directive, said.ProgramDirective) for line in found):
        return pipeline
    replay = Replay(pipeline)
    for line in found:
        replay.step(line)
    return replay.pipeline


@dataclass(frozen=True, slots=True)
class _Kept:
    """A store level, and where it was said."""

    where: Root | tuple[StageRef, str]
    span: Span | None


class Replay:
    """A schedule as far as its lines have come; a line that is refused leaves it unchanged."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.funcs = {f.name: f for f in pipeline.funcs}
        self.nests = {
            StageRef(f.name, k): initial(f, k) for f in pipeline.funcs for k in range(len(f.updates) + 1)
        }  # fmt: skip
        self.lines: list[Line] = []
        self._places: dict[str, tuple[Placement, Span | None]] = {}
        self._kept: dict[str, _Kept] = {}
        self._reads: dict[StageRef, frozenset[str]] = {}
        self._storage = Storage()
        self._hoists: dict[str, Hoist] = {}
        self._fetches: list[tuple[StageRef, said.Prefetch]] = []
        self._joined: dict[StageRef, said.ComputeWith] = {}
        self._overwrites: dict[str, said.Overwrite] = {}

    def array(self, name: str) -> Input | None:
        """Return the Input of that name, where no Func has it."""
        return next((i for i in self.pipeline.inputs if i.name == name), None)

    def stage(self, name: str, stage: int, span: Span | None) -> StageRef:
        """Return the stage; ScheduleError where the program has none such."""
        func = self.funcs.get(name)
        if func is None:
            raise _no_func(self.pipeline, name, span)
        if stage > len(func.updates):
            count = len(func.updates)
            raise ScheduleError(
                f"Func {name!r} has no update {stage - 1}", [(func.span, "defined here"), (span, "scheduled here")],
                [f"{name!r} has {count} update{'s' * (count != 1)}, counted from 0"],
            )  # fmt: skip
        return StageRef(name, stage)

    def step(self, line: Line) -> None:
        """Take `line` in."""
        array = self.array(line.at.func)
        if array is not None and isinstance(line.directive, said.CacheRead):
            self._copy(array, line.directive)
            self.lines.append(line)
            return
        at = self.stage(line.at.func, line.at.stage, line.directive.span)
        directive = line.directive
        match directive:
            case said.Inline() | said.ComputeRoot() | said.ComputeAt() | said.StoreAt() | said.StoreRoot():
                if at.stage:
                    name = _word(directive)
                    raise ScheduleError(
                        f"{name} places a whole Func, not one of its updates", [(directive.span, "here")],
                        hint=f"say it of s[{at.func!r}]",
                    )  # fmt: skip
                self._place(at.func, directive)
            case said.FoldStorage() | said.Layout() | said.Memory() | said.Bound() | said.AlignBounds():
                self._storage.take(self.pipeline, at, directive, _word(directive))
            case said.HoistStorage(consumer=consumer, stage=stage, loop=loop, span=span):
                if at.stage:
                    raise ScheduleError("hoist_storage is said of a Func, not of its updates", [(span, "here")])
                self._hoists[at.func] = Hoist(self._reader(at.func, consumer, stage, (loop,), span), loop, span)
            case said.ComputeWith():
                self._joined[at] = self._join(at, directive)
            case said.Prefetch():
                self._fetches.append((at, self._fetch(at, directive)))
            case said.Specialize(cond=cond, span=span):
                condition(cond, self.pipeline, span)
                self.nests[at] = apply(self.nests[at], directive)
            case said.Overwrite():
                self._overwrite(at, directive)
            case said.Rfactor():
                self._factor(at, directive)
            case said.CacheRead() | said.Clone():
                self._copy(self.funcs[at.func], directive)
            case said.SplitReduction():
                raise AssertionError("spelled out before it is replayed")
            case said.Atomic() if not at.stage:
                raise ScheduleError(
                    f"atomic is said of an update, not of the definition of {at.func!r}", [(directive.span, "here")],
                    hint=f"s[{at.func!r}].update(0)" if self.funcs[at.func].updates else None,
                )  # fmt: skip
            case _:
                try:
                    self.nests[at] = apply(self.nests[at], directive)
                except ScheduleError as error:
                    message = f"{at}: {error.message}"
                    raise ScheduleError(message, error.places, error.facts, error.hint) from None
                self._follow(at, followed(directive))
        self.lines.append(line)

    def finish(self, warn: bool) -> Resolved:
        """Return what the lines add up to, refusing what does not fit together."""
        placements = {name: self._placement(name) for name in self._places}
        for name, kept in self._kept.items():
            if name not in self._places:
                raise ScheduleError(
                    f"a line says where Func {name!r} is kept, but none where it is computed", [(kept.span, "here")],
                    hint="add compute_at(...) or compute_root()",
                )  # fmt: skip
        sound: set[str] = set()
        for name in placements:
            self._fits(name, placements, sound)
            sound.add(name)
        if warn:
            self._warn_of_forgotten_updates()
        return Resolved(
            self.pipeline, placements, dict(self.nests), tuple(self.lines), self._storage.copy(), dict(self._hoists),
            tuple(self._fetches), dict(self._joined), dict(self._overwrites),
        )  # fmt: skip

    def _join(self, at: StageRef, line: said.ComputeWith) -> said.ComputeWith:
        """Return `line` where both stages have its loop, and those around it."""
        span, other = line.span, self.stage(line.consumer, line.stage, line.span)
        if other.func == at.func:
            raise ScheduleError(f"{at} cannot run in loops of its own Func", [(span, "here")])
        if other in self._joined or at in {StageRef(j.consumer, j.stage) for j in self._joined.values()}:
            raise ScheduleError(
                f"{at} would run in loops of {other}, one of which runs in loops of a third stage", [(span, "here")],
                hint="let all run in the loops of one stage",
            )  # fmt: skip
        if not -MOST <= line.shift <= MOST:
            raise ScheduleError(f"a shift is an int below 2**31, not {line.shift}", [(span, "here")])
        for stage in (at, other):
            if self.nests[stage].place(line.loop) is None:
                raise missing_loop(line.loop, str(stage), self.nests[stage], span)
        return line

    def _fetch(self, at: StageRef, line: said.Prefetch) -> said.Prefetch:
        """Return `line` where the stage reads what it fetches, in a loop that is there."""
        span = line.span
        if line.source not in self.funcs and self.array(line.source) is None:
            raise _no_func(self.pipeline, line.source, span)
        if line.source not in self._direct(at):
            facts = [f"it reads {', '.join(sorted(self._direct(at))) or 'nothing'}"]
            raise ScheduleError(f"{at} does not read {line.source!r}", [(span, "fetched here")], facts)
        if self.nests[at].place(line.loop) is None:
            raise missing_loop(line.loop, str(at), self.nests[at], span)
        if not 0 < line.ahead <= MOST:
            raise ScheduleError(f"iterations ahead are an int from 1 to 2**31 - 1, not {line.ahead}", [(span, "here")])
        return line

    def _overwrite(self, at: StageRef, line: said.Overwrite) -> None:
        func, span = self.funcs[at.func], line.span
        target = self.array(line.target) or self.funcs.get(line.target)
        if target is None and line.target in (t.name for t in self.pipeline.tables):
            raise ScheduleError(f"{line.target!r} is a Const, which nothing is written over", [(span, "here")])
        if target is None:
            raise _no_func(self.pipeline, line.target, span)

        def refuse(why: str, facts: list[str] | None = None, hint: str | None = None) -> ScheduleError:
            places = [(target.span, "defined here"), (func.span, "defined here"), (span, "here")]
            return ScheduleError(
                f"`{func.name}` cannot be kept in place of `{target.name}`: {why}", places, facts or [], hint
            )

        if at.stage:
            raise refuse(
                "overwrite is said of a Func, not of one of its updates", hint=f"s[{func.name!r}].overwrite(g)"
            )
        dtypes = (target.dtype,) if isinstance(target, Input) else target.dtypes
        if dtypes != func.dtypes:
            given, wanted = (" and ".join(t.name for t in found) for found in (func.dtypes, dtypes))
            raise refuse("their types differ", [f"`{func.name}` is {given}, `{target.name}` is {wanted}"])
        if len(target.dims) != len(func.dims):
            raise refuse(f"one has {len(func.dims)} dims, the other {len(target.dims)}")
        if target.name in self.pipeline.outputs:
            raise refuse(f"`{target.name}` is an output, which the caller reads")
        taken = next((n for n, o in self._overwrites.items() if o.target == target.name and n != func.name), None)
        if taken is not None:
            raise refuse(f"`{taken}` is kept there already", hint=f"s[{func.name!r}].overwrite({taken!r})")
        behind: str | None = target.name
        while behind is not None:
            if behind == func.name:
                raise refuse("each would be kept in the storage of the other" if target is not func else "they are one")
            behind = self._overwrites[behind].target if behind in self._overwrites else None
        self._overwrites[func.name] = line

    def _copy(self, source: Func | Input, line: said.CacheRead | said.Clone) -> None:
        """Make the Func that some readers of `source` are to read instead."""
        span, word = line.span, _word(line)

        def refuse(why: str, hint: str | None = None) -> ScheduleError:
            return ScheduleError(f"{word}: {why}", [(source.span, "defined here"), (span, "here")], hint=hint)

        self._untaken(line.name, refuse)
        reading = {s.func for s in self.nests if s.func != source.name and source.name in self._direct(s)}
        for reader in line.readers:
            if reader not in self.funcs:
                raise _no_func(self.pipeline, reader, span)
            if reader not in reading:
                raise refuse(f"{reader!r} does not read {source.name!r}", f"it is read by {', '.join(sorted(reading))}")
        chosen = set(line.readers) or reading
        grouped = {name for group in self.pipeline.groups if source.name in group for name in group}
        if grouped & chosen or (grouped and isinstance(line, said.Clone)):
            raise refuse(f"{source.name!r} is stepped together with Funcs that read it")
        if isinstance(line, said.Clone) and isinstance(source, Func):
            if chosen == reading and source.name not in self.pipeline.outputs:
                raise refuse(f"nobody would be left to read {source.name!r}", "name some of its readers")
            self._change(clone(self.pipeline, source, line.name, chosen))
        else:
            self._change(cache_read(self.pipeline, source, line.name, chosen))

    def _untaken(self, name: str, refuse: Callable[..., ScheduleError]) -> None:
        arrays = (*self.pipeline.inputs, *self.pipeline.tables, *self.pipeline.scalars)
        if not name or name in {*self.funcs, *(a.name for a in arrays)}:
            raise refuse(f"the name {name!r} is taken", hint="choose another")

    def _change(self, pipeline: Pipeline) -> None:
        """Go on with `pipeline`; Funcs that are new in it have the loops they begin with."""
        self.pipeline = pipeline
        self.funcs = {f.name: f for f in pipeline.funcs}
        self._reads = {}
        for f in pipeline.funcs:
            for k in range(len(f.updates) + 1):
                self.nests.setdefault(StageRef(f.name, k), initial(f, k))

    def _factor(self, at: StageRef, line: said.Rfactor) -> None:
        """Make the Func that `line` asks for: the pipeline changes, and the loops of the update are new ones."""
        span, name, func = line.span, line.name, self.funcs[at.func]

        def refuse(why: str, facts: list[str] | None = None, hint: str | None = None) -> ScheduleError:
            defined = func.updates[at.stage - 1].span if at.stage else func.span
            return ScheduleError(f"{at}: {why}", [(defined, "defined here"), (span, "here")], facts or [], hint)

        if not at.stage:
            raise refuse("rfactor is said of an update", hint=f"s[{func.name!r}].update(0)" if func.updates else None)
        update = func.updates[at.stage - 1]
        how = combine(func, update)
        if how is None:
            raise refuse(
                "partial results are not known to be joined by one operator",
                ["rfactor takes updates of the form f[...] = f[...] op e with + * & | ^ minimum maximum"],
            )
        if not how.exact and func.fp == "strict":
            raise refuse('it is of fp="strict", so its sums keep their order')
        self._untaken(name, refuse)
        nest, domain = self.nests[at], [r.name for r in update.domain]
        whole = initial(func, at.stage)
        var = line.var
        place = nest.place(var)
        if place is None:
            raise missing_loop(var, str(at), nest, span)
        match nest.derivations:
            case ():
                plain = nest.loops == whole.loops
            case (Split(parent=parent, outer=outer, inner=inner, factor=n) as step,) if parent in domain:
                undone = [loop for loop in nest.loops if loop.name != inner]
                names = [parent if loop.name == outer else loop.name for loop in undone]
                plain = names == list(whole.roots) and all(loop.kind is LoopKind.SERIAL for loop in nest.loops)
                if plain and var in (step.outer, step.inner):
                    others = {*func.dims, *(d for d in domain if d != parent)}
                    made = (f"{parent}.o" if outer in others else outer, f"{parent}.i" if inner in others else inner)
                    update = split_range(update, parent, *made, n, made[0] if var == outer else made[1])
                    var = made[0] if var == outer else made[1]
                    domain = [r.name for r in update.domain]
                elif plain:
                    plain = False
            case _:
                plain = False
        if not plain:
            raise refuse(
                f"loop {line.var!r} is factored out after other directives of this update",
                [f"loops here, outermost first: {', '.join(loop.name for loop in nest.loops)}"],
                "say rfactor first, or right after one split of that loop",
            )
        if var not in domain:
            raise refuse(f"loop {line.var!r} is no variable of the RDom", [f"variables: {', '.join(domain)}"])
        if not line.new or line.new in {*func.dims, *domain} - {var}:
            raise refuse(f"the new dim cannot be called {line.new!r}", hint="choose another name")
        chosen = next(r for r in update.domain if r.name == var)
        if walk.names((chosen.lo, chosen.hi)):
            raise refuse(f"the range of {line.var!r} depends on other loops, so it is no dim of a Func")
        changed = replace(func, updates=(*func.updates[: at.stage - 1], update, *func.updates[at.stage :]))
        before = replace(self.pipeline, funcs=tuple(changed if g is func else g for g in self.pipeline.funcs))
        self._change(factor(before, changed, at.stage - 1, how, var, line.new, name))
        self.nests[at] = replace(initial(self.funcs[func.name], at.stage), permits=nest.permits)
        self.nests[StageRef(name, 1)] = replace(initial(self.funcs[name], 1), permits=nest.permits)

    def _place(self, func: str, directive: said.PlaceDirective) -> None:
        span = directive.span
        match directive:
            case said.Inline():
                self._places[func] = (Inline(), span)
            case said.ComputeRoot():
                self._places[func] = (Root(), span)
            case said.ComputeAt(consumer=consumer, stage=stage, loop=loop, store=store):
                reader = self._reader(func, consumer, stage, (loop,) if store is None else (loop, store), span)
                if store is not None:
                    self._kept[func] = _Kept((reader, store), span)
                self._places[func] = (At(reader, loop), span)
            case said.StoreAt(consumer=consumer, stage=stage, loop=loop):
                self._kept[func] = _Kept((self._reader(func, consumer, stage, (loop,), span), loop), span)
            case said.StoreRoot():
                self._kept[func] = _Kept(Root(), span)
            case _:
                assert_never(directive)

    def _reader(
        self, func: str, consumer: str, stage: int | None, loops: tuple[str, ...], span: Span | None
    ) -> StageRef:
        """Return the stage of `consumer` that reads `func`, itself or through others, and has all of `loops`."""
        if consumer not in self.funcs:
            raise _no_func(self.pipeline, consumer, span)
        if consumer == func:
            raise ScheduleError(f"Func {func!r} cannot be computed inside its own loops", [(span, "here")])
        if stage is not None:
            asked = self.stage(consumer, stage, span)
            readers = [asked] if self._uses(asked, func) else []
        else:
            stages = [StageRef(consumer, k) for k in range(len(self.funcs[consumer].updates) + 1)]
            readers = [s for s in stages if func in self._direct(s)] or [s for s in stages if self._uses(s, func)]
        if not readers:
            who = consumer if stage is None else str(StageRef(consumer, stage))
            raise ScheduleError(
                f"{who!r} does not read Func {func!r}, so {func!r} has no place in its loops",
                [(self.funcs[func].span, "defined here"), (span, "placed here")], self._who_reads(func),
            )  # fmt: skip
        for reader in reversed(readers):
            if all(self.nests[reader].place(loop) is not None for loop in loops):
                return reader
        last = readers[-1]
        dead = next(loop for loop in loops if self.nests[last].place(loop) is None)
        raise missing_loop(dead, str(last), self.nests[last], span)

    def _who_reads(self, func: str) -> list[str]:
        readers = [str(s) for s in self.nests if s.func != func and func in self._direct(s)]
        return [f"{func!r} is read by {', '.join(readers)}" if readers else f"{func!r} is read by no Func"]

    def _direct(self, stage: StageRef) -> frozenset[str]:
        """Return the names that the stage reads."""
        if stage not in self._reads:
            self._reads[stage] = frozenset(
                r.source for r in walk.reads(stage_roots(self.funcs[stage.func], stage.stage))
            )
        return self._reads[stage]

    def _uses(self, stage: StageRef, func: str) -> bool:
        """Return whether `stage` needs `func`, through Funcs other than its own."""
        seen = {stage.func}
        ahead = list(self._direct(stage))
        while ahead:
            name = ahead.pop()
            if name == func:
                return True
            if name in self.funcs and name not in seen:
                seen.add(name)
                for k in range(len(self.funcs[name].updates) + 1):
                    ahead += self._direct(StageRef(name, k))
        return False

    def _follow(self, stage: StageRef, moved: dict[str, str]) -> None:
        if not moved:
            return
        for name, (place, span) in self._places.items():
            if isinstance(place, At) and place.consumer == stage and place.loop in moved:
                self._places[name] = (replace(place, loop=moved[place.loop]), span)
        for name, kept in self._kept.items():
            if isinstance(kept.where, tuple) and kept.where[0] == stage and kept.where[1] in moved:
                self._kept[name] = _Kept((stage, moved[kept.where[1]]), kept.span)
        for name, hoist in self._hoists.items():
            if hoist.stage == stage and hoist.loop in moved:
                self._hoists[name] = replace(hoist, loop=moved[hoist.loop])
        for k, (at, fetch) in enumerate(self._fetches):
            if at == stage and fetch.loop in moved:
                self._fetches[k] = (at, replace(fetch, loop=moved[fetch.loop]))

    def _placement(self, name: str) -> Placement:
        place, _ = self._places[name]
        kept = self._kept.get(name)
        if kept is None or (isinstance(place, Root) and isinstance(kept.where, Root)):
            return place
        if isinstance(place, At):
            own = kept.where == (place.consumer, place.loop)
            return At(place.consumer, place.loop, None if own else kept.where)
        what = "inlined" if isinstance(place, Inline) else "computed whole, before its readers"
        raise ScheduleError(
            f"Func {name!r} is {what}, and cannot be kept at a loop",
            [(self._places[name][1], "computed so here"), (kept.span, "kept so here")], hint="add compute_at(...)",
        )  # fmt: skip

    def _fits(self, name: str, placements: dict[str, Placement], sound: set[str]) -> None:
        place, span = placements[name], self._places[name][1]
        match place:
            case Root():
                return
            case Inline():
                self._can_be_inlined(self.funcs[name], span)
            case At():
                self._lies_inside(name, place, placements, sound, span)
            case _:
                assert_never(place)

    def _can_be_inlined(self, func: Func, span: Span | None) -> None:
        why: str | None = None
        if func.name in self.pipeline.outputs:
            why = "it is an output"
        elif func.updates:
            why = "it has updates"
        elif func.name in self._direct(StageRef(func.name)) or any(func.name in g for g in self.pipeline.groups):
            why = "it is a recurrence"
        if why is not None:
            raise ScheduleError(
                f"Func {func.name!r} cannot be inlined: {why}", [(func.span, "defined here"), (span, "inlined here")],
                hint="compute_root() or compute_at(...)",
            )  # fmt: skip
        for line in self.lines:
            if line.at.func == func.name and isinstance(line.directive, said.LoopDirective):
                raise ScheduleError(
                    f"Func {func.name!r} is inlined, so it has no loops to schedule",
                    [(span, "inlined here"), (line.directive.span, "scheduled here")], hint="leave out one of the two",
                )  # fmt: skip

    def _lies_inside(
        self, name: str, place: At, placements: dict[str, Placement], sound: set[str], span: Span | None
    ) -> None:
        """Refuse a Func that is placed at a loop of itself, or of none, or kept inside where it is computed.

        `sound` are Funcs that were looked at before: where they lie needs no second look.
        """
        around: set[tuple[StageRef, str]] = set()
        here, seen = place, {name}
        while True:
            nest = self.nests[here.consumer]
            depth = nest.place(here.loop)
            if depth is None:
                raise missing_loop(here.loop, str(here.consumer), nest, span)
            around |= {(here.consumer, loop.name) for loop in nest.loops[: depth + 1]}
            outer = here.consumer.func
            if outer in sound and not isinstance(place.store, tuple):
                return
            if outer in seen:
                raise ScheduleError(f"Funcs {sorted(seen)} are placed in each other's loops", [(span, "here")])
            seen.add(outer)
            above = placements.get(outer)
            if isinstance(above, Inline):
                raise ScheduleError(
                    f"Func {outer!r} is inlined, so nothing can be computed in its loops",
                    [(self._places[outer][1], "inlined here"), (span, "placed in it here")],
                )  # fmt: skip
            if not isinstance(above, At):
                break
            here = above
        known = above is not None or outer in self.pipeline.outputs
        if isinstance(place.store, tuple) and place.store not in around and (known or place.store[0].func in seen):
            stage, loop = place.store
            raise ScheduleError(
                f"Func {name!r} is computed outside the loop {loop!r} of {stage} where it is kept",
                [(span, "computed here"), (self._kept[name].span, "kept here")],
                hint="keep it at the same loop or one further out",
            )  # fmt: skip

    def _warn_of_forgotten_updates(self) -> None:
        touched = {line.at for line in self.lines if isinstance(line.directive, said.LoopDirective)}
        for func in self.funcs.values():
            stages = [StageRef(func.name, k + 1) for k in range(len(func.updates))]
            if stages and StageRef(func.name) in touched and not touched.intersection(stages):
                text = (
                    f"the loops of {func.name!r} are scheduled for its definition only: those of "
                    f"{', '.join(map(str, stages))} stay as they are (s[{func.name!r}].update(0) has them)"
                )
                warnings.warn(text, StaxWarning, stacklevel=4)


def stage_roots(func: Func, stage: int) -> tuple[walk.Expr, ...]:
    """Return all expressions of a stage."""
    if stage == 0:
        return func.values
    update = func.updates[stage - 1]
    bounds = tuple(e for r in update.domain for e in (r.lo, r.hi))
    return (*update.index, *update.values, *bounds, *(() if update.where is None else (update.where,)))


def _no_func(pipeline: Pipeline, name: str, span: Span | None) -> ScheduleError:
    known = [f.name for f in pipeline.funcs]
    if name in (i.name for i in pipeline.inputs):
        return ScheduleError(f"{name!r} is an Input, which has no loops", [(span, "here")])
    facts = [f"Funcs of the program: {', '.join(map(repr, known[:12]))}{', ...' * (len(known) > 12)}"]
    return ScheduleError(f"the program has no Func {name!r}", [(span, "here")], facts, closest(name, known))


def _word(directive: Directive) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in type(directive).__name__)[1:]
