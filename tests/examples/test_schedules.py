"""The schedules of `schedules/cpu`: each is legal, fits its program, and gives what the NumPy code gives."""

from __future__ import annotations

import warnings

import pytest

import stax as sx
from examples.apps import stax_suite

import apps  # isort: skip  # on the path once stax_suite is imported

BY_HAND = [(app, name) for app in stax_suite.PROGRAMS for name in stax_suite.by_hand(app)]


@pytest.mark.parametrize(("app", "name"), BY_HAND)
def test_a_schedule_by_hand_is_legal_and_right(app: str, name: str) -> None:
    """At the small size, whose extents are no multiples of anything, on one thread and several."""
    one = apps.APPS[app]
    params = one.params("small")
    inputs = one.make(params)
    wanted = one.ref(inputs, params)
    for threads in (1, 3):
        got = stax_suite.build(app, inputs, params, name, threads=threads)()
        assert one.check(got, wanted) is None


@pytest.mark.parametrize(("app", "name"), BY_HAND)
def test_a_schedule_by_hand_fits_its_program(app: str, name: str) -> None:
    """Nothing to warn of, and the file is what is printed; a reader needs no more than 25 lines of it."""
    path = stax_suite.by_hand(app)[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        s = sx.Schedule.load(path, stax_suite.PROGRAMS[app]())
    assert str(s) == path.read_text(encoding="utf-8")


def test_every_file_belongs_to_an_application() -> None:
    used = {path for app in stax_suite.PROGRAMS for path in stax_suite.by_hand(app).values()}
    assert used == set(stax_suite.SCHEDULES.glob("*.stax"))
