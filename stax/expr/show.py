"""Expressions as text, with no bracket that is not needed; linear in the size of the graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias, assert_never

import numpy as np

from stax.dtypes import DType
from stax.expr.nodes import (
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
from stax.expr.walk import children, postorder

ATOM = 20
UNARY = 14
TIGHTNESS = {
    BinaryOp.MUL: 13, BinaryOp.DIV: 13, BinaryOp.FLOORDIV: 13, BinaryOp.MOD: 13, BinaryOp.ADD: 12, BinaryOp.SUB: 12,
    BinaryOp.SHL: 11, BinaryOp.SHR: 11, BinaryOp.AND: 10, BinaryOp.XOR: 9, BinaryOp.OR: 8, BinaryOp.LT: 6,
    BinaryOp.LE: 6, BinaryOp.EQ: 6, BinaryOp.NE: 6, BinaryOp.MIN: ATOM, BinaryOp.MAX: ATOM,
}  # fmt: skip
_ONE = 24
_LINE = 160

Text: TypeAlias = tuple[str, int]
"""A text and how tightly it holds together."""


def show(expr: Expr, limit: int = 400) -> str:
    """Return `expr` on one line; parts longer than `limit` characters become `...`.

    >>> from stax import dtypes
    >>> x = Var(dtypes.int64, "x")
    >>> one = Const(dtypes.int64, 1)
    >>> total = Binary(dtypes.int64, BinaryOp.ADD, x, one)
    >>> show(Binary(dtypes.int64, BinaryOp.MUL, total, total)), show(total, limit=4)
    ('(x + 1) * (x + 1)', '...')
    """
    texts: dict[int, Text] = {}
    for node in postorder([expr]):
        text = render(node, [texts[id(c)] for c in children(node)], typed=False)
        texts[id(node)] = text if len(text[0]) <= limit else ("...", ATOM)
    return texts[id(expr)][0]


class Shower:
    """Shows expressions exactly, with types; what is used again, or is long, gets a name and a line of its own.

    Equal expressions give equal text, however they share their parts.

    >>> from stax import dtypes
    >>> a = Read(dtypes.float32, "a", (Var(dtypes.int64, "x"),))
    >>> half = Binary(dtypes.float32, BinaryOp.MUL, a, Const(dtypes.float32, 0.5))
    >>> lines: list[str] = []
    >>> Shower().texts([Binary(dtypes.float32, BinaryOp.SUB, half, half)], lines), lines
    (['$1 - $1'], ['$1 = a[x] * 0.5f32'])
    """

    def __init__(self) -> None:
        self._numbers = Numbering()
        self._count = 0

    def texts(self, roots: Sequence[Expr], lines: list[str]) -> list[str]:
        """Return the text of each root, the lines that say what its names stand for being added to `lines`."""
        of = self._numbers.of
        order: dict[int, Expr] = {}
        uses: Counter[int] = Counter(of(r) for r in roots)
        for node in postorder(roots):
            if of(node) not in order:
                order[of(node)] = node
                uses.update(of(c) for c in children(node))
        texts: dict[int, Text] = {}
        for number, node in order.items():
            text, tight = render(node, [texts[of(c)] for c in children(node)], typed=True)
            if len(text) > _LINE or (uses[number] > 1 and len(text) >= _ONE) or (uses[number] > 1 and _costs(node)):
                self._count += 1
                lines.append(f"${self._count} = {text}")
                text, tight = f"${self._count}", ATOM
            texts[number] = text, tight
        return [texts[of(r)][0] for r in roots]


def render(node: Expr, below: Sequence[Text], *, typed: bool) -> Text:
    """Return the text of `node`, given that of its children; `typed` puts types on constants."""
    match node:
        case Const(dtype=dtype, value=value):
            text = constant(value, dtype, typed=typed)
            return text, UNARY if text.startswith("-") else ATOM
        case Var(name=name) | Param(name=name) | Local(name=name):
            return name, ATOM
        case Size(array=array, dim=dim):
            return f"{array}.shape[{dim}]", ATOM
        case Ramp(axes=axes):
            return f"ramp({axes[0].name})", ATOM
        case Broadcast():
            return below[0]
        case Unary(op=UnaryOp.ABS):
            return f"abs({below[0][0]})", ATOM
        case Unary(op=op):
            return f"{op.value}{inside(below[0], UNARY + 1)}", UNARY
        case Binary(op=(BinaryOp.MIN | BinaryOp.MAX) as op):
            return f"{op.value}({below[0][0]}, {below[1][0]})", ATOM
        case Binary(op=op):
            tight = TIGHTNESS[op]
            left = tight + 1 if tight == TIGHTNESS[BinaryOp.LT] else tight
            return f"{inside(below[0], left)} {op.value} {inside(below[1], tight + 1)}", tight
        case Select():
            return f"select({listed(below)})", ATOM
        case Cast(dtype=dtype):
            return f"{dtype.name}({below[0][0]})", ATOM
        case Bitcast(dtype=dtype):
            return f"bitcast({dtype.name}, {below[0][0]})", ATOM
        case Call(fn=Fn.SATURATING_CAST as fn, dtype=dtype):
            return f"{fn.value}({dtype.name}, {listed(below)})", ATOM
        case Call(fn=fn):
            return f"{fn.value}({listed(below)})", ATOM
        case Read(source=source, part=part):
            return f"{source}[{listed(below)}]" + (f".{part}" if part else ""), ATOM
        case Load(buffer=buffer):
            return f"{buffer}[{listed(below)}]", ATOM
        case Reduce(op=op, axis=axis):
            return f"reduce({op.value}, {listed(below)}, over={axis.name})", ATOM
        case Dot(axis=axis):
            return f"dot({listed(below)}, over={axis.name})", ATOM
        case _:
            assert_never(node)


_SHORT = {"b": "", "u": "u", "i": "i", "f": "f"}


def constant(value: float | bool, dtype: DType, *, typed: bool = True) -> str:
    """Return a number, as short as its type allows; `typed` says which that is, unless it is int64 or bool.

    >>> from stax import dtypes
    >>> constant(0.10000000149011612, dtypes.float32), constant(7, dtypes.uint8), constant(1, dtypes.bool_)
    ('0.1f32', '7u8', 'True')
    """
    if dtype.is_bool:
        return str(bool(value))
    if dtype.is_float:
        width = dtype.bits if dtype.bits in (16, 32, 64) else 64
        with np.errstate(over="ignore"):
            text = str(np.dtype(f"f{width // 8}").type(value))
    else:
        text = str(int(value))
    return text + (f"{_SHORT[dtype.kind.value]}{dtype.bits}" if typed and dtype.name not in ("int64", "index") else "")


def _costs(node: Expr) -> bool:
    return not isinstance(node, Const | Var | Param | Size | Local | Ramp | Broadcast | Read)


def inside(text: Text, around: int) -> str:
    """Return `text`, in brackets where what is around it holds tighter."""
    return f"({text[0]})" if text[1] < around else text[0]


def listed(below: Sequence[Text]) -> str:
    """Return the texts of arguments."""
    return ", ".join(text for text, _ in below)
