"""Programs as text: exact, equal for equal programs, linear."""

from __future__ import annotations

from typing import Any

import numpy as np

import stax as sx
from stax.algorithm.show import show
from stax.lang.freeze import freeze

X = sx.Var("x")


def test_everything_of_a_program_is_shown() -> None:
    a = sx.Input("a", sx.float32, (None, 4))
    t = sx.Const("t", np.arange(3, dtype=np.uint8))
    n = sx.Param("n", sx.int32, default=3, low=1, high=9)
    r = sx.RDom("r", y=a.shape[0], x=(1, n), where=lambda r: r.y > r.x)
    f = sx.Func("f", shape=(n,), fp="strict")
    f[X] = t[X]
    f[r.x] += sx.cast(a[r.y, r.x], sx.uint8)
    g = sx.Func("g")
    g[X] = (f[X] / 2, X)
    assert show(freeze(g, shape=(5,))) == (
        "input a: float32[d0, d1 = 4]\n"
        "param n: int32 default 3 low 1 high 9\n"
        "table t: uint8[3] ae4b3280e56e2faf\n"
        "\n"
        "f[x]: uint8 shape (int64(n)) fp strict\n"
        "    f[x] = t[x]\n"
        "    f[r.x] = f[r.x] + uint8(a[r.y, r.x]) for r.y in 0 .. a.shape[0], r.x in 1 .. int64(n) where r.x < r.y\n"
        "\n"
        "g[x]: float64, int64\n"
        "    g[x] = (float64(f[x]) / 2.0f64, x)\n"
        "\n"
        "output g(a, n)\n"
        "g.shape = (5)\n"
    )


def test_equal_programs_are_shown_equal_however_they_share() -> None:
    a = sx.Input("a", sx.float32, 1)

    def program(shared: bool) -> str:
        f = sx.Func("f")
        square = a[X] * a[X] * 3
        f[X] = square - (square if shared else a[X] * a[X] * 3)
        return show(freeze(f))

    assert program(True) == program(False)


def test_types_of_constants_are_told_apart() -> None:
    def program(value: Any) -> str:
        f = sx.Func("f")
        f[X] = sx.cast(value, sx.float64)
        return show(freeze(f))

    texts = {program(v) for v in (sx.float32(1), sx.float64(1))}
    assert len(texts) == 2


def test_the_text_is_linear_in_the_graph() -> None:
    e: Any = sx.Input("a", sx.float32, 1)[X]
    for _ in range(400):
        e = e * e + e
    f = sx.Func("f")
    f[X] = e
    assert len(show(freeze(f))) < 400 * 60
