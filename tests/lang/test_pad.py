"""pad against np.pad, beyond several widths of the array."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.algorithm.interpret import interpret
from stax.lang.freeze import freeze

Y, X = sx.vars("y x")


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_a_padded_input_is_numpys(mode: str, n: int) -> None:
    a = sx.Input("a", sx.int32, 1)
    f = sx.Func("f")
    f[X] = sx.pad(a, mode)[X - 11]
    data = np.arange(n, dtype=np.int32) + 3
    found = interpret(freeze(f), {"a": data}, {}, {"a.pad": ((-11, 10),), "f": ((0, 21),)})["f"][0]
    np.testing.assert_array_equal(found, np.pad(data, (11, 11), mode)[:22])  # type: ignore[call-overload]


def test_axes_left_out_are_not_extended() -> None:
    a = sx.Input("a", sx.int32, 3, dims="c v u")
    made = sx.pad(a, "symmetric", axes=("v", -1))
    assert made.dims == ("c", "v", "u")
    f = sx.Func("f")
    f[Y, X] = made[0, Y - 2, X - 1]
    data = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    boxes = {"a.pad": ((0, 0), (-2, 4), (-1, 5)), "f": ((0, 6), (0, 6))}
    found = interpret(freeze(f), {"a": data}, {}, boxes)["f"][0]
    np.testing.assert_array_equal(found, np.pad(data[0], ((2, 2), (1, 2)), "symmetric"))


def test_a_func_with_a_declared_shape_is_padded() -> None:
    g = sx.Func("g", shape=(4,))
    g[X] = X * X
    f = sx.Func("f")
    f[X] = sx.pad(g, value=-1)[X - 2]
    found = interpret(freeze(f), {}, {}, {"g": ((0, 3),), "g.pad": ((-2, 5),), "f": ((0, 7),)})["f"][0]
    np.testing.assert_array_equal(found, [-1, -1, 0, 1, 4, 9, -1, -1])
