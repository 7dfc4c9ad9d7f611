"""Schedules as text."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stax.errors import ScheduleError, StaxError, UnsupportedError
from stax.schedule import directives as said
from stax.schedule.directives import Line, StageRef
from stax.schedule.script import FIRST, Program, quote, read, show

PROGRAM = Program("0123456789abcdef", {"out": ("y", "x"), "a b": ("for",), "total": ()})


def body(text):
    return read(f"{FIRST}\n{text}", "s.py").lines


def test_text_is_one_statement_for_each_run_of_one_stage():
    lines = (
        Line(StageRef("out"), said.Split("y", "yo", "yi", 64)),
        Line(StageRef("out"), said.Parallel("yo")),
        Line(StageRef("gray"), said.ComputeAt("out", None, "yi", "yo")),
        Line(StageRef("hist", 1), said.Unroll("r.x", 4)),
        Line(StageRef("gray"), said.StoreAt("hist", 1, "r.y")),
        Line(StageRef("gray"), said.ComputeAt("hist", 0, "c")),
        Line(StageRef("out"), said.Tile(("x",), ("xo",), ("xi",), (8,))),
        Line(StageRef("out"), said.Reorder(("xi", "xo"))),
        Line(StageRef("out"), said.Fuse("xi", "xo", "t")),
        Line(StageRef("a b"), said.Inline()),
    )
    assert show(PROGRAM, lines) == (
        "# stax schedule 1\n"
        '# 0123456789abcdef out(y, x) "a b"(for) total()\n'
        's["out"].split("y", "yo", "yi", 64).parallel("yo")\n'
        's["gray"].compute_at("out", "yi", store="yo")\n'
        's["hist"].update(0).unroll("r.x", 4)\n'
        's["gray"].store_at(s["hist"].update(0), "r.y").compute_at(s["hist"], "c")\n'
        's["out"].tile(("x",), ("xo",), ("xi",), (8,)).reorder("xi", "xo").fuse("xi", "xo", "t")\n'
        's["a b"].inline()\n'
    )
    assert read(show(PROGRAM, lines)) == read(show(PROGRAM, lines))
    assert read(show(PROGRAM, lines)).lines == lines
    assert read(show(PROGRAM, lines)).program == PROGRAM


def test_a_directive_knows_its_place_in_the_file():
    (line,) = body('  s["out"].unroll( "x" , 4 )  # as it was')
    assert line.directive.span is not None
    assert (line.directive.span.file, line.directive.span.line) == ("s.py", 2)
    assert (line.directive.span.column, line.directive.span.end) == (11, 29 - 1)


def test_comments_blank_lines_and_line_ends_of_windows_are_nothing():
    assert body('\r\n# a comment\r\n\r\n s["f"].inline() # why\r\n') == (Line(StageRef("f"), said.Inline()),)


def test_update_may_follow_a_directive_of_the_definition():
    assert body('s["f"].compute_root().update(1).parallel("y")') == (
        Line(StageRef("f"), said.ComputeRoot()),
        Line(StageRef("f", 2), said.Parallel("y")),
    )


def test_single_quotes_and_escapes_are_those_of_python():
    (line,) = body(r"""s['a"\'\\\x41\u00e9\U0001F600'].inline()""")
    assert line.at.func == "a\"'\\Aé😀"


@pytest.mark.parametrize(
    ("text", "column", "wanted"),
    [
        ("import os", 1, 's["..."]'),
        ('__import__("os").system("true")', 1, 's["..."]'),
        ('s["f"]', 7, "'.' and a directive"),
        ("s[f].inline()", 3, "a string"),
        ('s[f"f"].inline()', 3, "a string"),
        ('s[b"f"].inline()', 3, "a string"),
        ('s["f" "g"].inline()', 7, "']'"),
        ('s["f"].inline', 14, "'('"),
        ('s["f"].inline() + 1', 17, "'.'"),
        ('s["f"].inline(); s["g"].inline()', 16, "'.'"),
        ('s["f"].inline() s["g"].inline()', 17, "'.'"),
        ('s["f"].unroll("x", (lambda: 4)())', 21, "a string or a number"),
        ('s["f"].unroll("x", 2 ** 3)', 22, "',' or ')'"),
        ('s["f"].unroll("x", n)', 21, "'='"),
        ('s["f"].unroll(*x)', 15, "a string or a number"),
        ('s["f"].unroll("x", [4])', 20, "a string or a number"),
        ('s["f"].unroll("x", 0x10)', 20, "a string or a number"),
        ('s["f"].unroll("x", 1_0)', 20, "a string or a number"),
        ('s["f"].unroll("x", 1234567890123456789)', 20, "a shorter number"),
        ('s["f"].unroll("x"', 18, "',' or ')'"),
        ('s["f"].unroll("x', 15, "a string or a number"),
        ('s["f"].unroll("\\q")', 16, "an escape"),
        ('s["f"].unroll("\\U00110000")', 16, "an escape"),
        ('s["f"].tile(("y"), ("a",), ("b",), (1,))', 17, "','"),
        ('s["f"].tile(((("y",),),), ("a",), ("b",), (1,))', 15, "a string or a number"),
        ('s["f"].update(-1).inline()', 8, "update(k)"),
        ('s["f"].update("0").inline()', 8, "update(k)"),
        ('s["f"].compute_at(s["g"].inline(), "x")', 26, "'update'"),
        ('s["f"].compute_at("g", "x", store="y", store="z")', 46, "store only once"),
        ('s["f"].compute_at(store="y", "g")', 30, "a named argument"),
        ('t["f"].inline()', 1, 's["..."]'),
        ("s['f'].inline()\x0c", 16, "'.'"),
        ('s["f"].__class__()', 8, "there is no directive"),
    ],
)
def test_anything_but_the_grammar_is_refused_with_its_place(text, column, wanted):
    with pytest.raises(ScheduleError) as error:
        body('s["ok"].inline()\n' + text)
    assert error.value.message.startswith(f"s.py, line 3, column {column}: ")
    assert wanted in error.value.message


@pytest.mark.parametrize(
    ("text", "kind", "match"),
    [
        ('s["f"].split("y", "yo", "yi")', ScheduleError, "split is written split"),
        ('s["f"].split("y", "yo", "yi", 2.5)', ScheduleError, "a factor is an int, not 2.5"),
        ('s["f"].split("y", "yo", "yi", "8")', ScheduleError, "a factor is an int, not '8'"),
        ('s["f"].split("y", "yo", "yi", 8, tail="none")', ScheduleError, "there is no tail 'none'"),
        ('s["f"].split("y", "yo", "yi", 8, n=2)', ScheduleError, "split is written split"),
        ('s["f"].vectorise("x")', ScheduleError, "there is no directive 'vectorise'"),
        ('s["f"].online("g")', UnsupportedError, "'online' comes with a later version"),
        ('s["f"].rfactor("r.x", "u")', ScheduleError, "rfactor is written rfactor"),
        ('s["f"].accumulators("r.x")', ScheduleError, "accumulators is written accumulators"),
        ('s["f"].split_reduction("r.x", 8.5, "u", "p")', ScheduleError, "a factor is an int"),
        ('s["f"].atomic("x")', ScheduleError, "atomic is written atomic"),
        ('s["f"].reassociate(1)', ScheduleError, "reassociate is written reassociate"),
        ('s["f"].fold_storage("y")', ScheduleError, "fold_storage is written fold_storage"),
        ('s["f"].vectorize("x", upto="8")', ScheduleError, "a factor is an int"),
        ('s["f"].inline("x")', ScheduleError, "inline is written inline"),
        ('s["f"].reorder("y", 3)', ScheduleError, "reorder is written"),
        ('s["f"].tile(("y", 1), ("a", "b"), ("c", "d"), (2, 2))', ScheduleError, "tile is written"),
        ('s["f"].compute_at("g", "x", store=3)', ScheduleError, "compute_at is written"),
        ('s["f"].unroll(s["g"])', ScheduleError, "unroll is written"),
    ],
)
def test_a_directive_that_is_not_well_formed_is_refused_with_its_place(text, kind, match):
    with pytest.raises(kind, match=match) as error:
        body(text)
    assert error.value.message.startswith("s.py, line 2, column 8: ")


@pytest.mark.parametrize("text", ["", "\n", 's["f"].inline()\n', "# stax schedule\n", "# Stax Schedule 1\n"])
def test_a_text_without_its_first_line_is_refused(text):
    with pytest.raises(ScheduleError, match="begins with its version"):
        read(text)


def test_a_later_version_is_refused_by_its_number():
    with pytest.raises(ScheduleError, match="a schedule of version 2"):
        read("# stax schedule 2\n")


@pytest.mark.parametrize("second", ["", "# by hand", "# 0123456789abcdef out(y", "# 0123456789abcdefout(y)"])
def test_the_second_line_may_be_missing_or_a_comment(second):
    got = read(f'{FIRST}\n{second}\ns["f"].inline()')
    assert got.program is None
    assert len(got.lines) == 1


NAMES = st.text(min_size=1, max_size=6) | st.sampled_from(["for", "a b", "out.2", "r.x", "f.update(0)", '"', "\\", "s"])
STAGES = st.builds(StageRef, NAMES, st.integers(0, 4))
MAYBE = st.none() | st.integers(1, 99)
TUPLES = st.lists(NAMES, max_size=3).map(tuple)
ANY = st.one_of(
    st.builds(said.Split, NAMES, NAMES, NAMES, st.integers(-(10**17), 10**17)),
    st.builds(said.Tile, TUPLES, TUPLES, TUPLES, st.lists(st.integers(-9, 99), max_size=3).map(tuple)),
    st.builds(said.Fuse, NAMES, NAMES, NAMES),
    st.builds(said.Reorder, TUPLES),
    st.builds(said.Vectorize, NAMES, MAYBE),
    st.builds(said.Parallel, NAMES, MAYBE),
    st.builds(said.Unroll, NAMES, MAYBE),
    st.builds(said.Inline),
    st.builds(said.ComputeRoot),
    st.builds(said.ComputeAt, NAMES, st.none() | st.integers(0, 3), NAMES, st.none() | NAMES),
    st.builds(said.StoreAt, NAMES, st.none() | st.integers(0, 3), NAMES),
    st.builds(said.StoreRoot),
)
DIGESTS = st.text("0123456789abcdef", min_size=16, max_size=16)
PROGRAMS = st.builds(Program, DIGESTS, st.dictionaries(NAMES, TUPLES, max_size=4))


@given(PROGRAMS, st.lists(st.builds(Line, STAGES, ANY), max_size=10))
def test_text_read_again_says_the_same(program, lines):
    """Whatever the names are: the text holds each on one line, printable."""
    text = show(program, lines)
    got = read(text)
    assert got.lines == tuple(lines)
    assert got.program == program
    assert show(program, got.lines) == text
    ast.parse(text)


@given(st.text(max_size=8))
def test_a_name_is_quoted_as_python_would_read_it(name):
    assert ast.literal_eval(quote(name)) == name


PIECES = [
    "s",
    "[",
    "]",
    '"f"',
    ".",
    "inline",
    "(",
    ")",
    "()",
    ",",
    "4",
    "=",
    "update",
    "unroll",
    "#",
    " ",
    "'",
    "\\",
    "\n",
]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_no_text_does_anything_but_parse_or_be_refused(text):
    try:
        lines = body(text)
    except StaxError as error:
        message = error.message
    else:
        message = f"line {len(lines)}"
    assert "line" in message
