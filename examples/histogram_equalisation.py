"""Spread the grey values of an image evenly: a scatter, a running sum and a table look-up.

python -m examples.histogram_equalisation
"""

import numpy as np

import stax as sx

y, x, i = sx.vars("y x i")
img = sx.Input("img", sx.uint8, 2)
h, w = img.shape
r = sx.RDom("r", y=h, x=w)

count, total = sx.Func("count", shape=(256,)), sx.Func("total", shape=(256,))
count[i] = 0
count[img[r.y, r.x]] += 1
total[0] = count[0]
total[i] = total[i - 1] + count[i]

equal = sx.Func("equal")
equal[y, x] = sx.cast(total[img[y, x]] * 255 // (h * w), sx.uint8)


def inputs(size: int = 1024) -> dict[str, np.ndarray]:
    """Return a flat grey image."""
    return {"img": np.random.default_rng(2).normal(120, 18, (size, size - 7)).clip(0, 255).astype(np.uint8)}


def expected(img: np.ndarray) -> np.ndarray:
    """Return the equalised image, in NumPy."""
    total = np.cumsum(np.bincount(img.reshape(-1), minlength=256))
    return (total * 255 // img.size).astype(np.uint8)[img]


def main() -> None:
    """Equalise, and compare with NumPy to the bit."""
    given = inputs()
    got = sx.compile(equal, strict_native=True)(**given)
    np.testing.assert_array_equal(got, expected(**given))
    print(f"values {given['img'].min()}..{given['img'].max()} became {got.min()}..{got.max()}, as in NumPy")


if __name__ == "__main__":
    main()
