"""The applications of `examples/apps`, at their small sizes: by the oracle, and compiled, beside their NumPy code."""

from __future__ import annotations

import pytest

from examples.apps import stax_suite
from stax.testing import interpret

import apps  # isort: skip  # on the path once stax_suite is imported


@pytest.mark.parametrize("name", stax_suite.PROGRAMS)
def test_the_oracle_gives_what_the_numpy_code_gives(name):
    if name == "max_filter":
        pytest.importorskip("scipy", reason="its NumPy code asks scipy for the largest of a run")
    app = apps.APPS[name]
    params = app.params("small")
    inputs = app.make(params)
    got = interpret(stax_suite.PROGRAMS[name](), stax_suite.arguments(name, inputs, params))
    assert app.check(got, app.ref(inputs, params)) is None


@pytest.mark.parametrize("name", stax_suite.PROGRAMS)
def test_the_default_schedule_gives_the_oracles_bits(name):
    app = apps.APPS[name]
    params = app.params("small")
    inputs = app.make(params)
    wanted = interpret(stax_suite.PROGRAMS[name](), stax_suite.arguments(name, inputs, params))
    for threads in (1, 2, 5):
        got = stax_suite.build(name, inputs, params, threads=threads)()
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        assert got.tobytes() == wanted.tobytes(), f"on {threads} threads"


def test_every_application_of_the_peers_is_written_in_stax():
    assert set(stax_suite.PROGRAMS) == set(apps.APPS)
    assert stax_suite.variants("harris") == ["stax", "auto", "hand"]
    assert stax_suite.variants("something else") == []


@pytest.mark.parametrize(("name", "variant"), [("heat2d", "hand"), ("heat2d", "hand_untiled"), ("seidel2d", "hand")])
@pytest.mark.parametrize("threads", [1, 3])
def test_plates_in_tiles_of_time_give_the_oracles_bits(name, variant, threads):
    app = apps.APPS[name]
    for params in (app.params("small"), {"n": 61, "steps": 53}, {"n": 3, "steps": 2}):
        inputs = app.make(params)
        wanted = interpret(stax_suite.PROGRAMS[name](), stax_suite.arguments(name, inputs, params))
        got = stax_suite.build(name, inputs, params, variant, threads)()
        assert got.tobytes() == wanted.tobytes(), params
