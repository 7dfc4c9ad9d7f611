"""Pipelines written in nodes, against plain loops and NumPy."""

import math

import numpy as np
import pytest

from stax import dtypes
from stax.algorithm.interpret import interpret
from stax.algorithm.nodes import Func, Input, Pipeline, Range, Scalar, Table, Update
from stax.dtypes import DType
from stax.errors import InternalError
from stax.expr import build
from stax.expr.build import add, const, less, mul, sub
from stax.expr.nodes import Binary, BinaryOp, Call, Cast, Expr, Fn, Param, Read, Select, Size, Var

I64, F32 = dtypes.int64, dtypes.float32


def var(name: str) -> Var:
    return Var(I64, name)


def read(source: str, *index: Expr | int, dtype: DType = I64, part: int = 0) -> Read:
    return Read(dtype, source, tuple(const(i, I64) if isinstance(i, int) else i for i in index), part)


def func(name: str, dims: str, *values: Expr, updates: tuple[Update, ...] = (), down: str = "") -> Func:
    names = tuple(dims.split())
    kept = tuple(v.dtype for v in values)
    return Func(name, names, kept, values, updates, (None,) * len(names), frozenset(down.split()))


def source(name: str, rank: int, dtype: DType = I64) -> Input:
    return Input(name, dtype, tuple(f"d{k}" for k in range(rank)), (None,) * rank)


def pipeline(
    *funcs: Func,
    inputs: tuple[Input, ...] = (),
    scalars: tuple[Scalar, ...] = (),
    tables: tuple[Table, ...] = (),
    groups: tuple[tuple[str, ...], ...] = (),
) -> Pipeline:
    return Pipeline(inputs, scalars, tables, funcs, (funcs[-1].name,), (), groups)


def span(extent: Expr | int, name: str, lo: Expr | int = 0) -> Range:
    return Range(name, *(const(b, I64) if isinstance(b, int) else b for b in (lo, extent)))


def equals(a: Expr, b: int) -> Expr:
    return Binary(dtypes.bool_, BinaryOp.EQ, a, const(b, I64))


X, Y, T = var("x"), var("y"), var("t")
A = np.random.default_rng(0).integers(-9, 9, (5, 7))
V = np.random.default_rng(1).integers(0, 6, 12)


def test_a_stencil_of_a_pointwise_func() -> None:
    g = func("g", "y x", mul(read("a", Y, X), 2))
    f = func("f", "y x", add(read("g", Y, X), read("g", Y, add(X, 1))))
    found = interpret(
        pipeline(g, f, inputs=(source("a", 2),)), {"a": A}, {}, {"g": ((0, 4), (0, 6)), "f": ((0, 4), (0, 5))}
    )
    assert np.array_equal(found["f"][0], 2 * A[:, :-1] + 2 * A[:, 1:])


def test_a_box_may_start_anywhere_and_be_empty() -> None:
    f = func("f", "x", mul(X, X))
    assert interpret(pipeline(f), {}, {}, {"f": ((-3, 2),)})["f"][0].tolist() == [9, 4, 1, 0, 1, 4]
    assert interpret(pipeline(f), {}, {}, {"f": ((0, -1),)})["f"][0].shape == (0,)


def test_scalars_sizes_tables_and_rank_zero() -> None:
    table = Table("lut", dtypes.uint8, np.array([3, 1, 4], np.uint8))
    h = func("h", "", add(Size(I64, "a", 1), Cast(I64, Param(dtypes.int8, "p"))))
    f = func("f", "x", add(read("h"), Cast(I64, read("lut", X, dtype=dtypes.uint8))))
    p = pipeline(h, f, inputs=(source("a", 2),), scalars=(Scalar("p", dtypes.int8),), tables=(table,))
    found = interpret(p, {"a": A}, {"p": -2}, {"h": (), "f": ((0, 2),)})
    assert found["f"][0].tolist() == [8, 6, 9]


@pytest.mark.parametrize("extent", [3, 4])
def test_a_read_outside_is_an_error_that_names_it(extent: int) -> None:
    f = func("f", "x", read("a", 0, add(X, 3)))
    p = pipeline(f, inputs=(source("a", 2),))
    if extent == 4:
        assert interpret(p, {"a": A}, {}, {"f": ((0, 3),)})["f"][0].tolist() == A[0, 3:].tolist()
    else:
        with pytest.raises(InternalError, match=r"`f` reads `a` at \(0, 7\), outside \[\(0, 4\), \(0, 6\)\]"):
            interpret(p, {"a": A}, {}, {"f": ((0, 4),)})


def test_an_affine_condition_removes_reads_and_data_removes_none() -> None:
    """Both arms are as if computed, so what data guards must be inside as well."""
    a = read("a", X)
    inside = build.both(build.less_equal(const(0, I64), X), less(X, Size(I64, "a", 0)))
    zero = const(0, I64)
    f = func("f", "x", build.select(inside, a, zero))
    p = pipeline(f, inputs=(source("a", 1),))
    assert interpret(p, {"a": V}, {}, {"f": ((-2, 13),)})["f"][0].tolist() == [0, 0, *V.tolist(), 0, 0]
    both = func("f", "x", build.select(build.both(inside, less(zero, read("b", X))), a, zero))
    q = pipeline(both, inputs=(source("a", 1), source("b", 1)))
    wide = np.ones(20, np.int64)
    assert interpret(q, {"a": V, "b": wide}, {}, {"f": ((0, 13),)})["f"][0].tolist() == [*V.tolist(), 0, 0]
    data = func("f", "x", build.select(less(zero, read("b", X)), a, zero))
    with pytest.raises(InternalError, match="reads `a`"):
        interpret(pipeline(data, inputs=q.inputs), {"a": V, "b": 0 * wide}, {}, {"f": ((0, 13),)})


def test_a_read_shared_by_two_arms_is_needed_where_either_is() -> None:
    a = read("a", X)
    low, high = less(X, const(3, I64)), less(const(8, I64), X)
    shared = add(build.select(low, a, const(0, I64)), build.select(high, a, const(0, I64)))
    p = pipeline(func("f", "x", shared), inputs=(source("a", 1),))
    assert interpret(p, {"a": V}, {}, {"f": ((0, 11),)})["f"][0].tolist() == [*V[:3], 0, 0, 0, 0, 0, 0, *V[9:]]
    with pytest.raises(InternalError, match=r"at \(12,\)"):
        interpret(p, {"a": V}, {}, {"f": ((0, 12),)})


def test_the_other_arm_of_a_condition_has_its_opposite() -> None:
    f = func("f", "x", build.select(less(X, const(2, I64)), const(-1, I64), read("a", sub(X, 2))))
    assert interpret(pipeline(f, inputs=(source("a", 1),)), {"a": V}, {}, {"f": ((0, 5),)})["f"][0].tolist() == [
        -1, -1, *V[:4],
    ]  # fmt: skip


def test_poison_shows_when_a_condition_is_not_the_selects_own() -> None:
    """The arm that is not needed is NaN, not a number that might be right by chance."""
    a = read("a", X, dtype=F32)
    chosen = build.select(less(X, const(2, I64)), a, const(5.0, F32))
    p = pipeline(func("f", "x", Binary(F32, BinaryOp.MUL, chosen, const(0.0, F32))), inputs=(source("a", 1, F32),))
    assert interpret(p, {"a": np.ones(2, np.float32)}, {}, {"f": ((0, 3),)})["f"][0].tolist() == [0, 0, 0, 0]


def test_a_start_value_and_a_recurrence_upwards_and_downwards() -> None:
    up = build.select(equals(X, 0), read("a", X), add(read("f", sub(X, 1)), read("a", X)))
    p = pipeline(func("f", "x", up), inputs=(source("a", 1),))
    assert np.array_equal(interpret(p, {"a": V}, {}, {"f": ((0, 11),)})["f"][0], np.cumsum(V))
    down = build.select(equals(X, 11), read("a", X), add(read("f", add(X, 1)), read("a", X)))
    p = pipeline(func("f", "x", down, down="x"), inputs=(source("a", 1),))
    assert np.array_equal(interpret(p, {"a": V}, {}, {"f": ((0, 11),)})["f"][0], np.cumsum(V[::-1])[::-1])


def test_a_recurrence_in_the_wrong_direction_is_an_error() -> None:
    down = build.select(equals(X, 11), const(0, I64), read("f", add(X, 1)))
    with pytest.raises(InternalError, match="before it is computed"):
        interpret(pipeline(func("f", "x", down)), {}, {}, {"f": ((0, 11),)})


def test_a_recurrence_in_two_dims_reads_rows_above_and_cells_to_the_left() -> None:
    """Edit distance by another name: three neighbours, one of them in the same row."""
    parts = [read("f", sub(Y, 1), X), read("f", Y, sub(X, 1)), read("f", sub(Y, 1), sub(X, 1))]
    inner = add(build.minimum(build.minimum(parts[0], parts[1]), parts[2]), read("a", Y, X))
    edge = Binary(dtypes.bool_, BinaryOp.OR, equals(X, 0), equals(Y, 0))
    p = pipeline(func("f", "y x", build.select(edge, read("a", Y, X), inner)), inputs=(source("a", 2),))
    wanted = A.copy()
    for y in range(1, 5):
        for x in range(1, 7):
            wanted[y, x] += min(wanted[y - 1, x], wanted[y, x - 1], wanted[y - 1, x - 1])
    assert np.array_equal(interpret(p, {"a": A}, {}, {"f": ((0, 4), (0, 6))})["f"][0], wanted)


def test_steps_of_time_read_anywhere_in_the_step_before() -> None:
    """Also at a position that data gives: the whole step before is there."""
    far = read("u", sub(T, 1), build.mod(read("a", X), 12))
    p = pipeline(func("u", "t x", build.select(equals(T, 0), X, far)), inputs=(source("a", 1),))
    found = interpret(p, {"a": V}, {}, {"u": ((0, 3), (0, 11))})["u"][0]
    rows = [np.arange(12)]
    for _ in range(3):
        rows.append(rows[-1][V % 12])
    assert np.array_equal(found, rows)


def test_a_sum_over_a_domain_is_in_order_and_in_its_own_precision() -> None:
    r = var("r")
    total = Binary(F32, BinaryOp.ADD, read("f", Y, dtype=F32), read("a", Y, r, dtype=F32))
    update = Update((Y,), (total,), (span(Size(I64, "a", 1), "r"),))
    f = func("f", "y", const(0.0, F32), updates=(update,))
    a = (np.random.default_rng(2).standard_normal((3, 500)) * 10.0 ** np.arange(3)[:, None]).astype(np.float32)
    wanted = np.zeros(3, np.float32)
    for k in range(500):
        wanted += a[:, k]
    found = interpret(pipeline(f, inputs=(source("a", 2, F32),)), {"a": a}, {}, {"f": ((0, 2),)})
    assert found["f"][0].tolist() == wanted.tolist()


def test_a_histogram_counts_duplicates_one_after_the_other() -> None:
    place = read("a", var("r"))
    update = Update((place,), (add(read("f", place), 1),), (span(12, "r"),))
    p = pipeline(func("f", "x", const(0, I64), updates=(update,)), inputs=(source("a", 1),))
    assert interpret(p, {"a": V}, {}, {"f": ((0, 5),)})["f"][0].tolist() == np.bincount(V, minlength=6).tolist()


def test_a_write_outside_the_box_is_an_error() -> None:
    update = Update((read("a", var("r")),), (const(1, I64),), (span(12, "r"),))
    p = pipeline(func("f", "x", const(0, I64), updates=(update,)), inputs=(source("a", 1),))
    assert interpret(p, {"a": V}, {}, {"f": ((0, 5),)})["f"][0].tolist() == [int(k in V) for k in range(6)]
    with pytest.raises(InternalError, match="`f` writes outside"):
        interpret(p, {"a": V}, {}, {"f": ((0, 2),)})


def test_the_last_of_equal_scatters_wins_and_the_last_variable_is_fastest() -> None:
    i, j = var("i"), var("j")
    update = Update((build.mod(add(i, j), 3),), (add(mul(i, 10), j),), (span(3, "i"), span(4, "j")))
    wanted = np.zeros(3, int)
    for a in range(3):
        for b in range(4):
            wanted[(a + b) % 3] = 10 * a + b
    p = pipeline(func("f", "x", const(0, I64), updates=(update,)))
    assert interpret(p, {}, {}, {"f": ((0, 2),)})["f"][0].tolist() == wanted.tolist()


def test_ragged_bounds_among_variables_and_among_dims() -> None:
    i, j = var("i"), var("j")
    # f[y] sums a[i, j] for i <= j < y: one bound is a dim, the other a variable.
    value = add(read("f", Y), read("a", i, j))
    update = Update((Y,), (value,), (span(5, "i"), span(Y, "j", i)))
    p = pipeline(func("f", "y", const(0, I64), updates=(update,)), inputs=(source("a", 2),))
    wanted = [sum(int(A[i, j]) for i in range(5) for j in range(i, y)) for y in range(8)]
    assert interpret(p, {"a": A}, {}, {"f": ((0, 7),)})["f"][0].tolist() == wanted
    with pytest.raises(InternalError, match="reads `a`"):
        interpret(p, {"a": A}, {}, {"f": ((0, 8),)})


def test_a_predicate_may_bound_reads_and_may_read_its_own_func() -> None:
    r = var("r")
    inside = less(add(r, X), Size(I64, "a", 0))
    window = Update((X,), (add(read("f", X), read("a", add(r, X))),), (span(20, "r"),), inside)
    p = pipeline(func("f", "x", const(0, I64), updates=(window,)), inputs=(source("a", 1),))
    assert interpret(p, {"a": V}, {}, {"f": ((0, 11),)})["f"][0].tolist() == [int(V[k:].sum()) for k in range(12)]
    below = less(read("g", X), const(10, I64))
    grow = Update((X,), (add(read("g", X), read("a", X)),), (span(50, "r"),), below)
    p = pipeline(func("g", "x", const(0, I64), updates=(grow,)), inputs=(source("a", 1),))
    found = interpret(p, {"a": V}, {}, {"g": ((0, 11),)})["g"][0]
    assert found.tolist() == [0 if v == 0 else -(-10 // int(v)) * int(v) for v in V]


def test_all_parts_are_evaluated_before_any_is_written() -> None:
    """Argmax as a tuple: the second part looks at the first one's old value."""
    r = var("r")
    better = less(read("m", Y), read("a", Y, r))
    update = Update(
        (Y,),
        (build.select(better, read("a", Y, r), read("m", Y)), build.select(better, r, read("m", Y, part=1))),
        (span(7, "r"),),
    )
    m = func("m", "y", const(-100, I64), const(-1, I64), updates=(update,))
    found = interpret(pipeline(m, inputs=(source("a", 2),)), {"a": A}, {}, {"m": ((0, 4),)})["m"]
    assert found[0].tolist() == A.max(1).tolist()
    assert found[1].tolist() == A.argmax(1).tolist()


def test_an_update_without_domain_changes_one_row_of_the_box() -> None:
    update = Update((const(1, I64), X), (add(read("f", 1, X), 100),))
    f = func("f", "y x", X, updates=(update,))
    assert interpret(pipeline(f), {}, {}, {"f": ((0, 2), (5, 6))})["f"][0].tolist() == [[5, 6], [105, 106], [5, 6]]


def test_updates_run_in_place_point_by_point() -> None:
    """Each point sees what the one before it wrote: a prefix sum by an update."""
    r = var("r")
    update = Update((r,), (add(read("f", r), read("f", sub(r, 1))),), (span(12, "r", 1),))
    p = pipeline(func("f", "x", read("a", X), updates=(update,)), inputs=(source("a", 1),))
    assert np.array_equal(interpret(p, {"a": V}, {}, {"f": ((0, 11),)})["f"][0], np.cumsum(V))


def test_a_group_steps_its_members_together_with_their_sums() -> None:
    """Power iteration in integers: each step's total needs the whole step before, each step its total."""
    r = var("r")
    total = Update((T,), (add(read("s", T), read("u", sub(T, 1), r)),), (span(12, "r"),), less(const(0, I64), T))
    s = func("s", "t", const(0, I64), updates=(total,))
    step = build.mod(add(mul(read("u", sub(T, 1), X), 3), read("s", T)), 101)
    u = func("u", "t x", build.select(equals(T, 0), read("a", X), step))
    p = pipeline(s, u, inputs=(source("a", 1),), groups=(("s", "u"),))
    found = interpret(p, {"a": V}, {}, {"s": ((0, 4),), "u": ((0, 4), (0, 11))})["u"][0]
    rows = [V]
    for _ in range(4):
        rows.append((rows[-1] * 3 + rows[-1].sum()) % 101)
    assert np.array_equal(found, rows)


def test_a_group_member_may_read_the_same_step_of_one_before_it_only() -> None:
    zero = const(0, I64)
    a = func("p", "t", build.select(equals(T, 0), zero, add(read("q", sub(T, 1)), 1)))
    b = func("q", "t", add(read("p", T), 10))
    box = {"p": ((0, 3),), "q": ((0, 3),)}
    assert interpret(pipeline(a, b, groups=(("p", "q"),)), {}, {}, box)["q"][0].tolist() == [10, 21, 32, 43]
    with pytest.raises(InternalError, match="before it is computed"):
        interpret(pipeline(a, b, groups=(("q", "p"),)), {}, {}, box)


def test_float_functions_are_the_intrinsics_and_keep_their_type() -> None:
    a = np.random.default_rng(3).standard_normal(50).astype(np.float32)
    f = func("f", "x", Call(F32, Fn.EXP, (read("a", X, dtype=F32),)))
    found = interpret(pipeline(f, inputs=(source("a", 1, F32),)), {"a": a}, {}, {"f": ((0, 49),)})["f"][0]
    assert found.dtype == np.float32
    assert all(math.isclose(x, math.exp(y), rel_tol=2e-7) for x, y in zip(found.tolist(), a.tolist(), strict=True))


def test_a_deep_shared_definition_is_no_trouble() -> None:
    node: Expr = read("a", X)
    for _ in range(5000):
        node = add(node, node)
    chosen = Select(I64, less(X, const(3, I64)), node, node)
    p = pipeline(func("f", "x", chosen), inputs=(source("a", 1),))
    assert interpret(p, {"a": V}, {}, {"f": ((0, 11),)})["f"][0].tolist() == [0] * 12


def test_many_points_are_cut_into_pieces() -> None:
    r = var("r")
    update = Update((build.mod(r, 7),), (add(read("f", build.mod(r, 7)), r),), (span(1 << 18, "r", (1 << 18) - 9000),))
    p = pipeline(func("f", "x", const(0, I64), updates=(update,)))
    numbers = np.arange((1 << 18) - 9000, 1 << 18)
    wanted = [int(numbers[numbers % 7 == k].sum()) for k in range(7)]
    assert interpret(p, {}, {}, {"f": ((0, 6),)})["f"][0].tolist() == wanted


def test_a_predicate_without_variables_holds_for_a_func_of_rank_zero() -> None:
    for holds, total in [(True, 10), (False, 0)]:
        step = Update((), (add(read("f"), var("r.k")),), (span(5, "r.k"),), const(holds, dtypes.bool_))
        f = func("f", "", const(0, I64), updates=(step,))
        assert interpret(pipeline(f), {}, {}, {"f": ()})["f"][0] == total
