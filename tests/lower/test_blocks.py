"""Lowering for machines of masked blocks: what is kept in values, shared, rolled and multiplied as matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stax as sx
from stax.compiler import freeze_for
from stax.errors import UnsupportedError
from stax.expr.nodes import Dot
from stax.gpu import MOST_IN_BLOCKS
from stax.legality.check import check
from stax.legality.known import Known
from stax.loops import walk
from stax.loops.interpret import interpret as run
from stax.loops.nodes import Allocate, Program
from stax.loops.show import show
from stax.lower.blocks import lower_to_blocks
from stax.testing import interpret
from tests.backends.triton import public

m, n = sx.vars("m n")


def blocks(f: Any, text: str = "") -> Program:
    """Return the loops of `f`, verified after each pass."""
    lines = sx.Schedule.parse(f"# stax schedule 1\n{text}", f) if text else sx.auto_schedule(f, target="cuda")
    pipeline = freeze_for(f, lines, None, None, None)
    return lower_to_blocks(check(pipeline, lines.lines, None, Known(most_lanes=MOST_IN_BLOCKS)), debug=True)


def scratch(program: Program) -> list[str]:
    """Return the names of what is kept in memory."""
    return [s.buffer.name for s in walk.statements(program.body) if isinstance(s, Allocate)]


def result(program: Program, f: sx.Func, given: dict[str, Any], shape: tuple[int, ...]) -> Any:
    """Return the output of `f` as the loops give it."""
    kernel = sx.compile(f)
    given = {**given, **{t.name: t.array for t in kernel.signature.tables}}
    out = np.zeros(shape, kernel.signature.outputs[0].dtypes[0].dtype)
    arrays = {**{k: v for k, v in given.items() if isinstance(v, np.ndarray)}, kernel.signature.outputs[0].name: out}
    scalars = {k: v for k, v in given.items() if not isinstance(v, np.ndarray)}
    run(program, arrays, scalars, {(k, d): e for k, v in arrays.items() for d, e in enumerate(v.shape)})
    return out


@pytest.mark.parametrize("width", [1, 31, 70, 128])
def test_reductions_of_a_row_are_values_of_the_program_that_needs_them(width: int) -> None:
    f = public.softmax()
    program = blocks(f, public.ROWS)
    assert scratch(program) == []
    given = {"x": public.floats(3, width)}
    np.testing.assert_allclose(result(program, f, given, (3, width)), interpret(f, given), rtol=1e-6)


def test_lanes_of_a_row_have_partial_sums_that_are_joined_once() -> None:
    text = show(blocks(public.softmax(), public.ROWS))
    assert text.count("sum(") == 1
    assert text.index("carrying out.sum.update(0).r.j′out.sum′acc") < text.index("sum(")


@pytest.mark.parametrize("height", [1, 2, 3, 7])
def test_rows_that_a_stencil_reads_again_are_carried(height: int) -> None:
    f = public.stencil()
    program = blocks(f, public.ROLLED)
    assert scratch(program) == []
    assert "carrying g.0" in show(program)
    given = {"a": np.arange((height + 2) * 23, dtype=np.uint16).reshape(height + 2, 23)}
    np.testing.assert_array_equal(result(program, f, given, (height, 21)), interpret(f, given))


def test_a_product_of_matrices_is_one_node_and_its_sums_stay_in_values() -> None:
    f = public.matmul(sx.float16, sx.float32)
    program = blocks(f)
    (dot,) = {id(e): e for e in walk.nodes(program.body) if isinstance(e, Dot)}.values()
    assert scratch(program) == []
    assert (dot.left.dtype, dot.right.dtype, dot.dtype) == (sx.float16, sx.float16, sx.float32)
    assert dot.left.axes[1] == dot.right.axes[0] == dot.axis
    given = {"a": public.floats(5, 33, dtype=np.float16), "b": public.floats(33, 20, dtype=np.float16)}
    np.testing.assert_allclose(result(program, f, given, (5, 20)), interpret(f, given), rtol=1e-4, atol=1e-5)


def test_a_matrix_unit_for_another_sum_is_refused_with_the_line() -> None:
    a, r = sx.Input("a", sx.float32, 2), None
    r = sx.RDom("r", j=a.shape[1])
    f = sx.Func("f")
    f[m] = sx.float32(0)
    f[m] += a[m, r]
    s = sx.Schedule(f)
    s[f].update(0).reassociate().vectorize(m, 16).vectorize(r.j, 16).matrix_unit("m.in", "m", "r.j.in")
    with pytest.raises(UnsupportedError, match="cannot use a matrix unit") as found:
        sx.compile(f, s, target="cuda")
    assert "matrix_unit(" in str(found.value)


def test_another_order_of_sums_is_no_part_of_a_bitwise_default() -> None:
    f = public.matmul(sx.float16, sx.float32)
    assert sx.compile(f, target="cuda", require="bitwise").contract == "bitwise"
    assert sx.compile(f, target="cuda").contract == "reassociates"


@pytest.mark.parametrize(
    "name", [k for k, p in public.PROGRAMS.items() if p.outputs == 1 and p.given and "none" not in k]
)
def test_the_loops_of_every_program_mean_the_same(name: str) -> None:
    one = public.PROGRAMS[name]
    f = one.make()
    want = interpret(f, one.given)
    got = result(blocks(f, one.text), f, one.given, want.shape)
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-4, atol=1e-5)
