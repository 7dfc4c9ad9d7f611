"""What users call: a compiled program, with one version of its machine code for each kind of array layout seen."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from stax.backends.artifact import OUT_OF_MEMORY, Artifact, Facts, Slot, SlotKind
from stax.dtypes import DType
from stax.errors import ArgumentError, BackendError, DeviceError, InternalError, UnsupportedError
from stax.expr import bfloat16
from stax.expr.nodes import Expr
from stax.loops.nodes import Program
from stax.runtime.arguments import Arguments, Bound, Cpu, Memory, address, facts_of
from stax.runtime.entry import Entry, entry
from stax.runtime.fallback import Runner, failure, interpreted, warn
from stax.runtime.formula import formula
from stax.runtime.load import Code, load
from stax.runtime.log import Log, step, whole
from stax.runtime.misses import explain
from stax.runtime.pool import pool
from stax.runtime.repeats import Repeats
from stax.runtime.signature import Signature
from stax.target import Target

MOST_VERSIONS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Build:
    """What the compiler gives a Kernel.

    `respecialise` makes the code that takes some facts for granted; what `program` gives is interpreted where that
    fails, unless `strict_native`. `source` gives a text by its kind ("nests", "loops", ...); `symbols` are what code
    imports. `elsewhere` makes the kernel for calls with `origin=`, whose outputs begin where the call says; `timed` the
    one with clocks, whose last output they fill, and the names of its rows but the first, which is the whole. `pixels`
    are the arrays whose last dimension the code wants to know, `packed` those where that is known beforehand. `target`
    is the machine that the code is for; `entries` gives the object code of an entry's text, else Python checks all
    calls. `printed` gives the text of a version, which an artifact from the cache lacks.
    `device` is where else than on the CPU it runs. `meaning` interprets the algorithm where there are no loops. `log`
    is told of the steps of calls that Python checks. `tuned` gives the kernel, of several schedules, that the first
    call with anything to compute finds to be the fastest for its arguments and threads; it takes the place of this one.
    """

    signature: Signature
    respecialise: Callable[[Facts], Artifact]
    program: Callable[[], Program] | None = None
    source: Callable[[str], str] | None = None
    schedule: Callable[[], Any] | None = None
    contract: str = "bitwise"
    provenance: Mapping[str, str] = field(default_factory=dict[str, str])
    threads: int = 1
    strict_native: bool = False
    symbols: Callable[[], Mapping[str, int]] = field(default=lambda: pool().symbols)
    elsewhere: Callable[[], Kernel] | None = None
    timed: Callable[[], tuple[Kernel, tuple[str, ...]]] | None = None
    pixels: frozenset[str] = frozenset()
    packed: frozenset[tuple[str, int]] = frozenset()
    roundings: Mapping[str, Expr | None] = field(default_factory=dict[str, "Expr | None"])
    target: Target | None = None
    entries: Callable[[str], bytes] | None = None
    printed: Callable[[Facts], str] | None = None
    meaning: Runner | None = None
    log: Log | None = None
    device: Device | None = None
    tuned: Callable[[Bound, int], Kernel] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """How calls are served elsewhere: where arrays lie, what holds of those of a call, and what runs them.

    `sources` are the texts of a version.
    """

    memory: Callable[[], Memory]
    facts: Callable[[Bound], Facts]
    runner: Callable[[Facts], Runner]
    sources: Callable[[Facts], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class _Version:
    """What serves calls of some facts: `run` runs it on arguments that were checked; on the CPU, machine code."""

    run: Runner
    artifact: Artifact | None = None
    code: Code | None = None


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """How many versions a kernel has, how many calls it served, and whether it is interpreted.

    `entered` calls of them were checked by machine code, the others by Python.
    """

    versions: int
    calls: int
    interpreted: bool
    entered: int = 0


class Kernel:
    """A compiled program: call it with arrays, in the order of `signature` or by name.

    At a call, `out=` gives arrays to write, `shape=` and `origin=` the box to compute, `threads=` how many threads may
    run, and `overlap="copy"` allows an output that shares memory with an input. Several threads may call one Kernel.

    >>> import numpy as np, stax as sx
    >>> x, a, f = sx.Var("x"), sx.Input("a", sx.int32, 1), sx.Func("f")
    >>> f[x] = a[x] * 2
    >>> k = sx.compile(f)
    >>> print(k.signature)
    f(a: int32[d0]) -> f: int32[a.shape[0]]
    >>> k(np.arange(3, dtype=np.int32))
    array([0, 2, 4], dtype=int32)
    """

    if not TYPE_CHECKING:
        # A slot that holds what a call runs: Python at first, then a builtin function for layouts that came twice.
        __slots__ = (
            "__call__", "__weakref__", "_arguments", "_build", "_calls", "_elsewhere", "_entries", "_failure",
            "_interpreted", "_lock", "_repeats", "_seen", "_tables", "_versions",
        )  # fmt: skip

    def __init__(self, build: Build) -> None:
        self._build = build
        self._arguments = Arguments(build.signature, Cpu if build.device is None else build.device.memory)
        self._tables = facts_of(((t.name, t.array) for t in build.signature.tables), build.pixels)
        self._versions: dict[Facts, _Version] = {}
        self._interpreted: Runner | None = None
        self._failure: BackendError | None = None
        self._lock = threading.Lock()
        self._calls = 0
        self._elsewhere: Kernel | None = None
        self._seen: frozenset[Facts] = frozenset()
        self._entries: dict[Facts, Entry | None] = {}
        self._repeats = Repeats(build.signature) if build.device is not None else None
        self.__call__ = self._call

    if TYPE_CHECKING:

        def __call__(
            self,
            /,
            *args: Any,
            out: Any = None,
            shape: Any = None,
            origin: Any = None,
            threads: int | None = None,
            overlap: str = "refuse",
            **named: Any,
        ) -> Any:
            """Return the output array, or a tuple of them."""

    def _call(
        self,
        /,
        *args: Any,
        out: Any = None,
        shape: Any = None,
        origin: Any = None,
        threads: int | None = None,
        overlap: str = "refuse",
        **named: Any,
    ) -> Any:
        """Return the output array, or a tuple of them; every call that no entry serves comes here."""
        plain = shape is None and origin is None and threads is None and overlap == "refuse"
        if self._repeats is not None and plain:
            served = self._repeats.serve(args, named, out)
            if served is not None:
                self._calls += 1
                return served
        if origin is not None and self._build.elsewhere is not None:
            moved = self._moved(self._build.elsewhere)
            return moved(*args, out=out, shape=shape, origin=origin, threads=threads, overlap=overlap, **named)
        count, log = self._threads(threads), self._build.log
        with whole(log, f"call {self._calls + 1} of {self.signature.name}"):
            with step(log, "arguments"):
                bound = self._arguments.bind(args, named, out, shape, origin, overlap)
            self._calls += 1
            if not bound.empty:
                self._tune(bound, count)
                facts = self._facts(bound)
                run = self._runner(facts)(bound, count)
                with step(log, "run"):
                    run()
                if self._repeats is not None and plain:
                    self._repeats.learn(args, named, out, bound, run)
                elif not named and plain:
                    self._enter(facts)
        return bound.results

    def bind(
        self,
        *args: Any,
        out: Any = None,
        shape: Any = None,
        origin: Any = None,
        threads: int | None = None,
        **named: Any,
    ) -> BoundKernel:
        """Return the kernel with these arguments, checked once: each call runs it on the same arrays.

        Outputs that are not given are allocated once and written by every call.
        """
        count = self._threads(threads)
        bound = self._arguments.bind(args, named, out, shape, origin)
        if bound.empty:
            return BoundKernel(None, bound)
        self._tune(bound, count)
        return BoundKernel(self.ready(bound, count), bound)

    def ready(self, bound: Bound, threads: int) -> Callable[[], None]:
        """Return what runs the kernel on arguments that were checked."""
        return self._runner(self._facts(bound))(bound, threads)

    def prepare(self) -> None:
        """Compile the version for dense, aligned arrays now, and not at the first call.

        Raises as that call would.
        """
        facts = self.usual_facts()
        if facts not in self._versions and self._interpreted is None:
            self._made(facts)

    def usual_facts(self) -> Facts:
        """Return what holds of dense, aligned arrays."""
        outputs = [name for one in self.signature.outputs for name in one.buffers]
        held = dict(self.signature.overwritten)
        names = frozenset((*(i.name for i in self.signature.inputs if held.get(i.name, i.name) == i.name), *outputs))
        tables = self._tables
        return Facts(names | tables.dense, names | tables.aligned, self._build.packed | tables.packed)

    def __repr__(self) -> str:
        return f"<Kernel {self.signature}>"

    def _repr_html_(self) -> str:
        from stax.notebook import block, folded, line, text

        parts = [line("Kernel", str(self.signature)), line("contract", self.contract)]
        parts += [line(word, said) for word, said in self.provenance.items()]
        if self.schedule is not None:
            parts.append(folded("schedule", self.schedule._repr_html_()))
        if self._build.source is not None and self._build.meaning is None:
            parts.append(folded("loops and storage", text(self.source("nests"))))
        return block(*parts)

    @property
    def build(self) -> Build:
        """What the compiler gave it."""
        return self._build

    @property
    def signature(self) -> Signature:
        """What it takes and gives; printed, one line."""
        return self._build.signature

    @property
    def schedule(self) -> Any:
        """The schedule it was compiled with."""
        return None if self._build.schedule is None else self._build.schedule()

    @property
    def contract(self) -> str:
        """How its values keep to the definition: "bitwise", or "reassociates" where sums may be reordered."""
        return self._build.contract

    @property
    def provenance(self) -> Mapping[str, str]:
        """What it was made with, by name.

        "backend" is "interpreter" where machine code could not be had, and "reason" then says why.
        """
        made = {} if self._failure is None else {"backend": "interpreter", "reason": self._failure.message}
        return {"backend": "llvm", **self._build.provenance, **made}

    def error_bound(self, *args: Any, shape: Any = None, **named: Any) -> Any:
        """Return how often a term of the sums of an output is rounded at most, for the arguments of a call.

        An int for each output: m roundings put a sum off by at most m u / (1 - m u) times the sum of the sizes of its
        terms, where u is half the distance from 1 to the next float. Only additions of reductions count. It is what the
        schedule makes it: lanes, accumulators and `rfactor` lower it. None where it is not seen.

        >>> import numpy as np, stax as sx
        >>> a, t = sx.Input("a", sx.float32, 1), sx.Func("t")
        >>> r = sx.RDom("r", k=a.shape[0])
        >>> t[()] = np.float32(0)
        >>> t[()] += a[r]
        >>> s = sx.Schedule(t)
        >>> _ = s[t].update(0).reassociate().vectorize(r, 16)
        >>> given = np.zeros(1 << 20, np.float32)
        >>> sx.compile(t, sx.Schedule(t)).error_bound(given) > sx.compile(t, s).error_bound(given)
        True
        """
        bound = self._arguments.bind(args, named, None, shape)
        found = [self._build.roundings.get(one.name) for one in self.signature.outputs]
        counts = [None if e is None else int(formula([e])(bound.sizes, bound.scalars)[0]) for e in found]
        return counts[0] if len(counts) == 1 else tuple(counts)

    @property
    def guards(self) -> tuple[str, ...]:
        """What each compiled version takes for granted of its arrays, and is only called where it holds."""
        return tuple(_guard(facts) for facts in self._versions)

    def source(self, kind: str = "loops") -> str:
        """Return the program as text: "nests", the loops of the schedule; "loops", as they are run; "llvm"; "asm"."""
        if self._build.source is None:
            raise UnsupportedError("this kernel keeps no source")
        return self._build.source(kind)

    def cache_info(self) -> CacheInfo:
        """Return how many versions there are and how many calls they served."""
        entered = sum(one.calls for one in self._entries.values() if one is not None)
        return CacheInfo(len(self._versions), self._calls + entered, self._interpreted is not None, entered)

    @property
    def entry(self) -> Callable[..., Any]:
        """What a call runs, to be called without the detour through the Kernel: arguments in order, and `out=`.

        It is a builtin function for the layout that came twice last; whatever it does not serve ends in the Kernel.
        """
        made = [one for one in self._entries.values() if one is not None]
        return made[-1].direct if made else self

    def explain_miss(self, *args: Any, out: Any = None, shape: Any = None, **named: Any) -> str:
        """Return why a call with these arguments is served by none of the versions there are, or which one serves it.

        >>> import numpy as np, stax as sx
        >>> x, a, f = sx.Var("x"), sx.Input("a", sx.int32, 1), sx.Func("f")
        >>> f[x] = a[x] * 2
        >>> k = sx.compile(f)
        >>> _ = k(np.arange(8, dtype=np.int32))
        >>> print(k.explain_miss(np.arange(8, dtype=np.int32)[::2]))
        version 1: `a` steps by 8 bytes in its last dimension, of elements of 4; it takes one element
        a call compiles a version for these arrays
        """
        bound = self._arguments.bind(args, named, out, shape)
        arrays = {name: array for name, array in bound.arrays.items() if name not in self._table_names()}
        return explain(self._versions, self._facts(bound), arrays)

    def _tune(self, bound: Bound, threads: int) -> None:
        """Become the fastest of several kernels, where that is still to be found out."""
        if self._build.tuned is None:
            return
        with self._lock:
            if self._build.tuned is not None:
                taken = self._build.tuned(bound, threads)
                self._interpreted, self._failure, self._versions = taken._interpreted, taken._failure, taken._versions
                self._arguments, self._tables, self._build = taken._arguments, taken._tables, taken._build

    def _facts(self, bound: Bound) -> Facts:
        device = self._build.device
        return facts_of(bound.arrays.items(), self._build.pixels) if device is None else device.facts(bound)

    def _table_names(self) -> frozenset[str]:
        return frozenset(t.name for t in self.signature.tables)

    def _moved(self, elsewhere: Callable[[], Kernel]) -> Kernel:
        with self._lock:
            if self._elsewhere is None:
                self._elsewhere = elsewhere()
            return self._elsewhere

    def _threads(self, threads: int | None) -> int:
        if threads is None:
            return self._build.threads
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"threads= is {threads!r}, and must be an integer of at least 1")
        return threads

    def _runner(self, facts: Facts) -> Runner:
        if self._interpreted is not None:
            return self._interpreted
        found = self._versions.get(facts)
        return found.run if found is not None else self._made(facts)

    def _made(self, facts: Facts) -> Runner:
        with self._lock:
            if len(self._versions) >= MOST_VERSIONS:
                facts = self._tables if self._build.device is None else Facts(wide=True)
            found = self._versions.get(facts)
            if self._interpreted is not None or found is not None:
                return self._interpreted or found.run  # pyright: ignore[reportOptionalMemberAccess]
            if self._build.device is not None:
                made = _Version(self._build.device.runner(facts))
                self._versions = {**self._versions, facts: made}
                return made.run
            try:
                with step(self._build.log, "code"):
                    artifact = self._build.respecialise(facts)
                with step(self._build.log, "load"):
                    code = load(artifact.code, (artifact.entry,), self._build.symbols())
                    made = _Version(_machine_code(self._build.signature, artifact, code), artifact, code)
            except Exception as error:  # whatever fails there, the program is still known
                return self._fallen(failure(error), error)
            self._versions = {**self._versions, facts: made}
            return made.run

    def _fallen(self, error: BackendError, cause: Exception) -> Runner:
        """Return what interprets the program, after a warning; raise where that is not wanted, or there is none."""
        build = self._build
        if build.strict_native or (build.program is None and build.meaning is None):
            raise error from cause if cause is not error else None
        self._failure = error
        warn(self.signature.name, error)
        if build.meaning is not None:
            self._interpreted = build.meaning
        else:
            assert build.program is not None
            self._interpreted = interpreted(build.program())
        return self._interpreted

    def _enter(self, facts: Facts) -> None:
        """Have calls with these facts, when they come for the second time, checked by machine code from now on."""
        if facts in self._entries or self._interpreted is not None:
            return
        with self._lock:
            version, build = self._versions.get(facts), self._build
            if version is None or version.artifact is None or version.code is None or facts in self._entries:
                return
            if facts not in self._seen:
                self._seen |= {facts}
                return
            made = None
            if build.entries is not None and build.target is not None and pool().native:
                with step(build.log, "entry, which later calls take"):
                    made = entry(
                        build.signature, version.artifact, version.code, build.pixels, build.threads, self.__call__,
                        build.entries, build.target,
                    )  # fmt: skip
            self._entries = {**self._entries, facts: made}
            if made is not None:
                self.__call__ = made.of_kernel


class BoundKernel:
    """A kernel and its arguments: a call without any runs it, and returns the same output arrays each time."""

    def __init__(self, run: Callable[[], None] | None, bound: Bound) -> None:
        self._run, self._bound = run, bound

    def __call__(self) -> Any:
        """Run once more and return the outputs."""
        if self._run is not None:
            self._run()
        return self._bound.results


def _machine_code(signature: Signature, artifact: Artifact, code: Code) -> Runner:
    entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(code.addresses[artifact.entry])
    types = {s.name: s.dtype for s in signature.scalars}
    words = ctypes.c_int64 * len(artifact.slots)

    def ready(bound: Bound, threads: int, keep: Code = code) -> Callable[[], None]:
        record = (ctypes.c_int64 * 4)()
        block = words(*[_word(slot, bound, types, threads, record) for slot in artifact.slots])
        at = ctypes.addressof(block)

        def run(keep: object = (keep, bound, block)) -> None:
            result = entry(at)
            if result != 0:
                raise _failure(signature, result, list(record))

        return run

    return ready


def _word(slot: Slot, bound: Bound, types: Mapping[str, DType], threads: int, record: ctypes.Array[Any]) -> int:
    match slot.kind:
        case SlotKind.POINTER:
            return address(bound.arrays[slot.name])
        case SlotKind.STRIDE:
            return bound.arrays[slot.name].strides[slot.dim]
        case SlotKind.SIZE:
            return bound.sizes[slot.name][slot.dim]
        case SlotKind.SCALAR:
            return _bits(bound.scalars[slot.name], types.get(slot.name))
        case SlotKind.THREADS:
            return threads
        case SlotKind.ERROR:
            return ctypes.addressof(record)
        case _:
            assert_never(slot.kind)


def _bits(value: float, dtype: DType | None) -> int:
    """Return a word whose low bytes are `value` as `dtype`; without one, an int64."""
    if dtype is None or not dtype.is_float:
        return int(value)
    if dtype.name == "bfloat16":
        return int(bfloat16.bits_of(np.array(float(value))))
    word = struct.pack({16: "<e", 32: "<f", 64: "<d"}[dtype.bits], value)
    return int.from_bytes(word, "little")


def _failure(signature: Signature, result: int, record: list[int]) -> DeviceError | InternalError:
    _, code, first, second = record
    if result == OUT_OF_MEMORY or code == OUT_OF_MEMORY:
        return DeviceError(f"`{signature.name}` ran out of memory", facts=[f"{first} bytes were asked for"])
    return InternalError(f"`{signature.name}` failed with code {result}", facts=[f"record: {code}, {first}, {second}"])


def _guard(facts: Facts) -> str:
    dense = ", ".join(sorted(facts.dense)) or "none"
    aligned = ", ".join(sorted(facts.aligned)) or "none"
    packed = "".join(
        f"; the last dimension of {name} has {n} elements, side by side" for name, n in sorted(facts.packed)
    )
    return f"last dimension steps by one element: {dense}; aligned to the element: {aligned}{packed}"


def refuse_other(given: object, what: str) -> None:
    """Raise ArgumentError where `what`, which takes a Kernel, is given something else."""
    if not isinstance(given, Kernel):
        raise ArgumentError(
            f"{what} takes a Kernel, not {type(given).__name__}", hint="sx.compile(f) makes one of a Func"
        )
