"""Each example runs, and gives the same bits on any number of threads, as machine code."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.testing import interpret

OUTPUTS = {
    "blur": "blur_y",
    "unsharp": "sharp",
    "histogram_equalisation": "equal",
    "sgemm": "out",
    "heat2d": "heat",
    "iir": "back",
    "smith_waterman": "best",
    "mandelbrot": "picture",
    "gauss_seidel": "smooth",
    "biquad": "low",
    "fdtd2d": "fields",
    "lu": "both",
}
SMALL = 60


def example(name: str) -> tuple[ModuleType, Any]:
    module = importlib.import_module(f"examples.{name}")
    return module, getattr(module, OUTPUTS[name])


def flat(found: Any) -> Sequence[np.ndarray]:
    return [np.asarray(f) for f in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_example_runs_and_agrees_with_its_numpy_code(name, capsys):
    """`main` asserts that the values are NumPy's."""
    module, _ = example(name)
    module.main()
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_example_gives_the_oracles_bits_on_any_number_of_threads(name):
    module, output = example(name)
    given = module.inputs(SMALL)
    kernel = sx.compile(output, strict_native=True)
    wanted = interpret(output, given)
    for threads in (1, 2, 5):
        got = kernel(**given, threads=threads)
        for g, w in zip(flat(got), flat(wanted), strict=True):
            assert (g.dtype, g.shape) == (w.dtype, w.shape)
            assert g.tobytes() == w.tobytes(), f"on {threads} threads"


@pytest.mark.parametrize("name", ["blur", "sgemm", "gauss_seidel", "smith_waterman"])
def test_a_schedule_by_hand_gives_the_bits_of_the_default_one(name):
    module, output = example(name)
    given = module.inputs(SMALL)
    wanted = sx.compile(output, strict_native=True)(**given)
    by_hand = sx.compile(output, module.by_hand(), strict_native=True)
    for threads in (1, 2, 5):
        assert by_hand(**given, threads=threads).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", OUTPUTS)
def test_no_example_is_too_small_for_the_tiles_of_its_schedule(name):
    """Sizes below a vector and below a tile; smaller plates than a stencil have no inside."""
    module, output = example(name)
    kernel = sx.compile(output, strict_native=True)
    for size in (7, 17):
        given = module.inputs(size)
        for g, w in zip(flat(kernel(**given)), flat(interpret(output, given)), strict=True):
            assert g.tobytes() == w.tobytes(), size
