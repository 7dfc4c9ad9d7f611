"""Which Funcs are computed wherever they are read: those that are cheaper to compute again than to keep and read.

A Func of one or two operations goes into all its readers; a larger one into its only reader, where no cell is asked
for twice. What is read at data keeps its own Func where conditions keep its own reads inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from stax.auto.features import ProgramFacts, Reach, StageFacts, accesses_of
from stax.auto.group import WRITE_AND_READ, Group, work_of
from stax.auto.machine import Machine
from stax.auto.sizes import Numbers
from stax.bounds.accesses import at_data, kept_inside
from stax.expr.affine import Algebra
from stax.schedule.default import node_count

CHEAP = 2
MOST_NODES = 64
MOST_AGAIN_NODES = 200
USUAL_SPAN = 1024


@dataclass(frozen=True, slots=True)
class Inlined:
    """A Func that is inlined, and why."""

    name: str
    why: str


def inlined(facts: ProgramFacts) -> tuple[Inlined, ...]:
    """Return the Funcs to inline, producers first."""
    algebra = facts.regions.context.algebra
    costs: dict[str, int] = {}
    counts: dict[str, int] = {}
    narrow: set[str] = set()
    out: list[Inlined] = []
    for f in facts.funcs.values():
        if f.output or not f.pure or f.func.where is not None:
            continue
        found = facts.readers.get(f.name, ())
        own = accesses_of(facts, f.name)[0]
        narrows = kept_inside(own) or any(a.source in narrow for a in own)
        if narrows and _read_at_data(facts, f.name, algebra):
            continue
        cost = f.ops + sum(costs.get(r.source, 0) for r in f.stages[0].reaches)
        sites = {(s.func, s.stage, r.index) for s, r in found}
        count = node_count(f.func.values, counts)
        why = _why(cost, count, len(sites), [_repeats(s, r) for s, r in found])
        if why is not None:
            costs[f.name], counts[f.name] = cost, count
            narrow |= {f.name} if narrows else set()
            out.append(Inlined(f.name, why))
    return tuple(out)


def _why(cost: int, count: int, sites: int, repeats: Iterable[bool]) -> str | None:
    again = any(repeats)
    if cost <= (0 if again else CHEAP) and count <= MOST_NODES:
        return f"{cost} operations are no more than to read it"
    if sites == 1 and not again:
        return "read at one place, each cell once"
    return None


def _repeats(stage: StageFacts, reach: Reach) -> bool:
    """Return whether the reader asks for the same cell in several iterations."""
    return not {*stage.plain, *(r.name for r in stage.domain)} <= reach.uses


def _points(stage: StageFacts, facts: ProgramFacts, numbers: Numbers) -> int:
    """Return how often a stage reads; those that scatter do so without lanes."""
    dims = facts.funcs[stage.func].dims
    plain = prod(n for d, n in zip(dims, numbers.extents[stage.func], strict=True) if d in stage.plain)
    domain = prod(r.extent or USUAL_SPAN for r in stage.domain)
    return plain * domain * (stage.lanes if stage.scatters else 1)


def _read_at_data(facts: ProgramFacts, name: str, algebra: Algebra) -> bool:
    return any(
        at_data(a, algebra) for f in facts.funcs for found in accesses_of(facts, f) for a in found if a.source == name
    )


def cheap_heads(facts: ProgramFacts, groups: Sequence[Group], numbers: Numbers, machine: Machine) -> list[Inlined]:
    """Return heads without members that cost less to compute at every read than to write to memory and read again."""
    algebra = facts.regions.context.algebra
    out: list[Inlined] = []
    for group in groups:
        f = facts.funcs[group.head]
        cells = prod(numbers.extents[f.name])
        if group.members or f.output or not f.pure or f.func.where is not None or not f.dims:
            continue
        if cells * f.cell_bytes <= machine.l2_bytes * machine.cores or node_count(f.func.values, {}) > MOST_AGAIN_NODES:
            continue
        found = facts.readers.get(f.name, ())
        if kept_inside(accesses_of(facts, f.name)[0]) and _read_at_data(facts, f.name, algebra):
            continue
        times = sum(_points(s, facts, numbers) / cells for s, _ in found)
        again_ns = (times - 1) * work_of(f, machine)
        rate = machine.l3_rate if cells * f.cell_bytes <= machine.l3_bytes // 2 else machine.memory_rate
        saved_ns = WRITE_AND_READ * f.cell_bytes / rate
        if again_ns < saved_ns:
            why = f"{f.ops} operations at {len(found)} reads are less than {f.cell_bytes} bytes of memory a cell"
            out.append(Inlined(f.name, why))
    return out
