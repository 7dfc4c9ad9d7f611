"""The public case log: 38 small programs on which other systems went wrong, written in stax.

A test is called by the number and the title of its case. Index order is NumPy's and RDom order is outermost first, so
both are the reverse of the log's. Each program is compiled, never interpreted, and its result is asserted to be the
right one; the oracle says the same.

Left to later issues: 72 and 74 (a damaged and an unwritable cache) come with the cache's own issue, and 76 and 79 with
the GPU. In 58 and 60 `auto_schedule` returns the default schedule. Run in full: all the others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.errors import (
    ArgumentError,
    BoundsError,
    DefinitionError,
    LegalityError,
    ScheduleError,
    SymbolicValueError,
)
from stax.lang.freeze import freeze
from tests.oracle import oracle

Array = np.ndarray[Any, Any]
Scheduling = Callable[[sx.Schedule], object]

y, x, c = sx.vars("y x c")


def run(f: sx.Func, shape: Any = None, schedule: Scheduling | None = None, **arguments: Any) -> Array:
    """Return what machine code makes of `f`, after checking that the default schedule and the oracle agree."""
    found = compiled(f, shape, None, **arguments)
    (meant,) = oracle(f, {freeze(f).outputs[0]: found.shape}, arguments)
    np.testing.assert_array_equal(found, meant)
    return found if schedule is None else compiled(f, shape, schedule, **arguments)


def compiled(f: sx.Func, shape: Any, schedule: Scheduling | None, **arguments: Any) -> Array:
    kernel = sx.compile(f, scheduled(f, schedule), strict_native=True)
    return kernel(shape=shape, **arguments)


def scheduled(f: sx.Func, schedule: Scheduling | None) -> sx.Schedule | None:
    if schedule is None:
        return None
    made = sx.Schedule(f)
    schedule(made)
    return made


def equal(found: Any, expected: Any) -> None:
    """Assert the same type, shape and values; NaN equals NaN."""
    expected = np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


def windowed(name: str = "out") -> tuple[sx.Func, sx.Func, sx.Func]:
    src, acc, out = sx.Func("src"), sx.Func("acc"), sx.Func(name)
    r = sx.RDom("r", y=(-1, 2), x=(-1, 2))
    src[y, x] = sx.cast(3 * x + 7 * y, sx.int32)
    acc[y, x] = sx.int32(0)
    acc[y, x] += src[y + r.y, x + r.x]
    out[y, x] = acc[y, x] // 9
    return src, acc, out


def linear(height: int, width: int, by_y: int, by_x: int) -> Array:
    yy, xx = np.mgrid[0:height, 0:width]
    return (by_x * xx + by_y * yy).astype(np.int32)


def test_01_stencil_sum_chain_kept_in_root_storage_and_slid_along_an_axis_split_by_1() -> None:
    _, _, out = windowed()

    def slid(s: sx.Schedule) -> None:
        s["out"].split("y", "yo", "yi", 1)
        s["acc"].compute_at("out", "yo").store_root()
        s["src"].compute_at(s["acc"].update(0), "x").store_root()

    equal(run(out, (96, 128), slid), linear(96, 128, 7, 3))


def test_05_accumulator_stored_outside_a_parallel_tile_loop_but_recomputed_by_overlapping_tiles() -> None:
    f, g = sx.Func("f"), sx.Func("g")
    f[y, x] = sx.int32(1)
    f[y, x] += 2
    g[y, x] = f[y - 7, x - 5] + f[y + 7, x + 5]
    equal(run(g, (64, 64)), np.full((64, 64), 6, np.int32))

    def shared(s: sx.Schedule) -> None:
        s[g].tile((y, x), ("yo", "xo"), ("yi", "xi"), (8, 8)).parallel("xo").parallel("yo")
        s[f].compute_at(g, "xo").store_root()

    with pytest.raises(LegalityError, match=r"parallel loop `[xy]o` of `g` would share the storage of `f`"):
        compiled(g, (64, 64), shared)

    def apart(s: sx.Schedule) -> None:
        s[g].tile((y, x), ("yo", "xo"), ("yi", "xi"), (8, 8)).parallel("yo")
        s[f].compute_at(g, "xo")

    equal(compiled(g, (64, 64), apart), np.full((64, 64), 6, np.int32))


def test_06_explicit_circular_buffer_too_small_for_the_window() -> None:
    f, g = sx.Func("f"), sx.Func("g")
    f[y, x] = sx.cast(x + 10 * y, sx.int32)
    g[y, x] = f[y - 1, x] + f[y, x] + f[y + 1, x]

    def kept(s: sx.Schedule) -> None:
        s[f].compute_at(g, y).store_root()

    def folded(s: sx.Schedule, n: int) -> None:
        s[f].compute_at(g, y).store_root().fold_storage(y, n)

    equal(run(g, (40, 8), kept), 3 * linear(40, 8, 10, 1))
    for n in (4, 3):
        equal(run(g, (40, 8), lambda s, n=n: folded(s, n)), 3 * linear(40, 8, 10, 1))
    with pytest.raises(LegalityError, match="2 values of `y` are too few to keep of `f`") as refused:
        run(g, (40, 8), lambda s: folded(s, 2))
    assert "`y` = -1 would be overwritten by 1" in str(refused.value)


def test_08_rfactor_combined_with_a_split_by_1_of_a_pure_variable_in_the_same_update() -> None:
    _, acc, out = windowed()

    def split(s: sx.Schedule) -> None:
        s[acc].compute_root().split(x, "xo", "xi", 4)
        s[acc].update(0).split(x, "xo", "xi", 1)

    equal(run(out, (26, 30), split), linear(26, 30, 7, 3))

    def factored(s: sx.Schedule) -> None:
        s[acc].compute_root().split(x, "xo", "xi", 4)
        s[acc].update(0).rfactor("r.x", "u", "part")
        s["part"].compute_root().update(0).split(x, "xo", "xi", 1).parallel("u")

    equal(run(out, (26, 30), factored), linear(26, 30, 7, 3))
    with pytest.raises(ScheduleError, match="is factored out after other directives of this update"):
        sx.Schedule(out)[acc].update(0).split(x, "xo", "xi", 1).rfactor("r.x", "u", "part")


def test_09_a_sum_whose_terms_have_a_negative_constant_factor_must_still_be_factorable() -> None:
    a = np.arange(32, dtype=np.float64).reshape(4, 8)
    img, f = sx.Input("img", sx.float64, (4, 8)), sx.Func("f")
    r = sx.RDom("r", y=4, x=8)
    f[()] = np.float64(0)
    f[()] += img[r.y, r.x] * -2.5
    equal(run(f, img=a), np.float64(-2.5 * 496))
    equal(run(f, (), lambda s: s[f].update(0).rfactor("r.y", "u", "part"), img=a), np.float64(-2.5 * 496))


@pytest.mark.parametrize("form", ["augmented", "left", "right"])
def test_11_f_equals_f_plus_k_and_f_plus_equals_k_must_be_the_same_reduction(form: str) -> None:
    f, k = sx.Func("f"), sx.Func("k")
    k[x] = sx.cast(x, sx.int32)
    r = sx.RDom("r", x=30)
    f[()] = sx.int32(0)
    if form == "augmented":
        f[()] += k[r]
    elif form == "left":
        f[()] = f[()] + k[r]
    else:
        f[()] = k[r] + f[()]

    def rooted(s: sx.Schedule) -> None:
        s[k].compute_root()

    equal(run(f, (), rooted), np.int32(435))
    equal(run(f, (), lambda s: s[f].update(0).rfactor("r.x", "u", "part")), np.int32(435))
    equal(run(f, (), lambda s: s[f].update(0).vectorize("r.x", 8)), np.int32(435))


def test_12_a_predicate_on_x_plus_r_keeps_reads_inside_the_image() -> None:
    height, width = 3, 4
    img, out = sx.Input("img", sx.int32, (height, width)), sx.Func("out")
    r = sx.RDom("r", y=3, x=3, where=lambda r: (x + r.x < width) & (y + r.y < height))
    out[y, x] = sx.int32(0)
    out[y, x] += img[y + r.y, x + r.x]
    expected = np.array([[9, 9, 6, 3], [6, 6, 4, 2], [3, 3, 2, 1]], np.int32)
    equal(run(out, (height, width), img=np.ones((height, width), np.int32)), expected)


def test_12_holds_for_sizes_that_only_the_call_knows() -> None:
    img, out = sx.Input("img", sx.int32, 2), sx.Func("out")
    height, width = img.shape
    r = sx.RDom("r", y=3, x=3, where=lambda r: (x + r.x < width) & (y + r.y < height))
    out[y, x] = sx.int32(0)
    out[y, x] += img[y + r.y, x + r.x]
    for h, w in ((3, 4), (1, 1), (2, 9), (17, 5)):
        a = np.arange(h * w, dtype=np.int32).reshape(h, w)
        q = np.pad(a, ((0, 2), (0, 2)))
        expected = sum(q[i : i + h, j : j + w] for i in range(3) for j in range(3))
        equal(run(out, (h, w), img=a), np.asarray(expected, np.int32))


@pytest.mark.parametrize("lower", [True, False])
def test_12_a_triangular_rdom_window_is_accepted(lower: bool) -> None:
    """Row y of a triangle reads y + 1 elements, or those from y on; no read leaves the array."""
    a, out = sx.Input("a", sx.int32, 2), sx.Func("out")
    n = a.shape[1]
    where = (lambda r: r.j <= y) if lower else (lambda r: r.j >= y)
    r = sx.RDom("r", j=n, where=where)
    out[y] = sx.int32(0)
    out[y] += a[y, r.j]
    for extent in (1, 2, 7, 16, 33):
        given = np.arange(extent * extent, dtype=np.int32).reshape(extent, extent)
        kept = np.tril(given) if lower else np.triu(given)
        equal(run(out, (extent,), a=given), kept.sum(1, dtype=np.int32))


def test_12_a_triangular_window_whose_bounds_are_the_triangle() -> None:
    """The same by an RDom whose bound is an outer Var, and a window inside a window."""
    a, out = sx.Input("a", sx.int32, 1), sx.Func("out")
    r = sx.RDom("r", i=(0, x + 1), j=lambda r: r.i + 1)
    out[x] = sx.int32(0)
    out[x] += a[r.j] * sx.cast(r.i + 1, sx.int32)
    given = np.arange(3, 12, dtype=np.int32)
    expected = [sum(given[j] * (i + 1) for i in range(k + 1) for j in range(i + 1)) for k in range(9)]
    equal(run(out, (9,), a=given), np.array(expected, np.int32))


def test_15_an_out_of_range_input_read_must_say_who_reads_what_range_and_what_is_available() -> None:
    samples, shifted, out = sx.Input("samples", sx.int32, 1), sx.Func("shifted"), sx.Func("out")
    shifted[x] = samples[x - 3]
    out[x] = shifted[x] + 1
    with pytest.raises(BoundsError) as refused:
        sx.compile(out)(np.arange(10, dtype=np.int32), shape=(10,))
    said = str(refused.value)
    for words in ("`samples`", "dimension 0", "-3 to 6", "0 to 9", "`shifted`", "shifted[x] = samples[x - 3]"):
        assert words in said
    assert said.count("\n") < 9


def test_16_mirror_boundary_on_x_and_y_only_on_an_image_with_a_channel_axis() -> None:
    a = np.arange(2 * 3 * 4, dtype=np.int32).reshape(2, 3, 4)
    img, out = sx.Input("img", sx.int32, 3), sx.Func("out")
    m = sx.pad(img, "symmetric", axes=(1, 2))
    out[c, y, x] = m[c, y - 1, x - 2] + m[c, y + 1, x + 2]
    p = np.pad(a, ((0, 0), (4, 4), (4, 4)), mode="symmetric")
    equal(run(out, (2, 3, 4), img=a), p[:, 3:6, 2:6] + p[:, 5:8, 6:10])


@pytest.mark.parametrize("divisor", [3, -3, 1, -1, 7, -8])
def test_18_floor_division_and_modulo_for_negative_operands(divisor: int) -> None:
    """One rule everywhere: Python's floors, on constants, scalars and vectors, for negative divisors too."""
    v = np.arange(12) - 6
    d = sx.Param("d", sx.int64)
    for value, expected in (
        ((x - 6) // divisor, v // divisor),
        ((x - 6) % divisor, v % divisor),
        ((x - 6) // d, v // divisor),
        ((x - 6) % d, v % divisor),
    ):
        f = sx.Func("f")
        f[x] = value
        given = {"d": divisor} if "d" in sx.compile(f).signature.arguments else {}
        for schedule in (lambda s: s["f"], lambda s: s["f"].vectorize("x", 4)):
            equal(run(f, (12,), schedule, **given), expected)
    folded = [(-7) // divisor, (-7) % divisor]
    f = sx.Func("f")
    f[x] = sx.int64(-7) // divisor + 100 * (sx.int64(-7) % divisor) + 0 * x
    equal(run(f, (1,)), np.array([folded[0] + 100 * folded[1]]))


def test_19_folding_a_negative_factor_into_the_divisor_changes_rounding() -> None:
    a = sx.cast(sx.cast(x - 128, sx.int8), sx.int32)
    f, g = sx.Func("f"), sx.Func("g")
    f[x] = ((-67 * 120) * (a - 73)) // 69
    g[x] = ((54 - 97) * (a + 23)) // 222
    v = np.arange(-128, 128)
    equal(run(f, (256,)), ((-8040 * (v - 73)) // 69).astype(np.int32))
    equal(run(g, (256,)), ((-43 * (v + 23)) // 222).astype(np.int32))


def test_23_int16_a_minus_int16_b_with_uint8_inputs_must_not_be_computed_in_uint8() -> None:
    a, b, f = sx.Input("a", sx.uint8, 1), sx.Input("b", sx.uint8, 1), sx.Func("f")
    f[x] = sx.cast(a[x], sx.int16) - sx.cast(b[x], sx.int16)
    i = np.arange(64)
    u, v = (i * 3 % 256).astype(np.uint8), (i * 7 % 256).astype(np.uint8)
    expected = ((i * 3 % 256) - (i * 7 % 256)).astype(np.int16)
    equal(run(f, None, lambda s: s["f"].vectorize("x", 16), a=u, b=v), expected)


def test_24_narrow_arithmetic_wraps_at_its_own_width_before_it_is_widened() -> None:
    a, b = sx.Input("a", sx.uint8, 1), sx.Input("b", sx.uint8, 1)
    u, v = np.array([128, 3, 0, 200], np.uint8), np.array([128, 4, 3, 100], np.uint8)
    for value, expected in (
        (sx.cast(a[x] + b[x], sx.int16), np.array([0, 7, 3, 44], np.int16)),
        (a[x] - b[x], np.array([0, 255, 253, 100], np.uint8)),
        (sx.saturating_cast(sx.cast(a[x], sx.int16), sx.uint8) - np.uint8(3), np.array([125, 0, 253, 197], np.uint8)),
    ):
        f = sx.Func("f")
        f[x] = value
        given = {"a": u} if "b" not in sx.compile(f).signature.arguments else {"a": u, "b": v}
        for schedule in (lambda s: s["f"], lambda s: s["f"].vectorize("x", 4)):
            equal(run(f, None, schedule, **given), expected)


@pytest.mark.parametrize("name", ["max", "min"])
def test_28_maximum_over_data_with_nan_scalar_and_vectorised(name: str) -> None:
    nan = float("nan")
    a, f, rows = sx.Input("a", sx.float32, 1), sx.Func("f"), sx.Func("rows")
    r = sx.RDom("r", x=(0, a.shape[0]))
    f[()] = getattr(sx, name)(a[r], over=r, initial=-np.inf if name == "max" else np.inf)
    t = sx.Input("t", sx.float32, 2)
    q = sx.RDom("q", x=t.shape[1])
    rows[y] = getattr(sx, name)(t[y, q.x], over=q, initial=-np.inf if name == "max" else np.inf)
    for values in ([nan, nan], [1.0, nan, 3.0], [nan, 1.0, 3.0], [3.0, 1.0, nan]):
        given = np.array(values, np.float32)
        equal(run(f, a=given), np.float32(nan))
        table = np.tile(np.array([2.0, 1.0], np.float32), (20, len(values)))
        table[::3, : len(values)] = given
        expected = getattr(np, name)(table, 1)
        equal(run(rows, t=table), expected)
        equal(compiled(rows, None, lambda s: s["rows"].update(0).vectorize("y", 8), t=table), expected)


def test_30_select_with_a_nan_branch_then_isnan_on_the_result() -> None:
    for fp in ("strict", "default"):
        f, g = sx.Func("f", fp=fp), sx.Func("g", fp=fp)
        f[x] = sx.select(x < 2, np.float32("nan"), np.float32(1))
        g[x] = sx.select(sx.isnan(f[x]), 1, 0)
        assert np.isnan(run(f, (4,))).tolist() == [True, True, False, False]
        equal(run(g, (4,)), np.array([1, 1, 0, 0]))


def test_33_parallel_scatter_add_of_float32_into_8_bins() -> None:
    n = 20_000
    a = ((np.arange(n) % 1000) * 0.001).astype(np.float32)
    img, f = sx.Input("img", sx.float32, 1), sx.Func("f", shape=(8,))
    r = sx.RDom("r", x=img.shape[0])
    f[x] = np.float32(0)
    f[r.x % 8] += img[r.x]
    found = run(f, img=a)
    np.testing.assert_allclose(found, [a[k::8].astype(np.float64).sum() for k in range(8)], rtol=1e-4)
    with pytest.raises(LegalityError, match=r"parallel\('r.x'\) would change the values of `f.update\(0\)`"):
        compiled(f, None, lambda s: s["f"].update(0).parallel("r.x"), img=a)
    for how in (lambda s: s.atomic().parallel("r.x"), lambda s: s.split_reduction("r.x", 1000, "u", "part")):
        found = run(f, None, lambda s, how=how: how(s["f"].update(0)), img=a)
        np.testing.assert_allclose(found, [a[k::8].astype(np.float64).sum() for k in range(8)], rtol=1e-4)


def test_34_histogram_update_plain_parallel_must_be_refused() -> None:
    yy, xx = np.mgrid[0:48, 0:64]
    a = ((xx * 7 + yy * 13) % 16).astype(np.uint8)
    img, h = sx.Input("img", sx.uint8, 2), sx.Func("h", shape=(16,))
    r = sx.RDom("r", y=img.shape[0], x=img.shape[1])
    h[x] = sx.int32(0)
    h[img[r.y, r.x] & 15] += 1
    equal(run(h, img=a), np.bincount(a.ravel(), minlength=16).astype(np.int32))
    with pytest.raises(LegalityError) as refused:
        compiled(h, None, lambda s: s["h"].update(0).parallel("r.y"), img=a)
    for words in ("`h.update(0)`", "r.y", "atomic()", "rfactor("):
        assert words in str(refused.value)
    for how in (lambda s: s.atomic().parallel("r.y"), lambda s: s.split_reduction("r.y", 5, "u", "part")):
        equal(
            run(h, None, lambda s, how=how: how(s["h"].update(0)), img=a),
            np.bincount(a.ravel(), minlength=16).astype(np.int32),
        )


def test_36_a_running_sum_must_stay_serial_and_in_order() -> None:
    n = 1000
    ones, s = sx.Input("ones", sx.int32, 1), sx.Func("s", shape=(n,))
    r = sx.RDom("r", x=(1, n))
    s[x] = ones[x]
    s[r.x] = s[r.x - 1] + ones[r.x]
    a = np.arange(n, dtype=np.int32) % 5
    cumulated = np.cumsum(a).astype(np.int32)
    equal(run(s, ones=a), cumulated)
    equal(compiled(s, None, lambda p: p["s"].vectorize("x", 8), ones=a), cumulated)
    for directive in (lambda p: p.parallel("r.x"), lambda p: p.vectorize("r.x", 8)):
        with pytest.raises(LegalityError, match=r"would change the values of `s.update\(0\)`"):
            compiled(s, None, lambda p, d=directive: d(p["s"].update(0)), ones=a)


def test_39_vector_update_of_width_8_on_an_output_of_5_elements_inside_a_larger_array() -> None:
    src, f = sx.Input("src", sx.int32, 1), sx.Func("f")
    f[x] = src[x]
    f[x] += 10
    for schedule in (
        None,
        scheduled(f, lambda s: s["f"].update(0).vectorize("x", 8)),
        scheduled(f, lambda s: s["f"].update(0).split("x", "xo", "xi", 8, tail="guard").vectorize("xi")),
        scheduled(f, lambda s: s["f"].update(0).split("x", "xo", "xi", 8, tail="predicate").vectorize("xi")),
    ):
        guard = np.full(24, 77, np.int32)
        view = guard[8:13]
        view[:] = [1, 2, 3, 4, 5]
        sx.compile(f, schedule, strict_native=True)(view.copy(), out=view)
        assert guard.tolist() == [77] * 8 + [11, 12, 13, 14, 15] + [77] * 11
    with pytest.raises(LegalityError, match="has no padding"):
        sx.check(f, scheduled(f, lambda s: s["f"].update(0).split("x", "xo", "xi", 8, tail="round_up")))


def test_40_inward_shifted_tail_on_a_read_modify_write_update() -> None:
    f = sx.Func("f")
    f[x] = sx.cast(x, sx.int32)
    f[x] += 100
    equal(run(f, (10,), lambda s: s["f"].update(0).split("x", "xo", "xi", 4)), np.arange(100, 110, dtype=np.int32))
    with pytest.raises(LegalityError, match="no run of it may be repeated"):
        run(f, (10,), lambda s: s["f"].update(0).split("x", "xo", "xi", 4, tail="shift"))


def edge_box() -> tuple[sx.Func, sx.Func]:
    p = sx.Input("p", sx.int32, 2)
    edge = sx.pad(p, "edge")
    bx, by = sx.Func("bx"), sx.Func("by")
    bx[y, x] = edge[y, x - 1] + edge[y, x] + edge[y, x + 1]
    by[y, x] = bx[y - 1, x] + bx[y, x] + bx[y + 1, x]
    return bx, by


def nine(a: Array) -> Array:
    q = np.pad(a, 1, mode="edge")
    h, w = a.shape
    return np.asarray(sum(q[i : i + h, j : j + w] for i in range(3) for j in range(3)), a.dtype)


def test_43_two_stage_blur_over_every_size_from_1_to_40_with_fixed_vector_and_tile_sizes() -> None:
    bx, by = edge_box()

    def tiled(s: sx.Schedule) -> None:
        s[by].tile((y, x), ("y", "x"), ("yi", "xi"), (4, 16)).vectorize("xi", 8).parallel("y")
        s[bx].compute_at(by, "x").vectorize("x", 8)

    kernels = [sx.compile(by, s, strict_native=True) for s in (None, scheduled(by, tiled))]
    for n in range(1, 41):
        a = (np.arange(n * (n % 7 + 1)).reshape(n % 7 + 1, n) * 37 % 101).astype(np.int32)
        for kernel in kernels:
            equal(kernel(a, shape=a.shape), nine(a))


def test_44_output_array_is_the_input_shifted_by_one_element() -> None:
    p, f = sx.Input("p", sx.int32, 1), sx.Func("f")
    f[x] = p[x] + p[x + 1]
    kernel = sx.compile(f, scheduled(f, lambda s: s["f"].vectorize("x", 8)), strict_native=True)
    a = np.arange(1, 18, dtype=np.int32)
    with pytest.raises(ArgumentError, match="overlap") as refused:
        kernel(a, out=a[1:])
    assert 'overlap="copy"' in str(refused.value)
    assert a.tolist() == list(range(1, 18))
    assert kernel(a, out=a[1:], overlap="copy").tolist() == [2 * i + 3 for i in range(16)]


def test_46_reversed_and_subsampled_numpy_views_as_input_and_as_output() -> None:
    p, f = sx.Input("p", sx.int32, 2), sx.Func("f")
    f[y, x] = p[y, x] * 2 + 1
    a = np.arange(30, dtype=np.int32).reshape(5, 6)
    expected = np.zeros((5, 6), np.int32)
    expected[::-1, 1::2] = a[::-1, ::-2] * 2 + 1
    for schedule in (None, scheduled(f, lambda s: s["f"].vectorize("x", 8).parallel("y"))):
        back = np.zeros((5, 6), np.int32)
        sx.compile(f, schedule, strict_native=True)(a[::-1, ::-2], out=back[::-1, 1::2])
        equal(back, expected)


def test_49_empty_outputs_empty_inputs_empty_reductions() -> None:
    p, f = sx.Input("p", sx.int32, 2), sx.Func("f")
    f[y, x] = p[y, x] + 1
    for schedule in (None, scheduled(f, lambda s: s["f"].vectorize("x", 8).parallel("y"))):
        kernel = sx.compile(f, schedule, strict_native=True)
        for shape in ((0, 5), (5, 0), (0, 0)):
            out = np.zeros(shape, np.int32)
            assert kernel(np.zeros(shape, np.int32), out=out) is out
            equal(kernel(np.zeros(shape, np.int32)), out)
    q, s = sx.Input("q", sx.int32, 1), sx.Func("s")
    r = sx.RDom("r", x=q.shape[0])
    s[()] = sx.int32(5)
    s[()] += q[r.x]
    equal(run(s, q=np.zeros(0, np.int32)), np.int32(5))


def test_50_scalar_valued_funcs_in_and_out() -> None:
    k, a, f = sx.Input("k", sx.float32, 0), sx.Input("a", sx.float32, 1), sx.Func("f")
    r = sx.RDom("r", x=10)
    f[()] = k[()]
    f[()] += a[r.x]
    equal(run(f, k=np.array(2.5, np.float32), a=np.arange(10, dtype=np.float32)), np.float32(47.5))


def test_51_the_same_values_in_c_order_fortran_order_and_as_a_transposed_view() -> None:
    b, f = sx.Input("b", sx.int32, 2), sx.Func("f")
    f[y, x] = b[y, x] * 10 + sx.cast(x + 100 * y, sx.int32)
    a = np.arange(6, dtype=np.int32).reshape(2, 3)
    expected = np.array([[int(a[i, j]) * 10 + j + 100 * i for j in range(3)] for i in range(2)], np.int32)
    for given in (a, np.asfortranarray(a), np.ascontiguousarray(a.T).T):
        equal(run(f, b=given), expected)


def test_53_24_stage_chain_in_which_each_stage_reads_its_producer_twice() -> None:
    f = sx.Func("f0")
    f[x] = x
    for i in range(24):
        g = sx.Func(f"f{i + 1}")
        g[x] = f[x] + f[x + 1]
        f = g

    def all_inlined(s: sx.Schedule) -> None:
        for i in range(24):
            s[f"f{i}"].inline()

    for schedule in (None, all_inlined):
        start = time.process_time()
        found = compiled(f, (4,), schedule)
        assert time.process_time() - start < 5
        equal(found, np.array([2**24 * v + 24 * 2**23 for v in range(4)]))


def test_53_copies_that_cannot_be_shared_are_refused_by_name() -> None:
    """Stage i is read at 2**i different places, so inlining all of them would make millions of copies."""
    f = sx.Func("f0")
    f[x] = x
    for i in range(24):
        g = sx.Func(f"f{i + 1}")
        g[x] = f[2 * x] + f[3 * x + 1 + i]
        f = g
    schedule = sx.Schedule(f)
    for i in range(24):
        schedule[f"f{i}"].inline()
    with pytest.raises(ScheduleError, match=r"inlining `f\d+` and the Funcs around it makes more than 20,000 copies"):
        sx.compile(f, schedule)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_54_one_expression_built_by_5000_python_loop_iterations(dtype: Any) -> None:
    e = sx.cast(x, dtype)
    for i in range(5000):
        e = (e * 3 + (i % 7)) ^ (i & 1)
    f = sx.Func("f")
    f[x] = e
    start = time.process_time()
    found = compiled(f, (5,), None)
    assert time.process_time() - start < 30
    v = np.arange(5, dtype=np.uint32)
    for i in range(5000):
        v = (v * np.uint32(3) + np.uint32(i % 7)) ^ np.uint32(i & 1)
    equal(found, v.view(dtype))


def test_57_compute_at_with_a_guarded_vector_loop_inside_a_guarded_split_of_256() -> None:
    p, f, out = sx.Input("p", sx.uint8, 1), sx.Func("f"), sx.Func("out")
    f[x] = p[x] + 1
    out[x] = f[x] + f[x]
    a = (np.arange(1003) % 251).astype(np.uint8)

    def nested(s: sx.Schedule) -> None:
        s[out].split(x, "xo", "xi", 256, tail="guard")
        s[f].compute_at(out, "xo").vectorize(x, 8)

    start = time.process_time()
    found = compiled(out, None, nested, p=a)
    assert time.process_time() - start < 5
    equal(found, ((2 * (np.arange(1003) % 251 + 1)) % 256).astype(np.uint8))


def test_58_embedding_lookup_with_negative_index_wrap() -> None:
    idx, table = sx.Input("idx", sx.int64, 1), sx.Input("table", sx.float32, (5 * 64,))
    row, out = sx.Func("row"), sx.Func("out")
    i = idx[x // 64]
    row[x] = sx.cast(sx.select(i < 0, i + 5, i), sx.int32)
    out[x] = table[x % 64 + 64 * sx.clip(row[x], 0, 4)]
    t = np.arange(5 * 64, dtype=np.float32)
    given = {"idx": np.array([0, 4, -1, 2]), "table": t}
    expected = t.reshape(5, 64)[[0, 4, 4, 2]].ravel()
    equal(run(out, (256,), **given), expected)
    chosen = sx.auto_schedule(out)
    equal(sx.compile(out, chosen, strict_native=True)(**given, shape=(256,)), expected)


def test_60_auto_schedule_with_nothing_but_the_arrays_and_with_symbolic_sizes() -> None:
    p = sx.Input("p", sx.float32, 2)
    edge = sx.pad(p, "edge")
    b1, b2 = sx.Func("b1"), sx.Func("b2")
    b1[y, x] = edge[y, x - 1] + edge[y, x] + edge[y, x + 1]
    b2[y, x] = b1[y - 1, x] + b1[y, x] + b1[y + 1, x]
    a = (np.arange(48 * 40).reshape(40, 48) % 17).astype(np.float32)
    equal(run(b2, a.shape, p=a), nine(a))
    chosen = sx.auto_schedule(b2)
    equal(sx.compile(b2, chosen, strict_native=True)(a, shape=a.shape), nine(a))
    equal(sx.compile(b2, sx.Schedule.parse(str(chosen), b2))(a, shape=a.shape), nine(a))


def test_62_equal_names_dotted_names_unicode_names_keywords() -> None:
    inp, a = sx.Input("samples", sx.int32, 1), sx.Var("x")
    f1, f2, g = sx.Func("f"), sx.Func("f"), sx.Func("for")
    f1[x] = inp[x] + 1
    f2[a] = f1[a] * 10
    g[x] = f2[x] + f1[x]

    def rooted(s: sx.Schedule) -> None:
        s[f1].compute_root()
        s[f2].compute_root()

    equal(run(g, None, rooted, samples=np.arange(6, dtype=np.int32)), np.arange(11, 77, 11, dtype=np.int32))
    for name in ("head.extent.0", "\u03b1", "a b", "$x", "f" * 300, 'q"\\', "%0", "\n", "z", "malloc", "main"):
        w, z = sx.Func(name), sx.Func("z")
        w[x] = x + 1
        z[x] = w[x] * 2
        equal(run(z, (3,), lambda s, w=w: s[w].compute_root()), np.array([2, 4, 6]))
    same, w, z = sx.Input("same", sx.int32, 1), sx.Func("same"), sx.Func("z")
    w[x] = same[x] + 1
    z[x] = w[x] + same[x]
    found = run(z, None, lambda s: s[w].compute_root(), same=np.arange(3, dtype=np.int32))
    equal(found, np.array([1, 3, 5], np.int32))


def test_64_and_or_not_if_chained_comparison_on_symbolic_expressions() -> None:
    for wrong in (
        lambda: (x == 0) and (y == 0),
        lambda: (x == 0) or (y == 0),
        lambda: not (x == 0),  # noqa: SIM201
        lambda: 0 < x < 5,
        lambda: 1 if x > 3 else 0,
        lambda: x in [1, 2],
    ):
        with pytest.raises(SymbolicValueError) as refused:
            wrong()
        assert "select" in str(refused.value)
        assert "&" in str(refused.value)
    with pytest.raises((DefinitionError, TypeError)):
        list(range(3))[x]


def test_70_one_compiled_callable_8_python_threads_different_arguments() -> None:
    p, k, f = sx.Input("p", sx.int32, 1), sx.Param("k", sx.int32), sx.Func("f")
    f[x] = p[x] * k + 1
    kernel = sx.compile(f, scheduled(f, lambda s: s["f"].parallel("x", 64)), strict_native=True)
    errors: list[object] = []

    def work(t: int) -> None:
        for i in range(50):
            a = np.arange(1000 + t, dtype=np.int32)
            o = np.zeros_like(a)
            kernel(a, t + i, out=o, threads=1 + t % 3)
            if not (o == a * (t + i) + 1).all():
                errors.append((t, i))

    workers = [threading.Thread(target=work, args=(t,)) for t in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not any(worker.is_alive() for worker in workers)
    assert errors == []
