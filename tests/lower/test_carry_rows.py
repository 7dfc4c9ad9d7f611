"""Rolling scratch becomes carried values, and only where nothing else can see it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stax.expr import build
from stax.expr.nodes import BinaryOp, Expr, Load
from stax.loops import walk
from stax.loops.nodes import For, Program, Store
from stax.loops.show import show
from stax.loops.verify import verify
from stax.lower.carry_rows import carry_rows
from tests.loops import programs


def test_rows_are_carried_down_a_strip() -> None:
    lines = show(carry_rows(programs.blur_folded(4, 8))).splitlines()
    assert [line.strip() for line in lines[-8:]] == [
        "$2 = $1 < out.shape[1]",
        "$3 = x[yo * 4 + 1, $1 if $2] + x[yo * 4 + 1, $1 + 1 if $2] + x[yo * 4 + 1, $1 + 2 if $2]",
        "for y in 0 +: min(4, out.shape[0] - yo * 4), carrying rows.0: uint16<j:8> = "
        "(x[yo * 4, $1 if $2] + x[yo * 4, $1 + 1 if $2] + x[yo * 4, $1 + 2 if $2]) // 3, "
        "rows.1: uint16<j:8> = $3 // 3:",
        "$4 = x[yo * 4 + y + 2, $1 if $2] + x[yo * 4 + y + 2, $1 + 1 if $2] + x[yo * 4 + y + 2, $1 + 2 if $2]",
        "rows.2: uint16<j:8> = $4 // 3",
        "out[yo * 4 + y, $1 if $2] = (rows.0 + rows.1 + rows.2) // 3",
        "next rows.0 = rows.1",
        "next rows.1 = rows.2",
    ]


@pytest.mark.parametrize("extents", [(1, 1), (5, 7), (16, 33)])
def test_the_meaning_is_kept(extents: tuple[int, int]) -> None:
    program = carry_rows(programs.blur_folded(4, 8))
    verify(program)
    arrays, scalars, right = programs.blur_data(np.random.default_rng(0), *extents)
    programs.run(program, arrays, scalars)
    np.testing.assert_array_equal(arrays["out"], right["out"])


def unlike(change: str) -> Program:
    """Return the folded blur with one thing that a carried row cannot do."""
    program = programs.blur_folded(4, 8)

    def expr(node: Expr) -> Expr:
        if isinstance(node, Load) and node.buffer == "rows" and change == "read elsewhere":
            return replace(node, index=(node.index[0], programs.op(BinaryOp.MIN, node.index[1], 3)))
        return node

    def stmt(s: object) -> object:
        match s:
            case Store(buffer="rows") if change == "masked" and build.integer(s.index[0]) is None:
                return replace(s, mask=(programs.within(s.index[1], build.index(5)),))
            case Store(buffer="rows") if change == "filled in another order" and build.integer(s.index[0]) is not None:
                return replace(s, index=(build.sub(build.index(1), s.index[0]), s.index[1]))
            case For() if change == "begins later" and s.var.name == "y":
                return replace(s, start=build.index(1))
            case For() if change == "downwards" and s.var.name == "y":
                return replace(s, down=True)
            case _:
                return s

    body = walk.rewrite_statements(walk.rewrite_expressions(program.body, expr), stmt)  # type: ignore[arg-type]
    return walk.with_body(program, body)


@pytest.mark.parametrize("change", ["read elsewhere", "masked", "filled in another order", "begins later", "downwards"])
def test_scratch_used_in_another_way_stays(change: str) -> None:
    program = unlike(change)
    assert carry_rows(program) is program
