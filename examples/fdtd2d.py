"""Light in a box: two parts of an electric field and a magnetic one, which step through time by turns.

Three Funcs read each other: `hz` the same step of `ex` and `ey`, those the step before of `hz`. Each is stored over its
own step before.

python -m examples.fdtd2d
"""

import numpy as np

import stax as sx

t, i, j = sx.vars("t i j")
ex0, ey0, hz0 = (sx.Input(name, sx.float32, 2) for name in ("ex0", "ey0", "hz0"))
wave = sx.Input("wave", sx.float32, 1)
steps = sx.Param("steps", sx.int64, low=0, high=100_000)
h, w = hz0.shape

ex, ey, hz = (sx.Func(name, dtype=sx.float32, shape=(steps + 1, h, w)) for name in ("ex", "ey", "hz"))
ex[0, i, j], ey[0, i, j], hz[0, i, j] = ex0[i, j], ey0[i, j], hz0[i, j]
ey[t, 0, j] = wave[t - 1]
ey[t, i, j] = ey[t - 1, i, j] - 0.5 * (hz[t - 1, i, j] - hz[t - 1, i - 1, j])
ex[t, i, j] = sx.select(j > 0, ex[t - 1, i, j] - 0.5 * (hz[t - 1, i, j] - hz[t - 1, i, j - 1]), ex[t - 1, i, j])
around = ex[t, i, j + 1] - ex[t, i, j] + ey[t, i + 1, j] - ey[t, i, j]
hz[t, i, j] = sx.select((i < h - 1) & (j < w - 1), hz[t - 1, i, j] - 0.7 * around, hz[t - 1, i, j])

ex_end, ey_end, hz_end = (sx.Func(f"{f.name}_end") for f in (ex, ey, hz))
ex_end[i, j] = ex[steps, i, j]
ey_end[i, j] = ey[steps, i, j]
hz_end[i, j] = hz[steps, i, j]

fields = (ex_end, ey_end, hz_end)


def inputs(size: int = 150) -> dict[str, np.ndarray | int]:
    """Return weak noise, and a wave that comes in at one side."""
    rng = np.random.default_rng(8)
    noise = {name: 0.01 * rng.random((size, size + 11), dtype=np.float32) for name in ("ex0", "ey0", "hz0")}
    return {**noise, "wave": np.sin(np.arange(30, dtype=np.float32) / 3), "steps": 30}


def expected(
    ex0: np.ndarray, ey0: np.ndarray, hz0: np.ndarray, wave: np.ndarray, steps: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the fields after `steps` steps, in NumPy."""
    ex, ey, hz = ex0.copy(), ey0.copy(), hz0.copy()
    half, part = np.float32(0.5), np.float32(0.7)
    for s in range(steps):
        ey[0] = wave[s]
        ey[1:] -= half * (hz[1:] - hz[:-1])
        ex[:, 1:] -= half * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= part * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz


def main() -> None:
    """Let the light in, and compare with NumPy."""
    given = inputs()
    got = sx.compile(fields, strict_native=True)(**given)
    for g, e in zip(got, expected(**given), strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-4, atol=1e-4)
    print(f"after {given['steps']} steps the wave has come to row {int((np.abs(got[2]).max(axis=1) > 0.1).sum())}")


if __name__ == "__main__":
    main()
