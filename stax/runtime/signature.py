"""What a kernel takes and gives, as data that the compiler fills and a call is checked against."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from stax.algorithm.nodes import Input, Scalar, Table, part_name
from stax.dtypes import DType
from stax.expr.nodes import Binary, BinaryOp, Call, Cast, Const, Expr, Param, Size
from stax.source import Span


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """One Func that is returned, an array for each of its parts.

    `shape` holds, per dim, the inferred extent over Sizes of inputs and Params, or None where the call must give it.
    The arrays are the buffers `part_name` gives; all parts have the sizes
    `Size(name, dim)`.
    `origin` names, per dim, the int64 Param that holds the index of element 0; empty where it is fixed at 0.
    """

    name: str
    dtypes: tuple[DType, ...]
    shape: tuple[Expr | None, ...]
    dims: tuple[str, ...] = ()
    origin: tuple[str, ...] = ()
    span: Span | None = field(default=None, repr=False)

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of its arrays, one a part."""
        return tuple(part_name(self.name, len(self.dtypes), k) for k in range(len(self.dtypes)))


class CheckKind(Enum):
    """What a check is about.

    READ: `stage` reads lo..hi of input `source`, which has 0..size-1. WRITE: `stage` writes lo..hi of `source`, whose
    box is 0..size-1. EXTENT: the extent `size` of `source` must lie in lo..hi. AGREE: output `stage` is served up to
    lo by one input and up to hi by input `source`, and the two must be equal. PROMISE, LANES: `stage` says of the
    dimension, or the loop, `name` of `source` what does not hold where it goes from lo to hi.
    """

    READ = "read"
    WRITE = "write"
    EXTENT = "extent"
    AGREE = "agree"
    PROMISE = "promise"
    LANES = "lanes"


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """A condition over Sizes and Params that must hold before anything runs; the rest is for the words of the error.

    `lo` and `hi` are inclusive; where lo > hi nothing is read or written, and all is well. `stage` is who reads or
    writes, such as `blur_x` or `hist.update(0)`.
    """

    cond: Expr
    kind: CheckKind
    source: str
    dim: int
    lo: Expr
    hi: Expr
    size: Expr
    stage: str = ""
    span: Span | None = field(default=None, repr=False)
    name: str = ""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Signature:
    """`arguments` name Inputs and Scalars in positional order; `outputs` come in the order they are returned.

    `overwritten` has the Inputs that the kernel writes over, each with the buffer that it is: itself or an output.
    `positions` name the Scalars that positions are computed from.
    """

    inputs: tuple[Input, ...]
    scalars: tuple[Scalar, ...]
    tables: tuple[Table, ...]
    outputs: tuple[Output, ...]
    arguments: tuple[str, ...]
    checks: tuple[Check, ...] = ()
    name: str = "kernel"
    overwritten: tuple[tuple[str, str], ...] = ()
    positions: frozenset[str] = frozenset()

    def __str__(self) -> str:
        arrays = {i.name: i for i in self.inputs}
        scalars = {s.name: s for s in self.scalars}
        given = [_input(arrays[a]) if a in arrays else _scalar(scalars[a]) for a in self.arguments]
        return f"{self.name}({', '.join(given)}) -> {', '.join(_output(o) for o in self.outputs)}"

    __repr__ = __str__

    def dim(self, source: str, dim: int) -> str:
        """Return words for a dimension of an input or output: its number, and its name where it was given one."""
        for one in (*self.inputs, *self.outputs):
            if one.name == source and dim < len(one.dims) and one.dims[dim] != f"d{dim}":
                return f"dimension {dim} ({one.dims[dim]})"
        return f"dimension {dim}"


def _input(one: Input) -> str:
    sizes = [d if s is None else f"{d}={size_text(s)}" for d, s in zip(one.dims, one.sizes, strict=True)]
    return f"{one.name}: {one.dtype.name}[{', '.join(sizes)}]"


def _scalar(one: Scalar) -> str:
    limits = "" if one.low is None and one.high is None else f" in {_limit(one.low)}..{_limit(one.high)}"
    default = "" if one.default is None else f" = {one.default}"
    return f"{one.name}: {one.dtype.name}{limits}{default}"


def _limit(value: float | None) -> str:
    return "" if value is None else str(value)


def _output(one: Output) -> str:
    sizes = ", ".join("?" if s is None else size_text(s) for s in one.shape)
    parts = [f"{t.name}[{sizes}]" for t in one.dtypes]
    return f"{one.name}: {parts[0]}" if len(parts) == 1 else f"{one.name}: ({', '.join(parts)})"


def size_text(expr: Expr, depth: int = 6) -> str:
    """Return a size as text, `...` below `depth` operators."""
    match expr:
        case Const(value=value):
            return str(value)
        case Param(name=name):
            return name
        case Size(array=array, dim=dim):
            return f"{array}.shape[{dim}]"
        case _ if depth == 0:
            return "..."
        case Cast(value=value):
            return size_text(value, depth)
        case Binary(op=(BinaryOp.MIN | BinaryOp.MAX) as op, left=left, right=right):
            return f"{op.value}({size_text(left, depth - 1)}, {size_text(right, depth - 1)})"
        case Binary(op=op, left=left, right=right):
            return f"{_inner(left, depth)} {op.value} {_inner(right, depth)}"
        case Call(fn=fn, args=args):
            return f"{fn.value}({', '.join(size_text(a, depth - 1) for a in args)})"
        case _:
            return "..."


def _inner(expr: Expr, depth: int) -> str:
    text = size_text(expr, depth - 1)
    while isinstance(expr, Cast):
        expr = expr.value
    named = isinstance(expr, Binary) and expr.op not in (BinaryOp.MIN, BinaryOp.MAX)
    return f"({text})" if named else text
