"""bfloat16, the upper half of a float32, in NumPy, which has no such type.

Arrays of it hold the bits, as uint16, or are of the type that the package `ml_dtypes` adds to NumPy. While they are
computed with, its values are kept as the float32 that they equal.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]


def values_of(array: Array) -> Array:
    """Return the values of an array of bfloat16, or of its bits, as float32.

    >>> values_of(np.array([0x3F80, 0xC040], np.uint16)).tolist()
    [1.0, -3.0]
    """
    bits = np.asarray(array).view(np.uint16)
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def bits_of(values: Array) -> Array:
    """Return the bits of the bfloat16 nearest to each of `values`, ties to even, NaN for a NaN.

    float64 is rounded once. An integer is a float32 first.

    >>> [hex(b) for b in bits_of(np.array([1.0, 1.00390625, 1.01171875, float("nan")])).tolist()]
    ['0x3f80', '0x3f80', '0x3f82', '0x7fc0']
    """
    with np.errstate(all="ignore"):
        single = np.asarray(values).astype(np.float32)
        bits = np.asarray(single.view(np.uint32))
        if values.dtype == np.float64:
            # To odd where float32 is inexact, so that the second rounding sees that something is left.
            back = single.astype(np.float64)
            inexact = (back != values) & ~np.isnan(values)
            past = (np.abs(back) > np.abs(values)).astype(np.uint32)
            bits = np.where(inexact, (bits - past) | np.uint32(1), bits)
        odd = (bits >> np.uint32(16)) & np.uint32(1)
        near = (bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)
        quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
        return np.where(np.isnan(single), quiet, near).astype(np.uint16)


def rounded(values: Array) -> Array:
    """Return the bfloat16 nearest to each of `values`, as float32."""
    return values_of(bits_of(np.asarray(values)))
