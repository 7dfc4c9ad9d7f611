"""What the host does of a program that was cut into kernels: memory for all of them, host loops, launches.

A machine runs kernels: `Cuda` on a GPU, `Interpreter` in Triton's own. Sizes and grids are evaluated once, where no
host loop changes them; a launch then writes the counters into an argument block and calls the driver.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias, assert_never

import numpy as np

from stax.backends.artifact import Facts
from stax.backends.triton.build import Binary, build, determinants
from stax.backends.triton.source import Argument, ArgumentKind, Source, emit
from stax.dtypes import DType
from stax.errors import ArgumentError, DeviceError
from stax.expr.nodes import Expr, Local
from stax.expr.walk import names, postorder
from stax.loops.launches import Host, HostAllocate, HostLoop, Kernel
from stax.loops.nodes import Buffer
from stax.runtime import cuda
from stax.runtime.arguments import Bound, address
from stax.runtime.cache import Store, digest
from stax.runtime.device import Gpu
from stax.runtime.fallback import Runner
from stax.runtime.formula import Formula, Number, formula

Array: TypeAlias = np.ndarray[Any, Any]
Counters: TypeAlias = Mapping[str, int]
Launch: TypeAlias = Callable[[int, Counters], None]

MOST_POINTS = 2**31 - 1
ROWS = (1024, 2048, 4096, 8192, 16384)
"""How many elements rows may have that one program keeps as lanes: a version of a kernel for each that is met."""
MANY = 1 << 22
MOST_RECORDED = 1 << 14
_WIDE = 2**30  # from here on, a position rounded up to whole tiles may need 64 bits
_WORDS = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64}
_FLOATS = {"fp32": ctypes.c_float, "fp64": ctypes.c_double}


class Machine(Protocol):
    """Runs the kernels of one program on the arrays of one call."""

    def scratch(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """Return memory for a program, undefined at first."""
        ...

    def ready(self, number: int, values: Sequence[Any]) -> Launch:
        """Return what launches kernel `number`; `values` are its arguments, None where a counter is to come."""
        ...


class Interpreter:
    """Triton's interpreter, on NumPy arrays."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources

    def scratch(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """Return memory full of what nobody should see."""
        return np.full(shape, dtype.dtype.type(np.nan if dtype.is_float else dtype.high >> 1))

    def ready(self, number: int, values: Sequence[Any]) -> Launch:
        """Return what interprets a kernel."""
        from stax.backends.triton.interpret import interpret

        source = self._sources[number]

        def launch(points: int, counters: Counters) -> None:
            pairs = zip(source.arguments, values, strict=True)
            interpret(source, points, [counters[a.name] if v is None else v for a, v in pairs])

        return launch


class Cuda:
    """A GPU, with the code of each kernel from `code`, loaded once."""

    def __init__(self, sources: Sequence[Source], functions: Sequence[cuda.Function], gpu: Gpu) -> None:
        self._sources, self._functions, self._gpu = sources, functions, gpu
        self.stream, self.launched = gpu.stream, 0
        self._cells: dict[str, list[Any]] = {}
        self._kept: dict[int, tuple[int, list[Any]]] = {}

    def scratch(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """Return memory in the order of the stream."""
        made = self._gpu.scratch(shape, dtype)
        self._kept[address(made)] = made.nbytes, []
        return made

    def move(self, addresses: Mapping[str, int]) -> list[cuda.Memory]:
        """Let the next launches use buffers at other addresses, and new memory, which lives as long as it is held."""
        for name, at in addresses.items():
            for cell in self._cells.get(name, ()):
                cell.value = at
        held: list[cuda.Memory] = []
        for size, cells in self._kept.values():
            made = cuda.Memory(size, self._gpu.device, self._gpu.stream)
            held.append(made)
            for cell in cells:
                cell.value = made.address
        return held

    def ready(self, number: int, values: Sequence[Any]) -> Launch:
        """Return what launches a kernel: a block of arguments is made now."""
        source, function = self._sources[number], self._functions[number]
        cells = [_cell(a, v) for a, v in zip(source.arguments, values, strict=True)]
        for argument, cell in zip(source.arguments, cells, strict=True):
            if argument.kind is ArgumentKind.POINTER:
                kept = self._kept.get(cell.value)
                (self._cells.setdefault(argument.name, []) if kept is None else kept[1]).append(cell)
        cells += [ctypes.c_uint64(0), ctypes.c_uint64(0)]
        params = (ctypes.c_void_p * len(cells))(*(ctypes.addressof(c) for c in cells))
        counted = [(c, a.name) for c, a in zip(cells, source.arguments, strict=False) if a.kind is ArgumentKind.COUNTER]

        def launch(points: int, counters: Counters, keep: object = cells) -> None:
            for cell, name in counted:
                cell.value = counters[name]
            self.launched += 1
            function.launch(points, self.stream, params)

        return launch


def _cell(argument: Argument, value: Any) -> Any:
    if argument.kind is ArgumentKind.POINTER:
        return ctypes.c_uint64(address(value))
    return {**_WORDS, **_FLOATS}[argument.type](0 if value is None else value)


class _Loaded:
    """The kernels of one version of a program, compiled when first called, and loaded once on each GPU."""

    def __init__(self, sources: Sequence[Source], tables: Mapping[str, Array], store: Store) -> None:
        self._sources, self._tables, self._store = sources, tables, store
        self._on: dict[int, tuple[Sequence[cuda.Function], Mapping[str, Array]]] = {}
        self._lock = threading.Lock()

    def on(self, gpu: Gpu) -> tuple[Sequence[cuda.Function], Mapping[str, Array]]:
        """Return the kernels and the tables on the GPU of a call."""
        found = self._on.get(gpu.device)
        if found is None:
            with self._lock:
                if gpu.device in self._on:
                    return self._on[gpu.device]
                codes = compile_all(self._sources, cuda.capability(gpu.device), self._store)
                functions = [cuda.load(b.code, b.name, b.threads, b.shared, gpu.device) for b in codes]
                found = functions, {name: gpu.held(array) for name, array in self._tables.items()}
                self._on[gpu.device] = found
        return found


def compile_all(sources: Sequence[Source], capability: int, store: Store) -> list[Binary]:
    """Return the code of each kernel, from the cache where it is there; their texts are kept beside it."""
    folder = None if store.folder is None else store.folder / "triton"

    def code(source: Source) -> bytes:
        key = digest("triton", *determinants(source, capability))
        return store.entry(key, lambda: build(source, capability, folder).packed())

    return [Binary.unpacked(code(source)) for source in sources]


def on_gpu(
    host: tuple[Host, ...], tables: Mapping[str, Array], store: Store, facts: Facts, graphs: bool = False
) -> Runner:
    """Return a runner that launches kernels on the GPU of a call's arrays; with `graphs`, as one where it can."""
    sources = emit(host, facts)
    loaded, sums = _Loaded(sources, tables, store), _Sums()

    def ready(bound: Bound, threads: int) -> Callable[[], None]:
        gpu = bound.memory
        assert isinstance(gpu, Gpu)
        with cuda.on(gpu.device):
            functions, held = loaded.on(gpu)
            machine = Cuda(sources, functions, gpu)
            return _OnGpu(_Host(host, sources, machine, bound, held, sums), machine, gpu, graphs)

    return ready


class _OnGpu:
    """Launches all of a program on the GPU of its arrays; again on arrays elsewhere, if nothing is made on the way."""

    def __init__(self, host: _Host, machine: Cuda, gpu: Gpu, graphs: bool) -> None:
        self._host, self._machine, self._gpu, self._device = host, machine, gpu, gpu.device
        self._graphs = graphs and host.steady
        self._seen: tuple[int, ...] | None = None
        self._graph: tuple[tuple[int, ...], cuda.Graph, list[cuda.Memory]] | None = None

    @property
    def movable(self) -> bool:
        """Whether `again` may be called: no argument of a launch depends on what the host counts but by its number."""
        return self._host.steady

    def __call__(self) -> None:
        self._run(None)

    def release(self) -> None:
        """Let go of the arrays of the call that it was made for."""
        self._host.release()
        self._gpu.first = None

    def again(self, addresses: Mapping[str, int]) -> None:
        """Launch all of it with buffers at other addresses, and with new memory for what it keeps."""
        self._run(addresses)

    def _run(self, addresses: Mapping[str, int] | None) -> None:
        with contextlib.nullcontext() if cuda.current(self._device) else cuda.on(self._device):
            if self._graphs:
                self._run_recorded(addresses)
            else:
                self._launch(addresses)

    def _launch(self, addresses: Mapping[str, int] | None) -> None:
        held = [] if addresses is None else self._machine.move(addresses)
        self._machine.launched = 0
        self._host.run()
        del held  # in the order of the stream: after what was launched

    def _run_recorded(self, addresses: Mapping[str, int] | None) -> None:
        """Launch all of it as a graph, which is recorded where the same arrays come for the second time."""
        stream, key = self._gpu.stream, () if addresses is None else tuple(addresses.values())
        if cuda.recording(stream):
            self._launch(addresses)
        elif self._graph is not None and self._graph[0] == key:
            self._graph[1].launch(stream)
        elif self._seen != key or not 1 < self._machine.launched <= MOST_RECORDED:
            self._launch(addresses)
            self._seen = key
        else:
            held = [] if addresses is None else self._machine.move(addresses)
            self._graph = key, cuda.Graph(self._on_stream), held
            self._graph[1].launch(stream)

    def _on_stream(self, stream: int) -> None:
        usual, self._machine.stream = self._machine.stream, stream
        try:
            self._host.run()
        finally:
            self._machine.stream = usual


def interpreted(host: tuple[Host, ...], facts: Facts) -> Runner:
    """Return a runner in Triton's interpreter."""
    sources, sums = emit(host, facts), _Sums()

    def ready(bound: Bound, threads: int) -> Callable[[], None]:
        return _Host(host, sources, Interpreter(sources), bound, {}, sums).run

    return ready


class _Sums:
    """Functions of sizes, and the names in them, made once for all calls."""

    def __init__(self) -> None:
        self.formula = functools.cache(formula)
        self.names = functools.cache(names)


class _Host:
    """The host part of one call."""

    def __init__(
        self,
        host: tuple[Host, ...],
        sources: Sequence[Source],
        machine: Machine,
        bound: Bound,
        tables: Mapping[str, Array],
        sums: _Sums,
    ) -> None:
        self._machine, self._bound, self._sums = machine, bound, sums
        self._arrays = {**bound.arrays, **tables}
        self._sources = {s.kernel: (k, s) for k, s in enumerate(sources)}
        self.steady = True
        self._steps = self._block(host, frozenset())

    def release(self) -> None:
        """Let go of all arrays: what is launched from now on has its addresses from elsewhere."""
        self._bound = replace(self._bound, arrays={}, results=None, memory=None)
        self._arrays = {}

    def run(self) -> None:
        """Run all of it once; on a GPU, that is to launch it."""
        counters: dict[str, int] = {}
        for step in self._steps:
            step(counters)

    def _block(self, host: tuple[Host, ...], bound: frozenset[str]) -> list[Callable[[dict[str, int]], None]]:
        out: list[Callable[[dict[str, int]], None]] = []
        changes = False
        for part in host:
            match part:
                case HostAllocate(buffer=buffer):
                    changes = bool(self._sums.names(buffer.shape) & bound)
                    if not changes:
                        self._allocate(part, {})
                    else:
                        self.steady = False
                        out.append(lambda counters, part=part: self._allocate(part, counters))
                case HostLoop():
                    out.append(self._loop(part, bound))
                case Kernel() if changes:
                    out.append(lambda counters, part=part: self._kernel(part, bound)(counters))
                case Kernel():
                    out.append(self._kernel(part, bound))
                case _:
                    assert_never(part)
        return out

    def _allocate(self, part: HostAllocate, counters: Counters) -> None:
        shape = tuple(max(0, int(n)) for n in self._values(part.buffer.shape, counters))
        self._arrays[part.buffer.name] = self._machine.scratch(shape, part.buffer.dtype)

    def _loop(self, loop: HostLoop, bound: frozenset[str]) -> Callable[[dict[str, int]], None]:
        steps = self._block(loop.body, bound | {loop.var.name})
        ends, sizes, scalars = self._sums.formula((loop.start, loop.extent)), self._bound.sizes, self._bound.scalars
        name, down = loop.var.name, loop.down

        def run(counters: dict[str, int]) -> None:
            start, extent = (int(n) for n in ends(sizes, {**scalars, **counters}))
            for k in range(start + extent - 1, start - 1, -1) if down else range(start, start + extent):
                counters[name] = k
                for step in steps:
                    step(counters)

        return run

    def _kernel(self, kernel: Kernel, bound: frozenset[str]) -> Callable[[dict[str, int]], None]:
        extents = tuple(loop.extent for loop in kernel.grid)
        number, source = self._sources[kernel]
        if not self._sums.names(extents) & bound:
            points = self._points(self._values(extents, {}))
            launch = self._ready(kernel, number, source, points)
            return lambda counters: launch(points, counters) if points else None
        self.steady = False
        grid, sizes, scalars = self._sums.formula(extents), self._bound.sizes, self._bound.scalars
        made: list[tuple[int, Launch]] = []

        def run(counters: dict[str, int]) -> None:
            points = self._points(grid(sizes, {**scalars, **counters}))
            if not made or (kernel.scratch and made[0][0] < points):
                made[:] = [(points, self._ready(kernel, number, source, points))]
            if points:
                made[0][1](points, counters)

        return run

    def _points(self, extents: Sequence[Number]) -> int:
        points = math.prod(max(0, int(n)) for n in extents)
        if points > MOST_POINTS:
            raise DeviceError(
                f"a kernel would run {points} programs, and a GPU takes {MOST_POINTS} at once",
                hint="give each more to do: a larger tile",
            )
        return points

    def _ready(self, kernel: Kernel, number: int, source: Source, points: int) -> Launch:
        arrays = {b.name: self._arrays[b.name] for b in kernel.buffers}
        for b in kernel.scratch:
            shape = (max(1, points), *(max(0, int(n)) for n in self._values(b.shape, {})))
            arrays[b.name] = self._machine.scratch(shape, b.dtype)
        ranks = {b.name: len(b.shape) for b in (*kernel.buffers, *kernel.scratch)}
        return self._machine.ready(number, [self._value(a, arrays, ranks) for a in source.arguments])

    def _value(self, argument: Argument, arrays: Mapping[str, Array], ranks: Mapping[str, int]) -> Any:
        name, dim = argument.name, argument.dim
        match argument.kind:
            case ArgumentKind.POINTER:
                return arrays[name]
            case ArgumentKind.STRIDE:
                array = arrays[name]
                step, item = array.strides[dim - ranks[name]], array.itemsize
                if step % item and array.shape[dim - ranks[name]] > 1:
                    raise ArgumentError(
                        f"`{name}` steps by {step} bytes, which is no whole number of elements",
                        hint="give a copy: the GPU reads elements where they are aligned",
                    )
                return step // item
            case ArgumentKind.SIZE:
                return self._bound.sizes[name][dim]
            case ArgumentKind.PARAM:
                return self._bound.scalars[name]
            case ArgumentKind.COUNTER:
                return None
            case _:
                assert_never(argument.kind)

    def _values(self, exprs: Sequence[Expr], counters: Counters) -> tuple[Number, ...]:
        return self._sums.formula(tuple(exprs))(self._bound.sizes, {**self._bound.scalars, **counters})


def facts_on_gpu(
    host: tuple[Host, ...], rows: tuple[Expr, ...] = (), counted: tuple[str, ...] = ()
) -> Callable[[Bound], Facts]:
    """Return what tells, of the arrays of a call, which are dense, which even, and whether positions are large.

    rows: how long rows are that may be kept as lanes. counted: outputs of which it matters whether they are large.
    """
    shapes = [b.shape for b in _allocated(host)]
    fixed = [shape for shape in shapes if not any(isinstance(n, Local) for n in postorder(shape))]
    memory, wide = [formula(shape) for shape in fixed], len(fixed) < len(shapes)
    lengths = formula(rows)

    def found(bound: Bound) -> Facts:
        longest = max((int(n) for n in lengths(bound.sizes, bound.scalars)), default=0)
        row = next((n for n in ROWS if longest <= n), 0) if rows else 0
        many = any(math.prod(bound.sizes[name]) >= MANY for name in counted)
        return replace(_facts(bound, wide or any(_large(shape, bound) for shape in memory)), row=row, many=many)

    return found


def _facts(bound: Bound, wide: bool) -> Facts:
    dense: list[str] = []
    even: list[str] = []
    wide = wide or any(abs(n) >= _WIDE for n in bound.scalars.values() if isinstance(n, int))
    for name, array in bound.arrays.items():
        item, shape = array.itemsize, array.shape
        if not shape or shape[-1] <= 1 or array.strides[-1] == item:
            dense.append(name)
            steps = [s for n, s in zip(shape[:-1], array.strides, strict=False) if n > 1]
            last = shape[-1] * item if shape else 16
            if all(n % 16 == 0 for n in (address(array), last, *steps)):
                even.append(name)
        reach = sum(abs(s) // item * max(0, n - 1) for n, s in zip(shape, array.strides, strict=True))
        wide = wide or reach >= _WIDE
        wide = wide or max(shape, default=0) >= _WIDE
    return Facts(frozenset(dense), even=frozenset(even), wide=wide)


def _allocated(host: tuple[Host, ...]) -> Iterator[Buffer]:
    for part in host:
        if isinstance(part, HostAllocate):
            yield part.buffer
        elif isinstance(part, HostLoop):
            yield from _allocated(part.body)


def _large(shape: Formula, bound: Bound) -> bool:
    """Return whether memory has so many elements that positions in it need 64 bits."""
    return math.prod(max(1, int(n)) for n in shape(bound.sizes, bound.scalars)) >= _WIDE
