"""Schedule files that hold anything but the grammar: refused in words, with nothing run, read or dropped."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import stax as sx
from stax.errors import ScheduleError, UserError

y, x = sx.vars("y x")
HEAD = "# stax schedule 1\n"


def program() -> tuple[sx.Func, sx.Func]:
    a, f, g = sx.Input("a", sx.int32, 2), sx.Func("f"), sx.Func("g")
    f[y, x] = a[y, x] + 1
    g[y, x] = f[y, x] + f[y + 1, x]
    return f, g


JUNK = {
    "python": 'import os\nos.system("touch {mark}")',
    "an import": '__import__("os").system("touch {mark}")',
    "a call in an argument": 's["g"].parallel(open("{mark}", "w").name)',
    "an f-string": "s[\"g\"].parallel(f\"{{open('{mark}', 'w')}}\")",
    "a raw string": 's["g"].parallel(r"y")',
    "bytes": 's["g"].parallel(b"y")',
    "joined strings": 's["g"].parallel("y" "")',
    "an operator": 's["g"].parallel("y" + "")',
    "a sum": 's["g"].split("y", "yo", "yi", 4 + 4)',
    "a power": 's["g"].split("y", "yo", "yi", 9**9**9)',
    "an attribute": 's["g"].__class__.__subclasses__()',
    "an attribute without a call": 's["g"].parallel',
    "a dunder": 's["g"].__init__("y")',
    "a lambda": 's["g"].parallel(lambda: "y")',
    "a comprehension": '[s["g"].parallel(v) for v in "yx"]',
    "an assignment": 't = s["g"]',
    "a walrus": '(t := s["g"]).parallel("y")',
    "a condition": 'if True: s["g"].parallel("y")',
    "a semicolon": 's["g"].parallel("y"); s["g"].vectorize("x", 8)',
    "a continued line": 's["g"].parallel(\\\n"y")',
    "an open bracket": 's["g"].parallel(' + "(" * 100_000,
    "nested tuples": 's["g"].tile(' + "(" * 2000 + '"y"' + ",)" * 2000 + ")",
    "a huge number": 's["g"].split("y", "yo", "yi", 1' + "0" * 100_000 + ")",
    "a number past 64 bits": 's["g"].split("y", "yo", "yi", 18446744073709551616)',
    "a negative number": 's["g"].split("y", "yo", "yi", -8)',
    "a hexadecimal number": 's["g"].split("y", "yo", "yi", 0x8)',
    "a number with an exponent": 's["g"].split("y", "yo", "yi", 1e400)',
    "not a number": 's["g"].split("y", "yo", "yi", nan)',
    "True": 's["g"].split("y", "yo", "yi", True)',
    "None": 's["g"].parallel(None)',
    "a star": 's["g"].parallel(*"y")',
    "two stars": 's["g"].parallel(**{{"v": "y"}})',
    "a nul": 's["g"].parallel("y\0")',
    "a nul line": "\0",
    "a form feed": '\fs["g"].parallel("y")\v',
    "a vertical line end": 's["g"].parallel("y")\u2028s["g"].vectorize("x", 8)',
    "a byte order mark inside": '\ufeffs["g"].parallel("y")',
    "text right to left": 's["g"].parallel("\u202ey")',
    "a lone surrogate escape": 's["g"].parallel("\\ud800")',
    "an escape of a line end": 's["g"].parallel("y\\n")',
    "an unknown escape": 's["g"].parallel("\\q")',
    "a name of 100,000": 's["' + "g" * 100_000 + '"].compute_root()',
    "an empty name": 's[""].compute_root()',
    "a number for a name": "s[0].compute_root()",
    "a slice": 's["g":"f"].compute_root()',
    "another variable": 't["g"].compute_root()',
    "no directive": 's["g"]',
    "an update out of range": 's["g"].update(99999999999999999999).parallel("y")',
    "an update of text": 's["g"].update("0").parallel("y")',
    "html": "<html><body>404 Not Found</body></html>",
    "json": '{{"g": ["parallel", "y"]}}',
    "a merge conflict": '<<<<<<< HEAD\ns["g"].parallel("y")\n=======',
    "a deep chain": 's["g"]' + '.parallel("y")' * 5000 + '.split("y", "x", "yi", 4)',
    "a dead loop": 's["g"].split("y", "yo", "yi", 4).parallel("y")',
    "a loop of another Func": 's["g"].parallel("f.y")',
}


@pytest.mark.parametrize("title", JUNK)
def test_anything_but_the_grammar_is_refused_and_not_run(title: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    path = tmp_path / "some.schedule"
    text = JUNK[title]
    path.write_text(HEAD + (text.format(mark=mark) if "{" in text else text), encoding="utf-8", newline="")
    start = time.process_time()
    with pytest.raises(UserError) as refused:
        sx.Schedule.load(path, program()[1])
    assert time.process_time() - start < 2
    assert not mark.exists()
    assert len(str(refused.value)) < 2000, "the text of an error is for reading"


@pytest.mark.parametrize(
    "data",
    [b"", b"\n\n\n", b"\x7fELF\x02\x01\x01", b"\xff\xfe#\x00", bytes(range(256)), b"PK\x03\x04", b"# stax schedule",
     b"# stax schedule 1.0\n", b"# stax schedule 99999999999999999999\n", b"#!/usr/bin/python\n# stax schedule 1\n",
     b"# stax schedule 1\n\x80\n", b"# stax schedule 1\ns[\"\xc3\x28\"].compute_root()\n", b"\0" * 4096],
    ids=repr,
)  # fmt: skip
def test_binary_junk_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "junk"
    path.write_bytes(data)
    with pytest.raises(ScheduleError) as refused:
        sx.Schedule.load(path, program()[1])
    assert len(str(refused.value)) < 2000


def test_random_bytes_and_cut_or_changed_texts_do_nothing_but_parse_or_be_refused() -> None:
    f, g = program()
    s = sx.Schedule(g)
    s[g].split(y, "yo", "yi", 8).parallel("yo").vectorize(x, 8)
    s[f].compute_at(g, "yo", store="yo").unroll(y, 2)
    text = str(s)
    rng = np.random.default_rng(0)
    lengths: list[int] = []
    alphabet = list("abgsxyo\"().,[]0123456789 \n\\'#_-\0\u00e9")
    for k in range(400):
        changed = list(text)
        for _ in range(1 + k % 4):
            at = int(rng.integers(len(changed)))
            if k % 3 == 0:
                del changed[at]
            else:
                changed.insert(at, alphabet[int(rng.integers(len(alphabet)))])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                sx.Schedule.parse("".join(changed), g).resolved()
            except UserError as refused:
                lengths.append(len(str(refused)))
    assert len(lengths) > 100
    assert max(lengths) < 2000


def test_a_missing_file_is_what_python_says() -> None:
    with pytest.raises(FileNotFoundError):
        sx.Schedule.load("/nonexistent/some.schedule", program()[1])


def test_a_schedule_of_an_edited_program_names_what_is_missing() -> None:
    f, g = program()
    s = sx.Schedule(g)
    s[f].compute_root()
    k, h = sx.Func("k"), sx.Func("g")
    a = sx.Input("a", sx.int32, 2)
    k[y, x] = a[y, x]
    h[y, x] = k[y, x] + k[y + 1, x]
    with pytest.raises(ScheduleError, match="no Func 'f'"):
        sx.Schedule.parse(str(s), h)
