"""Random updates that combine, under random directives that take their points in another order.

Integers, extremes and bools stay to the bit. A sum of n floats is off from the exact one by at most n - 1 roundings of
the sum of their sizes in whatever order it is taken, and a product by n - 1 relative roundings.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import stax as sx
from stax.errors import LegalityError, ScheduleError, UnsupportedError

OPS = {
    "+": lambda p, q: p + q,
    "*": lambda p, q: p * q,
    "min": sx.minimum,
    "max": sx.maximum,
    "&": lambda p, q: p & q,
    "|": lambda p, q: p | q,
    "^": lambda p, q: p ^ q,
}
REDUCE = {
    "+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum, "&": np.bitwise_and, "|": np.bitwise_or,
    "^": np.bitwise_xor,
}  # fmt: skip
DTYPES = ("uint8", "int16", "int32", "int64", "float32", "float64", "bool")


class Drawn:
    """An update over a(y, i, j): cells f[y], f[] or f[a & 7], perhaps only where i <= j."""

    def __init__(self, rng: random.Random) -> None:
        self.dtype = np.dtype(rng.choice(DTYPES))
        kind = self.dtype.kind
        self.op = rng.choice(("+", "+", "*", "min", "max") if kind == "f" else ("&", "|") if kind == "b" else [*OPS])
        self.cell = rng.choice(("row", "row", "one", "data"))
        self.ragged = rng.random() < 0.3
        shape = tuple(rng.choice((0, 1, 2, 3, 7, 8, 9, 16, 17, 33)) for _ in range(3))
        draw = np.random.default_rng(rng.randrange(1 << 30))
        if kind == "f":
            self.a = draw.uniform(0.5, 1.5, shape).astype(self.dtype) * np.where(draw.random(shape) < 0.4, -1, 1)
            self.a = self.a.astype(self.dtype)
        else:
            self.a = draw.integers(0, 2 if kind == "b" else 100, shape).astype(self.dtype)
        self.where = draw.integers(0, 8, shape).astype(np.uint8)
        self.start = {"&": -1, "*": 1}.get(self.op, 0) if kind != "b" else self.op == "&"

    def func(self) -> sx.Func:
        y, a = sx.Var("y"), sx.Input("a", self.dtype.name, 3)
        at = sx.Input("at", sx.uint8, 3)
        keep = (lambda r: r.i <= r.j) if self.ragged else None
        f, start = sx.Func("f", shape=(8,) if self.cell == "data" else None), self.dtype.type(self.start)
        ranges = {"i": a.shape[1], "j": a.shape[2]}
        if self.cell != "row":
            ranges = {"h": a.shape[0], **ranges}
        r = sx.RDom("r", **ranges, where=keep)
        value = a[y if self.cell == "row" else r.h, r.i, r.j]
        index = {"row": (y,), "one": (), "data": (at[r.h, r.i, r.j] & 7 if self.cell == "data" else None,)}[self.cell]
        f[y if self.cell != "one" else ()] = start
        f[index] = OPS[self.op](f[index], value)
        return f

    def expected(self, dtype: type | None = None) -> tuple[np.ndarray, np.ndarray, int]:
        """Return the cells, the cells of sizes, and the most terms of one."""
        a, inside = self.a, np.ones(self.a.shape, bool)
        if self.ragged:
            inside = (np.arange(a.shape[1])[:, None] <= np.arange(a.shape[2]))[None] & inside
        cells = {"row": a.shape[0], "one": 1, "data": 8}[self.cell]
        out, sizes, most = [], [], 1
        for c in range(cells):
            mine = inside.copy()
            if self.cell == "row":
                mine &= (np.arange(a.shape[0]) == c)[:, None, None]
            elif self.cell == "data":
                mine &= (self.where & 7) == c
            terms = a[mine].astype(dtype or a.dtype)
            first = np.asarray(self.start).astype(terms.dtype)
            total = first
            if len(terms):
                with np.errstate(all="ignore"):
                    total = REDUCE[self.op](first, REDUCE[self.op].reduce(terms, dtype=terms.dtype))
            out.append(total)
            sizes.append(np.abs(terms).sum() if terms.dtype.kind == "f" else 0)
            most = max(most, len(terms) + 1)
        return np.array(out).reshape(() if self.cell == "one" else (cells,)), np.array(sizes), most


def draw(rng: random.Random, s: sx.Schedule) -> None:
    """Say some directives of the update; what cannot be said is left out."""
    update = s["f"].update(0)
    if rng.random() < 0.8:
        update.reassociate()
    for k in range(rng.randint(1, 4)):
        loops = [loop.name for loop in s.nest(update.at).loops]
        if not loops:
            return
        v = rng.choice(loops)
        steps = (
            lambda v=v: update.vectorize(v, rng.choice((2, 4, 8, 16))),
            lambda v=v: update.vectorize(v, 8),
            lambda v=v: update.accumulators(v, rng.choice((1, 2, 3, 4))),
            lambda v=v, k=k: update.rfactor(v, f"u{k}", f"part{k}"),
            lambda v=v, k=k: update.split_reduction(v, rng.choice((1, 3, 8)), f"u{k}", f"part{k}"),
            lambda v=v: update.atomic().parallel(v, rng.choice((1, 4))),
            lambda loops=loops: update.reorder(*rng.sample(loops, len(loops))),
            lambda v=v: update.unroll(v, 2),
        )
        try:
            rng.choice(steps)()
        except ScheduleError:
            continue


@pytest.mark.parametrize("seed", range(6))
def test_partial_results_join_to_the_same(seed):
    rng = random.Random(seed)
    accepted = 0
    for _ in range(8):
        drawn = Drawn(rng)
        f = drawn.func()
        s = sx.Schedule(f)
        draw(rng, s)
        try:
            k = sx.compile(f, s, strict_native=True)
        except (LegalityError, ScheduleError, UnsupportedError):
            continue
        accepted += 1
        given = {"a": drawn.a, "at": drawn.where} if drawn.cell == "data" else {"a": drawn.a}
        found = k(**given, threads=2, **({"shape": drawn.a.shape[:1]} if drawn.cell == "row" else {}))
        exact = drawn.dtype.kind != "f" or drawn.op in ("min", "max")
        want, sizes, most = drawn.expected(None if exact else np.float64)
        if exact:
            assert k.contract == "bitwise"
            np.testing.assert_array_equal(found, want, err_msg=str(s))
            continue
        eps = float(np.finfo(drawn.dtype).eps)
        bound = most * eps * (sizes if drawn.op == "+" else np.abs(want))
        assert (np.abs(found - want) <= bound.reshape(want.shape) + np.finfo(drawn.dtype).tiny).all(), str(s)
    assert accepted >= 2
