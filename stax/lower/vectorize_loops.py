"""Turn each loop marked `vector` into an axis of its body's values.

before                                     after
    for x in 0 +: 16 vector:                   g[base + ramp(x)] = a[base + ramp(x)] * 2
        g[base + x] = a[base + x] * 2

A branch on lanes becomes a mask on what it loads and stores; what lanes of a loop marked `apart` add to one cell is
reduced. A loop that is `masked` may have any extent up to its width. With `single`, only the innermost vector loop of a
nest becomes an axis, and those around it are unrolled: registers have one direction.

Needs: constant extents of VECTOR loops; with `masked`, an extent below `width` masks the rest.
Gives: no VECTOR loop; one that has no such form (storage of its own, a bound that differs by lane) is serial.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from stax import dtypes
from stax.expr import build
from stax.expr.affine import Algebra
from stax.expr.nodes import INDEX, Axes, Axis, Binary, BinaryOp, Expr, Load, Local, Ramp, Reduce
from stax.expr.walk import children, postorder, with_children
from stax.loops.nodes import (
    Allocate,
    Block,
    Carry,
    For,
    If,
    Let,
    LoopKind,
    Prefetch,
    Program,
    Serial,
    Stmt,
    Store,
    Timed,
)
from stax.loops.walk import statements
from stax.lower.combined import combined, operator_of


def vectorize_loops(program: Program, single: bool = True) -> Program:
    """Return `program` with axes for loops."""
    pass_ = _Vectorizer(single)
    body = pass_.block(program.body)
    return replace(program, body=body, axes=(*program.axes, *pass_.axes), serial=(*program.serial, *pass_.serial))


class _NoForm(Exception):
    """A loop that cannot be lanes."""


@dataclass(frozen=True, slots=True)
class _Lanes:
    """The axis being made, what names became, and the lane conditions around.

    `guard` tells the lanes that exist; the first always does, so what does not vary along the axis needs no guard.
    With `apart`, a store in a cell that all lanes share combines them.
    """

    axis: Axis
    new: Mapping[str, Expr]
    guard: tuple[Expr, ...] = ()
    mask: tuple[Expr, ...] = ()
    apart: bool = False


class _Vectorizer:
    def __init__(self, single: bool) -> None:
        self.single = single
        self.axes: list[Axis] = []
        self.serial: list[Serial] = []

    def block(self, block: Block) -> Block:
        out: list[Stmt] = []
        for stmt in block.stmts:
            out += self.stmt(stmt).stmts
        return Block(tuple(out))

    def stmt(self, stmt: Stmt) -> Block:
        match stmt:
            case Block():
                return self.block(stmt)
            case If(cond=cond, then=then, orelse=orelse):
                return Block((If(cond, self.block(then), self.block(orelse)),))
            case For(kind=LoopKind.VECTOR):
                return self._lanes(stmt)
            case For(body=body):
                return Block((replace(stmt, body=self.block(body)),))
            case Timed(body=body):
                return Block((replace(stmt, body=self.block(body)),))
            case Allocate() | Let() | Store() | Prefetch():
                return Block((stmt,))

    def _lanes(self, loop: For) -> Block:
        around = any(isinstance(s, For) and s.kind is LoopKind.VECTOR for s in statements(loop.body))
        if self.single and around:
            return self.stmt(replace(loop, kind=LoopKind.UNROLL))
        size = build.integer(loop.extent)
        width = loop.width if size is None else size
        if width is None or (size is None and self.single and not loop.masked) or loop.carries:
            self.serial.append(Serial(loop.var.name, "it hands values on" if loop.carries else "its extent varies"))
            return self.stmt(replace(loop, kind=LoopKind.SERIAL))
        if width == 1 and size == 1:
            return self.stmt(replace(loop, kind=LoopKind.SERIAL))
        axis = Axis(loop.var.name, width)
        ramp = Ramp(INDEX, axes=(axis,))
        place = build.add(build.spread(loop.start, (axis,)), ramp)
        guard: tuple[Expr, ...] = ()
        if size is None:
            guard = (
                build.less(ramp, build.spread(loop.extent if self.single else below(loop.extent, width), (axis,))),
            )
        at = len(self.axes)
        self.axes.append(axis)
        inner = self.block(loop.body)
        try:
            return _Widener(self._order()).block(inner, _Lanes(axis, {loop.var.name: place}, guard, apart=loop.apart))
        except _NoForm as error:
            del self.axes[at:]
            self.serial.append(Serial(loop.var.name, str(error)))
            return self.stmt(replace(loop, kind=LoopKind.SERIAL))

    def _order(self) -> dict[Axis, int]:
        return {axis: k for k, axis in enumerate(self.axes)}


class _Widener:
    def __init__(self, order: Mapping[Axis, int]) -> None:
        self.order = order

    def block(self, block: Block, lanes: _Lanes) -> Block:
        out: list[Stmt] = []
        for stmt in block.stmts:
            match stmt:
                case Let(name=name, value=value):
                    fresh = self._expr(value, lanes)
                    wide = replace(name, axes=fresh.axes)
                    lanes = replace(lanes, new={**lanes.new, name.name: wide})
                    out.append(Let(wide, fresh))
                case Block():
                    out += self.block(stmt, lanes).stmts
                case Store():
                    out.append(self._store(stmt, lanes))
                case Prefetch():
                    pass
                case If():
                    out += self._branch(stmt, lanes)
                case For():
                    out.append(self._loop(stmt, lanes))
                    for carry in stmt.carries:
                        made = next(c for c in _carries(out[-1]) if c.name.name == carry.name.name)
                        lanes = replace(lanes, new={**lanes.new, carry.name.name: made.name})
                case Timed(body=body):
                    out.append(replace(stmt, body=self.block(body, lanes)))
                case Allocate():
                    raise _NoForm("there is storage of its own inside")
        return Block(tuple(out))

    def _branch(self, stmt: If, lanes: _Lanes) -> list[Stmt]:
        cond = self._expr(stmt.cond, lanes)
        if lanes.axis not in cond.axes:
            return [If(cond, self.block(stmt.then, lanes), self.block(stmt.orelse, lanes))]
        then = self.block(stmt.then, replace(lanes, mask=(*lanes.mask, cond)))
        orelse = self.block(stmt.orelse, replace(lanes, mask=(*lanes.mask, build.negate(cond))))
        return [*then.stmts, *orelse.stmts]

    def _loop(self, stmt: For, lanes: _Lanes) -> For:
        start, extent = self._expr(stmt.start, lanes), self._expr(stmt.extent, lanes)
        if start.axes or extent.axes or stmt.kind is LoopKind.PARALLEL:
            raise _NoForm("a loop inside has bounds that differ from lane to lane, or is parallel")
        if not stmt.carries:
            return replace(stmt, start=start, extent=extent, body=self.block(stmt.body, lanes))
        inits = [self._expr(c.init, lanes) for c in stmt.carries]
        axes = self._union([i.axes for i in inits] + [(lanes.axis,)])
        names = [replace(c.name, axes=axes) for c in stmt.carries]
        inner = replace(lanes, new={**lanes.new, **{n.name: n for n in names}})
        body = self.block(stmt.body, inner)
        carries = tuple(
            Carry(n, build.spread(i, axes), build.spread(self._expr(c.next, inner), axes))
            for n, i, c in zip(names, inits, stmt.carries, strict=True)
        )
        return replace(stmt, start=start, extent=extent, body=body, carries=carries)

    def _store(self, stmt: Store, lanes: _Lanes) -> Store:
        value = self._expr(stmt.value, lanes)
        index = tuple(self._expr(i, lanes) for i in stmt.index)
        mask = (*(self._expr(m, lanes) for m in stmt.mask), *lanes.mask, *lanes.guard)
        if not any(lanes.axis in i.axes for i in index):
            return self._shared(stmt, lanes)
        axes = self._union([value.axes, *(i.axes for i in index), *(m.axes for m in mask)])
        return replace(stmt, value=build.spread(value, axes), index=index, mask=mask)

    def _shared(self, stmt: Store, lanes: _Lanes) -> Store:
        """Return the store of what all lanes combine into one cell."""
        op = operator_of(stmt) if lanes.apart else None
        if op is None:
            raise _NoForm("all lanes store in one cell")
        index = tuple(self._expr(i, lanes) for i in stmt.index)
        value = self._expr(combined(stmt.value, stmt.buffer, stmt.index), lanes)
        where = (*lanes.mask, *lanes.guard)
        own = self._union([value.axes, (lanes.axis,), *(w.axes for w in where)])
        if any(lanes.axis not in w.axes for w in lanes.mask) or self._union(i.axes for i in index):
            raise _NoForm("all lanes store in one cell, under conditions that do not tell them apart")
        dtype, wide = value.dtype, build.spread(value, own)
        small = dtype.is_integer and dtype.bits < 32 and op in (BinaryOp.ADD, BinaryOp.MUL)
        if small:
            wide = build.cast(wide, dtypes.int32)
        rest = tuple(a for a in own if a is not lanes.axis)
        total: Expr = Reduce(wide.dtype, op, wide, lanes.axis, where, axes=rest)
        cell = Load(dtype, stmt.buffer, index)
        return replace(stmt, index=index, value=build.binary(op, cell, build.cast(total, dtype)))

    def _expr(self, root: Expr, lanes: _Lanes) -> Expr:
        new: dict[int, Expr] = {}
        for node in postorder((root,)):
            new[id(node)] = self._node(node, tuple(new[id(c)] for c in children(node)), lanes)
        return new[id(root)]

    def _node(self, node: Expr, below: tuple[Expr, ...], lanes: _Lanes) -> Expr:
        if isinstance(node, Local):
            return lanes.new.get(node.name, node)
        if isinstance(node, Load):
            index, mask = below[: len(node.index)], (*below[len(node.index) :], *lanes.mask)
            if any(lanes.axis in e.axes for e in (*index, *mask)):
                mask = (*mask, *lanes.guard)
            if not index and node.other is None:  # one cell, always there: lanes need no mask
                mask = tuple(m for m in mask if not m.axes)
            own = self._union([e.axes for e in (*index, *mask)])
            if not index and own:
                raise _NoForm("a value without dims is loaded under a condition on lanes")
            if own != self._union([i.axes for i in index]):
                index = (build.spread(index[0], own), *index[1:])
            return replace(node, index=index, mask=mask, axes=own)
        if not below:
            return node
        if isinstance(node, Reduce):
            whole = self._union([c.axes for c in below])
            value = build.spread(below[0], whole)
            rest = tuple(a for a in whole if a != node.axis)
            return replace(node, value=value, where=below[1:], axes=rest)
        axes = self._union([c.axes for c in below])
        return replace(with_children(node, tuple(build.spread(c, axes) for c in below)), axes=axes)

    def _union(self, many: Iterable[Axes]) -> Axes:
        found = {axis for axes in many for axis in axes}
        return tuple(sorted(found, key=lambda a: self.order[a]))


def below(extent: Expr, width: int) -> Expr:
    """Return what tells the lanes that exist as `extent` does, which is a minimum with the number of lanes."""
    algebra = Algebra()
    whole = algebra.of(extent)
    for number, factor in whole.terms:
        atom = algebra.atom(number)
        if factor == 1 and isinstance(atom, Binary) and atom.op is BinaryOp.MIN:
            rest = whole.without(number)
            for arm, other in ((atom.left, atom.right), (atom.right, atom.left)):
                full = rest + algebra.of(arm)
                if not full.terms and full.const == width:
                    return below(algebra.expr(rest + algebra.of(other)), width)
    return extent


def _carries(stmt: Stmt) -> tuple[Carry, ...]:
    return stmt.carries if isinstance(stmt, For) else ()
