"""Heat spreads over a plate whose edges keep their temperature: a recurrence over time with a start value.

python -m examples.heat2d
"""

import numpy as np

import stax as sx

t, y, x = sx.vars("t y x")
plate = sx.Input("plate", sx.float32, 2)
steps = sx.Param("steps", sx.int64, low=0, high=100_000)
h, w = plate.shape

u = sx.Func("u", shape=(steps + 1, h, w))
u[0, y, x] = plate[y, x]
here = u[t - 1, y, x]
around = u[t - 1, y - 1, x] + u[t - 1, y + 1, x] + u[t - 1, y, x - 1] + u[t - 1, y, x + 1]
inside = (y > 0) & (y < h - 1) & (x > 0) & (x < w - 1)
u[t, y, x] = sx.select(inside, here + 0.1 * (around - 4 * here), here)

heat = sx.Func("heat")
heat[y, x] = u[steps, y, x]


def inputs(size: int = 200) -> dict[str, np.ndarray | int]:
    """Return a cold plate with a hot square."""
    plate = np.zeros((size, size + 9), np.float32)
    plate[size // 4 : size // 2, size // 3 : size // 2] = 100
    return {"plate": plate, "steps": 40}


def expected(plate: np.ndarray, steps: int) -> np.ndarray:
    """Return the plate after `steps` steps, in NumPy."""
    u, k = plate.copy(), np.float32(0.1)
    for _ in range(steps):
        c = u[1:-1, 1:-1]
        u[1:-1, 1:-1] = c + k * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * c)
    return u


def main() -> None:
    """Let the heat spread, and compare with NumPy."""
    given = inputs()
    got = sx.compile(heat, strict_native=True)(**given)
    np.testing.assert_allclose(got, expected(**given), rtol=1e-4, atol=1e-4)
    print(f"after {given['steps']} steps the hottest point has {got.max():.1f} of {given['plate'].max():.1f} degrees")


if __name__ == "__main__":
    main()
