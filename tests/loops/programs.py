"""Loop programs with tiles, as both machines take them: a builder each, called with block sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from stax import dtypes
from stax.dtypes import DType
from stax.expr import build
from stax.expr.nodes import (
    INDEX,
    Axes,
    Axis,
    BinaryOp,
    Const,
    Dot,
    Expr,
    Load,
    Local,
    Param,
    Ramp,
    Reduce,
    Size,
)  # fmt: skip
from stax.loops.interpret import interpret
from stax.loops.nodes import Allocate, Block, Buffer, Carry, For, Let, LoopKind, Program, Role, Stmt, Store

Array: TypeAlias = np.ndarray[Any, Any]
Scalars: TypeAlias = dict[str, float]
Data: TypeAlias = Callable[[np.random.Generator, int, int], tuple[dict[str, Array], Scalars, dict[str, Array]]]
F32 = dtypes.float32


@dataclass(frozen=True)
class Case:
    """A program, and how to make its arrays, its scalars and NumPy's answer for two extents."""

    name: str
    program: Program
    data: Data
    tolerance: float = 0.0


def sizes_of(program: Program, arrays: Mapping[str, Array]) -> dict[tuple[str, int], int]:
    """Return the extents of the arguments."""
    return {(b.name, d): n for b in program.buffers for d, n in enumerate(arrays[b.name].shape)}


def run(program: Program, arrays: Mapping[str, Array], scalars: Mapping[str, float]) -> None:
    """Interpret `program`."""
    interpret(program, arrays, scalars, sizes_of(program, arrays))


def size(array: str, dim: int) -> Size:
    """Return an extent."""
    return Size(INDEX, array, dim)


def argument(name: str, dtype: DType, rank: int, role: Role = Role.INPUT) -> Buffer:
    """Return an array argument whose shape is its own sizes."""
    return Buffer(name, dtype, tuple(size(name, d) for d in range(rank)), role)


def op(kind: BinaryOp, left: Expr, right: Expr | float) -> Expr:
    """Return `left op right`, the one with fewer axes spread along those of the other."""
    other = Const(left.dtype, right) if isinstance(right, int | float) else right
    axes = max(left.axes, other.axes, key=len)
    return build.binary(kind, build.spread(left, axes), build.spread(other, axes))


def add(left: Expr, right: Expr | float) -> Expr:
    """Return left + right."""
    return op(BinaryOp.ADD, left, right)


def mul(left: Expr, right: Expr | float) -> Expr:
    """Return left * right."""
    return op(BinaryOp.MUL, left, right)


def within(position: Expr, extent: Expr) -> Expr:
    """Return whether `position` is below `extent`."""
    return op(BinaryOp.LT, position, extent)


def ramp(axis: Axis) -> Ramp:
    """Return the positions along `axis`."""
    return Ramp(INDEX, axes=(axis,))


def blocks(extent: Expr, block: int) -> Expr:
    """Return how many blocks cover `extent`."""
    return build.floordiv(build.add(extent, block - 1), block)


def tile(outer: str, axis: Axis) -> Expr:
    """Return the positions of block `outer` along `axis`."""
    return add(build.mul(build.local(outer), axis.size), ramp(axis))


def load(buffer: Buffer, index: tuple[Expr, ...], mask: tuple[Expr, ...] = (), other: float | None = None) -> Load:
    """Return a load with the axes of its index, those of the first index first."""
    axes: list[Axis] = []
    for i in index:
        axes += [a for a in i.axes if a not in axes]
    instead = None if other is None else Const(buffer.dtype, other)
    return Load(buffer.dtype, buffer.name, index, mask, instead, axes=tuple(axes))


def parallel(var: str, extent: Expr, *body: Stmt) -> For:
    """Return a parallel loop from 0."""
    return For(build.local(var), build.index(0), extent, LoopKind.PARALLEL, Block(body))


def serial(var: str, extent: Expr, body: tuple[Stmt, ...], carries: tuple[Carry, ...] = ()) -> For:
    """Return a serial loop from 0."""
    return For(build.local(var), build.index(0), extent, LoopKind.SERIAL, Block(body), carries)


def program(name: str, buffers: tuple[Buffer, ...], axes: Axes, *body: Stmt, params: tuple[Param, ...] = ()) -> Program:
    """Return a program whose scalars are its parameters and the sizes of its arguments."""
    sizes = tuple(n for b in buffers for n in b.shape if isinstance(n, Size))
    return Program(name, buffers, (*params, *sizes), Block(body), axes)


def pointwise(bi: int, bj: int) -> Program:
    """out[i, j] = max(x[i, j] * s + b[j], 0)."""
    x, b, out = argument("x", F32, 2), argument("b", F32, 1), argument("out", F32, 2, Role.OUTPUT)
    s = Param(F32, "s")
    i, j = Axis("i", bi), Axis("j", bj)
    row, col = tile("io", i), tile("jo", j)
    rows, cols = within(row, size("out", 0)), within(col, size("out", 1))
    value = add(mul(load(x, (row, col), (rows, cols)), s), load(b, (col,), (cols,)))
    store = Store("out", (row, col), op(BinaryOp.MAX, value, 0.0), (rows, cols))
    nest = parallel("io", blocks(size("out", 0), bi), parallel("jo", blocks(size("out", 1), bj), store))
    return program("pointwise", (x, b, out), (i, j), nest, params=(s,))


def row_sum(bi: int, bj: int) -> Program:
    """total[i] and top[i] of x[i, :]: partial results in lanes, carried along the row and combined after it."""
    x = argument("x", F32, 2)
    total, top = argument("total", F32, 1, Role.OUTPUT), argument("top", F32, 1, Role.OUTPUT)
    i, j = Axis("i", bi), Axis("j", bj)
    row, col = tile("io", i), tile("jo", j)
    rows, cols = within(row, size("x", 0)), within(col, size("x", 1))
    carries: list[Carry] = []
    for name, how, start in (("part", BinaryOp.ADD, 0.0), ("peak", BinaryOp.MAX, float("-inf"))):
        held = Local(F32, name, axes=(i, j))
        after = op(how, held, load(x, (row, col), (rows, cols), start))
        carries.append(Carry(held, build.const(start, F32, (i, j)), after))
    stores = [
        Store(out, (row,), Reduce(F32, how, carry.name, j, axes=(i,)), (rows,))
        for out, how, carry in zip(("total", "top"), (BinaryOp.ADD, BinaryOp.MAX), carries, strict=True)
    ]
    loop = serial("jo", blocks(size("x", 1), bj), (), tuple(carries))
    nest = parallel("io", blocks(size("x", 0), bi), loop, *stores)
    return program("row_sum", (x, total, top), (i, j), nest)


def blur(strip: int, bj: int) -> Program:
    """Return a 3x3 box of uint16 marched down strips of rows; two rows summed along x are carried."""
    u16 = dtypes.uint16
    x, out = argument("x", u16, 2), argument("out", u16, 2, Role.OUTPUT)
    height, width = size("out", 0), size("out", 1)
    j = Axis("j", bj)
    col = tile("jo", j)
    cols = within(col, width)

    def summed(y: Expr) -> Expr:
        left, here, right = (load(x, (y, add(col, k)), (cols,)) for k in range(3))
        return op(BinaryOp.FLOORDIV, add(add(left, here), right), 3)

    top = build.mul(build.local("yo"), strip)
    y = build.add(top, build.local("y"))
    h0, h1, h2 = (Local(u16, name, axes=(j,)) for name in ("h0", "h1", "h2"))
    carries = (Carry(h0, summed(top), h1), Carry(h1, summed(build.add(top, 1)), h2))
    mean = op(BinaryOp.FLOORDIV, add(add(h0, h1), h2), 3)
    rows = build.minimum(build.index(strip), build.sub(height, top))
    loop = serial("y", rows, (Let(h2, summed(build.add(y, 2))), Store("out", (y, col), mean, (cols,))), carries)
    nest = parallel("yo", blocks(height, strip), parallel("jo", blocks(width, bj), loop))
    return program("blur", (x, out), (j,), nest)


def blur_folded(strip: int, bj: int) -> Program:
    """Return the blur with its last rows in scratch folded to three, as lowering makes it."""
    u16 = dtypes.uint16
    x, out = argument("x", u16, 2), argument("out", u16, 2, Role.OUTPUT)
    height, width = size("out", 0), size("out", 1)
    rows = Buffer("rows", u16, (build.index(3), build.index(bj)), Role.SCRATCH)
    j = Axis("j", bj)
    col = tile("jo", j)
    cols = within(col, width)

    def summed(y: Expr) -> Expr:
        left, here, right = (load(x, (y, add(col, k)), (cols,)) for k in range(3))
        return op(BinaryOp.FLOORDIV, add(add(left, here), right), 3)

    top = build.mul(build.local("yo"), strip)
    y = build.local("y")
    at = [build.mod(build.add(y, k), 3) for k in range(3)]
    first = [Store("rows", (build.index(k), ramp(j)), summed(build.add(top, k))) for k in range(2)]
    roll = Store("rows", (at[2], ramp(j)), summed(build.add(build.add(top, y), 2)))
    a, b, c = (load(rows, (row, ramp(j))) for row in at)
    mean = op(BinaryOp.FLOORDIV, add(add(a, b), c), 3)
    count = build.minimum(build.index(strip), build.sub(height, top))
    loop = serial("y", count, (roll, Store("out", (build.add(top, y), col), mean, (cols,))))
    nest = parallel("yo", blocks(height, strip), parallel("jo", blocks(width, bj), Allocate(rows), *first, loop))
    return program("blur_folded", (x, out), (j,), nest)


def matmul(bi: int, bk: int, bj: int, dtype: DType = F32) -> Program:
    """c[i, j] = max(c[i, j] + sum of a[i, k] * b[k, j], 0), tiled over k; the sum is carried in float32."""
    a, b, c = argument("a", dtype, 2), argument("b", dtype, 2), argument("c", F32, 2, Role.OUTPUT)
    m, n, depth = size("c", 0), size("c", 1), size("a", 1)
    i, k, j = Axis("i", bi), Axis("k", bk), Axis("j", bj)
    row, mid, col = tile("io", i), tile("ko", k), tile("jo", j)
    rows, mids, cols = within(row, m), within(mid, depth), within(col, n)
    left, right = load(a, (row, mid), (rows, mids), 0.0), load(b, (mid, col), (mids, cols), 0.0)
    acc = Local(F32, "acc", axes=(i, j))
    start = load(c, (row, col), (rows, cols), 0.0)
    carry = Carry(acc, start, Dot(F32, acc, left, right, k, axes=(i, j)))
    loop = serial("ko", blocks(depth, bk), (), (carry,))
    store = Store("c", (row, col), op(BinaryOp.MAX, acc, 0.0), (rows, cols))
    nest = parallel("io", blocks(m, bi), parallel("jo", blocks(n, bj), loop, store))
    return program("matmul", (a, b, c), (i, k, j), nest)


def histogram(bi: int) -> Program:
    """bins[x[i]] += 1 after clearing: two nests, the second with atomic cells."""
    i32, u8 = dtypes.int32, dtypes.uint8
    x, bins = argument("x", u8, 1), argument("bins", i32, 1, Role.OUTPUT)
    i = Axis("i", bi)
    cell, at = tile("bo", i), tile("io", i)
    zero, one = build.const(0, i32, (i,)), build.const(1, i32, (i,))
    clear = Store("bins", (cell,), zero, (within(cell, size("bins", 0)),))
    inside = within(at, size("x", 0))
    which = build.cast(load(x, (at,), (inside,)), INDEX)
    scatter = Store("bins", (which,), one, (inside,), BinaryOp.ADD)
    nests = (
        parallel("bo", blocks(size("bins", 0), bi), clear),
        parallel("io", blocks(size("x", 0), bi), scatter),
    )
    return program("histogram", (x, bins), (i,), *nests)


def heat(bj: int) -> Program:
    """u[(t + 1) % 2, j] = mean of three neighbours, a serial loop around a parallel one."""
    u, steps = argument("u", F32, 2, Role.OUTPUT), Param(dtypes.int64, "steps")
    n = size("u", 1)
    j = Axis("j", bj)
    at = add(tile("jo", j), 1)
    inside = within(at, build.sub(n, 1))
    t = build.local("t")
    now, later = build.mod(t, 2), build.mod(build.add(t, 1), 2)
    left, here, right = (load(u, (now, add(at, k)), (inside,)) for k in (-1, 0, 1))
    mean = mul(add(add(left, here), right), 1 / 3)
    nest = parallel("jo", blocks(build.sub(n, 2), bj), Store("u", (later, at), mean, (inside,)))
    return program("heat", (u,), (j,), serial("t", build.cast(steps, INDEX), (nest,)), params=(steps,))


def floats(rng: np.random.Generator, *shape: int) -> Array:
    """Return float32 numbers around 0."""
    return rng.standard_normal(shape).astype(np.float32)


def nothing(*shape: int) -> Array:
    """Return an output that holds what no program writes."""
    return np.full(shape, np.nan, np.float32)


def pointwise_data(rng: np.random.Generator, h: int, w: int) -> tuple[dict[str, Array], Scalars, dict[str, Array]]:
    """Return data of `pointwise`, with a NaN that must come through."""
    x, b = floats(rng, h, w), floats(rng, w)
    x[h // 2, w // 2] = np.nan
    return {"x": x, "b": b, "out": nothing(h, w)}, {"s": 1.5}, {"out": np.maximum(x * np.float32(1.5) + b, 0)}


def row_sum_data(rng: np.random.Generator, h: int, w: int) -> tuple[dict[str, Array], Scalars, dict[str, Array]]:
    """Return data of `row_sum`, with a NaN in one row."""
    x = floats(rng, h, w)
    x[h // 2, w // 2] = np.nan
    arrays = {"x": x, "total": nothing(h), "top": nothing(h)}
    return arrays, {}, {"total": x.sum(1), "top": x.max(1)}


def blur_data(rng: np.random.Generator, h: int, w: int) -> tuple[dict[str, Array], Scalars, dict[str, Array]]:
    """Return data of both blurs."""
    x = rng.integers(0, 2**16, (h + 2, w + 2)).astype(np.uint16)
    across = (x[:, :w] + x[:, 1 : w + 1] + x[:, 2:]) // np.uint16(3)
    right = (across[:h] + across[1 : h + 1] + across[2:]) // np.uint16(3)
    return {"x": x, "out": np.full((h, w), 65533, np.uint16)}, {}, {"out": right}


def matmul_data(rng: np.random.Generator, h: int, w: int) -> tuple[dict[str, Array], Scalars, dict[str, Array]]:
    """Return data of `matmul`, whose summed extent is 9."""
    a, b, c = floats(rng, h, 9), floats(rng, 9, w), floats(rng, h, w)
    return {"a": a, "b": b, "c": c.copy()}, {}, {"c": np.maximum(c + a @ b, 0)}


def histogram_data(rng: np.random.Generator, h: int, w: int) -> tuple[dict[str, Array], Scalars, dict[str, Array]]:
    """Return data of `histogram`."""
    x = rng.integers(0, 10, h * w).astype(np.uint8)
    right = np.bincount(x, minlength=10).astype(np.int32)
    return {"x": x, "bins": np.full(10, 99, np.int32)}, {}, {"bins": right}


def heat_data(rng: np.random.Generator, h: int, w: int) -> tuple[dict[str, Array], Scalars, dict[str, Array]]:
    """Return data of `heat`, which takes `h` steps; both rows begin alike, since the ends stay."""
    u = np.repeat(floats(rng, 1, w + 2), 2, axis=0)
    right = u.copy()
    for t in range(h):
        a, third = right[t % 2], np.float32(1 / 3)
        right[(t + 1) % 2, 1:-1] = (a[:-2] + a[1:-1] + a[2:]) * third
    return {"u": u}, {"steps": h}, {"u": right}


CASES = (
    Case("pointwise", pointwise(4, 8), pointwise_data),
    Case("row_sum", row_sum(4, 16), row_sum_data, 1e-5),
    Case("blur", blur(4, 16), blur_data),
    Case("blur_folded", blur_folded(4, 8), blur_data),
    Case("matmul", matmul(4, 2, 8), matmul_data, 1e-5),
    Case("histogram", histogram(8), histogram_data),
    Case("heat", heat(8), heat_data),
)
