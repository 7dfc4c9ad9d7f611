"""Programs as they mean, for users' tests."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.errors import ArgumentError, BoundsError
from stax.testing import interpret

x = sx.Var("x")


def neighbours() -> sx.Func:
    a, f = sx.Input("a", sx.int32, 1), sx.Func("f")
    f[x] = a[x] + a[x + 1]
    return f


def test_a_shape_that_reads_outside_is_refused_as_a_call_is() -> None:
    given = {"a": np.arange(5, dtype=np.int32)}
    assert interpret(neighbours(), given, (3,)).tolist() == [1, 3, 5]
    assert interpret(neighbours(), given, (0,)).shape == (0,)
    with pytest.raises(BoundsError, match="`f` reads `a` outside its dimension 0: it needs 1 to 5, and the"):
        interpret(neighbours(), given, (5,))


def test_a_shape_is_asked_for_where_nothing_tells_it() -> None:
    f = sx.Func("f")
    f[x] = x * x
    assert interpret(f, {}, (3,)).tolist() == [0, 1, 4]
    with pytest.raises(ArgumentError, match="give shape="):
        interpret(f, {})
