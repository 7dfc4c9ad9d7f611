"""The Schedule that people write on."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stax as sx
from stax import dtypes
from stax.algorithm.nodes import Func
from stax.errors import ScheduleError, StaxError, StaxWarning, UnsupportedError
from stax.expr.nodes import Const, Var
from stax.lang.var import RDom
from stax.schedule.directives import StageRef
from stax.schedule.fingerprint import fingerprint
from stax.schedule.schedule import At, Root, Schedule, Stage, resolve
from stax.schedule.script import show_directive
from stax.schedule.words import LATER, USAGE


class Named:
    def __init__(self, name):
        self.name = name


def test_directives_chain_and_print(program):
    y, x, yo = Named("y"), Named("x"), Named("yo")
    s = Schedule(program)
    s["out"].split(y, yo, y, np.int64(8)).parallel(yo).vectorize(x, 8)
    s[Named("by")].compute_at(Named("out"), yo)
    s["bx"].compute_at("by", x, store=y)
    s["hist"].compute_root().update(0).unroll("r.x", 4)
    s["by"].store_root()
    assert str(s) == (
        "# stax schedule 1\n"
        f'# {fingerprint(program)} bx(y, x) by(y, x) hist(c, i) "a b"(y, for) out(y, x)\n'
        's["out"].split("y", "yo", "y", 8).parallel("yo").vectorize("x", 8)\n'
        's["by"].compute_at("out", "yo")\n'
        's["bx"].compute_at("by", "x", store="y")\n'
        's["hist"].compute_root()\n'
        's["hist"].update(0).unroll("r.x", 4)\n'
        's["by"].store_root()\n'
    )
    got = s.resolved()
    assert got.placements == resolve(program, s.lines).placements
    assert got.placements["bx"] == At(StageRef("by"), "x", (StageRef("by"), "y"))
    assert got.placements["hist"] == Root()


def test_a_stage_is_taken_where_a_func_is(program):
    s = Schedule(program)
    s["by"].compute_at(s["hist"].update(1), "i")
    assert s.resolved().placements["by"] == At(StageRef("hist", 2), "i")
    assert 's["by"].compute_at(s["hist"].update(1), "i")\n' in str(s)


def test_every_directive_of_this_version_is_a_method_and_no_later_one_is():
    assert all(callable(vars(Stage)[word]) for word in USAGE)
    assert not set(LATER) & set(vars(Stage))
    assert not set(LATER) & set(USAGE)


def test_an_rdom_of_one_variable_is_that_loop(program):
    s = Schedule(program)
    hist = s["hist"].update(0)
    with pytest.raises(ScheduleError, match=r"loop 'k\.k' is not there"):
        hist.unroll(RDom("k", k=3))
    with pytest.raises(ScheduleError, match="several variables is no loop"):
        hist.unroll(RDom("r", y=3, x=4))
    hist.unroll(RDom("r", x=3)).parallel(RDom("r", y=3, x=4).y)
    assert 's["hist"].update(0).unroll("r.x").parallel("r.y")' in str(s)


@pytest.mark.parametrize("word", LATER)
def test_a_directive_of_a_later_version_is_unsupported(program, word):
    with pytest.raises(UnsupportedError, match=f"{word!r} comes with a later version"):
        getattr(Schedule(program)["out"], word)("x")


def test_a_mistyped_directive_says_what_reads_like_it(program):
    with pytest.raises(AttributeError, match="did you mean 'vectorize'"):
        Schedule(program)["out"].vectorise("x")


def test_options_that_are_none_leave_the_schedule_as_it_was(program):
    s = Schedule(program)
    with pytest.raises(ScheduleError, match="no tail 'inwards'"):
        s["out"].split("y", "yo", "yi", 8, tail="inwards")
    with pytest.raises(ScheduleError, match="vectorize is written"):
        s["out"].vectorize("y", 4, upto=8)
    with pytest.raises(ScheduleError, match="up to an int from 1"):
        s["out"].vectorize("y", upto=0)
    with pytest.raises(ScheduleError, match="tile is written tile\\("):
        s["out"].tile("y", "x", "yo", "xo", "yi", "xi", 8, 8)
    with pytest.raises(ScheduleError, match="split is written split\\("):
        s["out"].split("y", factor=8)
    assert s.lines == ()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda s: s["bxx"],
        lambda s: s[3],
        lambda s: s["hist"].update(2),
        lambda s: s["hist"].update(-1),
        lambda s: s["hist"].update(True),
        lambda s: s["out"].split("y", "yo", "yi", 8.0),
        lambda s: s["out"].split("y", "yo", "yi", True),
        lambda s: s["out"].split("y", "yo", "yi", None),
        lambda s: s["out"].split("y", "yo", object(), 8),
        lambda s: s["out"].tile("yx", ("a", "b"), ("c", "d"), (1, 2)),
        lambda s: s["out"].vectorize("x", 0),
        lambda s: s["out"].reorder(),
        lambda s: s["hist"].update(0).inline(),
    ],
)
def test_a_refused_directive_leaves_the_schedule_as_it_was(program, wrong):
    s = Schedule(program)
    s["out"].unroll("x", 4)
    before = str(s), s.resolved()
    with pytest.raises(ScheduleError):
        wrong(s)
    assert (str(s), s.resolved()) == before


def test_a_tile_refused_half_way_changes_nothing(program):
    s = Schedule(program)
    with pytest.raises(ScheduleError):
        s["out"].tile(("y", "x"), ("yo", "xo"), ("yi", "xi"), (8, 0))
    assert [loop.name for loop in s.nest(StageRef("out")).loops] == ["y", "x"]


def test_check_is_called_at_each_line_and_takes_back_what_it_refuses(program):
    seen = []

    def check(outputs, schedule):
        seen.append((outputs, len(schedule.lines)))
        if len(schedule.lines) == 2:
            raise ScheduleError("no")

    s = Schedule(program, check=check)
    s["out"].unroll("x", 4)
    with pytest.raises(ScheduleError, match=r"^no$"):
        s["out"].parallel("y")
    assert seen == [(program, 1), (program, 2)]
    assert len(s.lines) == 1
    assert s.nest(StageRef("out")).loops[0].kind.value == "serial"


def test_schedules_of_equal_text_are_equal(program):
    a, b = Schedule(program), Schedule(program)
    a["out"].unroll("x", 4)
    assert a != b
    b["out"].unroll(Named("x"), 4)
    assert a == b
    assert a != str(a)
    assert Schedule.of(program, a.lines) == a
    with pytest.raises(TypeError):
        hash(a)


def test_a_saved_schedule_loads_equal_and_silently(program, tmp_path):
    s = Schedule(program)
    s["a b"].split("for", "if", "for", 8).compute_at("out", "y")
    s["hist"].update(1).vectorize("i", 4)
    s.save(tmp_path / "s.py")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = Schedule.load(tmp_path / "s.py", program)
    assert again == s
    assert again.lines == s.lines


def test_saved_text_runs_as_python_too(program):
    """The text is a small part of Python, though it is never run by loading."""
    s = Schedule(program)
    s["a b"].tile(("y", "for"), ("yo", "xo"), ("y", "x"), (4, 8)).compute_root()
    s["by"].compute_at(s["hist"].update(1), "c")
    other = Schedule(program)
    exec(str(s), {"s": other})
    assert other == s


def edited(program, **changes):
    return replace(program, **changes)


def test_a_program_with_a_new_func_says_so(program):
    text = str(Schedule(program))
    new = Func("new", ("z",), (dtypes.float32,), (Const(dtypes.float32, 0.0),))
    with pytest.warns(StaxWarning, match="new since the schedule was written: new; the default schedule"):
        Schedule.parse(text, edited(program, funcs=(new, *program.funcs)))


def test_a_program_with_a_func_gone_says_so_and_refuses_lines_of_it(program):
    s = Schedule(program)
    text = str(s)
    less = edited(program, funcs=tuple(f for f in program.funcs if f.name != "a b"))
    with pytest.warns(StaxWarning, match="no longer in the program: a b"):
        Schedule.parse(text, less)
    s["a b"].compute_root()
    with pytest.raises(ScheduleError, match="no Func 'a b'"):
        Schedule.parse(str(s), less)


def test_a_program_with_other_dims_or_values_says_so(program):
    text = str(Schedule(program))
    out = program.func("out")
    other = tuple(replace(f, dims=("i", "j")) if f is out else f for f in program.funcs)
    with pytest.warns(StaxWarning, match=re.escape("out had the dims (y, x), and has now (i, j)")):
        Schedule.parse(text, edited(program, funcs=other))
    value = tuple(replace(f, values=(Const(dtypes.float32, 1.0),)) if f is out else f for f in program.funcs)
    with pytest.warns(StaxWarning, match="the program has changed"):
        Schedule.parse(text, edited(program, funcs=value))


def test_a_name_that_is_not_there_is_shown_in_the_file(program, tmp_path):
    path = tmp_path / "old.py"
    path.write_text('# stax schedule 1\ns["hits"].compute_root()\n')
    with pytest.raises(ScheduleError) as error:
        Schedule.load(path, program)
    text = str(error.value)
    assert text.startswith("the program has no Func 'hits'\n")
    assert f'{path}:2\n     2 | s["hits"].compute_root()\n' in text
    assert "did you mean 'hist'?" in text


def test_a_file_that_is_not_text_is_refused(program, tmp_path):
    (tmp_path / "s.py").write_bytes(b"# stax schedule 1\n\xff\xfe")
    with pytest.raises(ScheduleError, match="not UTF-8"):
        Schedule.load(tmp_path / "s.py", program)


def test_an_error_shows_the_line_of_the_user(program):
    s = Schedule(program)
    with pytest.raises(ScheduleError) as error:
        s["out"].unroll("z")
    assert 's["out"].unroll("z")' in str(error.value)
    assert "^" in str(error.value)


def test_a_fingerprint_depends_on_values_and_not_on_places(program):
    def with_index(value):
        f = Func("f", ("x",), (dtypes.int64,), (value,))
        return replace(program, funcs=(f,))

    x = Var(dtypes.int64, "x")
    assert fingerprint(with_index(x)) == fingerprint(with_index(Var(dtypes.int64, "x")))
    assert fingerprint(with_index(x)) != fingerprint(with_index(Var(dtypes.int64, "y")))
    assert fingerprint(with_index(Const(dtypes.int64, 1))) != fingerprint(with_index(Const(dtypes.int64, 2)))
    assert re.fullmatch("[0-9a-f]{16}", fingerprint(program))


LOOPS = st.sampled_from(["y", "x", "c", "i", "r.y", "r.x", "for", "yo", "yi", "x.in", "a b"])
FUNCS = st.sampled_from(["bx", "by", "hist", "a b", "out"])
SIZES = st.integers(0, 9)
PAIR = st.tuples(LOOPS, LOOPS)
CALLS = st.one_of(
    st.tuples(st.just("split"), st.tuples(LOOPS, LOOPS, LOOPS, SIZES)),
    st.tuples(st.just("tile"), st.tuples(PAIR, PAIR, PAIR, st.tuples(SIZES, SIZES))),
    st.tuples(st.just("fuse"), st.tuples(LOOPS, LOOPS, LOOPS)),
    st.tuples(st.just("reorder"), st.lists(LOOPS, max_size=3).map(tuple)),
    st.tuples(st.sampled_from(["vectorize", "parallel", "unroll"]), st.tuples(LOOPS) | st.tuples(LOOPS, SIZES)),
    st.tuples(st.sampled_from(["inline", "compute_root", "store_root"]), st.just(())),
    st.tuples(st.sampled_from(["compute_at", "store_at"]), st.tuples(FUNCS, LOOPS)),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(FUNCS, st.integers(-1, 1), CALLS), max_size=25))
def test_any_schedule_comes_back_from_its_text(program, steps):
    """Lines that are refused leave no trace; those that are taken are replayed alike from text."""
    s = Schedule(program)
    for func, update, (word, args) in steps:
        try:
            stage = s[func] if update < 0 else s[func].update(update)
            getattr(stage, word)(*args)
        except ScheduleError:
            continue
    again = Schedule.parse(str(s), program)
    assert again == s
    assert again.lines == s.lines
    assert [show_directive(line.directive) for line in again.lines] == [
        show_directive(line.directive) for line in s.lines
    ]
    outcomes = []
    for each in (s, again):
        try:
            outcomes.append(each.resolved())
        except StaxError as error:
            outcomes.append(error.message)
    assert outcomes[0] == outcomes[1]


def test_a_func_is_known_by_itself_where_another_has_its_name():
    x, a = sx.Var("x"), sx.Input("f", sx.int32, 1)
    f, g = sx.Func("f"), sx.Func("f")
    f[x] = a[x] + 1
    g[x] = f[x] * 2
    s = Schedule(g)
    s[f].compute_root()
    s[g].vectorize(x, 8)
    assert [str(line.at) for line in s.lines] == ["f.2", "f.3"]
    assert Schedule.parse(str(s), g) == s
    with pytest.raises(ScheduleError, match="'f' is an Input"):
        s[a].vectorize("d0", 8)
    other = sx.Func("f")
    other[x] = x
    with pytest.raises(ScheduleError, match="no part of the program"):
        s[other]
