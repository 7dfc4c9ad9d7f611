"""What was proved of a schedule, edge by edge and stage by stage, by what, and how long it took: a table."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter

from stax.algorithm.nodes import Pipeline
from stax.legality.check import check
from stax.legality.coverage import edges
from stax.legality.known import Known
from stax.poly.isl import library
from stax.poly.proofs import Entry, Proofs
from stax.schedule.directives import Line
from stax.schedule.legal import Legal

WORDS = {
    "region": "computed around what reads it, before it",
    "order": "its loops keep the order it needs",
    "storage": "nothing that is kept is lost",
    "in place": "nothing is read after it is written over",
    "coverage": "all that is read is computed there",
}


def report(pipeline: Pipeline, lines: Iterable[Line]) -> tuple[Legal, str]:
    """Return the proof that `lines` change no value of `pipeline`, and the table; raises as `check` does.

    With what the check needs, each read is proved anew to lie in the box that is computed: a second opinion, by isl.
    """
    proofs = Proofs()
    library()
    begin = perf_counter()
    legal = check(pipeline, lines, known=Known(proofs))
    checked_s = perf_counter() - begin
    entries = list(proofs.journal)
    proofs.journal.clear()
    found = list(edges(legal, proofs))
    rows = [_row(e, "") for e in entries if e.who]
    for edge, entry in zip(found, proofs.journal, strict=True):
        rows.append(_row(entry, edge.outside or (f"not found out: {edge.unknown}" if edge.unknown else "")))
    widths = [max(len(row[k]) for row in rows) for k in range(3)]
    text = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}  {d}" for a, b, c, d in rows]
    again_s = sum(e.time_s for e in proofs.journal)
    text.append(
        f"the check took {1000 * checked_s:.1f} ms, the second look at what is read {1000 * again_s:.1f} ms; "
        f"values keep to the definition: {legal.contract}"
    )
    return legal, "\n".join(text)


def _row(entry: Entry, bad: str) -> tuple[str, str, str, str]:
    asked = entry.questions - entry.known
    by = f"isl, {asked} question{'s' * (asked != 1)}" if asked else "known answer" if entry.known else "intervals"
    return entry.who, by, f"{1000 * entry.time_s:.1f} ms", bad or WORDS[entry.what]
