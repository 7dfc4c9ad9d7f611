"""Schedules that no GPU can run, or that would change a value there: the full text of each error is beside the test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stax.errors import StaxError
from tests.refusals.run import run

FOLDER = Path(__file__).parent / "gpu"

POINTS = r"""
y, x = sx.vars("y x")
a = sx.Input("a", sx.float32, 2)
f = sx.Func("f")
f[y, x] = a[y, x] * 2
s = sx.Schedule(f)
"""
SCAN = r"""
y, x = sx.vars("y x")
a = sx.Input("a", sx.float32, 2)
f = sx.Func("f", shape=a.shape)
f[y, 0] = a[y, 0]
f[y, x] = f[y, x - 1] * 0.5 + a[y, x]
s = sx.Schedule(f)
"""
PRODUCT = r"""
y, x = sx.vars("y x")
a, b = sx.Input("a", sx.float16, 2), sx.Input("b", sx.float16, 2)
k = sx.RDom("k", k=a.shape[1])
f = sx.Func("f")
f[y, x] = sx.float32(0)
f[y, x] += sx.cast(a[y, k], sx.float32) * sx.cast(b[k, x], sx.float32)
s = sx.Schedule(f)
tile = s[f].update(0).reassociate().parallel(y, 128).parallel(x, 256)
"""
COMPILE = 'sx.compile(f, s, target="cuda")\n'
CASES: dict[str, str] = {
    "more threads than a program has": POINTS + "s[f].parallel(y).vectorize(x, 1024).warps(64)\n",
    "warps that are no power of two": POINTS + "s[f].parallel(y).vectorize(x, 1024).warps(3)\n",
    "a block of too many elements": POINTS
    + 's[f].parallel(y, 4096).parallel(x, 1024).reorder(y, x, "y.in", "x.in").vectorize("y.in").vectorize("x.in")\n',
    "too many lanes of one loop": POINTS + "s[f].parallel(y).vectorize(x, 1 << 17)\n",
    "tiles that shared memory does not hold": PRODUCT
    + 'tile.split("k.k", "k", "ki", 512).reorder("y", "x", "k", "y.in", "x.in", "ki").vectorize("y.in")\n'
    + 'tile.vectorize("x.in").vectorize("ki").matrix_unit("y.in", "x.in", "ki")\n',
    "stages that shared memory does not hold": PRODUCT
    + 'tile.split("k.k", "k", "ki", 64).reorder("y", "x", "k", "y.in", "x.in", "ki").vectorize("y.in")\n'
    + 'tile.vectorize("x.in").vectorize("ki").matrix_unit("y.in", "x.in", "ki").stages(12)\n',
    "a recurrence in parallel": SCAN + "s[f].parallel(x)\n",
    "a recurrence in lanes": SCAN + "s[f].parallel(y).vectorize(x, 64)\n",
    "a matrix unit for no product": POINTS + 's[f].vectorize(x, 64).matrix_unit("y", "x", "x.in")\n',
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_GPU_cannot_run_is_refused_in_these_words(name: str, golden) -> None:
    with pytest.raises(StaxError) as error:
        run(CASES[name] + COMPILE)
    text = re.sub(r'File ".*?"', 'File "..."', str(error.value))
    golden(f"{type(error.value).__name__}: {text}\n", FOLDER / f"{name.replace(' ', '_')}.txt")


def test_schedules_at_the_limits_are_taken() -> None:
    """32 warps, a block of 2^20 elements, and tiles of products that are used every day."""
    run(
        POINTS
        + 's[f].parallel(y, 1024).parallel(x, 1024).reorder(y, x, "y.in", "x.in")\n'
        + 's[f].vectorize("y.in").vectorize("x.in").warps(32)\n'
        + COMPILE
    )
    run(
        PRODUCT
        + 'tile.split("k.k", "k", "ki", 64).reorder("y", "x", "k", "y.in", "x.in", "ki").vectorize("y.in")\n'
        + 'tile.vectorize("x.in").vectorize("ki").matrix_unit("y.in", "x.in", "ki").stages(4).warps(8)\n'
        + COMPILE
    )
