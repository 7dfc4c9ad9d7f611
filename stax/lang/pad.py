"""pad: what lies beyond an array, in NumPy's five modes."""

from __future__ import annotations

from stax.expr.nodes import Expr, Var
from stax.lang.func import Func
from stax.lang.inputs import Array
from stax.lang.math import clip, maximum, minimum, select
from stax.lang.terms import NUMBER, as_tuple, refuse
from stax.lang.value import Value, value_of

MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def pad(a: Array | Func, mode: str = "constant", axes: object = None, value: object = 0) -> Func:
    """Return `a` extended without end on `axes` (all, unless given as ints or dim names); its origin stays.

    mode: as np.pad has it: "constant" gives `value` outside, "edge" the nearest element, "reflect" and "symmetric" a
    mirror image without and with the edge twice, "wrap" starts anew. A Func needs a declared shape on those axes.

    >>> import stax as sx
    >>> y, x = sx.vars("y x")
    >>> a = sx.Input("a", sx.float32, 2)
    >>> e = sx.pad(a, "edge")
    >>> f = sx.Func("f")
    >>> f[y, x] = e[y, x - 1] + e[y, x + 1]
    """
    if not isinstance(a, Array | Func):  # pyright: ignore[reportUnnecessaryIsInstance]
        refuse(f"{type(a).__name__} is padded", hint="sx.pad takes an Input, a Const or a Func")
    if mode not in MODES:
        refuse(f"`{mode}` is no mode of pad", hint=f"modes are {', '.join(MODES)}")
    chosen = _axes(a, axes)
    names = [Value(Var(NUMBER, d)) for d in a.dims]
    index: list[Value] = []
    inside: Value | None = None
    for k, at in enumerate(names):
        if k not in chosen:
            index.append(at)
            continue
        n = _extent(a, k)
        index.append(at if mode == "constant" else _mapped(mode, at, n))
        if mode == "constant":
            within = (at >= 0) & (at < n)
            inside = within if inside is None else inside & within
    parts = as_tuple(a[tuple(index)])
    if inside is not None:
        parts = tuple(select(inside, part, value) for part in parts)
    made = Func(f"{a.name}.pad")
    made[tuple(names)] = parts
    return made


def _mapped(mode: str, at: Value, n: Value) -> Value:
    """Return which element stands at `at`; the bounds of a mirrored index are put so that they can be seen."""
    match mode:
        case "edge":
            return clip(at, 0, n - 1)
        case "wrap":
            return at % n
        case "symmetric":
            around = at % (2 * n)
            return minimum(minimum(around, 2 * n - 1 - around), n - 1)
        case _:
            around = at % maximum(2 * n - 2, 1)
            return minimum(minimum(around, 2 * n - 2 - around), n - 1)


def _axes(a: Array | Func, axes: object) -> set[int]:
    if axes is None:
        return set(range(len(a.dims)))
    given = as_tuple(tuple(axes) if isinstance(axes, list) else axes)  # pyright: ignore[reportUnknownArgumentType]
    out: set[int] = set()
    for one in given:
        if isinstance(one, str) and one in a.dims:
            out.add(a.dims.index(one))
        elif isinstance(one, int) and -len(a.dims) <= one < len(a.dims):
            out.add(one % len(a.dims))
        else:
            refuse(f"`{a.name}` has no axis {one!r}", facts=[f"its dims are {', '.join(a.dims)}"])
    return out


def _extent(a: Array | Func, k: int) -> Value:
    if isinstance(a, Func):
        found: Expr | None = None if a.extents is None else a.extents[k]
        if found is None:
            refuse(
                f"`{a.name}` is padded along `{a.dims[k]}`, where it has no declared extent",
                hint=f'sx.Func("{a.name}", shape=(...)), or pad the Input that it reads',
            )
        return Value(found)
    return value_of(a.shape[k])
