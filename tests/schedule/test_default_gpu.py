"""The default schedule of GPUs, for calls of any size and for those whose sizes are known to be in a range."""

from __future__ import annotations

import stax as sx
from stax.lang.freeze import freeze
from stax.legality.sequence import in_sequence
from stax.schedule.default_gpu import Extents, complete
from stax.schedule.schedule import Schedule
from tests.backends.triton import public

m, n = sx.vars("m n")


def lines(f: sx.Func, extents: Extents | None = None) -> list[str]:
    """Return the lines of a default schedule, without those of the head."""
    text = str(Schedule.of(f, complete(in_sequence(freeze(f)), (), extents=extents)))
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_rows_of_any_length_are_cut() -> None:
    assert lines(public.softmax()) == [
        's["e"].inline()',
        's["out"].parallel("m").split("n", "n", "n.in", 1024).vectorize("n.in")',
        's["out.sum"].compute_at(s["out"], "m")',
        's["out.sum"].update(0).reassociate().split("r.j", "r.j", "r.j.in", 1024).vectorize("r.j.in")',
        's["top"].compute_at(s["out"], "m")',
        's["top"].update(0).split("r.j", "r.j", "r.j.in", 1024).vectorize("r.j.in")',
    ]


def test_short_rows_are_lanes_and_what_is_costly_in_them_is_computed_once() -> None:
    assert lines(public.softmax(), Extents(row=2048)) == [
        's["out"].parallel("m").vectorize("n", upto=2048).warps(4)',
        's["out.sum"].compute_at(s["out"], "m")',
        's["out.sum"].update(0).reassociate().vectorize("r.j", upto=2048)',
        's["e"].compute_at(s["out"], "m").vectorize("n", upto=2048)',
        's["top"].compute_at(s["out"], "m")',
        's["top"].update(0).vectorize("r.j", upto=2048)',
    ]


def test_wider_rows_have_more_warps() -> None:
    assert ".warps(16)" in lines(public.softmax(), Extents(row=16384))[0]


def test_rows_that_several_rows_need_are_rolled_where_there_are_many_points() -> None:
    assert lines(public.stencil())[0] == 's["g"].inline()'
    assert lines(public.stencil(), Extents(many=True)) == [
        's["f"].parallel("m", 32).parallel("n", 256).reorder("m", "n", "m.in", "n.in").vectorize("n.in")',
        's["g"].store_at(s["f"], "n").compute_at(s["f"], "m.in").vectorize("n", upto=256)',
    ]


def test_rows_that_are_read_in_several_columns_are_not_rolled() -> None:
    """Neither are two rows, or rows whose columns move."""
    a = sx.Input("a", sx.float32, 2)
    for steps in ([(0, 0), (1, 0)], [(0, 0), (1, 1), (2, 0)], [(0, 0), (5, 0), (20, 0)]):
        g, f = sx.Func("g"), sx.Func("f")
        g[m, n] = a[m, n] + a[m, n + 1]
        f[m, n] = sum(g[m + dm, n + dn] for dm, dn in steps)
        assert lines(f, Extents(many=True)) == lines(f)


def test_a_written_line_is_kept_and_its_func_left_alone() -> None:
    f = public.stencil()
    said = Schedule.parse('# stax schedule 1\ns["g"].compute_root()', f).lines
    text = str(Schedule.of(f, complete(in_sequence(freeze(f)), said, extents=Extents(many=True))))
    assert "store_at" not in text


def test_lanes_meet_in_cells_only_where_a_gpu_combines_at_once() -> None:
    """There is no atomic product."""
    assert not any("atomic" in line for line in lines(public.products()))
    assert any("atomic" in line for line in lines(public.histogram()))
