"""Values as Triton expressions.

An axis becomes a dimension of a block, padded to a power of two; the padding is masked here and nowhere before: in
loads and stores, in what a reduction sees, and in both factors of a product (0 * NaN). Text may lack dimensions, or
have them of size 1, along which a value does not vary: Triton spreads those; `whole` gives the full shape where it
matters. What is used more than once, or is long, gets a name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from stax import dtypes
from stax.backends.triton.calls import call
from stax.backends.triton.types import Names, literal, padded, shape, type_name
from stax.backends.triton.value import ATOM, COMPARE, TIGHT, UNARY, Value, atom, inside
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
from stax.expr.number import Numbering
from stax.expr.walk import children, postorder

_SHARED = 13
_LONG = 90
_SMALLEST_DOT = 16
_SMALLEST_INT8 = 32
_EASY = frozenset({"int32", "int64", "index", "float32"})
_FLIPPED = {BinaryOp.LT: "&", BinaryOp.LE: "|"}
_LOGIC = {
    BinaryOp.ADD: "|", BinaryOp.OR: "|", BinaryOp.MAX: "|", BinaryOp.MUL: "&", BinaryOp.AND: "&", BinaryOp.MIN: "&",
    BinaryOp.XOR: "^", BinaryOp.NE: "^",
}  # fmt: skip
_LEVEL = {"|": TIGHT[BinaryOp.OR], "&": TIGHT[BinaryOp.AND], "^": TIGHT[BinaryOp.XOR]}
_COMBINE = {
    BinaryOp.MUL: "multiply", BinaryOp.AND: "bit_and", BinaryOp.OR: "bit_or", BinaryOp.XOR: "bit_xor",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pointer:
    """An array as a kernel sees it: a base, and the text of each dimension's stride in elements, None for 1."""

    base: str
    strides: tuple[str | None, ...]


class Scope:
    """Names for values already printed, usable until the end of the block they were printed in."""

    def __init__(self, lines: list[str], outer: Scope | None = None) -> None:
        self.lines = lines
        self.known: dict[int, Value] = dict(outer.known) if outer else {}
        self.uses: Counter[int] = Counter()


class Expressions:
    """Prints the values of one kernel."""

    def __init__(
        self, names: Names, *, wide: bool, precision: str = "ieee", written: frozenset[str] = frozenset()
    ) -> None:
        self.names, self.wide, self.precision, self.written = names, wide, precision, written
        self.locals: dict[str, Value] = {}
        self.scalars: dict[tuple[str, int], str] = {}
        self.arrays: dict[str, Pointer] = {}
        self.lanes: dict[Axis, str] = {}
        self.not_negative: set[str] = set()
        self.helpers: set[str] = set()
        self._numbers = Numbering()
        self._loads: dict[int, bool] = {}
        self._positive: dict[int, bool] = {}
        self._printed: dict[int, Value] = {}

    def count(self, roots: Iterable[Expr]) -> Counter[int]:
        """Return how often each value is an operand or a root, a value's operands being counted once."""
        return self._numbers.uses(roots)

    def values(self, roots: Sequence[Expr], scope: Scope) -> list[Value]:
        """Return the text of each of `roots`; lines for what must be named first go to `scope`."""
        own = self._numbers.uses(roots)
        tops = {self._numbers.of(root) for root in roots}
        done = self._printed = dict[int, Value]()
        for node in postorder(roots):
            number = self._numbers.of(node)
            below = [self._numbers.of(c) for c in children(node)]
            loads = self._loads.setdefault(number, self._changes(node) or any(self._loads[n] for n in below))
            self._positive.setdefault(number, self._is_not_negative(node, below))
            if number in done:
                continue
            if number in scope.known:
                done[number] = scope.known[number]
                continue
            value = self._render(node, [done[n] for n in below])
            again = own[number] > 1 or (scope.uses[number] > 1 and not loads)
            too_long = len(value.text) > _LONG and number not in tops
            leaf = isinstance(node, Const | Local | Param | Size | Ramp | Broadcast)
            if not leaf and ((again and len(value.text) >= _SHARED) or too_long):
                name = self.names.fresh(_stem(node))
                scope.lines.append(f"{name} = {value.text}")
                value = replace(value, text=name, tight=ATOM)
                if not loads:
                    scope.known[number] = value
            done[number] = value
        return [done[self._numbers.of(root)] for root in roots]

    def _changes(self, node: Expr) -> bool:
        """Return whether a node may have another value later on: it loads what the kernel writes."""
        return isinstance(node, Load) and node.buffer in self.written

    def type_of(self, dtype: DType) -> str:
        """Return the type of registers that hold `dtype`."""
        return type_name(dtype, wide=self.wide)

    def typed(self, node: Expr, value: Value) -> Value:
        """Return `value` with a type of its own, where Triton would take it for a Python number."""
        if not value.weak:
            return value
        if _constant(node):
            return Value(f"tl.full((), {value.text}, {self.type_of(node.dtype)})", ATOM, frozenset())
        return Value(f"tl.cast({value.text}, {self.type_of(node.dtype)})", ATOM, value.have)

    def to(self, node: Expr, value: Value, dtype: DType) -> Value:
        """Return `value` as another type, by Triton's own conversion."""
        if value.weak:
            return self.typed(replace(node, dtype=dtype), value)
        return self._rounded(Value(f"{atom(value)}.to({self.type_of(dtype)})", ATOM, value.have), dtype)

    def _rounded(self, value: Value, dtype: DType) -> Value:
        """Return a float32 as the bfloat16 that it stands for."""
        if dtype.name != "bfloat16" or value.weak:
            return value
        return Value(f"{self.use('round_bfloat16')}({value.text})", ATOM, value.have)

    def stored(self, node: Expr, value: Value) -> str:
        """Return `value` in full shape as memory holds it."""
        text = self.whole(node, value)
        return f"{self.use('to_bfloat16')}({text})" if node.dtype.name == "bfloat16" else text

    def whole(self, node: Expr, value: Value) -> str:
        """Return the text of `value` in the full shape and type of `node`."""
        if value.weak and node.axes and _constant(node):
            return f"tl.full({shape(node.axes)}, {value.text}, {self.type_of(node.dtype)})"
        value = self.typed(node, value)
        if value.have == frozenset(node.axes):
            return value.text
        if node.dtype.is_bool:
            value = self._condition(value)
        return f"tl.broadcast_to({value.text}, {shape(node.axes)})"

    def use(self, helper: str) -> str:
        """Return the name of a function of the prelude, which the module will begin with."""
        self.helpers.add(helper)
        return helper

    def masked(self, mask: Sequence[Expr], values: Sequence[Value], axes: Axes, pad: Axes) -> Value | None:
        """Return all of `mask`, and that lanes along `pad` are real, along `axes`; None where nothing is masked."""
        parts = [place(v, m.axes, axes) for m, v in zip(mask, values, strict=True)]
        for axis in pad:
            if padded(axis) != axis.size:
                real = Value(f"{self.lanes[axis]} < {axis.size}", COMPARE, frozenset({axis}))
                parts.append(place(real, (axis,), axes))
        if not parts:
            return None
        level = TIGHT[BinaryOp.AND]
        alike: dict[frozenset[Axis], list[Value]] = {}
        for part in (p if p.have else self._condition(p) for p in parts):
            alike.setdefault(part.have, []).append(part)
        # What varies along few axes first, so that blocks of many axes meet once.
        groups = [
            Value(" & ".join(inside(p, level + 1) for p in some), level, have) if len(some) > 1 else some[0]
            for have, some in sorted(alike.items(), key=lambda item: len(item[0]))
        ]
        first, *rest = groups
        if not rest:
            return first
        text = " & ".join([inside(first, level), *(inside(group, level + 1) for group in rest)])
        return Value(text, level, frozenset[Axis]().union(*alike))

    def address(self, buffer: str, index: Sequence[Expr], values: Sequence[Value], axes: Axes) -> Value:
        """Return the pointers of an access that varies along `axes`.

        What all lanes share, the lanes themselves and constant steps are added to the pointer one after the other: then
        the code of lanes and neighbours differs by what an instruction holds.
        """
        array = self.arrays[buffer]
        shared: list[str] = []
        lanes: list[str] = []
        steps: list[str] = []
        have = frozenset[Axis]()
        for node, value, stride in zip(index, values, array.strides, strict=True):
            step, parts = self._apart(node, value)
            if step:
                size = str(abs(step)) if stride is None else stride if abs(step) == 1 else f"{abs(step)} * {stride}"
                steps.append(f" {'-' if step < 0 else '+'} {size}")
            for part in parts:
                there = place(part, node.axes, axes)
                have |= there.have
                terms = lanes if there.have else shared
                if stride is not None and there.text == "1":
                    terms.append(stride)
                elif there.text == "0":
                    continue
                elif stride is not None:
                    terms.append(f"{inside(there, TIGHT[BinaryOp.MUL])} * {stride}")
                else:
                    terms.append(
                        inside(there, TIGHT[BinaryOp.ADD] + 1) if there.tight < TIGHT[BinaryOp.ADD] else there.text
                    )
        if not shared and not lanes and not steps:
            return Value(array.base, ATOM, have)
        sums = [part[0] if len(part) == 1 else f"({' + '.join(part)})" for part in (shared, lanes) if part]
        return Value(f"{' + '.join([array.base, *sums])}{''.join(steps)}", TIGHT[BinaryOp.ADD], have)

    def _apart(self, node: Expr, value: Value) -> tuple[int, list[Value]]:
        """Return the constant that is added to a position along lanes, and what else is: what is shared, and lanes."""
        if not value.have:
            return 0, [value]
        step, rest, found = 0, node, value
        if isinstance(node, Binary) and node.op in (BinaryOp.ADD, BinaryOp.SUB):
            by, base = build.integer(node.right), self._printed.get(self._numbers.of(node.left))
            if by is not None and base is not None and base.have:
                step, rest, found = by if node.op is BinaryOp.ADD else -by, node.left, base
        if isinstance(rest, Binary) and rest.op is BinaryOp.ADD and isinstance(rest.right, Ramp):
            parts = [self._printed.get(self._numbers.of(n)) for n in (rest.left, rest.right)]
            if parts[0] is not None and parts[1] is not None and not parts[0].have:
                return step, [parts[0], parts[1]]
        return step, [found]

    def _render(self, node: Expr, args: list[Value]) -> Value:
        match node:
            case Const(value=value, dtype=dtype):
                text = literal(value, dtype)
                return Value(text, UNARY if text.startswith("-") else ATOM, frozenset(), weak=True)
            case Local(name=name):
                return self.locals[name]
            case Param(name=name):
                return Value(self.scalars[name, -1], ATOM, frozenset())
            case Size(array=array, dim=dim):
                return Value(self.scalars[array, dim], ATOM, frozenset())
            case Ramp(axes=axes):
                return Value(self.lanes[axes[0]], ATOM, frozenset(axes))
            case Broadcast(value=value, axes=axes):
                return place(args[0], value.axes, axes)
            case Unary():
                return self._unary(node, args[0])
            case Binary():
                return self._rounded(self._binary(node, args[0], args[1]), node.dtype)
            case Select():
                parts = [self.typed(n, v) for n, v in zip(children(node), args, strict=True)]
                if node.dtype.is_bool and node.axes:
                    parts = [parts[0], *map(self._condition, parts[1:])]
                return Value(f"tl.where({', '.join(p.text for p in parts)})", ATOM, _have(parts))
            case Cast():
                return self.cast(node.value, args[0], node.dtype)
            case Bitcast(value=value, dtype=dtype):
                a = self.typed(value, args[0])
                if dtype.name == "bfloat16":
                    text = f"{self.use('from_bfloat16')}({atom(a)}.to(tl.bfloat16, bitcast=True))"
                    return Value(text, ATOM, a.have)
                bits = f"{self.use('to_bfloat16')}({a.text})" if value.dtype.name == "bfloat16" else atom(a)
                return Value(f"{bits}.to({self.type_of(dtype)}, bitcast=True)", ATOM, a.have)
            case Call():
                return call(self, node, [self.typed(n, v) for n, v in zip(node.args, args, strict=True)])
            case Load():
                return self._load(node, args)
            case Reduce():
                return self._reduce(node, args)
            case Dot():
                return self._dot(node, args)
            case Var() | Read():
                raise InternalError("a Var or Read of an algorithm is in a kernel")
            case _:
                assert_never(node)

    def _unary(self, node: Unary, a: Value) -> Value:
        dtype = node.dtype
        match node.op:
            case UnaryOp.ABS if not dtype.is_signed and not dtype.is_float:
                return a
            case UnaryOp.ABS:
                a = self.typed(node.value, a)
                return Value(f"tl.abs({a.text})", ATOM, a.have)
            case UnaryOp.NOT if dtype.is_bool:
                return self._infix("^", _LEVEL["^"], node.value, a, node.value, Value("True", ATOM, frozenset(), True))
            case UnaryOp.NOT:
                a = self.typed(node.value, a)
                return Value(f"~{inside(a, UNARY)}", UNARY, a.have)
            case UnaryOp.NEG if dtype.is_float:  # Triton's own is 0 - x, which loses the sign of 0
                return Value(
                    f"{inside(self.typed(node.value, a), TIGHT[BinaryOp.MUL])} * -1.0", TIGHT[BinaryOp.MUL], a.have
                )
            case UnaryOp.NEG:
                a = self.typed(node.value, a)
                return Value(f"-{inside(a, UNARY)}", UNARY, a.have)
            case _:
                assert_never(node.op)

    def _binary(self, node: Binary, a: Value, b: Value) -> Value:
        op, dtype = node.op, node.left.dtype
        if dtype.is_bool:
            return self._logic(node, a, b)
        if op in COMPARES:
            return self._infix(op.value, TIGHT[op], node.left, a, node.right, b)
        if dtype.is_float:
            return self._float(node, a, b)
        known = build.integer(node.right)
        match op:
            case BinaryOp.MIN | BinaryOp.MAX:
                return self._extreme(f"tl.{op.value}imum", node, a, b)
            case BinaryOp.FLOORDIV | BinaryOp.MOD:
                left, right = (self._positive[self._numbers.of(n)] for n in (node.left, node.right))
                if left and known is not None and known > 0:
                    return self._infix(op.value, TIGHT[op], node.left, a, node.right, b)
                stem = "unsigned" if left and right else "floor"
                helper = self.use(f"{stem}_{'div' if op is BinaryOp.FLOORDIV else 'mod'}")
                return self.called(helper, (node.left, a), (node.right, b))
            case BinaryOp.SHL | BinaryOp.SHR:
                if known is not None and 0 <= known < dtype.bits:
                    return self._infix(op.value, TIGHT[op], node.left, a, node.right, b)
                helper = self.use("shift_left" if op is BinaryOp.SHL else "shift_right")
                return self.called(helper, (node.left, a), (node.right, b), str(dtype.bits))
            case _:
                return self._infix(op.value, TIGHT[op], node.left, a, node.right, b)

    def _float(self, node: Binary, a: Value, b: Value) -> Value:
        op, left, right = node.op, node.left, node.right
        if op in (BinaryOp.MIN, BinaryOp.MAX):
            return self._extreme(self.use(f"{op.value}imum_nan"), node, a, b)
        if op in (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL):
            return self._infix(op.value, TIGHT[op], left, a, right, b)
        helper = {BinaryOp.DIV: "div_rn", BinaryOp.FLOORDIV: "float_floor_div", BinaryOp.MOD: "float_mod"}[op]
        if node.dtype.bits > 16 or node.dtype.name == "bfloat16":
            return self.called(self.use(helper), (left, a), (right, b))
        wide = [self.to(n, v, dtypes.float32) for n, v in ((left, a), (right, b))]
        return self.to(node, self.called(self.use(helper), (node, wide[0]), (node, wide[1])), node.dtype)

    def _extreme(self, name: str, node: Binary, a: Value, b: Value) -> Value:
        """Return a call of `name`, for which Triton gives a number the right type itself where that is an easy one."""
        if node.dtype.name in _EASY and not (a.weak and b.weak):
            return Value(f"{name}({a.text}, {b.text})", ATOM, a.have | b.have)
        return self.called(name, (node.left, a), (node.right, b))

    def _condition(self, value: Value) -> Value:
        """Return a condition of no axis as Triton's interpreter can spread it along some."""
        if value.have or value.text in ("True", "False"):
            return value
        return Value(f"{self.use('condition')}({value.text})", ATOM, value.have)

    def _logic(self, node: Binary, a: Value, b: Value) -> Value:
        op, left, right = node.op, node.left, node.right
        if a.have or b.have:
            a, b = self._condition(a), self._condition(b)
        if op in _LOGIC:
            return self._infix(_LOGIC[op], _LEVEL[_LOGIC[op]], left, a, right, b)
        true = Value("True", ATOM, frozenset(), weak=True)
        if op is BinaryOp.EQ:
            return self._infix("^", _LEVEL["^"], left, self._infix("^", _LEVEL["^"], left, a, right, b), right, true)
        if op in _FLIPPED:
            opposite = self._infix("^", _LEVEL["^"], left, a, left, true)
            return self._infix(_FLIPPED[op], _LEVEL[_FLIPPED[op]], left, opposite, right, b)
        raise InternalError(f"`{op.value}` of bool")

    def _infix(self, word: str, tight: int, left: Expr, a: Value, right: Expr, b: Value) -> Value:
        if a.weak and b.weak and _constant(left):
            a = self.typed(left, a)
        compare = tight == COMPARE
        text = f"{inside(a, tight + 1 if compare else tight)} {word} {inside(b, tight + 1)}"
        return Value(text, tight, a.have | b.have, weak=a.weak and b.weak)

    def called(self, name: str, *args: tuple[Expr, Value] | str) -> Value:
        """Return a call, with arguments that have types of their own."""
        texts: list[str] = []
        have = frozenset[Axis]()
        for arg in args:
            if isinstance(arg, str):
                texts.append(arg)
            else:
                value = self.typed(*arg)
                texts.append(value.text)
                have |= value.have
        return Value(f"{name}({', '.join(texts)})", ATOM, have)

    def cast(self, node: Expr, value: Value, dtype: DType) -> Value:
        """Return `value` as `dtype`, by the rules of Cast."""
        source = node.dtype
        if dtype.is_bool:
            zero = Value("0.0" if source.is_float else "0", ATOM, frozenset(), weak=True)
            return self._infix("!=", COMPARE, node, self.typed(node, value), node, zero)
        if source.is_float and dtype.is_integer:
            if source.bits == 16:
                value = self.to(node, value, dtypes.float32)
            own = dtypes.int32 if dtype.name == "index" and not self.wide else dtype
            limits = f"{float(own.low)}, {float(own.high + 1)}, {own.low}, {own.high}, {self.type_of(dtype)}"
            value = self.typed(node, value)
            return Value(f"{self.use('saturate')}({value.text}, {limits})", ATOM, value.have)
        if source.is_integer and dtype.name == "float16":
            value = self.to(node, value, dtypes.float32)
            return Value(f"{value.text}.to({self.type_of(dtype)})", ATOM, value.have)
        if value.weak:
            value = self.typed(node, value)
        return self._rounded(Value(f"{atom(value)}.to({self.type_of(dtype)})", ATOM, value.have), dtype)

    def _load(self, node: Load, args: list[Value]) -> Value:
        rank, axes = len(node.index), node.axes
        where = self.address(node.buffer, node.index, args[:rank], axes)
        kept = self.masked(node.mask, args[rank:], axes, axes)
        text = where.text
        if where.have != frozenset(axes):
            text = f"tl.broadcast_to({text}, {shape(axes)})"
        if kept is not None:
            text += f", mask={kept.text}"
            if node.other is not None:
                text += f", other={literal(node.other.value, node.dtype)}"
        text = f"tl.load({text})"
        text = f"{self.use('from_bfloat16')}({text})" if node.dtype.name == "bfloat16" else text
        return Value(text, ATOM, frozenset(axes))

    def _reduce(self, node: Reduce, args: list[Value]) -> Value:
        value, axis, dtype = node.value, node.axis, node.dtype
        text = self._excluded(value, args[0], axis, node.where, args[1:], build.identity(node.op, dtype))
        at = value.axes.index(axis)
        have = frozenset(node.axes)
        if node.op is BinaryOp.ADD and not dtype.is_bool:
            return Value(f"tl.sum({text}, axis={at})", ATOM, have)
        if dtype.is_bool:
            stem = "bit_or" if _LOGIC[node.op] == "|" else "bit_xor" if _LOGIC[node.op] == "^" else "bit_and"
            helper = self.use(stem)
            wide = f"({text}).to(tl.int32)"
            return Value(f"tl.reduce({wide}, {at}, {helper}) != 0", COMPARE, have)
        helper = _COMBINE.get(node.op) or f"{node.op.value}imum_{'nan' if dtype.is_float else 'int'}"
        return Value(f"tl.reduce({text}, {at}, {self.use(helper)})", ATOM, have)

    def _excluded(
        self, node: Expr, value: Value, axis: Axis, where: Sequence[Expr], on: Sequence[Value], start: Const
    ) -> str:
        """Return `node` in full shape with `start` in the lanes that a reduction along `axis` must not see."""
        if isinstance(node, Load) and node.other is not None and node.other.value == start.value and not where:
            return self.whole(node, value)
        kept = self.masked(where, on, node.axes, (axis,))
        text = self.whole(node, value)
        if kept is None:
            return text
        instead = f"tl.full((), {literal(start.value, start.dtype)}, {self.type_of(start.dtype)})"
        return f"tl.where({kept.text}, {text}, {instead})"

    def _dot(self, node: Dot, args: list[Value]) -> Value:
        """Return `tl.dot`, or a sum of products where Triton has no such dot."""
        acc, left, right, axis = node.acc, node.left, node.right, node.axis
        zero = Const(left.dtype, 0)
        rows = tuple(a for a in left.axes if a != axis)
        cols = tuple(a for a in right.axes if a != axis)
        a, b = (self._excluded(n, v, axis, (), (), zero) for n, v in ((left, args[1]), (right, args[2])))
        total = self.whole(acc, args[0])
        have = frozenset(node.axes)
        small = any(padded(x) < _SMALLEST_DOT for x in (*rows, *cols, axis))
        halves = ("float16", "bfloat16", "float32")
        unit = (left.dtype.name in halves and node.dtype.name == "float32") or (
            left.dtype.name == "int8" and node.dtype.name == "int32" and padded(axis) >= _SMALLEST_INT8
        )
        how = f', input_precision="{self.precision}"' if left.dtype.name == "float32" else ""
        how += ", out_dtype=tl.int32" if left.dtype.name == "int8" else ""
        if len(rows) == len(cols) == 1 and not small and unit:
            a = a if left.axes == (*rows, axis) else f"tl.trans({a})"
            b = b if right.axes == (axis, *cols) else f"tl.trans({b})"
            if left.dtype.name == "bfloat16":
                a, b = (f"{self.use('as_bfloat16')}({text})" for text in (a, b))
            if acc.axes == (*rows, *cols):
                return Value(f"tl.dot({a}, {b}, {total}{how})", ATOM, have)
            turned = f"tl.trans(tl.dot({a}, {b}{how}))"
            return Value(f"{inside(args[0], TIGHT[BinaryOp.ADD])} + {turned}", TIGHT[BinaryOp.ADD], have)
        orders = [n.axes for n in (acc, left, right)]

        def before(x: Axis) -> int:
            return sum(any(x in o and y in o[: o.index(x)] for o in orders) for y in (*rows, *cols, axis))

        axes = tuple(sorted((*rows, *cols, axis), key=before))
        wide = self.type_of(node.dtype)
        spread = [
            place(Value(f"({text}).to({wide})", ATOM, frozenset(n.axes)), n.axes, axes).text
            for text, n in ((a, left), (b, right))
        ]
        summed = f"tl.sum({spread[0]} * {spread[1]}, axis={axes.index(axis)})"
        return Value(f"{inside(self.typed(acc, args[0]), TIGHT[BinaryOp.ADD])} + {summed}", TIGHT[BinaryOp.ADD], have)

    def _is_not_negative(self, node: Expr, below: list[int]) -> bool:
        if node.dtype.is_integer and not node.dtype.is_signed:
            return True
        known = [self._positive[n] for n in below]
        match node:
            case Const(value=value):
                return value >= 0
            case Size() | Ramp():
                return True
            case Local(name=name):
                return name in self.not_negative
            case Broadcast():
                return known[0]
            case Cast(value=value):
                return known[0] and value.dtype.bits <= node.dtype.bits and not value.dtype.is_float
            case Binary(op=BinaryOp.ADD | BinaryOp.MUL | BinaryOp.FLOORDIV | BinaryOp.MIN):
                return node.dtype.name == "index" and all(known)
            case Binary(op=BinaryOp.MOD):
                return known[1]
            case Binary(op=BinaryOp.MAX | BinaryOp.AND):
                return any(known)
            case Select():
                return known[1] and known[2]
            case _:
                return False


def place(value: Value, own: Axes, axes: Axes) -> Value:
    """Return `value` of axes `own` with a dimension of 1 for each of `axes` that it lacks."""
    if not value.have or own == axes:
        return value
    at = ", ".join(":" if a in own else "None" for a in axes)
    return Value(f"{atom(value)}[{at}]", ATOM, value.have)


def _constant(node: Expr) -> bool:
    while isinstance(node, Broadcast):
        node = node.value
    return isinstance(node, Const)


def _have(values: Iterable[Value]) -> frozenset[Axis]:
    return frozenset[Axis]().union(*(v.have for v in values))


def _stem(node: Expr) -> str:
    axes = "_".join(a.name for a in node.axes)
    kind = "at" if node.dtype.name == "index" else "ok" if node.dtype.is_bool else "t"
    return f"{kind}_{axes}" if axes else f"{kind}0"
