"""What the expressions of an algorithm are made of before they are frozen.

They are nodes of `expr`, with two additions that `freeze` takes away. First, three types for values that have none yet:
`LITERAL` (made of Python ints), `NUMBER` (index numbers: Vars, sizes) and `REAL` (made of those and Python floats);
a `Cast` to a real type of such a value says which type it is computed in. Second, leaves that know their owner, since
names are not unique before a program is frozen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NoReturn, TypeAlias, cast

import numpy as np

from stax import dtypes
from stax.dtypes import DType, Kind
from stax.errors import DefinitionError, Place, UserError
from stax.expr.nodes import Cast, Const, Expr, Param, Read, Size, Var
from stax.expr.walk import rewrite
from stax.source import here

LITERAL = DType("literal", Kind.INT, 64)
NUMBER = DType("index number", Kind.INT, 64)
REAL = DType("weak float", Kind.FLOAT, 64)

serials = count()
"""Numbers Funcs, Inputs and Params in the order they are made, which is the order of a kernel's arguments."""


@dataclass(frozen=True, slots=True, eq=False)
class Access(Read):
    """A Read of a Func, Input or Const that is at hand."""

    owner: Any = field(default=None, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Extent(Size):
    """A Size of an Input that is at hand."""

    owner: Any = field(default=None, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Argument(Param):
    """A Param that is at hand."""

    owner: Any = field(default=None, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Step(Var):
    """A variable of an RDom that is at hand."""

    owner: Any = field(default=None, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Lead(Var):
    """What `...` stands for at `place`, counted from the right, in a read of something whose dim there is `name`."""

    place: int = field(default=0, kw_only=True)


Nodes: TypeAlias = tuple[Expr, ...]


def is_weak(dtype: DType) -> bool:
    """Return whether `dtype` is one of the three that stand for no type yet."""
    return dtype is LITERAL or dtype is NUMBER or dtype is REAL


def settled(dtype: DType) -> DType:
    """Return the type that a value of `dtype` has where it meets no other."""
    if dtype is REAL:
        return dtypes.float64
    return dtypes.int64 if dtype is LITERAL or dtype is NUMBER else dtype


def scalar_type(value: Any) -> DType:
    """Return the stax type that a user's `value` names, or refuse it."""
    try:
        found = dtypes.as_dtype(value)
    except (TypeError, ValueError):
        refuse(f"stax has no scalar type for {value!r}", hint="types are sx.uint8, sx.float32, ... or NumPy's")
    return found


def readable(node: Expr) -> Expr:
    """Return `node` as a user wrote it: with the names of owners, without casts to the type that weak values take."""

    def rule(at: Expr) -> Expr:
        match at:
            case Access(owner=owner):
                return Read(at.dtype, owner.name or owner.op, at.index, at.part)
            case Extent(owner=owner):
                return Size(at.dtype, owner.name, at.dim)
            case Argument(owner=owner):
                return Param(at.dtype, owner.name)
            case Cast(value=value) if is_weak(value.dtype):
                return value
            case _:
                return at

    return rewrite(node, rule)


def of_number(value: bool | int | float | np.generic) -> Const:
    """Return a constant: weak for Python's numbers, strong for NumPy's and for bools."""
    if isinstance(value, np.generic):
        found = scalar_type(value.dtype)
        return Const(found, float(value) if found.is_half else value.item())  # pyright: ignore[reportArgumentType]
    if isinstance(value, bool):
        return Const(dtypes.bool_, value)
    return Const(LITERAL, value) if isinstance(value, int) else Const(REAL, value)


def as_tuple(given: object) -> tuple[Any, ...]:
    """Return `given` where it is a tuple, else a tuple of it alone."""
    return cast("tuple[Any, ...]", given) if isinstance(given, tuple) else (given,)


def refuse(
    message: str, *, hint: str | None = None, word: str = "here", places: Sequence[Place] | None = None,
    kind: type[UserError] = DefinitionError, facts: Sequence[str] = (),
) -> NoReturn:  # fmt: skip
    """Raise `kind`, showing the user's present line unless `places` says where else."""
    raise kind(message, ((here(), word),) if places is None else places, facts, hint)
