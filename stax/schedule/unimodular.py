"""Square matrices of ints that have an inverse of ints: those of determinant 1 or -1."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Matrix = Sequence[Sequence[int]]


def determinant(matrix: Matrix) -> int:
    """Return the determinant of `matrix`.

    Method: elimination without fractions (Bareiss, 1968).

    >>> determinant(((1, 0), (3, 1))), determinant(((2, 0), (0, 1))), determinant(((1, 1), (1, 1)))
    (1, 2, 0)
    """
    rows = [list(row) for row in matrix]
    sign, before = 1, 1
    for k in range(len(rows) - 1):
        swap = next((j for j in range(k, len(rows)) if rows[j][k]), None)
        if swap is None:
            return 0
        if swap != k:
            rows[k], rows[swap], sign = rows[swap], rows[k], -sign
        for j in range(k + 1, len(rows)):
            for m in range(k + 1, len(rows)):
                rows[j][m] = (rows[j][m] * rows[k][k] - rows[j][k] * rows[k][m]) // before
        before = rows[k][k]
    return sign * rows[-1][-1]


def inverse(matrix: Matrix) -> tuple[tuple[int, ...], ...]:
    """Return the inverse of a matrix of determinant 1 or -1.

    >>> inverse(((1, 0), (3, 1)))
    ((1, 0), (-3, 1))
    """
    n = len(matrix)
    rows = [[Fraction(v) for v in (*row, *(int(j == k) for j in range(n)))] for k, row in enumerate(matrix)]
    for k in range(n):
        pivot = next(j for j in range(k, n) if rows[j][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for j in range(n):
            if j != k:
                rows[j] = [a - rows[j][k] * b for a, b in zip(rows[j], rows[k], strict=True)]
    return tuple(tuple(int(v) for v in row[n:]) for row in rows)
