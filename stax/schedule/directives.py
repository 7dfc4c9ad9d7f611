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
    """What a split does with the iterations that do not fill its factor; `GUARD` runs only those that exist."""

    GUARD = "guard"


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


LoopDirective: TypeAlias = Split | Tile | Fuse | Reorder | Reverse | Skew | Vectorize | Parallel | Unroll
PlaceDirective: TypeAlias = Inline | ComputeRoot | ComputeAt | StoreAt | StoreRoot
Directive: TypeAlias = LoopDirective | PlaceDirective | FoldStorage


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
}
"""The directives, and how each is written."""

LATER = (
    "affine", "partition", "specialize", "hoist_storage", "compute_with",
    "overwrite", "layout", "memory", "cache_read", "clone", "bound", "align_bounds", "reassociate", "rfactor",
    "split_reduction", "accumulators", "online", "atomic", "prefetch", "stream", "warps", "stages", "swizzle",
    "matrix_unit",
)  # fmt: skip
"""Directives of the language that this version does not know yet."""

LATER_TAILS = ("shift", "round_up", "predicate")

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
        case "fold_storage", [str(dim), n], {**rest} if not rest:
            return FoldStorage(dim, _number(n, span), span=span)
        case "store_at", [str() | StageRef() as g, str(v)], {**rest} if not rest:
            return StoreAt(*_consumer(g), v, span=span)
        case _:
            return None


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
    if tail != Tail.GUARD.value:
        raise ScheduleError(f"there is no tail {tail!r}", [(span, "here")], [f"tails: guard, {', '.join(LATER_TAILS)}"])
    return Tail.GUARD
