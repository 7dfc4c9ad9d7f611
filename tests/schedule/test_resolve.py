"""What lines add up to."""

import warnings

import pytest

from stax.errors import ScheduleError, StaxWarning
from stax.schedule import directives as said
from stax.schedule.directives import Line, StageRef
from stax.schedule.resolve import At, Inline, Root, resolve


def lines(*pairs):
    return [Line(at if isinstance(at, StageRef) else StageRef(at), d) for at, d in pairs]


def at(consumer, stage, loop, store=None):
    return said.ComputeAt(consumer, stage, loop, store)


def test_nests_has_every_stage_and_placements_only_what_was_placed(program):
    got = resolve(program, [])
    assert set(got.nests) == {StageRef(f.name, k) for f in program.funcs for k in range(len(f.updates) + 1)}
    assert got.placements == {}
    assert got.lines == ()


def test_the_last_placement_holds(program):
    got = resolve(program, lines(("bx", said.Inline()), ("bx", at("by", None, "y")), ("by", said.ComputeRoot())))
    assert got.placements == {"bx": At(StageRef("by"), "y"), "by": Root()}
    assert resolve(program, lines(("bx", said.Inline()))).placements == {"bx": Inline()}


def test_a_func_follows_to_the_inner_loop_of_a_later_split(program):
    got = resolve(program, lines(("bx", at("by", None, "y")), ("by", said.Split("y", "yo", "y", 8))))
    assert got.placements["bx"] == At(StageRef("by"), "y")
    got = resolve(program, lines(("bx", at("by", None, "y")), ("by", said.Split("y", "y", "yi", 8))))
    assert got.placements["bx"] == At(StageRef("by"), "yi")


def test_a_store_level_follows_too(program):
    got = resolve(
        program,
        lines(("bx", said.StoreAt("by", None, "y")), ("bx", at("by", None, "x")), ("by", said.Split("y", "y", "z", 8))),
    )
    assert got.placements["bx"] == At(StageRef("by"), "x", (StageRef("by"), "z"))


def test_store_in_one_line_is_store_at(program):
    one = resolve(program, lines(("bx", at("by", None, "x", "y"))))
    two = resolve(program, lines(("bx", at("by", None, "x")), ("bx", said.StoreAt("by", None, "y"))))
    assert one.placements == two.placements == {"bx": At(StageRef("by"), "x", (StageRef("by"), "y"))}


def test_store_at_the_loop_of_compute_at_says_nothing_more(program):
    got = resolve(program, lines(("bx", said.StoreAt("by", None, "x")), ("bx", at("by", None, "x"))))
    assert got.placements["bx"] == At(StageRef("by"), "x")


def test_store_root(program):
    got = resolve(program, lines(("bx", said.StoreRoot()), ("bx", at("by", None, "x"))))
    assert got.placements["bx"] == At(StageRef("by"), "x", Root())
    assert resolve(program, lines(("bx", said.StoreRoot()), ("bx", said.ComputeRoot()))).placements["bx"] == Root()


def test_the_stage_that_reads_is_meant(program):
    """Only update 1 of hist reads by; its definition has a loop c too."""
    assert resolve(program, lines(("by", at("hist", None, "c")))).placements["by"] == At(StageRef("hist", 2), "c")


def test_a_stage_that_reads_through_another_func_is_meant_where_none_reads_itself(program):
    assert resolve(program, lines(("bx", at("out", None, "y")))).placements["bx"] == At(StageRef("out"), "y")


@pytest.mark.parametrize(
    ("said_of", "directive", "match"),
    [
        ("bz", said.ComputeRoot(), "no Func 'bz'"),
        ("img", said.ComputeRoot(), "is an Input"),
        (StageRef("hist", 3), said.Unroll("c"), "has no update 2"),
        (StageRef("hist", 1), said.ComputeRoot(), "compute_root places a whole Func"),
        ("bx", said.Unroll("z"), "bx: loop 'z' is not there"),
        ("bx", at("by", None, "z"), "loop 'z' is not there"),
        ("bx", at("by", None, "x", "z"), "loop 'z' is not there"),
        ("bx", at("nowhere", None, "x"), "no Func 'nowhere'"),
        ("bx", at("bx", None, "x"), "inside its own loops"),
        ("out", at("bx", None, "x"), "'bx' does not read Func 'out'"),
        ("by", at("hist", 0, "i"), "'hist' does not read Func 'by'"),
        ("by", at("hist", 1, "c"), "'hist.update\\(0\\)' does not read Func 'by'"),
        ("bx", said.StoreAt("by", None, "q"), "loop 'q' is not there"),
    ],
)
def test_what_no_later_line_can_repair_is_refused(program, said_of, directive, match):
    with pytest.raises(ScheduleError, match=match):
        resolve(program, lines((said_of, directive)))


@pytest.mark.parametrize(
    ("steps", "match"),
    [
        ([("bx", said.StoreAt("by", None, "y"))], "none where it is computed"),
        ([("bx", said.StoreAt("by", None, "y")), ("bx", said.ComputeRoot())], "cannot be kept at a loop"),
        ([("bx", said.StoreRoot()), ("bx", said.Inline())], "cannot be kept at a loop"),
        ([("bx", at("by", None, "y", "x"))], "computed outside the loop 'x'"),
        ([("bx", at("by", None, "y")), ("by", said.Inline())], "nothing can be computed in its loops"),
        ([("out", said.Inline())], "it is an output"),
        ([("hist", said.Inline())], "it has updates"),
        ([("bx", said.Inline()), ("bx", said.Vectorize("x"))], "no loops to schedule"),
    ],
)
def test_what_does_not_fit_together_is_refused_at_the_end(program, steps, match):
    with pytest.raises(ScheduleError, match=match):
        resolve(program, lines(*steps))


def test_a_reorder_can_repair_a_store_level_that_was_inside(program):
    got = resolve(program, lines(("bx", at("by", None, "y", "x")), ("by", said.Reorder(("x", "y")))))
    assert got.placements["bx"] == At(StageRef("by"), "y", (StageRef("by"), "x"))


def test_a_store_level_may_be_a_loop_of_the_reader_of_the_reader(program):
    got = resolve(
        program,
        lines(("by", at("out", None, "x")), ("bx", at("by", None, "y")), ("bx", said.StoreAt("out", None, "y"))),
    )
    assert got.placements["bx"] == At(StageRef("by"), "y", (StageRef("out"), "y"))


def test_scheduling_only_the_definition_of_a_func_with_updates_warns(program):
    with pytest.warns(StaxWarning, match="'hist' are scheduled for its definition only"):
        resolve(program, lines(("hist", said.Vectorize("i", 8))), warn=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both = lines(("hist", said.Vectorize("i", 8)), (StageRef("hist", 2), said.Vectorize("i", 8)))
        resolve(program, both, warn=True)
        resolve(program, lines(("hist", said.ComputeRoot()), ("bx", said.Vectorize("x", 8))), warn=True)
