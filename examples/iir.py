"""A recursive filter, forwards and backwards along each row: two recurrences, the second running downwards.

python -m examples.iir
"""

import numpy as np

import stax as sx

y, x = sx.vars("y x")
signal = sx.Input("signal", sx.float32, 2)
keep = sx.Param("keep", sx.float32, default=0.9, low=0, high=1)
h, w = signal.shape

there, back = sx.Func("there", shape=(h, w)), sx.Func("back", shape=(h, w))
there[y, 0] = signal[y, 0]
there[y, x] = keep * there[y, x - 1] + (1 - keep) * signal[y, x]
back[y, w - 1] = there[y, w - 1]
back[y, x] = keep * back[y, x + 1] + (1 - keep) * there[y, x]


def inputs(size: int = 500) -> dict[str, np.ndarray]:
    """Return rows of noise."""
    return {"signal": np.random.default_rng(4).standard_normal((size // 2, size), dtype=np.float32)}


def expected(signal: np.ndarray, keep: float = 0.9) -> np.ndarray:
    """Return the filtered rows, in NumPy, in double precision."""
    out = signal.astype(np.float64)
    for n in range(1, out.shape[1]):
        out[:, n] = keep * out[:, n - 1] + (1 - keep) * out[:, n]
    for n in range(out.shape[1] - 2, -1, -1):
        out[:, n] = keep * out[:, n + 1] + (1 - keep) * out[:, n]
    return out.astype(np.float32)


def main() -> None:
    """Filter, and compare with NumPy."""
    given = inputs()
    got = sx.compile(back, strict_native=True)(**given)
    np.testing.assert_allclose(got, expected(**given), rtol=1e-4, atol=1e-5)
    print(f"the deviation of {given['signal'].shape} values went from {given['signal'].std():.3f} to {got.std():.3f}")


if __name__ == "__main__":
    main()
