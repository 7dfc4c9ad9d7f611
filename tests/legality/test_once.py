"""Runs that are repeated by a shifted tail."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.errors import LegalityError

x = sx.Var("x")


def scattered(at: str, own: bool) -> tuple[sx.Func, sx.Schedule]:
    """Return an update at 13 points, in runs of 4 of which the last is moved back."""
    a, f = sx.Input("a", sx.int32, 1), sx.Func("f", shape=(26,))
    r = sx.RDom("r", j=a.shape[0])
    f[x] = 0
    cell = {"j": r.j, "j // 2": r.j // 2}[at]
    f[cell] = a[r.j] + (f[cell] if own else 0)
    s = sx.Schedule(f)
    s[f].update(0).split("r.j", "jo", "ji", 4, tail="shift")
    return f, s


def test_an_update_that_only_writes_cells_of_its_own_may_be_repeated() -> None:
    f, s = scattered("j", own=False)
    given = np.arange(13, dtype=np.int32)
    assert (sx.compile(f, s, strict_native=True)(given) == [*given, *[0] * 13]).all()


@pytest.mark.parametrize(("at", "own", "why"), [("j", True, "reads its own"), ("j // 2", False, "may write a cell at")])
def test_what_another_run_changes_is_not_repeated(at: str, own: bool, why: str) -> None:
    with pytest.raises(LegalityError, match=why):
        sx.check(*scattered(at, own))


@pytest.mark.parametrize("factor", [4, 16])
def test_the_greatest_of_values_may_be_taken_again(factor: int) -> None:
    a, f = sx.Input("a", sx.int32, 1), sx.Func("f", shape=(7,))
    r = sx.RDom("r", j=a.shape[0])
    f[x] = 3
    f[r.j // 2] = sx.maximum(f[r.j // 2], a[r.j])
    s = sx.Schedule(f)
    s[f].update(0).split("r.j", "jo", "ji", factor, tail="shift")
    given = np.array([5, -2, 9, 0, 1, 2, 8, 8, -7, 4, 3, 3, 11], np.int32)
    assert list(sx.compile(f, s, strict_native=True)(given)) == [5, 9, 3, 8, 4, 3, 11]
    s[f].update(0).parallel("jo")
    with pytest.raises(LegalityError):
        sx.check(f, s)


def test_what_is_shorter_than_a_run_is_not_repeated() -> None:
    f = sx.Func("f", sx.int32, shape=(9,))
    r = sx.RDom("r", j=(1, 3))
    f[x] = x
    f[r.j] = f[r.j - 1] * 2 + f[r.j]
    s = sx.Schedule(f)
    s[f].update(0).split("r.j", "jo", "ji", 4, tail="shift")
    assert list(sx.compile(f, s, strict_native=True)()) == [0, 1, 4, 3, 4, 5, 6, 7, 8]
