"""Each read of a Func beside the box that is computed of it at that place, proved anew by isl of a legal schedule.

`check` makes boxes that cover what intervals see to be read: nothing is left to prove when a program is compiled.
Here the boxes are taken as they are, whoever made them: it is a second opinion, for people who ask and for tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stax.algorithm.nodes import Func
from stax.bounds.accesses import Access, Fact, Facts
from stax.bounds.infer import stage_name
from stax.expr.nodes import INDEX, Size
from stax.legality.within import Path, Within
from stax.legality.witness import point, sizes_of
from stax.poly.covered import escape
from stax.poly.isl import TooHard
from stax.poly.meet import Event
from stax.poly.proofs import Proofs
from stax.poly.words import Words
from stax.schedule.legal import Legal


@dataclass(frozen=True, slots=True)
class Edge:
    """A stage that reads a Func; `outside` says which read is not covered, `unknown` why it was not found out."""

    reader: str
    source: str
    outside: str | None = None
    unknown: str | None = None


def edges(legal: Legal, proofs: Proofs) -> Iterator[Edge]:
    """Yield each edge of the program, judged; what is proved goes into the journal of `proofs`."""
    paths: dict[str, Path] = {}
    within = Within(legal.regions.context, legal.placed, paths, legal.points)
    for f in reversed(legal.pipeline.funcs):
        paths[f.name] = within.path(legal.placed[f.name].compute)
    for f in legal.pipeline.funcs:
        for stage, found in enumerate(legal.regions.context.accesses[f.name]):
            for source in dict.fromkeys(a.source for a in found if a.source in paths and a.source != f.name):
                who = stage_name(f.name, stage)
                with proofs.noted("coverage", f"{who} reads {source}"):
                    mine = [a for a in found if a.source == source]
                    edge = _edge(legal, within, f, stage, source, mine, proofs)
                yield edge


def _edge(legal: Legal, within: Within, f: Func, stage: int, source: str, found: list[Access], proofs: Proofs) -> Edge:
    who, path = stage_name(f.name, stage), within.paths[source]
    whole = within.whole(f.name, stage)
    if whole[: len(path)] != path:
        return Edge(who, source, outside=f"`{who}` is outside the loops where `{source}` is computed")
    own, loops = within.paths[f.name], within.loops(path)
    variables = within.variables(f, stage, len(path) - len(own))
    around = {**variables, **within.loops(own[len(path) :])}
    called = _call(legal)
    for access in found:
        words = Words(legal.regions.context.algebra, legal.regions.context.at_least)
        try:
            asked = escape(words, Event(loops, around, access.facts | called, access.index), legal.placed[source].box)
            met = proofs.uncovered(asked)
        except TooHard as error:
            return Edge(who, source, unknown=str(error))
        if met is not None:
            cell = f"{source}[{', '.join(map(str, met.cell))}]"
            where = point(list(variables), met.point[: len(variables)])
            iteration = f" in iteration {_iteration(within, path, met.loops)}" if path else ""
            sizes = sizes_of(asked.parameters, met.sizes)
            text = f"`{who}` at {where} reads {cell}, which is not computed{iteration}{sizes}"
            return Edge(who, source, outside=text)
    return Edge(who, source)


def _call(legal: Legal) -> Facts:
    """Return what each call is checked for: that what is read of inputs and of declared shapes is there."""
    of = legal.regions.context.algebra.of
    held = {Fact(of(c.size) - 1 - of(c.hi)) for c in legal.regions.checks} | {
        Fact(of(c.lo)) for c in legal.regions.checks
    }
    for name, d, extent in legal.regions.fixed:
        gap = of(Size(INDEX, name, d)) - of(extent)
        held |= {Fact(gap), Fact(gap * -1)}
    return frozenset(held)


def _iteration(within: Within, path: Path, values: tuple[int, ...]) -> str:
    return point([within.points[stage].loops[at].loop.name for stage, at in path], values)
