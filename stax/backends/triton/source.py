"""Print kernels as Triton source: a module of text each, that needs Triton and nothing of stax.

The points of a grid become one launch axis, the last loop fastest. Positions have 32 bits unless facts say that
they are wide, or they come from wider data. Strides are counted in elements; a dimension known to be dense is not
multiplied.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import resources
from typing import assert_never

from stax.backends.artifact import Facts
from stax.backends.triton.expr import Expressions, Pointer, Scope
from stax.backends.triton.types import Names, padded, passed_as, shape, short_name
from stax.backends.triton.value import ATOM, TIGHT, Value, inside
from stax.errors import UnsupportedError
from stax.expr import build, intrinsics
from stax.expr.affine import Algebra
from stax.expr.nodes import BinaryOp, Call, Cast, Dot, Expr, Load, Param
from stax.expr.value_range import of_dtype, value_ranges
from stax.expr.walk import children
from stax.loops import walk
from stax.loops.launches import Host, Kernel, kernels
from stax.loops.nodes import Allocate, Block, For, If, Let, LoopKind, Prefetch, Role, Stmt, Store, Timed

_INDENT = "    "
_UNROLL = 4
_ROOM = 1 << 30
_ATOMIC = {
    BinaryOp.ADD: "add", BinaryOp.MIN: "min", BinaryOp.MAX: "max", BinaryOp.AND: "and", BinaryOp.OR: "or",
    BinaryOp.XOR: "xor",
}  # fmt: skip


class ArgumentKind(Enum):
    """What an argument of a printed kernel is.

    POINTER: element 0 of buffer `name`. STRIDE: of its dimension `dim`, in elements. SIZE: its extent. PARAM: the value
    of Param `name`. COUNTER: the variable `name` of a host loop.
    """

    POINTER = "pointer"
    STRIDE = "stride"
    SIZE = "size"
    PARAM = "param"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument, by position: what it is, its type in Triton's signatures, and a power of two that divides it."""

    kind: ArgumentKind
    name: str
    dim: int = 0
    type: str = "i32"
    factor: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A kernel, the text of its module, which defines a function of the kernel's name, and what that takes.

    It is compiled for programs of `warps`, with loads `stages` iterations ahead; with `fusion`, Triton may make one
    rounding of a product and a sum.
    """

    kernel: Kernel
    text: str
    arguments: tuple[Argument, ...]
    warps: int = 4
    stages: int = 3
    fusion: bool = False


def emit(host: tuple[Host, ...], facts: Facts | None = None) -> tuple[Source, ...]:
    """Return the kernels of `host` as Triton source, in the order of their first launch."""
    return tuple(_Printer(kernel, facts or Facts()).source() for kernel in kernels(host))


class _Printer:
    def __init__(self, kernel: Kernel, facts: Facts) -> None:
        self._kernel, self._facts, self._wide = kernel, facts, facts.wide or _positions_from_wide_data(kernel)
        self._names = Names()
        self._to = Expressions(
            self._names,
            wide=self._wide,
            precision=kernel.hints.precision or "tf32x3",
            written=frozenset(walk.buffers_stored(kernel.body)),
        )
        self._ours = {b.name for b in (*kernel.buffers, *kernel.scratch) if b.role is Role.SCRATCH}
        self._read = walk.buffers_loaded(kernel.body)

    def source(self) -> Source:
        kernel, to, names = self._kernel, self._to, self._names
        names.fresh(kernel.name)
        arguments: list[Argument] = []
        texts: list[str] = []
        head: list[str] = []

        whole = "i64" if self._wide else "i32"
        even = {} if self._steps_apart() else {b.name: 16 // b.dtype.size_bytes for b in kernel.buffers}
        even = {name: n for name, n in even.items() if name in self._facts.even}

        def argument(kind: ArgumentKind, name: str, dim: int, wish: str, type_: str = whole, factor: int = 1) -> str:
            found = names.fresh(wish)
            arguments.append(Argument(kind, name, dim, type_, factor))
            texts.append(found)
            return found

        for buffer in (*kernel.buffers, *kernel.scratch):
            name, rank, strides = buffer.name, len(buffer.shape), list[str | None]()
            aligned = 16 if name in self._facts.even or name in self._ours else 1
            base = argument(ArgumentKind.POINTER, name, 0, name, f"*{short_name(buffer.dtype)}", aligned)
            for d in range(rank):
                dense = d == rank - 1 and (name in self._facts.dense or name in self._ours)
                factor = even.get(name, 1)
                wish = f"{base}_stride{d}"
                strides.append(None if dense else argument(ArgumentKind.STRIDE, name, d, wish, whole, factor))
            to.arrays[name] = Pointer(base, tuple(strides))
        loads: list[str] = []
        ranks = {b.name: len(b.shape) for b in kernel.buffers}
        for scalar in kernel.scalars:
            if isinstance(scalar, Param):
                value = argument(ArgumentKind.PARAM, scalar.name, 0, scalar.name, passed_as(scalar.dtype))
                if scalar.dtype.bits < 32:
                    cast = f".to({to.type_of(scalar.dtype)})"
                    loads.append(f"{value} = {value}" + (" != 0" if scalar.dtype.is_bool else cast))
                to.scalars[scalar.name, -1] = value
            else:
                name, dim = scalar.array, scalar.dim
                factor = even.get(name, 1) if dim == ranks.get(name, 0) - 1 else 1
                found = argument(ArgumentKind.SIZE, name, dim, f"{name}_size{dim}", whole, factor)
                to.scalars[name, dim] = found
        for counter in kernel.counters:
            found = argument(ArgumentKind.COUNTER, counter.name, 0, counter.name)
            to.locals[counter.name] = Value(found, ATOM, frozenset())
        head += loads
        for axis in kernel.axes:
            to.lanes[axis] = names.fresh(f"r_{axis.name}")
            cast = ".to(tl.int64)" if self._wide else ""
            head.append(f"{to.lanes[axis]} = tl.arange(0, {padded(axis)}){cast}")
        body = walk.rewrite_expressions(kernel.body, _spelled)
        scope = Scope(head)
        self._grid(scope)
        lines = [*head, *self._block(walk.as_block(body), scope)]
        text = "".join(f"{_INDENT}{line}\n" for line in lines or ["pass"])
        top = f"@triton.jit\ndef {kernel.name}({', '.join(texts)}):\n"
        before = _prelude(frozenset(to.helpers))
        imports = "import triton\nimport triton.language as tl\n"
        if "libdevice." in before + text:
            imports += "from triton.language.extra import libdevice\n"
        if "INTERPRETED" in before:
            imports += "\nINTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)\n"
        whole_text = f"{imports}\n\n{before}{top}{text}"
        hints = kernel.hints
        return Source(kernel, whole_text, tuple(arguments), hints.warps or _warps(kernel), hints.stages or 3)

    def _steps_apart(self) -> bool:
        """Return whether accesses lie a few elements beside a multiple of 16 bytes.

        Then wide accesses are not to be had, and a layout made for them makes the narrow ones of a warp far apart.
        """
        algebra = Algebra()
        sizes = {b.name: b.dtype.size_bytes for b in self._kernel.buffers}
        found = [(s.buffer, s.index) for s in walk.stores(self._kernel.body)]
        found += [(n.buffer, n.index) for n in walk.loads(self._kernel.body)]
        last = [(sizes[name], algebra.of(index[-1])) for name, index in found if index and name in sizes]
        return any(at.const * size % 16 for size, at in last if at.terms)

    def _grid(self, scope: Scope) -> None:
        """Name the point of the grid, and move the scratch of this point to its place."""
        kernel, to = self._kernel, self._to
        if not kernel.grid and not kernel.scratch:
            return
        pid = self._names.fresh("pid")
        scope.lines.append(f"{pid} = tl.program_id(0)" + (".to(tl.int64)" if self._wide else ""))
        for buffer in kernel.scratch:
            elements = build.index(1)
            for extent in buffer.shape:
                elements = build.mul(elements, extent)
            (value,) = to.values((elements,), scope)
            array = to.arrays[buffer.name]
            scope.lines.append(f"{array.base} += {pid}.to(tl.int64) * {inside(value, TIGHT[BinaryOp.MUL] + 1)}")
        if kernel.hints.swizzle is not None and len(kernel.grid) > 1:
            pid = self._grouped(pid, kernel.hints.swizzle, scope)
        for depth, loop in reversed(list(enumerate(kernel.grid))):
            start, extent = to.values((loop.start, loop.extent), scope)
            here = pid
            if depth:
                here = f"{pid} % {inside(extent, TIGHT[BinaryOp.MUL] + 1)}"
            if build.integer(loop.start) != 0:
                here = f"{inside(start, TIGHT[BinaryOp.ADD])} + {here}"
            name = self._names.fresh(loop.var.name)
            scope.lines.append(f"{name} = {here}")
            self._bind(loop, Value(name, ATOM, frozenset()), start)
            if depth:
                rest = self._names.fresh("pid")
                scope.lines.append(f"{rest} = {pid} // {inside(extent, TIGHT[BinaryOp.MUL] + 1)}")
                pid = rest

    def _grouped(self, pid: str, rows: int, scope: Scope) -> str:
        """Return the number of a point where groups of `rows` of the last two loops run column by column."""
        names, lines = self._names, scope.lines
        height, width = self._to.values([loop.extent for loop in self._kernel.grid[-2:]], scope)
        high, wide, name = names.fresh("high"), names.fresh("wide"), names.fresh("pid")
        inner, group, first, size = (names.fresh(w) for w in ("inner", "group", "first", "size"))
        lines += [
            f"{high} = {height.text}",
            f"{wide} = {width.text}",
            f"{inner} = {pid} % ({high} * {wide})",
            f"{group} = {inner} // ({rows} * {wide})",
            f"{first} = {group} * {rows}",
            f"{size} = tl.minimum({high} - {first}, {rows})",
            f"{inner} = {inner} % ({rows} * {wide})",
            f"{name} = {pid} // ({high} * {wide}) * ({high} * {wide}) "
            f"+ ({first} + {inner} % {size}) * {wide} + {inner} // {size}",
        ]
        return name

    def _bind(self, loop: For, value: Value, start: Value) -> None:
        self._to.locals[loop.var.name] = value
        first = build.integer(loop.start)
        if first is not None and first >= 0:
            self._to.not_negative.add(loop.var.name)

    def _block(self, block: Block, outer: Scope) -> list[str]:
        scope = Scope([], outer)
        scope.uses = self._to.count(walk.all_expressions(block))
        for stmt in block.stmts:
            self._stmt(stmt, scope)
        return scope.lines

    def _stmt(self, stmt: Stmt, scope: Scope) -> None:
        to, lines = self._to, scope.lines
        match stmt:
            case Block(stmts=stmts):
                for s in stmts:
                    self._stmt(s, scope)
            case Allocate(buffer=buffer):
                raise UnsupportedError(f"scratch `{buffer.name}` is allocated inside a kernel")
            case Let(name=name, value=value):
                (text,) = to.values((value,), scope)
                text = to.typed(value, text)
                found = self._names.fresh(name.name)
                lines.append(f"{found} = {text.text}")
                to.locals[name.name] = Value(found, ATOM, text.have)
            case Store():
                self._store(stmt, scope)
            case Prefetch():
                pass
            case For():
                self._loop(stmt, scope)
            case If(cond=cond, then=then, orelse=orelse):
                (test,) = to.values((cond,), scope)
                lines.append(f"if {test.text}:")
                lines += _indented(self._block(then, scope))
                if orelse.stmts:
                    lines.append("else:")
                    lines += _indented(self._block(orelse, scope))
            case Timed():
                raise UnsupportedError("stages are timed on the CPU only")
            case _:
                assert_never(stmt)

    def _store(self, stmt: Store, scope: Scope) -> None:
        to, axes, rank = self._to, stmt.value.axes, len(stmt.index)
        *args, value = to.values((*stmt.index, *stmt.mask, stmt.value), scope)
        where = to.address(stmt.buffer, stmt.index, args[:rank], axes)
        at = where.text if where.have == frozenset(axes) else f"tl.broadcast_to({where.text}, {shape(axes)})"
        kept = to.masked(stmt.mask, args[rank:], axes, axes)
        mask = f", mask={kept.text}" if kept is not None else ""
        word = "tl.store"
        if stmt.atomic is not None:
            dtype = stmt.value.dtype
            if stmt.atomic not in _ATOMIC or dtype.bits < 32:
                raise UnsupportedError(f"no atomic `{stmt.atomic.value}` of {dtype} on this machine")
            word = f"tl.atomic_{_ATOMIC[stmt.atomic]}"
        # A lane may read what another one wrote, or is still to read what this one overwrites.
        around = ["tl.debug_barrier()"] if stmt.buffer in self._read else []
        scope.lines.extend([*around, f"{word}({at}, {to.stored(stmt.value, value)}{mask})", *around])

    def _loop(self, loop: For, scope: Scope) -> None:
        to, lines = self._to, scope.lines
        roots = (loop.start, loop.extent, *(c.init for c in loop.carries))
        start, extent, *inits = to.values(roots, scope)
        for carry, init in zip(loop.carries, inits, strict=True):
            name = self._names.fresh(carry.name.name)
            lines.append(f"{name} = {to.whole(carry.init, init)}")
            to.locals[carry.name.name] = Value(name, ATOM, frozenset(carry.name.axes))
        var = self._names.fresh(loop.var.name)
        inner = Scope([], scope)
        add = TIGHT[BinaryOp.ADD]
        if loop.down:
            back = self._names.fresh(f"{loop.var.name}_back")
            head = f"for {back} in tl.range(0, {extent.text}):"
            inner.lines.append(f"{var} = {inside(start, add)} + {inside(extent, add)} - 1 - {back}")
        else:
            zero = build.integer(loop.start) == 0
            stop = extent.text if zero else f"{inside(start, add)} + {inside(extent, add)}"
            flat = loop.kind is LoopKind.UNROLL and build.integer(loop.extent) is not None
            flat = flat and build.integer(loop.start) is not None
            more = f", loop_unroll_factor={_UNROLL}" if _hands_on(loop) and not flat else ""
            head = f"for {var} in {'tl.static_range' if flat else 'tl.range'}({start.text}, {stop}{more}):"
        self._bind(loop, Value(var, ATOM, frozenset(), weak=True), start)
        after = [c.next for c in loop.carries]
        inner.uses = to.count([*walk.all_expressions(loop.body), *after])
        for stmt in loop.body.stmts:
            self._stmt(stmt, inner)
        if after:
            values = to.values(after, inner)
            names = [to.locals[c.name.name].text for c in loop.carries]
            texts = [to.whole(n, v) for n, v in zip(after, values, strict=True)]
            inner.lines.append(f"{', '.join(names)} = {', '.join(texts)}")
        lines.append(head)
        lines += _indented(inner.lines)


def _positions_from_wide_data(kernel: Kernel) -> bool:
    """Return whether positions are made of data that leave no room in 32 bits; they may be clipped only later."""
    loaded: set[int] = set()
    for node in walk.nodes(kernel.body):
        if isinstance(node, Load) or any(id(c) in loaded for c in children(node)):
            loaded.add(id(node))
        if isinstance(node, Cast) and node.dtype.name == "index" and id(node) in loaded:
            ((low, high),) = value_ranges((node.value,), lambda read: of_dtype(read.dtype))
            if low < -_ROOM or high > _ROOM:
                return True
    return False


def _hands_on(loop: For) -> bool:
    """Return whether iterations are short and hand values on: some of them together then wait for memory once.

    Loops of dots are left to Triton, which loads ahead in them.
    """
    inner = any(isinstance(s, For) for s in walk.statements(loop.body))
    return bool(loop.carries) and not inner and not any(isinstance(n, Dot) for n in walk.nodes(loop))


def _warps(kernel: Kernel) -> int:
    """Return a power of two of warps, so that a thread has some elements of the largest block: 4, for large ones 8."""
    largest = 1
    for node in walk.nodes(kernel.body):
        elements = 1
        for axis in node.axes:
            elements *= padded(axis)
        largest = max(largest, elements)
    return 4 if largest <= 2048 else 8 if largest <= 16384 else 16


def _spelled(node: Expr) -> Expr:
    return intrinsics.expand(node) if isinstance(node, Call) else node


def _indented(lines: list[str]) -> list[str]:
    return [_INDENT + line for line in lines or ["pass"]]


@cache
def _prelude(wanted: frozenset[str]) -> str:
    """Return the text of the functions that are `wanted`, and of those that they call."""
    text = resources.files("stax.backends.triton").joinpath("prelude.triton").read_text()
    functions = {
        re.findall(r"def (\w+)", part)[0]: f"@triton.jit\n{part.strip()}\n\n\n"
        for part in text.split("@triton.jit\n")[1:]
    }
    found: set[str] = set()
    stack = list(wanted)
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            body = functions[name].split(":\n", 1)[1]
            stack += [w for w in re.findall(r"\b(\w+)\(", body) if w in functions]
    return "".join(body for name, body in functions.items() if name in found)
