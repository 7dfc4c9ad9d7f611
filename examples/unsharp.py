"""Unsharp mask: what a Gaussian blur of the brightness takes away is added to every colour.

python -m examples.unsharp
"""

import numpy as np

import stax as sx

WEIGHTS = [float(np.exp(-k * k / 4.5)) for k in range(4)]
TOTAL = WEIGHTS[0] + 2 * sum(WEIGHTS[1:])

c, y, x = sx.vars("c y x")
img = sx.Input("img", sx.uint8, (3, None, None), dims="c y x")
amount = sx.Param("amount", sx.float32, default=1.5, low=0)

padded = sx.pad(img, "edge", axes=(1, 2))
light, rows, soft = sx.Func("light"), sx.Func("rows"), sx.Func("soft")
red, green, blue = (sx.cast(padded[k, y, x], sx.float32) for k in range(3))
light[y, x] = 0.299 * red + 0.587 * green + 0.114 * blue
rows[y, x] = sum(w / TOTAL * (light[y - k, x] + light[y + k, x]) for k, w in enumerate(WEIGHTS[1:], 1)) + (
    WEIGHTS[0] / TOTAL * light[y, x]
)
soft[y, x] = sum(w / TOTAL * (rows[y, x - k] + rows[y, x + k]) for k, w in enumerate(WEIGHTS[1:], 1)) + (
    WEIGHTS[0] / TOTAL * rows[y, x]
)
sharp = sx.Func("sharp", shape=img.shape)
sharp[c, y, x] = sx.saturating_cast(
    sx.rint(sx.cast(img[c, y, x], sx.float32) + amount * (light[y, x] - soft[y, x])), sx.uint8
)


def inputs(size: int = 512) -> dict[str, np.ndarray]:
    """Return an image of soft shapes with noise."""
    rng = np.random.default_rng(1)
    i, j = np.mgrid[:size, : size + 17]
    shapes = 128 + 60 * np.sin(i / 19) * np.cos(j / 23)
    return {"img": (shapes + rng.integers(-20, 20, (3, *shapes.shape))).astype(np.uint8)}


def expected(img: np.ndarray, amount: float = 1.5) -> np.ndarray:
    """Return the sharpened image, in NumPy."""
    _, h, w = img.shape
    p = np.pad(img, ((0, 0), (3, 3), (3, 3)), mode="edge").astype(np.float32)
    light = np.float32(0.299) * p[0] + np.float32(0.587) * p[1] + np.float32(0.114) * p[2]
    weights = [np.float32(w / TOTAL) for w in WEIGHTS]
    rows = weights[0] * light[3 : 3 + h]
    for k in (1, 2, 3):
        rows = rows + weights[k] * (light[3 - k : 3 - k + h] + light[3 + k : 3 + k + h])
    soft = weights[0] * rows[:, 3 : 3 + w]
    for k in (1, 2, 3):
        soft = soft + weights[k] * (rows[:, 3 - k : 3 - k + w] + rows[:, 3 + k : 3 + k + w])
    detail = np.float32(amount) * (light[3:-3, 3:-3] - soft)
    return np.clip(np.rint(img.astype(np.float32) + detail), 0, 255).astype(np.uint8)


def main() -> None:
    """Sharpen and compare with NumPy: sums are rounded in another order, so one step of 255 may differ."""
    given = inputs()
    got, wanted = sx.compile(sharp, strict_native=True)(**given), expected(**given)
    off = np.abs(got.astype(int) - wanted)
    assert off.max() <= 1
    assert (off > 0).mean() < 1e-3
    print(f"sharpened {got.shape}; {(off > 0).mean():.5%} of the values differ from NumPy's, by 1")


if __name__ == "__main__":
    main()
