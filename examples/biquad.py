"""A recursive filter of second order along each row: each value needs the two before it and three of the signal.

python -m examples.biquad
"""

import numpy as np

import stax as sx

y, x = sx.vars("y x")
signal = sx.Input("signal", sx.float32, 2)
h, w = signal.shape
B0, B1, B2 = 0.0675, 0.1349, 0.0675
A1, A2 = -1.1430, 0.4128

low = sx.Func("low", shape=(h, w))
low[y, 0] = B0 * signal[y, 0]
low[y, 1] = B0 * signal[y, 1] + B1 * signal[y, 0] - A1 * low[y, 0]
fed = B0 * signal[y, x] + B1 * signal[y, x - 1] + B2 * signal[y, x - 2]
low[y, x] = fed - A1 * low[y, x - 1] - A2 * low[y, x - 2]


def inputs(size: int = 400) -> dict[str, np.ndarray]:
    """Return rows of slow waves under noise."""
    rng = np.random.default_rng(10)
    slow = np.sin(np.arange(size) / 20)
    return {"signal": (slow + 0.5 * rng.standard_normal((size // 4, size))).astype(np.float32)}


def expected(signal: np.ndarray) -> np.ndarray:
    """Return the filtered rows, in NumPy, in double precision."""
    s, out = signal.astype(np.float64), np.zeros(signal.shape)
    for n in range(s.shape[1]):
        out[:, n] = B0 * s[:, n]
        if n > 0:
            out[:, n] += B1 * s[:, n - 1] - A1 * out[:, n - 1]
        if n > 1:
            out[:, n] += B2 * s[:, n - 2] - A2 * out[:, n - 2]
    return out.astype(np.float32)


def main() -> None:
    """Filter, and compare with NumPy."""
    given = inputs()
    got = sx.compile(low, strict_native=True)(**given)
    np.testing.assert_allclose(got, expected(**given), rtol=1e-4, atol=1e-5)
    rough = [np.abs(np.diff(a)).mean() for a in (given["signal"], got)]
    print(f"neighbours in {given['signal'].shape} values were {rough[0]:.3f} apart, now {rough[1]:.3f}")


if __name__ == "__main__":
    main()
