"""LLVM's names of types and constants.

A value has a dtype and a number of lanes, 0 for a scalar. A bool is i1 as a value and i8 in memory; float16 and
bfloat16 are i16 in both, so that only their conversions know of halves.
"""

from __future__ import annotations

import re
import struct

import numpy as np

from stax.dtypes import DType
from stax.expr import bfloat16
from stax.expr.build import wrap

_FLOATS = {16: "i16", 32: "float", 64: "double"}
_KNOWN = re.compile(r"(?:splat \(i\d+ )?(-?\d+)\)?")

_FLOAT = re.compile(r"(?:splat \((?:float|double) )?0x([0-9A-F]{16})\)?")


def element(dtype: DType) -> str:
    """Return the type of one lane of a value."""
    return _FLOATS[dtype.bits] if dtype.is_float else f"i{dtype.bits}"


def memory(dtype: DType) -> str:
    """Return the type of one element in memory."""
    return "i8" if dtype.is_bool else element(dtype)


def vector(element: str, lanes: int) -> str:
    """Return the type of `lanes` values of type `element`."""
    return f"<{lanes} x {element}>" if lanes else element


def value(dtype: DType, lanes: int) -> str:
    """Return the type of a value."""
    return vector(element(dtype), lanes)


def mangled(element: str, lanes: int) -> str:
    """Return how intrinsics spell a type.

    >>> mangled("float", 8), mangled("i16", 0)
    ('v8f32', 'i16')
    """
    short = {"half": "f16", "float": "f32", "double": "f64"}.get(element, element)
    return f"v{lanes}{short}" if lanes else short


def literal(number: float | bool, dtype: DType) -> str:
    """Return a constant; floats by their bits, a float32 as the float64 that it equals."""
    if dtype.is_bool:
        return "true" if number else "false"
    if not dtype.is_float:
        return str(wrap(int(number), dtype))
    if dtype.name == "bfloat16":
        return str(int(bfloat16.bits_of(np.array(float(number))).astype(np.int16)))
    rounded = dtype.dtype.type(number)
    if dtype.bits == 16:
        return str(struct.unpack("<h", rounded.tobytes())[0])
    return f"0x{struct.unpack('<Q', struct.pack('<d', float(rounded)))[0]:016X}"


def constant(number: float | bool, dtype: DType, lanes: int) -> str:
    """Return a constant in every lane."""
    return splat(literal(number, dtype), element(dtype), lanes)


def splat(constant: str, element: str, lanes: int) -> str:
    """Return the constant `constant` in every lane."""
    return f"splat ({element} {constant})" if lanes else constant


def is_constant(text: str) -> bool:
    """Return whether `text` is a constant and no name."""
    return text[0] != "%"


def known(text: str) -> int | None:
    """Return the integer that `text` is in every lane, if it is one.

    >>> known("splat (i32 -5)"), known("7"), known("%v3")
    (-5, 7, None)
    """
    found = _KNOWN.fullmatch(text)
    return int(found.group(1)) if found else None


def known_float(text: str) -> float | None:
    """Return the float that `text` is in every lane, if it is one.

    >>> known_float("splat (float 0x3FF8000000000000)"), known_float("%v3")
    (1.5, None)
    """
    found = _FLOAT.fullmatch(text)
    return float(struct.unpack("<d", struct.pack("<Q", int(found.group(1), 16)))[0]) if found else None


def row(numbers: list[int], element: str) -> str:
    """Return a vector of integer constants."""
    return f"<{', '.join(f'{element} {n}' for n in numbers)}>"
