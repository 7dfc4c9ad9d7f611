"""The check beside an oracle that runs every instance: nothing accepted differs, and each part is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import stax as sx
from stax.errors import BoundsError, LegalityError
from stax.expr.affine import Interval
from stax.legality import check as checking
from stax.legality.overwrite import Overwriting
from stax.legality.within import Within
from stax.poly import clash
from stax.poly.clash import How, Kind
from stax.schedule.directives import ComputeAt
from tests.legality.brute import differs
from tests.legality.judge import Tally, judge, tally


@pytest.mark.parametrize("start", range(0, 500, 100))
def test_nothing_that_is_accepted_differs_and_little_else_is_refused(start: int) -> None:
    """Refused all the same: storage that threads share to write equal values, scatters at data that do not meet.

    `python -m tests.legality --programs 8000` asks for at least 95 of a hundred to be accepted.
    """
    found = tally(range(start, start + 100))
    assert not found.unsound, found.text()
    assert not found.untrue, found.text()
    assert found.harmful > 30
    assert found.share >= 0.88


def no(kind: Kind) -> Callable[[pytest.MonkeyPatch], None]:
    """Leave out the dependences of a kind."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        whole = clash._Sets._pairs
        monkeypatch.setattr(clash._Sets, "_pairs", lambda self: [p for p in whole(self) if p.kind is not kind])

    return patch


def without(how: How) -> Callable[[pytest.MonkeyPatch], None]:
    """Leave out one way to break a dependence."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        whole = clash._Sets._broken

        def broken(self: Any, pair: Any, kind: Kind) -> Iterator[Any]:
            return (b for b in whole(self, pair, kind) if b[0] is not how)

        monkeypatch.setattr(clash._Sets, "_broken", broken)

    return patch


def skipped(owner: Any, name: str, result: Any = None) -> Callable[[pytest.MonkeyPatch], None]:
    """Leave out a part of the check that answers `result` where all is well."""
    return lambda monkeypatch: monkeypatch.setattr(owner, name, lambda *_: result)


def smaller_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute one cell less than is read, in an iteration of a loop."""
    whole = Within.over

    def over(self: Within, found: Interval, inner: Any, outer: Any) -> Interval:
        got = whole(self, found, inner, outer)
        return replace(got, hi=got.hi - 1) if got.hi is not None and inner and outer else got

    monkeypatch.setattr(Within, "over", over)


def any_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fold as asked, whoever still reads."""
    monkeypatch.setattr(checking._Check, "_all_kept", lambda *_: True)


def one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fold to one value less than is needed."""
    whole = checking._Check._all_kept

    def kept(self: Any, f: Any, fold: Any, box: Interval, prover: Any) -> bool:
        return whole(self, f, replace(fold, n=fold.n + 1), box, prover)

    monkeypatch.setattr(checking._Check, "_all_kept", kept)


def one_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take guests to run one iteration later than they do."""
    whole = checking.done_before

    def done(f: Any, stage: int, points: Any, depth: int, guest: Any, shift: int, algebra: Any) -> Any:
        return whole(f, stage, points, depth, guest, shift + 1, algebra)

    monkeypatch.setattr(checking, "done_before", done)


MUTANTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], tuple[str, ...]]] = {
    "no flow": (no(Kind.FLOW), ("in place", "scatter")),
    "no anti": (no(Kind.ANTI), ("ahead",)),
    "no output": (no(Kind.OUTPUT), ("written",)),
    "no order": (without(How.ORDER), ("in place", "scatter")),
    "no parallel": (without(How.PARALLEL), ("in place", "scatter")),
    "no lanes": (without(How.LANES), ("in place", "scatter")),
    "no coverage of readers outside": (skipped(checking._Check, "_outside"), ("chain",)),
    "regions that are too small": (smaller_regions, ("chain",)),
    "any fold": (any_fold, ("chain", "kept")),
    "a fold by one too small": (one_more, ("chain", "kept")),
    "points that are run again": (skipped(checking, "check_once"), ("kept",)),
    "nothing is said of a point in place": (skipped(Overwriting, "_in_point"), ("taken",)),
    "tails are rounded anywhere": (skipped(checking, "check_rounding"), ("scatter",)),
    "storage is hoisted anywhere": (skipped(checking, "check_hoist"), ("chain", "placed")),
    "guests are not asked for what they read": (skipped(checking, "check_there"), ("beside",)),
    "guests are taken to be later than they are": (one_later, ("beside",)),
    "nothing is said of other stages in place": (skipped(Overwriting, "_is_done"), ("taken",)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_check_with_a_part_left_out_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the oracle sees what each part is for."""
    patch, kinds = MUTANTS[name]
    patch(monkeypatch)
    for seed in range(600):
        try:
            verdict = judge(seed, kinds)
        except BoundsError:  # without the part, what is asked of a Func may have no bounds
            continue
        if verdict.accepted and verdict.wrong:
            return
    raise AssertionError("nobody noticed")


def test_a_witness_that_is_not_so_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which the two points are exchanged, or the cell is another."""
    whole = clash._Sets._witness

    def witness(self: Any, *args: Any) -> Any:
        found = whole(self, *args)
        return replace(found, first=found.second, second=found.first)

    monkeypatch.setattr(clash._Sets, "_witness", witness)
    found = Tally()
    for seed in range(40):
        found.add(judge(seed, ("in place", "ahead")))
    assert len(found.untrue) > 0.8 * found.witnessed > 0


def test_storage_that_threads_share_and_compute_again_is_refused_with_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.int64, 2)
    g, h, f, out = (sx.Func(n) for n in ("g", "h", "f", "out"))
    g[y, x] = a[y, x] + 1
    h[y, x] = g[y, x] * 2
    r = sx.RDom("r", k=3)
    f[y, x] = a[y, x] * 3
    f[y, x] = f[y, x] * 2 + r
    out[y, x] = h[y, x] + h[y + 1, x] + f[y, x] + f[y + 1, x]
    s = sx.Schedule(out)
    s[g].compute_root()
    s[h].compute_root()
    s[out].compute_root().parallel(y)
    s[f].compute_at(s[out], y).overwrite(g)
    lines = tuple(
        replace(line, directive=replace(line.directive, stage=0)) if isinstance(line.directive, ComputeAt) else line
        for line in s.lines
    )
    with pytest.raises(LegalityError, match="computed again in another iteration"):
        sx.check(out, s)
    sizes = {"a": (6, 3), "out": (5, 3)}
    assert differs(s.pipeline, lines, sizes)
    monkeypatch.setattr(Overwriting, "_once", lambda *_: None)
    sx.check(out, s)
