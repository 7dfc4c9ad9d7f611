"""Which Funcs share loops: each group has a head, and members that are computed in strips of the head's rows.

Readers come first. A Func whose readers all stand in one group joins it where their rows tell which of its rows are
needed, where what is computed twice costs less than to write and read it, and where the rows that are alive stay in
the caches. As all its readers are inside, no two groups wait for each other.

    out    the head; its rows are split into strips
    by     member: row y of out needs row y of it            -> computed in the row
    gray   member: row y of out needs rows y - 3 .. y + 3     -> a window of rows that slides, 1 new row each
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from math import prod

from stax.auto.features import FuncFacts, ProgramFacts, Reach, StageFacts
from stax.auto.machine import Machine
from stax.auto.sizes import Numbers

MOST_AGAIN = Fraction(1, 3)
STRIP = 32
MOST_ROWS = 64
WRITE_AND_READ = 3
LEAST_ROW = 64
MOST_STRIP = 64
MOST_TWICE = 0.03
TASK_NS = 20_000.0
LEAST_TASKS = 4


class Level(Enum):
    """Where a member is computed: once a strip, in each row, or the new rows of a window in each row."""

    STRIP = "strip"
    ROW = "row"
    WINDOW = "window"


@dataclass(frozen=True, slots=True)
class Window:
    """The rows `scale * y + lo .. scale * y + hi` of a Func that row `y` of the head needs."""

    scale: Fraction
    lo: Fraction
    hi: Fraction

    @property
    def halo(self) -> Fraction:
        """How many rows more than one are needed for one row."""
        return self.hi - self.lo

    def joined(self, other: Window) -> Window | None:
        """Return the rows that both need, where both move alike."""
        if self.scale != other.scale:
            return None
        return Window(self.scale, min(self.lo, other.lo), max(self.hi, other.hi))

    def rows(self, strip: int) -> Fraction:
        """Return how many rows `strip` rows of the head need."""
        return (strip - 1) * self.scale + self.halo + 1


@dataclass(frozen=True, slots=True)
class Member:
    """A Func of a group: dim number `row` of it moves with the head's rows, as `window` says."""

    name: str
    row: int
    window: Window
    level: Level
    why: str


@dataclass(frozen=True, slots=True)
class Group:
    """The loops of `head`: rows along dim `row`, in strips of `strip`; `members` are its producers, readers first.

    `inner` are the dims of the head whose loops stand inside the row, since some member has one value for all of them.
    A group is `turned` where members run along their rows: lanes are rows then, and the head is written in squares.
    """

    head: str
    row: int | None
    strip: int
    members: tuple[Member, ...] = ()
    inner: tuple[str, ...] = ()
    turned: bool = False

    def member(self, name: str) -> Member | None:
        """Return the member of that name."""
        return next((m for m in self.members if m.name == name), None)


def groups_of(facts: ProgramFacts, numbers: Numbers, machine: Machine) -> tuple[Group, ...]:
    """Return the groups of a program, the last to be computed first."""
    groups: dict[str, Group] = {}
    home: dict[str, str] = {}
    for f in reversed(tuple(facts.funcs.values())):
        heads = {home.get(s.func) for s, _ in facts.readers.get(f.name, ())}
        joined = None
        (head,) = heads if len(heads) == 1 else (None,)
        if head is not None and not f.output:
            joined = _joined(f, groups[head], facts, numbers, machine)
        if joined is None:
            groups[f.name] = Group(f.name, row_of(f, facts, numbers), STRIP)
            home[f.name] = f.name
        else:
            groups[joined.head] = joined
            home[f.name] = joined.head
    return tuple(_settled(g, facts, numbers, machine) for g in groups.values())


def row_of(f: FuncFacts, facts: ProgramFacts, numbers: Numbers) -> int | None:
    """Return which dim counts the rows of a head; none of a Func with one dim.

    It is the innermost that has enough inside, and inside which what it reads keeps a tile of results in registers.
    """
    if not f.pure:
        return None
    at = _tiled_along(f, facts)
    points = prod(numbers.extents[f.name][at:])
    while at > 1 and points < LEAST_ROW:
        at -= 1
        points *= numbers.extents[f.name][at]
    return at - 1 if at >= 1 else None


def _tiled_along(f: FuncFacts, facts: ProgramFacts) -> int:
    """Return the dim that counts the rows of register tiles of what `f` reads; its lanes where there are none."""
    at = lane_of(f)
    for reach in f.stages[0].reaches:
        g = facts.funcs.get(reach.source)
        if g is None or not g.local or not g.dims:
            continue
        for stage in g.stages[1:]:
            reused = reused_dims(stage, g.dims[-1]) if stage.domain and stage.joins is not None else []
            moved = [reach.moves[g.dims.index(d)].root for d in reused[:1]]
            inner = [f.dims.index(d) for d in moved if d in f.dims]
            at = min([at, *(k for k in inner if k >= 1)])
    return at


def reused_dims(stage: StageFacts, lane: str) -> list[str]:
    """Return the dims but `lane` that some read along the lanes does not depend on, innermost first."""
    vectors = [r for r in stage.reaches if r.source != stage.func and lane in r.uses]
    return [d for d in reversed(stage.plain) if d != lane and any(d not in r.uses for r in vectors)]


def lane_of(f: FuncFacts) -> int:
    """Return which dim becomes lanes: the last, but that of pixels where the last is their channels."""
    return len(f.dims) - (2 if f.channels is not None and len(f.dims) > 1 else 1)


def _joined(f: FuncFacts, group: Group, facts: ProgramFacts, numbers: Numbers, machine: Machine) -> Group | None:
    """Return `group` with `f`, where that pays."""
    if group.row is None or not (f.local or f.runs_along_rows) or f.func.where is not None or not f.dims:
        return None
    found: tuple[int, Window] | None = None
    for stage, reach in facts.readers[f.name]:
        one = _window(stage, reach, group, facts)
        if one is None:
            return None
        if found is None:
            found = one
            continue
        both = found[1].joined(one[1])
        if both is None or found[0] != one[0]:
            return None
        found = (one[0], both)
    if found is None:
        return None
    row, window = found
    if f.runs_along_rows and (row == len(f.dims) - 1 or window.halo or window.scale != 1):
        return None
    if not _pays(f, window, group, facts, numbers, machine):
        return None
    member = Member(f.name, row, window, Level.STRIP, "")
    return replace(group, members=(*group.members, member))


def _window(stage: StageFacts, reach: Reach, group: Group, facts: ProgramFacts) -> tuple[int, Window] | None:
    """Return which dim of what is read moves with the head's rows, and which of its rows a row of the head needs."""
    if stage.func == group.head:
        reader, around = facts.funcs[group.head].dims[group.row or 0], Window(Fraction(1), Fraction(0), Fraction(0))
    else:
        member = group.member(stage.func)
        assert member is not None
        reader, around = facts.funcs[member.name].dims[member.row], member.window
    if reader not in stage.plain:
        return None
    rows = [d for d, m in enumerate(reach.moves) if m.root == reader and not m.wild]
    if len(rows) != 1:
        return None
    move = reach.moves[rows[0]]
    if move.scale <= 0:
        return None
    return rows[0], Window(
        around.scale * move.scale, around.lo * move.scale + move.lo, around.hi * move.scale + move.hi
    )


def _pays(f: FuncFacts, window: Window, group: Group, facts: ProgramFacts, numbers: Numbers, machine: Machine) -> bool:
    """Return whether `f` in strips is cheaper than `f` written and read: what is computed twice against the bytes."""
    again = (window.rows(group.strip) / (group.strip * window.scale)) - 1
    if window.halo > MOST_ROWS:
        return False
    if again <= 0:
        return True
    cells = 1
    for n in numbers.extents[f.name]:
        cells *= n
    whole_bytes = cells * f.cell_bytes
    rate = machine.l3_rate if whole_bytes <= machine.l3_bytes // 2 else machine.memory_rate
    saved_ns = WRITE_AND_READ * f.cell_bytes / rate
    again_ns = float(again) * work_of(f, machine)
    return again <= MOST_AGAIN and again_ns <= saved_ns


def work_of(f: FuncFacts, machine: Machine) -> float:
    """Return how long a cell of `f` takes, in ns: its operations in lanes."""
    lanes = machine.lanes(max(4, f.cell_bytes // max(1, len(f.func.dtypes))))
    total = 0.0
    for stage in f.stages:
        times = 1
        for r in stage.domain:
            times *= r.extent if r.extent is not None else 64
        total += max(1, stage.ops) * times
    return total * machine.op_ns / lanes * 4


def _settled(group: Group, facts: ProgramFacts, numbers: Numbers, machine: Machine) -> Group:
    """Say where each member is computed, which loops of the head stand inside its rows, and how long a strip is."""
    if group.row is None:
        return group
    head = facts.funcs[group.head]
    levels: dict[str, Level] = {}
    members: list[Member] = []
    turned = any(facts.funcs[m.name].runs_along_rows for m in group.members)
    for m in group.members:
        level, why = _level(m, facts, levels)
        if turned:
            level, why = Level.STRIP, "lanes are rows: along a row, each cell needs the one before"
        levels[m.name] = level
        members.append(replace(m, level=level, why=why))
    inner = _inner(group, group.row, facts, numbers, machine)
    strip = _strip(members, head, group.row, inner, facts, numbers, machine)
    if turned:
        strip = max(s.lanes for m in members for s in facts.funcs[m.name].stages)
    return replace(group, members=tuple(members), inner=inner, strip=strip, turned=turned)


def _level(m: Member, facts: ProgramFacts, levels: Mapping[str, Level]) -> tuple[Level, str]:
    f = facts.funcs[m.name]
    outer = [s.func for s, _ in facts.readers[m.name] if levels.get(s.func) is Level.STRIP]
    rows = m.window.halo + 1
    if outer:
        return Level.STRIP, f"{outer[0]} reads it once a strip"
    if m.window.scale == rows:
        return Level.ROW, f"a row of the head needs {rows} of it, and no other row needs them"
    if f.pure and m.window.scale.denominator == 1 and m.window.halo.denominator == 1:
        new = m.window.scale
        return Level.WINDOW, f"of {rows} rows that a row of the head needs, {new} {'is' if new == 1 else 'are'} new"
    return Level.STRIP, f"{rows} rows are needed for each"


def _inner(group: Group, row: int, facts: ProgramFacts, numbers: Numbers, machine: Machine) -> tuple[str, ...]:
    """Return the outer dims of the head that stand inside its rows: members are the same for all of them.

    Where the rows that members keep would not stay in the cache then, just those along which the head reads the same.
    """
    head = facts.funcs[group.head]
    moving = _moving(group, facts)
    inner = tuple(d for d in head.dims[:row] if any(d not in moving[m.name].values() for m in group.members))
    outer = {d for d in head.dims[:row] if d not in inner}
    kept = 0.0
    for m in group.members:
        f, sizes = facts.funcs[m.name], numbers.extents[m.name]
        cells = prod(n for k, n in enumerate(sizes) if k != m.row and moving[m.name].get(f.dims[k]) not in outer)
        kept += (float(m.window.halo) + 1) * cells * f.cell_bytes
    if 2 * kept <= machine.l2_bytes:
        return inner
    read = [reach for m in group.members for stage, reach in facts.readers[m.name] if stage.func == head.name]
    return tuple(d for d in inner if any(d not in {v.root for v in reach.moves if v.same} for reach in read))


def _moving(group: Group, facts: ProgramFacts) -> dict[str, dict[str, str]]:
    """Return, for the head and each member, which of its dims count as which dims of the head, for all readers."""
    head = facts.funcs[group.head]
    moving = {head.name: {d: d for d in head.dims}}
    for m in group.members:
        dims, found = facts.funcs[m.name].dims, list[dict[str, str]]()
        for stage, reach in facts.readers[m.name]:
            there = moving[stage.func]
            found.append(
                {d: there[v.root] for d, v in zip(dims, reach.moves, strict=True) if v.same and v.root in there}
            )
        moving[m.name] = {d: to for d, to in found[0].items() if all(one.get(d) == to for one in found)}
    return moving


def _strip(
    members: list[Member],
    head: FuncFacts,
    row: int,
    inner: tuple[str, ...],
    facts: ProgramFacts,
    numbers: Numbers,
    machine: Machine,
) -> int:
    """Return how many rows a strip has.

    Enough for a task to be worth its start; more where rows are computed twice; fewer where whole strips are kept, or
    where there would be too few for all threads.
    """
    again = once = kept = 0.0
    for name, scale, halo, level, at in (
        (head.name, 1.0, 0.0, Level.ROW, row),
        *((m.name, float(m.window.scale), float(m.window.halo), m.level, m.row) for m in members),
    ):
        f = facts.funcs[name]
        within = [d > at or f.dims[d] in inner or name != head.name for d in range(len(f.dims))]
        cells = prod(n for d, n in enumerate(numbers.extents[name]) if d != at and within[d])
        work = cells * work_of(f, machine)
        once, again = once + scale * work, again + halo * work
        if level is Level.STRIP:
            kept += scale * cells * f.cell_bytes
    rows = 1
    while rows < MOST_STRIP and (rows * once < TASK_NS or again > MOST_TWICE * rows * once):
        if kept and kept * rows * 2 > machine.l2_bytes / 2:
            break
        rows *= 2
    tasks = machine.cores * LEAST_TASKS
    apart = prod(n for d, n in enumerate(numbers.extents[head.name][: row + 1]) if head.dims[d] not in inner)
    while numbers.given and rows > 1 and apart // rows < tasks:
        rows //= 2
    return rows
