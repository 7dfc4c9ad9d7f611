"""What holds of every loop program; `verify` raises InternalError with the first thing that does not.

1. A name is bound once on a path, before its uses, and every use has its type; the branches of an If may repeat names.
2. Params and Sizes are among the program's scalars, buffers among its arguments or allocated around the use.
3. Operands agree in dtype and axes; positions, sizes and bounds are `index`, masks bool, bounds and branches scalar.
4. Axes of every value are a subsequence of the program's, so that the order of a tile is never a question.
5. A load has the axes of its index; a plain store is indexed by all axes of its value, else two lanes write one cell.
   Masks vary only where the access does.
6. Sums and products over lanes are of 32 bits or more. Carries enter and leave with one type; parallel loops have none.
7. VECTOR and UNROLL loops have a width, which a constant extent does not exceed.
8. Inputs and tables are not written.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import assert_never

from stax.dtypes import DType
from stax.errors import InternalError
from stax.expr import build
from stax.expr.nodes import (
    COMPARES,
    Axes,
    Axis,
    Binary,
    BinaryOp,
    Bitcast,
    Broadcast,
    Call,
    Cast,
    Const,
    Dot,
    Expr,
    Load,
    Local,
    Param,
    Ramp,
    Read,
    Reduce,
    Select,
    Size,
    Unary,
    UnaryOp,
    Var,
)  # fmt: skip
from stax.expr.walk import children
from stax.loops import walk
from stax.loops.nodes import (
    Allocate,
    Block,
    Buffer,
    For,
    If,
    Let,
    LoopKind,
    Prefetch,
    Program,
    Role,
    Stmt,
    Store,
    Timed,
)
from stax.loops.show import axes_text, show_expr, show_stmt

_INTEGERS_ONLY = frozenset({BinaryOp.SHL, BinaryOp.SHR})
_BITWISE = frozenset({BinaryOp.AND, BinaryOp.OR, BinaryOp.XOR})
_ATOMIC = frozenset({BinaryOp.ADD, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX, *_BITWISE})
_SUMS = frozenset({BinaryOp.ADD, BinaryOp.MUL})
_NEEDS_WIDTH = frozenset({LoopKind.VECTOR, LoopKind.UNROLL})


def verify(program: Program) -> None:
    """Check `program`; raise InternalError naming what is wrong, and where, if anything is."""
    _Verifier(program).program()


class _Broken(Exception):
    """A rule does not hold."""


def _need(holds: bool, message: str) -> None:
    if not holds:
        raise _Broken(message)


class _Scope:
    """What may be used here. A node found right here is right in every scope inside, and not looked at again."""

    def __init__(self, outer: _Scope | None = None) -> None:
        self._outer = outer
        self.locals: dict[str, Local] = dict(outer.locals) if outer else {}
        self.buffers: dict[str, Buffer] = dict(outer.buffers) if outer else {}
        self._right: dict[int, Expr] = {}

    def knows(self, node: Expr) -> bool:
        scope: _Scope | None = self
        while scope is not None:
            if id(node) in scope._right:
                return True
            scope = scope._outer
        return False

    def note(self, node: Expr) -> None:
        self._right[id(node)] = node


class _Verifier:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._place = {axis: k for k, axis in enumerate(program.axes)}
        self._params = {s.name: s for s in program.scalars if isinstance(s, Param)}
        self._sizes = {(s.array, s.dim) for s in program.scalars if isinstance(s, Size)}

    def program(self) -> None:
        program = self._program
        try:
            names = [a.name for a in program.axes]
            _need(len(set(names)) == len(names), "two axes of one name")
            names = [b.name for b in program.buffers]
            _need(len(set(names)) == len(names), "two arguments of one name")
            ranks = {b.name: len(b.shape) for b in program.buffers}
            self._sizes |= {(name, d) for name, rank in ranks.items() for d in range(rank)}
            scope = _Scope()
            for buffer in program.buffers:
                self._bounds(buffer.shape, scope, f"the shape of `{buffer.name}`")
            scope.buffers = {b.name: b for b in program.buffers}
        except _Broken as broken:
            raise InternalError(f"loop program `{program.name}` is malformed: {broken}") from None
        self._sizes = {(s.array, s.dim) for s in program.scalars if isinstance(s, Size)}
        self._stmt(program.body, scope, set(names))

    def _stmt(self, stmt: Stmt, scope: _Scope, used: set[str]) -> None:
        """Check `stmt`; what it binds is added to `scope`, and to `used`, which no inner scope forgets."""
        if isinstance(stmt, Timed):
            self._stmt(stmt.body, scope, used)
            return
        if isinstance(stmt, Block):
            for s in stmt.stmts:
                self._stmt(s, scope, used)
            return
        try:
            inner = self._enter(stmt, scope, used)
        except _Broken as broken:
            raise self._error(broken, stmt) from None
        if isinstance(stmt, For):
            self._stmt(stmt.body, inner, used)
            try:
                self._leave(stmt, scope, inner)
            except _Broken as broken:
                raise self._error(broken, stmt) from None
        elif isinstance(stmt, If):
            either = set(used), set(used)
            self._stmt(stmt.then, _Scope(scope), either[0])
            self._stmt(stmt.orelse, _Scope(scope), either[1])
            used |= either[0] | either[1]

    def _enter(self, stmt: Allocate | Let | Store | Prefetch | For | If, scope: _Scope, used: set[str]) -> _Scope:
        """Check all of `stmt` but what is below it; return the scope of its body."""
        match stmt:
            case Allocate(buffer=buffer):
                _need(buffer.role in (Role.SCRATCH, Role.TABLE), f"`{buffer.name}` is an argument, allocated")
                self._bounds(buffer.shape, scope, f"the shape of `{buffer.name}`")
                _need(buffer.name not in used, f"`{buffer.name}` is allocated twice")
                used.add(buffer.name)
                scope.buffers[buffer.name] = buffer
            case Let(name=name, value=value):
                self._expr(value, scope)
                _need(_alike(name, value), f"`{name.name}` is {_type(name)}, bound to {_type(value)}")
                self._bind(name, scope, used)
            case Store():
                self._store(stmt, scope)
            case Prefetch(buffer=buffer, index=index):
                self._access(buffer, index, (), scope)
            case For(var=var, start=start, extent=extent, carries=carries):
                self._bounds((start, extent), scope, f"the bounds of `{var.name}`")
                _need(var.dtype.name == "index" and not var.axes, f"loop variable `{var.name}` is no scalar index")
                for carry in carries:
                    self._expr(carry.init, scope)
                    _need(_alike(carry.name, carry.init), f"`{carry.name.name}` is {_type(carry.name)}, but enters "
                          f"as {_type(carry.init)}")  # fmt: skip
                _need(stmt.kind is not LoopKind.PARALLEL or not carries, f"parallel `{var.name}` carries a value")
                if stmt.kind in _NEEDS_WIDTH:
                    _need(stmt.width is not None and stmt.width > 0, f"{stmt.kind.value} `{var.name}` has no width")
                    known = build.integer(extent)
                    fits = known is None or stmt.width is None or known <= stmt.width
                    _need(fits, f"`{var.name}` runs {known} times, over its width {stmt.width}")
                inner = _Scope(scope)
                self._bind(var, inner, used)
                for carry in carries:
                    self._bind(carry.name, inner, used)
                return inner
            case If(cond=cond):
                self._expr(cond, scope)
                _need(cond.dtype.is_bool and not cond.axes, f"a branch on {_type(cond)}, not on one scalar bool")
            case _:
                assert_never(stmt)
        return scope

    def _leave(self, loop: For, scope: _Scope, inner: _Scope) -> None:
        for carry in loop.carries:
            self._expr(carry.next, inner)
            _need(_alike(carry.name, carry.next), f"`{carry.name.name}` is {_type(carry.name)}, but leaves as "
                  f"{_type(carry.next)}")  # fmt: skip
            scope.locals[carry.name.name] = carry.name

    def _store(self, stmt: Store, scope: _Scope) -> None:
        self._expr(stmt.value, scope)
        buffer = self._access(stmt.buffer, stmt.index, stmt.mask, scope)
        where, value = _union(stmt.index), stmt.value
        _need(buffer.role not in (Role.INPUT, Role.TABLE), f"{buffer.role.value} `{buffer.name}` is written")
        _need(value.dtype == buffer.dtype, f"`{buffer.name}` holds {buffer.dtype}, not {value.dtype}")
        _need(
            where | _union(stmt.mask) <= set(value.axes),
            f"the index of `{buffer.name}` varies where the value does not",
        )
        _need(stmt.atomic is not None or where == set(value.axes), f"two lanes write one cell of `{buffer.name}`")
        if stmt.atomic is not None:
            _need(stmt.atomic in _ATOMIC, f"`{stmt.atomic.value}` is no atomic operator")

    def _bind(self, name: Local, scope: _Scope, used: set[str]) -> None:
        _need(name.name not in used, f"`{name.name}` is bound twice")
        _need(name.name not in self._params, f"`{name.name}` is bound, and is a parameter")
        used.add(name.name)
        scope.locals[name.name] = name

    def _bounds(self, exprs: Iterable[Expr], scope: _Scope, what: str) -> None:
        for e in exprs:
            self._expr(e, scope)
            _need(e.dtype.name == "index" and not e.axes, f"{what}: `{_short(e)}` is {_type(e)}, not a scalar index")

    def _access(self, name: str, index: tuple[Expr, ...], mask: tuple[Expr, ...], scope: _Scope) -> Buffer:
        buffer = scope.buffers.get(name)
        if buffer is None:
            raise _Broken(f"no buffer `{name}` here")
        _need(len(index) == len(buffer.shape), f"`{name}` has {len(buffer.shape)} dimensions, not {len(index)}")
        for e in index:
            self._expr(e, scope)
            _need(e.dtype.name == "index", f"an index of `{name}` is {e.dtype}")
        for e in mask:
            self._expr(e, scope)
            _need(e.dtype.is_bool, f"a mask of `{name}` is {e.dtype}")
        return buffer

    def _expr(self, root: Expr, scope: _Scope) -> None:
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if scope.knows(node):
                continue
            if ready:
                try:
                    self._node(node, scope)
                except _Broken as broken:
                    raise _Broken(f"{broken}, in `{_short(node)}`") from None
                scope.note(node)
            else:
                stack.append((node, True))
                stack += [(c, False) for c in children(node)]

    def _node(self, node: Expr, scope: _Scope) -> None:
        """Check one node whose children are right."""
        _need(self._in_order(node.axes), f"axes {axes_text(node.axes)} are not in the program's order")
        match node:
            case Const(value=value, dtype=dtype):
                _need(not node.axes, "a constant has axes")
                fits = dtype.is_float or dtype.low <= value <= dtype.high
                _need(fits, f"{value} is no {dtype}")
            case Var() | Read():
                raise _Broken("a Var or Read of an algorithm is left")
            case Param(name=name):
                known = self._params.get(name)
                _need(known is not None and _alike(known, node), f"`{name}` is no parameter of type {_type(node)}")
            case Size(array=array, dim=dim):
                _need((array, dim) in self._sizes, f"the size of dimension {dim} of `{array}` is not among the scalars")
                _need(node.dtype.name == "index" and not node.axes, f"a size is {_type(node)}")
            case Local(name=name):
                bound = scope.locals.get(name)
                if bound is None:
                    raise _Broken(f"`{name}` is not bound here")
                _need(_alike(bound, node), f"`{name}` is {_type(bound)} here, not {_type(node)}")
            case Ramp():
                _need(len(node.axes) == 1 and node.dtype.name == "index", "a ramp has one axis and counts in index")
            case Broadcast(value=value):
                _need(value.dtype == node.dtype, f"{value.dtype} spread to {node.dtype}")
                _need(set(value.axes) < set(node.axes), f"{axes_text(value.axes)} spread along {axes_text(node.axes)}")
            case Unary(op=op, value=value):
                _need(_alike(value, node), f"{_type(value)} gives {_type(node)}")
                wrong = value.dtype.is_float if op is UnaryOp.NOT else value.dtype.is_bool
                _need(not wrong, f"`{op.value}` of {value.dtype}")
            case Binary():
                self._binary(node)
            case Select(cond=cond, yes=yes, no=no):
                _need(cond.dtype.is_bool and cond.axes == node.axes, f"select by {_type(cond)} of {_type(node)}")
                _need(_alike(yes, no) and _alike(yes, node), f"select of {_type(yes)} and {_type(no)}")
            case Cast(value=value):
                _need(value.axes == node.axes, f"{_type(value)} cast to {_type(node)}")
            case Bitcast(value=value):
                _need(value.axes == node.axes and value.dtype.bits == node.dtype.bits, f"bits of {_type(value)} taken "
                      f"as {_type(node)}")  # fmt: skip
            case Call(args=args):
                _need(all(a.axes == node.axes for a in args), "arguments vary along other axes")
            case Load(buffer=name, index=index, mask=mask, other=other):
                buffer = self._access(name, index, mask, scope)
                _need(node.dtype == buffer.dtype, f"`{name}` holds {buffer.dtype}, not {node.dtype}")
                _need(_union(index) == set(node.axes), "a load has the axes of its index")
                _need(_union(mask) <= set(node.axes), "the mask varies where the index does not")
                _need(other is None or _alike(other, Const(buffer.dtype, 0)), "`other` has another type")
            case Reduce(op=op, value=value, axis=axis, where=where):
                _need(axis in value.axes, f"reduces `{axis.name}`, which the value has not")
                rest = tuple(a for a in value.axes if a != axis)
                _need(node.axes == rest and node.dtype == value.dtype, f"{_type(value)} reduced to {_type(node)}")
                _need(op in _ATOMIC, f"`{op.value}` is no reduction")
                _need(op not in _SUMS or _accumulates(node.dtype), f"sums of {node.dtype}: cast to 32 bits first")
                _need(all(w.dtype.is_bool for w in where), "`where` is not bool")
                _need(_union(where) <= set(value.axes), "`where` varies where the value does not")
            case Dot():
                self._dot(node)
            case _:
                assert_never(node)

    def _binary(self, node: Binary) -> None:
        left, right, op = node.left, node.right, node.op
        _need(_alike(left, right), f"{_type(left)} `{op.value}` {_type(right)}")
        _need(node.axes == left.axes, f"{_type(left)} gives {_type(node)}")
        compares, found = op in COMPARES, left.dtype
        _need(node.dtype.is_bool if compares else node.dtype == found, f"`{op.value}` of {found} gives {node.dtype}")
        if op in _INTEGERS_ONLY:
            _need(found.is_integer, f"`{op.value}` of {found}")
        elif op in _BITWISE:
            _need(not found.is_float, f"`{op.value}` of {found}")
        elif op is BinaryOp.DIV:
            _need(found.is_float, f"`/` of {found}")
        elif op in (BinaryOp.SUB, BinaryOp.FLOORDIV, BinaryOp.MOD):
            _need(not found.is_bool, f"`{op.value}` of bool")

    def _dot(self, node: Dot) -> None:
        acc, left, right, axis = node.acc, node.left, node.right, node.axis
        _need(_alike(acc, node), f"accumulates {_type(acc)} to {_type(node)}")
        _need(axis in left.axes and axis in right.axes, f"a factor has no axis `{axis.name}`")
        _need(set(left.axes) & set(right.axes) == {axis}, "the factors share more than the summed axis")
        _need({*left.axes, *right.axes} == {*acc.axes, axis}, "the sum has other axes than its factors")
        _need(left.dtype == right.dtype, f"{left.dtype} times {right.dtype}")
        _need(_accumulates(acc.dtype), f"sums of {acc.dtype}: 32 bits or more")
        _need(acc.dtype.is_float == left.dtype.is_float, f"{left.dtype} summed in {acc.dtype}")

    def _in_order(self, axes: Axes) -> bool:
        places = [self._place.get(a, -1) for a in axes]
        return -1 not in places and all(a < b for a, b in pairwise(places))

    def _error(self, broken: _Broken, stmt: Stmt) -> InternalError:
        text = show_stmt(_head(stmt)).splitlines()
        return InternalError(
            f"loop program `{self._program.name}` is malformed: {broken}",
            [(stmt.span, "from here")] if isinstance(stmt, Store) else (),
            facts=text if len(text) <= 8 else [*text[:3], "...", *text[-4:]],
        )


def _head(stmt: Stmt) -> Stmt:
    return walk.with_children(stmt, tuple(Block() for _ in walk.children(stmt)))


def _alike(a: Expr, b: Expr) -> bool:
    return a.dtype.name == b.dtype.name and a.axes == b.axes


def _accumulates(dtype: DType) -> bool:
    return dtype.bits >= 32


def _union(exprs: Iterable[Expr]) -> set[Axis]:
    return {a for e in exprs for a in e.axes}


def _type(node: Expr) -> str:
    return f"{node.dtype}<{axes_text(node.axes)}>" if node.axes else f"{node.dtype}"


def _short(node: Expr) -> str:
    text = show_expr(node).split("\n")[-1]
    return text if len(text) <= 120 else text[:117] + "..."
