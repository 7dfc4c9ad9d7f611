"""Where there is no machine code: the same values from the interpreter, with one warning, or an error when strict."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from stax import dtypes
from stax.backends.artifact import Artifact, Facts
from stax.errors import BackendError, BoundsError, StaxWarning, UnsupportedError
from stax.expr import build
from stax.expr.nodes import Load, Local, Param, Size
from stax.loops.nodes import Block, Buffer, For, LoopKind, Program, Role, Store
from tests.runtime.artifacts import scaled

A = np.arange(10, dtype=np.int32)


def program() -> Program:
    """`f[i] = a[i + 1] * k + 1`, as `scaled` is."""
    i, one = Local(dtypes.index, "i"), build.index(1)
    n = {name: Size(dtypes.index, name, 0) for name in ("a", "f")}
    read = Load(dtypes.int32, "a", (build.add(i, one),))
    k = Param(dtypes.int32, "k")
    value = build.add(build.mul(read, k), 1)
    loop = For(i, build.index(0), n["f"], LoopKind.SERIAL, Block((Store("f", (i,), value),)))
    buffers = (
        Buffer("a", dtypes.int32, (n["a"],), Role.INPUT),
        Buffer("f", dtypes.int32, (n["f"],), Role.OUTPUT),
    )
    return Program("f", buffers, (k, n["a"], n["f"]), Block((loop,)))


def broken(facts: Facts) -> Artifact:
    raise BackendError("no target")


def test_the_interpreter_gives_the_same_with_one_warning() -> None:
    k = scaled(respecialise=broken, program=program)
    with pytest.warns(
        StaxWarning, match="`f` is interpreted, slowly, as there is no machine code for it: no target"
    ) as seen:
        assert k(A, 3).tolist() == [3 * v + 1 for v in range(1, 10)]
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert k(A[::-2]).tolist() == (2 * A[::-2][1:] + 1).tolist()
        out = np.zeros(18, np.int32)[::2]
        assert k(A, out=out) is out
    assert out.tolist() == [2 * v + 1 for v in range(1, 10)]


def test_it_is_said_where_the_values_come_from() -> None:
    k = scaled(respecialise=broken, program=program, provenance={"backend": "llvm"})
    with pytest.warns(StaxWarning):
        k(A)
    assert k.provenance["backend"] == "interpreter"
    assert k.cache_info().interpreted


def test_calls_are_checked_as_before() -> None:
    k = scaled(respecialise=broken, program=program)
    with pytest.raises(BoundsError):
        k(A, shape=10)


@pytest.mark.parametrize("error", [BackendError, UnsupportedError])
def test_strict_raises(error: type[Exception]) -> None:
    def respecialise(facts: Facts) -> Artifact:
        raise error("no target")

    with pytest.raises(BackendError, match="no target"):
        scaled(respecialise=respecialise, program=program, strict_native=True)(A)


def test_damaged_code_is_interpreted_too() -> None:
    def respecialise(facts: Facts) -> Artifact:
        return Artifact("", b"\x7fELF damaged", "entry", (), facts)

    with pytest.warns(StaxWarning, match="could not be loaded"):
        assert len(scaled(respecialise=respecialise, program=program)(A)) == 9
