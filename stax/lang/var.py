"""Var and RDom: the indices of a definition, and those that a reduction or an update runs over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from stax.algorithm.nodes import MARK
from stax.expr import nodes
from stax.expr.nodes import Expr
from stax.lang.promote import index_of
from stax.lang.scan import close_reads
from stax.lang.terms import NUMBER, Step, as_tuple, refuse
from stax.lang.value import Value, value_of
from stax.source import Span, here


class Var(Value):
    """An index of a definition. Vars of one name are one Var; as a number it is an int64.

    >>> import stax as sx
    >>> x = sx.Var("x")
    >>> f = sx.Func("f")
    >>> f[x] = 2 * x + 1
    >>> f.dtype
    int64
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name or "." in name or MARK in name:  # pyright: ignore[reportUnnecessaryIsInstance]
            refuse(f"{name!r} is no name of a Var", hint=f"a name is text without `.` and `{MARK}`")
        self.name = name
        super().__init__(nodes.Var(NUMBER, name))

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


def vars(names: str) -> tuple[Var, ...]:
    """Return a Var for each of the `names`, which stand apart by spaces or commas.

    >>> import stax as sx
    >>> sx.vars("y x")
    (y, x)
    """
    if not isinstance(names, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        refuse(f"{names!r:.60} is no text of names", hint='sx.vars("y x")')
    return tuple(Var(name) for name in names.replace(",", " ").split())


class ReductionVar(Var):
    """A variable of an RDom, `r.y`."""

    __slots__ = ()

    def __init__(self, domain: RDom, name: str) -> None:
        self.name = name
        Value.__init__(self, Step(NUMBER, name, owner=domain))


@dataclass(frozen=True, slots=True)
class Bounds:
    """A variable of an RDom and its half-open range, as int64."""

    name: str
    lo: Expr
    hi: Expr


class RDom(Value):
    """What a reduction or an update runs over: one loop a keyword, outermost first, the last one fastest.

    `y=(lo, hi)` runs lo, ..., hi - 1, and `x=n` runs 0, ..., n - 1. Bounds are ints, Params, sizes, outer Vars, or a
    function of the RDom where they use its earlier variables. `where` is a function of the RDom too, and keeps the
    points where it holds. An RDom of one variable stands for that variable.

    >>> import stax as sx
    >>> r = sx.RDom("r", y=(-1, 2), x=3, where=lambda r: r.y + r.x >= 0)
    >>> r.y, r.x
    (r.y, r.x)
    """

    __slots__ = ("_bounds", "_name", "_span", "_steps", "_where")

    def __init__(
        self, name: str, /, *wrong: object, where: Callable[[Any], object] | None = None, **variables: object
    ) -> None:
        if wrong or not variables:
            refuse(
                f"the ranges of RDom {name!r} have no names",
                hint=f'name each variable: sx.RDom("{name}", y=(lo, hi), x=n); ranges are half open',
            )
        self._name, self._span = name, here()
        self._steps: dict[str, ReductionVar] = {}
        bounds: list[Bounds] = []
        for key, given in variables.items():
            if key in dir(Value):
                refuse(f"an RDom's variable cannot be called `{key}`")
            made = ReductionVar(self, f"{name}.{key}")
            lo, hi = self._range(key, given)
            bounds.append(Bounds(made.name, lo, hi))
            self._steps[key] = made
        self._bounds = tuple(bounds)
        super().__init__(next(iter(self._steps.values())).node)
        self._where: Expr | None = None
        if where is not None:
            (cond,) = close_reads((value_of(where(self), "a condition"),), None)
            if not cond.node.dtype.is_bool:
                refuse(f"the `where` of RDom {name!r} gives {cond.dtype}, not bool")
            self._where = cond.node

    def __getattr__(self, key: str) -> ReductionVar:
        if key.startswith("_"):
            raise AttributeError(key)
        found = self._steps.get(key)
        if found is None:
            names = ", ".join(f"{self._name}.{k}" for k in self._steps)
            refuse(f"RDom {self._name!r} has no variable `{key}`", hint=f"it has {names}")
        return found

    @property
    def node(self) -> Expr:
        """The variable, where there is one only."""
        if len(self._steps) != 1:
            names = ", ".join(f"{self._name}.{k}" for k in self._steps)
            refuse(f"RDom {self._name!r} of several variables stands for a value", hint=f"use one of {names}")
        return self._node

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """The ranges, outermost first."""
        return self._bounds

    @property
    def predicate(self) -> Expr | None:
        """The condition on points, if any."""
        return self._where

    @property
    def span(self) -> Span | None:
        """Where it was made."""
        return self._span

    @property
    def variables(self) -> Mapping[str, ReductionVar]:
        """The variables by keyword, outermost first."""
        return self._steps

    def __repr__(self) -> str:
        return f"RDom({self._name!r}, {', '.join(self._steps)})"

    def _range(self, key: str, given: object) -> tuple[Expr, Expr]:
        ends = as_tuple(given)
        if len(ends) == 1 and not isinstance(given, tuple):
            ends = (0, *ends)
        if len(ends) != 2:
            refuse(f"the range of `{key}` is no pair", hint=f"{key}=(lo, hi), half open, or {key}=n")
        return self._end(key, ends[0]), self._end(key, ends[1])

    def _end(self, key: str, given: Any) -> Expr:
        if callable(given) and not isinstance(given, Value):
            given = given(SimpleNamespace(**self._steps))
        return index_of(value_of(given, f"a bound of `{key}`").node, f"a bound of `{key}`")
