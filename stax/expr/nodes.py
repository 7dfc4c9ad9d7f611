"""Scalar and tile values, shared by algorithms and loop programs.

Every node carries its `dtype`, and the named vector `axes` it varies along (empty in an algorithm, and in a loop
program until loops are vectorised). Nodes compare by identity: programs are shared graphs, so that a structural `==`
would cost time exponential in sharing and stack linear in depth. `number.Numbering` says which nodes are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from stax import dtypes
from stax.dtypes import DType
from stax.source import Span


class UnaryOp(Enum):
    """An operator of one value; `NOT` is bitwise, logical on bool. `ABS` and `NEG` of integers wrap."""

    NEG = "-"
    NOT = "~"
    ABS = "abs"


class BinaryOp(Enum):
    """An operator of two values of one type. Nothing traps: see LANGUAGE 1.4 and 1.5.

    `DIV` is of floats, `FLOORDIV` and `MOD` of all; shifts take any count; `MIN` and `MAX` carry NaN and order -0
    below +0. On bool, `ADD` is or, `MUL` is and. Greater-than is less-than with its operands swapped.
    """

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    FLOORDIV = "//"
    MOD = "%"
    MIN = "min"
    MAX = "max"
    AND = "&"
    OR = "|"
    XOR = "^"
    SHL = "<<"
    SHR = ">>"
    LT = "<"
    LE = "<="
    EQ = "=="
    NE = "!="


COMPARES = frozenset({BinaryOp.LT, BinaryOp.LE, BinaryOp.EQ, BinaryOp.NE})


class Fn(Enum):
    """A function that is one node: hardware words, and the functions that `intrinsics.expand` spells out.

    Primitive (an evaluator and a printer must know them): FMA, SQRT, FLOOR, CEIL, TRUNC, RINT, ISNAN, COPYSIGN,
    POPCOUNT, CLZ, SATURATING_CAST, SATURATING_ADD, SATURATING_SUB, ABSD, WIDENING_MUL, ROUNDING_AVERAGE and
    MUL_HIGH. All others expand to those.
    """

    FMA = "fma"
    SQRT = "sqrt"
    FLOOR = "floor"
    CEIL = "ceil"
    TRUNC = "trunc"
    RINT = "rint"
    ISNAN = "isnan"
    ISINF = "isinf"
    ISFINITE = "isfinite"
    COPYSIGN = "copysign"
    SIGN = "sign"
    POPCOUNT = "popcount"
    CLZ = "clz"
    SATURATING_CAST = "saturating_cast"
    SATURATING_ADD = "saturating_add"
    SATURATING_SUB = "saturating_sub"
    ABSD = "absd"
    WIDENING_MUL = "widening_mul"
    ROUNDING_AVERAGE = "rounding_average"
    MUL_HIGH = "mul_high"
    RSQRT = "rsqrt"
    EXP = "exp"
    EXP2 = "exp2"
    EXPM1 = "expm1"
    LOG = "log"
    LOG2 = "log2"
    LOG10 = "log10"
    LOG1P = "log1p"
    SIN = "sin"
    COS = "cos"
    TAN = "tan"
    ASIN = "asin"
    ACOS = "acos"
    ATAN = "atan"
    ATAN2 = "atan2"
    SINH = "sinh"
    COSH = "cosh"
    TANH = "tanh"
    ERF = "erf"
    POW = "pow"
    HYPOT = "hypot"
    SIGMOID = "sigmoid"


@dataclass(frozen=True, slots=True)
class Axis:
    """A named direction of a tile; `size` is the number of real elements, never padded."""

    name: str
    size: int


Axes: TypeAlias = tuple[Axis, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A value; `span` says where the user wrote it and is no part of what it means."""

    dtype: DType
    axes: Axes = field(default=(), kw_only=True)
    span: Span | None = field(default=None, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class Const(Node):
    """A number of type `dtype`; floats may be inf and NaN."""

    value: int | float | bool


@dataclass(frozen=True, slots=True, eq=False)
class Var(Node):
    """In an algorithm: a dimension of the Func being defined or a variable of its RDom, such as `r.y`; int64."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Param(Node):
    """A scalar argument of the kernel."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Size(Node):
    """The extent of dimension `dim` of the input or output `array`; at least 0. int64, or `index` in loops."""

    array: str
    dim: int


@dataclass(frozen=True, slots=True, eq=False)
class Local(Node):
    """In a loop program: a loop variable, a carried value or what a `Let` bound. Names are unique on a path."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Ramp(Node):
    """0, 1, ..., size - 1 along its one axis."""


@dataclass(frozen=True, slots=True, eq=False)
class Broadcast(Node):
    """`value` repeated along those of `axes` that it lacks."""

    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Node):
    """`op` of one value of the same type."""

    op: UnaryOp
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Node):
    """`op` of two values of one type and the same axes; comparisons give bool."""

    op: BinaryOp
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Select(Node):
    """`yes` where `cond`, else `no`; values are as if both were computed."""

    cond: Expr
    yes: Expr
    no: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Cast(Node):
    """`value` as `dtype`: integers wrap, float to integer saturates and takes NaN to 0, bool is `!= 0`."""

    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Bitcast(Node):
    """The bits of `value` as `dtype`, of the same width."""

    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Call(Node):
    """`fn` of `args`."""

    fn: Fn
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Read(Node):
    """In an algorithm: component `part` of the Func, Input or Const `source` at `index`."""

    source: str
    index: tuple[Expr, ...]
    part: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Load(Node):
    """In a loop program: elements of `buffer`, one `index` a dimension, each with only the axes it varies along.

    `mask` is a conjunction, each predicate with only its own axes. Where it does not hold, memory is not touched and
    the value is `other`, or undefined where `other` is None.
    """

    buffer: str
    index: tuple[Expr, ...]
    mask: tuple[Expr, ...] = ()
    other: Const | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(Node):
    """`value` combined by `op` along `axis`, in any order, over the lanes where all of `where` hold."""

    op: BinaryOp
    value: Expr
    axis: Axis
    where: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Dot(Node):
    """`acc` plus the sum along `axis` of `left * right`, in acc's dtype, in any order."""

    acc: Expr
    left: Expr
    right: Expr
    axis: Axis


Expr: TypeAlias = (
    Const | Var | Param | Size | Local | Ramp | Broadcast | Unary | Binary | Select | Cast | Bitcast | Call | Read
    | Load | Reduce | Dot
)  # fmt: skip

INDEX = dtypes.index
