"""Whole tiles and rows of skewed nests, without the conditions of partial ones."""

from __future__ import annotations

import re

import numpy as np
import pytest

import stax as sx
from stax.loops.interpret import interpret
from stax.loops.nodes import For, If, Program, Stmt
from stax.loops.walk import nodes, statements
from stax.lower.passes import lower

t, y, x = sx.vars("t y x")


def heat() -> tuple[sx.Func, sx.Func]:
    steps, a = sx.Param("steps", sx.int64, low=0), sx.Input("a", sx.float32, 2)
    h, w = a.shape
    u, out = sx.Func("u", shape=(steps + 1, h, w)), sx.Func("out")
    u[0, y, x] = a[y, x]
    around = u[t - 1, y - 1, x] + u[t - 1, y + 1, x] + u[t - 1, y, x - 1] + u[t - 1, y, x + 1]
    u[t, y, x] = sx.select((y > 0) & (y < h - 1) & (x > 0) & (x < w - 1), around * 0.25, u[t - 1, y, x])
    out[y, x] = u[steps, y, x]
    return u, out


def seidel() -> tuple[sx.Func, sx.Func]:
    """Return sweeps where each cell reads what its own sweep has changed, so that it has no loop of lanes."""
    steps, a = sx.Param("steps", sx.int64, low=0), sx.Input("a", sx.float32, 2)
    h, w = a.shape
    u, out = sx.Func("u", shape=(steps + 1, h, w)), sx.Func("out")
    u[0, y, x] = a[y, x]
    around = u[t, y - 1, x] + u[t, y, x - 1] + u[t - 1, y + 1, x] + u[t - 1, y, x + 1]
    u[t, y, x] = sx.select((y > 0) & (y < h - 1) & (x > 0) & (x < w - 1), around * 0.25, u[t - 1, y, x])
    out[y, x] = u[steps, y, x]
    return u, out


def rows(s: sx.Schedule, u: sx.Func) -> None:
    s[u].skew(y, t, 1).tile((t, y), ("to", "yo"), ("ti", "yi"), (4, 8)).skew("to", "yo", 1).parallel("yo")
    s[u].vectorize(x, 8).fold_storage(t, 2)


def boxes(s: sx.Schedule, u: sx.Func) -> None:
    s[u].skew(y, t, 1).skew(x, t, 1).tile((t, y, x), ("to", "yo", "xo"), ("ti", "yi", "xi"), (4, 8, 128))
    s[u].skew("to", "yo", 1).skew("to", "xo", 1).parallel("yo").vectorize("xi", 8)


def diagonals(s: sx.Schedule, u: sx.Func) -> None:
    """Tiles of sweeps and rows; in each, some rows go together, each a step behind the one before."""
    s[u].skew(y, t, 1).tile((t, y), ("to", "yo"), ("ti", "yi"), (2, 8)).split("yi", "yb", "yr", 4)
    s[u].skew(x, "yr", 1, "d").reorder("to", "yo", "ti", "yb", "d", "yr").skew("to", "yo", 1).parallel("yo")
    s[u].unroll("yr").fold_storage(t, 1)


def plain(name: str, a: np.ndarray, steps: int) -> np.ndarray:
    u = a.copy()
    for _ in range(steps):
        v = u.copy()
        source = u if name == "heat" else v
        for r in range(1, a.shape[0] - 1):
            for c in range(1, a.shape[1] - 1):
                behind, ahead = (source[r - 1, c], source[r, c - 1]), (u[r + 1, c], u[r, c + 1])
                order = (behind[0], ahead[0], behind[1], ahead[1]) if name == "heat" else (*behind, *ahead)
                total = np.float32(0)
                for k, value in enumerate(order):
                    total = value if not k else np.float32(total + value)
                v[r, c] = total * np.float32(0.25)
        u = v
    return u


CASES = [("heat", rows), ("heat", boxes), ("seidel", diagonals)]


@pytest.mark.parametrize(("name", "say"), CASES, ids=lambda v: getattr(v, "__name__", v))
@pytest.mark.parametrize("size", [(1, 1), (2, 9), (7, 40), (33, 21), (40, 1), (0, 5)])
@pytest.mark.parametrize("steps", [0, 1, 7])
def test_tiles_that_are_told_apart_give_the_same_bits(name, say, size, steps) -> None:
    u, out = heat() if name == "heat" else seidel()
    s = sx.Schedule(out)
    say(s, u)
    given = np.random.default_rng(0).random(size, np.float32)
    want = plain(name, given, steps)
    assert (sx.compile(out, s, strict_native=True)(steps, given) == want).all()
    got = np.zeros_like(given)
    sizes = {(array, d): n for array in ("a", "out") for d, n in enumerate(size)}
    interpret(lower(sx.check(out, s), debug=True), {"a": given, "out": got}, {"steps": steps}, sizes)
    assert (got == want).all()


def lowered(name: str, say: object) -> Program:
    u, out = heat() if name == "heat" else seidel()
    s = sx.Schedule(out)
    say(s, u)  # type: ignore[operator]
    return lower(sx.check(out, s))


def conditions(stmt: Stmt) -> int:
    """Return how many conditions `stmt` asks: branches, selections and masks."""
    asked = sum(type(n).__name__ == "Select" or bool(getattr(n, "mask", ())) for n in nodes(stmt))
    return asked + sum(isinstance(s, If) for s in statements(stmt))


def innermost(program: Program, name: str) -> list[For]:
    """Return the loops called `name` and its copies."""
    loops = [s for s in statements(program.body) if isinstance(s, For)]
    return [s for s in loops if re.fullmatch(rf"u\.{name}(′.*)?", s.var.name)]


@pytest.mark.parametrize(
    ("name", "say", "loop"), [("heat", rows, "x"), ("heat", boxes, "xi"), ("seidel", diagonals, "d")]
)
def test_the_steady_part_of_rows_asks_nothing(name, say, loop) -> None:
    """Also in tiles that are not whole: what a row decides is asked before it."""
    program = lowered(name, say)
    steady = [s for s in innermost(program, loop) if not conditions(s)]
    assert len(steady) == (1 if name == "seidel" else 2)
    if name == "heat":
        full = [s for s in steady if "full" in s.var.name]
        assert len(full) == 1


def test_loops_inside_a_tile_of_any_width_stay_as_they_are() -> None:
    program = lowered("heat", rows)
    (whole,) = (s for s in innermost(program, "ti") if "full" in s.var.name)
    assert (whole.start.value, whole.extent.value) == (0, 4)  # type: ignore[attr-defined]
    assert len([s for s in statements(whole) if isinstance(s, For)]) >= 4
