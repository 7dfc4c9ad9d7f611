"""The Mandelbrot set: a recurrence of a pair and a count, whose last step is the picture.

python -m examples.mandelbrot
"""

import numpy as np

import stax as sx

STEPS = 50

t, y, x = sx.vars("t y x")
h = sx.Param("h", sx.int64, default=240, low=1, high=8192)
w = sx.Param("w", sx.int64, default=320, low=1, high=8192)
re = 3.0 * x / w - 2.1
im = 2.4 * y / h - 1.2

z = sx.Func("z", dtype=(sx.float64, sx.float64, sx.int32), shape=(STEPS + 1, h, w), fp="strict")
z[0, y, x] = (0.0, 0.0, 0)
p, q, count = z[t - 1, y, x]
far = p * p + q * q > 4
z[t, y, x] = (
    sx.select(far, p, p * p - q * q + re),
    sx.select(far, q, 2 * p * q + im),
    sx.select(far, count, count + 1),
)

picture = sx.Func("picture", shape=(h, w))
picture[y, x] = z[STEPS, y, x][2]


def inputs(size: int = 240) -> dict[str, int]:
    """Return the size of the picture."""
    return {"h": size, "w": size * 4 // 3}


def expected(h: int, w: int) -> np.ndarray:
    """Return the picture, in NumPy."""
    y, x = np.mgrid[:h, :w]
    re, im = 3.0 * x / w - 2.1, 2.4 * y / h - 1.2
    p, q, count = np.zeros((h, w)), np.zeros((h, w)), np.zeros((h, w), np.int32)
    for _ in range(STEPS):
        near = p * p + q * q <= 4
        p, q = np.where(near, p * p - q * q + re, p), np.where(near, 2 * p * q + im, q)
        count += near
    return count


def main() -> None:
    """Draw the set in letters; no product is contracted, so that the values are NumPy's to the bit."""
    given = inputs()
    got = sx.compile(picture, strict_native=True)(**given)
    np.testing.assert_array_equal(got, expected(**given))
    for row in got[::12]:
        print("".join(" .:-=+*#%@"[min(9, v * 10 // (STEPS + 1))] for v in row[::4]))


if __name__ == "__main__":
    main()
