"""What came of a schedule, in words: lanes and the tails they have, loops that did not become lanes and why.

    # out: loop `x.in` is 16 lanes; the rest of a row 8 at a time, then one by one
    # f: loop `x.in` is serial: it has storage of its own inside
    # g: no loop is lanes, as the schedule asks for none
    # s["out"].warps(4) is a hint for GPUs, and ignored here

Nothing is found out here that the loops do not show; long programs show it in many places.
"""

from __future__ import annotations

from collections.abc import Iterator

from stax.algorithm.nodes import MARK
from stax.loops.nodes import For, LoopKind, Program
from stax.loops.walk import statements, stores
from stax.schedule.directives import Hint, Stream
from stax.schedule.legal import Legal
from stax.schedule.points import Counted
from stax.schedule.script import show_directive, show_stage


def notes(legal: Legal, program: Program) -> list[str]:
    """Return the lines that say what became of `legal` in `program`, stage by stage."""
    out: list[str] = []
    for ref in legal.points:
        found = legal.points[ref]
        lanes = [loop for loop in found.loops if loop.loop.kind is LoopKind.VECTOR]
        for loop in lanes:
            out += (f"# {ref}: loop `{loop.loop.name}` {words}" for words in _lanes(loop, lanes, program))
        if not lanes:
            out.append(f"# {ref}: no loop is lanes, as the schedule asks for none")
        permits = legal.resolved.nests[ref].permits
        if any(isinstance(p, Stream) for p in permits) and not lanes:
            out.append(f"# {ref}: nothing is streamed, as only vectors are")
    return [*out, *(f"# {text}" for text in ignored(legal))]


def ignored(legal: Legal) -> list[str]:
    """Return what to say of each hint for another machine."""
    return [
        f"{show_stage(line.at)}.{show_directive(line.directive)} is a hint for GPUs, and ignored here"
        for line in legal.resolved.lines
        if isinstance(line.directive, Hint)
    ]


def _lanes(loop: Counted, lanes: list[Counted], program: Program) -> Iterator[str]:
    name = loop.var.name

    def mine(other: str) -> bool:
        return other == name or other.startswith(name + MARK)

    sizes = sorted({a.size for a in program.axes if mine(a.name)}, reverse=True)
    rest = [s for s in statements(program.body) if isinstance(s, For) and mine(s.var.name)]
    one_by_one = any(not any(mine(a.name) for t in stores(s) for a in t.value.axes) for s in rest)
    why = sorted({note.why for note in program.serial if mine(note.loop)})
    if not sizes:
        inner = lanes[-1] is not loop
        yield (
            "is written out, as another loop inside it is lanes"
            if inner
            else (f"is serial: {'; '.join(why) or 'no part of it is seen to fill its lanes'}")
        )
        return
    text = f"is {sizes[0]} lanes"
    if loop.masked:
        text += ", those masked that are past the end"
    if len(sizes) > 1 or one_by_one:
        parts = [f"{n} at a time" for n in sizes[1:]] + ["one by one"] * one_by_one
        text += f"; what does not fill them {', then '.join(parts)}"
    yield text
    if why:
        yield f"is serial in places: {'; '.join(why)}"
