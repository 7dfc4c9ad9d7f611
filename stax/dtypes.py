"""Scalar types: kind, width, and NumPy's name for each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np


class Kind(Enum):
    """What the bits of a scalar mean."""

    BOOL = "b"
    UINT = "u"
    INT = "i"
    FLOAT = "f"


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """A scalar type, equal to NumPy's type of the same name; called, it gives a typed constant.

    `index` is the type of positions and sizes inside loop programs: 64 bits here, for a printer to narrow.

    >>> import numpy as np
    >>> uint8 == np.uint8, np.dtype(float32).itemsize, int16(7).dtype == int16
    (True, 4, True)
    """

    name: str
    kind: Kind
    bits: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type; `np.dtype(sx.uint8)` finds it here. That of bfloat16 is of ml_dtypes, or uint16 without it."""
        return _bfloat16() if self.name == "bfloat16" else np.dtype("int64" if self.name == "index" else self.name)

    @property
    def computed(self) -> np.dtype[Any]:
        """The type in which NumPy computes with it: float32 for bfloat16, which has no other."""
        return np.dtype(np.float32) if self.name == "bfloat16" else self.dtype

    @property
    def is_half(self) -> bool:
        """Whether this is a float of 16 bits: kept in memory, and computed with in float32."""
        return self.kind is Kind.FLOAT and self.bits == 16

    def fits(self, array: np.dtype[Any]) -> bool:
        """Return whether arrays of NumPy's type `array` hold it: for bfloat16, those of its bits too."""
        if self.name == "bfloat16":
            return array == np.uint16 or array.name == "bfloat16"
        return array == self.dtype

    @property
    def size_bytes(self) -> int:
        """Bytes in memory; a bool takes one."""
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        """Whether this is a floating type."""
        return self.kind is Kind.FLOAT

    @property
    def is_bool(self) -> bool:
        """Whether this is bool."""
        return self.kind is Kind.BOOL

    @property
    def is_integer(self) -> bool:
        """Whether this is an integer, signed or not; bool is none."""
        return self.kind in (Kind.INT, Kind.UINT)

    @property
    def is_signed(self) -> bool:
        """Whether this is a signed integer."""
        return self.kind is Kind.INT

    @property
    def low(self) -> int:
        """Smallest value of an integer or bool."""
        return -(1 << (self.bits - 1)) if self.kind is Kind.INT else 0

    @property
    def high(self) -> int:
        """Largest value of an integer or bool."""
        return (1 << (self.bits - 1)) - 1 if self.kind is Kind.INT else (1 << self.bits) - 1

    def __call__(self, value: Any) -> Any:
        """Return `value` as a NumPy scalar of this type, which is strong in expressions."""
        if self.name == "bfloat16" and self.dtype == np.uint16:
            raise TypeError("NumPy has no bfloat16 without the package ml_dtypes; sx.cast(..., sx.bfloat16) makes one")
        return self.dtype.type(value)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.name == other.name
        try:
            found = np.dtype(other) if other is not None else None  # type: ignore[call-overload]
        except TypeError:
            return False
        return found is not None and (found.name == self.name if self.name == "bfloat16" else bool(self.dtype == found))

    def __hash__(self) -> int:
        return hash(self.name) if self.name == "bfloat16" and self.dtype == np.uint16 else hash(self.dtype)

    def __repr__(self) -> str:
        return self.name


bool_ = DType("bool", Kind.BOOL, 1)
uint8 = DType("uint8", Kind.UINT, 8)
uint16 = DType("uint16", Kind.UINT, 16)
uint32 = DType("uint32", Kind.UINT, 32)
uint64 = DType("uint64", Kind.UINT, 64)
int8 = DType("int8", Kind.INT, 8)
int16 = DType("int16", Kind.INT, 16)
int32 = DType("int32", Kind.INT, 32)
int64 = DType("int64", Kind.INT, 64)
float16 = DType("float16", Kind.FLOAT, 16)
bfloat16 = DType("bfloat16", Kind.FLOAT, 16)
float32 = DType("float32", Kind.FLOAT, 32)
float64 = DType("float64", Kind.FLOAT, 64)
index = DType("index", Kind.INT, 64)

NUMBERS = (uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64)
ALL = (bool_, *NUMBERS)
_BY_NAME = {t.name: t for t in ALL}


@cache
def _bfloat16() -> np.dtype[Any]:
    try:
        return np.dtype(import_module("ml_dtypes").bfloat16)
    except ImportError:
        return np.dtype(np.uint16)


def as_dtype(value: Any) -> DType:
    """Return the stax type that `value` (a DType, a NumPy type, or a name) stands for.

    Raises TypeError where stax has none, such as complex or object.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value == "bfloat16":
        return bfloat16
    found = np.dtype(value)
    if found.name not in _BY_NAME or not found.isnative:
        raise TypeError(f"stax has no scalar type for {value!r}")
    return _BY_NAME[found.name]
