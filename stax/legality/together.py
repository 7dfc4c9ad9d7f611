"""Stages that share loops: `compute_with`. What one reads of the other must be there when it is read.

In an iteration of the shared loops the host runs first, then each guest, `shift` iterations of the last loop behind.
A guest may read the host where, dim by dim, all that it asks for lies in what the host has then computed since the last
loop began; that is seen by intervals. No other Func may stand between them, as it would have to run in their midst.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stax.algorithm.inline import roots
from stax.algorithm.nodes import Func, Pipeline
from stax.errors import LegalityError, UnsupportedError
from stax.expr import build
from stax.expr.affine import Algebra, Interval, Prover
from stax.expr.nodes import Expr
from stax.expr.walk import reads, substitute
from stax.loops.nodes import LoopKind
from stax.schedule.directives import ComputeWith, StageRef
from stax.schedule.legal import Placed, Together
from stax.schedule.points import Points
from stax.schedule.resolve import Resolved
from stax.source import Span


def together(
    resolved: Resolved, pipeline: Pipeline, placed: Mapping[str, Placed], points: Mapping[StageRef, Points]
) -> tuple[Together, ...]:
    """Return the stages that share loops; raise LegalityError where their loops are not alike, or not together."""
    known = {f.name: f for f in pipeline.funcs}
    guests: dict[tuple[StageRef, str], list[tuple[StageRef, int]]] = {}
    spans: dict[str, Span | None] = {}
    for at, line in resolved.joined.items():
        host = StageRef(line.consumer, line.stage)
        for name in (at.func, host.func):
            if name not in known:
                raise LegalityError(f"`{name}` is inlined, so it has no loops to share", [(line.span, "shared here")])
        if any(at.func in group or host.func in group for group in pipeline.groups):
            raise LegalityError("Funcs that read each other share loops already", [(line.span, "shared here")])
        guests.setdefault((host, line.loop), []).append((at, line.shift))
        spans[at.func] = line.span
    out: list[Together] = []
    used: set[str] = set()
    for (host, loop), found in guests.items():
        names = [host.func, *(at.func for at, _ in found)]
        for name in names:
            if name in used or names.count(name) > 1:
                span = spans.get(name, spans[found[0][0].func])
                raise LegalityError(f"`{name}` shares loops with others already", [(span, "shared here")])
        used |= set(names)
        depth = resolved.nests[host].place(loop)
        if depth is None:
            raise LegalityError(
                f"loop `{loop}` of `{host}` is no longer there to be shared", [(spans[found[0][0].func], "shared here")]
            )
        for at, _ in found:
            _alike(at, host, depth, loop, resolved, placed, points, spans[at.func])
        _nothing_between(pipeline, names, spans[found[0][0].func])
        out.append(Together(host, depth + 1, tuple(found)))
    _one_after_another(pipeline, out, spans)
    return tuple(out)


def _alike(
    at: StageRef, host: StageRef, depth: int, loop: str, resolved: Resolved, placed: Mapping[str, Placed],
    points: Mapping[StageRef, Points], span: Span | None,
) -> None:  # fmt: skip
    def refuse(why: str, hint: str | None = None) -> LegalityError:
        return LegalityError(f"`{at}` cannot run in loops of `{host}`: {why}", [(span, "asked for here")], hint=hint)

    mine = resolved.nests[at]
    if mine.place(loop) != depth:
        raise refuse(f"loop `{loop}` is not the same number of loops deep in both")
    if placed[at.func].compute != placed[host.func].compute:
        raise refuse("they are computed at different places", "place both at the same loop, or at root")
    a, b = points[at], points[host]
    if a.skewed or b.skewed:
        raise UnsupportedError(f"`{at}` cannot run in loops of `{host}`: skewed loops are not shared")
    for k in range(depth + 1):
        one, other = a.loops[k], b.loops[k]
        if one.loop.kind is not other.loop.kind or one.loop.kind not in (LoopKind.SERIAL, LoopKind.PARALLEL):
            raise refuse(f"loops `{one.loop.name}` and `{other.loop.name}` must both be serial, or both parallel")
        if one.down or other.down:
            raise refuse(f"loop `{one.loop.name if one.down else other.loop.name}` runs downwards")
        if any(c.shift is not None and c.shift.outer == k for c in (*a.loops, *b.loops)):
            raise refuse('the last run of one is moved by tail="shift"', 'tail="guard"')


def _nothing_between(pipeline: Pipeline, names: Sequence[str], span: Span | None) -> None:
    """Refuse stages of which one needs the other through a third Func."""
    direct = {f.name: {r.source for r in reads(roots(f))} for f in pipeline.funcs}
    for f in pipeline.funcs:
        if f.name in names:
            continue
        above = {name for name in names if f.name in _all(direct, name)}
        below = _all(direct, f.name) & set(names)
        if above and below:
            raise LegalityError(
                f"`{sorted(above)[0]}` and `{sorted(below)[0]}` cannot share loops: `{f.name}` reads the one and is "
                "read by the other",
                [(f.span, "defined here"), (span, "shared here")], hint=f"inline `{f.name}`",
            )  # fmt: skip


def _one_after_another(pipeline: Pipeline, shared: Sequence[Together], spans: Mapping[str, Span | None]) -> None:
    """Refuse stages that share loops and would have to wait for others that do, and those for them."""
    unit = {name: group[0] for group in pipeline.groups for name in group}
    for one in shared:
        unit |= {ref.func: one.host.func for ref in (one.host, *(at for at, _ in one.guests))}
    left: dict[str, set[str]] = {}
    for f in pipeline.funcs:
        needed = {unit.get(r.source, r.source) for r in reads(roots(f))} - {unit.get(f.name, f.name)}
        left.setdefault(unit.get(f.name, f.name), set()).update(needed)
    while ready := [name for name, needed in left.items() if not needed & left.keys()]:
        for name in ready:
            del left[name]
    stuck = [one for one in shared if one.host.func in left]
    if stuck:
        pairs = [f"`{one.host.func}` and `{one.guests[0][0].func}`" for one in stuck]
        raise LegalityError(
            f"{pairs[0]} cannot share loops: they need what {pairs[-1]} compute in loops they share, "
            "and those need them",
            [(spans[one.guests[0][0].func], "shared here") for one in stuck],
            hint="let one of them have loops of its own",
        )


def _all(direct: Mapping[str, set[str]], name: str) -> set[str]:
    """Return all that `name` reads, itself or through others."""
    found: set[str] = set()
    ahead = [*direct[name]]
    while ahead:
        one = ahead.pop()
        if one in direct and one not in found:
            found.add(one)
            ahead += direct[one]
    return found


def done_before(
    host: Func, stage: int, points: Points, depth: int, guest: Points, shift: int, algebra: Algebra
) -> list[list[Interval]] | None:
    """Return boxes of `host` of which all lies in what is computed when an iteration of `guest` runs.

    None where that is not seen. One box is of the iteration that the guest is behind; where that may be past the last
    one of the loop, and more of the same dim is left to a loop further out, another is of the last one.
    """
    last = points.loops[depth - 1]
    if stage < len(host.updates) or any(d not in points.values for d in host.dims):
        return None
    reduced = [root.name for root in points.roots if root.name not in host.dims]
    if any(min(points.leaves(r), default=depth) < depth for r in reduced):
        return None
    if not all(points.in_order(d) for d in host.dims):
        return None
    moved = [d for d in host.dims if depth - 1 in points.leaves(d)]
    if len(moved) > 1 or (last.loop.kind is LoopKind.PARALLEL and shift):
        return None
    same: dict[str, Expr] = {
        mine.var.name: theirs.var for mine, theirs in zip(points.loops[:depth], guest.loops[:depth], strict=True)
    }
    now = {**same, last.var.name: build.add(guest.loops[depth - 1].var, shift)}
    first = now if last.loop.kind is LoopKind.PARALLEL else {**same, last.var.name: build.index(0)}
    ends = [now]
    if any(min(points.leaves(d)) < depth - 1 for d in moved):
        most = substitute(last.extent, same) if last.width is None else build.index(last.width)
        ends.append({**same, last.var.name: build.sub(most, 1)})
    within = [points.within(d, depth) for d in host.dims]
    return [
        [Interval(algebra.of(substitute(lo, first)), algebra.of(substitute(hi, end))) for lo, hi in within]
        for end in ends
    ]


def check_there(
    guest: StageRef, host: Func, asked: Sequence[Interval | None], there: list[list[Interval]] | None, prover: Prover,
    line: ComputeWith,
) -> None:  # fmt: skip
    """Raise LegalityError where `guest` would read of `host` what is not there yet."""
    at, missing = _missing(host, asked, there, prover)
    if missing is not None:
        raise LegalityError(
            f"`{guest}` would read `{host.name}` before it is computed: {missing} is not seen to be there",
            [(host.span, "defined here"), (line.span, "asked for here")],
            [f"it runs {line.shift} iterations of loop `{line.loop}` behind"],
            _hint(at, line),
        )


def _hint(at: int | None, line: ComputeWith) -> str | None:
    match at:
        case None:
            return None
        case 0:
            return "a larger shift="
        case _:
            return f"share a loop around `{line.loop}`: each run of that ends before the next one begins"


def _missing(
    host: Func, asked: Sequence[Interval | None], there: list[list[Interval]] | None, prover: Prover
) -> tuple[int | None, str | None]:  # fmt: skip
    """Return which of the boxes is too small, if one is, and of what something is not there; None where all is."""
    if there is None:
        return None, "what it needs"
    for at, box in enumerate(there):
        for dim, have, needed in zip(host.dims, box, asked, strict=True):
            if needed is None or needed.lo is None or needed.hi is None:
                return at, f"what it needs along `{dim}`"
            if not (prover.less_equal(have.first, needed.lo) and prover.less_equal(needed.hi, have.last)):
                return at, f"what it needs along `{dim}`"
    return None, None


__all__ = ["check_there", "done_before", "together"]
