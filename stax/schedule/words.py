"""How directives are written: from a word and its arguments to the node, for people and for files alike."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from stax.errors import ScheduleError, UnsupportedError
from stax.schedule import directives as said
from stax.schedule.directives import Directive, StageRef, Tail
from stax.source import Span

USAGE = {
    "split": "split(v, outer, inner, n, tail=)",
    "tile": "tile((v, ...), (outer, ...), (inner, ...), (n, ...), tail=)",
    "fuse": "fuse(outer, inner, fused)",
    "reorder": "reorder(v, ...)",
    "reverse": "reverse(v)",
    "skew": "skew(v, w, factor, new=)",
    "affine": "affine(((n, ...), ...), (v, ...), new=)",
    "vectorize": "vectorize(v), vectorize(v, n) or vectorize(v, upto=n)",
    "parallel": "parallel(v) or parallel(v, n)",
    "unroll": "unroll(v) or unroll(v, n)",
    "partition": "partition(v)",
    "specialize": "specialize(cond)",
    "inline": "inline()",
    "compute_root": "compute_root()",
    "compute_at": "compute_at(g, v, store=)",
    "store_at": "store_at(g, v)",
    "store_root": "store_root()",
    "hoist_storage": "hoist_storage(g, v)",
    "compute_with": "compute_with(g, v, shift=)",
    "fold_storage": "fold_storage(dim, n)",
    "layout": "layout((dim, ...), pad=, align=)",
    "memory": 'memory("stack"), memory("heap") or memory("register")',
    "bound": "bound(dim, lo, n)",
    "align_bounds": "align_bounds(dim, n)",
    "overwrite": "overwrite(g)",
    "cache_read": "cache_read(name, reader, ...)",
    "clone": "clone(name, reader, ...)",
    "reassociate": "reassociate()",
    "atomic": "atomic()",
    "stream": "stream()",
    "prefetch": "prefetch(g, v, n)",
    "warps": "warps(n)",
    "stages": "stages(n)",
    "swizzle": "swizzle(n)",
    "matrix_unit": "matrix_unit(i, j, k, precision=)",
    "accumulators": "accumulators(v, n)",
    "rfactor": "rfactor(r, u, name)",
    "split_reduction": "split_reduction(r, n, u, name)",
}
"""The directives, and how each is written."""

LATER = ("online",)
"""Directives of the language that this version does not know yet."""

Plain: TypeAlias = "str | int | float | StageRef | tuple[Plain, ...]"


def make(word: str, args: Sequence[Plain], named: Mapping[str, Plain], span: Span | None = None) -> Directive:
    """Return the directive `word(*args, **named)`.

    Raises UnsupportedError for one that comes later, and ScheduleError where there is no such directive or its
    arguments are not what it takes.

    >>> make("unroll", ["x", 8], {})
    Unroll(var='x', n=8)
    """
    if word in LATER:
        raise UnsupportedError(f"directive {word!r} comes with a later version", [(span, "here")])
    if word not in USAGE:
        near = difflib.get_close_matches(word, (*USAGE, *LATER), n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else None
        raise ScheduleError(f"there is no directive {word!r}", [(span, "here")], hint=hint)
    made = _made(word, args, dict(named), span)
    if made is None:
        raise ScheduleError(f"{word} is written {USAGE[word]}", [(span, "here")])
    return made


def _made(word: str, args: Sequence[Plain], named: dict[str, Plain], span: Span | None) -> Directive | None:
    match word, args, named:
        case "split", [str(v), str(outer), str(inner), n], {**rest} if rest.keys() <= {"tail"}:
            return said.Split(v, outer, inner, _number(n, span), _tail(rest, span), span=span)
        case "tile", [tuple(v), tuple(outers), tuple(inners), tuple(sizes)], {**rest} if rest.keys() <= {"tail"}:
            names = _names(v), _names(outers), _names(inners)
            if names[0] is None or names[1] is None or names[2] is None:
                return None
            numbers = tuple(_number(n, span) for n in sizes)
            return said.Tile(names[0], names[1], names[2], numbers, _tail(rest, span), span=span)
        case "fuse", [str(outer), str(inner), str(fused)], {**rest} if not rest:
            return said.Fuse(outer, inner, fused, span=span)
        case "reorder", [*loops], {**rest} if not rest:
            found = _names(loops)
            return None if found is None else said.Reorder(found, span=span)
        case "reverse", [str(v)], {**rest} if not rest:
            return said.Reverse(v, span=span)
        case "skew", [str(v), str(along), factor, *more], {**rest} if rest.keys() <= {"new"} and len(more) < 2:
            new = more[0] if more else rest.get("new")
            if not isinstance(new, str | None) or (more and rest):
                return None
            return said.Skew(v, along, _number(factor, span), new, span=span)
        case "affine", [tuple(rows), tuple(v)], {**rest} if rest.keys() <= {"new"}:
            names, new = _names(v), rest.get("new")
            renamed = _names(new) if isinstance(new, tuple) else None
            if names is None or (new is not None and renamed is None):
                return None
            return said.Affine(_matrix(rows, span), names, renamed, span=span)
        case "vectorize", [str(v)], {"upto": upto, **rest} if not rest:
            return said.Vectorize(v, None, _number(upto, span), span=span)
        case "partition", [str(v)], {**rest} if not rest:
            return said.Partition(v, span=span)
        case (("vectorize" | "parallel" | "unroll"), [str(v), *number], {**rest}) if not rest and len(number) < 2:
            n = _number(number[0], span) if number else None
            kind = said.Vectorize if word == "vectorize" else said.Parallel if word == "parallel" else said.Unroll
            return kind(v, n, span=span)
        case "inline", [], {**rest} if not rest:
            return said.Inline(span=span)
        case "compute_root", [], {**rest} if not rest:
            return said.ComputeRoot(span=span)
        case "store_root", [], {**rest} if not rest:
            return said.StoreRoot(span=span)
        case "compute_at", [str() | StageRef() as g, str(v)], {**rest} if rest.keys() <= {"store"}:
            store = rest.get("store")
            if store is not None and not isinstance(store, str):
                return None
            return said.ComputeAt(*_consumer(g), v, store, span=span)
        case "store_at", [str() | StageRef() as g, str(v)], {**rest} if not rest:
            return said.StoreAt(*_consumer(g), v, span=span)
        case "hoist_storage", [str() | StageRef() as g, str(v)], {**rest} if not rest:
            return said.HoistStorage(*_consumer(g), v, span=span)
        case "compute_with", [str() | StageRef() as g, str(v)], {**rest} if rest.keys() <= {"shift"}:
            name, stage = _consumer(g)
            return said.ComputeWith(name, stage or 0, v, _number(rest.get("shift", 0), span), span=span)
        case "fold_storage", [str(dim), n], {**rest} if not rest:
            return said.FoldStorage(dim, _number(n, span), span=span)
        case "layout", [tuple(order)], {**rest} if rest.keys() <= {"pad", "align"}:
            found, align = _names(order), rest.get("align")
            if found is None:
                return None
            pad = _number(rest.get("pad", 1), span)
            return said.Layout(found, pad, None if align is None else _number(align, span), span=span)
        case "memory", [kind], {**rest} if not rest:
            return said.Memory(
                said.Store(_one_of(kind, [k.value for k in said.Store], "kind of memory", span)), span=span
            )
        case "bound", [str(dim), lo, n], {**rest} if not rest:
            return said.Bound(dim, _number(lo, span), _number(n, span), span=span)
        case "align_bounds", [str(dim), n], {**rest} if not rest:
            return said.AlignBounds(dim, _number(n, span), span=span)
        case "overwrite", [str(target)], {**rest} if not rest:
            return said.Overwrite(target, span=span)
        case "cache_read" | "clone", [str(name), *readers], {**rest} if not rest:
            found = _names(readers)
            return (
                None
                if found is None
                else (said.CacheRead if word == "cache_read" else said.Clone)(name, found, span=span)
            )
        case "reassociate", [], {**rest} if not rest:
            return said.Reassociate(span=span)
        case "atomic", [], {**rest} if not rest:
            return said.Atomic(span=span)
        case "stream", [], {**rest} if not rest:
            return said.Stream(span=span)
        case "specialize", [str(cond)], {**rest} if not rest:
            return said.Specialize(cond, span=span)
        case "prefetch", [str(source), str(v), n], {**rest} if not rest:
            return said.Prefetch(source, v, _number(n, span), span=span)
        case (("warps" | "stages" | "swizzle"), [n], {**rest}) if not rest:
            hint = said.Warps if word == "warps" else said.Stages if word == "stages" else said.Swizzle
            return hint(_number(n, span), span=span)
        case "matrix_unit", [str(i), str(j), str(k)], {**rest} if rest.keys() <= {"precision"}:
            precision = rest.get("precision")
            return said.MatrixUnit(i, j, k, precision, span=span) if isinstance(precision, str | None) else None
        case "accumulators", [str(v), n], {**rest} if not rest:
            return said.Accumulators(v, _number(n, span), span=span)
        case "rfactor", [str(v), str(new), str(name)], {**rest} if not rest:
            return said.Rfactor(v, new, name, span=span)
        case "split_reduction", [str(v), n, str(new), str(name)], {**rest} if not rest:
            return said.SplitReduction(v, _number(n, span), new, name, span=span)
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


def _matrix(rows: Sequence[Plain], span: Span | None) -> tuple[tuple[int, ...], ...]:
    if not all(isinstance(row, tuple) for row in rows):
        raise ScheduleError(f"affine is written {USAGE['affine']}", [(span, "here")])
    return tuple(tuple(_number(n, span) for n in row) for row in rows if isinstance(row, tuple))


def _tail(named: Mapping[str, Plain], span: Span | None) -> Tail:
    return Tail(_one_of(named.get("tail", Tail.GUARD.value), [t.value for t in Tail], "tail", span))


def _one_of(given: Plain, known: Sequence[str], what: str, span: Span | None) -> str:
    if not isinstance(given, str) or given not in known:
        raise ScheduleError(f"there is no {what} {given!r}", [(span, "here")], [f"there are: {', '.join(known)}"])
    return given
