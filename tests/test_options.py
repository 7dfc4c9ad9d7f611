"""Options are checked where they are made."""

import pytest

from stax.errors import ArgumentError
from stax.options import Options


def test_the_usual_values() -> None:
    assert Options() == Options(None, "default", False, True, None)


def test_wrong_values_are_refused() -> None:
    with pytest.raises(ArgumentError, match="at least 1"):
        Options(threads=0)
    with pytest.raises(ArgumentError, match="'2', and must be an integer"):
        Options(threads="2")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="did you mean 'default'"):
        Options(mode="defualt")
    with pytest.raises(ArgumentError, match="there is no mode 'x'"):
        Options(mode="x")


def test_modes_preset_what_is_not_given() -> None:
    assert Options().chosen == {"effort": "full", "require": None, "autotune": False, "graphs": False}
    assert Options(mode="fast-compile").chosen["effort"] == "quick"
    assert Options(mode="fast-compile", effort="full").chosen == Options().chosen
    assert Options(mode="deterministic").chosen["require"] == "bitwise"
    without = Options(mode="max-autotune", graphs=False).chosen
    assert without == Options(mode="max-autotune-no-cudagraphs").chosen == Options(autotune=True).chosen
    with pytest.raises(ArgumentError, match="effort is 'half'"):
        Options(effort="half")
    with pytest.raises(ArgumentError, match="graphs is 'yes'"):
        Options(graphs="yes")  # type: ignore[arg-type]
