"""Write a proved schedule as loops: one nest a stage, each Func where it is computed, its storage where it is kept.

before                              after
    g[y, x] = f[y - 1, x] * 2           for g.yo parallel:
    s[g].split(y, yo, yi, 32)               f = scratch 34 x W
    s[f].compute_at(g, yo)                  for f.y, f.x: f[...] = ...
                                            for g.yi, g.x: g[...] = f[...] * 2

Needs: a `Legal`: regions and points are taken from it as they are.
Gives: loops from 0 over `index`; loads masked where a condition keeps them inside; partial tiles as `min` in extents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from stax.algorithm.domain import inner_values
from stax.algorithm.nodes import MARK, Func, Update, origin_name, part_name
from stax.bounds.accesses import NOTHING, Fact, Facts, contexts, domain_facts
from stax.bounds.infer import NO_CELLS, Box, output_interval, stage_ranges
from stax.bounds.interval import Bounder
from stax.dtypes import bool_, int64
from stax.errors import InternalError
from stax.expr import build
from stax.expr.affine import Affine, Algebra, Interval, Prover
from stax.expr.nodes import INDEX, Binary, BinaryOp, Expr, Load, Local, Param, Read, Size, Var
from stax.expr.simplify import simplify_all
from stax.expr.walk import children, names, postorder, reads, rewrite_all, with_children
from stax.loops.nodes import Allocate, Block, Buffer, For, If, Let, LoopKind, Memory, Program, Role, Stmt, Store
from stax.loops.walk import as_block, copy_with_fresh_names, substitute
from stax.lower.combined import combined
from stax.lower.fetch import fetches
from stax.lower.join import joined
from stax.lower.specialize import specialized
from stax.schedule.conditions import condition
from stax.schedule.directives import Specialize, StageRef, Stream
from stax.schedule.legal import Fetch, Legal
from stax.schedule.resolve import stage_roots

NEAR = 4


def build_nests(legal: Legal, name: str = "kernel") -> Program:
    """Return the program of `legal`; its buffers are inputs, tables, then outputs, a buffer a part."""
    builder = _Builder(legal)
    body = builder.whole()
    pipeline = legal.pipeline
    inputs = [_argument(i.name, i.dtype.name, len(i.dims), builder.role(i.name), builder) for i in pipeline.inputs]
    buffers = [b for b in inputs if legal.holders.get(b.name, b.name) == b.name]
    buffers += [_argument(t.name, t.dtype.name, t.array.ndim, Role.TABLE, builder) for t in pipeline.tables]
    for out in pipeline.outputs:
        f = pipeline.func(out)
        for part in range(len(f.dtypes)):
            shape = tuple(Size(INDEX, out, d) for d in range(len(f.dims)))
            buffers.append(Buffer(_part(f, part), f.dtypes[part], shape, Role.OUTPUT))
    sizes = {(b.name, d): s for b in (*inputs, *buffers) for d, s in enumerate(b.shape) if isinstance(s, Size)}
    scalars: list[Param | Size] = [Param(s.dtype, s.name) for s in pipeline.scalars]
    if pipeline.origins:
        scalars += [
            Param(int64, origin_name(o, d)) for o in pipeline.outputs for d in range(len(pipeline.func(o).dims))
        ]
    seen: set[tuple[str, int]] = set()
    for size in sizes.values():
        if (size.array, size.dim) not in seen:
            seen.add((size.array, size.dim))
            scalars.append(size)
    return Program(name, tuple(buffers), tuple(scalars), body)


def _argument(name: str, dtype: str, rank: int, role: Role, builder: _Builder) -> Buffer:
    found = next(a for a in (*builder.legal.pipeline.inputs, *builder.legal.pipeline.tables) if a.name == name)
    return Buffer(name, found.dtype, tuple(Size(INDEX, name, d) for d in range(rank)), role)


class _Builder:
    def __init__(self, legal: Legal) -> None:
        self.legal = legal
        self.algebra: Algebra = legal.regions.context.algebra
        self.funcs = {f.name: f for f in legal.pipeline.funcs}
        self.at: dict[tuple[StageRef, int], list[Func]] = {}
        self.kept: dict[tuple[StageRef, int], list[Func]] = {}
        for f in legal.pipeline.funcs:
            placed = legal.placed[f.name]
            if placed.compute is not None:
                self.at.setdefault((placed.compute.stage, placed.compute.depth), []).append(f)
            kept = placed.store if placed.hoist is None else placed.hoist
            if kept is not None:
                self.kept.setdefault((kept.stage, kept.depth), []).append(f)
        self.fetched: dict[tuple[StageRef, int], list[Fetch]] = {}
        for fetch in legal.fetches:
            self.fetched.setdefault((fetch.stage, fetch.depth), []).append(fetch)
        self.shared = {ref.func: t for t in legal.together for ref in (t.host, *(at for at, _ in t.guests))}
        self.unread = {name for name, placed in legal.placed.items() if NO_CELLS in placed.box}
        self.copies = 0
        self.copied = {n for n in legal.pipeline.outputs if self._own_box(n) != legal.placed[n].kept}

    def whole(self) -> Block:
        """Return all Funcs computed at root, producers first."""
        stmts: list[Stmt] = []
        grouped = {name: group for group in self.legal.pipeline.groups for name in group}
        for f in self.legal.pipeline.funcs:
            if self.legal.placed[f.name].store is None and self.legal.placed[f.name].compute is not None:
                stmts += self._storage(f)
        done: set[str] = set()
        here = [f for f in self.legal.pipeline.funcs if self.legal.placed[f.name].compute is None]
        for unit in self._units(here):
            f = unit[-1]
            if f.name in done:
                continue
            group = grouped.get(f.name, tuple(g.name for g in unit))
            for name in group:
                if name not in self.legal.pipeline.outputs or name in self.copied:
                    stmts += self._storage(self.funcs[name])
            if f.name in grouped:
                stmts += [s for name in group for s in self._zeros(self.funcs[name])] + self._group(group)
            else:
                stmts += self._realize_all(unit)
            done |= set(group)
            stmts += [s for name in group if name in self.copied for s in self._copy(self.funcs[name])]
        return Block(tuple(stmts))

    def role(self, name: str) -> Role:
        """Return what an Input is: one that is written over, and holds what others leave there, is an output too."""
        return Role.OUTPUT if name in self.legal.holders else Role.INPUT

    def _own_box(self, name: str) -> tuple[Interval, ...]:
        f = self.funcs[name]
        return tuple(output_interval(self.legal.regions.context, f, d) for d in range(len(f.dims)))

    def _buffer(self, f: Func, part: int) -> str:
        holder = self.legal.holders.get(f.name, f.name)
        if holder not in self.funcs:
            return holder
        return _part(self.funcs[holder], part) + (f"{MARK}whole" if f.name in self.copied else "")

    def _storage(self, f: Func) -> list[Stmt]:
        placed = self.legal.placed[f.name]
        if self.legal.holders.get(f.name, f.name) != f.name:
            return []
        whole = placed.extents or tuple(map(self._extent, placed.kept))
        rounded = [self._rounded(f, d) for d in f.dims]
        extents = tuple(self.algebra.expr(_up(e, n, self.algebra)) for e, n in zip(whole, rounded, strict=True))
        if f.name in self.legal.resolved.storage.memories and not placed.extents:
            extents = tuple(self._at_most(e) for e in extents)
        kept = (e if n is None else build.index(n) for e, n in zip(extents, placed.fold, strict=True))
        shape = self._laid(f, tuple(kept))
        storage = self.legal.resolved.storage
        layout, memory = storage.layouts.get(f.name), storage.memories.get(f.name)
        out: list[Stmt] = []
        for k, dtype in enumerate(f.dtypes):
            pad, align = (1, 64) if layout is None else (layout.pad, layout.align or 64)
            row = shape[-1:]
            for n in (pad, align // dtype.size_bytes if layout is not None and layout.align else 1):
                if n > 1 and row:
                    row = (build.mul(build.floordiv(build.add(row[0], n - 1), n), n),)
            kind = Memory.ANY if memory is None else Memory(memory.kind.value)
            mine = (*shape[:-1], *row)
            out.append(Allocate(Buffer(self._buffer(f, k), dtype, mine, Role.SCRATCH, kind, max(align, 64))))
        return out

    def _at_most(self, extent: Expr) -> Expr:
        """Return a constant that `extent` does not exceed, where a minimum in it has such an arm; else `extent`."""
        ahead = [self.algebra.of(extent)]
        while ahead:
            here = ahead.pop()
            if not here.terms:
                return self.algebra.expr(here)
            for number, factor in here.terms:
                match self.algebra.atom(number):
                    case Binary(op=BinaryOp.MIN, left=left, right=right) if factor > 0:
                        arms = (self.algebra.of(left), self.algebra.of(right))
                        ahead += [here.without(number) + arm * factor for arm in arms]
                    case _:
                        pass
        return extent

    def _rounded(self, f: Func, dim: str) -> int:
        """Return the number of which iterations along a dim are run a multiple."""
        return math.lcm(
            *(self.legal.points[StageRef(f.name, k)].rounded.get(dim, 1) for k in range(len(f.updates) + 1))
        )

    def _laid(self, f: Func, dims: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Return what belongs to each dim of `f` in the order in which the dims lie in memory."""
        layout = self.legal.resolved.storage.layouts.get(self.legal.holders.get(f.name, f.name))
        return dims if layout is None else tuple(dims[f.dims.index(d)] for d in layout.order)

    def _extent(self, i: Interval) -> Affine:
        return i.last - i.first + 1

    def _copy(self, f: Func) -> list[Stmt]:
        """Return the copy of an output's box out of storage that others read beyond it."""
        out: list[Stmt] = []
        for part, dtype in enumerate(f.dtypes):
            names = [build.local(f"{f.name}{MARK}copy{part}.{dim}") for dim in f.dims]
            index = tuple(
                self.algebra.expr(self.algebra.of(n) + own.first - i.first)
                for n, own, i in zip(names, self._own_box(f.name), self.legal.placed[f.name].kept, strict=True)
            )
            body = Block(
                (Store(_part(f, part), tuple(names), Load(dtype, self._buffer(f, part), index), stage=f.name),)
            )
            for d, n in reversed(list(enumerate(names))):
                body = Block((For(n, build.index(0), Size(INDEX, f.name, d), LoopKind.SERIAL, body),))
            out += body.stmts
        return out

    def _units(self, funcs: list[Func]) -> list[list[Func]]:
        """Return `funcs` in the order they are computed: those that share loops as one, what reads them after."""
        if not any(f.name in self.shared for f in funcs):
            return [[f] for f in funcs]
        ahead, out, groups = list(funcs), list[list[Func]](), self.legal.pipeline.groups
        while ahead:
            f = ahead[0]
            shared = self.shared.get(f.name)
            unit = [f] if shared is None else [g for g in ahead if self.shared.get(g.name) is shared]
            needed = {r.source for g in unit for r in self._read_by(g)} - {g.name for g in unit}
            first = [g for g in ahead if g.name in needed and not any(g.name in b and f.name in b for b in groups)]
            if first:
                ahead = [*first, *(g for g in ahead if g.name not in needed)]
                continue
            ahead = [g for g in ahead if g not in unit]
            out.append(unit)
        return out

    def _read_by(self, f: Func) -> list[Read]:
        """Return what a Func reads, and the Funcs computed in its loops."""
        inside = [f, *(g for (ref, _), found in self.at.items() if ref.func == f.name for g in found)]
        own = [e for stage in range(len(f.updates) + 1) for e in stage_roots(f, stage)]
        return [*reads(own), *(r for g in inside[1:] for r in self._read_by(g))]

    def _realize_all(self, unit: list[Func]) -> list[Stmt]:
        """Return Funcs that share loops: the stages before those that do, the loops, and the stages after."""
        if len(unit) == 1:
            return self._realize(unit[0])
        shared = self.shared[unit[0].name]
        mine = {ref.func: ref.stage for ref in (shared.host, *(at for at, _ in shared.guests))}
        out: list[Stmt] = []
        for f in unit:
            out += self._zeros(f)
            for stage in range(mine[f.name]):
                out += self._specialized(StageRef(f.name, stage), self._nest(StageRef(f.name, stage), 0))
        loops = joined(shared, self.legal, self._inside)
        for ref in (shared.host, *(at for at, _ in shared.guests)):
            loops = self._specialized(ref, loops)
        out += loops
        for f in unit:
            for stage in range(mine[f.name] + 1, len(f.updates) + 1):
                out += self._specialized(StageRef(f.name, stage), self._nest(StageRef(f.name, stage), 0))
        return out

    def _zeros(self, f: Func) -> list[Stmt]:
        """Return loops that make all of an output 0, where it has cells outside its domain."""
        if f.where is None or f.name not in self.legal.pipeline.outputs:
            return []
        out: list[Stmt] = []
        for part, dtype in enumerate(f.dtypes):
            names = [build.local(f"{f.name}{MARK}zero{part}.{dim}") for dim in f.dims]
            zero = build.const(False if dtype.is_bool else 0.0 if dtype.is_float else 0, dtype)
            body = Block((Store(self._buffer(f, part), tuple(names), zero),))
            for n, i in reversed(list(zip(names, self.legal.placed[f.name].kept, strict=True))):
                body = Block((For(n, build.index(0), self.algebra.expr(self._extent(i)), LoopKind.SERIAL, body),))
            out += body.stmts
        return out

    def _realize(self, f: Func, skip: int = 0) -> list[Stmt]:
        out = self._zeros(f)
        for stage in range(len(f.updates) + 1):
            ref = StageRef(f.name, stage)
            out += self._specialized(ref, self._nest(ref, skip if stage == 0 else 0))
        return out

    def _specialized(self, ref: StageRef, stmts: list[Stmt]) -> list[Stmt]:
        """Return the code of a stage with a copy for each condition that it is specialized for, the first first."""
        said = [p for p in self.legal.resolved.nests[ref].permits if isinstance(p, Specialize)]
        for one in reversed(said):
            self.copies += 1
            cond = condition(one.cond, self.legal.pipeline, one.span)
            stmts = list(specialized(Block(tuple(stmts)), cond, self.copies).stmts)
        return stmts

    def _group(self, group: tuple[str, ...]) -> list[Stmt]:
        """Return serial loops over the first dims of all members, and in them each where it has that step."""
        last = self.funcs[group[-1]]
        prover = Prover(self.algebra, {}, self.legal.regions.context.at_least)
        steps: list[Local] = []
        times: list[Affine] = []
        ends: list[Affine] = []
        downs: list[bool] = []
        for k in range(last.together):
            downs.append(last.dims[k] in last.backwards)
            spans = [self._span(self.funcs[n], k, downs[k]) for n in group]
            lo, hi = spans[0].first, spans[0].last
            for i in spans[1:]:
                lo, hi = prover.minimum(lo, i.first), prover.maximum(hi, i.last)
            steps.append(build.local(f"{last.name}{MARK}step{k or ''}"))
            times.append(self.algebra.of(steps[k]) + lo)
            ends.append(hi)
        body = Block(tuple(s for n in group for s in self._member(self.funcs[n], steps, times, ends, downs)))
        for step, time, hi, down in reversed(list(zip(steps, times, ends, downs, strict=True))):
            extent = self.algebra.expr(hi - time + self.algebra.of(step) + 1)
            body = Block((For(step, build.index(0), extent, LoopKind.SERIAL, body, (), None, down),))
        return list(body.stmts)

    def _span(self, f: Func, k: int, down: bool) -> Interval:
        """Return the times at which `f` has a step of its dim `k`: its values, late as it is."""
        of, root = self.algebra.of, self.legal.points[StageRef(f.name, 0)].roots[k]
        late = _late(f, k, down)
        if names((root.lo, root.extent)) & set(f.dims):
            box = self.legal.placed[f.name].box[k]
            return Interval(box.first + late, box.last + late)
        return Interval(of(root.lo) + late, of(root.lo) + of(root.extent) - 1 + late)

    def _member(
        self, f: Func, steps: Sequence[Local], times: Sequence[Affine], ends: Sequence[Affine], downs: Sequence[bool]
    ) -> list[Stmt]:
        """Return what a member of a group does at one time, where it has that step."""
        if f.updates:
            raise InternalError(f"`{f.name}` of a group has updates, which is refused when frozen")
        ref, of = StageRef(f.name, 0), self.algebra.of
        found = self.legal.points[ref]
        block = Block(tuple(self._inside(ref, len(steps))))
        for k in reversed(range(len(steps))):
            loop, last = found.loops[k], ends[k] - _late(f, k, downs[k])
            start = of(found.values[f.dims[k]]) - of(loop.var)
            own = times[k] - _late(f, k, downs[k]) - start
            block = Block((Let(loop.var, self.algebra.expr(own)), *block.stmts))
            if own != of(steps[k]):
                block = Block((If(build.less_equal(build.index(0), self.algebra.expr(own)), block, Block()),))
            if last - start + 1 != of(loop.extent):
                block = Block((If(build.less(self.algebra.expr(own), loop.extent), block, Block()),))
        return list(block.stmts)

    def _nest(
        self, ref: StageRef, depth: int, moved: frozenset[int] = frozenset(), whole: frozenset[int] = frozenset()
    ) -> list[Stmt]:
        """Return the loops of a stage from `depth` on; `moved` and `whole` as in `_loop`.

        A Func that has no cells, since nothing reads it, has no loops either: those of an update may not be over cells.
        """
        if ref.func in self.unread:
            return []
        loops = self.legal.points[ref].loops
        if depth == len(loops):
            return self._inside(ref, depth)
        here = [at for at, s in enumerate(loops) if s.shift is not None and s.shift.outer == depth]
        loop = self._loop(ref, depth, moved, whole)
        if not here:
            some = build.less(build.index(0), loop.extent)
            return [loop if loops[depth].loop.upto is None else If(some, as_block(loop), Block())]
        shifts = [s.shift for s in loops if s.shift is not None and s.shift.outer == depth]
        cond = build.const(True, bool_)
        for shift in shifts:
            cond = build.both(cond, build.less_equal(build.index(shift.factor), shift.whole))
        full = self._loop(ref, depth, moved | frozenset(here), whole)
        stmts: tuple[Stmt, ...] = (copy_with_fresh_names(full, f"{MARK}full"),)
        if len(shifts) == 1 and shifts[0].alone and full.kind is not LoopKind.PARALLEL and not full.down:
            (shift,) = shifts
            runs = build.floordiv(shift.whole, shift.factor)
            some = build.less(build.mul(runs, shift.factor), shift.whole)
            steady = replace(self._loop(ref, depth, moved, whole | frozenset(here)), extent=runs)
            last = substitute(copy_with_fresh_names(full.body, f"{MARK}last"), {full.var.name: runs})
            stmts = (copy_with_fresh_names(steady, f"{MARK}full"), If(some, as_block(last), Block()))
        return [If(cond, as_block(*stmts), as_block(loop))]

    def _loop(self, ref: StageRef, depth: int, moved: frozenset[int], whole: frozenset[int] = frozenset()) -> For:
        """Return a loop of a stage; the runs of `moved` are moved where they must be, those of `whole` are full."""
        loop = self.legal.points[ref].loops[depth]
        body = Block(tuple(self._inside(ref, depth + 1, moved, whole)))
        start, extent = loop.start, loop.extent
        if depth in whole and loop.shift is not None:
            extent = build.index(loop.shift.factor)
        elif depth in moved and loop.shift is not None:
            start, extent = (
                build.minimum(build.sub(loop.shift.left, loop.shift.factor), 0),
                build.index(loop.shift.factor),
            )
        apart = depth in self.legal.apart.get(ref, frozenset())
        return For(
            loop.var, start, extent, loop.loop.kind, body, (), loop.width, loop.down, apart, loop.masked,
            loop.loop.cut,
        )  # fmt: skip

    def _inside(
        self, ref: StageRef, depth: int, moved: frozenset[int] = frozenset(), whole: frozenset[int] = frozenset()
    ) -> list[Stmt]:
        if ref.func in self.unread:
            return []
        out: list[Stmt] = []
        for f in self.kept.get((ref, depth), []):
            out += self._storage(f)
        for unit in self._units(self.at.get((ref, depth), [])):
            out += self._realize_all(unit)
        for fetch in self.fetched.get((ref, depth), []):
            out += self._fetch(fetch)
        if depth < len(self.legal.points[ref].loops):
            return out + self._nest(ref, depth, moved, whole)
        return out + self._point(ref)

    def _fetch(self, fetch: Fetch) -> list[Stmt]:
        name, f = f"{fetch.stage}.{fetch.source}", self.funcs.get(fetch.source)
        if f is None:
            (given,) = (i for i in self.legal.pipeline.inputs if i.name == fetch.source)
            whole = [(self.legal.holders.get(given.name, given.name), given.dtype)]
            return fetches(whole, fetch.box, self.algebra, lambda cell: tuple(map(self.algebra.expr, cell)), name)
        parts = [(self._buffer(f, k), dtype) for k, dtype in enumerate(f.dtypes)]
        return fetches(
            parts, fetch.box, self.algebra,
            lambda cell: self._laid(f, tuple(map(self.algebra.expr, self._cell(f, cell)))), name,
        )  # fmt: skip

    def _point(self, ref: StageRef) -> list[Stmt]:
        """Return the stores of one point of a stage."""
        f = self.funcs[ref.func]
        found = self.legal.points[ref]
        env = dict(found.values)
        update = f.updates[ref.stage - 1] if ref.stage else None
        index: tuple[Expr, ...] = tuple(Var(INDEX, d) for d in f.dims) if update is None else update.index
        values = inner_values(f) if update is None else update.values
        where = [] if update is None or update.where is None else [update.where]
        kept = self.legal.kept.get(f.name)
        if kept is not None and update is None:
            values, where = kept.values, [kept.needed]
        lowered = self._lowered(f, ref.stage, (*values, *index, *where), env, update, found.inside)
        written = lowered[len(values) : len(values) + len(index)]
        places = map(self.algebra.expr, self._cell(f, [self.algebra.of(i) for i in written]))
        cells = tuple(simplify_all(self._laid(f, tuple(places))))
        span = f.span if update is None else update.span
        stmts: list[Stmt] = []
        results = list(lowered[: len(values)])
        if len(results) > 1:
            for part, value in enumerate(results):
                name = build.local(f"{ref}{MARK}value{part}", value.dtype)
                stmts.append(Let(name, value))
                results[part] = name
        atomic = self.legal.atomic.get(ref)
        streams = any(isinstance(p, Stream) for p in self.legal.resolved.nests[ref].permits)
        if atomic is not None:
            results = [combined(results[0], self._buffer(f, 0), cells)]
        for part, value in enumerate(results):
            stmts.append(Store(self._buffer(f, part), cells, value, (), atomic, streams, span, str(ref)))
        block = Block(tuple(stmts))
        for cond in reversed([*found.guards, *lowered[len(values) + len(index) :]]):
            block = Block((If(cond, block, Block()),))
        return list(block.stmts)

    def _lowered(
        self, f: Func, stage: int, roots: tuple[Expr, ...], env: dict[str, Expr], update: Update | None,
        inside: tuple[Expr, ...],
    ) -> tuple[Expr, ...]:  # fmt: skip
        """Return `roots` over loop variables and buffers; reads that a condition keeps inside get it as their mask.

        All reads have `inside` as one, which says that the point is asked for.
        """
        always = self._always(f, stage)
        masks: dict[int, tuple[Expr, ...]] = {}
        # What is read was bounded over all of the Func, and again where it is computed: either may have narrowed it.
        boxes = dict.fromkeys((self.legal.placed[f.name].box, self.legal.regions.boxes[f.name]))
        bounders = [self._bounder(f, stage, box) for box in boxes]
        held = contexts(roots, always, self.algebra)
        # What a condition reads itself is read whether it holds or not.
        asked = contexts(() if update is None or update.where is None else (update.where,), NOTHING, self.algebra)
        for at, (node, facts) in (held | asked).items():
            known = NOTHING if at in asked else always
            if isinstance(node, Read) and facts - known:
                index = [self.algebra.of(i) for i in node.index]
                if any(b.tightens(i, facts) for b in bounders for i in index):
                    masks[id(node)] = self._conditions(facts - known)
                elif any(not i.terms for i in index):
                    masks[id(node)] = self._conditions(self._of_sizes(facts - known))
        new: dict[int, Expr] = {}
        places: dict[Affine, Expr] = {}

        def place(i: Affine) -> Expr:
            if i not in places:
                places[i] = self.algebra.expr(i)
            return places[i]

        for node in postorder(roots):
            fresh = with_children(node, tuple(new[id(c)] for c in children(node)))
            if isinstance(node, Read):
                assert isinstance(fresh, Read)
                mask = tuple(self._renamed(m, env) for m in masks.get(id(node), ()))
                new[id(node)] = self._load(fresh, (*mask, *inside), place)
            elif (beyond := self._beyond(node, bounders[0])) is not None:
                new[id(node)] = _wrapped(fresh, beyond)
            else:
                new[id(node)] = _leaf(fresh, env)
        return simplify_all([new[id(root)] for root in roots])

    def _bounder(self, f: Func, stage: int, box: Box) -> Bounder:
        """Return what finds intervals in a stage of `f` that is computed over `box`."""
        context = self.legal.regions.context
        ranges = stage_ranges(f, stage, dict(zip(f.dims, box, strict=True)), self.algebra, context.at_least)
        return context.bounder(ranges, Prover(self.algebra, {}, context.at_least))

    def _beyond(self, node: Expr, bounder: Bounder) -> int | None:
        """Return by how much `left` of a remainder `left % n` goes beyond the `n` positions; None where it is not seen.

        So it is for `x + d` where `x` takes all positions: a lower end of at least d proves that n is not 0.
        """
        match node:
            case Binary(op=BinaryOp.MOD, left=left, right=right) if node.dtype is int64:
                found = bounder.interval(self.algebra.of(left), frozenset())
            case _:
                return None
        if found.lo is None or found.hi is None or found.lo.terms or build.integer(right) is not None:
            return None
        past = found.hi - self.algebra.of(right) + 1
        return past.const if not past.terms and abs(past.const) <= NEAR and found.lo.const >= past.const else None

    def _always(self, f: Func, stage: int) -> Facts:
        if not stage:
            return frozenset(domain_facts(f, 0, self.algebra))
        return self.legal.regions.context.accesses[f.name][stage][-1].facts

    def _of_sizes(self, facts: Facts) -> Facts:
        """Return those of `facts` that may say that an array is so long that it has a constant index.

        An inlined Func is read at one, where only part of that Func's values read further.
        """
        atoms = {fact: [self.algebra.atom(number) for number, _ in fact.sum.terms] for fact in facts}
        return frozenset(
            fact for fact, found in atoms.items() if any(isinstance(n, Size | Param) for n in postorder(found))
        )

    def _conditions(self, facts: Facts) -> tuple[Expr, ...]:
        ordered = sorted(facts, key=lambda fact: (fact.unequal, fact.sum.terms, fact.sum.const))
        return tuple(self._condition(fact) for fact in ordered)

    def _condition(self, fact: Fact) -> Expr:
        if fact.unequal:
            return build.binary(BinaryOp.NE, self.algebra.expr(fact.sum), build.index(0))
        return build.less_equal(build.index(0), self.algebra.expr(fact.sum))

    def _renamed(self, cond: Expr, env: dict[str, Expr]) -> Expr:
        return rewrite_all((cond,), lambda node: _leaf(node, env))[0]

    def _cell(self, f: Func, index: list[Affine]) -> list[Affine]:
        """Return where in the storage of `f` its cell `index` lies."""
        holder = self.legal.holders.get(f.name, f.name)
        if holder not in self.funcs:
            return index
        placed = self.legal.placed[holder]
        cell = [i - box.first for i, box in zip(index, placed.kept, strict=True)]
        return [i if n is None else self.algebra.remainder(i, n) for i, n in zip(cell, placed.fold, strict=True)]

    def _load(self, read: Read, mask: tuple[Expr, ...], place: Callable[[Affine], Expr]) -> Load:
        f = self.funcs.get(read.source)
        index = [self.algebra.of(i) for i in read.index]
        if f is None:
            held = self.legal.holders.get(read.source, read.source)
            name = self._buffer(self.funcs[held], 0) if held in self.funcs else held
            return Load(read.dtype, name, tuple(map(place, index)), mask, span=read.span)
        cells = self._laid(f, tuple(map(place, self._cell(f, index))))
        return Load(read.dtype, self._buffer(f, read.part), cells, mask, span=read.span)


def _up(a: Affine, n: int, algebra: Algebra) -> Affine:
    """Return the next multiple of `n` from `a` on."""
    return a if n == 1 else algebra.divided(a + (n - 1), n) * n


def _late(f: Func, k: int, down: bool) -> int:
    return 0 if k else -f.lag if down else f.lag


def _leaf(node: Expr, env: dict[str, Expr]) -> Expr:
    """Return a node of an algorithm as one of loops: variables become what loops count, sizes positions."""
    match node:
        case Var(name=name):
            return build.cast(env[name], node.dtype)
        case Size() if node.dtype is not INDEX:
            return build.cast(Size(INDEX, node.array, node.dim), node.dtype)
        case _:
            return node


def _wrapped(node: Expr, beyond: int) -> Expr:
    """Return a remainder whose left side is `beyond` the end by conditions, which loops are cut at, not by division."""
    assert isinstance(node, Binary)
    at, size = node.left, node.right
    for _ in range(abs(beyond)):
        if beyond > 0:
            at = build.select(build.less(at, size), at, build.sub(at, size))
        else:
            at = build.select(build.less_equal(build.const(0, int64), at), at, build.add(at, size))
    return at


def _part(f: Func, part: int) -> str:
    return part_name(f.name, len(f.dtypes), part)
