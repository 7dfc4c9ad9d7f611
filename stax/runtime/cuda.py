"""NVIDIA's driver, by ctypes: memory, code and launches, on the context and stream of whoever holds the arrays.

Neither torch, CuPy nor Triton is needed to run a kernel. The primary context is used, which they all share.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cache
from typing import Any

from stax.errors import DeviceError

_OUT_OF_MEMORY = 2
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_POINTER_DEVICE = 9
_DYNAMIC_SHARED = 8
_POOL_KEEPS = 4
_NON_BLOCKING = 1
_OF_THIS_THREAD = 1
_FREE_SHARED = 48 << 10


@cache
def _driver() -> Any:
    for name in ("libcuda.so.1", "nvcuda.dll"):
        with contextlib.suppress(OSError):
            found = ctypes.CDLL(name)
            _check(found.cuInit(0), found)
            return found
    raise DeviceError("there is no NVIDIA driver on this machine, and the kernel is for its GPUs")


def _check(code: int, driver: Any = None) -> None:
    if code == 0:
        return
    text = ctypes.c_char_p()
    (driver or _driver()).cuGetErrorString(code, ctypes.byref(text))
    words = (text.value or b"unknown").decode()
    if code == _OUT_OF_MEMORY:
        raise DeviceError("the GPU has no memory left for what the kernel keeps")
    raise DeviceError(f"the GPU's driver says: {words} ({code})")


@cache
def _context(device: int) -> int:
    """Return the primary context of a GPU, which is kept for the life of the process."""
    driver, handle, context = _driver(), ctypes.c_int(), ctypes.c_void_p()
    _check(driver.cuDeviceGet(ctypes.byref(handle), device))
    _check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle))
    pool, most = ctypes.c_void_p(), ctypes.c_uint64(2**64 - 1)
    if driver.cuDeviceGetDefaultMemPool(ctypes.byref(pool), handle) == 0:
        driver.cuMemPoolSetAttribute(pool, _POOL_KEEPS, ctypes.byref(most))
    return context.value or 0


@cache
def capability(device: int) -> int:
    """Return the compute capability of a GPU: 90 for 9.0."""
    driver, handle, found = _driver(), ctypes.c_int(), [ctypes.c_int(), ctypes.c_int()]
    _check(driver.cuDeviceGet(ctypes.byref(handle), device))
    for value, attribute in zip(found, (_CAPABILITY_MAJOR, _CAPABILITY_MINOR), strict=True):
        _check(driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, handle))
    return 10 * found[0].value + found[1].value


def device_of(address: int) -> int:
    """Return the GPU that memory belongs to; 0 where there is none."""
    found = ctypes.c_int()
    with on(0):
        code = _driver().cuPointerGetAttribute(ctypes.byref(found), _POINTER_DEVICE, ctypes.c_uint64(address))
    return found.value if code == 0 else 0


@contextlib.contextmanager
def on(device: int) -> Generator[None]:
    """Make a GPU the current one."""
    driver = _driver()
    _check(driver.cuCtxPushCurrent_v2(ctypes.c_void_p(_context(device))))
    try:
        yield
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


def current(device: int) -> bool:
    """Return whether a GPU is the current one of this thread."""
    found = ctypes.c_void_p()
    return _driver().cuCtxGetCurrent(ctypes.byref(found)) == 0 and found.value == _context(device)


def recording(stream: int) -> bool:
    """Return whether what is launched on a stream is recorded, by whoever asked for that."""
    found = ctypes.c_int()
    return _driver().cuStreamIsCapturing(ctypes.c_void_p(stream), ctypes.byref(found)) != 0 or found.value != 0


class Graph:
    """Launches that are recorded once and launched as one; `record` makes them on the stream that it is given."""

    def __init__(self, record: Callable[[int], None]) -> None:
        driver, stream, graph, made = _driver(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        _check(driver.cuStreamCreate(ctypes.byref(stream), _NON_BLOCKING))
        try:
            _check(driver.cuStreamBeginCapture_v2(stream, _OF_THIS_THREAD))
            try:
                record(stream.value or 0)
            finally:
                code = driver.cuStreamEndCapture(stream, ctypes.byref(graph))
            _check(code)
            _check(driver.cuGraphInstantiateWithFlags(ctypes.byref(made), graph, ctypes.c_ulonglong(0)))
            driver.cuGraphDestroy(graph)
        finally:
            driver.cuStreamDestroy_v2(stream)
        self._made = made

    def launch(self, stream: int) -> None:
        """Launch all of it."""
        _check(_driver().cuGraphLaunch(self._made, ctypes.c_void_p(stream)))

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            _driver().cuGraphExecDestroy(self._made)


class Memory:
    """Bytes on a GPU, allocated and freed in the order of a stream."""

    def __init__(self, size: int, device: int, stream: int) -> None:
        found = ctypes.c_uint64()
        with on(device):
            _check(
                _driver().cuMemAllocAsync(ctypes.byref(found), ctypes.c_size_t(max(1, size)), ctypes.c_void_p(stream))
            )
        self.address, self.size, self.device, self.stream = found.value, size, device, stream

    def __del__(self) -> None:
        with contextlib.suppress(Exception), on(self.device):
            _driver().cuMemFreeAsync(ctypes.c_uint64(self.address), ctypes.c_void_p(self.stream))

    def write(self, source: int) -> None:
        """Copy bytes from the CPU's memory at `source`."""
        with on(self.device):
            _check(
                _driver().cuMemcpyHtoDAsync_v2(
                    ctypes.c_uint64(self.address), ctypes.c_void_p(source), ctypes.c_size_t(self.size),
                    ctypes.c_void_p(self.stream),
                )
            )  # fmt: skip

    def read(self, goal: int) -> None:
        """Copy the bytes to the CPU's memory at `goal`, after all that was launched before."""
        with on(self.device):
            stream = ctypes.c_void_p(self.stream)
            _check(
                _driver().cuMemcpyDtoHAsync_v2(
                    ctypes.c_void_p(goal), ctypes.c_uint64(self.address), ctypes.c_size_t(self.size), stream
                )
            )
            _check(_driver().cuStreamSynchronize(stream))


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel that is loaded on one GPU."""

    handle: int
    device: int
    threads: int
    shared: int

    def launch(self, points: int, stream: int, params: ctypes.Array[Any]) -> None:
        """Run the kernel for `points` programs; `params` are the addresses of its arguments."""
        _check(_launcher()(self.handle, points, 1, 1, self.threads, 1, 1, self.shared, stream, params, None))


@cache
def _launcher() -> Any:
    found = _driver().cuLaunchKernel
    found.argtypes = [ctypes.c_void_p, *([ctypes.c_uint] * 7), ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    return found


_loading = threading.Lock()


def load(code: bytes, name: str, threads: int, shared: int, device: int) -> Function:
    """Return function `name` of a cubin, on a GPU."""
    driver, module, function = _driver(), ctypes.c_void_p(), ctypes.c_void_p()
    with _loading, on(device):
        _check(driver.cuModuleLoadData(ctypes.byref(module), code))
        _check(driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
        if shared > _FREE_SHARED:
            _check(driver.cuFuncSetAttribute(function, _DYNAMIC_SHARED, shared))
    return Function(function.value or 0, device, threads, shared)
