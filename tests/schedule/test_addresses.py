"""Names in a schedule: updates, Funcs that directives make, inline reductions, split loops, edited programs."""

from __future__ import annotations

import numpy as np
import pytest

import stax as sx
from stax.errors import ScheduleError, StaxWarning


def means() -> sx.Func:
    y, x = sx.vars("y x")
    a, out = sx.Input("a", sx.float32, 2), sx.Func("out")
    r = sx.RDom("r", k=a.shape[1])
    out[y, x] = a[y, x] - sx.sum(a[y, r], over=r, name="total")
    return out


def test_an_inline_reduction_is_addressed_by_its_name() -> None:
    out = means()
    s = sx.Schedule(out)
    s["total"].compute_at(out, "y").update(0).reassociate().vectorize("r.k", 8)
    assert 's["total"].compute_at("out", "y")\n' in str(s)
    assert 's["total"].update(0).reassociate().vectorize("r.k", 8)' in str(s)
    a = np.ones((3, 21), np.float32)
    assert (sx.compile(out, s)(a) == -20).all()


def test_a_func_that_a_directive_made_is_one_like_others() -> None:
    out = means()
    s = sx.Schedule(out)
    s["total"].compute_root().update(0).rfactor("r.k", "u", "part")
    s["part"].compute_root().parallel("u").update(0).parallel("u")
    assert "part" in [f.name for f in s.program.funcs]
    assert sx.Schedule.parse(str(s), out) == s


def test_a_loop_of_an_update_takes_another_func() -> None:
    i, a = sx.Var("i"), sx.Input("a", sx.int32, 1)
    g, f = sx.Func("g"), sx.Func("f", shape=(8,))
    r = sx.RDom("r", k=8)
    g[i] = a[i] * 2
    f[i] = 0
    f[i] += g[i + r.k]
    s = sx.Schedule(f)
    s["g"].compute_at(s["f"].update(0), "i")
    s["f"].update(0).split("i", "io", "ii", 4)
    assert s.resolved().placements["g"].loop == "ii"
    assert (
        sx.compile(f, s)(np.arange(16, dtype=np.int32)) == [sum(2 * (i + k) for k in range(8)) for i in range(8)]
    ).all()


def test_a_name_that_is_gone_raises_with_the_closest_ones_and_a_new_func_is_said() -> None:
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.float32, 2)

    def program(*names: str) -> sx.Func:
        last = a
        for name in names:
            f = sx.Func(name)
            f[y, x] = last[y, x] + last[y, x + 1]
            last = f
        return last

    s = sx.Schedule(program("blur", "out"))
    s["blur"].compute_root().vectorize("x", 8)
    with pytest.raises(ScheduleError, match="no Func 'blur'") as error:
        sx.Schedule.parse(str(s), program("blurry", "out"))
    assert error.value.hint == "did you mean 'blurry'?"
    with pytest.warns(StaxWarning, match="new since the schedule was written: sharpen; the default schedule is used"):
        again = sx.Schedule.parse(str(s), program("blur", "sharpen", "out"))
    assert again.lines == s.lines


def test_promises_and_conditions_come_back_from_text() -> None:
    out = means()
    s = sx.Schedule(out)
    s["out"].bound("y", 0, 3).align_bounds("x", 4).vectorize("x", upto=32).specialize(
        "a.shape[1] % 4 == 0 and not a.shape[0] < 2"
    )
    s["total"].compute_root().layout(("y",), align=64).memory("heap").warps(2)
    s["out"].prefetch("a", "y", 2).partition("y")
    assert sx.Schedule.parse(str(s), out).lines == s.lines


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a.shape[2] == 1", "has 2 dims"),
        ("b.shape[0] == 1", "no Input or output 'b'"),
        ("a.shape[0]", "a number, not a condition"),
        ("gain == 1", "no Param 'gain'"),
        ("a.shape[0] == 1 and", "was expected"),
        ("(" * 60 + "1", "brackets deep"),
        ("a.shape[0] == 1; x", "no part of a condition"),
        ("1 + (2 < 3) == 3", "a condition stands where a number"),
        ("x" * 600, "longer than"),
    ],
)
def test_what_is_no_condition_is_refused(text: str, why: str) -> None:
    s = sx.Schedule(means())
    with pytest.raises(ScheduleError, match=why):
        s["out"].specialize(text)
    assert s.lines == ()


def test_a_condition_of_the_language_is_kept_as_its_text() -> None:
    a, p = sx.Input("a", sx.float32, 2), sx.Param("p", sx.int32)
    y, x, f = sx.Var("y"), sx.Var("x"), sx.Func("f")
    f[y, x] = a[y, x] * p
    s = sx.Schedule(f)
    s[f].specialize((a.shape[1] % 8 == 0) & ~(p == 3))
    assert 's["f"].specialize("a.shape[1] % 8 == 0 and not p == 3")' in str(s)
    assert (sx.compile(f, s)(np.ones((2, 8), np.float32), 3) == 3).all()


def test_what_has_a_copy_for_its_reader_is_not_fetched_for_it():
    """The reader reads the copy, whichever of the two lines comes first."""
    y, x = sx.vars("y x")
    a, f = sx.Input("a", sx.float32, 2), sx.Func("f")
    f[y, x] = a[y, x] + 1
    s = sx.Schedule(f)
    s[f].prefetch("a", "y", 5)
    s["a"].cache_read("a_copy", "f")
    with pytest.raises(sx.errors.LegalityError, match="no longer reads `a`, which another line gave it a copy of"):
        sx.check(f, s)
