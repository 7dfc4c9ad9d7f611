"""The arguments of a call: matched to names, checked and viewed as NumPy arrays, before anything runs or is written.

Types, ranks and regions are checked, never converted; any strides, alignment and order will do. All that is wrong is
an ArgumentError or BoundsError that says what was given and what is taken.
"""

from __future__ import annotations

import contextlib
import difflib
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from stax.algorithm.nodes import Input, Scalar
from stax.algorithm.positions import LARGEST_POSITION
from stax.backends.artifact import Facts
from stax.dtypes import DType
from stax.errors import ArgumentError, BoundsError, DeviceError, StaxError
from stax.expr.evaluate import constant
from stax.expr.nodes import Const
from stax.loops.walk import MOST_CHANNELS
from stax.runtime.formula import Number, formula
from stax.runtime.signature import Check, CheckKind, Output, Signature

Array: TypeAlias = np.ndarray[Any, Any]
_CPU_DEVICES = (1, 3, 13)
_ENUMERATED = 1 << 20
_OVERLAP_WORK = 10_000
_LEAST_PLACED_BYTES = 64 << 10
_LINE_BYTES = 64


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """Checked arguments. `arrays` are by buffer name; `sizes` by the names of inputs, tables, outputs and buffers.

    `results` is what the call returns: an array, or tuples of them. `empty` says that there is nothing to compute.
    `memory` is where the arrays lie.
    """

    arrays: Mapping[str, Array]
    sizes: Mapping[str, tuple[int, ...]]
    scalars: Mapping[str, Number]
    results: Any
    empty: bool = False
    memory: Any = None


class Memory(Protocol):
    """Where the arrays of a call lie."""

    def view(self, value: Any, words: str, writing: bool = False) -> Array:
        """Return the memory of `value` as an array, or the header of one; nothing is copied."""
        ...

    def fresh(self, shape: tuple[int, ...], dtype: DType) -> tuple[Array, Any]:
        """Return a new array as `view` gives it, and as the caller gets it."""
        ...

    def copy(self, array: Array) -> Array:
        """Return a copy of an array."""
        ...


class Cpu:
    """The memory of this process, as NumPy has it."""

    def view(self, value: Any, words: str, writing: bool = False) -> Array:
        """Return an array over the memory of `value`."""
        return value if type(value) is np.ndarray else _view(value, words, writing)

    def fresh(self, shape: tuple[int, ...], dtype: DType) -> tuple[Array, Any]:
        """Return a new array."""
        made = _fresh(shape, dtype.dtype)
        return made, made

    def copy(self, array: Array) -> Array:
        """Return a copy."""
        return array.copy()


class Arguments:
    """Checks the calls of one signature; its expressions are made into Python functions once.

    `memory` gives, for each call, where its arrays lie.
    """

    def __init__(self, signature: Signature, memory: Callable[[], Memory] = Cpu) -> None:
        self.signature = signature
        self._memory = memory
        self._names = frozenset(signature.arguments)
        self._tables = {t.name: t.array for t in signature.tables}
        self._declared = [(i, k, e) for i in signature.inputs for k, e in enumerate(i.sizes) if e is not None]
        self._declared_sizes = formula([e for _, _, e in self._declared])
        self._origins = [name for o in signature.outputs for name in o.origin]
        self._shapes = [formula([e for e in o.shape if e is not None]) for o in signature.outputs]
        self._conds = formula([c.cond for c in signature.checks])

    def bind(
        self,
        args: Sequence[Any],
        named: Mapping[str, Any],
        out: Any = None,
        shape: Any = None,
        origin: Any = None,
        overlap: str = "refuse",
    ) -> Bound:
        """Return the checked arguments of one call, with outputs allocated where `out` gives none."""
        if overlap not in ("refuse", "copy"):
            raise ArgumentError(f'overlap is {overlap!r}, and must be "refuse" or "copy"')
        memory = self._memory()
        given = self._match(args, named)
        arrays = {one.name: _input(one, self._given(given, one.name), memory) for one in self.signature.inputs}
        scalars = {one.name: _scalar(one, given.get(one.name)) for one in self.signature.scalars if one.name in given}
        for one in self.signature.scalars:
            if one.name in self.signature.positions and one.name in scalars:
                _check_position(one, scalars[one.name])
        scalars |= self._defaults(given) | self._origin(origin)
        sizes = {name: array.shape for name, array in (arrays | self._tables).items()}
        self._check_declared(sizes, scalars)
        outs = self._outs(out, memory)
        outs |= self._overwritten(given, arrays, outs)
        shapes, inferred = self._output_shapes(shape, outs, sizes, scalars)
        for one, extents in zip(self.signature.outputs, shapes, strict=True):
            sizes |= dict.fromkeys((one.name, *one.buffers), extents)
        self._check_outs(outs, sizes)
        empty = all(0 in extents for extents in shapes)
        if not empty and not all(self._conds(sizes, scalars)):
            self._judge_failed(sizes, scalars, inferred, outs)
        for name, _ in self.signature.overwritten:
            del arrays[name]
        _check_overlap(outs, arrays, overlap, memory)
        outs |= self._allocate(outs, sizes, memory)
        results = [self._result(one, outs) for one in self.signature.outputs]
        whole = results[0] if len(results) == 1 else tuple(results)
        written = {name: array for name, (array, _) in outs.items()}
        return Bound(arrays | self._tables | written, sizes, scalars, whole, empty, memory)

    def _match(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        names = self.signature.arguments
        if len(args) > len(names):
            raise self._error(f"{len(args)} positional arguments were given, and the kernel takes {len(names)}")
        given = dict(zip(names, args, strict=False))
        for name, value in named.items():
            if name not in self._names:
                close = difflib.get_close_matches(name, names, 1)
                raise self._error(
                    f"the kernel has no argument `{name}`", hint=f"did you mean `{close[0]}`?" if close else None
                )
            if name in given:
                raise self._error(f"`{name}` was given twice: by position and by name")
            given[name] = value
        return given

    def _given(self, given: Mapping[str, Any], name: str) -> Any:
        if name not in given:
            raise self._error(f"input `{name}` was not given")
        return given[name]

    def _defaults(self, given: Mapping[str, Any]) -> dict[str, Number]:
        found: dict[str, Number] = {}
        for one in self.signature.scalars:
            if one.name not in given and one.name not in self._origins:
                if one.default is None:
                    raise self._error(f"Param `{one.name}` was not given and has no default")
                found[one.name] = one.default
        return found

    def _error(self, message: str, hint: str | None = None) -> ArgumentError:
        return ArgumentError(message, facts=[f"the kernel is {self.signature}"], hint=hint)

    def _origin(self, origin: Any) -> dict[str, Number]:
        if origin is None:
            return dict.fromkeys(self._origins, 0)
        found: dict[str, Number] = {}
        for one, values in zip(self.signature.outputs, self._per_output(origin, "origin"), strict=True):
            if values is None:
                found |= dict.fromkeys(one.origin, 0)
            elif not one.origin:
                raise ArgumentError(
                    f"the origin of `{one.name}` is fixed at index 0 in this kernel",
                    places=[(one.span, "defined here")],
                    hint="shift the index in the definition instead",
                )
            else:
                found |= {name: value or 0 for name, value in zip(one.origin, values, strict=True)}
        return found

    def _check_declared(self, sizes: Mapping[str, tuple[int, ...]], scalars: Mapping[str, Number]) -> None:
        wanted = self._declared_sizes(sizes, scalars)
        for (one, dim, _), extent in zip(self._declared, wanted, strict=True):
            if sizes[one.name][dim] != extent:
                raise ArgumentError(
                    f"`{one.name}` has extent {sizes[one.name][dim]} in {self.signature.dim(one.name, dim)}, "
                    f"and is declared to have {extent}",
                    places=[(one.span, "declared here")],
                    facts=[f"its shape is {sizes[one.name]}"],
                )

    def _outs(self, out: Any, memory: Memory) -> dict[str, tuple[Array, Any]]:
        """Return the output arrays that the call gave, by buffer name, each with the object it is a view of."""
        outputs = self.signature.outputs
        if out is None:
            return {}
        groups: Sequence[Any] = (out,) if len(outputs) == 1 else _tuple_of(out, len(outputs), "outputs")
        found: dict[str, tuple[Array, Any]] = {}
        for one, group in zip(outputs, groups, strict=True):
            if group is None:
                continue
            parts: Sequence[Any] = (
                (group,) if len(one.dtypes) == 1 else _tuple_of(group, len(one.dtypes), f"parts of `{one.name}`")
            )
            for name, dtype, part in zip(one.buffers, one.dtypes, parts, strict=True):
                if part is not None:
                    found[name] = (_output(one, name, dtype, part, memory), part)
        return found

    def _overwritten(
        self, given: Mapping[str, Any], arrays: Mapping[str, Array], outs: Mapping[str, tuple[Array, Any]]
    ) -> dict[str, tuple[Array, Any]]:
        """Return the inputs that are written over, by the buffer that each is, with the object it is a view of."""
        found: dict[str, tuple[Array, Any]] = {}
        for name, buffer in self.signature.overwritten:
            array = arrays[name]
            one = next(i for i in self.signature.inputs if i.name == name)
            if not array.flags.writeable:
                raise ArgumentError(
                    f"`{name}` is read-only, and the kernel writes over it",
                    places=[(one.span, "declared here")],
                    hint=f"give a copy, or leave overwrite({name!r}) out of the schedule",
                )
            if _overlaps_itself(array):
                raise ArgumentError(
                    f"`{name}` has elements that share memory, and the kernel writes over it",
                    facts=[f"its shape is {array.shape}, its strides are {array.strides}"],
                    hint="give an array of its own",
                )
            if buffer in outs and not _same_memory(outs[buffer][0], array):
                raise ArgumentError(
                    f"output `{buffer}` is kept in place of input `{name}`, and out= is another array",
                    hint=f"leave out= away: the result is the array given for `{name}`",
                )
            found[buffer] = outs.get(buffer, (array, given[name]))
        return found

    def _output_shapes(
        self,
        shape: Any,
        outs: Mapping[str, tuple[Array, Any]],
        sizes: Mapping[str, tuple[int, ...]],
        scalars: Mapping[str, Number],
    ) -> tuple[list[tuple[int, ...]], set[tuple[str, int]]]:
        """Return the shapes of the outputs, and which of their extents the call did not give."""
        asked = self._per_output(shape, "shape") if shape is not None else [None] * len(self.signature.outputs)
        found: list[tuple[int, ...]] = []
        left: set[tuple[str, int]] = set()
        for one, extents, inferred in zip(self.signature.outputs, asked, self._shapes, strict=True):
            given = next((outs[name][0].shape for name in one.buffers if name in outs), (None,) * len(one.shape))
            whole: list[int] = []
            known = iter(inferred(sizes, scalars))
            for dim, expr in enumerate(one.shape):
                serves = max(0, int(next(known))) if expr is not None else None
                wanted = extents[dim] if extents is not None else None
                extent = wanted if wanted is not None else given[dim]
                if extent is None:
                    left.add((one.name, dim))
                    extent = serves
                if extent is None:
                    raise ArgumentError(
                        f"nothing says how far `{one.name}` extends in {self.signature.dim(one.name, dim)}",
                        places=[(one.span, "defined here")],
                        hint=f'sx.Func("{one.name}", shape=(...)), or give shape= or out= at the call',
                    )
                if extent < 0:
                    raise ArgumentError(f"shape= asks for the extent {extent} of `{one.name}`, which is negative")
                whole.append(extent)
            found.append(tuple(whole))
        return found, left

    def _per_output(self, value: object, what: str) -> list[tuple[int | None, ...] | None]:
        """Return one tuple of ints an output from `value`: one for all, or a tuple of them."""
        outputs = self.signature.outputs
        items = _items(value)
        nested = items is not None and any(_items(v) is not None for v in items)
        values: Sequence[Any] = _tuple_of(value, len(outputs), "outputs") if nested else (value,) * len(outputs)
        return [None if v is None else _integers(v, one, what) for one, v in zip(outputs, values, strict=True)]

    def _check_outs(self, outs: Mapping[str, tuple[Array, Any]], sizes: Mapping[str, tuple[int, ...]]) -> None:
        for name, (array, _) in outs.items():
            if array.shape != sizes[name]:
                raise ArgumentError(
                    f"the array for output `{name}` has shape {array.shape}, and {sizes[name]} is needed"
                )

    def _judge_failed(
        self, sizes: Mapping[str, tuple[int, ...]], scalars: Mapping[str, Number], inferred: set[tuple[str, int]],
        outs: Mapping[str, tuple[Array, Any]],
    ) -> None:  # fmt: skip
        given = [f"the array for output `{name}` has shape {array.shape}" for name, (array, _) in outs.items()]
        for check, holds in zip(self.signature.checks, self._conds(sizes, scalars), strict=True):
            asked = check.kind is CheckKind.AGREE and (check.stage, check.dim) not in inferred
            if not holds and not asked:
                lo, hi, size = (int(v) for v in formula([check.lo, check.hi, check.size])(sizes, scalars))
                empty = lo > hi and check.kind in (CheckKind.READ, CheckKind.WRITE)
                if not empty:
                    raise self._bounds_error(check, lo, hi, size, given)

    def _bounds_error(self, check: Check, lo: int, hi: int, size: int, given: list[str]) -> StaxError:
        dim = self.signature.dim(check.source, check.dim)
        other = self.signature.dim(check.stage, check.dim)
        served = f"0 to {size - 1}" if size > 0 else "nothing"
        span = (check.span, "this read" if check.kind is CheckKind.READ else "this index")
        match check.kind:
            case CheckKind.READ:
                itself = check.stage.partition(".update(")[0] == check.source
                return BoundsError(
                    f"`{check.stage}` reads `{check.source}` outside its {dim}: it needs {lo} to {hi}, "
                    f"there is {served}",
                    places=[span],
                    facts=given,
                    hint=f"give start values before the definition, such as {check.source}[0] = ..., "
                    "or read it in an arm of sx.select that keeps inside"
                    if itself
                    else f"read sx.pad({check.source}, ...), clip or shift the index, "
                    "or ask for another shape=, out= or origin=",
                )
            case CheckKind.WRITE:
                return BoundsError(
                    f"`{check.stage}` may write `{check.source}` outside its {dim}: it reaches {lo} to {hi}, "
                    f"there is {served}",
                    places=[span],
                    hint="clip the index, give the RDom a where=, or ask for a larger shape=",
                )
            case CheckKind.EXTENT:
                wanted = str(lo) if lo == hi else f"{lo} to {hi}"
                return BoundsError(
                    f"`{check.source}` has extent {size} in {dim}, and {wanted} is needed",
                    places=[(check.span, "asked for here")],
                )
            case CheckKind.PROMISE:
                return BoundsError(
                    f"`{check.source}` is needed at {lo} to {hi} along `{check.name}`, and its schedule promises "
                    f"{check.stage}",
                    places=[(check.span, "promised here")],
                )
            case CheckKind.LANES:
                return BoundsError(
                    f"loop `{check.name}` of `{check.source}` runs {size} times, and its schedule says {check.stage}",
                    places=[(check.span, "said here")],
                )
            case CheckKind.AGREE:
                return BoundsError(
                    f"the inputs serve `{check.stage}` to different extents in {other}: {lo}, "
                    f"and {hi} by `{check.source}`",
                    places=[(check.span, "read here")],
                    hint="cut the inputs to one size, or give shape=",
                )

    def _allocate(
        self, outs: Mapping[str, tuple[Array, Any]], sizes: Mapping[str, tuple[int, ...]], memory: Memory
    ) -> dict[str, tuple[Array, Any]]:
        made: dict[str, tuple[Array, Any]] = {}
        for one in self.signature.outputs:
            for name, dtype in zip(one.buffers, one.dtypes, strict=True):
                if name not in outs:
                    try:
                        made[name] = memory.fresh(sizes[name], dtype)
                    except (MemoryError, OverflowError, ValueError):
                        raise DeviceError(
                            f"there is no memory for output `{name}` of shape {sizes[name]} and type {dtype.name}"
                        ) from None
        return made

    def _result(self, one: Output, outs: Mapping[str, tuple[Array, Any]]) -> Any:
        parts = tuple(outs[name][1] for name in one.buffers)
        return parts[0] if len(parts) == 1 else parts


def facts_of(arrays: Iterable[tuple[str, Array]], pixels: AbstractSet[str] = frozenset()) -> Facts:
    """Return what holds of `arrays`: which are dense in their last dimension, and which aligned to their elements.

    Of those in `pixels` also how many channels they have, where they are few.
    """
    dense: list[str] = []
    aligned: list[str] = []
    packed: list[tuple[str, int]] = []
    for name, array in arrays:
        item, shape = array.itemsize, array.shape
        if not shape or shape[-1] <= 1 or array.strides[-1] == item:
            dense.append(name)
        if array.flags.aligned and (array.dtype.alignment == item or _aligned(array)):
            aligned.append(name)
        if name in pixels and 1 < shape[-1] <= MOST_CHANNELS and array.strides[-2:] == (shape[-1] * item, item):
            packed.append((name, shape[-1]))
    return Facts(frozenset(dense), frozenset(aligned), frozenset(packed))


def _aligned(array: Array) -> bool:
    item = array.itemsize
    steps = [stride for extent, stride in zip(array.shape, array.strides, strict=True) if extent > 1]
    return all(step % item == 0 for step in (address(array), *steps))


def _fresh(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return a new array; a large one begins with a line of the caches, as stores past them need."""
    if math.prod(shape) * dtype.itemsize < _LEAST_PLACED_BYTES:
        return np.empty(shape, dtype)
    cells = np.empty(math.prod(shape) + _LINE_BYTES // dtype.itemsize, dtype)
    start = -address(cells) % _LINE_BYTES // dtype.itemsize
    return cells[start : start + math.prod(shape)].reshape(shape)


def address(array: Array) -> int:
    """Return where element 0 lies."""
    return array.__array_interface__["data"][0]


def _input(one: Input, value: Any, memory: Memory) -> Array:
    array = memory.view(value, f"`{one.name}`")
    if not one.dtype.fits(array.dtype):
        raise _wrong_type(f"`{one.name}`", array, one.dtype, one)
    if array.ndim != len(one.dims):
        raise ArgumentError(
            f"`{one.name}` has {_dimensions(array.ndim)}, and the kernel takes {_dimensions(len(one.dims))}",
            places=[(one.span, "declared here")],
            facts=[f"its shape is {array.shape}"],
        )
    return array


def _output(one: Output, name: str, dtype: DType, value: Any, memory: Memory) -> Array:
    words = f"the array for output `{name}`"
    array = memory.view(value, words, True)
    if not dtype.fits(array.dtype):
        raise _wrong_type(words, array, dtype, one)
    if array.ndim != len(one.shape):
        raise ArgumentError(
            f"{words} has {_dimensions(array.ndim)}, and `{one.name}` has {_dimensions(len(one.shape))}",
            facts=[f"its shape is {array.shape}"],
        )
    if not array.flags.writeable:
        raise ArgumentError(f"{words} is read-only")
    if _overlaps_itself(array):
        raise ArgumentError(
            f"{words} has elements that share memory",
            facts=[f"its shape is {array.shape}, its strides are {array.strides}"],
            hint="give an array of its own, such as one of np.empty",
        )
    return array


def _wrong_type(words: str, array: Array, dtype: DType, one: Input | Output) -> ArgumentError:
    taken = "the kernel takes" if isinstance(one, Input) else "the kernel gives"
    places = [(one.span, "declared here" if isinstance(one, Input) else "defined here")]
    if array.dtype.newbyteorder("=") == dtype.dtype:
        return ArgumentError(
            f"{words} is not in this machine's byte order: its type is {array.dtype.str}",
            places=places,
            hint=f"convert it with .astype({dtype.dtype.str!r})",
        )
    return ArgumentError(
        f"{words} has type {array.dtype}, and {taken} {dtype.name}",
        places=places,
        hint=f"convert it with .astype(np.{dtype.name})" if isinstance(one, Input) else None,
    )


def _dimensions(n: int) -> str:
    return "1 dimension" if n == 1 else f"{n} dimensions"


def _view(value: Any, words: str, writing: bool = False) -> Array:
    """Return an array over the memory of `value`; nothing is copied."""
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentError(f"{words} is a masked array, and masks are not kept", hint="give its .data or .filled()")
    if isinstance(value, np.ndarray):
        return np.asarray(cast(Array, value))
    device = getattr(value, "__dlpack_device__", None)
    if hasattr(value, "__cuda_array_interface__") or (device is not None and int(device()[0]) not in _CPU_DEVICES):
        raise ArgumentError(
            f"{words} lies on another device, and this kernel runs on the CPU", hint="copy it to the CPU first"
        )
    try:
        with contextlib.suppress(TypeError):
            return np.asarray(memoryview(value))
        if hasattr(value, "__array_interface__"):
            return np.asarray(value)
        if hasattr(value, "__dlpack__"):
            return _from_dlpack(value, writing)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ArgumentError(f"the memory of {words} could not be viewed as an array", facts=[str(error)]) from None
    raise ArgumentError(
        f"{words} is of type {type(value).__name__}, and an array is needed",
        hint="np.asarray(...) makes one" if not writing else "np.empty(...) makes one",
    )


def _from_dlpack(value: Any, writing: bool) -> Array:
    array = np.from_dlpack(value)
    if writing and not array.flags.writeable and hasattr(value, "__array__"):
        # Exporters of the older protocol can't say that they may be written; their own __array__ does.
        other = np.asarray(value)
        if address(other) == address(array):
            return other
    return array


def _scalar(one: Scalar, value: Any) -> Number:
    if isinstance(value, np.ndarray) and cast(Array, value).ndim == 0:
        value = cast(Array, value)[()]
    number = _number(one, value)
    if (one.low is not None and not number >= one.low) or (one.high is not None and not number <= one.high):
        low, high = (("" if v is None else v) for v in (one.low, one.high))
        raise ArgumentError(
            f"Param `{one.name}` is {number}, outside its limits {low}..{high}", places=[(one.span, "declared here")]
        )
    return number


def _check_position(one: Scalar, number: Number) -> None:
    if abs(number) > LARGEST_POSITION:
        raise ArgumentError(
            f"Param `{one.name}` is {number}, and positions that are computed from it could wrap",
            places=[(one.span, "declared here")],
            facts=[f"positions, and what is compared with them, stay within {LARGEST_POSITION} (2 ** 47) of 0"],
            hint="clip the number before the call: no array has a position so far out",
        )


def _number(one: Scalar, value: Any) -> Number:
    dtype = one.dtype
    boolean = isinstance(value, bool) or type(value) is np.bool_
    if dtype.is_bool and boolean:
        return bool(value)
    if dtype.is_integer and not boolean and not isinstance(value, float | np.floating):
        try:
            whole = operator.index(cast(Any, value))
        except TypeError:
            raise _wrong_scalar(one, value) from None
        if not dtype.low <= whole <= dtype.high:
            raise ArgumentError(
                f"Param `{one.name}` is {whole}, which does not fit into {dtype.name}",
                places=[(one.span, "declared here")],
                facts=[f"{dtype.name} holds {dtype.low} to {dtype.high}"],
            )
        return whole
    if dtype.is_float and not boolean and isinstance(value, int | float | np.integer | np.floating):
        return _rounded(one, cast(float, value))
    raise _wrong_scalar(one, value)


def _rounded(one: Scalar, value: float) -> float:
    try:
        with np.errstate(all="ignore"):
            number = float(constant(Const(one.dtype, value)))
    except OverflowError:
        number = math.inf
    if math.isinf(number) and not (isinstance(value, float | np.floating) and math.isinf(value)):
        raise ArgumentError(
            f"Param `{one.name}` is {value}, which does not fit into {one.dtype.name}",
            places=[(one.span, "declared here")],
        )
    return number


def _wrong_scalar(one: Scalar, value: Any) -> ArgumentError:
    real = one.dtype.is_integer and isinstance(value, float)
    return ArgumentError(
        f"Param `{one.name}` is of type {type(value).__name__}, and the kernel takes {one.dtype.name}",
        places=[(one.span, "declared here")],
        hint="int(...) makes one" if real else None,
    )


def _tuple_of(value: object, n: int, what: str) -> Sequence[Any]:
    items = _items(value)
    if items is None or len(items) != n:
        raise ArgumentError(f"a tuple of {n} is needed, one for each of the {n} {what}")
    return items


def _items(value: object) -> Sequence[Any] | None:
    return cast(Sequence[Any], value) if isinstance(value, tuple | list) else None


def _integers(value: object, one: Output, what: str) -> tuple[int | None, ...]:
    items = _items(value)
    items = (value,) if items is None else items
    if len(items) != len(one.shape):
        raise ArgumentError(f"{what}= has {len(items)} entries, and `{one.name}` has {_dimensions(len(one.shape))}")
    try:
        return tuple(None if v is None else operator.index(cast(Any, v)) for v in items)
    except TypeError:
        raise ArgumentError(f"{what}= holds something that is not an integer: {value!r}") from None


def _check_overlap(
    outs: Mapping[str, tuple[Array, Any]], arrays: dict[str, Array], overlap: str, memory: Memory
) -> None:
    """Refuse outputs that share memory with an input or each other; with "copy", replace such inputs by copies."""
    seen: list[tuple[str, Array]] = []
    for name, (out, _) in outs.items():
        for other, array in seen:
            if _share(out, array):
                raise ArgumentError(f"the arrays for outputs `{other}` and `{name}` share memory")
        seen.append((name, out))
        for other, array in arrays.items():
            if _share(out, array):
                if overlap == "refuse":
                    raise ArgumentError(
                        f"the array for output `{name}` shares memory with input `{other}`",
                        hint='give another array, or overlap="copy" to copy the input first',
                    )
                arrays[other] = memory.copy(array)


def _same_memory(a: Array, b: Array) -> bool:
    return (address(a), a.shape, a.strides) == (address(b), b.shape, b.strides)


def _share(a: Array, b: Array) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return bool(np.shares_memory(a, b, max_work=cast(Any, _OVERLAP_WORK)))
    except (np.exceptions.TooHardError, OverflowError):
        return True


def _overlaps_itself(array: Array) -> bool:
    """Return whether two elements of `array` share a byte, or that is too costly to say."""
    if array.flags.c_contiguous or array.flags.f_contiguous or array.size <= 1:
        return False
    steps = sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1)
    reach = array.itemsize
    for stride, extent in steps:
        if stride < reach:
            break
        reach += stride * (extent - 1)
    else:
        return False
    if array.size > _ENUMERATED:
        return True
    offsets = np.zeros(1, np.int64)
    for stride, extent in steps:
        offsets = np.add.outer(offsets, np.arange(extent, dtype=np.int64) * stride).ravel()
    return bool((np.diff(np.sort(offsets)) < array.itemsize).any())
