"""Loads one lane beside another one: moved lanes of its register, and one element."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stax as sx
from stax.backends.artifact import Facts
from stax.backends.llvm.beside import find
from stax.backends.llvm.module import emit
from stax.lower.passes import lower
from stax.target import Target

x, y = sx.vars("x y")


def three(dtype: str, gaps: tuple[int, ...] = (-1, 0, 1), lanes: int = 16) -> tuple[sx.Func, sx.Schedule]:
    """Return a sum of neighbours that are `gaps` apart, 3 further on."""
    a = sx.Input("a", dtype, 2)
    f = sx.Func("f", shape=(a.shape[0], a.shape[1] - 64))
    total = a[y, x + 16 + gaps[0]] * 3
    for g in gaps[1:]:
        total = total + a[y, x + 16 + g]
    f[y, x] = total
    s = sx.Schedule(f)
    s[f].vectorize(x, lanes)
    return f, s


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint64"])
@pytest.mark.parametrize("gaps", [(-1, 0, 1), (1, 0), (0, -1, -1), (-2, -1, 0, 1, 2), (-1, 1), (15, 16, 17, 1)])
@pytest.mark.parametrize("lanes", [8, 16, 32, 48])
def test_neighbours_are_what_numpy_says(dtype: str, gaps: tuple[int, ...], lanes: int) -> None:
    f, s = three(dtype, gaps, lanes)
    given = (np.random.default_rng(0).random((3, 211)) * 1000).astype(dtype)
    kernel = sx.compile(f, s, fp="strict", strict_native=True)
    for a in (given, given[:, ::-1], np.asfortranarray(given), np.repeat(given, 2, 1)[:, ::2]):
        cut = [a[:, 16 + g : a.shape[1] - 48 + g] for g in gaps]
        want = cut[0] * a.dtype.type(3)
        for one in cut[1:]:
            want = want + one
        assert (kernel(a) == want).all()


def test_what_is_stored_between_is_seen() -> None:
    """A loop in place: the second statement reads what the first has changed."""
    a = sx.Input("a", sx.float32, 1)
    f, t = sx.Func("f", shape=(9, a.shape[0])), sx.Var("t")
    f[0, x] = a[x]
    inside = (x > 0) & (x < a.shape[0] - 1)
    f[t, x] = sx.select(inside, f[t - 1, x - 1] + f[t - 1, x] + f[t - 1, x + 1], f[t - 1, x])
    out = sx.Func("out")
    out[x] = f[8, x]
    s = sx.Schedule(out)
    s[f].vectorize(x, 16).unroll(t)
    given = np.random.default_rng(0).random(203, np.float32)
    want = given.copy()
    for _ in range(8):
        want[1:-1] = want[:-2] + want[1:-1] + want[2:]
    assert (sx.compile(out, s, fp="strict", strict_native=True)(given) == want).all()


def wide(width: int) -> Target:
    features = "+avx512f,+avx512bw,+avx512vl,+avx512dq"
    return replace(Target.host(), triple="x86_64-unknown-linux-gnu", features=features, vector_bytes=width)


@pytest.mark.parametrize(("width", "loads"), [(64, 1), (32, 3)])
def test_registers_as_wide_as_a_line_are_turned_over(width: int, loads: int) -> None:
    """The effect: one vector is loaded where there were three."""
    f, s = three("float32")
    program = lower(sx.check(f, s))
    text = emit(program, Facts(frozenset({"a", "f"}), frozenset({"a", "f"})), wide(width))
    assert text.count("load <16 x float>") == loads
    assert text.count("shufflevector <16 x float>") >= (2 if loads == 1 else 0)


def test_only_loads_that_may_begin_a_line_are_turned_over() -> None:
    program = lower(sx.check(*three("float32", (-1, 0, 1))))
    assert sorted(b.by for b in find(program).values()) == [-1, 1]
    assert not find(lower(sx.check(*three("float32", (1, 2, 3)[:2]))))
    assert not find(lower(sx.check(*three("uint16", (-1, 0, 1)))))
    assert not find(lower(sx.check(*three("float32", (-1, 0, 1), lanes=8))))
