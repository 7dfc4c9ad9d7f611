"""A loop program as text that can be read and compared.

    program blur
        input a: uint16[:, :]
        output out: uint16[:, :]

    parallel for yo in 0 +: (out.shape[0] + 31) // 32:
        rows: uint16[3, 66] = scratch  # 396 bytes
        for y in 0 +: 32, carrying s: uint16 = 0:
            vector(8) for x in 0 +: out.shape[1]:
                out[yo * 32 + y, x if x < out.shape[1]] = a[yo * 32 + y, x]
            next s = s + 1

`start +: extent` are the values of a loop variable; what stands after `if` in an index is the mask, after `else` the
value that masked lanes have. `$1 = ...` is a long expression that is used again, or too long for its line: an
abbreviation, and no statement of the program. The text is linear in the size of the program, however much it shares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import assert_never

from stax.dtypes import DType
from stax.expr import build
from stax.expr.nodes import (
    Axes,
    Binary,
    BinaryOp,
    Bitcast,
    Broadcast,
    Call,
    Cast,
    Const,
    Dot,
    Expr,
    Fn,
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
from stax.expr.number import Numbering
from stax.expr.show import Text, inside, listed
from stax.expr.walk import children, postorder
from stax.loops import walk
from stax.loops.nodes import (
    Allocate,
    Block,
    Buffer,
    For,
    If,
    Let,
    LoopKind,
    Memory,
    Prefetch,
    Program,
    Role,
    Stmt,
    Store,
    Timed,
)

_INDENT = "    "
_SHARED = 15
_LINE = 80
_ATOM = 20
_UNARY = 14
_NOT = 4
_TIGHT = {
    BinaryOp.MUL: 13, BinaryOp.DIV: 13, BinaryOp.FLOORDIV: 13, BinaryOp.MOD: 13, BinaryOp.ADD: 12, BinaryOp.SUB: 12,
    BinaryOp.SHL: 11, BinaryOp.SHR: 11, BinaryOp.AND: 10, BinaryOp.XOR: 9, BinaryOp.OR: 8, BinaryOp.LT: 6,
    BinaryOp.LE: 6, BinaryOp.EQ: 6, BinaryOp.NE: 6, BinaryOp.MIN: _ATOM, BinaryOp.MAX: _ATOM,
}  # fmt: skip
_LOGICAL = {BinaryOp.AND: ("and", 3), BinaryOp.OR: ("or", 2), BinaryOp.ADD: ("or", 2), BinaryOp.MUL: ("and", 3)}
_ASSOCIATIVE = frozenset({BinaryOp.ADD, BinaryOp.MUL, BinaryOp.AND, BinaryOp.OR, BinaryOp.XOR})
_REDUCE = {
    BinaryOp.ADD: "sum", BinaryOp.MUL: "prod", BinaryOp.MIN: "min", BinaryOp.MAX: "max", BinaryOp.AND: "all",
    BinaryOp.OR: "any",
}  # fmt: skip
_KIND = {LoopKind.SERIAL: "", LoopKind.PARALLEL: "parallel ", LoopKind.VECTOR: "vector", LoopKind.UNROLL: "unroll"}


def show(program: Program) -> str:
    """Return `program` as text, ending with a newline."""
    lines = [f"program {program.name}"]
    for buffer in program.buffers:
        lines.append(f"{_INDENT}{buffer.role.value} {_declared(buffer)}")
    for scalar in program.scalars:
        if isinstance(scalar, Param):
            lines.append(f"{_INDENT}param {scalar.name}: {scalar.dtype.name}")
    if program.axes:
        lines.append(f"{_INDENT}axes {axes_text(program.axes)}")
    return "\n".join([*lines, "", *_Printer().block(program.body, {}, 0)]) + "\n"


def show_stmt(stmt: Stmt) -> str:
    """Return one statement, and all below it, as text."""
    return "\n".join(_Printer().block(walk.as_block(stmt), {}, 0))


def show_expr(expr: Expr) -> str:
    """Return an expression as text: lines that say what `$1` and so on stand for, where any are used, and the value."""
    printer = _Printer()
    lines: list[str] = []
    (text,) = printer.texts((expr,), {}, Counter(), lines, 0)
    return "\n".join([*lines, text])


class _Printer:
    """Numbers expressions, so that equal ones are named alike wherever they come from."""

    def __init__(self) -> None:
        self._numbers = Numbering()
        self._loads: dict[int, bool] = {}
        self._count = 0

    def block(self, block: Block, outer: dict[int, str], depth: int) -> list[str]:
        names = dict(outer)
        uses = self._numbers.uses(walk.all_expressions(block))
        lines: list[str] = []
        for stmt in block.stmts:
            self._stmt(stmt, names, uses, lines, depth)
        return lines or [_INDENT * depth + "pass"]

    def texts(
        self, roots: Sequence[Expr], names: dict[int, str], uses: Counter[int], lines: list[str], depth: int
    ) -> list[str]:
        """Return the text of each of `roots`; add to `lines` and `names` what has to be named first."""
        own = self._numbers.uses(roots)
        tops = {self._numbers.of(root) for root in roots}
        briefly = dict(names)
        done: dict[int, Text] = {}
        for node in postorder(roots):
            number = self._numbers.of(node)
            loads = self._has_load(node, number)
            if number in briefly:
                done[number] = briefly[number], _ATOM
                continue
            if number in done:
                continue
            text, tight = _render(node, [done[self._numbers.of(c)] for c in children(node)])
            again = own[number] > 1 or (uses[number] > 1 and not loads)
            too_long = len(text) > _LINE and number not in tops
            if _nameable(node) and ((again and len(text) >= _SHARED) or too_long):
                self._count += 1
                name = f"${self._count}"
                lines.append(f"{_INDENT * depth}{name} = {text}")
                briefly[number] = name
                if not loads:
                    names[number] = name
                text, tight = name, _ATOM
            done[number] = text, tight
        return [done[self._numbers.of(root)][0] for root in roots]

    def _stmt(self, stmt: Stmt, names: dict[int, str], uses: Counter[int], lines: list[str], depth: int) -> None:
        pad = _INDENT * depth

        def texts(roots: Sequence[Expr]) -> list[str]:
            return self.texts(roots, names, uses, lines, depth)

        match stmt:
            case Block():
                for inner in stmt.stmts:
                    self._stmt(inner, names, uses, lines, depth)
            case Allocate(buffer=buffer):
                shape = texts(buffer.shape)
                size: Expr = build.index(buffer.dtype.size_bytes)
                for extent in buffer.shape:
                    size = build.mul(extent, size)
                where = "scratch" if buffer.role is Role.SCRATCH else buffer.role.value
                known = build.integer(size)
                total = f"{known:,}" if known is not None else show_expr(size).split("\n")[-1]
                unit = "byte" if known == 1 else "bytes"
                if buffer.memory is not Memory.ANY:
                    where = f"{where} {buffer.memory.value}"
                if buffer.align != 64:
                    where = f"{where} align {buffer.align}"
                lines.append(f"{pad}{buffer.name}: {buffer.dtype.name}[{', '.join(shape)}] = {where}  # {total} {unit}")
            case Let(name=name, value=value):
                (text,) = texts((value,))
                lines.append(f"{pad}{_typed(name)} = {text}")
            case Store(buffer=buffer, index=index, value=value, mask=mask, atomic=atomic):
                *places, new = texts((*index, *mask, value))
                where = _subscript(places[: len(index)], places[len(index) :], None)
                sign = "=" if atomic is None else f"{atomic.value}="
                how = "atomic " if atomic is not None else "stream " if stmt.stream else ""
                lines.append(f"{pad}{how}{buffer}[{where}] {sign} {new}")
            case Prefetch(buffer=buffer, index=index):
                lines.append(f"{pad}prefetch {buffer}[{_subscript(texts(index), [], None)}]")
            case For(var=var, carries=carries, body=body):
                start, extent, *inits = texts((stmt.start, stmt.extent, *(c.init for c in carries)))
                wide = stmt.width is not None and stmt.kind in (LoopKind.VECTOR, LoopKind.UNROLL)
                kind = _KIND[stmt.kind] + (f"({stmt.width}) " if wide else "")
                kind = kind if not kind or kind.endswith(" ") else kind + " "
                how = (" down" if stmt.down else "") + (" apart" if stmt.apart else "")
                head = f"{kind}for {var.name} in {start} +: {extent}{how}"
                held = [f"{_typed(c.name)} = {init}" for c, init in zip(carries, inits, strict=True)]
                lines.append(f"{pad}{head}{', carrying ' if held else ''}{', '.join(held)}:")
                self._body(body, stmt, names, lines, depth + 1)
            case If(cond=cond, then=then, orelse=orelse):
                (text,) = texts((cond,))
                lines.append(f"{pad}if {text}:")
                lines += self.block(then, names, depth + 1)
                if orelse.stmts:
                    lines.append(f"{pad}else:")
                    lines += self.block(orelse, names, depth + 1)
            case Timed(buffer=buffer, row=row, body=body):
                lines.append(f"{pad}timed {buffer}[{row}]:")
                lines += self.block(body, names, depth + 1)
            case _:
                assert_never(stmt)

    def _body(self, body: Block, loop: For, outer: dict[int, str], lines: list[str], depth: int) -> None:
        after = [c.next for c in loop.carries]
        if not after:
            lines += self.block(body, outer, depth)
            return
        names = dict(outer)
        uses = self._numbers.uses([*walk.all_expressions(body), *after])
        for stmt in body.stmts:
            self._stmt(stmt, names, uses, lines, depth)
        for carry, text in zip(loop.carries, self.texts(after, names, uses, lines, depth), strict=True):
            lines.append(f"{_INDENT * depth}next {carry.name.name} = {text}")

    def _has_load(self, node: Expr, number: int) -> bool:
        """Return whether `node` reads memory; its children have been asked before."""
        if number not in self._loads:
            below = any(self._loads[self._numbers.of(c)] for c in children(node))
            self._loads[number] = below or isinstance(node, Load | Read)
        return self._loads[number]


def _nameable(node: Expr) -> bool:
    return not isinstance(node, Broadcast | Ramp | Const | Local | Param | Size | Var)


def _render(node: Expr, below: list[Text]) -> Text:
    """Return `node` and how tightly it holds together, given the same of its children."""
    match node:
        case Const(dtype=dtype, value=value):
            text = constant(value, dtype)
            return text, (_UNARY if text.startswith("-") else _ATOM)
        case Var(name=name) | Param(name=name) | Local(name=name):
            return name, _ATOM
        case Size(array=array, dim=dim):
            return f"{array}.shape[{dim}]", _ATOM
        case Ramp(axes=axes):
            return f"ramp({axes[0].name})", _ATOM
        case Broadcast():
            return below[0]
        case Unary(op=UnaryOp.ABS):
            return f"abs({below[0][0]})", _ATOM
        case Unary(op=UnaryOp.NOT, dtype=dtype) if dtype.is_bool:
            return f"not {inside(below[0], _NOT)}", _NOT
        case Unary(op=op):
            return f"{op.value}{inside(below[0], _UNARY + 1)}", _UNARY
        case Binary(op=(BinaryOp.MIN | BinaryOp.MAX) as op):
            return f"{op.value}({below[0][0]}, {below[1][0]})", _ATOM
        case Binary(op=BinaryOp.ADD, right=Const(value=value)) if node.dtype.is_integer and value < 0:
            return f"{inside(below[0], _TIGHT[BinaryOp.SUB])} - {-int(value)}", _TIGHT[BinaryOp.SUB]
        case Binary(op=op, dtype=dtype):
            word, tight = op.value, _TIGHT[op]
            if dtype.is_bool and op in _LOGICAL:
                word, tight = _LOGICAL[op]
            exact = op in _ASSOCIATIVE and not dtype.is_float
            compare = tight == _TIGHT[BinaryOp.LT]
            left = inside(below[0], tight + 1 if compare else tight)
            return f"{left} {word} {inside(below[1], tight if exact else tight + 1)}", tight
        case Select():
            return f"select({listed(below)})", _ATOM
        case Cast(dtype=dtype):
            return f"{dtype.name}({below[0][0]})", _ATOM
        case Bitcast(dtype=dtype):
            return f"bitcast({dtype.name}, {below[0][0]})", _ATOM
        case Call(fn=Fn.SATURATING_CAST as fn, dtype=dtype):
            return f"{fn.value}({dtype.name}, {listed(below)})", _ATOM
        case Call(fn=fn):
            return f"{fn.value}({listed(below)})", _ATOM
        case Read(source=source, part=part):
            return f"{source}[{listed(below)}]" + (f".{part}" if part else ""), _ATOM
        case Load(buffer=buffer, index=index, other=other):
            texts = [text for text, _ in below]
            instead = None if other is None else constant(other.value, other.dtype)
            return f"{buffer}[{_subscript(texts[: len(index)], texts[len(index) :], instead)}]", _ATOM
        case Reduce(op=op, axis=axis):
            word = _REDUCE.get(op, f"reduce {op.value} ")
            where = f", where={_all([text for text, _ in below[1:]])}" if len(below) > 1 else ""
            return f"{word}({below[0][0]}, over={axis.name}{where})", _ATOM
        case Dot(axis=axis):
            return f"dot({listed(below)}, over={axis.name})", _ATOM
        case _:
            assert_never(node)


def constant(value: float | bool, dtype: DType) -> str:
    """Return a number as short as its type allows.

    >>> from stax import dtypes
    >>> constant(0.10000000149011612, dtypes.float32), constant(7, dtypes.uint8), constant(1, dtypes.bool_)
    ('0.1', '7', 'True')
    """
    if dtype.is_bool:
        return str(bool(value))
    return str(dtype.computed.type(value)) if dtype.is_float else str(int(value))


def _all(mask: Sequence[str]) -> str:
    return mask[0] if len(mask) == 1 else " and ".join(f"({m})" if " or " in m else m for m in mask)


def _subscript(index: Sequence[str], mask: Sequence[str], other: str | None) -> str:
    where = f" if {_all(mask)}" if mask else ""
    instead = f" else {other}" if other is not None else ""
    return ", ".join(index) + where + instead


def axes_text(axes: Axes) -> str:
    """Return the names and sizes of `axes`."""
    return ", ".join(f"{a.name}:{a.size}" for a in axes)


def _typed(name: Local) -> str:
    spread = f"<{axes_text(name.axes)}>" if name.axes else ""
    return name.name if name.dtype.name == "index" and not spread else f"{name.name}: {name.dtype.name}{spread}"


def _declared(buffer: Buffer) -> str:
    shape = ", ".join(
        ":" if isinstance(n, Size) and (n.array, n.dim) == (buffer.name, d) else show_expr(n).split("\n")[-1]
        for d, n in enumerate(buffer.shape)
    )
    return f"{buffer.name}: {buffer.dtype.name}[{shape}]"
