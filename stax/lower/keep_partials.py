"""Give the iterations of loops marked `apart` accumulators of their own, combined when the loops around are done.

before                                     after
    for r in 0 +: n:                           acc = scratch 8
        for l in 0 +: 8 vector apart:          for l in 0 +: 8 vector: acc[l] = -0.0
            f[i] = f[i] + a[r * 8 + l]         for r in 0 +: n:
                                                   for l in 0 +: 8 vector:
                                                       acc[l] = acc[l] + a[r * 8 + l]
                                               for l in 0 +: 8 vector apart: f[i] = f[i] + acc[l]

Loops around that name the cell, inside of one that does not, give the accumulators dims of their own: a tile of them.
A loop that is `masked` has accumulators for all of its `width`; those of iterations that do not exist stay as they are.

Needs: constant extents of VECTOR and UNROLL loops, or `masked` ones (`partition_loops`). Gives: the same sums in
another order; loops that are still `apart` combine their lanes at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stax.algorithm.nodes import MARK
from stax.expr import build
from stax.expr.nodes import BinaryOp, Expr, Load, Local
from stax.expr.walk import names, rewrite
from stax.loops.nodes import Allocate, Block, Buffer, For, If, LoopKind, Program, Role, Stmt, Store
from stax.loops.walk import as_block, children, substitute, with_children
from stax.lower.combined import operator_of
from stax.lower.vectorize_loops import below

MOST_CELLS = 1024
MOST_IN_BLOCK = 1 << 15


def keep_partials(program: Program, blocks: bool = False, but: frozenset[str] = frozenset()) -> Program:
    """Return `program` with partial results apart, as many as registers or `blocks` hold; stages `but` stay."""
    return replace(program, body=as_block(_Keeper(blocks, but).stmt(program.body)))


@dataclass(frozen=True, slots=True)
class _Spine:
    """Loops and branches, outermost first, each the whole body of the one before, around one store."""

    around: tuple[For | If, ...]
    store: Store
    op: BinaryOp


class _Keeper:
    def __init__(self, blocks: bool, but: frozenset[str]) -> None:
        self.count = 0
        self.blocks, self.but = blocks, but
        self.most = MOST_IN_BLOCK if blocks else MOST_CELLS

    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, For):
            spine = _spine(stmt)
            if spine is not None and spine.store.stage not in self.but:
                made = self._kept(spine)
                return stmt if made is None else made
        return with_children(stmt, tuple(self.stmt(child) for child in children(stmt)))

    def _kept(self, spine: _Spine) -> Block | None:
        for at, one in enumerate(spine.around):
            if isinstance(one, For):
                made = self._from(spine, at)
                if made is not None:
                    return _inside(spine.around[:at], made)
        return None

    def _from(self, spine: _Spine, at: int) -> Block | None:
        """Return the loops from `at` on with accumulators around them; None where they cannot be had there."""
        cell = names(spine.store.index)
        inner = spine.around[at:]
        loops = [s for s in inner if isinstance(s, For)]
        first = loops[0]
        reduces = first.kind in (LoopKind.SERIAL, LoopKind.UNROLL) or _apart(first)
        if first.var.name in cell or not reduces or any(s.kind is LoopKind.PARALLEL for s in loops):
            return None
        dims = [s for s in loops if s.var.name in cell or _apart(s)]
        extents = [_size(s) for s in dims]
        total = 1
        for n in extents:
            total *= n if n is not None else self.most + 1
        summed = {s.var.name for s in loops if s.var.name not in cell}
        inside = {s.var.name for s in dims}
        if not any(_apart(s) for s in loops) or not 0 < total <= self.most:
            return None
        kept: list[For | If] = []
        for s in inner:
            if isinstance(s, If):
                used = names((s.cond,))
                if not used & summed:
                    kept.append(s)
                elif used & cell & {d.var.name for d in dims}:
                    return None
            elif s in dims:
                if names((s.start,)) & {d.var.name for d in loops}:
                    return None
                kept.append(s)
        if any(names((s.cond,)) & (summed - inside) for s in kept if isinstance(s, If)):
            return None
        return self._made(spine, inner, kept, dims, [n for n in extents if n is not None])

    def _made(
        self, spine: _Spine, inner: tuple[For | If, ...], kept: list[For | If], dims: list[For], extents: list[int]
    ) -> Block:
        self.count += 1
        store, op = spine.store, spine.op
        dtype = store.value.dtype
        name = f"{store.buffer}{MARK}acc{self.count}"
        shape = tuple(build.index(n) for n in extents)
        place = tuple(build.sub(s.var, s.start) for s in dims)
        part = Load(dtype, name, place)
        open_ = [s for s in dims if _apart(s) and _open(s)]
        ends = [below(s.extent, _size(s) or 0) if self.blocks else s.extent for s in open_]
        exists = tuple(build.less(build.sub(s.var, s.start), end) for s, end in zip(open_, ends, strict=True))
        lanes = {s.var.name for s in open_}
        whole = {id(s): _filled(s) for s in dims if _apart(s)}
        inner = tuple(whole.get(id(s), s) for s in inner)
        kept, dims = [whole.get(id(s), s) for s in kept], [whole.get(id(s), s) for s in dims]

        def rule(node: Expr) -> Expr:
            if not isinstance(node, Load):
                return node
            if node.buffer == store.buffer:
                return part
            return replace(node, mask=(*node.mask, *exists)) if names((*node.index, *node.mask)) & lanes else node

        value = rewrite(store.value, rule)
        for cond in exists:
            value = build.select(cond, value, part)
        loops = [s for s in kept if isinstance(s, For)]
        parts: list[Stmt] = [Allocate(Buffer(name, dtype, shape, Role.SCRATCH))]
        parts.append(self._fresh(_nest(loops, Store(name, place, build.identity(op, dtype), stage=store.stage)), "c"))
        parts.append(_inside(inner, Block((replace(store, buffer=name, index=place, value=value),))))
        folded = sorted((s for s in dims if s.apart), key=lambda s: s.kind is LoopKind.VECTOR)[:-1]
        for k, one in enumerate(folded):
            gone = {id(s) for s in folded[:k]}
            source = _first(place, dims, gone)
            goal = _first(place, dims, gone | {id(one)})
            more = replace(one, start=build.add(one.start, 1), extent=build.sub(one.extent, 1), width=_one_less(one))
            around = [more if s is one else s for s in loops if id(s) not in gone]
            value = build.binary(op, Load(dtype, name, goal), Load(dtype, name, source))
            parts.append(self._fresh(_nest(around, Store(name, goal, value, stage=store.stage)), f"f{k}"))
        gone = {id(s) for s in folded}
        part = Load(dtype, name, _first(place, dims, gone))
        cell = Load(dtype, store.buffer, store.index)
        last = tuple(s for s in kept if id(s) not in gone)
        join = _inside(last, Block((replace(store, value=build.binary(op, cell, part)),)), last=True)
        return Block((Block((*parts, self._fresh(join, "j"))),))

    def _fresh(self, stmt: Stmt, word: str) -> Stmt:
        """Return `stmt` with loop variables of its own."""
        if isinstance(stmt, For):
            var = Local(stmt.var.dtype, f"{stmt.var.name}{MARK}{word}{self.count}")
            return replace(stmt, var=var, body=as_block(self._fresh(substitute(stmt.body, {stmt.var.name: var}), word)))
        return with_children(stmt, tuple(self._fresh(child, word) for child in children(stmt)))


def _first(place: tuple[Expr, ...], dims: list[For], gone: set[int]) -> tuple[Expr, ...]:
    """Return `place` at 0 in the dims of the loops `gone`."""
    return tuple(build.index(0) if id(s) in gone else p for p, s in zip(place, dims, strict=True))


def _apart(loop: For) -> bool:
    return loop.apart and loop.kind in (LoopKind.VECTOR, LoopKind.UNROLL) and _size(loop) is not None


def _open(loop: For) -> bool:
    return build.integer(loop.extent) is None


def _size(loop: For) -> int | None:
    """Return how many accumulators the iterations of `loop` have."""
    return loop.width if _open(loop) and loop.masked else build.integer(loop.extent)


def _filled(loop: For) -> For:
    """Return `loop` with all the iterations of its width."""
    return replace(loop, extent=build.index(_size(loop) or 0), masked=False) if _open(loop) else loop


def _spine(loop: For) -> _Spine | None:
    around: list[For | If] = []
    stmt: Stmt = loop
    while True:
        match stmt:
            case For(carries=()):
                around.append(stmt)
                stmt = stmt.body
            case If(then=then, orelse=Block(stmts=())):
                around.append(stmt)
                stmt = then
            case Block(stmts=(only,)):
                stmt = only
            case Store():
                op = operator_of(stmt)
                apart = any(isinstance(s, For) and _apart(s) for s in around)
                return None if op is None or not apart else _Spine(tuple(around), stmt, op)
            case _:
                return None


def _one_less(loop: For) -> int | None:
    return None if loop.width is None else max(1, loop.width - 1)


def _nest(loops: list[For], body: Stmt) -> Stmt:
    for loop in reversed(loops):
        body = replace(loop, body=as_block(body), apart=False)
    return body


def _inside(around: tuple[For | If, ...], body: Block, last: bool = False) -> Block:
    """Return `body` inside `around`, whose loops no longer combine; with `last`, as they are."""
    for s in reversed(around):
        if isinstance(s, For):
            body = Block((replace(s, body=body, apart=s.apart and last),))
        else:
            body = Block((replace(s, then=body),))
    return body
