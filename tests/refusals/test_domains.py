"""Cells that a Func with a domain does not have: the point that asks for one, and what to do instead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stax.errors import StaxError
from tests.refusals.run import run

FOLDER = Path(__file__).parent / "domains"

TRIANGLE = r"""
i, j = sx.vars("i j")
a = sx.Input("a", sx.float32, 1)
n = a.shape[0]
t = sx.Func("t", shape=(n, n), where=lambda i, j: j <= i)
t[i, j] = a[i] * a[j]
f = sx.Func("f")
"""

REFUSALS = {
    "a read outside a triangle": TRIANGLE + "f[i, j] = t[i, j] + t[j, i]\nsx.compile(f)",
    "a read outside by an update": TRIANGLE
    + 'r = sx.RDom("r", k=n)\nf[i] = np.float32(0)\nf[i] += t[i, r.k]\nsx.compile(f)',
    "a condition that is one too wide": TRIANGLE + "f[i, j] = sx.select(j <= i + 1, t[i, j], 0)\nsx.compile(f)",
    "a read at data": TRIANGLE + 'b = sx.Input("b", sx.uint8, 1)\nf[i] = t[sx.clip(b[i], 0, n - 1), 0]\n'
    "f2 = sx.Func('f2')\nf2[i] = t[0, sx.clip(b[i], 0, n - 1)]\nsx.compile(f2)",
    "a write outside": TRIANGLE + 'r = sx.RDom("r", k=n)\nt[0, r.k] = np.float32(1)\nsx.compile(t)',
    "a recurrence that leaves its domain": r"""
i, j = sx.vars("i j")
u = sx.Func("u", dtype=sx.int32, shape=(8, 8), where=lambda i, j: j <= i)
u[i, 0] = 1
u[i, j] = sx.select(i > 0, u[i - 1, j - 1] + u[i - 1, j], 0)
sx.compile(u)
""",
    "a where of too few dims": TRIANGLE.replace("lambda i, j: j <= i", "lambda i: i > 0"),
    "a where with an or": TRIANGLE.replace("j <= i)", "(j <= i) | (i > 3))"),
    "a where of a remainder": TRIANGLE.replace("j <= i)", "j % 2 == i % 2)"),
    "a where of a quotient of floats": TRIANGLE.replace("j <= i)", "j / 2 <= i)"),
    "a where of a product": TRIANGLE.replace("j <= i)", "i * j <= n)") + "sx.compile(t)",
    "a where of two quotients": TRIANGLE.replace("j <= i)", "2 * (j // 3) <= i)") + "sx.compile(t)",
    "a where that is not convex": TRIANGLE.replace("j <= i)", "sx.abs(i - j) >= 2)") + "sx.compile(t)",
    "a where of a narrower type": TRIANGLE.replace("j <= i)", "sx.cast(i, sx.int8) <= 3)") + "sx.compile(t)",
    "a where with an and": TRIANGLE.replace("j <= i)", "j <= i and i > 3)"),
    "a where at data": TRIANGLE.replace("j <= i)", "a[i] > 0)"),
    "a where that is no condition": TRIANGLE.replace("j <= i)", "i + j)"),
    "a where that is no function": TRIANGLE.replace("lambda i, j: j <= i", "3"),
}


@pytest.mark.parametrize("title", REFUSALS)
def test_a_wrong_use_of_a_domain_is_refused(title, golden):
    with pytest.raises(StaxError) as found:
        run(REFUSALS[title])
    name = re.sub(r"\W+", "_", title).strip("_")
    golden(f"{type(found.value).__name__}: {found.value}\n", FOLDER / f"{name}.txt")
