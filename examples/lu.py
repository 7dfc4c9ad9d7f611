"""LU: a matrix as a lower and an upper triangular one, by elimination, without pivots; two Funcs that read each other.

Step k takes multiples of row k - 1 off the rows below it. `u` has no cells that a step leaves alone, so that the loops
are triangles, and all steps are stored in one matrix.

python -m examples.lu
"""

import numpy as np

import stax as sx

k, i, j = sx.vars("k i j")
a = sx.Input("a", sx.float32, 2)
n = a.shape[0]

u = sx.Func("u", shape=(n, n, n), where=lambda k, i, j: (i >= k) & (j >= k))
factor = sx.Func("factor", dtype=sx.float32, shape=(n, n), where=lambda k, i: (k >= 1) & (i >= k))
u[0, i, j] = a[i, j]
factor[k, i] = u[k - 1, i, k - 1] / u[k - 1, k - 1, k - 1]
u[k, i, j] = u[k - 1, i, j] - factor[k, i] * u[k - 1, k - 1, j]

lower, upper = sx.Func("lower", shape=(n, n)), sx.Func("upper", shape=(n, n))
lower[i, j] = sx.select(j < i, factor[j + 1, i], sx.select(i == j, np.float32(1), 0))
upper[i, j] = sx.select(j >= i, u[i, i, j], 0)

both = (lower, upper)


def inputs(size: int = 200) -> dict[str, np.ndarray]:
    """Return a matrix that needs no pivots."""
    return {"a": (np.random.default_rng(7).random((size, size)) + size * np.eye(size)).astype(np.float32)}


def expected(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the factors, in NumPy, in double precision."""
    u, low = a.astype(np.float64), np.eye(len(a))
    for s in range(1, len(a)):
        low[s:, s - 1] = u[s:, s - 1] / u[s - 1, s - 1]
        u[s:] -= np.outer(low[s:, s - 1], u[s - 1])
    return low.astype(np.float32), np.triu(u).astype(np.float32)


def main() -> None:
    """Factor a matrix, and compare with NumPy."""
    given = inputs()
    got = sx.compile(both, strict_native=True)(**given)
    for g, w in zip(got, expected(**given), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-3, atol=1e-4)
    error = np.abs(got[0] @ got[1] - given["a"]).max()
    print(f"lower @ upper is within {error:.1e} of a matrix of {given['a'].shape}")


if __name__ == "__main__":
    main()
