"""Random pointwise and reducing pipelines, through the language and the lowering, with arrays to run them on."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import stax as sx
from stax.loops.nodes import Program
from stax.lower.passes import lower
from tests.loops.programs import Array

TYPES = ("float32", "uint8", "int32", "float64", "uint16", "int64", "float16", "uint32", "int16", "uint64")
ROWS, COLUMNS, SUMMED = 5, 37, 9


@dataclass(frozen=True)
class Pipeline:
    """A lowered program, its inputs and the shape of its output `f`."""

    name: str
    program: Program
    inputs: dict[str, Array]
    shape: tuple[int, ...]


def pipeline(seed: int) -> Pipeline:
    """Return pipeline `seed`: pointwise, a stencil of a stored stage, or a sum or extreme along rows or columns."""
    draw = Random(seed)
    dtype = TYPES[seed % len(TYPES)]
    kind = ("pointwise", "stencil", "row", "column")[seed // 2 % 4]
    a, b = sx.Input("a", dtype, 2), sx.Input("b", dtype, 2)
    y, x = sx.Var("y"), sx.Var("x")
    f = sx.Func("f")
    shape: tuple[int, ...] = (ROWS, COLUMNS)
    if kind == "pointwise":
        f[y, x] = _term(draw, dtype, lambda: _leaf(draw, (a, b), y, x), 4)
    elif kind == "stencil":
        g = sx.Func("g")
        g[y, x] = _term(draw, dtype, lambda: _leaf(draw, (a, b), y, x), 2)
        f[y, x] = _term(draw, dtype, lambda: g[y + draw.randrange(2), x + draw.randrange(3)], 3)
    else:
        r = sx.RDom("r", k=SUMMED)
        index = (y, r.k) if kind == "row" else (r.k, y)
        e = _term(draw, dtype, lambda: _leaf(draw, (a, b), *index), 2)
        f[y] = {0: lambda: sx.sum(e, over=r), 1: lambda: sx.max(e, over=r), 2: lambda: sx.min(e, over=r)}[seed % 3]()
        shape = (ROWS if kind == "row" else COLUMNS,)
    extents = {"row": (ROWS, SUMMED), "column": (SUMMED, COLUMNS)}.get(kind, (ROWS + 2, COLUMNS + 4))
    rng = np.random.default_rng(seed)
    inputs = {name: _numbers(rng, np.dtype(dtype), (extents[0] + 2, extents[1] + 2)) for name in ("a", "b")}
    return Pipeline(f"{seed} {kind} {dtype}", lower(sx.check(f), "kernel"), inputs, shape)


def _leaf(draw: Random, arrays: tuple[Any, Any], y: Any, x: Any) -> Any:
    return draw.choice(arrays)[y + draw.randrange(2), x + draw.randrange(2)]


def _term(draw: Random, dtype: str, leaf: Any, depth: int) -> Any:
    if depth == 0:
        return leaf()
    p, q = _term(draw, dtype, leaf, depth - 1), _term(draw, dtype, leaf, depth - 1 - draw.randrange(min(2, depth)))
    ways: list[Any] = [
        lambda: p + q, lambda: p - q, lambda: p * q, lambda: sx.minimum(p, q), lambda: sx.maximum(p, q),
        lambda: sx.select(p < q, p, q + 1), lambda: abs(p) + 1,
    ]  # fmt: skip
    if dtype.startswith("float"):
        ways += [lambda: p / (abs(q) + 1), lambda: sx.sqrt(abs(p)), lambda: sx.tanh(p) * q, lambda: sx.floor(p) - q]
    else:
        ways += [
            lambda: p // q,
            lambda: p % 7,
            lambda: p & q,
            lambda: p ^ q,
            lambda: p >> 2,
            lambda: sx.cast(p, "int8") * q,
        ]
    found = draw.choice(ways)()
    return found if found.dtype == dtype else sx.cast(found, dtype)


def _numbers(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, int]) -> Array:
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, -1000), min(int(info.max), 1000), shape).astype(dtype)
