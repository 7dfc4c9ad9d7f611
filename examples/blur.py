"""A 3 x 3 box blur of 16-bit integers, in two passes; the same values under two schedules.

python -m examples.blur
stax explain examples/blur.py
"""

import numpy as np

import stax as sx

y, x = sx.vars("y x")
img = sx.Input("img", sx.uint16, 2)

blur_x, blur_y = sx.Func("blur_x"), sx.Func("blur_y")
blur_x[y, x] = (img[y, x] + img[y, x + 1] + img[y, x + 2]) // 3
blur_y[y, x] = (blur_x[y, x] + blur_x[y + 1, x] + blur_x[y + 2, x]) // 3


def by_hand() -> sx.Schedule:
    """Return a schedule of strips of 32 rows, run at once; each has its own rows of blur_x."""
    s = sx.Schedule(blur_y)
    s[blur_y].split(y, "yo", "yi", 32).parallel("yo").vectorize(x, 32)
    s[blur_x].compute_at(blur_y, "yo").vectorize(x, 32)
    return s


def inputs(size: int = 1024) -> dict[str, np.ndarray]:
    """Return an image whose sums of three do not overflow."""
    return {"img": np.random.default_rng(0).integers(0, 16384, (size, size + 31), dtype=np.uint16)}


def expected(img: np.ndarray) -> np.ndarray:
    """Return the blur, in NumPy."""
    rows = (img[:, :-2] + img[:, 1:-1] + img[:, 2:]) // np.uint16(3)
    return (rows[:-2] + rows[1:-1] + rows[2:]) // np.uint16(3)


def main() -> None:
    """Blur under the default schedule, an automatic one and by hand, and compare with NumPy."""
    given = inputs()
    wanted = expected(**given)
    for name, schedule in (("default", None), ("automatic", sx.auto_schedule(blur_y)), ("by hand", by_hand())):
        blur = sx.compile(blur_y, schedule, strict_native=True)
        np.testing.assert_array_equal(blur(**given), wanted)
        print(f"{name}: same values as NumPy, {wanted.shape}\n{blur.schedule}")


if __name__ == "__main__":
    main()
