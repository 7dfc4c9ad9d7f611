"""The second look at what is read: nothing to say of the compiler's boxes, and all that is wrong with others."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

import stax as sx
from stax.errors import ScheduleError, UnsupportedError
from stax.expr.affine import Interval
from stax.legality.check import check
from stax.legality.coverage import edges
from stax.legality.known import Known
from stax.legality.report import report
from stax.poly.proofs import Proofs
from stax.schedule.legal import Legal
from tests.legality.brute import differs
from tests.legality.judge import drawn, regions_of


def tokens(kinds: tuple[str, ...], seeds: range) -> list[tuple[int, Legal]]:
    found = []
    for seed in seeds:
        made, lines = drawn(seed, kinds)
        try:
            found.append((seed, check(made.pipeline, lines)))
        except (ScheduleError, UnsupportedError):
            continue
    return found


@pytest.mark.parametrize("kind", ["chain", "taken", "kept"])
def test_all_that_is_read_is_seen_to_be_computed(kind: str) -> None:
    proofs, said, unknown = Proofs(), 0, 0
    for seed, legal in tokens((kind,), range(90)):
        for edge in edges(legal, proofs):
            assert edge.outside is None, f"seed {seed}: {edge.outside}"
            unknown += edge.unknown is not None
            said += 1
    assert said > 5
    assert unknown <= 0.2 * said


def test_a_box_that_is_cut_is_seen_to_be_too_small_wherever_that_matters() -> None:
    """What the oracle sees of a box that is one short at an end, the second look sees too."""
    harmful, seen = 0, 0
    for seed, legal in tokens(("chain",), range(120)):
        rng = Random(seed)
        made, lines = drawn(seed, ("chain",))
        name = rng.choice([f.name for f in legal.pipeline.funcs if f.name not in legal.pipeline.outputs])
        placed = legal.placed[name]
        if placed.compute is None or placed.new != placed.box:
            continue
        d, low = rng.randrange(len(placed.box)), rng.random() < 0.5
        i = placed.box[d]
        cut = Interval(i.first + 1, i.hi) if low else Interval(i.lo, i.last - 1)
        box = (*placed.box[:d], cut, *placed.box[d + 1 :])
        short = replace(legal, placed={**legal.placed, name: replace(placed, box=box, new=box)})
        wrong = differs(made.pipeline, lines, made.sizes, seed=seed, regions=regions_of(short))
        outside = [e.outside for e in edges(short, Proofs()) if e.outside is not None or e.unknown is not None]
        assert outside or not wrong, f"seed {seed}: {wrong}"
        harmful += bool(wrong)
        seen += bool(outside)
    assert harmful > 5
    assert seen >= harmful


def test_the_report_says_of_each_stage_and_edge_what_proved_it() -> None:
    y, x = sx.vars("y x")
    a, f, g = sx.Input("a", sx.float32, 2), sx.Func("f"), sx.Func("g")
    f[y, x] = a[y, x] * 2
    g[y, x] = f[y, x] + f[y + 1, x // 2]
    s = sx.Schedule(g)
    s[g].split(y, "yo", "yi", 8)
    s[f].compute_at(g, "yo")
    legal, text = report(s.pipeline, s.lines)
    assert legal.contract == "bitwise"
    lines = text.splitlines()
    assert any(line.startswith("g reads f ") and "isl, " in line and "all that is read" in line for line in lines)
    assert any(line.startswith("f ") and "intervals" in line for line in lines)
    assert lines[-1].startswith("the check took ")


def test_editing_one_directive_asks_again_only_what_it_touches() -> None:
    (y, x), a = sx.vars("y x"), sx.Input("a", sx.float32, 2)
    made = [sx.Func(f"u{k}", sx.float32, a.shape) for k in range(3)]
    for k, u in enumerate(made):
        source = made[k - 1] if k else a
        u[y, x] = sx.select((y > 0) & (x < a.shape[1] - 1), u[y - 1, x + 1], 0) + source[y, x]
    s = sx.Schedule(made[-1])
    for u in made:
        s[u].compute_root().skew(x, y, 1)
    proofs = Proofs()
    check(s.pipeline, s.lines, known=Known(proofs))
    asked = proofs.asked - proofs.known
    assert asked >= 1
    s[made[1]].split(x, "xo", "xi", 8)
    proofs.asked = proofs.known = 0
    check(s.pipeline, s.lines, known=Known(proofs))
    assert proofs.asked - proofs.known == 1
