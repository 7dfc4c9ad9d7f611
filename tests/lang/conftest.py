"""What an elementwise definition gives: evaluated over x = 0, 1, ..., with Inputs read at x only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.algorithm.verify import verify
from stax.expr.evaluate import evaluate
from stax.expr.nodes import Expr, Read, Size, Var
from stax.lang.freeze import freeze

Array = np.ndarray[Any, Any]


@pytest.fixture
def values() -> Callable[..., Array]:
    """Return a function of an expression in `x`, of arrays by the name of their Input, and of an fp mode."""

    def run(e: Any, n: int = 8, fp: str | None = None, **arrays: Array) -> Array:
        f = sx.Func("f")
        f[sx.Var("x")] = e
        pipeline = freeze(f, fp=fp)
        verify(pipeline)

        def leaf(node: Expr) -> Array:
            match node:
                case Var(name="x"):
                    return np.arange(n)
                case Read(source=source, index=(Var(name="x"),)):
                    return arrays[source]
                case Size(array=array, dim=dim):
                    return np.asarray(arrays[array].shape[dim])
                case _:
                    raise AssertionError(f"{node} in an elementwise definition")

        (found,) = evaluate(pipeline.func("f").values, leaf)
        assert found.dtype == pipeline.func("f").dtypes[0].dtype
        return np.broadcast_to(found, (n,))

    return run
