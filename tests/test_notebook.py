"""What a notebook shows of programs, schedules, kernels and errors: well-formed HTML in which nothing is a user's."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

import stax as sx
from stax import notebook
from stax.source import Span

HOSTILE = "<script>alert(1)</script>"
VOID = {"br", "hr", "img", "input", "meta", "link"}


class Reader(HTMLParser):
    """Keeps what is open, what was seen, and the text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag, attrs):
        assert tag not in VOID
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(thing) -> Reader:
    reader = Reader()
    reader.feed(thing._repr_html_())
    reader.close()
    assert not reader.open
    assert reader.tags <= {"div", "b", "code", "pre", "details", "summary", "table", "tr", "td", "span"}
    return reader


def program(name="f"):
    y, x = sx.vars("y x")
    a = sx.Input("a", sx.float32, 2)
    f, g = sx.Func(name), sx.Func("g")
    f[y, x] = a[y, x] * 2
    g[y, x] = f[y, x] + f[y + 1, x]
    return g


def test_a_func_is_shown_as_the_program_that_it_computes():
    assert "g[y, x] = f[y, x] + f[y + 1, x]" in read(program()).text


def test_a_pipeline_is_shown_as_its_text():
    assert "input a: float32[d0, d1]" in read(sx.Schedule(program()).pipeline).text


@pytest.mark.parametrize("name", [HOSTILE, "a&amp;b", "&quot;x", "</pre><b>"])
def test_names_are_text_and_no_markup(name):
    g = program(name)
    s = sx.Schedule(g)
    s[name].compute_root().parallel("y")
    kernel = sx.compile(g, s)
    for thing in (g, s.pipeline, s, kernel, sx.Func(name)):
        assert name in read(thing).text
        assert "<script" not in thing._repr_html_()


def test_a_func_without_a_definition_says_so_and_may_still_be_defined():
    x, f = sx.Var("x"), sx.Func("f", sx.float64, shape=(5,))
    assert "is no program yet" in read(f).text
    f[0] = 1
    assert "is no program yet" in read(f).text
    f[x] = f[x - 1] + 1.5
    assert "f[x]" in read(f).text
    assert sx.realize(f).dtype == np.float64


def test_showing_a_func_changes_nothing_of_what_may_be_said_next():
    x, f, g = sx.Var("x"), sx.Func("f"), sx.Func("g")
    f[x] = 1
    read(f)
    f[0] = f[0] + 1
    g[x] = f[x] + 1
    assert sx.realize(g, (2,)).tolist() == [3, 2]


def test_a_directive_stands_beside_the_line_that_said_it():
    g = program()
    s = sx.Schedule(g)
    s[g].parallel("y")
    line = s.lines[0].directive.span.line
    shown = read(s).text
    assert 's["g"].parallel("y")' in shown
    assert re.search(rf"test_notebook\.py:{line}\b", shown)
    assert "# stax schedule 1" in shown


def test_a_directive_that_was_worked_out_stands_beside_its_reason():
    s = sx.auto_schedule(program())
    reasons = [line.why for line in s.lines if line.why]
    assert reasons
    shown = read(s).text
    assert all(why in shown for why in reasons)


def test_a_kernel_shows_its_signature_its_contract_its_schedule_and_its_loops():
    kernel = sx.compile(program())
    reader = read(kernel)
    assert "details" in reader.tags
    for part in (str(kernel.signature), "bitwise", "llvm", 's["g"].parallel("y", 32)', "parallel for g.y"):
        assert part in reader.text


def test_an_error_shows_the_lines_that_it_underlines():
    x, f = sx.Var("x"), sx.Func("f", sx.int32, shape=(9,))
    f[0] = 1
    f[x] = f[x - 1] + 1
    s = sx.Schedule(f)
    s[f].parallel(x)
    with pytest.raises(sx.errors.LegalityError) as caught:
        sx.check(f, s)
    shown = read(caught.value).text
    assert "LegalityError" in shown
    assert "s[f].parallel(x)" in shown
    assert "^^^^" in shown


def test_ipython_shows_a_refusal_instead_of_a_traceback_through_stax():
    with pytest.raises(sx.errors.DefinitionError) as caught:
        sx.Func("")
    assert caught.value._render_traceback_()[0].startswith("DefinitionError: '' is no name of a Func\n")


def test_an_error_that_names_no_line_leaves_the_traceback_as_it_is():
    assert not hasattr(sx.errors.UserError("what"), "_render_traceback_")
    assert not hasattr(sx.errors.InternalError("what"), "_render_traceback_")


def test_a_cell_is_named_as_ipython_names_it(monkeypatch):
    cells = SimpleNamespace(format_code_name=lambda file: ("Cell", "In[7]") if file.endswith("12.py") else None)
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(compile=cells))
    monkeypatch.setitem(__import__("sys").modules, "IPython", shell)
    assert Span("/tmp/ipykernel_99/12.py", 3).place == "In[7]:3"
    assert Span("/tmp/ipykernel_99/13.py", 3).place == "/tmp/ipykernel_99/13.py:3"
    assert Span("/elsewhere/12.py", 3).place == "/elsewhere/12.py:3"


def test_a_very_long_text_is_cut_and_says_so():
    lines = "\n".join(str(k) for k in range(notebook.MOST_LINES + 5))
    assert "... and 5 lines more" in notebook.text(lines)
