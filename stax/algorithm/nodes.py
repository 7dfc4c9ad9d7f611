"""What is to be computed: a Pipeline of Funcs, frozen, with every type resolved.

Expressions are those of `expr` with `Var`, `Param`, `Size` and `Read` as leaves. Inline reductions and Monoids are
Funcs here; start values are `select`s on equalities inside the definition; conversions are `Cast` nodes; under
`fp="default"` products that meet a sum are `fma` calls already.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from stax.dtypes import DType
from stax.expr.nodes import Expr
from stax.source import Span


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """An array argument. `sizes` holds, per dim, None or what the extent must equal at the call."""

    name: str
    dtype: DType
    dims: tuple[str, ...]
    sizes: tuple[Expr | None, ...]
    span: Span | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A Param. `low` and `high` are facts, checked at the call."""

    name: str
    dtype: DType
    default: int | float | bool | None = None
    low: int | float | None = None
    high: int | float | None = None
    span: Span | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A Const: an array that is part of the program, copied and read-only."""

    name: str
    dtype: DType
    array: np.ndarray[Any, Any]
    span: Span | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """A variable of an RDom, `lo <= name < hi`; bounds may use Params, Sizes, dims and earlier variables."""

    name: str
    lo: Expr
    hi: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """For each point of `domain`, last variable fastest, where `where` holds: `func[index] = values`.

    `index` has a plain Var of the Func's dims (its own, in its own place) or any expression over Sizes, Params, dims
    and the domain. All parts are evaluated before any is written.
    """

    index: tuple[Expr, ...]
    values: tuple[Expr, ...]
    domain: tuple[Range, ...] = ()
    where: Expr | None = None
    span: Span | None = field(default=None, repr=False)


Row: TypeAlias = tuple[tuple[str, int], ...]
Order: TypeAlias = tuple[Row, ...]
"""Sums of dims, each a dim and its factor; a point comes before another by the first sum in which they differ."""


@dataclass(frozen=True, slots=True, eq=False)
class Func:
    """Values over indices. Stage 0 is `values`, one expression a part over `dims`; stage k + 1 is `updates[k]`.

    `shape` holds, per dim, None or the declared extent: its box is then 0 <= dim < extent. `backwards` are the dims
    that a recurrence must run downwards. `fp` is strict, default or fast. `where`, a conjunction of comparisons of
    positions, says which cells there are: the values are 0 elsewhere, where none of them is read.

    A recurrence may run in the order of its dims, those `backwards` downwards; else in that of the rows of `order`, and
    None says that it was not found yet. A member of a group steps its first dims `together` with the others, as many as
    that says, and a step of its first one `lag` steps later; 0 says that how was not found yet.
    """

    name: str
    dims: tuple[str, ...]
    dtypes: tuple[DType, ...]
    values: tuple[Expr, ...]
    updates: tuple[Update, ...] = ()
    shape: tuple[Expr | None, ...] = ()
    backwards: frozenset[str] = frozenset()
    fp: str = "default"
    span: Span | None = field(default=None, repr=False)
    where: Expr | None = None
    order: Order | None = ()
    together: int = 1
    lag: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline:
    """A whole program. `funcs` stand producers first; `groups` are the cycles, members in the order of one step.

    A group steps the first dims of its members together. `outputs` name Funcs, in the order they are returned.
    `arguments` name Inputs and Scalars in positional order. `shapes`, where given, are the symbolic output shapes.
    With `origins`, element 0 of an output is the index that int64 Params named `origin_name(output, dim)` say.
    """

    inputs: tuple[Input, ...]
    scalars: tuple[Scalar, ...]
    tables: tuple[Table, ...]
    funcs: tuple[Func, ...]
    outputs: tuple[str, ...]
    arguments: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...] = ()
    shapes: tuple[tuple[Expr, ...] | None, ...] = ()
    origins: bool = False

    def func(self, name: str) -> Func:
        """Return the Func called `name`; KeyError where there is none."""
        for f in self.funcs:
            if f.name == name:
                return f
        raise KeyError(name)

    def _repr_html_(self) -> str:
        from stax.algorithm.show import show
        from stax.notebook import block, text

        return block(text(show(self)))


MARK = "\N{PRIME}"
"""Stands in the names that the compiler makes, and in none that users give."""


def origin_name(output: str, dim: int) -> str:
    """Return the name of the Param that holds the index of element 0 of an output."""
    return f"{output}{MARK}origin{dim}"


def part_name(func: str, parts: int, part: int) -> str:
    """Return the name of the buffer of a part: the Func's own where it has one part."""
    return func if parts == 1 else f"{func}{MARK}{part}"
