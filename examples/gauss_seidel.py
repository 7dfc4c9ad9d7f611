"""Gauss-Seidel sweeps over a plate: each point becomes the mean of its neighbours, those before it being new already.

One recurrence over time and both dims of the plate. No loop of it is parallel as it stands; skewed by time, its tiles
run in wavefronts: schedules/gauss_seidel.stax.

python -m examples.gauss_seidel
"""

from pathlib import Path

import numpy as np

import stax as sx

t, i, j = sx.vars("t i j")
plate = sx.Input("plate", sx.float32, 2)
sweeps = sx.Param("sweeps", sx.int64, low=0, high=100_000)
h, w = plate.shape

u = sx.Func("u", shape=(sweeps + 1, h, w))
u[0, i, j] = plate[i, j]
around = u[t, i - 1, j] + u[t - 1, i, j + 1] + u[t - 1, i + 1, j] + u[t, i, j - 1]
inside = (i > 0) & (i < h - 1) & (j > 0) & (j < w - 1)
u[t, i, j] = sx.select(inside, 0.25 * around, u[t - 1, i, j])

smooth = sx.Func("smooth")
smooth[i, j] = u[sweeps, i, j]


def by_hand() -> sx.Schedule:
    """Return the schedule in tiles of time and place, in wavefronts."""
    return sx.Schedule.load(Path(__file__).parents[1] / "schedules" / "gauss_seidel.stax", smooth)


def inputs(size: int = 120) -> dict[str, np.ndarray | int]:
    """Return a plate of noise."""
    return {"plate": np.random.default_rng(9).random((size, size + 13), dtype=np.float32), "sweeps": 6}


def expected(plate: np.ndarray, sweeps: int) -> np.ndarray:
    """Return the plate after `sweeps` sweeps, in NumPy, one diagonal after the other."""
    u, quarter = plate.copy(), np.float32(0.25)
    h, w = u.shape
    for _ in range(sweeps):
        for d in range(2, h + w - 3):
            y = np.arange(max(1, d - w + 2), min(h - 2, d - 1) + 1)
            x = d - y
            u[y, x] = quarter * (u[y - 1, x] + u[y, x + 1] + u[y + 1, x] + u[y, x - 1])
    return u


def main() -> None:
    """Smooth the plate, and compare with NumPy."""
    given = inputs()
    got = sx.compile(smooth, by_hand(), strict_native=True)(**given)
    np.testing.assert_allclose(got, expected(**given), rtol=1e-5)
    print(f"{given['sweeps']} sweeps took the deviation inside from {_inside(given['plate'])} to {_inside(got)}")


def _inside(plate: np.ndarray) -> str:
    return f"{plate[1:-1, 1:-1].std():.3f}"


if __name__ == "__main__":
    main()
