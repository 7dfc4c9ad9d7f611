"""Storage that is taken over: no second buffer, the same values, and a refusal where a cell would be read too late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.errors import ArgumentError, ScheduleError
from stax.loops import interpret as loops
from stax.lower.passes import lower
from stax.poly.isl import TooHard
from stax.testing import interpret

y, x = sx.vars("y x")
Say = Callable[[sx.Schedule], object]


def shifted(by: int) -> sx.Func:
    """Return the sum of each cell and the one `by` further on, 0 beyond the end."""
    a, f = sx.Input("a", sx.int32, 1), sx.Func("f")
    inside = (x + by >= 0) & (x + by < a.shape[0])
    f[x] = sx.select(inside, a[x + by], 0) + a[x] * 3
    return f


def around(name: str, source: Any, shape: tuple[Any, Any]) -> sx.Func:
    f = sx.Func(name)
    up, down = source[sx.maximum(y - 1, 0), x], source[sx.minimum(y + 1, shape[0] - 1), x]
    f[y, x] = up + down * 2 + source[y, x]
    return f


def ran(f: sx.Func, say: Say, **given: np.ndarray) -> tuple[Any, sx.Kernel]:
    """Return what a kernel gives, after a look whether that is right, and the kernel."""
    s = sx.Schedule(f)
    say(s)
    assert sx.Schedule.parse(str(s), f) == s
    k = sx.compile(f, s, strict_native=True)
    want = interpret(f, {name: array.copy() for name, array in given.items()})
    got = k(**given)
    np.testing.assert_array_equal(got, want)
    return got, k


def refused(f: sx.Func, say: Say, match: str) -> str:
    s = sx.Schedule(f)

    def check() -> None:
        say(s)
        sx.check(f, s)

    with pytest.raises(ScheduleError, match=match) as error:
        check()
    return str(error.value)


def test_an_output_in_place_of_an_input_is_the_array_that_was_given() -> None:
    given = np.arange(37, dtype=np.int32)
    got, k = ran(shifted(1), lambda s: s["f"].overwrite("a"), a=given)
    assert got is given
    assert "input" not in k.source()
    assert k.source().count("output f") == 1


def test_views_of_any_stride_are_written_over_in_place() -> None:
    whole = np.arange(120, dtype=np.int32)
    got, _ = ran(shifted(1), lambda s: s["f"].overwrite("a").vectorize(x, 8), a=whole[5:100:3])
    np.testing.assert_array_equal(whole[5:100:3], got)
    assert whole[:5].tolist() == [0, 1, 2, 3, 4]
    assert whole[100:].tolist() == list(range(100, 120))


@pytest.mark.parametrize(
    ("by", "say"),
    [
        (1, lambda s: s["f"].overwrite("a")),
        (1, lambda s: s["f"].overwrite("a").vectorize(x, 8)),
        (3, lambda s: s["f"].overwrite("a").split(x, "xo", "xi", 8).unroll("xi")),
        (-1, lambda s: s["f"].overwrite("a").reverse(x)),
        (-2, lambda s: s["f"].overwrite("a").affine(((-1,),), (x,))),
        (0, lambda s: s["f"].overwrite("a").parallel(x, 4)),
    ],
)
def test_cells_that_are_read_before_they_are_written_over(by: int, say: Say) -> None:
    ran(shifted(by), say, a=np.random.default_rng(1).integers(-99, 99, 53, np.int32))


@pytest.mark.parametrize(
    ("by", "say", "fact"),
    [
        (-1, lambda s: s["f"].overwrite("a"), r"(x = 0) writes f[0] over a[0], which (x = 1) reads after that, as"),
        (
            1,
            lambda s: s["f"].overwrite("a").reverse(x),
            "(x = 1) writes f[1] over a[1], which (x = 0) reads after that",
        ),
        (1, lambda s: s["f"].overwrite("a").parallel(x), "loop `x` runs both at the same time"),
        (-1, lambda s: s["f"].overwrite("a").vectorize(x, 8), "(x = 7) writes f[7] over a[7], which (x = 8) reads"),
        (
            3,
            lambda s: s["f"].overwrite("a").split(x, "xo", "xi", 4).reorder("xi", "xo"),
            "(x = 4) writes f[4] over a[4]",
        ),
    ],
)
def test_a_cell_that_would_be_read_too_late_is_named_with_both_points(by: int, say: Say, fact: str) -> None:
    assert fact in refused(shifted(by), say, "is still to read")


def test_the_way_out_of_a_wrong_direction_is_a_true_hint() -> None:
    assert 'hint: say reverse("x") too' in refused(shifted(-1), lambda s: s["f"].overwrite("a"), "still to read")


def two(other: str = "g") -> tuple[sx.Func, sx.Func]:
    """Return `out`, which reads `f` and, at another cell, `other`."""
    a = sx.Input("a", sx.int32, 2)
    g, f, out = sx.Func("g"), sx.Func("f"), sx.Func("out")
    g[y, x] = a[y, x] + 1
    f[y, x] = g[y, x] * 3
    out[y, x] = f[y, x] - {"g": g, "f": f}[other][y, x]
    return f, out


def at_root(s: sx.Schedule) -> sx.Schedule:
    for name in ("g", "f"):
        s[name].compute_root()
    return s


def test_a_func_in_place_of_another_needs_no_storage_of_its_own() -> None:
    given = np.random.default_rng(1).integers(-9, 9, (7, 9), np.int32)
    _, k = ran(two("f")[1], lambda s: at_root(s)["f"].overwrite("g"), a=given)
    assert k.source().count("scratch") == 1
    _, k = ran(two("f")[1], lambda s: (at_root(s)["f"].overwrite("g"), s["out"].overwrite("f")), a=given)
    assert "scratch" not in k.source()
    _, k = ran(
        two("f")[1], lambda s: (at_root(s)["g"].overwrite("a"), s["f"].overwrite("g"), s["out"].overwrite("f")), a=given
    )
    assert "scratch" not in k.source()
    assert "input" not in k.source()


def test_what_a_later_func_still_reads_is_not_written_over() -> None:
    text = refused(two("g")[1], lambda s: at_root(s)["f"].overwrite("g"), "`out` reads it when it is written over")
    assert "`f` at (y = 0, x = 0) writes over g[0, 0], and `out` at (y = 0, x = 0) reads it after that" in text


def test_a_chain_is_judged_as_a_whole() -> None:
    """The last of three in one storage may lose what the first still has."""
    a = sx.Input("a", sx.int32, 1)
    g, f, h, out = (sx.Func(n) for n in ("g", "f", "h", "out"))
    g[x] = a[x] + 1
    f[x] = g[x] * 2
    h[x] = f[x] + 1
    out[x] = h[x] + g[x + 40]
    say = lambda s: [s[n].compute_root() for n in "gfh"] and s["f"].overwrite("g")  # noqa: E731
    refused(out, say, "`out` reads it when it is written over")


def test_storage_of_a_tile_is_taken_over_tile_by_tile() -> None:
    def say(s: sx.Schedule) -> None:
        s["out"].split(y, "yo", "yi", 8).parallel("yo")
        s["f"].compute_at("out", "yo")
        s["g"].compute_at("out", "yo")
        s["f"].overwrite("g")

    given = np.random.default_rng(1).integers(-9, 9, (37, 9), np.int32)
    _, k = ran(two("f")[1], say, a=given)
    assert k.source().count("scratch") == 1


def test_rows_that_a_tile_around_still_reads_are_not_written_over() -> None:
    a = sx.Input("a", sx.int32, 2)
    f = around("f", a, a.shape)
    out = sx.Func("out")
    out[y, x] = f[y, x] + 1

    def say(s: sx.Schedule) -> None:
        s["f"].compute_at("out", "y")
        s["out"].overwrite("a")

    text = refused(out, say, "`f` reads it when it is written over")
    assert "`f` at (y = 32, x = 0) reads it at the same time in iteration (y = 1, y.in = 0)" in text
    ran(out, lambda s: (s["f"].compute_root(), s["out"].overwrite("a")), a=np.arange(35, dtype=np.int32).reshape(7, 5))


def test_what_is_computed_again_does_not_share_storage_between_iterations() -> None:
    a = sx.Input("a", sx.int32, 2)
    g, f, out = sx.Func("g"), sx.Func("f"), sx.Func("out")
    g[y, x] = a[y, x] + 1
    f[y, x] = a[y, x] * 3
    out[y, x] = f[y, x] + f[y + 1, x] + g[y, x] + g[y + 1, x]

    def say(s: sx.Schedule) -> None:
        s["g"].compute_root()
        s["f"].compute_at("out", "y")
        s["f"].overwrite("g")

    text = refused(out, say, "computed again")
    assert "is computed in iteration (y = 0, y.in = 31) and in iteration (y = 1, y.in = 0)" in text


def test_a_question_about_storage_that_is_too_hard_is_refused_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def hard(*_: Any) -> None:
        raise TooHard("too many operations")

    monkeypatch.setattr("stax.poly.proofs.meet", hard)
    monkeypatch.setattr("stax.poly.proofs.clash", hard)
    refused(shifted(1), lambda s: s["f"].overwrite("a").vectorize(x, 8), "was not found out: the question is too hard")
    a = sx.Input("a", sx.int32, 2)
    g, out = sx.Func("g"), sx.Func("out")
    g[y, x] = a[y, x] + 1
    out[y, x] = g[y, x] * 2

    def say(s: sx.Schedule) -> None:
        s["g"].compute_at("out", "y")
        s["out"].overwrite("g")

    refused(out, say, "was not found out|does not fit|not seen")


def test_updates_work_in_place_of_what_they_begin_with() -> None:
    """So a solver needs no copy of its right side."""
    a = sx.Input("a", sx.float64, 1)
    f, r = sx.Func("f", shape=a.shape), sx.RDom("r", k=(1, a.shape[0]))
    f[x] = a[x]
    f[r] = f[r] - 0.25 * f[r - 1]
    given = np.random.default_rng(1).random(41)
    got, _ = ran(f, lambda s: s["f"].overwrite("a").vectorize(x, 4), a=given)
    assert got is given
    g = sx.Func("g", shape=a.shape)
    g[x] = a[x]
    g[r] = g[r] + a[r - 1]
    refused(g, lambda s: s["g"].overwrite("a"), r"`g.update\(0\)` reads it when it is written over")


def test_a_scatter_over_what_it_reads_is_refused_where_it_is_not_seen_apart() -> None:
    a = sx.Input("a", sx.int32, 1)
    f, r = sx.Func("f", shape=(a.shape[0],)), sx.RDom("r", k=a.shape[0])
    f[x] = 0
    f[sx.clip(a[r], 0, a.shape[0] - 1)] += 1
    refused(f, lambda s: s["f"].overwrite("a"), "reads it when it is written over")


def test_default_schedules_fit_what_is_written_over() -> None:
    """Loops of a Func that reads around itself stay serial, and what reads the target is computed before."""
    a = sx.Input("a", sx.int32, 2)
    f, g = around("f", a, a.shape), sx.Func("g")
    g[y, x] = f[y, x] * 2 + f[y, sx.minimum(x + 1, a.shape[1] - 1)]
    ran(g, lambda s: s["g"].overwrite("a"), a=np.arange(77, dtype=np.int32).reshape(7, 11))


def test_types_shapes_and_names_must_fit() -> None:
    a, b = sx.Input("a", sx.int32, 1), sx.Input("b", sx.float32, 1)
    c = sx.Const("c", np.arange(5, dtype=np.int32))
    f, g = sx.Func("f"), sx.Func("g")
    g[x] = a[x] + a[x + 2]
    f[x] = g[x] + sx.cast(b[x], sx.int32) + c[x % 5]
    refused(f, lambda s: s["f"].overwrite("b"), "their types differ")
    refused(f, lambda s: s["f"].overwrite("c"), "is a Const")
    refused(f, lambda s: s["f"].overwrite("f"), "they are one")
    refused(f, lambda s: s["f"].overwrite("h"), "no Func 'h'")
    refused(f, lambda s: s["g"].overwrite("f"), "is an output, which the caller reads")
    refused(f, lambda s: (s["f"].overwrite("a"), s["g"].overwrite("a")), "`f` is kept there already")
    refused(f, lambda s: (s["g"].inline(), s["f"].overwrite("g")), "`g` is inlined, and has no storage")
    refused(f, lambda s: (s["g"].compute_root(), s["g"].fold_storage(x, 9), s["f"].overwrite("g")), "too few|is folded")
    h = sx.Func("h")
    h[x] = a[x] + a[x + 2]
    text = refused(h, lambda s: s["h"].overwrite("a"), "their shapes differ")
    assert "in dimension 0, `a` has 0 to a.shape[0] - 1" in text


def test_an_output_with_a_domain_is_no_place_for_others() -> None:
    """Its cells outside are made 0 first, and what lay there would be lost."""
    a = sx.Input("a", sx.int32, 2)
    f = sx.Func("f", where=lambda i, j: j <= i, shape=a.shape)
    f[y, x] = a[y, x] * 2
    refused(f, lambda s: s["f"].overwrite("a"), "outside its domain are made 0")


def test_arrays_that_may_not_be_written_over_are_refused_at_the_call() -> None:
    f = shifted(1)
    s = sx.Schedule(f)
    s["f"].overwrite("a")
    k = sx.compile(f, s, strict_native=True)
    given = np.arange(9, dtype=np.int32)
    fixed = given.copy()
    fixed.flags.writeable = False
    with pytest.raises(ArgumentError, match="`a` is read-only, and the kernel writes over it"):
        k(fixed)
    with pytest.raises(ArgumentError, match="elements that share memory"):
        k(np.lib.stride_tricks.as_strided(given, (5,), (0,)))
    with pytest.raises(ArgumentError, match="out= is another array"):
        k(given, out=given.copy())
    with pytest.raises(ArgumentError, match="has shape"):
        k(given, shape=(4,))
    with pytest.raises(ArgumentError, match="fixed at index 0"):
        k(given, origin=(2,))
    assert k(given, out=given) is given
    bound = k.bind(given)
    assert bound() is given


def test_another_input_may_not_lie_where_one_is_written_over() -> None:
    a, b, f = sx.Input("a", sx.int32, 1), sx.Input("b", sx.int32, 1), sx.Func("f")
    f[x] = a[x] + b[x]
    s = sx.Schedule(f)
    s["f"].overwrite("a")
    k = sx.compile(f, s, strict_native=True)
    given = np.arange(9, dtype=np.int32)
    with pytest.raises(ArgumentError, match="shares memory with input `b`"):
        k(given[:8], given[1:])
    want = given[:8] + given[1:]
    np.testing.assert_array_equal(k(given[:8], given[1:], overlap="copy"), want)


def test_scratch_in_place_of_an_input_is_checked_at_the_call() -> None:
    a, b = sx.Input("a", sx.int32, 1), sx.Input("b", sx.int32, 1)
    g, f = sx.Func("g"), sx.Func("f")
    g[x] = a[x] * b[x]
    f[x] = g[x] + g[x + 1]
    given = [np.arange(11, dtype=np.int32), np.arange(11, dtype=np.int32) + 3]
    want = (given[0] * given[1])[:-1] + (given[0] * given[1])[1:]
    s = sx.Schedule(f)
    s["g"].compute_root().overwrite("a")
    k = sx.compile(f, s, strict_native=True)
    assert "scratch" not in k.source()
    np.testing.assert_array_equal(k(*given), want)
    fixed = given[0].copy()
    fixed.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        k(fixed, given[1])


def test_the_interpreter_of_loops_writes_over_too() -> None:
    f = shifted(1)
    s = sx.Schedule(f)
    s["f"].overwrite("a").vectorize(x, 8)
    given = np.arange(21, dtype=np.int32)
    want = interpret(f, {"a": given.copy()})
    program = lower(sx.check(f, s), debug=True)
    loops.interpret(program, {"f": given}, {}, {("f", 0): 21, ("a", 0): 21})
    np.testing.assert_array_equal(given, want)
