"""Every public name says what it is, with an example that runs; the examples themselves run as doctests."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

import pytest

import stax
from stax import dtypes

PUBLIC = sorted(name for name in vars(stax) if not name.startswith("_") and not inspect.ismodule(getattr(stax, name)))
NUMBERS = {"inf", "nan", "pi"}


def is_plain(value: Any) -> bool:
    """Return whether `value` is a number or a dtype, which cannot hold a docstring of its own."""
    return isinstance(value, float | dtypes.DType)


@pytest.mark.parametrize("name", [n for n in PUBLIC if not is_plain(getattr(stax, n))])
def test_a_public_name_has_a_docstring_with_an_example(name):
    thing = getattr(stax, name)
    text = inspect.getdoc(thing)
    assert text
    if inspect.isclass(thing):
        assert thing.__doc__ != (thing.__mro__[1].__doc__)
    examples = doctest.DocTestParser().get_examples(text)
    assert examples, f"stax.{name} has no example"


@pytest.mark.parametrize(
    "name",
    [
        f"{cls.__name__}.{member}"
        for cls in (stax.Schedule, stax.Func, stax.Input, stax.Param, stax.Const, stax.RDom)
        for member, value in vars(cls).items()
        if not member.startswith("_") and callable(value)
    ],
)
def test_a_public_method_has_a_docstring(name):
    cls, member = name.split(".")
    assert inspect.getdoc(getattr(getattr(stax, cls), member))


def test_numbers_and_dtypes_are_described_where_they_are_defined():
    plain = {n for n in PUBLIC if is_plain(getattr(stax, n))}
    assert {n for n in plain if isinstance(getattr(stax, n), float)} == NUMBERS
    assert "stax" not in PUBLIC
    assert dtypes.__doc__


def test_public_names_are_those_of_the_package():
    """What `from stax import *` gives, and nothing that is not meant."""
    for name in PUBLIC:
        thing = getattr(stax, name)
        assert is_plain(thing) or thing.__module__.startswith("stax."), name
