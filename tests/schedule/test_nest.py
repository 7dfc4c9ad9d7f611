"""The loops of a stage under directives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stax.errors import ScheduleError
from stax.loops.nodes import LoopKind
from stax.schedule import directives as said
from stax.schedule.nest import Fuse, Loop, Nest, Split, Tail, apply, followed, initial

S, P, V, U = LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.VECTOR, LoopKind.UNROLL


def nest(*names: str) -> Nest:
    return Nest(names, (), tuple(Loop(n, S) for n in names))


def after(start: Nest, *directives: said.LoopDirective) -> Nest:
    for directive in directives:
        start = apply(start, directive)
    return start


def names(n: Nest) -> list[str]:
    return [loop.name for loop in n.loops]


def test_a_definition_begins_with_its_dims(program):
    assert initial(program.func("by"), 0) == nest("y", "x")


def test_an_update_begins_with_the_dims_it_leaves_in_place_then_its_domain(program):
    assert initial(program.func("hist"), 1) == nest("c", "r.y", "r.x")
    assert initial(program.func("hist"), 2) == nest("c", "i")


def test_split_puts_two_loops_in_the_place_of_one():
    got = after(nest("y", "x"), said.Split("y", "yo", "yi", 64))
    assert names(got) == ["yo", "yi", "x"]
    assert got.derivations == (Split("y", "yo", "yi", 64, Tail.GUARD),)
    assert got.roots == ("y", "x")


def test_a_consumed_name_is_free_again():
    got = after(nest("y", "x"), said.Split("y", "y", "yi", 64), said.Split("y", "t", "y", 2))
    assert names(got) == ["t", "y", "yi", "x"]


def test_a_living_name_is_not_given_twice():
    with pytest.raises(ScheduleError, match="loop 'x' already"):
        apply(nest("y", "x"), said.Split("y", "yo", "x", 4))
    with pytest.raises(ScheduleError, match="'t' twice"):
        apply(nest("y", "x"), said.Split("y", "t", "t", 4))


def test_a_dead_loop_is_named_with_what_reads_like_it():
    with pytest.raises(ScheduleError) as error:
        after(nest("y", "x"), said.Split("y", "yo", "yi", 64), said.Parallel("y"))
    assert str(error.value) == (
        "loop 'y' was consumed by an earlier directive\n"
        "  loops here, outermost first: yo, yi, x\n"
        "  hint: did you mean 'yo' or 'yi'?"
    )
    with pytest.raises(ScheduleError, match="loop 'z' is not there"):
        apply(nest("y", "x"), said.Unroll("z"))


@pytest.mark.parametrize("factor", [0, -4, 2**31, True, 2.0, "8"])
def test_a_factor_is_a_positive_int(factor):
    with pytest.raises(ScheduleError, match="a factor is an int"):
        apply(nest("y", "x"), said.Split("y", "yo", "yi", factor))


def test_tile_puts_all_outer_loops_outside_all_inner_ones():
    got = after(nest("y", "x"), said.Tile(("y", "x"), ("yo", "xo"), ("yi", "xi"), (8, 16)))
    assert names(got) == ["yo", "xo", "yi", "xi"]
    assert [d.factor for d in got.derivations if isinstance(d, Split)] == [8, 16]


def test_tile_leaves_a_loop_between_in_its_place():
    got = after(nest("y", "c", "x"), said.Tile(("y", "x"), ("y", "x"), ("yi", "xi"), (8, 16)))
    assert names(got) == ["y", "x", "c", "yi", "xi"]


def test_tile_takes_lists_of_one_length():
    with pytest.raises(ScheduleError, match="as many outer names"):
        apply(nest("y", "x"), said.Tile(("y", "x"), ("yo", "xo"), ("yi", "xi"), (8,)))
    with pytest.raises(ScheduleError, match="'y' twice"):
        apply(nest("y", "x"), said.Tile(("y", "y"), ("yo", "xo"), ("yi", "xi"), (8, 8)))


def test_fuse_makes_one_loop_of_two_neighbours():
    got = after(nest("c", "y", "x"), said.Fuse("c", "y", "t"))
    assert names(got) == ["t", "x"]
    assert got.derivations == (Fuse("c", "y", "t"),)


def test_fuse_wants_the_outer_loop_directly_outside():
    for outer, inner in (("c", "x"), ("y", "c")):
        with pytest.raises(ScheduleError, match="directly outside"):
            apply(nest("c", "y", "x"), said.Fuse(outer, inner, "t"))


def test_reorder_permutes_a_subset_among_its_own_places():
    got = after(nest("n", "y", "x", "c"), said.Reorder(("c", "y")))
    assert names(got) == ["n", "c", "x", "y"]
    with pytest.raises(ScheduleError, match="'y' twice"):
        apply(nest("y", "x"), said.Reorder(("y", "y")))
    with pytest.raises(ScheduleError):
        apply(nest("y", "x"), said.Reorder(()))


def test_vectorize_and_unroll_by_a_number_act_on_the_inner_loop():
    got = after(nest("y", "x"), said.Vectorize("x", 8), said.Unroll("x"), said.Parallel("y", 4))
    assert got.loops == (Loop("y", P), Loop("y.in", S), Loop("x", U), Loop("x.in", V))


def test_a_second_inner_loop_needs_a_name_of_its_own():
    with pytest.raises(ScheduleError, match=r"called 'x\.in'"):
        after(nest("y", "x"), said.Vectorize("x", 8), said.Unroll("x", 4))


def test_the_outer_part_of_a_parallel_loop_stays_parallel():
    got = after(nest("x"), said.Parallel("x"), said.Vectorize("x", 8))
    assert got.loops == (Loop("x", P), Loop("x.in", V))


@pytest.mark.parametrize(
    "second", [said.Split("x", "xo", "xi", 2), said.Fuse("y", "x", "t"), said.Parallel("x"), said.Unroll("x")]
)
def test_a_vectorized_loop_is_neither_consumed_nor_changed(second):
    """What an earlier line said would be dropped silently."""
    with pytest.raises(ScheduleError, match="vectorized"):
        after(nest("y", "x"), said.Vectorize("x"), second)


def test_a_func_placed_at_a_loop_follows_to_the_same_instants():
    assert followed(said.Split("y", "y", "yi", 8)) == {"y": "yi"}
    assert followed(said.Fuse("y", "x", "t")) == {"y": "t", "x": "t"}
    assert followed(said.Vectorize("x", 8)) == {"x": "x.in"}
    assert followed(said.Vectorize("x")) == {}


NAMES = st.sampled_from(["y", "x", "c", "yo", "yi", "t", "x.in"])
SIZES = st.integers(-1, 9)
DIRECTIVES = st.one_of(
    st.builds(said.Split, NAMES, NAMES, NAMES, SIZES),
    st.builds(said.Fuse, NAMES, NAMES, NAMES),
    st.builds(said.Reorder, st.lists(NAMES, max_size=4).map(tuple)),
    st.builds(said.Vectorize, NAMES, st.none() | SIZES),
    st.builds(said.Parallel, NAMES, st.none() | SIZES),
    st.builds(said.Unroll, NAMES, st.none() | SIZES),
    st.builds(
        said.Tile, st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES), st.tuples(SIZES, SIZES)
    ),
)


@given(st.lists(DIRECTIVES, max_size=30))
def test_loops_are_the_leaves_and_every_root_is_made_of_them(directives):
    """Undone from last to first, the derivations lead from exactly the loops to exactly the roots."""
    at = nest("c", "y", "x")
    for directive in directives:
        try:
            at = apply(at, directive)
        except ScheduleError:
            continue
        alive = set(names(at))
        assert len(alive) == len(at.loops)
        for d in reversed(at.derivations):
            match d:
                case Split():
                    assert {d.outer, d.inner} <= alive
                    assert d.factor > 0
                    alive = alive - {d.outer, d.inner} | {d.parent}
                case Fuse():
                    assert d.fused in alive
                    alive = alive - {d.fused} | {d.outer, d.inner}
        assert alive == set(at.roots)


@given(st.lists(DIRECTIVES, max_size=12), st.integers(1, 5), st.integers(1, 5))
def test_every_point_is_visited_by_some_iteration(directives, height, width):
    """The extents of the loops, each split rounded up, cover all of the box."""
    at = nest("y", "x")
    for directive in directives:
        try:
            at = apply(at, directive)
        except ScheduleError:
            continue
    extent = {"y": height, "x": width}
    for d in at.derivations:
        match d:
            case Split():
                whole = extent.pop(d.parent)
                extent |= {d.outer: -(-whole // d.factor), d.inner: d.factor}
            case Fuse():
                extent[d.fused] = extent.pop(d.outer) * extent.pop(d.inner)
    assert set(extent) == set(names(at))
    total = 1
    for loop in at.loops:
        total *= extent[loop.name]
    assert total >= height * width
