"""Arrays on a GPU: what callers hold, seen as NumPy sees arrays, though nobody may read them here.

A view is a NumPy header over an address of the GPU: type, shape, strides and overlap are checked as for any array, and
its elements are never touched. Outputs are made by the library of the first array given: torch, CuPy, or none.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from stax import dtypes
from stax.errors import ArgumentError
from stax.runtime import cuda

Array: TypeAlias = np.ndarray[Any, Any]


class _Holder:
    def __init__(self, interface: dict[str, Any], keep: object) -> None:
        self.__array_interface__, self.keep = interface, keep


class DeviceArray:
    """A dense array on a GPU, for whoever has neither torch nor CuPy; `numpy()` copies it to the CPU."""

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any], device: int = 0, stream: int = 0) -> None:
        self.shape, self.dtype = tuple(shape), dtype
        self._memory = cuda.Memory(math.prod(self.shape) * dtype.itemsize, device, stream)

    @staticmethod
    def of(array: Array, device: int = 0) -> DeviceArray:
        """Return a copy of `array` on a GPU."""
        dense = np.ascontiguousarray(array)
        made = DeviceArray(array.shape, dense.dtype, device)
        made._memory.write(dense.ctypes.data)
        return made

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        stream = self._memory.stream or 1
        data = (self._memory.address, False)
        return {"shape": self.shape, "typestr": self.dtype.str, "data": data, "version": 3, "stream": stream}

    def numpy(self) -> Array:
        """Return a copy on the CPU, once all that was launched before is done."""
        made = np.empty(self.shape, self.dtype)
        self._memory.read(made.ctypes.data)
        return made


class Gpu:
    """How the arguments of one call are seen, and its outputs made: on the GPU and stream of its first array."""

    def __init__(self) -> None:
        self.first: Any = None
        self.device = 0
        self.stream = 0

    def view(self, value: Any, words: str, writing: bool = False) -> Array:
        """Return a header over the memory of `value`."""
        if type(value).__module__ == "torch" and hasattr(value, "data_ptr"):
            found, device, stream = _of_torch(value, words)
        elif hasattr(value, "__cuda_array_interface__"):
            found, device, stream = _of_interface(value)
        else:
            kind = "a NumPy array" if isinstance(value, np.ndarray) else f"of type {type(value).__name__}"
            raise ArgumentError(
                f"{words} is {kind}, and this kernel runs on the GPU",
                hint="torch.from_numpy(a).cuda() or cupy.asarray(a) copies it there",
            )
        if self.first is None:
            self.first, self.device, self.stream = value, device, stream
        elif device != self.device:
            raise ArgumentError(f"{words} lies on GPU {device}, and other arrays of this call on GPU {self.device}")
        return found

    def fresh(self, shape: tuple[int, ...], dtype: dtypes.DType) -> tuple[Array, Any]:
        """Return a header over new memory, and the array of the caller's library that it is."""
        like = self.first
        if type(like).__module__ == "torch":
            torch = sys.modules["torch"]
            made = torch.empty(shape, dtype=getattr(torch, dtype.name.rstrip("_")), device=like.device)
        elif type(like).__module__.partition(".")[0] == "cupy":
            made = sys.modules["cupy"].empty(shape, dtype.dtype)
        else:
            made = DeviceArray(shape, dtype.dtype, self.device, self.stream)
        return self.view(made, "an output"), made

    def copy(self, array: Array) -> Array:
        """Refuse: an input would have to be copied for an output that overlaps it."""
        raise ArgumentError(
            'overlap="copy" is not there on the GPU', hint="copy the input before the call, or give another output"
        )

    def scratch(self, shape: tuple[int, ...], dtype: dtypes.DType) -> Array:
        """Return a header over memory that lives as long as it does."""
        made = cuda.Memory(math.prod(shape) * dtype.size_bytes, self.device, self.stream)
        return _header(made.address, shape, None, dtype.dtype, False, made)

    def held(self, array: Array) -> Array:
        """Return a header over a copy of `array` on the GPU."""
        made = self.scratch(array.shape, dtypes.as_dtype(array.dtype))
        dense = np.ascontiguousarray(array)
        memory = cast(cuda.Memory, _keeper(made))
        memory.write(dense.ctypes.data)
        return made


def _keeper(array: Array) -> object:
    base = array
    while isinstance(base, np.ndarray):
        base = cast(Any, base.base)
    return base.keep


def _header(
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    dtype: np.dtype[Any],
    fixed: bool,
    keep: object,
) -> Array:
    plain = np.dtype(f"u{dtype.itemsize}") if dtype.str[1] == "V" else dtype
    data = (address, fixed)
    interface = {"data": data, "shape": shape, "strides": strides, "typestr": plain.str, "version": 3}
    found: Array = np.asarray(_Holder(interface, keep))
    return found if plain == dtype else found.view(dtype)


def _of_torch(value: Any, words: str) -> tuple[Array, int, int]:
    if not value.is_cuda:
        raise ArgumentError(
            f"{words} is a torch tensor on {value.device}, and this kernel runs on the GPU", hint="give it as .cuda()"
        )
    if value.requires_grad:
        raise ArgumentError(f"{words} requires a gradient, which stax does not compute", hint="give it as .detach()")
    name = str(value.dtype).removeprefix("torch.")
    try:
        dtype = dtypes.as_dtype(name).dtype
    except TypeError:
        raise ArgumentError(f"{words} has type {value.dtype}, which stax has not") from None
    strides = tuple(s * dtype.itemsize for s in value.stride())
    stream = sys.modules["torch"].cuda.current_stream(value.device).cuda_stream
    return _header(value.data_ptr(), tuple(value.shape), strides, dtype, False, value), value.device.index, stream


def _of_interface(value: Any) -> tuple[Array, int, int]:
    given = value.__cuda_array_interface__
    address, fixed = given["data"]
    found = _header(address, tuple(given["shape"]), given.get("strides"), np.dtype(given["typestr"]), fixed, value)
    if type(value).__module__.partition(".")[0] == "cupy":
        stream = sys.modules["cupy"].cuda.get_current_stream().ptr
        return found, value.device.id, stream
    stream = given.get("stream")
    return found, cuda.device_of(address) if address else 0, 0 if stream in (None, 1) else stream
