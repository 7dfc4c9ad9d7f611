"""Object code of `entry_text` -> a builtin function, where this interpreter and NumPy are laid out as it assumes."""

from __future__ import annotations

import ctypes
import platform
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from stax.backends.artifact import Artifact
from stax.errors import StaxError
from stax.runtime.entry_text import DIRECT, FIXED, OF_KERNEL, TABLE, Layout, entry_text
from stax.runtime.load import Code, load
from stax.runtime.signature import Signature
from stax.target import Target

_VARARGS, _KEYWORDS, _FASTCALL = 0x1, 0x2, 0x80
_NEW_FROM_DESCR = 94
_PYTHON = (
    "PyObject_Vectorcall", "PyObject_Call", "PyDict_GetItemWithError", "PyEval_SaveThread", "PyEval_RestoreThread",
    "Py_IncRef", "Py_DecRef", "PyLong_AsLongLongAndOverflow",
)  # fmt: skip


class _Method(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class Keep:
    """What a builtin function needs to live: its code, its table, and the objects that the table points to."""

    def __init__(self, table: Any, held: tuple[Any, ...]) -> None:
        self.table, self.held, self.methods = table, held, list[_Method]()

    def function(self, name: str, address: int, flags: int) -> Any:
        """Return a builtin function that keeps this, and whose code is at `address`."""
        method = _Method(name.encode(), address, flags, None)
        self.methods.append(method)
        new = ctypes.pythonapi.PyCFunction_NewEx
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
        return new(ctypes.addressof(method), self, None)


@dataclass(frozen=True, slots=True)
class Entry:
    """`direct` is to be called by itself, `of_kernel` as the `__call__` of an object."""

    direct: Any
    of_kernel: Any
    keep: Keep

    @property
    def calls(self) -> int:
        """How many calls ended in its code."""
        return int(self.keep.table[FIXED.index("calls")] or 0)


def entry(
    signature: Signature,
    artifact: Artifact,
    kernel: Code,
    pixels: frozenset[str],
    threads: int,
    next_: Callable[..., Any],
    objects: Callable[[str], bytes],
    target: Target,
) -> Entry | None:
    """Return builtin functions for calls of one version; None where there can be none here.

    kernel: the loaded code of `artifact`. next_: what is called with anything else. objects: gives the object code of
    a text.
    """
    layout = layout_here()
    if layout is None:
        return None
    try:
        made = entry_text(signature, artifact, pixels, layout, target)
        descrs = [d.dtype for d in made.dtypes]
        arrays = [t.array for t in signature.tables]
        first = {
            "array": id(np.ndarray), "tuple": id(tuple), "float": id(float), "int": id(int), "true": id(True),
            "false": id(False), "out": id(_OUT), "kernel": kernel.addresses[artifact.entry], "next": id(next_),
            "new_array": _array_api(), "threads": threads, "calls": 0, "ticks": 1 << 40,
        }  # fmt: skip
        words = [first[name] for name in FIXED] + [id(d) for d in descrs] + [a.ctypes.data for a in arrays]
        table = (ctypes.c_void_p * len(words))(*words)
        python = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _PYTHON}
        code = load(objects(made.text), (DIRECT, OF_KERNEL), {**python, TABLE: ctypes.addressof(table)})
    except StaxError:
        return None
    keep = Keep(table, (code, kernel, next_, descrs, arrays))
    name, addresses = signature.name, code.addresses
    return Entry(
        keep.function(name, addresses[DIRECT], _FASTCALL | _KEYWORDS),
        keep.function(name, addresses[OF_KERNEL], _VARARGS | _KEYWORDS),
        keep,
    )


_OUT = "out"
"""Names of keywords are interned, as this is: the same object."""


@cache
def layout_here() -> Layout | None:
    """Return where objects keep what entries read, after a look at arrays that are known; None where that differs."""
    if platform.python_implementation() != "CPython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None
    layout = Layout(object.__basicsize__)
    array = np.zeros((3, 5), np.float32)[:, ::2]
    array.flags.writeable = False

    def at(thing: object, offset: int, kind: Any = ctypes.c_void_p) -> Any:
        return kind.from_address(id(thing) + offset).value

    dims, strides = (at(array, layout.field(n)) for n in ("dims", "strides"))
    pair = (1.5, array)
    right = (
        at(array, layout.type) == id(np.ndarray)
        and at(array, layout.field("data")) == array.ctypes.data
        and at(array, layout.field("nd"), ctypes.c_int) == 2
        and at(array, layout.field("descr")) == id(array.dtype) == id(np.dtype(np.float32))
        and list((ctypes.c_int64 * 2).from_address(dims)) == [3, 3]
        and list((ctypes.c_int64 * 2).from_address(strides)) == [20, 8]
        and at(array, layout.field("flags"), ctypes.c_int) & 0x503 == 0x100
        and at(pair, layout.header) == 2
        and at(pair, layout.items + 8) == id(array)
        and at({1: 2, 3: 4, 5: 6}, layout.header) == 3
        and at(pair[0], layout.header, ctypes.c_double) == 1.5
    )
    return layout if right and _makes_arrays() else None


def _array_api() -> int:
    """Return the address of PyArray_NewFromDescr."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = pointer(np._core._multiarray_umath._ARRAY_API, None)  # pyright: ignore
    return int((ctypes.c_void_p * (_NEW_FROM_DESCR + 1)).from_address(table)[_NEW_FROM_DESCR] or 0)


def _makes_arrays() -> bool:
    """Return whether the function at that address makes the array that is asked for."""
    kind = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
        ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p,
    )  # fmt: skip
    dims, descr = (ctypes.c_int64 * 2)(2, 3), np.dtype(np.int16)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(descr))
    made = kind(_array_api())(np.ndarray, descr, 2, ctypes.addressof(dims), None, None, 0, None)
    return type(made) is np.ndarray and made.shape == (2, 3) and made.dtype == descr and made.flags.c_contiguous
