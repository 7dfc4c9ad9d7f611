"""Questions to isl: their words, their budget, and answers that are remembered."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import stax as sx
from stax.bounds.infer import infer
from stax.errors import LegalityError
from stax.expr import build
from stax.expr.affine import Algebra
from stax.expr.nodes import INDEX, Size, Var
from stax.lang.freeze import freeze
from stax.legality.check import check
from stax.legality.known import Known
from stax.poly import clash as room
from stax.poly.clash import How, Kind, TooHard, clash, problem
from stax.poly.proofs import Proofs
from stax.poly.words import Words
from stax.schedule.directives import StageRef
from stax.schedule.points import Root, points

t, x = sx.vars("t x")


def scan() -> tuple[Any, sx.Schedule]:
    a = sx.Input("a", sx.float32, 2)
    u = sx.Func("u", sx.float32, shape=a.shape)
    inside = (t > 0) & (x + 1 < a.shape[1])
    u[t, x] = sx.select(inside, u[t - 1, x + 1], 0) + a[t, x]
    return u, sx.Schedule(u)


def asked(s: sx.Schedule) -> room.Problem:
    pipeline = s.pipeline
    context = infer(pipeline).context
    f = pipeline.func("u")
    nest = s.nest(StageRef("u"))
    roots = tuple(Root(d, build.index(0), Size(INDEX, "a", k)) for k, d in enumerate(f.dims))
    made = points(nest, roots, "u", f.backwards, set())
    return problem(f, 0, nest, made, context.accesses["u"][0], False, context.algebra, context.at_least, True)


def test_an_interchange_against_a_dependence_clashes_at_the_smallest_points() -> None:
    _, s = scan()
    s["u"].reorder(x, t)
    found = clash(asked(s))
    assert found is not None
    assert (found.kind, found.how, found.place) == (Kind.FLOW, How.ORDER, 0)
    assert (found.first, found.second, found.cell) == ((0, 1), (1, 0), (0, 1))
    assert sorted(found.sizes) == [2, 2]


def test_a_skew_makes_it_fit() -> None:
    _, s = scan()
    s["u"].skew(x, t, 1).reorder(x, t)
    assert clash(asked(s)) is None


def test_a_question_beyond_its_budget_is_not_answered() -> None:
    _, s = scan()
    s["u"].skew(x, t, 1).tile((t, x), ("to", "xo"), ("t", "x"), (4, 4))
    with pytest.raises(TooHard):
        clash(asked(s), operations=20)
    assert clash(asked(s)) is None


def test_an_answer_is_remembered_by_the_text_of_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    u, s = scan()
    s["u"].skew(x, t, 1).reorder(x, t)
    count = 0
    whole = room.clash

    def counted(question: room.Problem) -> room.Clash | None:
        nonlocal count
        count += 1
        return whole(question)

    monkeypatch.setattr("stax.poly.proofs.clash", counted)
    proofs = Proofs()
    for _ in range(3):
        check(freeze(u), s.lines, known=Known(proofs))
    assert count == 1


def test_what_is_refused_for_its_cost_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown is refused."""
    u, s = scan()
    s["u"].skew(x, t, 1).reorder(x, t)

    def hard(question: room.Problem) -> None:
        raise TooHard("")

    monkeypatch.setattr("stax.poly.proofs.clash", hard)
    with pytest.raises(LegalityError, match="was not found out"):
        sx.check(u, s)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (lambda v: build.floordiv(build.add(v, 1), 2), "floor((i0 + 1)/2)"),
        (lambda v: build.mod(v, 3), "((i0) mod 3)"),
        (lambda v: build.sub(build.mul(v, 2), Size(INDEX, "a", 0)), "-1*p0 + 2*i0"),
        (lambda v: build.mul(v, v), None),
    ],
)
def test_sums_have_words(value: Any, said: str | None) -> None:
    algebra = Algebra()
    assert Words(algebra, {}).sum(algebra.of(value(Var(INDEX, "x"))), {"x": "i0"}) == said


def test_what_the_rule_on_boxes_sees_needs_no_isl() -> None:
    """Importing it costs a tenth of a second."""
    code = """
import sys
import stax as sx
y, x = sx.vars("y x")
a = sx.Input("a", sx.float32, 2)
f, g = sx.Func("f"), sx.Func("g", shape=a.shape)
f[y, x] = a[y, x] + 1
g[0, x] = f[0, x]
g[y, x] = g[y - 1, x] + f[y, x]
s = sx.Schedule(g)
s[f].compute_at(g, y)
s[g].vectorize(x, 8)
sx.check(g, s)
sx.check(g)
assert "islpy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
