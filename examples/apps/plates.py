"""Steps in time on a plate: each function returns the plate after `steps` steps; NumPy code in `peers/apps.py`."""

from __future__ import annotations

import stax as sx

T, Y, X = sx.vars("t y x")


def _plate() -> tuple[sx.Func, sx.Value, sx.Param]:
    """Return a Func that starts as the plate `u`, where a cell is inside, and how many steps to go."""
    u = sx.Input("u", sx.float32, 2)
    steps = sx.Param("steps", sx.int64, low=0, high=1_000_000)
    h, w = u.shape
    v = sx.Func("v", shape=(steps + 1, h, w))
    v[0, Y, X] = u[Y, X]
    return v, (Y > 0) & (h - 1 > Y) & (X > 0) & (w - 1 > X), steps


def _last(v: sx.Func, steps: sx.Param) -> sx.Func:
    out = sx.Func("out", shape=v.shape[1:])
    out[Y, X] = v[steps, Y, X]
    return out


def heat2d() -> sx.Func:
    """Return the plate after steps of Jacobi."""
    v, inside, steps = _plate()
    c = v[T - 1, Y, X]
    around = v[T - 1, Y - 1, X] + v[T - 1, Y + 1, X] + v[T - 1, Y, X - 1] + v[T - 1, Y, X + 1]
    v[T, Y, X] = sx.select(inside, c + 0.1 * (around - 4 * c), c)
    return _last(v, steps)


def seidel2d() -> sx.Func:
    """Return the plate after sweeps of Gauss and Seidel: each cell reads what its sweep has already changed."""
    v, inside, steps = _plate()
    c = v[T - 1, Y, X]
    done, to_do = v[T, Y - 1, X] + v[T, Y, X - 1], v[T - 1, Y, X + 1] + v[T - 1, Y + 1, X]
    v[T, Y, X] = sx.select(inside, 0.2 * (c + done + to_do), c)
    return _last(v, steps)
