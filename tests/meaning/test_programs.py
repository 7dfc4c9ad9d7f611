"""Each program of `programs.py` gives what NumPy gives: by the oracle, and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.algorithm.interpret import interpret
from stax.bounds.infer import infer
from stax.expr.evaluate import evaluate
from stax.expr.nodes import Expr, Param, Size
from stax.lang.freeze import freeze
from tests.meaning.programs import PROGRAMS, Case


def expected(case: Case) -> tuple[np.ndarray, ...]:
    found = case.expected if isinstance(case.expected, tuple) else (case.expected,)
    return tuple(np.asarray(e) for e in found)


def oracle(case: Case) -> tuple[np.ndarray, ...]:
    """Return what the oracle makes of a case whose outputs have the shapes that NumPy gives them."""
    pipeline = freeze(case.outputs)
    regions = infer(pipeline)
    wanted, shapes = list(expected(case)), {}
    for name in pipeline.outputs:
        parts = [wanted.pop(0) for _ in pipeline.func(name).dtypes]
        shapes[name] = parts[0].shape
    arrays = {a.name: np.asarray(case.arguments[a.name]) for a in pipeline.inputs}
    scalars = {s.name: case.arguments.get(s.name, s.default) for s in pipeline.scalars}

    def leaf(node: Expr) -> Any:
        match node:
            case Size(array=array, dim=dim):
                shape = shapes[array] if array in shapes else arrays[array].shape
                return np.asarray(shape[dim], np.int64)
            case Param(name=name):
                return np.asarray(scalars[name]).astype(node.dtype.dtype)
            case _:
                raise AssertionError(f"a box depends on {node}")

    algebra = regions.context.algebra
    boxes = {}
    for name, box in regions.boxes.items():
        ends = evaluate([algebra.expr(end) for side in box for end in (side.lo, side.hi)], leaf)
        boxes[name] = tuple((int(ends[2 * k]), int(ends[2 * k + 1])) for k in range(len(box)))
    sizes = {(name, d): n for name, shape in shapes.items() for d, n in enumerate(shape)}
    parts = interpret(pipeline, arrays, scalars, boxes, sizes)
    return tuple(part for name in pipeline.outputs for part in parts[name])


def compiled(case: Case) -> tuple[np.ndarray, ...]:
    """Return what machine code makes of a case, by the default schedule."""
    kernel = sx.compile(case.outputs, strict_native=True)
    if case.shaped:
        found = kernel(**case.arguments)
    else:
        shapes = tuple(e.shape for e in expected(case))
        found = kernel(**case.arguments, shape=shapes if isinstance(case.outputs, tuple) else shapes[0])
    nested = found if isinstance(found, tuple) else (found,)
    return tuple(np.asarray(part) for f in nested for part in (f if isinstance(f, tuple) else (f,)))


def assert_as_numpy(got: tuple[np.ndarray, ...], case: Case) -> None:
    wanted = expected(case)
    assert len(got) == len(wanted)
    for k, (g, w) in enumerate(zip(got, wanted, strict=True)):
        assert (g.dtype, g.shape) == (w.dtype, w.shape), k
        if w.dtype.kind == "f" and case.rtol:
            np.testing.assert_allclose(g, w, rtol=case.rtol, atol=case.atol, err_msg=str(k))
        elif w.dtype.kind == "f":
            np.testing.assert_array_equal(np.isnan(g), np.isnan(w), err_msg=str(k))
            known = ~np.isnan(w)
            np.testing.assert_array_equal(g[known], w[known], err_msg=str(k))
            np.testing.assert_array_equal(np.signbit(g[known]), np.signbit(w[known]), err_msg=str(k))
        else:
            np.testing.assert_array_equal(g, w, err_msg=str(k))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_the_oracle_gives_what_numpy_gives(program):
    case = program()
    assert_as_numpy(oracle(case), case)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_machine_code_gives_what_numpy_gives(program):
    case = program()
    assert_as_numpy(compiled(case), case)


def test_programs_are_many_and_each_is_run():
    names = [p.__name__ for p in PROGRAMS]
    assert len(names) == len(set(names)) >= 60
