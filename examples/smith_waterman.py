"""Smith-Waterman: how well the best matching stretches of two sequences match; a recurrence in two dims.

Each score needs those above it and to its left, so that tiles run in wavefronts: schedules/smith_waterman.stax.

python -m examples.smith_waterman
"""

from pathlib import Path

import numpy as np

import stax as sx

MATCH, MISMATCH, GAP = 3, -2, 2

i, j = sx.vars("i j")
a, b = sx.Input("a", sx.uint8, 1), sx.Input("b", sx.uint8, 1)
n, m = a.shape[0], b.shape[0]

score = sx.Func("score", dtype=sx.int32, shape=(n + 1, m + 1))
score[0, j] = 0
score[i, 0] = 0
both = score[i - 1, j - 1] + sx.select(a[i - 1] == b[j - 1], MATCH, MISMATCH)
gap = sx.maximum(score[i - 1, j], score[i, j - 1]) - GAP
score[i, j] = sx.maximum(sx.maximum(both, gap), 0)

r = sx.RDom("r", i=n + 1, j=m + 1)
best = sx.Func("best")
best[()] = sx.max(score[r.i, r.j], over=r)


def by_hand() -> sx.Schedule:
    """Return the schedule in tiles, in wavefronts."""
    return sx.Schedule.load(Path(__file__).parents[1] / "schedules" / "smith_waterman.stax", best)


def inputs(size: int = 300) -> dict[str, np.ndarray]:
    """Return two sequences of four letters that share a stretch."""
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 4, size, dtype=np.uint8), rng.integers(0, 4, size + 41, dtype=np.uint8)
    b[size // 3 : size // 2] = a[size // 4 : size // 4 + size // 2 - size // 3]
    return {"a": a, "b": b}


def expected(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the best score, in NumPy, one diagonal after the other."""
    score = np.zeros((len(a) + 1, len(b) + 1), np.int32)
    for d in range(2, len(a) + len(b) + 1):
        i = np.arange(max(1, d - len(b)), min(len(a), d - 1) + 1)
        j = d - i
        both = score[i - 1, j - 1] + np.where(a[i - 1] == b[j - 1], MATCH, MISMATCH)
        gap = np.maximum(score[i - 1, j], score[i, j - 1]) - GAP
        score[i, j] = np.maximum(np.maximum(both, gap), 0)
    return score.max()


def main() -> None:
    """Align, and compare with NumPy to the bit."""
    given = inputs()
    got = sx.compile(best, strict_native=True)(**given)
    assert got == expected(**given)
    print(f"the best stretch of {len(given['a'])} and {len(given['b'])} letters scores {got}, as in NumPy")


if __name__ == "__main__":
    main()
