"""What is counted of the applications before they are compiled."""

import pytest

import stax as sx
from examples.apps import stax_suite

import apps  # isort: skip  # on the path once stax_suite is imported

COUNTED = ("blur3x3", "unsharp", "harris", "bilateral_grid", "camera_pipe", "iir_blur", "softmax", "layernorm")


@pytest.mark.parametrize("app", COUNTED)
def test_the_least_is_what_the_authors_of_an_application_counted(app: str) -> None:
    """The peers' applications say what any program must move; an automatic schedule moves that or more."""
    one, program = apps.APPS[app], stax_suite.PROGRAMS[app]()
    params = one.params("full")
    given = stax_suite.arguments(app, one.make(params), params)
    found = sx.traffic(program, sx.Schedule.load(stax_suite.by_machine(app), program), **given)
    assert found.bytes_least == pytest.approx(one.work(params)["bytes"], rel=5e-3)
    assert found.over_least is not None
    assert found.over_least >= 1
