"""Funcs with a domain, `Func(where=)`: they mean what NumPy's triangles mean, under any schedule, at any size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.dtypes import float32
from stax.expr import build
from stax.expr.evaluate import evaluate
from stax.expr.nodes import Binary, BinaryOp, Call, Expr, Load, Local, Select, Size
from stax.expr.walk import postorder
from stax.loops.nodes import Block, For, If, Let, Program, Stmt, Store
from stax.lower.build_nests import build_nests
from stax.testing import interpret

i, j, k = sx.vars("i j k")
SIZES = (0, 1, 2, 3, 7, 16, 17, 33, 70)


def triangle() -> tuple[sx.Func, sx.Input]:
    a = sx.Input("a", sx.int64, 1)
    n = a.shape[0]
    t = sx.Func("t", shape=(n, n), where=lambda row, column: column <= row)
    t[i, j] = a[i] * a[j] + j
    return t, a


def plain(v: np.ndarray) -> np.ndarray:
    return np.tril(np.outer(v, v) + np.arange(len(v)))


def same(f: Any, schedule: sx.Schedule | None, want: Any, sizes: tuple[int, ...] = SIZES) -> None:
    kernel = sx.compile(f, schedule, strict_native=True)
    for n in sizes:
        v = np.arange(n) * 7 % 11 + 1
        got = kernel(v)
        assert (got == want(v)).all(), n
        assert (got == interpret(f, {"a": v})).all(), n


def test_cells_outside_the_domain_of_an_output_are_0_whatever_lay_there() -> None:
    t, _ = triangle()
    same(t, None, plain)
    out = np.full((5, 5), 77)
    v = np.arange(1, 6)
    assert (sx.compile(t, strict_native=True)(v, out=out) == plain(v)).all()


@pytest.mark.parametrize(
    "lines",
    [
        lambda s: s.tile((i, j), ("io", "jo"), ("ii", "ji"), (8, 16)).vectorize("ji").parallel("io"),
        lambda s: s.tile((i, j), ("io", "jo"), ("ii", "ji"), (4, 5)).reorder("ji", "ii", "jo", "io"),
        lambda s: s.reorder(j, i).parallel(j).vectorize(i, 8),
        lambda s: s.fuse(i, j, "ij").parallel("ij", 7),
        lambda s: s.skew(j, i, -1).vectorize(i, 4),
        lambda s: s.split(j, "jo", "ji", 16, tail="predicate").vectorize("ji"),
        lambda s: s.split(j, "jo", "ji", 4, tail="shift").vectorize("ji"),
        lambda s: s.reverse(j).unroll(j, 3),
    ],
)
def test_loops_of_a_triangle_may_run_in_any_order(lines: Any) -> None:
    t, _ = triangle()
    s = sx.Schedule(t)
    lines(s[t])
    same(t, s, plain)


def test_a_triangle_is_read_inside_its_domain_by_a_condition() -> None:
    t, _ = triangle()
    f = sx.Func("f", shape=t.shape)
    f[i, j] = sx.select(j <= i, t[i, j], t[j, i])
    same(f, None, lambda v: plain(v) + plain(v).T - np.diag(np.diag(plain(v))))
    s = sx.Schedule(f)
    s[t].compute_root().vectorize(j, 8)
    s[f].parallel(i, 4).vectorize(j, 8)
    same(f, s, lambda v: plain(v) + plain(v).T - np.diag(np.diag(plain(v))))


def test_a_sum_inside_a_domain_runs_over_it_alone() -> None:
    """`r.k < j + 1` would leave the triangle `t` elsewhere."""
    t, a = triangle()
    r = sx.RDom("r", m=(0, j + 1))
    f = sx.Func("f", shape=t.shape, where=lambda i, j: j <= i)
    f[i, j] = sx.sum(t[i, r.m] * a[r.m], over=r) + 1

    def want(v: np.ndarray) -> np.ndarray:
        return np.tril(np.cumsum(plain(v) * v, axis=1) + 1)

    same(f, None, want)
    g = sx.Func("g", shape=t.shape, where=lambda i, j: j <= i)
    g[i, j] = sx.sum(t[i, r.m] * a[r.m], over=r)
    same(g, None, lambda v: np.tril(np.cumsum(plain(v) * v, axis=1)))


def test_updates_of_plain_dims_stay_in_the_domain() -> None:
    t, a = triangle()
    t[i, j] += a[i]
    r = sx.RDom("r", m=a.shape[0])
    t[r, 0] = t[r, 0] * 2

    def want(v: np.ndarray) -> np.ndarray:
        out = plain(v) + np.tril(np.repeat(v[:, None], len(v), 1))
        out[:, :1] *= 2
        return out

    same(t, None, want)


def test_a_band_of_a_tuple_has_bounds_on_both_sides() -> None:
    a = sx.Input("a", sx.int64, 1)
    n = a.shape[0]
    f = sx.Func("f", shape=(n, n), where=lambda y, x: (x >= y - 2) & ~(y + 3 < x))
    f[i, j] = (a[i] - a[j], sx.cast(a[i], sx.float32))
    v = np.arange(11) ** 2
    got = sx.compile(f, strict_native=True)(v)
    y, x = np.indices((11, 11))
    band = (x >= y - 2) & (x <= y + 3)
    assert (got[0] == np.where(band, v[:, None] - v, 0)).all()
    assert (got[1] == np.where(band, v[:, None], 0).astype(np.float32)).all()


def test_a_recurrence_over_a_triangle() -> None:
    """Binomial coefficients; `where` keeps every read inside."""
    n = sx.Param("n", sx.int64, low=0, high=60)
    c = sx.Func("c", dtype=sx.int64, shape=(n, n), where=lambda i, j: (j <= i) & (j >= 0))
    c[i, 0] = 1
    c[i, j] = c[i - 1, j - 1] + sx.select(j < i, c[i - 1, j], 0)
    kernel = sx.compile(c, strict_native=True)
    for size in (0, 1, 2, 9, 33):
        want = np.zeros((size, size), np.int64)
        for y in range(size):
            want[y, 0] = 1
            want[y, 1 : y + 1] = want[y - 1, :y] + want[y - 1, 1 : y + 1]
        assert (kernel(n=size) == want).all()


def lu(kind: str) -> tuple[sx.Func, sx.Func]:
    """Return the factors of a matrix, with the cells that a step leaves alone outside its domain, or kept."""
    a = sx.Input("a", sx.float32, 2)
    n = a.shape[0]
    inside = (lambda k, i, j: (i >= k) & (j >= k)) if kind == "where" else None
    u = sx.Func("u", shape=(n, n, n), where=inside)
    f = sx.Func("f", dtype=sx.float32, shape=(n, n), where=lambda k, i: (k >= 1) & (i >= k))
    u[0, i, j] = a[i, j]
    f[k, i] = u[k - 1, i, k - 1] / u[k - 1, k - 1, k - 1]
    new = u[k - 1, i, j] - f[k, i] * u[k - 1, k - 1, j]
    u[k, i, j] = sx.select((i >= k) & (j >= k), new, u[k - 1, i, j]) if kind == "keep" else new
    lower, upper = sx.Func("lower", shape=(n, n)), sx.Func("upper", shape=(n, n))
    upper[i, j] = sx.select(i <= j, u[i, i, j] if kind == "where" else u[n - 1, i, j], 0)
    lower[i, j] = sx.select(j < i, f[j + 1, i], sx.select(i == j, np.float32(1), 0))
    return lower, upper


@pytest.mark.parametrize("kind", ["where", "keep"])
def test_factors_of_a_matrix_are_found_in_place(kind: str) -> None:
    """One plane of all steps is kept: a step leaves alone what later ones and the results still read."""
    both = lu(kind)
    assert "u: float32[1, a.shape[0]" in sx.explain(both)
    kernel = sx.compile(both, strict_native=True)
    for n in (1, 2, 3, 8, 17, 40):
        a = (np.random.default_rng(n).random((n, n)) + n * np.eye(n)).astype(np.float32)
        got = kernel(a)
        np.testing.assert_allclose(got[0] @ got[1], a, rtol=1e-4, atol=1e-4)
        for g, w in zip(got, interpret(both, {"a": a}), strict=True):
            assert g.tobytes() == w.tobytes()
    assert all(g.shape == (0, 0) for g in kernel(np.zeros((0, 0), np.float32)))


def operations(program: Program, sizes: dict[str, int]) -> int:
    """Return how many operations on floats the loops of `program` do: those of values whose conditions hold."""

    def number(e: Expr, names: dict[str, int]) -> int:
        def leaf(node: Expr) -> Any:
            match node:
                case Local(name=name):
                    return np.asarray(names[name], np.int64)
                case Size(array=array):
                    return np.asarray(sizes[array], np.int64)
                case _:
                    raise AssertionError(node)

        return int(evaluate((e,), leaf)[0])

    def cost(e: Expr, names: dict[str, int]) -> int:
        while isinstance(e, Select):
            e = e.yes if number(e.cond, names) else e.no
        work = {Call: 2, Binary: 1}
        return sum(work.get(type(n), 0) for n in postorder((e,)) if n.dtype.is_float)

    def count(stmt: Stmt, names: dict[str, int]) -> int:
        match stmt:
            case Block(stmts=stmts):
                total = 0
                for s in stmts:
                    if isinstance(s, Let):
                        names = {**names, s.name.name: number(s.value, names)}
                    total += count(s, names)
                return total
            case For(var=var, start=start, extent=extent, body=body):
                first = number(start, names)
                return sum(count(body, {**names, var.name: first + k}) for k in range(number(extent, names)))
            case If(cond=cond, then=then, orelse=orelse):
                return count(then if number(cond, names) else orelse, names)
            case Store(value=value):
                return cost(value, names)
            case _:
                return 0

    return count(program.body, {})


@pytest.mark.parametrize("kind", ["where", "keep"])
def test_the_factors_of_a_matrix_take_the_operations_of_a_triangular_code(kind: str) -> None:
    """2 n**3 / 3 and lower terms; guards alone would do as few, so that the turns of the loops are counted too."""
    n = 18
    program = build_nests(sx.check(lu(kind)))
    steps = range(1, n)
    triangular = sum(2 * (n - k) ** 2 + (n - k) for k in steps)
    assert triangular <= operations(program, dict.fromkeys(("a", "lower", "upper"), n)) <= 1.01 * triangular

    def bare(stmt: Stmt) -> Stmt:
        match stmt:
            case Block(stmts=stmts):
                return Block(tuple(bare(s) for s in stmts))
            case For():
                return replace(stmt, body=bare(stmt.body))
            case If(then=then):
                return bare(then)
            case Store(buffer="u"):
                return replace(stmt, value=build.binary(BinaryOp.ADD, Load(float32, "a", ()), Load(float32, "a", ())))
            case Store():
                return Block()
            case _:
                return stmt

    turns = operations(replace(program, body=bare(program.body)), dict.fromkeys(("a", "lower", "upper"), n))
    assert turns <= sum((n - k) ** 2 for k in range(n)) * 1.01


CONVEX = {
    "a diamond": lambda y, x, n, least, most: abs(y - 5) + abs(x - 6) <= 5,
    "a cone": lambda y, x, n, least, most: abs(x - 6) <= y,
    "a cone that grows to the left": lambda y, x, n, least, most: y - abs(x - 6) > 3,
    "a band": lambda y, x, n, least, most: abs(2 * y - x) < 4,
    "a corner": lambda y, x, n, least, most: least(x, y) >= 3,
    "below the larger": lambda y, x, n, least, most: most(x, 2 * y - 3) < n - 2,
    "the smaller of two magnitudes": lambda y, x, n, least, most: most(abs(x - 5), abs(y - 4)) <= 3,
    "halves": lambda y, x, n, least, most: x // 2 <= y,
    "thirds on the other side": lambda y, x, n, least, most: y < x // 3,
    "a half of a sum": lambda y, x, n, least, most: (x + y) // 2 >= n // 2 - 1,
    "less a quotient": lambda y, x, n, least, most: y - x // 3 >= 2,
    "two of them": lambda y, x, n, least, most: (abs(x - y) <= 3) & (x // 2 >= 1),
}


@pytest.mark.parametrize("name", CONVEX)
def test_a_domain_of_magnitudes_extremes_and_quotients_has_the_cells_that_numpy_says(name: str) -> None:
    cond = CONVEX[name]
    a = sx.Input("a", sx.int64, 1)
    n = a.shape[0]
    f = sx.Func("f", shape=(n, n + 2), where=lambda y, x: cond(y, x, n, sx.minimum, sx.maximum))
    f[i, j] = i * 100 + j + 1
    tiled = sx.Schedule(f)
    tiled[f].tile((i, j), ("io", "jo"), ("ii", "ji"), (4, 8)).parallel("io").vectorize("ji", 4)
    swapped = sx.Schedule(f)
    swapped[f].reorder(j, i)
    for schedule in (None, tiled, swapped, sx.auto_schedule(f)):
        kernel = sx.compile(f, schedule, strict_native=True)
        for size in (0, 1, 7, 12):
            y, x = np.indices((size, size + 2))
            inside = cond(y, x, size, np.minimum, np.maximum)
            np.testing.assert_array_equal(kernel(np.zeros(size, np.int64)), np.where(inside, y * 100 + x + 1, 0))


def test_a_magnitude_in_a_select_keeps_reads_inside() -> None:
    """A cone of light: a cell is read only where it is there."""
    n = 9
    u = sx.Func("u", dtype=sx.int64, shape=(5, n), where=lambda t, x: abs(x - 4) <= t)
    u[0, j] = 1
    below = sx.select(abs(j - 4) <= i - 2, u[i - 1, j], 0)
    u[i, j] = (
        below + sx.select(abs(j - 5) <= i - 1, u[i - 1, j - 1], 0) + sx.select(abs(j - 3) <= i - 1, u[i - 1, j + 1], 0)
    )
    want = np.zeros((5, n), np.int64)
    want[0, 4] = 1
    for k in range(1, 5):
        row = np.pad(want[k - 1], 1)
        want[k] = row[:-2] + row[2:] + np.where(np.abs(np.arange(n) - 4) <= k - 2, row[1:-1], 0)
    np.testing.assert_array_equal(sx.compile(u, strict_native=True)(), want)


@pytest.mark.parametrize("never", [lambda r: sx.bool_(False), lambda r: ~sx.bool_(True) & (r.k > 0)])
def test_a_condition_that_is_never_true_asks_for_nothing(never: Any) -> None:
    """An update that never runs reads nothing outside, a sum over no points is its start, a read in a dead arm none."""
    t, a = triangle()
    r = sx.RDom("r", k=(0, 3), where=never)
    summed = sx.Func("summed", shape=(a.shape[0], a.shape[0]), where=lambda y, x: x <= y)
    summed[i, j] = sx.sum(a[j + 100] * r.k, over=r) + t[i, j]
    same(summed, None, plain)
    updated = sx.Func("updated", shape=(a.shape[0], a.shape[0]))
    updated[i, j] = sx.select(j <= i, t[i, j], 0)
    updated[i, j] += t[j - 50, i] * r.k
    same(updated, None, plain)
    armed = sx.Func("armed", shape=(a.shape[0],))
    armed[i] = a[i] + sx.select(sx.bool_(False), a[i + 100], 0)
    same(armed, None, lambda v: v)
