"""The product of two matrices, then relu; an update over an RDom, and a schedule in register tiles.

python -m examples.sgemm
"""

import numpy as np

import stax as sx

i, j = sx.vars("i j")
a = sx.Input("a", sx.float32, 2)
b = sx.Input("b", sx.float32, (a.shape[1], None))
k = sx.RDom("k", k=a.shape[1])

c, out = sx.Func("c"), sx.Func("out")
c[i, j] = 0
c[i, j] += a[i, k] * b[k, j]
out[i, j] = sx.maximum(c[i, j], 0)


def by_hand() -> sx.Schedule:
    """Return a schedule of tiles of 4 x 32, whose sums stay in registers while k runs."""
    s = sx.Schedule(out)
    s[out].tile((i, j), ("io", "jo"), ("ii", "ji"), (4, 32)).parallel("io").unroll("ii").vectorize("ji")
    s[c].compute_at(out, "jo").unroll(i, 4).vectorize(j, 32)
    s[c].update(0).split(i, "io", "ii", 4).split(j, "jo", "ji", 32).reorder("io", "jo", "k.k", "ii", "ji")
    s[c].update(0).unroll("ii").vectorize("ji")
    return s


def inputs(size: int = 256) -> dict[str, np.ndarray]:
    """Return two matrices of no special sizes."""
    rng = np.random.default_rng(3)
    return {
        "a": rng.standard_normal((size, size + 5), dtype=np.float32),
        "b": rng.standard_normal((size + 5, size - 3), dtype=np.float32),
    }


def expected(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the product's positive part, in NumPy."""
    return np.maximum(a @ b, 0)


def main() -> None:
    """Multiply under both schedules: the same bits, and NumPy's values but for the order of its sums."""
    given = inputs()
    plain = sx.compile(out, strict_native=True)(**given)
    tiled = sx.compile(out, by_hand(), strict_native=True)(**given)
    np.testing.assert_array_equal(plain, tiled)
    np.testing.assert_allclose(plain, expected(**given), rtol=1e-4, atol=1e-3)
    print(f"{plain.shape}: the same bits under both schedules, and within 1e-3 of NumPy")


if __name__ == "__main__":
    main()
