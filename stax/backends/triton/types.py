"""Triton's names for types, numbers and blocks."""

from __future__ import annotations

import keyword
import math
import re

from stax.dtypes import DType
from stax.expr.nodes import Axes, Axis

_RESERVED = frozenset(
    {"tl", "triton", "libdevice", "float", "int", "range", "min", "max", "abs", "sum", "len", "print", "type"}
)


def type_name(dtype: DType, *, wide: bool) -> str:
    """Return the type of registers; positions have 32 bits unless `wide`, and a bfloat16 is held as a float32."""
    if dtype.name == "index":
        return "tl.int64" if wide else "tl.int32"
    if dtype.name == "bfloat16":
        return "tl.float32"
    return "tl.int1" if dtype.is_bool else f"tl.{dtype.name}"


def short_name(dtype: DType) -> str:
    """Return the type as signatures name it.

    >>> from stax import dtypes
    >>> [short_name(t) for t in (dtypes.float32, dtypes.bfloat16, dtypes.uint8, dtypes.bool_)]
    ['fp32', 'bf16', 'u8', 'i1']
    """
    if dtype.is_float:
        return "bf16" if dtype.name == "bfloat16" else f"fp{dtype.bits}"
    return "i1" if dtype.is_bool else f"{'i' if dtype.is_signed else 'u'}{dtype.bits}"


def passed_as(dtype: DType) -> str:
    """Return the type that a scalar argument is passed as: one of 32 or 64 bits."""
    if dtype.is_float:
        return "fp64" if dtype.bits == 64 else "fp32"
    return f"{'i' if dtype.is_signed else 'u'}{max(32, dtype.bits)}"


def literal(value: float | bool, dtype: DType) -> str:
    """Return a number, which takes its type from what it meets.

    >>> from stax import dtypes
    >>> literal(float("-inf"), dtypes.float32), literal(3, dtypes.float64), literal(1, dtypes.bool_)
    ('float("-inf")', '3.0', 'True')
    """
    if dtype.is_bool:
        return str(bool(value))
    if not dtype.is_float:
        return str(int(value))
    exact = float(dtype(value))
    return repr(exact) if math.isfinite(exact) else f'float("{exact}")'


def padded(axis: Axis) -> int:
    """Return the power of two that holds `axis`."""
    return 1 << max(0, axis.size - 1).bit_length()


def shape(axes: Axes) -> str:
    """Return the padded shape of a block."""
    return "(" + "".join(f"{padded(a)}, " for a in axes).strip() + ")"


class Names:
    """Gives each thing a name that Python and Triton take, and no other thing has."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def fresh(self, wish: str) -> str:
        """Return a name like `wish`."""
        plain = re.sub(r"[^0-9A-Za-z_]+", "_", wish).rstrip("_") or "_"
        if plain[0].isdigit() or plain in _RESERVED or keyword.iskeyword(plain):
            plain = f"_{plain}" if plain[0].isdigit() else f"{plain}_"
        found, k = plain, 1
        while found in self._taken:
            k += 1
            found = f"{plain.rstrip('_')}_{k}"
        self._taken.add(found)
        return found
