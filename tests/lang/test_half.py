"""float16 is computed in float32 and rounded once, or at each operation under strict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import stax as sx

Values = Callable[..., np.ndarray[Any, Any]]
X = sx.Var("x")
DATA = np.linspace(0.1, 3, 8).astype(np.float16)


def test_a_definition_rounds_once(values: Values) -> None:
    a = sx.Input("a", sx.float16, 1)
    wide = DATA.astype(np.float32)
    once = (wide * wide * wide - wide).astype(np.float16)
    np.testing.assert_array_equal(values(a[X] * a[X] * a[X] - a[X], fp="default", a=DATA), once)


def test_strict_rounds_each_operation(values: Values) -> None:
    a = sx.Input("a", sx.float16, 1)
    np.testing.assert_array_equal(values(a[X] * a[X] * a[X] - a[X], fp="strict", a=DATA), DATA * DATA * DATA - DATA)


def test_a_cast_in_the_middle_rounds(values: Values) -> None:
    a = sx.Input("a", sx.float32, 1)
    data = np.linspace(0.1, 3, 8, dtype=np.float32)
    found = values(sx.cast(sx.cast(a[X], sx.float16) * 3, sx.float32), a=data)
    np.testing.assert_array_equal(found, data.astype(np.float16).astype(np.float32) * np.float32(3))


def test_comparisons_and_selects_take_float16(values: Values) -> None:
    a = sx.Input("a", sx.float16, 1)
    found = values(sx.select(a[X] > 1, a[X], 0.5), a=DATA)
    np.testing.assert_array_equal(found, np.where(DATA > 1, DATA, np.float16(0.5)))
