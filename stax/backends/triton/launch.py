"""Run printed kernels in Triton's interpreter on NumPy arrays, or compile them for a GPU that need not be there.

Triton decides when it is imported whether it interprets (TRITON_INTERPRET=1), so that one process does one of the two.
Its interpreter checks no bounds, and hides what only the compiler refuses: programs go through both.
"""

from __future__ import annotations

import hashlib
import linecache
import math
import re
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from stax.backends.artifact import Facts
from stax.backends.triton.source import Argument, ArgumentKind, Source, emit
from stax.errors import InternalError
from stax.expr import evaluate
from stax.expr.nodes import Const, Expr, Local, Param, Size
from stax.expr.walk import names
from stax.loops.launches import Host, HostAllocate, HostLoop, Kernel
from stax.loops.nodes import Buffer

Array: TypeAlias = np.ndarray[Any, Any]

_NARROW = 2**30  # below it, a position rounded up to whole tiles has 32 bits
_USUAL_SIZE = 1024


def run(
    host: tuple[Host, ...],
    arrays: Mapping[str, Array],
    scalars: Mapping[str, float | bool],
    sizes: Mapping[tuple[str, int], int],
    pointer: Callable[[Array], Any] | None = None,
) -> None:
    """Run `host` on `arrays` by name, the host part here and each kernel in Triton; outputs are written in place.

    `scalars` are the values of Params, `sizes` the extents of dimension `dim` of array `name`. `pointer` gives what
    Triton takes for an array; without it, the array's own memory, for the interpreter.
    """
    machine = _Host(dict(arrays), scalars, sizes, pointer or _Pointer)
    dense = frozenset(n for n, a in arrays.items() if a.ndim and a.strides[-1] == a.itemsize)
    wide = any(_reach(a) >= _NARROW for a in arrays.values()) or machine.needs_wide(host)
    for source in emit(host, Facts(dense=dense), wide=wide):
        machine.sources[source.kernel] = source
        module = load_source(source.text, source.kernel.name)
        machine.functions[source.kernel] = getattr(module, source.kernel.name)
    machine.run(host, {})


class _Host:
    def __init__(
        self,
        arrays: dict[str, Array],
        scalars: Mapping[str, float | bool],
        sizes: Mapping[tuple[str, int], int],
        pointer: Callable[[Array], Any],
    ) -> None:
        self.sources: dict[Kernel, Source] = {}
        self.functions: dict[Kernel, Any] = {}
        self._arrays, self._scalars, self._sizes, self._pointer = arrays, scalars, sizes, pointer

    def needs_wide(self, host: tuple[Host, ...]) -> bool:
        """Return whether scratch may be so large that positions in it need 64 bits."""
        for part in host:
            if isinstance(part, HostLoop) and self.needs_wide(part.body):
                return True
            held = (
                (part.buffer,) if isinstance(part, HostAllocate) else part.scratch if isinstance(part, Kernel) else ()
            )
            for buffer in held:
                if names(buffer.shape):
                    return True
                shape = [max(1, self._number(n, {})) for n in buffer.shape]
                if math.prod(shape) >= _NARROW:
                    return True
        return False

    def run(self, host: tuple[Host, ...], counters: dict[str, int]) -> None:
        for part in host:
            match part:
                case HostAllocate(buffer=buffer):
                    self._arrays[buffer.name] = self._made(buffer, 1, counters)
                case HostLoop(var=var, start=start, extent=extent, body=body):
                    first, n = self._number(start, counters), self._number(extent, counters)
                    values = range(first, first + n)
                    for k in reversed(values) if part.down else values:
                        self.run(body, {**counters, var.name: k})
                case Kernel():
                    self._launch(part, counters)

    def _launch(self, kernel: Kernel, counters: dict[str, int]) -> None:
        points = 1
        for loop in kernel.grid:
            points *= max(0, self._number(loop.extent, counters))
        if not points:
            return
        arrays = {b.name: self._arrays[b.name] for b in kernel.buffers}
        arrays |= {b.name: self._made(b, points, counters) for b in kernel.scratch}
        ranks = {b.name: len(b.shape) for b in (*kernel.buffers, *kernel.scratch)}
        types_of = {s.name: s.dtype for s in kernel.scalars if isinstance(s, Param)}

        def value(argument: Argument) -> Any:
            name, dim = argument.name, argument.dim
            match argument.kind:
                case ArgumentKind.POINTER:
                    return self._pointer(arrays[name])
                case ArgumentKind.STRIDE:
                    step = arrays[name].strides[dim - ranks[name]]
                    if step % arrays[name].itemsize:
                        raise InternalError(f"`{name}` steps by {step} bytes, no whole number of elements")
                    return step // arrays[name].itemsize
                case ArgumentKind.SIZE:
                    return self._sizes[name, dim]
                case ArgumentKind.PARAM:
                    return self._pointer(np.array([self._scalars[name]], types_of[name].dtype))
                case ArgumentKind.COUNTER:
                    return counters[name]

        args = map(value, self.sources[kernel].arguments)
        self.functions[kernel][(points,)](*args, enable_fp_fusion=False)

    def _made(self, buffer: Buffer, points: int, counters: dict[str, int]) -> Array:
        """Return memory for `buffer`, once for each of `points`."""
        shape = (points, *(max(0, self._number(n, counters)) for n in buffer.shape))
        return np.full(shape, buffer.dtype(np.nan if buffer.dtype.is_float else buffer.dtype.high >> 1))

    def _number(self, expr: Expr, counters: dict[str, int]) -> int:
        def leaf(node: Expr) -> Array:
            match node:
                case Size(array=array, dim=dim):
                    return np.array(self._sizes[array, dim], np.int64)
                case Param(name=name):
                    return np.array(self._scalars[name], node.dtype.dtype)
                case Local(name=name):
                    return np.array(counters[name], np.int64)
                case Const():
                    return evaluate.constant(node)
                case _:
                    raise InternalError("a bound of a kernel's grid is no function of sizes")

        return int(evaluate.evaluate((expr,), leaf)[0])


@dataclass(frozen=True, slots=True)
class Compiled:
    """What one kernel uses on the GPU, and its code as PTX."""

    name: str
    registers: int
    spilled_bytes: int
    shared_bytes: int
    ptx: str


def compile_only(source: Source, *, capability: int = 90, warps: int = 4, fusion: bool = False) -> Compiled:
    """Compile a kernel for an NVIDIA GPU of that capability, without one.

    `fusion` lets the compiler make `a * b + c` one rounding, which changes values.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    driver.set_active(_NoDevice(GPUTarget("cuda", capability, 32)))  # pyright: ignore[reportArgumentType]
    function = getattr(load_source(source.text, source.kernel.name), source.kernel.name)
    buffers = {b.name: b for b in (*source.kernel.buffers, *source.kernel.scratch)}
    params = {s.name: s.dtype for s in source.kernel.scalars if isinstance(s, Param)}
    args: list[Any] = []
    for argument in source.arguments:
        if argument.kind in (ArgumentKind.POINTER, ArgumentKind.PARAM):
            dtype = buffers[argument.name].dtype if argument.kind is ArgumentKind.POINTER else params[argument.name]
            args.append(_Pointer(np.zeros(64, dtype.dtype)))
        else:
            args.append(_USUAL_SIZE)
    done = function.warmup(*args, grid=(1,), num_warps=warps, enable_fp_fusion=fusion)
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(done.asm["cubin"])
        file.flush()
        usage = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True, check=True)
    found = dict(re.findall(r"(REG|LOCAL|STACK):(\d+)", usage.stdout + usage.stderr))
    spilled = int(found["LOCAL"]) + int(found["STACK"])
    return Compiled(source.kernel.name, int(found["REG"]), spilled, int(done.metadata.shared), str(done.asm["ptx"]))


def load_source(text: str, name: str) -> types.ModuleType:
    """Return the module made of `text`, which `inspect` can read without a file."""
    path = f"<{name}_{hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    if path in sys.modules:
        return sys.modules[path]
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    module = types.ModuleType(path)
    module.__file__ = path
    sys.modules[path] = module
    exec(compile(text, path, "exec"), module.__dict__)
    return module


class _Pointer:
    """A NumPy array as Triton takes it: an address, a type, and copies that copy nothing."""

    def __init__(self, array: Array) -> None:
        self.array, self.dtype, self.shape = array, _ScalarName(str(array.dtype)), array.shape

    def data_ptr(self) -> int:
        return self.array.ctypes.data

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
        return np.dtype(str(self)).itemsize

    @property
    def is_floating_point(self) -> bool:
        return np.dtype(str(self)).kind == "f"


class _NoDevice:
    """A driver that only names its target, so that Triton's own launch path compiles and stops."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _: int) -> int:
        return 0


def _reach(array: Array) -> int:
    """Return how many elements lie between the first and the last, or the largest extent."""
    steps = (abs(s) // max(1, array.itemsize) * max(0, n - 1) for s, n in zip(array.strides, array.shape, strict=True))
    return max(sum(steps) + 1, *array.shape, 0)
