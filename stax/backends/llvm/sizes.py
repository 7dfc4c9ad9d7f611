"""Expressions over sizes and Params as code, for entries that check their arguments without Python.

The values are those of `runtime/formula`: integers of 64 bits are exact, narrower ones wrap, `//` and `%` by zero give
0. All are i64 here, bools 0 or 1; where one does not fit, a flag is raised, and whoever asks refuses or asks elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from stax.backends.llvm.writer import Function
from stax.dtypes import DType
from stax.errors import UnsupportedError
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
from stax.expr.walk import postorder

_COMPARED = {BinaryOp.LT: "slt", BinaryOp.LE: "sle", BinaryOp.EQ: "eq", BinaryOp.NE: "ne"}
_BITS = {BinaryOp.AND: "and", BinaryOp.OR: "or", BinaryOp.XOR: "xor"}


class Sizes:
    """Appends such expressions to the function `f`; `leaf` gives the i64 of a Size or Param.

    `flag` is an i1, whether some value so far did not fit into 64 bits.
    """

    def __init__(self, f: Function, leaf: Callable[[Size | Param], str]) -> None:
        self.f, self.leaf, self.flag = f, leaf, "false"
        self._text: dict[int, str] = {}
        self._kept: list[Expr] = []

    def values(self, exprs: Sequence[Expr]) -> list[str]:
        """Return the i64 values of `exprs`. Raises UnsupportedError where one is computed with floats."""
        self._kept += exprs
        for node in postorder(exprs):
            if id(node) not in self._text:
                self._text[id(node)] = self._value(node)
        return [self._text[id(e)] for e in exprs]

    def holds(self, cond: Expr) -> str:
        """Return the i1 of a condition."""
        return self.f.put(f"icmp ne i64 {self.values([cond])[0]}, 0")

    def _value(self, node: Expr) -> str:
        text = self._text
        if node.dtype.is_float:
            raise UnsupportedError("a size is computed with floats, which only a call from Python can check")
        match node:
            case Const(value=value):
                return str(self._fits(int(value)))
            case Size() | Param():
                return self._unsigned(self.leaf(node), node.dtype)
            case Unary(op=op, value=value):
                return self._narrow(self._unary(op, text[id(value)], value.dtype), node.dtype)
            case Binary(op=op, left=left, right=right):
                made = self._binary(op, text[id(left)], text[id(right)], left.dtype)
                return made if node.dtype.is_bool else self._narrow(made, node.dtype)
            case Select(cond=cond, yes=yes, no=no):
                chosen = self.f.put(f"icmp ne i64 {text[id(cond)]}, 0")
                return self.f.put(f"select i1 {chosen}, i64 {text[id(yes)]}, i64 {text[id(no)]}")
            case Cast(value=value) if node.dtype.is_bool:
                return self._bool(f"icmp ne i64 {text[id(value)]}, 0")
            case Cast(value=value):
                return self._unsigned(self._narrow(text[id(value)], node.dtype), node.dtype)
            case Broadcast(value=value):
                return text[id(value)]
            case Call() | Bitcast() | Var() | Local() | Ramp() | Read() | Load() | Reduce() | Dot():
                raise UnsupportedError(f"a size is made of {type(node).__name__}, which only a call from Python checks")
            case _:
                assert_never(node)

    def _fits(self, value: int) -> int:
        if not -(1 << 63) <= value < 1 << 63:
            raise UnsupportedError(f"the size {value} does not fit into 64 bits")
        return value

    def _raise(self, flag: str) -> None:
        self.flag = flag if self.flag == "false" else self.f.put(f"or i1 {self.flag}, {flag}")

    def _unsigned(self, value: str, dtype: DType) -> str:
        if dtype.name == "uint64":
            self._raise(self.f.put(f"icmp slt i64 {value}, 0"))
        return value

    def _bool(self, text: str) -> str:
        return self.f.put(f"zext i1 {self.f.put(text)} to i64")

    def _narrow(self, value: str, dtype: DType) -> str:
        if dtype.bits == 64 or dtype.is_bool:
            return value
        low = self.f.put(f"trunc i64 {value} to i{dtype.bits}")
        return self.f.put(f"{'sext' if dtype.is_signed else 'zext'} i{dtype.bits} {low} to i64")

    def _exact(self, op: str, a: str, b: str) -> str:
        self.f.module.declare(f"{{i64, i1}} @llvm.{op}.with.overflow.i64(i64, i64)")
        pair = self.f.put(f"call {{i64, i1}} @llvm.{op}.with.overflow.i64(i64 {a}, i64 {b})")
        self._raise(self.f.put(f"extractvalue {{i64, i1}} {pair}, 1"))
        return self.f.put(f"extractvalue {{i64, i1}} {pair}, 0")

    def _unary(self, op: UnaryOp, a: str, dtype: DType) -> str:
        match op:
            case UnaryOp.NEG:
                return self._exact("ssub", "0", a)
            case UnaryOp.ABS:
                return self._least(self._exact("ssub", "0", a), a, "sgt")
            case UnaryOp.NOT:
                if dtype.name == "uint64":
                    raise UnsupportedError("a size is made of ~ of uint64, which only a call from Python can check")
                return self.f.put(f"xor i64 {a}, {dtype.high if not dtype.is_signed else -1}")
            case _:
                assert_never(op)

    def _least(self, a: str, b: str, order: str) -> str:
        return self.f.put(f"select i1 {self.f.put(f'icmp {order} i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def _binary(self, op: BinaryOp, a: str, b: str, dtype: DType) -> str:
        match op:
            case BinaryOp.ADD | BinaryOp.OR if dtype.is_bool:
                return self.f.put(f"or i64 {a}, {b}")
            case BinaryOp.MUL if dtype.is_bool:
                return self.f.put(f"and i64 {a}, {b}")
            case BinaryOp.ADD:
                return self._exact("sadd", a, b)
            case BinaryOp.SUB:
                return self._exact("ssub", a, b)
            case BinaryOp.MUL:
                return self._exact("smul", a, b)
            case BinaryOp.FLOORDIV | BinaryOp.MOD:
                return self._divided(op, a, b)
            case BinaryOp.MIN:
                return self._least(a, b, "slt")
            case BinaryOp.MAX:
                return self._least(a, b, "sgt")
            case BinaryOp.AND | BinaryOp.OR | BinaryOp.XOR:
                return self.f.put(f"{_BITS[op]} i64 {a}, {b}")
            case BinaryOp.LT | BinaryOp.LE | BinaryOp.EQ | BinaryOp.NE:
                return self._bool(f"icmp {_COMPARED[op]} i64 {a}, {b}")
            case BinaryOp.SHL | BinaryOp.SHR:
                return self._shifted(op, a, b, dtype.bits)
            case BinaryOp.DIV:
                raise UnsupportedError("a size is computed with floats, which only a call from Python can check")
            case _:
                assert_never(op)

    def _divided(self, op: BinaryOp, a: str, b: str) -> str:
        """Round towards minus infinity; the divisors 0 and -1, which trap, are replaced by 1."""
        put = self.f.put
        zero, minus = put(f"icmp eq i64 {b}, 0"), put(f"icmp eq i64 {b}, -1")
        safe = put(f"select i1 {put(f'or i1 {zero}, {minus}')}, i64 1, i64 {b}")
        quotient, rest = put(f"sdiv i64 {a}, {safe}"), put(f"srem i64 {a}, {safe}")
        apart = put(f"icmp slt i64 {put(f'xor i64 {rest}, {safe}')}, 0")
        low = put(f"and i1 {apart}, {put(f'icmp ne i64 {rest}, 0')}")
        if op is BinaryOp.MOD:
            return put(f"add i64 {rest}, {put(f'select i1 {low}, i64 {safe}, i64 0')}")
        floor = put(f"sub i64 {quotient}, {put(f'zext i1 {low} to i64')}")
        most = put(f"icmp eq i64 {a}, {-(1 << 63)}")
        self._raise(put(f"and i1 {minus}, {most}"))
        turned = put(f"select i1 {minus}, i64 {put(f'sub i64 0, {a}')}, i64 {floor}")
        return put(f"select i1 {zero}, i64 0, i64 {turned}")

    def _shifted(self, op: BinaryOp, a: str, b: str, bits: int) -> str:
        put = self.f.put
        inside = put(f"icmp ult i64 {b}, {bits}")
        if op is BinaryOp.SHR:
            return put(f"ashr i64 {a}, {put(f'select i1 {inside}, i64 {b}, i64 {min(bits, 63)}')}")
        count = put(f"select i1 {inside}, i64 {b}, i64 0")
        moved = put(f"shl i64 {a}, {count}")
        lost = put(f"icmp ne i64 {put(f'ashr i64 {moved}, {count}')}, {a}")
        self._raise(put(f"and i1 {lost}, {inside}"))
        return put(f"select i1 {inside}, i64 {moved}, i64 0")
