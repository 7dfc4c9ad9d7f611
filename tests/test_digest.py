"""Programs as rows: the same for equal programs, and the program again."""

from __future__ import annotations

import json

import numpy as np
import pytest

import stax as sx
from stax.digest import flatten, restore
from stax.expr import nodes
from stax.expr.nodes import Const, Expr, Param, Size
from stax.lang.freeze import freeze
from stax.source import Span
from tests.meaning.programs import PROGRAMS

CLASSES = {c.__name__: c for c in (*nodes.Expr.__args__, nodes.Axis, nodes.UnaryOp, nodes.BinaryOp, nodes.Fn)}


def deep(depth: int) -> Expr:
    """Return a sum that doubles itself: linear as a graph, exponential as a tree."""
    found: Expr = Param(sx.int64, "p", span=Span("f.py", 3))
    for k in range(depth):
        found = nodes.Binary(sx.int64, nodes.BinaryOp.ADD, found, found, span=Span("f.py", k))
    return found


def test_deep_and_shared_graphs_are_short() -> None:
    rows, places = flatten(deep(5000))
    assert len(rows) == 5003
    assert len(places) == 5001
    again = restore(json.loads(json.dumps(flatten(deep(5000), places)[0])), CLASSES, places)
    assert flatten(again) == (rows, places)


def test_places_are_no_part_of_the_rows_and_come_back() -> None:
    here, there = Span("a.py", 1, 2, 3), Span("b.py", 7)
    one, other = (Size(sx.int64, "a", 0, span=s) for s in (here, there))
    assert flatten(one)[0] == flatten(other)[0]
    kept = flatten((one, here), flatten(one)[1])[0]
    found, place = restore(kept, CLASSES, flatten(other)[1])
    assert (found.span, place) == (there, there)


@pytest.mark.parametrize("value", [1.5, float("inf"), float("nan"), -0.0, True, 2**70, "text", None, np.float32(0.1)])
def test_constants_keep_their_bits(value: object) -> None:
    found = restore(json.loads(json.dumps(flatten(Const(sx.float32, value))[0])), CLASSES, [])  # type: ignore[arg-type]
    assert repr(found.value) == repr(value)
    assert type(found.value) is type(value)


def test_what_is_no_plain_data_is_refused() -> None:
    with pytest.raises(TypeError, match="no plain data"):
        flatten((1, lambda: 2))


def test_rows_of_other_classes_are_not_made() -> None:
    with pytest.raises(KeyError):
        restore([["Path", "/"], ["=", [0]]], CLASSES, [])


def test_programs_differ_where_their_meaning_may() -> None:
    rows = [json.dumps(flatten(freeze(p().outputs))[0]) for p in PROGRAMS]
    assert len(set(rows)) == len(rows)
    assert rows == [json.dumps(flatten(freeze(p().outputs))[0]) for p in PROGRAMS]
