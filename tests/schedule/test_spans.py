"""An error underlines the directive that it is about, not the chain that it stands in."""

import pytest

import stax as sx

t, x = sx.vars("t x")


def steps() -> sx.Func:
    u = sx.Func("u", sx.int32, shape=(9, 30))
    u[0, x] = 1
    u[t, x] = u[t - 1, x]
    return u


def test_a_directive_in_a_chain_is_underlined_alone() -> None:
    u = steps()
    s = sx.Schedule(u)
    s[u].split(x, "xo", "xi", 8).parallel(t).vectorize("xi")
    with pytest.raises(sx.errors.LegalityError) as caught:
        sx.check(u, s)
    lines = str(caught.value).splitlines()
    line = next(k for k, text in enumerate(lines) if ".parallel(t)" in text)
    start, end = lines[line].index("parallel(t)"), lines[line].index(".vectorize")
    assert lines[line + 1].index("^") == start
    assert lines[line + 1].count("^") == end - start


def test_a_chain_on_several_lines_shows_the_line_of_the_directive() -> None:
    u = steps()
    s = sx.Schedule(u)
    (
        s[u]
        .split(x, "xo", "xi", 8)
        .parallel(t)
        .vectorize("xi")
    )  # fmt: skip
    with pytest.raises(sx.errors.LegalityError, match=r"\| +\^{11} asked for here"):
        sx.check(u, s)
