"""Storage that a Func takes over from another, or from an Input: nobody reads there what has been written over.

Every access to the one that is overwritten, its own writes too, must come before the Func writes to that cell: in an
earlier nest, in an earlier iteration of the loops around both, or in the same point, which reads before it writes. What
the order of the nests says needs no proof; the rest is put to isl. The storage lasts as long as that of the first of a
chain, and each of the others lives inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stax.algorithm.nodes import Func, Pipeline
from stax.bounds.accesses import Access
from stax.bounds.infer import RegionCheck, Regions, output_interval, stage_name
from stax.dtypes import int64
from stax.errors import LegalityError, Place
from stax.expr import build
from stax.expr.affine import Affine, Interval, Prover
from stax.expr.nodes import INDEX, Size, Var
from stax.expr.show import show
from stax.expr.walk import postorder
from stax.legality.within import Path, Within
from stax.legality.witness import Witness, extents, overwritten, point, sizes_of
from stax.loops.nodes import LoopKind
from stax.poly.clash import problem
from stax.poly.isl import TooHard
from stax.poly.meet import Event, Met, Question, question
from stax.poly.proofs import Proofs
from stax.poly.words import Words
from stax.schedule.directives import Overwrite, StageRef
from stax.schedule.resolve import Resolved

LARGE = 64
"""Sizes from here on tell shapes apart that differ, but for small arrays."""


@dataclass(frozen=True, slots=True)
class Stored:
    """`holders` has, for each Func and Input of a chain, whose storage it lies in; `checks` are for the call."""

    holders: Mapping[str, str]
    checks: tuple[RegionCheck, ...]


@dataclass(frozen=True, slots=True)
class _Access:
    """An access of a stage, in words: what it does and where it is written."""

    f: Func
    stage: int
    access: Access | None
    cell: tuple[Affine, ...]

    @property
    def writes(self) -> bool:
        return self.access is None or self.access.read is None


class Overwriting:
    """The Funcs that a schedule keeps in storage of others."""

    def __init__(
        self, pipeline: Pipeline, resolved: Resolved, regions: Regions, within: Within, proofs: Proofs
    ) -> None:
        self.pipeline, self.resolved, self.regions = pipeline, resolved, regions
        self.within, self.proofs = within, proofs
        self.algebra = regions.context.algebra
        self.funcs = {f.name: f for f in pipeline.funcs}
        self.inputs = {i.name: i for i in pipeline.inputs}
        self.order: dict[str, int] = {}
        self.same: dict[str, str] = {}
        for f in pipeline.funcs:
            group = next((g for g in pipeline.groups if f.name in g), (f.name,))
            self.order.setdefault(
                f.name, min((self.order[n] for n in group if n in self.order), default=len(self.order))
            )

    def stored(self) -> Stored:
        """Return who is kept where; raise LegalityError where a value would be lost."""
        holders: dict[str, str] = {}
        checks: list[RegionCheck] = []
        for chain in self._chains():
            holder = chain[-1] if chain[-1] in self.pipeline.outputs else chain[0]
            for name in chain:
                holders[name] = holder
            if chain[0] in self.inputs and holder in self.funcs:
                self.same[holder] = chain[0]
            kept = self._kept(chain, holder)
            for name in chain:
                self._lives_inside(name, chain[0], kept)
            checks += self._fits(chain, holder)
            for k, name in enumerate(chain):
                for other in chain[k + 1 :]:
                    self._is_done(name, other, kept)
        return Stored(holders, tuple(checks))

    def _chains(self) -> Iterator[tuple[str, ...]]:
        """Yield the Funcs of each storage, in the order in which they take it over."""
        over = {o.target: name for name, o in self.resolved.overwrites.items()}
        for first in over:
            if first not in self.resolved.overwrites:
                chain = [first]
                while chain[-1] in over:
                    chain.append(over[chain[-1]])
                for name in chain:
                    self._has_storage(name, chain)
                yield tuple(chain)

    def _said(self, name: str) -> Overwrite:
        return self.resolved.overwrites[name]

    def _refuse(self, name: str, why: str, facts: Sequence[str] = (), hint: str | None = None) -> LegalityError:
        line = self._said(name)
        return LegalityError(
            f"`{name}` cannot be kept in place of `{line.target}`: {why}", [(line.span, "here")], facts, hint
        )

    def _has_storage(self, name: str, chain: Sequence[str]) -> None:
        who = name if name in self.resolved.overwrites else chain[chain.index(name) + 1]
        if name in self.inputs:
            return
        if name not in self.funcs:
            raise self._refuse(who, f"`{name}` is inlined, and has no storage", hint=f"s[{name!r}].compute_root()")
        if any(name in group for group in self.pipeline.groups):
            raise self._refuse(who, f"`{name}` is stepped together with Funcs that read it")
        if name in self.resolved.storage.folds or any(self.within.placed[name].fold):
            raise self._refuse(who, f"the storage of `{name}` is folded")
        if name in self.resolved.storage.layouts and name != chain[0]:
            raise self._refuse(who, f"`{name}` has a layout of its own")
        if name in self.resolved.storage.memories and name != chain[0]:
            raise self._refuse(who, f"`{name}` has memory of its own")
        stages = [StageRef(name, k) for k in range(len(self.funcs[name].updates) + 1)]
        if name != chain[0] and any(self.within.points[s].rounded for s in stages):
            raise self._refuse(who, f'a tail of `{name}` is run past its end (tail="round_up")')
        hosts = [StageRef(line.consumer, line.stage) for line in self.resolved.joined.values()]
        if any(s in self.resolved.joined or s in hosts for s in stages):
            raise self._refuse(who, f"`{name}` shares loops with another Func")
        if name in self.pipeline.outputs and self.funcs[name].where is not None:
            raise self._refuse(who, f"cells of `{name}` outside its domain are made 0 before it is computed")
        if name in self.pipeline.outputs and self._own(name) != self.within.placed[name].kept:
            raise self._refuse(who, f"more of `{name}` is needed than is returned")

    def _own(self, name: str) -> tuple[Interval, ...]:
        f = self.funcs[name]
        return tuple(output_interval(self.regions.context, f, d) for d in range(len(f.dims)))

    def _box(self, name: str) -> tuple[Interval, ...]:
        if name in self.inputs:
            sizes = [self.algebra.of(Size(INDEX, name, d)) for d in range(len(self.inputs[name].dims))]
            return tuple(Interval(Affine(0), n - 1) for n in sizes)
        return self.within.placed[name].kept

    def _fits(self, chain: Sequence[str], holder: str) -> Iterator[RegionCheck]:
        """Yield what must hold at the call for all of a chain to lie in one storage; refuse what cannot."""
        for name in chain:
            placed = self.within.placed.get(name)
            loops = {} if placed is None else self.within.loops(self.within.path(placed.store))
            prover = Prover(self.algebra, loops, self.regions.context.at_least)
            wholes = [self._box(holder), *([self._box(chain[0])] if chain[0] in self.inputs else [])]
            if name in self.inputs and holder in self.funcs:
                wholes = [self._served(holder)]
            for d, own in enumerate(self._box(name)):
                there = wholes[0][d]
                inside = any(
                    prover.less_equal(w[d].first, own.first) and prover.less_equal(own.last, w[d].last) for w in wholes
                )
                if name == holder or own == there or (inside and name not in self.inputs):
                    continue
                large = Prover(self.algebra, {}, dict.fromkeys(self._sizes(own, there), LARGE))
                gaps = [own.last - there.last, there.first - own.first]
                gaps += [there.last - own.last] if name in self.inputs else []
                differ = any(large.nonnegative(gap - 1) for gap in gaps)
                ever = self.within.over(own, loops, {})
                if differ or not {name, holder} & self.inputs.keys() or ever.lo is None or ever.hi is None:
                    raise self._refuse(
                        name if name in self.resolved.overwrites else chain[1],
                        "their shapes differ" if differ else "it is not seen that one fits into the other",
                        [
                            f"in dimension {d}, `{name}` has {self._said_box(own)}, and the storage of `{holder}` has "
                            f"{self._said_box(there)}"
                        ],
                    )
                if holder in self.inputs:
                    yield self._check(name, holder, d, ever, there)

    def _served(self, output: str) -> tuple[Interval, ...]:
        """Return the box of an output, as its inputs serve it where that is known."""
        shape = self.regions.shapes[output]
        return tuple(
            i if n is None else Interval(Affine(0), self.algebra.of(n) - 1)
            for n, i in zip(shape, self._box(output), strict=True)
        )

    def _sizes(self, *found: Interval) -> set[int]:
        """Return the sizes that ends of intervals are made of."""
        ends = [self.algebra.expr(end) for i in found for end in (i.first, i.last)]
        sizes = [node for node in postorder(ends) if isinstance(node, Size)]
        return {n for size in sizes for n, _ in self.algebra.of(size).terms}

    def _said_box(self, i: Interval) -> str:
        return f"{show(self.algebra.expr(i.first))} to {show(self.algebra.expr(i.last))}"

    def _check(self, name: str, holder: str, d: int, mine: Interval, whole: Interval) -> RegionCheck:
        expr = self.algebra.expr
        lo, hi, size = expr(mine.first), expr(mine.last), expr(whole.last + 1)
        cond = build.both(build.less_equal(build.index(0), lo), build.less(hi, size))
        return RegionCheck(cond, holder, d, lo, hi, size, name, self._said(name).span, reads=False)

    def _kept(self, chain: Sequence[str], holder: str) -> Path:
        """Return the loops around the storage of a chain."""
        if holder in self.inputs or holder in self.pipeline.outputs:
            return ()
        return self.within.path(self.within.placed[chain[0]].store)

    def _lives_inside(self, name: str, first: str, kept: Path) -> None:
        if name in self.inputs:
            return
        placed = self.within.placed[name]
        own = self.within.path(placed.store)
        who = name if name in self.resolved.overwrites else self._next(name)
        if own[: len(kept)] != kept:
            stage, at = kept[-1]
            loop = self.within.points[stage].loops[at].loop.name
            raise self._refuse(
                who, f"the storage of `{first}` lasts an iteration of `{loop}` of `{stage}`, and `{name}` longer"
            )
        if own != kept:
            self._once(name, who, kept)

    def _next(self, target: str) -> str:
        return next(name for name, o in self.resolved.overwrites.items() if o.target == target)

    def _once(self, name: str, who: str, kept: Path) -> None:
        """Refuse a Func whose cells would be computed again where others hold what was there."""
        f, path = self.funcs[name], self.within.paths[name]
        for write in self._writes(f):
            met = self._meet(write, write, path, len(kept), same=False)
            if met is not None:
                asked, found = met
                first, second = (self._iteration(path, values) for values in found.loops)
                cell = f"{name}[{', '.join(map(str, found.cell))}]"
                raise self._refuse(
                    who,
                    f"`{name}` is computed again in another iteration, over storage that all of them share",
                    [
                        f"{cell} is computed in iteration {first} and in iteration {second}"
                        + sizes_of(asked.parameters, found.sizes)
                    ],
                )

    def _iteration(self, path: Path, values: Sequence[int]) -> str:
        names = [self.within.points[stage].loops[at].loop.name for stage, at in path]
        return point(names, values)

    def _writes(self, f: Func) -> Iterator[_Access]:
        of = self.algebra.of
        yield _Access(f, 0, None, tuple(of(Var(int64, d)) for d in f.dims))
        for stage in range(1, len(f.updates) + 1):
            for access in self.regions.context.accesses[f.name][stage]:
                if access.source == f.name and access.read is None:
                    yield _Access(f, stage, access, tuple(access.index))

    def _accesses(self, name: str) -> Iterator[_Access]:
        """Yield all accesses to what is overwritten."""
        if name in self.funcs:
            yield from self._writes(self.funcs[name])
        for f in self.pipeline.funcs:
            for stage, found in enumerate(self.regions.context.accesses[f.name]):
                for access in found:
                    if access.source == name and access.read is not None:
                        yield _Access(f, stage, access, tuple(access.index))

    def _is_done(self, target: str, name: str, kept: Path) -> None:
        """Refuse `name` where it writes to a cell of `target` that is still to be accessed."""
        f = self.funcs[name]
        writes = list(self._writes(f))
        for access in self._accesses(target):
            for write in writes:
                own = access.f is f and access.stage == write.stage
                if own:
                    self._in_point(target, f, write.stage)
                first, second = (self.within.whole(a.f.name, a.stage) for a in (access, write))
                path = self.within.paths[name] if own else _common(first, second)
                met = self._meet(access, write, path, len(kept), same=not own and not self._before(access, write, path))
                if met is not None:
                    raise self._clash(target, access, write, path, *met)

    def _in_point(self, target: str, f: Func, stage: int) -> None:
        """Refuse a stage whose own loops write over what another of its points is still to read."""
        ref = StageRef(f.name, stage)
        found, points = self.regions.context.accesses[f.name][stage], self.within.points[ref]
        moved = next((loop.loop.name for loop in points.loops if loop.shift is not None), None)
        if moved is not None and any(a.source == target for a in found):
            raise self._refuse(
                f.name, f"it reads `{target}`, and loop `{moved}` repeats some iterations",
                hint='tail="guard" or "predicate"',
            )  # fmt: skip
        if not stage:
            cell = [self.algebra.of(Var(int64, d)) for d in f.dims]
            if all(list(a.index) == cell for a in found if a.source == target):
                return
        at_least, nest = self.regions.context.at_least, self.resolved.nests[ref]
        try:
            asked = problem(
                f, stage, nest, points, found, False, self.algebra, at_least, unequal=True, over=target, same=self.same
            )
            bad = self.proofs.clash(asked)
        except TooHard:
            raise self._unknown(f.name, target, found) from None
        if bad is not None:
            over = [a for a in found if a.source == (f.name if a.read is None else target)]
            raise overwritten(f, stage, target, points, over, asked, bad, self._said_of(f.name, target))

    def _said_of(self, name: str, target: str) -> Overwrite:
        """Return the line that puts `name` where `target` lay, through others perhaps; else one that names it."""
        line = self._said(name if name in self.resolved.overwrites else self._next(name))
        seen = line
        while seen.target != target:
            if seen.target not in self.resolved.overwrites:
                return line
            seen = self._said(seen.target)
        return seen

    def _unknown(self, name: str, target: str, found: Sequence[Access]) -> LegalityError:
        read = next((a.read for a in found if a.source == target and a.read is not None), None)
        places: list[Place] = [(read.span, "read here")] if read is not None else []
        return LegalityError(
            f"whether `{name}` writes over cells of `{target}` that are still read was not found out: the question is "
            "too hard",
            [*places, (self._said_of(name, target).span, "here")],
        )

    def _before(self, first: _Access, second: _Access, path: Path) -> bool:
        """Return whether, inside the loops of `path`, the stage of `first` comes before that of `second`."""
        return self._turn(first, path, max) < self._turn(second, path, min)

    def _turn(self, one: _Access, path: Path, of_all: Callable[..., tuple[int, int]]) -> tuple[int, int, int]:
        """Return the place of a stage, or of what it stands in; `of_all` says which of those that share loops."""
        ref = StageRef(one.f.name, one.stage)
        while self.within.paths[ref.func] != path:
            around = self.within.paths[ref.func]
            if len(around) <= len(path):
                return (1, 0, 0)
            ref = around[-1][0]
        shared = [(at, StageRef(line.consumer, line.stage)) for at, line in self.resolved.joined.items()]
        mine = {ref, *(s for pair in shared if ref in pair for s in pair)}
        mine |= {s for pair in shared if mine & {*pair} for s in pair}
        return (0, *of_all((self.order[s.func], s.stage) for s in mine))

    def _meet(
        self, first: _Access, second: _Access, path: Path, kept: int, same: bool
    ) -> tuple[Question, Met] | None:  # fmt: skip
        """Return two accesses to one cell that do not come in this order; with `same`, those of one iteration too."""
        cases: list[list[tuple[int, str]]] = []
        before: list[tuple[int, str]] = []
        for k, (stage, at) in enumerate(path):
            loop = self.within.points[stage].loops[at]
            if k >= kept:
                serial = loop.loop.kind in (LoopKind.SERIAL, LoopKind.UNROLL)
                ops = [("<" if loop.down else ">")] if serial and first != second else ["<", ">"]
                cases += [[*before, (k, op)] for op in ops]
            before.append((k, "="))
        if same:
            cases.append(before)
        if not cases:
            return None
        words = Words(self.algebra, self.regions.context.at_least, self.same)
        loops = self.within.loops(path)
        one, other = (self._event(a, path, loops) for a in (first, second))
        try:
            asked = question(words, one, other, cases)
            met = self.proofs.meet(asked)
        except TooHard:
            raise self._unknown(second.f.name, first.access.source if first.access else first.f.name, []) from None
        return None if met is None else (asked, met)

    def _event(self, one: _Access, path: Path, loops: Mapping[str, Interval]) -> Event:
        own = self.within.paths[one.f.name]
        variables = self.within.variables(one.f, one.stage, len(path) - len(own))
        if one.access is None and len(path) <= len(own):
            variables |= dict(zip(one.f.dims, self.within.placed[one.f.name].new, strict=True))
        around = {**variables, **self.within.loops(own[len(path) :])}
        return Event(loops, around, () if one.access is None else one.access.facts, one.cell)

    def _clash(
        self, target: str, access: _Access, write: _Access, path: Path, asked: Question, met: Met
    ) -> LegalityError:
        f, reader = write.f, stage_name(access.f.name, access.stage)
        line = self._said_of(f.name, target)
        does = "computes" if access.writes else "reads"
        cell = f"{target}[{', '.join(map(str, met.cell))}]"
        turns = ["", ""]
        if path:
            turns = [f" in iteration {self._iteration(path, values)}" for values in met.loops]
        at_once = bool(path) and met.loops[0] != met.loops[1] and self._parallel(path, met)
        points = self._point(access, met.points[0]), self._point(write, met.points[1])
        other, writer = (point(*map(list, zip(*p, strict=True))) if p else "its only point" for p in points)
        facts = [
            f"`{stage_name(f.name, write.stage)}` at {writer} writes over {cell}{turns[1]}, and `{reader}` at {other} "
            f"{does} it {'at the same time' if at_once else 'after that'}{turns[0]}"
            + sizes_of(asked.parameters, met.sizes)
        ]
        span = access.f.span if access.access is None or access.access.read is None else access.access.read.span
        wrote = f.updates[write.stage - 1].span if write.stage else f.span
        error = LegalityError(
            f"`{f.name}` cannot be kept in place of `{target}`: `{reader}` {does} it when it is written over",
            [
                (span, "computed here" if access.writes else "read here"),
                (wrote, "written over here"),
                (line.span, "asked for here"),
            ],
            facts,
        )
        error.witness = Witness(
            "in place", "parallel" if at_once else "order",
            (StageRef(access.f.name, access.stage), StageRef(f.name, write.stage)),
            points,
            target, met.cell, extents(asked.parameters, met.sizes),
        )  # fmt: skip
        return error

    def _point(self, one: _Access, values: Sequence[int]) -> tuple[tuple[str, int], ...]:
        """Return the point of a stage: of its variables, those that it has loops for."""
        roots = self.resolved.nests[StageRef(one.f.name, one.stage)].roots
        found = zip(self.within.variables(one.f, one.stage, 0), values, strict=False)
        return tuple((name, value) for name, value in found if name in roots)

    def _parallel(self, path: Path, met: Met) -> bool:
        first = next(k for k, (a, b) in enumerate(zip(*met.loops, strict=True)) if a != b)
        stage, at = path[first]
        return self.within.points[stage].loops[at].loop.kind is LoopKind.PARALLEL


def _common(first: Path, second: Path) -> Path:
    n = 0
    while n < min(len(first), len(second)) and first[n] == second[n]:
        n += 1
    return first[:n]
