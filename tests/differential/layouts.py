"""Arrays of random values in memory of random layouts."""

from __future__ import annotations

import math
from random import Random

import numpy as np

from stax.dtypes import as_dtype

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e-40, 65504.0, 2.5, -2.5)


def numbers(rng: Random, dtype: str, count: int) -> np.ndarray:
    """Return `count` values: small ones, all there are, special ones, or about halfway between two float16."""
    made = np.random.default_rng(rng.randrange(2**32))
    kind = as_dtype(dtype).dtype
    if kind.kind == "b":
        return made.integers(0, 2, count).astype(bool)
    if as_dtype(dtype).is_float:
        found = made.uniform(-4, 4, count)
        if rng.random() < 0.3:
            found = np.rint(found)
        if rng.random() < 0.4:
            at = made.random(count) < 0.2
            found[at] = made.choice(np.array(SPECIAL), int(at.sum()))
        elif rng.random() < 0.2:
            found = found * 10.0 ** made.integers(-20, 20, count)
        elif rng.random() < 0.4:
            near = found.astype(np.float16)
            halfway = (near.astype(np.float64) + np.nextafter(near, np.float16(np.inf))) / 2
            found = halfway * (1 + made.integers(-1, 2, count) * 2.0**-40)
        with np.errstate(all="ignore"):
            return found.astype(kind)
    info = np.iinfo(kind)
    if rng.random() < 0.4:
        return made.integers(max(info.min, -9), 9, count).astype(kind)
    found = made.integers(info.min, info.max, count, dtype=kind, endpoint=True)
    at = made.random(count) < 0.1
    found[at] = made.choice(np.array([info.min, info.max, 0, 1], kind), int(at.sum()))
    return found


def draw(rng: Random, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of random values and layout."""
    found = numbers(rng, dtype, math.prod(shape)).reshape(shape)
    if rng.random() < 0.5 or not shape:
        return found
    if rng.random() < 0.15:
        d = rng.randrange(len(shape))
        if shape[d]:
            one = np.take(found, [0], axis=d)
            return np.broadcast_to(one, shape)
    out = place(rng, dtype, shape)
    out[...] = found
    return out


def place(rng: Random, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return memory of a shape: with gaps, backwards, in another order of dims, or off its alignment."""
    rank = len(shape)
    order = list(range(rank))
    if rng.random() < 0.4:
        rng.shuffle(order)
    steps = [rng.choice((1, 1, 2, 3)) if rng.random() < 0.4 else 1 for _ in shape]
    backwards = [rng.random() < 0.25 for _ in shape]
    kind = as_dtype(dtype).dtype
    big = [shape[d] * steps[d] + (1 if rng.random() < 0.2 else 0) for d in order]
    shift = rng.choice((0, 0, 1, kind.itemsize)) if rng.random() < 0.5 else 0
    memory = np.zeros(math.prod(big) * kind.itemsize + 16, np.uint8)
    flat = memory[shift : shift + math.prod(big) * kind.itemsize].view(kind)
    whole = flat.reshape(big).transpose(np.argsort(order)) if rank else flat.reshape(())
    cut = tuple(
        slice(None, n * s, s) if not back else slice(n * s - 1, None, -s) for n, s, back in
        zip(shape, steps, backwards, strict=True)
    )  # fmt: skip
    return whole[(*cut, ...)][(*(slice(0, n) for n in shape), ...)]
