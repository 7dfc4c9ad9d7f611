"""Monoid: a user's own reduction, its laws tested where it is first used."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from stax import dtypes
from stax.dtypes import DType
from stax.errors import StaxError
from stax.expr.evaluate import evaluate
from stax.expr.nodes import Expr
from stax.expr.nodes import Param as Letter
from stax.lang import promote
from stax.lang.inputs import Param
from stax.lang.reduction import Reduction, domain_of, elements_of
from stax.lang.resolve import Context, resolve
from stax.lang.scan import scan
from stax.lang.terms import as_tuple, refuse
from stax.lang.value import Value, apply, value_of
from stax.lang.var import RDom

State = tuple[np.ndarray[Any, Any], ...]
_STATES = 6
_FLOATS = (0.75, -2.5, 1.0, 3.25, 2.0, -0.3)
_INTEGERS = (3, 1, 7, 0, 2, 5)


class Monoid:
    """How two results become one: `combine(p, q)` of values, or of tuples of them, with an `identity`.

    `m(e, over=r)` reduces `e`, a value or a tuple, in the order of `r`. `combine` must be associative, and commutative
    where `commutes` says so; both, and the identity, are tested on samples at the first use with a type. `lift` makes
    the tuple of a single element where users give less than that.

    >>> import stax as sx
    >>> first = sx.Monoid("best", lambda p, q: sx.select(q[0] > p[0], q, p), (-2**31, -1))
    >>> a = sx.Input("a", sx.int32, 1)
    >>> r = sx.RDom("r", x=a.shape[0])
    >>> value, at = first((a[r], r), over=r)
    >>> value.dtype, at.dtype
    (int32, int64)
    """

    def __init__(
        self,
        name: str,
        combine: Callable[[Any, Any], Any],
        identity: object,
        commutes: bool = False,
        *,
        lift: Callable[..., tuple[object, ...]] | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
            refuse(f"{name!r} is no name of a Monoid", hint="sx.Monoid(name, combine, identity)")
        self.name, self.commutes = name, commutes
        self._combine, self._identity, self._lift = combine, as_tuple(identity), lift
        self._tested: set[tuple[str, ...]] = set()

    def __call__(self, e: object, over: RDom, name: str | None = None) -> Any:
        """Return the reduction of `e` over an RDom: a value, or a tuple of as many as the identity has."""
        domain = domain_of(over)
        given = as_tuple(e)
        if len(given) != len(self._identity) and self._lift is not None:
            given = self._lift(*given)
        if len(given) != len(self._identity):
            refuse(f"Monoid `{self.name}` has {len(self._identity)} parts, and is given {len(given)}")
        values = elements_of(tuple(value_of(v) for v in given))
        types = tuple(v.dtype for v in values)
        inner = tuple(dtypes.float32 if t.is_half else t for t in types)
        self._test(inner)
        elements = tuple(_typed(v, t) for v, t in zip(values, inner, strict=True))
        made = Reduction(self.name, elements, domain, inner, self._start(inner), self._combined, name)
        found = tuple(_typed(v, t) for v, t in zip(made.values(), types, strict=True))
        return found[0] if len(found) == 1 else found

    def __repr__(self) -> str:
        return f"Monoid({self.name!r})"

    def _start(self, types: tuple[DType, ...]) -> tuple[Value, ...]:
        return tuple(Value(promote.meet(value_of(i).node, t)) for i, t in zip(self._identity, types, strict=True))

    def _combined(self, p: tuple[Value, ...], q: tuple[Value, ...]) -> tuple[Value, ...]:
        single = len(p) == 1
        result = as_tuple(self._combine(p[0], q[0]) if single else self._combine(p, q))
        if len(result) != len(p):
            refuse(f"Monoid `{self.name}` has {len(p)} parts, and its combine gives {len(result)}")
        return tuple(value_of(v, f"a part of Monoid `{self.name}`") for v in result)

    def _test(self, types: tuple[DType, ...]) -> None:
        """Refuse a combine that breaks a law on the samples; skip one that reads arrays or Params."""
        key = tuple(t.name for t in types)
        if key in self._tested:
            return
        self._tested.add(key)
        p, q = ([Param(f"{side}{k}", t) for k, t in enumerate(types)] for side in "pq")
        names = {id(a): a.name for a in (*p, *q)}
        combined = [promote.meet(v.node, t) for v, t in zip(self._combined(tuple(p), tuple(q)), types, strict=True)]
        start = [v.node for v in self._start(types)]
        used = scan([*combined, *start])
        if used.owners or any(key not in names for key in used.params) or used.vars or used.steps:
            return
        context = Context(names, lambda owner, part: ("", owner.dtype, None))
        roots = resolve(list(zip([*combined, *start], [*types, *types], strict=True)), context)

        def run(a: State, b: State) -> State:
            return _run(roots[: len(types)], a, b)

        states = [_samples(t, k) for k, t in enumerate(types)]
        count = range(_STATES)
        picks = np.array(list(itertools.product(count, count, count))).T
        x, y, z = (tuple(s[pick] for s in states) for pick in picks)
        none = tuple(np.broadcast_to(v, x[0].shape) for v in evaluate(roots[len(types) :], _no_leaf))
        self._same("its identity is none: combine(identity, x) is not x", run(none, x), x, (x,))
        self._same("its identity is none: combine(x, identity) is not x", run(x, none), x, (x,))
        broken = "combine is not associative: combine(combine(x, y), z) is not combine(x, combine(y, z))"
        self._same(broken, run(run(x, y), z), run(x, run(y, z)), (x, y, z))
        if self.commutes:
            broken = "combine does not commute: combine(x, y) is not combine(y, x)"
            self._same(broken, run(x, y), run(y, x), (x, y))

    def _same(self, law: str, got: State, wanted: State, at: tuple[State, ...]) -> None:
        bad = np.zeros(got[0].shape, bool)
        for a, b in zip(got, wanted, strict=True):
            if a.dtype.kind == "f":
                wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
                close = np.isclose(wide_a, wide_b, rtol=2e3 * np.finfo(a.dtype).eps, atol=2e3 * np.finfo(a.dtype).eps)
                bad |= ~(close | (np.isnan(a) & np.isnan(b)))
            else:
                bad |= a != b
        if not bad.any():
            return
        k = int(np.argmax(bad))
        shown = [f"{letter} = {_shown(s, k)}" for letter, s in zip("xyz", at, strict=False)]
        refuse(
            f"Monoid `{self.name}`: {law}",
            facts=[", ".join(shown), f"one gives {_shown(got, k)}, the other {_shown(wanted, k)}"],
        )


def _run(roots: tuple[Expr, ...], p: State, q: State) -> State:
    values = {**{f"p{k}": a for k, a in enumerate(p)}, **{f"q{k}": a for k, a in enumerate(q)}}

    def leaf(node: Expr) -> np.ndarray[Any, Any]:
        assert isinstance(node, Letter)
        return values[node.name]

    return tuple(np.broadcast_to(v, p[0].shape) for v in evaluate(roots, leaf))


def _no_leaf(node: Expr) -> np.ndarray[Any, Any]:
    raise StaxError(f"{type(node).__name__} in an identity")


def _samples(dtype: DType, part: int) -> np.ndarray[Any, Any]:
    """Return values of a part: other orders for other parts, no sum of which is 0."""
    order = [(k * (part + 1) + part) % _STATES if part < 4 else k for k in range(_STATES)]
    given = _FLOATS if dtype.is_float else _INTEGERS
    if dtype.is_bool:
        return np.array([k % 2 == part % 2 for k in range(_STATES)])
    return np.array([given[k] for k in order]).astype(dtype.dtype)


def _shown(state: State, k: int) -> str:
    parts = [str(s[k]) for s in state]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _typed(value: Value, dtype: DType) -> Value:
    return value if value.node.dtype.name == dtype.name else apply(lambda node: promote.convert(node, dtype), value)  # pyright: ignore
