"""What a refusal says stays right when the program has other names and other sizes: the points are taken at their word.

Each wrong schedule stands here three times. Of every message the two points, the cell and the loop are read back and
judged by an oracle that runs them; its hint, where it has one, is followed, and the program is legal then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stax as sx
from stax.errors import LegalityError, StaxError
from stax.legality.witness import Witness
from stax.schedule.directives import ComputeRoot, Line, StageRef
from tests.legality.confirm import confirmed
from tests.refusals.run import run

FOLDER = Path(__file__).parent / "messages"

INTERCHANGE = r"""
y, x = sx.vars("y x")
a = sx.Input("a", sx.float32, 2)
g = sx.Func("g", shape=(9, 9))
g[y, x] = a[y, x]
r = sx.RDom("r", i=(1, 9), j=(0, 8))
g[r.i, r.j] = g[r.i, r.j] + g[r.i - 1, r.j + 1]
s = sx.Schedule(g)
s[g].update(0).reorder("r.j", "r.i")
sx.check(g, s)
"""
SCAN = r"""
y, x = sx.vars("y x")
a = sx.Input("a", sx.float32, 2)
g = sx.Func("g", sx.float32, shape=(9, 9))
g[y, x] = sx.select(x >= 1, g[y, x - 1], 0) + a[y, x]
s = sx.Schedule(g)
s[g].{directive}
sx.check(g, s)
"""
FOLD = r"""
y, x = sx.vars("y x")
a = sx.Input("a", sx.float32, 2)
g, h = sx.Func("g"), sx.Func("h")
g[y, x] = a[y, x] * 2
h[y, x] = g[y, x] + g[y + 3, x]
s = sx.Schedule(h)
s[h].compute_root()
s[g].compute_at(h, y, store=y)
s[g].fold_storage(y, 3)
sx.check(h, s)
"""
OUTSIDE = r"""
y, x = sx.vars("y x")
a = sx.Input("a", sx.float32, 2)
g, f, h = sx.Func("g"), sx.Func("f"), sx.Func("h")
g[y, x] = a[y, x] * 2
f[y, x] = g[y, x] + 1
h[y, x] = g[y, x] + f[y, x]
s = sx.Schedule(h)
s[f].compute_root()
s[g].compute_at(h, y)
sx.check(h, s)
"""
HEAT = r"""
t, x = sx.vars("t x")
a = sx.Input("a", sx.float32, 1)
g = sx.Func("g", shape=(9, 9))
g[0, x] = a[x]
g[t, x] = sx.select((x >= 1) & (x < 8), g[t - 1, x - 1] + g[t - 1, x + 1], g[t - 1, x])
s = sx.Schedule(g)
"""
TILE = 's[g].{skew}tile((t, x), ("to", "xo"), ("ti", "xi"), (4, 4)){wave}\nsx.check(g, s)\n'
SUM = r"""
y = sx.Var("y")
a = sx.Input("a", sx.float32, 2)
r = sx.RDom("r", i=9)
g = sx.Func("g", shape=(9,))
g[y] = np.float32(0)
g[y] += a[y, r]
s = sx.Schedule(g)
s[g].update(0).reverse(r)
sx.check(g, s)
"""
PLACE = r"""
x = sx.Var("x")
a = sx.Input("a", sx.float32, 1)
g = sx.Func("g", shape=a.shape)
g[x] = sx.select(x >= 1, a[x - 1], 0) + a[x]
s = sx.Schedule(g)
s[g].overwrite(a)
sx.check(g, s)
"""
CYCLE = r"""
x = sx.Var("x")
a = sx.Input("a", sx.float32, 1)
g, h = sx.Func("g", sx.float32, shape=(9,)), sx.Func("h", sx.float32, shape=(9,))
g[x] = h[x] + a[x]
h[x] = g[x] * 2
sx.check(h)
"""
UNKNOWN = r"""
x = sx.Var("x")
a = sx.Input("a", sx.int64, 1)
g = sx.Func("g", shape=(9,))
g[x] = a[x]
r = sx.RDom("r", k=(sx.clip(a[0], 0, 3), 9))
g[r] = g[r - r % 7] + 1
s = sx.Schedule(g)
s[g].update(0).split(r, "ro", "ri", 4).reorder("ri", "ro")
sx.check(g, s)
"""

MESSAGES = {
    "interchange with distance (1, -1)": INTERCHANGE,
    "a parallel scan": SCAN.replace("{directive}", "parallel(x)"),
    "a vectorised recurrence": SCAN.replace("{directive}", "vectorize(x, 4)"),
    "a fold one too small": FOLD,
    "a reader outside the loop": OUTSIDE,
    "a time tile without a skew": HEAT + TILE.format(skew="", wave=""),
    "a forgotten wavefront": HEAT + TILE.format(skew="skew(x, t, 1).", wave='.parallel("xo")'),
    "a float sum reversed": SUM,
    "in place in the wrong direction": PLACE,
    "a cycle": CYCLE,
    "an unknown": UNKNOWN,
}
NAMES = (
    {},
    {"g": "image", "x": "col", "y": "row", "t": "step", "a": "src", "h": "dst"},
    {"g": "u", "x": "k", "y": "m"},
)
SIZES = ({}, {"9": "23", "8": "22"}, {"9": "12", "8": "11"})


def variant(program: str, k: int) -> str:
    """Return `program` with other names and sizes."""
    names, sizes = NAMES[k], SIZES[k]
    out = re.sub(r"\b[a-z]\b(?!\()", lambda m: names.get(m[0], m[0]), program)
    return re.sub(r"\b[89]\b", lambda m: sizes.get(m[0], m[0]), out)


def refused(program: str) -> StaxError:
    with pytest.raises(StaxError) as found:
        run(program)
    return found.value


@pytest.mark.parametrize("title", MESSAGES)
def test_the_text_of_a_refusal(title: str, golden: Callable[[str, Path], None]) -> None:
    texts = [f"{type(e).__name__}: {e}\n" for e in (refused(variant(MESSAGES[title], k)) for k in range(3))]
    golden("\n".join(texts), FOLDER / f"{re.sub(r'[^a-z0-9]+', '_', title.lower()).strip('_')}.txt")


WITNESSED = [
    "interchange with distance (1, -1)", "a parallel scan", "a vectorised recurrence", "a time tile without a skew",
    "a forgotten wavefront", "a float sum reversed", "in place in the wrong direction",
]  # fmt: skip


@pytest.mark.parametrize("title", WITNESSED)
@pytest.mark.parametrize("k", range(3))
def test_the_two_points_are_such(title: str, k: int) -> None:
    """They exist, touch the cell that is named, and the loops run them the other way round or at the same time."""
    made = scheduled(variant(MESSAGES[title], k))
    with pytest.raises(LegalityError) as error:
        sx.check(made.outputs, made)
    found = error.value.witness
    assert isinstance(found, Witness)
    extents = {"": 9, "image": 23, "u": 12}[NAMES[k].get("g", "")]
    sizes = {i.name: (extents,) * len(i.dims) for i in made.pipeline.inputs}
    sizes |= {name: (extents,) * len(made.pipeline.func(name).dims) for name in made.pipeline.outputs}
    lines = [Line(StageRef(f.name), ComputeRoot()) for f in made.pipeline.funcs]
    assert not confirmed(made.pipeline, (*lines, *made.lines), sizes, found)
    words = str(error.value)
    for point in found.points:
        assert f"({', '.join(f'{name} = {value}' for name, value in point)})" in words
    assert f"[{', '.join(map(str, found.cell))}]" in words
    assert f"`{found.loop}`" in words


def scheduled(program: str) -> Any:
    """Return the schedule that `program` makes before it is checked."""
    names: dict[str, Any] = {}
    exec(program.replace("sx.check(", "(lambda *_: None)("), {"sx": sx, "np": __import__("numpy")}, names)
    return names["s"]


@pytest.mark.parametrize("k", range(3))
def test_the_hint_of_a_time_tile_is_followed_and_legal(k: int) -> None:
    error = refused(variant(MESSAGES["a time tile without a skew"], k))
    skew = re.search(r"say (skew\([^)]*\)) before it", error.hint or "")
    assert skew is not None
    program = variant(HEAT, k).rstrip() + "\n"
    name = NAMES[k].get("g", "g")
    tile = variant(TILE.format(skew="", wave=""), k).replace(f"s[{name}].", f"s[{name}].{skew[1]}.")
    run(program + tile)


@pytest.mark.parametrize("k", range(3))
def test_the_hint_of_a_wrong_direction_in_place_is_followed_and_legal(k: int) -> None:
    error = refused(variant(PLACE, k))
    turn = re.search(r"say (reverse\([^)]*\)) too", error.hint or "")
    assert turn is not None
    target = NAMES[k].get("a", "a")
    run(variant(PLACE, k).replace(f"overwrite({target})", f"overwrite({target}).{turn[1]}"))
