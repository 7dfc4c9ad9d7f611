"""Input, Param and Const: what a program is given, and the tables it brings along."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from stax.algorithm.nodes import MARK
from stax.dtypes import DType
from stax.expr.nodes import Const as Number
from stax.expr.nodes import Expr
from stax.lang import index as indices
from stax.lang.promote import index_of
from stax.lang.terms import NUMBER, Access, Argument, Extent, refuse, scalar_type, serials
from stax.lang.value import Indexed, Value, value_of
from stax.source import Span, here


class Array(Indexed):
    """What Input and Const share: a type, named dims, sizes, and reads."""

    name: str
    dtype: DType
    dims: tuple[str, ...]
    span: Span | None
    serial: int

    @property
    def shape(self) -> tuple[Any, ...]:
        """The extents."""
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        """How many dims it has."""
        return len(self.dims)

    def __getitem__(self, index: object) -> Value:
        span = here()
        found = indices.of_read(index, self.dims, self.name)
        return Value(read(self, found, span))

    def __setitem__(self, index: object, value: object) -> NoReturn:
        refuse(f"`{self.name}` is an {type(self).__name__} and takes no definition", hint="define a Func")


def read(array: Array, index: tuple[Value, ...], span: Span | None) -> Expr:
    """Return the expression that reads `array`."""
    places = tuple(index_of(i.node, f"an index of `{array.name}`") for i in index)
    return Access(array.dtype, f"{array.name}#{array.serial}", places, span=span, owner=array)


class Input(Array):
    """An array that the program is given, of a known type and number of dims.

    `rank_or_shape` is that number, or an entry a dim: None where any extent will do, else what it must equal at the
    call, made of ints and sizes of other Inputs. `dims` names the dims, `d0, d1, ...` unless given. Say what is
    known: the default schedule runs lanes along the pixels of `(None, None, 3)`; of `3` dims it takes the last as long.

    >>> import stax as sx
    >>> a = sx.Input("a", sx.float32, 2)
    >>> b = sx.Input("b", sx.float32, (a.shape[1], None), dims="k n")
    >>> b.ndim, b.dims
    (2, ('k', 'n'))
    """

    def __init__(
        self, name: str, dtype: Any, rank_or_shape: int | Sequence[Any], dims: str | Sequence[str] | None = None
    ) -> None:
        self.name, self.dtype, self.span, self.serial = _name(name, "Input"), scalar_type(dtype), here(), next(serials)
        entries: tuple[Any, ...]
        if isinstance(rank_or_shape, int | np.integer):
            if rank_or_shape < 0:
                refuse(f"Input `{name}` has {rank_or_shape} dims")
            entries = (None,) * int(rank_or_shape)
        else:
            entries = tuple(rank_or_shape)
        self.sizes: tuple[Expr | None, ...] = tuple(
            None if s is None else index_of(value_of(s, "a size").node, "a size") for s in entries
        )
        named = dims.replace(",", " ").split() if isinstance(dims, str) else dims
        self.dims = tuple(named) if named is not None else tuple(f"d{k}" for k in range(len(entries)))
        if len(self.dims) != len(entries) or len(set(self.dims)) != len(self.dims):
            refuse(f"Input `{name}` has {len(entries)} dims, but `dims` names {self.dims}")

    @property
    def shape(self) -> tuple[Value, ...]:
        """The extents, as index numbers; constants where the Input fixes them.

        >>> import stax as sx
        >>> a = sx.Input("a", sx.float32, 2)
        >>> h, w = a.shape
        """
        return tuple(self._size(k) for k in range(self.ndim))

    def __repr__(self) -> str:
        return f"Input({self.name!r}, {self.dtype}, {self.ndim})"

    def _size(self, dim: int) -> Value:
        fixed = self.sizes[dim]
        if isinstance(fixed, Number):
            return Value(Number(NUMBER, fixed.value))
        return Value(Extent(NUMBER, f"{self.name}#{self.serial}", dim, owner=self))


class Const(Array):
    """A table: an array that is part of the program, copied at once.

    >>> import numpy as np, stax as sx
    >>> x = sx.Var("x")
    >>> t = sx.Const("t", np.array([1, 4, 9], np.int32))
    >>> t[x].dtype, t.shape[0]
    (int32, 3)
    """

    def __init__(self, name: str, array: Any) -> None:
        self.name, self.span, self.serial = _name(name, "Const"), here(), next(serials)
        copied = np.array(array, order="C")
        self.dtype = scalar_type(copied.dtype)
        copied.setflags(write=False)
        self.array = copied
        self.dims = tuple(f"d{k}" for k in range(copied.ndim))

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self.array.shape

    def __repr__(self) -> str:
        return f"Const({self.name!r}, {self.dtype}, {self.shape})"


class Param(Value):
    """A scalar that the program is given. `low` and `high` are facts, checked at the call.

    >>> import stax as sx
    >>> gain = sx.Param("gain", sx.float32, default=1.0, low=0)
    >>> (gain * 2).dtype
    float32
    """

    __slots__ = ("default", "high", "low", "name", "serial", "span")

    def __init__(
        self, name: str, dtype: Any, default: float | None = None, low: float | None = None, high: float | None = None
    ) -> None:
        self.name, self.span, self.serial = _name(name, "Param"), here(), next(serials)
        found = scalar_type(dtype)
        for what, value in (("default", default), ("low", low), ("high", high)):
            if value is None:
                continue
            if not isinstance(value, int | float | np.generic):  # pyright: ignore[reportUnnecessaryIsInstance]
                refuse(f"the {what} of Param `{name}` is {value!r:.40}, and a number is needed")
            whole = math.isfinite(value) and float(value) == int(value)
            if not found.is_float and not (whole and found.low <= value <= found.high):
                refuse(f"the {what} {value} of Param `{name}` is no {found}")
        if low is not None and high is not None and low > high:
            refuse(f"no value of Param `{name}` lies between low={low} and high={high}")
        self.default, self.low, self.high = default, low, high
        super().__init__(Argument(found, f"{name}#{self.serial}", owner=self))

    def __repr__(self) -> str:
        return f"Param({self.name!r}, {self.dtype})"


def _name(name: Any, what: str) -> str:
    if not isinstance(name, str) or not name or MARK in name:
        refuse(f"{name!r} is no name of a {what}", hint=f"a name is text without `{MARK}`")
    return name
