"""Conversions to float16 that LLVM rewrites need no helper that is not there."""

import numpy as np

import stax as sx


def test_an_integer_chosen_beside_a_half_is_converted() -> None:
    """LLVM made it a conversion from double, and called `__truncdfhf2`."""
    i = sx.Var("i")
    a = sx.Input("a", sx.bool_, 1)
    f = sx.Func("f")
    f[i] = sx.sinh(sx.select(a[(i - 3) % a.shape[0]], sx.float16(-5.598), sx.cast(i, sx.float16)))
    s = sx.Schedule(f)
    s[f].parallel(i)
    flags = np.array([True, False, False, True, False])
    got = sx.compile(f, s, strict_native=True)(flags, shape=(9,))
    at = np.arange(9)
    given = np.where(flags[(at - 3) % 5], np.float16(-5.598), at.astype(np.float16)).astype(np.float32)
    assert np.allclose(got.astype(np.float32), np.sinh(given), rtol=2e-3)
