"""Extents that a call has checked stand for the larger of two."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.lang.freeze import freeze
from stax.legality.check import check
from stax.loops.interpret import interpret as run
from stax.loops.show import show
from stax.loops.walk import loads
from stax.lower.blocks import lower_to_blocks
from stax.schedule.default_gpu import complete

m, n = sx.vars("m n")


def shares() -> sx.Func:
    """Return the share of each element in the sum of its row."""
    x = sx.Input("x", sx.float32, 2)
    r = sx.RDom("r", j=x.shape[1])
    e, total, out = sx.Func("e"), sx.Func("total"), sx.Func("out")
    e[m, n] = x[m, n] * x[m, n]
    total[m] = sx.sum(e[m, r], over=r)
    out[m, n] = e[m, n] / total[m]
    return out


def schedule(f: sx.Func) -> sx.Schedule:
    s = sx.Schedule(f)
    s["out"].parallel("m").vectorize("n", upto=64)
    s["total"].compute_at("out", "m")
    s["total"].update(0).reassociate().vectorize("r.j", upto=64)
    s["e"].compute_at("out", "m").vectorize("n", upto=64)
    return s


def test_a_row_that_two_readers_share_is_loaded_once() -> None:
    f = shares()
    pipeline = freeze(f)
    program = lower_to_blocks(check(pipeline, complete(pipeline, schedule(f).lines)))
    assert "max(" not in show(program)
    assert len({load.index for load in loads(program.body) if load.buffer == "x"}) == 1


@pytest.mark.parametrize("shape", [(3, 7), (3, 5), (0, 7), (3, 0), (0, 0)])
def test_windows_of_a_row_are_right(shape: tuple[int, int]) -> None:
    f = shares()
    pipeline = freeze(f)
    program = lower_to_blocks(check(pipeline, complete(pipeline, schedule(f).lines)), debug=True)
    x, out = np.arange(21, dtype=np.float32).reshape(3, 7) + 1, np.zeros(shape, np.float32)
    arrays = {"x": x, "out": out}
    run(program, arrays, {}, {(name, d): n for name, a in arrays.items() for d, n in enumerate(a.shape)})
    want = (x * x / (x * x).sum(1, keepdims=True))[: shape[0], : shape[1]]
    np.testing.assert_allclose(out, want, rtol=1e-6)
