"""Value: an expression with Python's operators."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn, TypeAlias

import numpy as np

from stax.dtypes import DType
from stax.errors import SymbolicValueError
from stax.expr.nodes import BinaryOp, Expr
from stax.expr.show import show
from stax.lang import promote
from stax.lang.terms import Access, is_weak, of_number, readable, refuse, settled
from stax.source import here

Op = BinaryOp
_REFLECTED = {
    "add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__",
    "true_divide": "__rtruediv__", "floor_divide": "__rfloordiv__", "remainder": "__rmod__", "power": "__rpow__",
    "bitwise_and": "__rand__", "bitwise_or": "__ror__", "bitwise_xor": "__rxor__", "left_shift": "__rlshift__",
    "right_shift": "__rrshift__", "less": "__gt__", "less_equal": "__ge__", "greater": "__lt__",
    "greater_equal": "__le__", "equal": "__eq__", "not_equal": "__ne__",
}  # fmt: skip
"""What NumPy calls an operator, and the method of its right side."""
Recipe: TypeAlias = tuple[Callable[..., Expr], tuple["Value", ...]]


class Indexed:
    """What has values at indices and is none itself: Func, Input, Const."""

    __array_ufunc__ = None
    __iter__ = None
    __contains__ = None
    name: str

    def __bool__(self) -> NoReturn:
        _no_truth()

    def __call__(self, *index: object) -> NoReturn:
        """Refuse what Halide writes so."""
        refuse(
            f"`{self.name}` is called", hint=f"{self.name}[...] reads it at an index; sx.compile makes what is called"
        )

    def _no_value(self, *_: object) -> Value:
        return value_of(self)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _no_value
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __abs__ = _no_value
    __lt__ = __le__ = __gt__ = __ge__ = _no_value


class Value:
    """A number that is known when the program runs; operators build larger ones.

    Operators follow NumPy 2: Python numbers are weak, NumPy's keep their type. `==` builds a comparison too.

    >>> import stax as sx
    >>> x = sx.Var("x")
    >>> a = sx.Input("a", sx.uint8, 1)
    >>> (a[x] + 1).dtype, (a[x] / 2).dtype, (a[x] < 3).dtype
    (uint8, float64, bool)
    """

    __slots__ = ("_node", "recipe")
    __iter__ = None
    __contains__ = None

    def __init__(self, node: Expr, recipe: Recipe | None = None) -> None:
        self._node = node
        self.recipe = recipe

    def __getattr__(self, name: str) -> Any:
        hint = "; sx.cast(value, dtype) converts" if name in ("astype", "view") else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    @property
    def dtype(self) -> DType:
        """The type of this value, or the one it has where it meets no other."""
        return settled(self.node.dtype)

    @property
    def node(self) -> Expr:
        """The expression; its type may be one of `lang.terms`."""
        return self._node

    def __add__(self, other: object) -> Value:
        return _binary(Op.ADD, self, other)

    def __radd__(self, other: object) -> Value:
        return _binary(Op.ADD, other, self)

    def __sub__(self, other: object) -> Value:
        return _binary(Op.SUB, self, other)

    def __rsub__(self, other: object) -> Value:
        return _binary(Op.SUB, other, self)

    def __mul__(self, other: object) -> Value:
        return _binary(Op.MUL, self, other)

    def __rmul__(self, other: object) -> Value:
        return _binary(Op.MUL, other, self)

    def __truediv__(self, other: object) -> Value:
        return _binary(Op.DIV, self, other)

    def __rtruediv__(self, other: object) -> Value:
        return _binary(Op.DIV, other, self)

    def __floordiv__(self, other: object) -> Value:
        return _binary(Op.FLOORDIV, self, other)

    def __rfloordiv__(self, other: object) -> Value:
        return _binary(Op.FLOORDIV, other, self)

    def __mod__(self, other: object) -> Value:
        return _binary(Op.MOD, self, other)

    def __rmod__(self, other: object) -> Value:
        return _binary(Op.MOD, other, self)

    def __and__(self, other: object) -> Value:
        return _binary(Op.AND, self, other)

    def __rand__(self, other: object) -> Value:
        return _binary(Op.AND, other, self)

    def __or__(self, other: object) -> Value:
        return _binary(Op.OR, self, other)

    def __ror__(self, other: object) -> Value:
        return _binary(Op.OR, other, self)

    def __xor__(self, other: object) -> Value:
        return _binary(Op.XOR, self, other)

    def __rxor__(self, other: object) -> Value:
        return _binary(Op.XOR, other, self)

    def __lshift__(self, other: object) -> Value:
        return _binary(Op.SHL, self, other)

    def __rlshift__(self, other: object) -> Value:
        return _binary(Op.SHL, other, self)

    def __rshift__(self, other: object) -> Value:
        return _binary(Op.SHR, self, other)

    def __rrshift__(self, other: object) -> Value:
        return _binary(Op.SHR, other, self)

    def __lt__(self, other: object) -> Value:
        return _binary(Op.LT, self, other)

    def __le__(self, other: object) -> Value:
        return _binary(Op.LE, self, other)

    def __gt__(self, other: object) -> Value:
        return _binary(Op.LT, other, self)

    def __ge__(self, other: object) -> Value:
        return _binary(Op.LE, other, self)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return _binary(Op.EQ, self, other)

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return _binary(Op.NE, self, other)

    __hash__ = object.__hash__

    def __pow__(self, other: object) -> Value:
        return apply(promote.power, self, other)

    def __rpow__(self, other: object) -> Value:
        return apply(promote.power, other, self)

    def __neg__(self) -> Value:
        return apply(promote.negate, self)

    def __pos__(self) -> Value:
        return self

    def __invert__(self) -> Value:
        return apply(promote.invert, self)

    def __abs__(self) -> Value:
        return apply(promote.absolute, self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *given: Any, **named: Any) -> Value:
        """Be the right side of an operator of a NumPy scalar; refuse NumPy's functions."""
        if ufunc.__name__ in _REFLECTED and len(given) == 2 and given[1] is self and not named:
            return getattr(self, _REFLECTED[ufunc.__name__])(given[0])
        refuse(
            f"NumPy's `{ufunc.__name__}` is given a value of the program",
            hint="stax has its own functions under NumPy's names: sx.sqrt, sx.exp, sx.maximum, ...",
        )

    def __bool__(self) -> NoReturn:
        _no_truth()

    def __index__(self) -> NoReturn:
        _no_number("an index of a Python sequence", "sx.choose(i, [...]) picks one of several values")

    def __int__(self) -> NoReturn:
        _no_number("int()", "sx.cast(e, sx.int64) converts; sx.Param gives a number at each call")

    def __float__(self) -> NoReturn:
        _no_number(
            "float()", "sx.cast(e, dtype) converts, as in sx.cast(e, sx.float32); functions are sx.exp, sx.sqrt, ..."
        )

    def __round__(self, digits: int | None = None) -> NoReturn:
        _no_number("round()", "sx.rint, sx.floor, sx.ceil and sx.trunc round; sx.cast(e, sx.int64) makes integers")

    def __repr__(self) -> str:
        return f"<{self.dtype} {show(readable(self.node), limit=200)}>"


def value_of(given: object, what: str = "a value") -> Value:
    """Return `given` as a Value; refuse what is no number, saying `what` it should be."""
    if isinstance(given, Value):
        given.node  # noqa: B018  (an RDom of several variables refuses here)
        return given
    if isinstance(given, bool | int | float | np.generic):
        return Value(of_number(given))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(given, np.ndarray):
        if given.ndim == 0:  # pyright: ignore[reportUnknownMemberType]
            return Value(of_number(given[()]))  # pyright: ignore
        refuse(
            "an array stands in an expression",
            hint="make it part of the program, `t = sx.Const(name, array)`, and read t[...]",
        )
    if isinstance(given, Indexed):
        refuse(f"`{given.name}` stands for {what}, without an index", hint=f"read it at an index: {given.name}[...]")
    if isinstance(given, tuple):
        refuse(f"a tuple stands for {what}", hint="take one of its parts, v[0], or unpack it")
    refuse(f"{type(given).__name__} {given!r:.60} stands for {what}")


def apply(make: Callable[..., Expr], *given: object) -> Value:
    """Return the Value that `make` builds from the expressions of `given`."""
    values = tuple(value_of(g) for g in given)
    node = make(*(v.node for v in values))
    if any(v.recipe is not None for v in values):
        return Value(node, (make, values))
    return Value(node)


def again(roots: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return `roots` built anew, now that the types of Funcs they read are known."""
    done: dict[int, Value] = {}
    for root in roots:
        stack = [root]
        while stack:
            value = stack[-1]
            recipe = value.recipe
            if id(value) in done:
                stack.pop()
            elif recipe is None:
                done[id(value)] = stack.pop()
            else:
                make, parts = recipe
                missing = [p for p in parts if id(p) not in done]
                if missing:
                    stack += missing
                    continue
                new = tuple(done[id(p)] for p in parts)
                node = make(*(p.node for p in new))
                kept = any(p.recipe is not None for p in new) or (isinstance(node, Access) and is_weak(node.dtype))
                done[id(value)] = Value(node, (make, new) if kept else None)
                stack.pop()
    return tuple(done[id(root)] for root in roots)


def _binary(op: BinaryOp, left: object, right: object) -> Value:
    a, b = value_of(left), value_of(right)
    node = promote.operate(op, a.node, b.node)
    if a.recipe is not None or b.recipe is not None:
        return Value(node, (partial(promote.operate, op), (a, b)))
    return Value(node)


def _no_truth() -> NoReturn:
    raise SymbolicValueError(
        "a value of the program has no truth yet",
        ((here(), "Python asks whether this is true"),),
        ("`if`, `and`, `or`, `not`, `in`, chains such as 0 < x < 5, and Python's max and min ask so",),
        "use `&`, `|`, `~` with brackets, as in (0 < x) & (x < 5), and sx.select(condition, a, b) or sx.maximum",
    )


def _no_number(asker: str, hint: str) -> NoReturn:
    raise SymbolicValueError(
        "a value of the program is no Python number yet", ((here(), f"{asker} needs one"),), (), hint
    )
