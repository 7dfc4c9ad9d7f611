"""Run a printed kernel in Triton's interpreter, on NumPy arrays.

Triton decides when it is imported whether it interprets (TRITON_INTERPRET=1), so that one process does one of the two.
Its interpreter checks no bounds, and hides what only the compiler refuses: programs go through both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from stax.backends.triton.build import load_source
from stax.backends.triton.source import Argument, ArgumentKind, Source

Array: TypeAlias = np.ndarray[Any, Any]

_WORDS = {"i": "int", "u": "uint", "fp": "float"}


def interpret(source: Source, points: int, values: Sequence[Any]) -> None:
    """Run `source` for each of `points`; `values` are its arguments: arrays, and numbers."""
    function = getattr(load_source(source.text, source.kernel.name), source.kernel.name)
    args = [_argument(a, v) for a, v in zip(source.arguments, values, strict=True)]
    function[(points,)](*args)


def _argument(argument: Argument, value: Any) -> Any:
    name = _type(argument.type.removeprefix("*"))
    if argument.kind is ArgumentKind.POINTER:
        return _Pointer(value, name)
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    dtype = getattr(tl, name)
    return tl.tensor(TensorHandle(np.array([value], name), dtype), dtype)  # pyright: ignore[reportArgumentType]


def _type(short: str) -> str:
    """Return the name of a type that signatures name in short."""
    if short in ("i1", "bf16"):
        return "bool" if short == "i1" else "bfloat16"
    word = short.rstrip("0123456789")
    return _WORDS[word] + short.removeprefix(word)


class _Pointer:
    """A NumPy array as Triton takes it: an address, a type, and copies that copy nothing."""

    def __init__(self, array: Array, name: str) -> None:
        self.array, self.dtype, self.shape = array, _ScalarName(name), array.shape

    def data_ptr(self) -> int:
        return self.array.__array_interface__["data"][0]

    def untyped_storage(self) -> _Pointer:
        return self

    def cpu(self) -> _Pointer:
        return self

    def copy_(self, *_: object, **__: object) -> _Pointer:
        return self

    set_ = new_empty = copy_

    def size(self) -> tuple[int, ...]:
        return tuple(self.shape)

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.array.itemsize for s in self.array.strides)

    def storage_offset(self) -> int:
        return 0


class _ScalarName(str):
    """A type by name."""

    @property
    def itemsize(self) -> int:
        return 2 if str(self) == "bfloat16" else np.dtype(str(self)).itemsize

    @property
    def is_floating_point(self) -> bool:
        return "float" in str(self)
