"""Products that meet a sum are one fma, of two products the left one."""

from __future__ import annotations

from typing import Any

import pytest

import stax as sx
from stax.expr.show import show
from stax.lang.freeze import freeze

A, B, C, D = (sx.Input(n, sx.float32, 0)[()] for n in "abcd")


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (A * B + C, "fma(a[], b[], c[])"),
        (C + A * B, "fma(a[], b[], c[])"),
        (A * B - C, "fma(a[], b[], -c[])"),
        (C - A * B, "fma(-a[], b[], c[])"),
        (A * B + C * D, "fma(a[], b[], c[] * d[])"),
        (A * B + C * D + A, "fma(a[], b[], c[] * d[]) + a[]"),
        (A * B * C, "a[] * b[] * c[]"),
        (sx.cast(A * B, sx.float64) + 1, "float64(a[] * b[]) + 1.0"),
    ],
)
def test_a_product_and_a_sum_round_once(e: Any, text: str) -> None:
    f = sx.Func("f")
    f[()] = e
    assert show(freeze(f).funcs[0].values[0]) == text
    assert "fma" not in show(freeze(f, fp="strict").funcs[0].values[0])


def test_the_mode_of_a_func_wins_over_the_kernels() -> None:
    f = sx.Func("f", fp="strict")
    f[()] = A * B + C
    assert show(freeze(f, fp="default").funcs[0].values[0]) == "a[] * b[] + c[]"


def test_nothing_is_contracted_across_definitions() -> None:
    f, g = sx.Func("f"), sx.Func("g")
    f[()] = A * B
    g[()] = f[()] + C
    assert show(freeze(g).func("g").values[0]) == "f[] + c[]"
