"""Calls a function of a library that stax exported, with nothing but ctypes.

Arrays are whatever has the buffer protocol: NumPy's, array.array, bytearray, memoryview. Results that are not given as
`out=` are arrays of ctypes. This file is copied beside each library, with what the library takes at its end.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

_TYPES = {
    "bool": ctypes.c_uint8,
    "int8": ctypes.c_int8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
    "float16": ctypes.c_uint16,
    "bfloat16": ctypes.c_uint16,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}
_FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "il",
    "int64": "lq",
    "uint8": "B",
    "uint16": "H",
    "uint32": "IL",
    "uint64": "LQ",
    "float16": "eH",
    "bfloat16": "HE",
    "float32": "f",
    "float64": "d",
}
_WRITABLE, _STRIDED = 0x1, 0x1C


class _Buffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]


class Library:
    """An exported function: call it with arrays and numbers in order, or by name."""

    def __init__(self, path: str, interface: dict[str, Any]) -> None:
        self._library = ctypes.CDLL(os.fspath(path))
        self._arguments, self._outputs = interface["arguments"], interface["outputs"]
        self.__name__ = interface["name"]
        self.__doc__ = interface["signature"]
        self._run = getattr(self._library, self.__name__)
        self._run.restype = ctypes.c_int32
        self._message = getattr(self._library, f"{self.__name__}_message")
        self._message.restype, self._message.argtypes = ctypes.c_char_p, [ctypes.c_int32]
        self._shape = getattr(self._library, f"{self.__name__}_shape", None)

    def __call__(self, *args: Any, out: Any = None, shape: Any = None, threads: int = 1, **named: Any) -> Any:
        """Return the output, or a tuple of them; `shape` is that of an output whose extents nothing else says."""
        given = self._match(args, named)
        views: list[_Buffer] = []
        try:
            passed: list[Any] = []
            asked: list[Any] = []
            read: dict[str, Any] = {}
            for kind, name, type_, rank, _, default in self._arguments:
                value = given.get(name, default)
                if value is None:
                    raise TypeError(f"{self.__name__}() lacks the argument {name!r}")
                if kind == "number":
                    passed.append(_number(name, type_, value))
                    asked.append(passed[-1])
                else:
                    view = _view(name, type_, rank, value, kind == "written", views)
                    read[name] = value
                    passed += _spread(view, rank)
                    asked += _spread(view, rank)[1:2]
            results = self._results(out, shape, asked, passed, views, read)
            self._check(self._run(*passed, ctypes.c_int32(threads)))
            return results[0] if len(results) == 1 else tuple(results)
        finally:
            for view in views:
                ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))

    def _match(self, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        names = [one[1] for one in self._arguments]
        if len(args) > len(names):
            takes = ", ".join(names)
            raise TypeError(f"{self.__name__}() takes ({takes}), and {len(args)} were given; an output goes to out=")
        given = dict(zip(names, args, strict=False))
        for name, value in named.items():
            if name not in names or name in given:
                raise TypeError(f"{self.__name__}() has no argument {name!r}, or was given it twice")
            given[name] = value
        return given

    def _results(
        self, out: Any, shape: Any, asked: list[Any], passed: list[Any], views: list[_Buffer], read: dict[str, Any]
    ) -> list[Any]:
        outs: Any = _tuple(out) if out is not None else (None,) * len(self._outputs)
        shapes: dict[str, Any] = {}
        for output, _, _, rank, known, _ in self._outputs:
            if rank and output not in shapes:
                extents: Any = (ctypes.c_int64 * rank)()
                if shape is not None:
                    extents[:] = [n or 0 for n in _tuple(shape)]
                elif out is None and not all(known):
                    raise TypeError(f"nothing says how large {output!r} is: give shape= or out=")
                shapes[output] = extents
        if shapes:
            wanted = [list(extents) for extents in shapes.values()]
            self._check(self._shape(*asked, *shapes.values()) if self._shape is not None else 0)
            for extents, mine in zip(shapes.values(), wanted, strict=True):
                if shape is not None:
                    extents[:] = [n or inferred for n, inferred in zip(mine, extents, strict=True)]
        results: list[Any] = []
        for (output, name, type_, rank, _, over), given in zip(self._outputs, outs, strict=True):
            if over is not None:
                results.append(read[over])
                continue
            value = _empty(type_, tuple(shapes.get(output, ()))) if given is None else given
            results.append(value)
            passed += _spread(_view(name, type_, rank, value, True, views), rank)
        return results

    def _check(self, code: int) -> None:
        if code:
            error = MemoryError if code > 0 else ValueError
            raise error(f"{self.__name__}: {self._message(code).decode()}")


def _tuple(shape: Any) -> Any:
    return shape if type(shape) in (tuple, list) else (shape,)


def _view(name: str, type_: str, rank: int, value: Any, written: bool, views: list[_Buffer]) -> _Buffer:
    view = _Buffer()
    flags = _STRIDED | (_WRITABLE if written else 0)
    try:
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(value), ctypes.byref(view), flags)
    except TypeError:
        raise TypeError(f"{name!r} is of type {type(value).__name__}, and an array is needed") from None
    views.append(view)
    text = (view.format or b"B").decode().lstrip("@=<")
    if text not in _FORMATS[type_] or view.itemsize != ctypes.sizeof(_TYPES[type_]) or not text:
        raise TypeError(f"{name!r} has elements of format {text!r}, and {type_} is needed")
    if view.ndim != rank:
        raise TypeError(f"{name!r} has {view.ndim} dimensions, and {rank} are needed")
    return view


def _spread(view: _Buffer, rank: int) -> list[Any]:
    extents = (ctypes.c_int64 * rank)(*view.shape[:rank]) if rank else None
    strides = (ctypes.c_int64 * rank)(*view.strides[:rank]) if rank and view.strides else None
    return [ctypes.c_void_p(view.buf or _NOTHING), *([extents, strides] if rank else [])]


_HELD = ctypes.create_string_buffer(64)
_NOTHING = (ctypes.addressof(_HELD) + 63) & ~63 if ctypes.addressof(_HELD) % 64 else ctypes.addressof(_HELD)


def _number(name: str, type_: str, value: Any) -> Any:
    if type_ in ("float16", "bfloat16"):
        raise TypeError(f"{name!r} is a {type_}, which ctypes cannot pass: give its bits as a c_uint16")
    try:
        made = _TYPES[type_](value)
    except TypeError:
        raise TypeError(f"{name!r} is {value!r}, and {type_} is needed") from None
    if "int" in type_ and made.value != value:
        raise TypeError(f"{name!r} is {value}, which does not fit into {type_}")
    return made


def _empty(type_: str, shape: tuple[int, ...]) -> Any:
    kind: Any = _TYPES[type_]
    for extent in reversed(shape):
        kind = kind * extent
    return kind()
