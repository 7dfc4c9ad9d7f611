"""What Funcs become."""

from __future__ import annotations

import pytest

import stax as sx
from stax.algorithm.show import show
from stax.algorithm.verify import verify
from stax.expr import show as expr_show
from stax.expr.number import same
from stax.expr.walk import reads
from stax.lang.freeze import freeze

Y, X, I, J, T = sx.vars("y x i j t")  # noqa: E741


def text(*args: object, **more: object) -> str:
    pipeline = freeze(*args, **more)  # type: ignore[arg-type]
    verify(pipeline)
    return show(pipeline)


def test_producers_stand_first_and_dead_funcs_nowhere() -> None:
    a = sx.Input("a", sx.uint16, 2)
    rows, columns, dead = sx.Func("rows"), sx.Func("columns"), sx.Func("dead")
    rows[Y, X] = (a[Y, X] + a[Y, X + 1]) // 2
    dead[Y, X] = rows[Y, X]
    columns[Y, X] = (rows[Y, X] + rows[Y + 1, X]) // 2
    assert text(columns) == (
        "input a: uint16[d0, d1]\n\n"
        "rows[y, x]: uint16\n    rows[y, x] = (a[y, x] + a[y, x + 1]) // 2u16\n\n"
        "columns[y, x]: uint16\n    columns[y, x] = (rows[y, x] + rows[y + 1, x]) // 2u16\n\n"
        "output columns(a)\n"
    )


def test_a_definition_of_python_numbers_takes_the_type_of_the_first_update() -> None:
    a, b = sx.Input("a", sx.float32, 2), sx.Input("b", sx.float32, 2)
    k = sx.RDom("k", k=a.shape[1])
    prod = sx.Func("prod")
    prod[I, J] = 0
    prod[I, J] += a[I, k] * b[k, J]
    assert prod.dtype == sx.float32
    assert "prod[i, j] = fma(a[i, k.k], b[k.k, j], prod[i, j]) for k.k in 0 .. a.shape[1]" in text(prod)


def test_a_func_of_python_numbers_is_int64_for_another_that_reads_it() -> None:
    """Also where the read was written before anyone could know who would use it."""
    count, total = sx.Func("count"), sx.Func("total")
    count[X] = 0
    product = count[X] * sx.float32(2)
    count[X] += 1
    total[X] = product
    assert (count.dtype, total.dtype) == (sx.int64, sx.float64)
    assert "total[x] = float64(count[x]) * float64(2.0f32)" in text(total)
    sum_ = sx.Func("sum")
    sum_[X] = 0
    sum_[X] += sx.float32(2)
    assert sum_.dtype == sx.float32


def test_a_comparison_of_a_func_takes_the_type_that_a_later_line_gives_it() -> None:
    """Compared as int64, 0.5 > 0 would not hold."""
    a, f = sx.Input("a", sx.float32, 1), sx.Func("f")
    f[X] = 0
    f[X] = sx.select(f[X] > 0, 1, 2)
    f[X] = sx.select(f[X] > 0, f[X], a[X])
    assert "select(0.0f32 < f[x], 1.0f32, 2.0f32)" in text(f)
    assert "select(0.0f32 < f[x], f[x], a[x])" in text(f)


def test_sizes_are_index_numbers_also_where_they_are_known() -> None:
    a, f = sx.Input("a", sx.uint8, (8, None)), sx.Func("f", shape=(4, 5))
    f[Y, X] = a[Y, X]
    for n in (*a.shape, *f.shape):
        assert (a[Y, X] * n).dtype == sx.int64
        assert (sx.float32(2) * n).dtype == sx.float32


def test_start_values_are_selects_and_the_first_match_wins() -> None:
    h = sx.Func("h", dtype=sx.int32, shape=(8, 8))
    n = sx.Param("n", sx.int64)
    h[0, X] = 1
    h[Y, n - 1] = Y - X if False else 2
    h[I, J] = h[I - 1, J] + h[I, J - 1]
    assert "h[i, j] = select(i == 0, 1i32, select(j == n - 1, 2i32, h[i - 1, j] + h[i, j - 1]))" in text(h)


def test_start_values_name_their_vars_by_position() -> None:
    a = sx.Input("a", sx.int32, 2)
    f = sx.Func("f", shape=(4, None, None))
    f[0, X, Y] = a[X, Y]
    f[T, Y, X] = f[T - 1, Y, X] + 1
    assert "select(t == 0, a[y, x], f[t - 1, y, x] + 1i32)" in text(f)


def test_updates_name_their_vars_by_position() -> None:
    a = sx.Input("a", sx.int32, 2)
    f = sx.Func("f")
    f[Y, X] = a[Y, X]
    f[X, Y] = f[X, Y] * a[Y, X]
    f[3, J] = J
    assert "f[y, x] = f[y, x] * a[x, y]" in text(f)
    assert "f[3, x] = int32(x)" in text(f)


def test_names_are_made_unique_producers_first() -> None:
    a, p = sx.Input("f", sx.int32, 1), sx.Param("f", sx.int32)
    f, g = sx.Func("f"), sx.Func("f")
    f[X] = a[X] + p
    g[X] = f[X]
    pipeline = freeze(g)
    assert (pipeline.inputs[0].name, pipeline.scalars[0].name) == ("f", "f.2")
    assert [h.name for h in pipeline.funcs] == ["f.3", "f.4"]
    assert pipeline.outputs == ("f.4",)


def test_dots_stand_for_leading_dims_on_both_sides() -> None:
    a = sx.Input("a", sx.float32, 3, dims="c v u")
    down, up = sx.Func("down"), sx.Func("up")
    down[..., Y, X] = a[..., 2 * Y, X] + a[..., 2 * Y + 1, X]
    up[..., X] = down[..., X // 2]
    assert down.dims == ("c", "y", "x")
    assert up.dims == ("c", "y", "x")
    down2 = sx.Func("down2")
    down2[..., Y, X] = a[0, Y, X]
    assert down2.dims == ("y", "x")
    clash = sx.Func("clash")
    c = sx.Var("c")
    clash[..., c, X] = a[..., c, X]
    assert clash.dims == ("c.2", "c", "x")
    total = sx.Func("total")
    r = sx.RDom("r", k=a.shape[2])
    total[..., Y] = sx.sum(a[..., Y, r], over=r)
    total[..., 0] += 1
    assert "total[c, y] = total[c, y] + a[c, y, r.k] for r.k in 0 .. a.shape[2]" in text(total)
    assert "total[c, 0] = total[c, 0] + 1.0f32" in text(total)


def test_a_reduction_that_is_a_whole_definition_is_its_func() -> None:
    a = sx.Input("a", sx.float32, 2)
    r = sx.RDom("r", k=a.shape[1])
    f = sx.Func("f")
    f[I] = sx.sum(a[I, r], over=r)
    assert text(f) == (
        "input a: float32[d0, d1]\n\nf[i]: float32\n    f[i] = 0.0f32\n"
        "    f[i] = f[i] + a[i, r.k] for r.k in 0 .. a.shape[1]\n\noutput f(a)\n"
    )
    g = sx.Func("g", dtype=sx.float64)
    g[I] = sx.sum(a[I, r], over=r)
    assert [h.name for h in freeze(g).funcs] == ["g.sum", "g"]


def test_reductions_are_named_after_their_reader_and_equal_ones_are_one() -> None:
    a = sx.Input("a", sx.float32, 2)
    r, q = (sx.RDom("r", k=a.shape[1]) for _ in range(2))
    f = sx.Func("f")
    f[J, I] = sx.sum(a[I, r], over=r) + sx.sum(a[I, q], over=q) * sx.sum(a[J, r] * a[I, r], over=r)
    funcs = freeze(f).funcs
    assert [(h.name, h.dims) for h in funcs] == [("f.sum", ("i",)), ("f.sum.2", ("j", "i")), ("f", ("j", "i"))]
    g = sx.Func("g")
    g[I] = sx.max(a[I, r], over=r, initial=0, name="peak") / 2
    assert [h.name for h in freeze(g).funcs] == ["peak", "g"]


def test_one_reduction_in_two_readers_is_a_func_of_each() -> None:
    a = sx.Input("a", sx.float32, 2)
    r = sx.RDom("r", k=a.shape[1])
    total = sx.sum(a[X, r], over=r)
    f, g = sx.Func("f"), sx.Func("g")
    f[X] = total / 2
    g[X] = f[X] + total
    assert [h.name for h in freeze(g).funcs] == ["f.sum", "f", "g.sum", "g"]


def test_a_reduction_inside_an_update_has_the_updates_variables() -> None:
    a = sx.Input("a", sx.float32, 2)
    r, k = sx.RDom("r", y=a.shape[0]), sx.RDom("k", x=a.shape[1])
    f = sx.Func("f")
    f[X] = 0
    f[r] = sx.sum(a[r, k], over=k) + 1
    found = freeze(f)
    verify(found)
    assert [(h.name, h.dims) for h in found.funcs] == [("f.sum", ("r.y",)), ("f", ("x",))]


def test_arguments_follow_the_order_of_creation_unless_told() -> None:
    b = sx.Input("b", sx.int32, 1)
    p = sx.Param("p", sx.int32)
    a = sx.Input("a", sx.int32, (b.shape[0],))
    f = sx.Func("f")
    f[X] = a[X] + p
    assert freeze(f).arguments == ("b", "p", "a")
    assert freeze(f, inputs=[a, "p", b]).arguments == ("a", "p", "b")
    assert freeze(f, inputs=[a, "p", b, sx.Input("unused", sx.int8, 1)]).arguments[-1] == "unused"


def test_symbolic_shapes_bring_their_inputs() -> None:
    a, n = sx.Input("a", sx.int32, 1), sx.Param("n", sx.int32)
    f, g = sx.Func("f"), sx.Func("g")
    f[Y, X] = Y + X
    g[X] = X
    assert text(f, shape=(n, a.shape[0] - 1)).endswith("output f(a, n)\nf.shape = (int64(n), a.shape[0] - 1)\n")
    assert text((f, g), shape=(None, (4,))).endswith("output f, g()\ng.shape = (4)\n")


def test_a_frozen_program_does_not_change_with_its_funcs() -> None:
    f = sx.Func("f")
    f[X] = X
    pipeline = freeze(f)
    f[X] += 1
    assert not pipeline.funcs[0].updates
    assert len(freeze(f).funcs[0].updates) == 1


def test_many_stages_and_much_sharing_are_linear() -> None:
    f = sx.Func("f0")
    f[X] = X
    for i in range(600):
        g = sx.Func(f"f{i + 1}")
        g[X] = f[X] + f[X + 1]
        f = g
    assert len(freeze(f).funcs) == 601


def test_funcs_of_a_cycle_are_a_group_in_the_order_of_a_step() -> None:
    a = sx.Input("a", sx.float64, 2)
    n = a.shape[0]
    u, low = sx.Func("U", dtype=sx.float64, shape=(n, n, n)), sx.Func("L", dtype=sx.float64, shape=(n, n))
    k = sx.Var("k")
    u[0, I, J] = a[I, J]
    low[k, I] = u[k, I, k] / u[k, k, k]
    u[k, I, J] = u[k - 1, I, J] - low[k - 1, I] * u[k - 1, k - 1, J]
    out = sx.Func("out")
    out[I, J] = sx.select(I > J, low[J, I], u[I, I, J])
    found = freeze(out)
    verify(found)
    assert found.groups == (("U", "L"),)
    assert [f.name for f in found.funcs] == ["U", "L", "out"]


def test_two_updates_where_the_second_reads_the_first_warn() -> None:
    f, a = sx.Func("f"), sx.Input("a", sx.float64, 2)
    r = sx.RDom("r", k=8, i=8)
    f[I, J] = a[I, J]
    f[r.i, r.k] /= f[r.k, r.k]
    with pytest.warns(sx.errors.StaxWarning, match="two updates of `f`"):
        f[r.i, 0] -= f[r.i, r.k]


def test_the_index_of_an_update_is_rounded_as_its_self_read_is() -> None:
    """Contracted on one side only, the two could name different cells."""
    a = sx.Input("a", sx.float32, 1)
    r = sx.RDom("r", k=a.shape[0])
    f = sx.Func("f")
    f[X] = 0.0
    f[sx.cast(sx.clip(a[r], 0, 1) * 10 + 0.5, sx.int32)] += a[r]
    (update,) = freeze(f).funcs[0].updates
    (own,) = [n for n in reads(update.values) if n.source == "f"]
    assert same(own.index[0], update.index[0])
    assert "fma" in expr_show.show(own.index[0])


def test_a_value_is_shown_as_it_was_written() -> None:
    a, p = sx.Input("a", sx.int32, 1), sx.Param("p", sx.int32)
    r = sx.RDom("r", k=3)
    assert repr(a[2 * X - a.shape[0]] + 1) == "<int32 a[2 * x - a.shape[0]] + 1>"
    assert repr(sx.sum(a[r], over=r) * p + X / 3) == "<float64 float64(sum[] * int64(p)) + x / 3>"


def test_a_directive_on_a_func_says_where_directives_go() -> None:
    with pytest.raises(AttributeError, match="a Schedule says how it is run"):
        sx.Func("f").vectorize  # noqa: B018
