"""The lines of a group: the strips of its head on threads, its members in them, and what is stored past the caches."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod

from stax.auto.features import FuncFacts, StageFacts
from stax.auto.group import Group, Level, Member, lane_of
from stax.auto.loops import Choice, in_lanes, inside, lanes
from stax.schedule.directives import (
    CacheRead,
    ComputeAt,
    ComputeRoot,
    Directive,
    FoldStorage,
    Layout,
    Line,
    Parallel,
    Reorder,
    Split,
    StageRef,
    Stream,
    Tail,
    Unroll,
    Vectorize,
)  # fmt: skip

CHUNK = 16384
TASK_POINTS = 1 << 16
MOST_FOLD = 64
STREAM_OPS = 60  # operations a byte written
BURST_OPS = 2  # the same, of what must be done before a row


def lines_of(choice: Choice, group: Group) -> list[Line]:
    """Return the lines of a group, its head first."""
    head = choice.facts.funcs[group.head]
    out: list[Line] = []
    if not head.output:
        out.append(Line(StageRef(head.name), ComputeRoot(), _whole(choice, head)))
    if head.pure and group.row is not None:
        out += _rows(choice, group, head)
    elif head.pure:
        out += [Line(StageRef(head.name), d) for d in _chunks(choice, head)]
    else:
        for stage in range(len(head.stages)):
            out += _alone(choice, head, stage)
    for member in group.members:
        out += _member(choice, group, member)
    return out


def _whole(choice: Choice, f: FuncFacts) -> str:
    readers = sorted({s.func for s, _ in choice.facts.readers.get(f.name, ())})
    return f"computed whole: {' and '.join(readers)} cannot share its rows cheaply" if readers else ""


def _rows(choice: Choice, group: Group, head: FuncFacts) -> list[Line]:
    """Return the loops of a head: strips of rows on threads, the loops of `inner` in each row, lanes."""
    at = StageRef(head.name)
    assert group.row is not None
    row = head.dims[group.row]
    outer = [d for d in head.dims[: group.row] if d not in group.inner]
    strip = group.strip
    if group.turned:
        return _squares(choice, group, head)
    why = f"strips of {strip} rows on threads" + (f": {_again(choice, group)}" if group.members else "")
    made: list[Directive] = [*(Parallel(d) for d in outer), Parallel(row, strip)]
    if group.inner:
        made.append(Reorder((row, f"{row}.in", *group.inner)))
    out = [Line(at, made[0], why), *(Line(at, d) for d in made[1:])]
    lane = head.dims[lane_of(head)]
    wide = lanes(choice, head, head.stages[0], lane, ())
    out += [Line(at, d) for d in wide]
    if _streams(choice, group, head):
        out.append(Line(at, Stream(), "nothing reads the result again, so that it goes past the caches"))
    return out


def _squares(choice: Choice, group: Group, head: FuncFacts) -> list[Line]:
    """Return square tiles of a head whose members have rows as lanes: each is turned as it is read."""
    assert group.row is not None
    row, lane, n = head.dims[group.row], head.dims[-1], group.strip
    between = [d for d in head.dims[group.row + 1 : -1]]
    made: list[Directive] = [
        *(Parallel(d) for d in head.dims[: group.row] if d not in group.inner),
        Split(row, row, f"{row}.in", n),
        Split(lane, lane, f"{lane}.in", n),
        Reorder((row, *group.inner, *between, lane, f"{row}.in", f"{lane}.in")),
        Parallel(row),
        Unroll(f"{row}.in"),
        Vectorize(f"{lane}.in"),
    ]
    if _streams(choice, group, head):
        made.append(Stream())
    return _said(StageRef(head.name), made, f"squares of {n} rows and columns, turned in registers")


def _run(f: FuncFacts, member: Member, n: int) -> list[Directive]:
    """Return the loops of a member that runs along its rows: rows are lanes, and lie side by side."""
    row, last = f.dims[member.row], f.dims[-1]
    others = [d for d in f.dims if d not in (row, last)]
    return [
        Layout((*others, last, row)),
        Split(row, row, f"{row}.in", n),
        Split(last, last, f"{last}.in", n),
        Reorder((*others, row, last, f"{last}.in", f"{row}.in")),
        Unroll(f"{last}.in"),
        Vectorize(f"{row}.in"),
    ]


def _again(choice: Choice, group: Group) -> str:
    halo = max((m.window.halo for m in group.members), default=Fraction(0))
    return f"at most {_number(halo)} rows of a member are computed twice" if halo else "no row is computed twice"


def _number(n: Fraction) -> str:
    return str(n.numerator) if n.denominator == 1 else f"{float(n):g}"


def _inner_lanes(choice: Choice, head: FuncFacts, var: str) -> list[Directive]:
    stage = head.stages[0]
    if lane_of(head) != len(head.dims) - 1:
        return lanes(choice, head, stage, var, ())
    return in_lanes(choice, head, stage, var, stage.lanes)


def _streams(choice: Choice, group: Group, head: FuncFacts) -> bool:
    """Return whether the result of a head is large, read by nothing, and waits for memory rather than for values.

    Where a row is written only after much else was done for it, its stores come in a burst that nothing overlaps; the
    caches take such a burst at once.
    """
    if not head.output or head.name in choice.facts.readers or head.channels is not None:
        return False
    size = prod(choice.numbers.extents[head.name]) * head.cell_bytes
    work = head.ops + sum(choice.facts.funcs[m.name].ops * m.window.scale for m in group.members)
    light = not any(choice.facts.funcs[m.name].stages[1:] and _heavy(choice, m) for m in group.members)
    large = not choice.numbers.given or size > choice.machine.l3_bytes // 4
    burst = any(_sums_row(choice, m) for m in group.members)
    before = sum(choice.facts.funcs[m.name].ops for m in group.members if _goes_along(choice, m))
    even = not burst or before / head.cell_bytes <= BURST_OPS
    return large and work / head.cell_bytes <= STREAM_OPS and light and even


def _sums_row(choice: Choice, member: Member) -> bool:
    """Return whether a row of the head cannot begin before the member has gone along all of one."""
    f = choice.facts.funcs[member.name]
    return len(f.dims) == member.row + 1 and any(s.domain for s in f.stages)


def _goes_along(choice: Choice, member: Member) -> bool:
    f = choice.facts.funcs[member.name]
    return len(f.dims) > member.row + 1 or any(s.domain for s in f.stages)


def _heavy(choice: Choice, member: Member) -> bool:
    """Return whether a member adds up much for each of the head's cells."""
    f = choice.facts.funcs[member.name]
    return len(f.dims) > member.row + 1 and any(s.domain for s in f.stages)


def _member(choice: Choice, group: Group, member: Member) -> list[Line]:
    f = choice.facts.funcs[member.name]
    head = choice.facts.funcs[group.head]
    assert group.row is not None
    row = head.dims[group.row]
    at = StageRef(f.name)
    match member.level:
        case Level.STRIP:
            out = [Line(at, ComputeAt(head.name, 0, row), member.why)]
        case Level.ROW:
            out = [Line(at, ComputeAt(head.name, 0, f"{row}.in"), member.why)]
        case Level.WINDOW:
            out = [Line(at, ComputeAt(head.name, 0, f"{row}.in", store=row), member.why)]
            needed = int(member.window.halo) + 1
            fold = 1 << (needed - 1).bit_length()
            if fold <= MOST_FOLD:
                out.append(Line(at, FoldStorage(f.dims[member.row], fold)))
    if f.runs_along_rows:
        return [*out, *(Line(at, d) for d in _run(f, member, group.strip))]
    single = member.level is not Level.STRIP and member.window.halo == 0
    for stage in range(len(f.stages)):
        nested = inside(choice, f, stage, f.dims[member.row] if single else None)
        out += _said(StageRef(f.name, stage), nested.directives, nested.why)
    return out


def _said(at: StageRef, directives: Sequence[Directive], why: str) -> list[Line]:
    return [Line(at, d, why if k == 0 else "") for k, d in enumerate(directives)]


def _alone(choice: Choice, f: FuncFacts, stage: int) -> list[Line]:
    """Return the loops of a stage of a head that is no single definition."""
    at = StageRef(f.name, stage)
    nested = inside(choice, f, stage)
    outer = nested.outer
    out = list(nested.directives)
    if stage == 0:
        if not outer:
            return [Line(at, d) for d in _chunks(choice, f)]
        row = outer[-1]
        return [Line(at, d) for d in (*(Parallel(d) for d in outer[:-1]), Parallel(row, 32), *out)]
    facts = f.stages[stage]
    if outer:
        rows = _rows_in_task(choice, f, facts, outer)
        threads: list[Directive] = [Parallel(d) for d in outer[:-1]]
        threads.append(Parallel(outer[-1], rows) if rows > 1 else Parallel(outer[-1]))
        return _said(at, (*threads, *out), nested.why)
    if nested.directives and facts.plain:
        lane = facts.plain[-1]
        if len(facts.plain) == 1 and not facts.domain:
            return _said(
                at, (Parallel(lane, CHUNK), *in_lanes(choice, f, facts, f"{lane}.in", facts.lanes)), nested.why
            )
        return _packed(choice, f, facts, _said(at, (*out, Parallel(lane)), nested.why))
    return _said(at, out, nested.why)


def _chunks(choice: Choice, f: FuncFacts) -> list[Directive]:
    if not f.dims:
        return []
    lane = f.dims[lane_of(f)]
    return [Parallel(lane, CHUNK), *_inner_lanes(choice, f, f"{lane}.in")]


def _rows_in_task(choice: Choice, f: FuncFacts, stage: StageFacts, outer: tuple[str, ...]) -> int:
    points = 1
    for d in stage.plain:
        if d not in outer:
            points *= choice.extent(f, d)
    for r in stage.domain:
        points *= r.extent or 1024
    rows = 1
    while rows < 32 and rows * points < TASK_POINTS:
        rows *= 2
    return rows


def _packed(choice: Choice, f: FuncFacts, stage: StageFacts, loops: list[Line]) -> list[Line]:
    """Return `loops` with copies of what a tile reads along its lanes: side by side for each block of lanes."""
    lane = stage.plain[-1]
    domain = {r.name for r in stage.domain}
    first: list[Line] = []
    last: list[Line] = []
    read = [r.source for one in f.stages for r in one.reaches]
    for reach in stage.reaches:
        if read.count(reach.source) != 1 or reach.last != frozenset({lane}) or not (reach.uses & domain):
            continue
        dims = choice.facts.dims_of_input(reach.source)
        if len(dims) != 2:
            continue
        name, along = f"{reach.source}_packed", dims[-1]
        why = f"rows of {reach.source} are far apart: a block of lanes of each is copied side by side"
        first.append(Line(StageRef(reach.source), CacheRead(name, (f.name,)), why))
        last += [
            Line(StageRef(name), d)
            for d in (
                ComputeAt(f.name, stage.stage, lane),
                Split(along, along, f"{along}.in", 2 * stage.lanes, Tail.PREDICATE),
                Vectorize(f"{along}.in"),
            )
        ]
    return [*first, *loops, *last]
