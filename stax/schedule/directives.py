"""What can be said of a schedule: one node for each directive, holding names and numbers only."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from stax.errors import ScheduleError, UnsupportedError
from stax.source import Span


class Tail(Enum):
    """What a split does with the iterations that do not fill its factor.

    `GUARD` runs only those that exist; `SHIFT` moves the last run down, so that it is full and repeats some of the one
    before; `PREDICATE` runs all lanes and masks those that do not exist.
    """

    GUARD = "guard"
    SHIFT = "shift"
    PREDICATE = "predicate"


@dataclass(frozen=True, slots=True)
class StageRef:
    """A stage of the Func `func`: 0 is its definition, k + 1 its update k.

    >>> print(StageRef("f", 0), StageRef("f", 1))
    f f.update(0)
    """

    func: str
    stage: int = 0

    def __str__(self) -> str:
        return self.func if self.stage == 0 else f"{self.func}.update({self.stage - 1})"


@dataclass(frozen=True, slots=True)
class Said:
    """A directive; `span` says where it was written and is no part of what it means."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Split(Said):
    """Loop `var` becomes `outer` of `inner`, which takes `factor` steps."""

    var: str
    outer: str
    inner: str
    factor: int
    tail: Tail = Tail.GUARD


@dataclass(frozen=True, slots=True)
class Tile(Said):
    """Each of `vars` is split by its size; all of `outers` stand outside all of `inners`."""

    vars: tuple[str, ...]
    outers: tuple[str, ...]
    inners: tuple[str, ...]
    sizes: tuple[int, ...]
    tail: Tail = Tail.GUARD


@dataclass(frozen=True, slots=True)
class Fuse(Said):
    """Loop `outer` and the loop `inner` directly inside it become the one loop `fused`."""

    outer: str
    inner: str
    fused: str


@dataclass(frozen=True, slots=True)
class Reorder(Said):
    """The loops `vars`, outermost first, take among them the places that they hold."""

    vars: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reverse(Said):
    """The iterations of `var` run from the last to the first."""

    var: str


@dataclass(frozen=True, slots=True)
class Skew(Said):
    """Loop `var` becomes `new`, which counts `var + factor * along`; `new` None keeps the name."""

    var: str
    along: str
    factor: int
    new: str | None = None


@dataclass(frozen=True, slots=True)
class Vectorize(Said):
    """The iterations of `var` are lanes in step; with `n`, those of its inner part `var.in` are."""

    var: str
    n: int | None = None


@dataclass(frozen=True, slots=True)
class Parallel(Said):
    """The iterations of `var` are run by independent workers; with `n`, in runs of `n`."""

    var: str
    n: int | None = None


@dataclass(frozen=True, slots=True)
class Unroll(Said):
    """The iterations of `var` are written out; with `n`, those of its inner part `var.in` are."""

    var: str
    n: int | None = None


@dataclass(frozen=True, slots=True)
class Inline(Said):
    """The Func is computed wherever it is read."""


@dataclass(frozen=True, slots=True)
class ComputeRoot(Said):
    """The Func is computed before its readers, whole."""


@dataclass(frozen=True, slots=True)
class ComputeAt(Said):
    """The Func is computed in each iteration of `loop` of `consumer`, and kept from loop `store` of it on.

    `stage` is None where only the Func was named: then the stage of it that reads is meant.
    """

    consumer: str
    stage: int | None
    loop: str
    store: str | None = None


@dataclass(frozen=True, slots=True)
class StoreAt(Said):
    """The Func is kept as long as an iteration of `loop` of `consumer` lasts; `stage` as in `ComputeAt`."""

    consumer: str
    stage: int | None
    loop: str


@dataclass(frozen=True, slots=True)
class StoreRoot(Said):
    """The Func is kept as long as the kernel runs."""


@dataclass(frozen=True, slots=True)
class FoldStorage(Said):
    """Along `dim`, only `n` cells of the Func are kept: cell k lies where cell k - n lay."""

    dim: str
    n: int


@dataclass(frozen=True, slots=True)
class Reassociate(Said):
    """Sums of floats of the stage may be taken in another order."""


@dataclass(frozen=True, slots=True)
class Atomic(Said):
    """Iterations of the update that meet in a cell combine into it one at a time, in whatever order they come."""


@dataclass(frozen=True, slots=True)
class Stream(Said):
    """What the stage stores goes past the caches, where whole vectors lie aligned."""


@dataclass(frozen=True, slots=True)
class Accumulators(Said):
    """The reduced loop `var` is split by `n`; each step of its inner part, `var.acc`, has an accumulator of its own."""

    var: str
    n: int


@dataclass(frozen=True, slots=True)
class Rfactor(Said):
    """Results for each value of the reduced loop `var` go to a new Func `name` along dim `new`; they are combined."""

    var: str
    new: str
    name: str


@dataclass(frozen=True, slots=True)
class CacheRead(Said):
    """Those of `readers`, or all, read a new Func `name` that holds a copy of the values."""

    name: str
    readers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Clone(Said):
    """Those of `readers` read a new Func `name` that is defined as this one is."""

    name: str
    readers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout(Said):
    """The dims of the Func lie in memory in `order`, outermost first; the last one's extent is a multiple of `pad`."""

    order: tuple[str, ...]
    pad: int = 1


@dataclass(frozen=True, slots=True)
class SplitReduction(Said):
    """Runs of `n` iterations of `var` are reduced in parallel, to a new Func `name`; short for three directives."""

    var: str
    n: int
    new: str
    name: str


LoopDirective: TypeAlias = Split | Tile | Fuse | Reorder | Reverse | Skew | Vectorize | Parallel | Unroll | Accumulators
StageDirective: TypeAlias = Reassociate | Atomic | Stream
PlaceDirective: TypeAlias = Inline | ComputeRoot | ComputeAt | StoreAt | StoreRoot
StorageDirective: TypeAlias = FoldStorage | Layout
ProgramDirective: TypeAlias = Rfactor | CacheRead | Clone
Directive: TypeAlias = (
    LoopDirective | StageDirective | PlaceDirective | StorageDirective | ProgramDirective | SplitReduction
)


@dataclass(frozen=True, slots=True)
class Line:
    """A directive and the stage that it was said of."""

    at: StageRef
    directive: Directive


USAGE = {
    "split": "split(v, outer, inner, n, tail=)",
    "tile": "tile((v, ...), (outer, ...), (inner, ...), (n, ...), tail=)",
    "fuse": "fuse(outer, inner, fused)",
    "reorder": "reorder(v, ...)",
    "reverse": "reverse(v)",
    "skew": "skew(v, w, factor, new=)",
    "vectorize": "vectorize(v) or vectorize(v, n)",
    "parallel": "parallel(v) or parallel(v, n)",
    "unroll": "unroll(v) or unroll(v, n)",
    "inline": "inline()",
    "compute_root": "compute_root()",
    "compute_at": "compute_at(g, v, store=)",
    "store_at": "store_at(g, v)",
    "store_root": "store_root()",
    "fold_storage": "fold_storage(dim, n)",
    "layout": "layout((dim, ...), pad=)",
    "cache_read": "cache_read(name, reader, ...)",
    "clone": "clone(name, reader, ...)",
    "reassociate": "reassociate()",
    "atomic": "atomic()",
    "stream": "stream()",
    "accumulators": "accumulators(v, n)",
    "rfactor": "rfactor(r, u, name)",
    "split_reduction": "split_reduction(r, n, u, name)",
}
"""The directives, and how each is written."""

LATER = (
    "affine", "partition", "specialize", "hoist_storage", "compute_with", "overwrite",
    "memory", "bound", "align_bounds", "online", "prefetch", "warps", "stages",
    "swizzle", "matrix_unit",
)  # fmt: skip
"""Directives of the language that this version does not know yet."""

LATER_TAILS = ("round_up",)

Plain: TypeAlias = "str | int | float | StageRef | tuple[Plain, ...]"


def make(word: str, args: Sequence[Plain], named: Mapping[str, Plain], span: Span | None = None) -> Directive:
    """Return the directive `word(*args, **named)`.

    Raises UnsupportedError for one that comes later, and ScheduleError where there is no such directive or its
    arguments are not what it takes.

    >>> make("vectorize", ["x", 8], {})
    Vectorize(var='x', n=8)
    """
    if word in LATER:
        raise UnsupportedError(f"directive {word!r} comes with a later version", [(span, "here")])
    if word not in USAGE:
        near = difflib.get_close_matches(word, (*USAGE, *LATER), n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else None
        raise ScheduleError(f"there is no directive {word!r}", [(span, "here")], hint=hint)
    if word in ("vectorize", "unroll", "parallel") and "upto" in named:
        raise UnsupportedError(f"{word}(v, upto=n) comes with a later version", [(span, "here")])
    made = _made(word, args, dict(named), span)
    if made is None:
        raise ScheduleError(f"{word} is written {USAGE[word]}", [(span, "here")])
    return made


def _made(word: str, args: Sequence[Plain], named: dict[str, Plain], span: Span | None) -> Directive | None:
    match word, args, named:
        case "split", [str(v), str(outer), str(inner), n], {**rest} if rest.keys() <= {"tail"}:
            return Split(v, outer, inner, _number(n, span), _tail(rest, span), span=span)
        case "tile", [tuple(v), tuple(outers), tuple(inners), tuple(sizes)], {**rest} if rest.keys() <= {"tail"}:
            names = _names(v), _names(outers), _names(inners)
            if names[0] is None or names[1] is None or names[2] is None:
                return None
            numbers = tuple(_number(n, span) for n in sizes)
            return Tile(names[0], names[1], names[2], numbers, _tail(rest, span), span=span)
        case "fuse", [str(outer), str(inner), str(fused)], {**rest} if not rest:
            return Fuse(outer, inner, fused, span=span)
        case "reorder", [*loops], {**rest} if not rest:
            found = _names(loops)
            return None if found is None else Reorder(found, span=span)
        case "reverse", [str(v)], {**rest} if not rest:
            return Reverse(v, span=span)
        case "skew", [str(v), str(along), factor, *more], {**rest} if rest.keys() <= {"new"} and len(more) < 2:
            new = more[0] if more else rest.get("new")
            if not isinstance(new, str | None) or (more and rest):
                return None
            return Skew(v, along, _number(factor, span), new, span=span)
        case (("vectorize" | "parallel" | "unroll"), [str(v), *number], {**rest}) if not rest and len(number) < 2:
            n = _number(number[0], span) if number else None
            kind = Vectorize if word == "vectorize" else Parallel if word == "parallel" else Unroll
            return kind(v, n, span=span)
        case "inline", [], {**rest} if not rest:
            return Inline(span=span)
        case "compute_root", [], {**rest} if not rest:
            return ComputeRoot(span=span)
        case "store_root", [], {**rest} if not rest:
            return StoreRoot(span=span)
        case "compute_at", [str() | StageRef() as g, str(v)], {**rest} if rest.keys() <= {"store"}:
            store = rest.get("store")
            if store is not None and not isinstance(store, str):
                return None
            return ComputeAt(*_consumer(g), v, store, span=span)
        case "store_at", [str() | StageRef() as g, str(v)], {**rest} if not rest:
            return StoreAt(*_consumer(g), v, span=span)
        case "fold_storage", [str(dim), n], {**rest} if not rest:
            return FoldStorage(dim, _number(n, span), span=span)
        case "layout", [tuple(order)], {**rest} if rest.keys() <= {"pad", "align"}:
            if "align" in rest:
                raise UnsupportedError("layout(..., align=) comes with a later version", [(span, "here")])
            found = _names(order)
            return None if found is None else Layout(found, _number(rest.get("pad", 1), span), span=span)
        case "cache_read" | "clone", [str(name), *readers], {**rest} if not rest:
            found = _names(readers)
            return None if found is None else (CacheRead if word == "cache_read" else Clone)(name, found, span=span)
        case "reassociate", [], {**rest} if not rest:
            return Reassociate(span=span)
        case "atomic", [], {**rest} if not rest:
            return Atomic(span=span)
        case "stream", [], {**rest} if not rest:
            return Stream(span=span)
        case "accumulators", [str(v), n], {**rest} if not rest:
            return Accumulators(v, _number(n, span), span=span)
        case "rfactor", [str(v), str(new), str(name)], {**rest} if not rest:
            return Rfactor(v, new, name, span=span)
        case "split_reduction", [str(v), n, str(new), str(name)], {**rest} if not rest:
            return SplitReduction(v, _number(n, span), new, name, span=span)
        case _:
            return None


def spelled_out(line: Line) -> tuple[Line, ...]:
    """Return the lines that `line` is short for; itself, where it is short for none.

    >>> len(spelled_out(Line(StageRef("t", 1), SplitReduction("r", 64, "u", "part"))))
    3
    """
    match line.directive:
        case SplitReduction(var=var, n=n, new=new, name=name, span=span):
            return (
                Line(line.at, Split(var, var, f"{var}.in", n, span=span)),
                Line(line.at, Rfactor(var, new, name, span=span)),
                Line(StageRef(name, 1), Parallel(new, span=span)),
            )
        case _:
            return (line,)


def _consumer(g: str | StageRef) -> tuple[str, int | None]:
    return (g, None) if isinstance(g, str) else (g.func, g.stage)


def _names(found: Sequence[Plain]) -> tuple[str, ...] | None:
    names = tuple(n for n in found if isinstance(n, str))
    return names if len(names) == len(found) else None


def _number(n: Plain, span: Span | None) -> int:
    if type(n) is not int:
        raise ScheduleError(f"a factor is an int, not {n!r}", [(span, "here")])
    return n


def _tail(named: Mapping[str, Plain], span: Span | None) -> Tail:
    tail = named.get("tail", Tail.GUARD.value)
    if tail in LATER_TAILS:
        raise UnsupportedError(f"tail={tail!r} comes with a later version", [(span, "here")], hint='tail="guard"')
    known = [t.value for t in Tail]
    if tail not in known:
        raise ScheduleError(f"there is no tail {tail!r}", [(span, "here")], [f"tails: {', '.join(known)}"])
    return Tail(tail)
