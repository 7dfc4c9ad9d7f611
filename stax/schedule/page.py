"""A schedule in a notebook: a directive a row, and beside it who said it: a person's line, or a reason."""

from __future__ import annotations

from collections.abc import Iterable

from stax.notebook import block, table, text
from stax.schedule.directives import Line
from stax.schedule.script import Program, show, show_directive, show_stage


def page(program: Program, lines: Iterable[Line]) -> str:
    """Return HTML of a schedule; the head of its text comes first, so that it may be copied as it stands."""
    rows: list[tuple[str, str]] = []
    last = None
    for line in lines:
        stage = show_stage(line.at)
        shown = stage if line.at != last else " " * len(stage)
        span = line.directive.span
        said = line.why or ("" if span is None else span.place)
        rows.append((f"{shown}.{show_directive(line.directive)}", said))
        last = line.at
    return block(text(show(program, ())), table(rows))
