"""Orders of loops that are seen to be safe without isl."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.errors import LegalityError
from stax.poly.isl import TooHard
from stax.poly.proofs import Proofs
from tests.oracle import oracle

y, x = sx.vars("y x")


def test_a_tile_of_a_triangle_runs_the_loops_of_a_reduction_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen without isl, which finds the question too hard where the ranges are of many sizes (seed 20163)."""
    monkeypatch.setattr(Proofs, "clash", _too_hard)
    a, r = sx.Input("a", sx.float32, 2), sx.RDom("r", j=(0, 5))
    w = sx.Func("w", shape=(9, 9), where=lambda y, x: x <= y)
    w[y, x] = sx.prod(a[y, r.j] + x, over=r)
    f = sx.Func("f")
    f[y, x] = sx.select(x <= y, w[y, x], 0.0)
    text = """# stax schedule 1
s["w"].compute_root()
s["w"].update(0).split("y", "y", "y.in", 4).split("x", "x", "x.in", 4).split("r.j", "r.j", "r.in", 2)
s["w"].update(0).reorder("x", "y", "r.j", "r.in", "x.in", "y.in")
"""
    schedule = sx.Schedule.parse(text, f)
    given = np.random.default_rng(0).random((9, 5), np.float32)
    (wanted,) = oracle(f, {"f": (9, 9)}, {"a": given})
    assert (sx.compile(f, schedule, fp="strict")(given, shape=(9, 9)) == wanted).all()
    turned = sx.Schedule.parse(text.replace('"r.j", "r.in", "x.in"', '"r.in", "r.j", "x.in"'), f)
    with pytest.raises(LegalityError, match="no longer run in order"):
        sx.check(f, turned)


def _too_hard(*_: object) -> None:
    raise TooHard


def test_loops_that_are_swapped_and_turned_are_not_taken_to_run_in_order() -> None:
    """A loop runs the way of the root that it is named after, which need not be the one that it counts."""
    u, a = sx.Func("u", sx.int64, shape=(5, 6)), sx.Input("a", sx.int64, 2)
    u[y, x] = sx.select(y + 2 < 5, u[y + 2, x], a[y, x]) + a[y, x]
    s = sx.Schedule(u)
    s[u].affine(((0, 1), (1, 0)), (y, x)).affine(((-1,),), (y,)).split(y, "yo", "yi", 2)
    with pytest.raises(LegalityError, match="would run in an order"):
        sx.check(u, s)
