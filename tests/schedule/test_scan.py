"""Skewed and reversed loops visit every point once."""

from __future__ import annotations

import random

import numpy as np
import pytest

import stax as sx
from stax.errors import LegalityError, ScheduleError, UnsupportedError

y, x, z = sx.vars("y x z")


def counted(rank: int) -> tuple[sx.Func, tuple[sx.RDom, ...]]:
    """Return a Func that counts how often each point of its update is run: any order is legal."""
    a = sx.Input("a", sx.int64, rank)
    c = sx.Func("c", sx.int64, shape=a.shape)
    dims = (z, y, x)[-rank:]
    c[dims] = 0
    r = sx.RDom("r", **{f"d{k}": (0, lambda r, k=k: a.shape[k]) for k in range(rank)})
    names = [f"d{k}" for k in range(rank)]
    c[tuple(getattr(r, n) for n in names)] += 1
    return c, names


@pytest.mark.parametrize("seed", range(12))
def test_each_point_is_run_once(seed: int) -> None:
    rng = random.Random(seed)
    rank = rng.choice([2, 2, 3])
    c, _ = counted(rank)
    s = sx.Schedule(c)
    stage = s[c].update(0)
    for k in range(rng.randint(2, 5)):
        loops = [loop.name for loop in s.nest(stage.at).loops]
        v, w = rng.sample(loops, 2)
        try:
            match rng.choice(["skew", "skew", "split", "reorder", "reverse", "parallel", "vectorize"]):
                case "skew":
                    stage.skew(v, w, rng.choice([-2, -1, 1, 1, 2, 3]))
                case "split":
                    stage.split(v, f"{v}o{k}", f"{v}i{k}", rng.choice([2, 3, 4]))
                case "reorder":
                    stage.reorder(*rng.sample(loops, len(loops)))
                case "reverse":
                    stage.reverse(v)
                case "vectorize":
                    stage.vectorize(v, 4)
                case _:
                    stage.parallel(v, 2)
        except ScheduleError:
            continue
    try:
        kernel = sx.compile(c, s, strict_native=True)
    except (ScheduleError, UnsupportedError):
        return
    for shape in ((7, 9, 5)[:rank], (1, 1, 1)[:rank], (4, 16, 3)[:rank]):
        assert (kernel(np.zeros(shape, np.int64)) == 1).all()


def test_a_skew_takes_a_loop_that_is_alive_and_another() -> None:
    c, _ = counted(2)
    stage = sx.Schedule(c)[c].update(0)
    with pytest.raises(ScheduleError, match="along itself"):
        stage.skew("r.d0", "r.d0", 1)
    with pytest.raises(ScheduleError, match="is not there"):
        stage.skew("r.d0", "q", 1)
    with pytest.raises(ScheduleError, match="is parallel"):
        stage.parallel("r.d0").skew("r.d0", "r.d1", 1)


def test_what_is_placed_at_a_loop_follows_it_when_it_is_skewed() -> None:
    a = sx.Input("a", sx.float32, 2)
    f, g = sx.Func("f"), sx.Func("g")
    f[y, x] = a[y, x] * 2
    g[y, x] = f[y, x] + f[y, x + 1]
    s = sx.Schedule(g)
    s[f].compute_at(g, y)
    s[g].skew(y, x, 1, new="d").skew(x, "d", 1)
    given = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert (sx.compile(g, s, strict_native=True)(given) == 2 * (given[:, :-1] + given[:, 1:])).all()


def test_a_scan_is_not_reversed() -> None:
    a = sx.Input("a", sx.float32, 1)
    f = sx.Func("f", shape=a.shape)
    f[x] = a[x]
    r = sx.RDom("r", k=(1, a.shape[0]))
    f[r] = f[r - 1] * 2
    s = sx.Schedule(f)
    given = np.arange(1, 6, dtype=np.float32)
    assert sx.compile(f, s, strict_native=True)(given).tolist() == [1, 2, 4, 8, 16]
    s[f].update(0).reverse(r)
    with pytest.raises(LegalityError):
        sx.check(f, s)
