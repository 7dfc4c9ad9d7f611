"""What a notebook shows: text as HTML that stands alone, in the colours of its page; nothing of a user is markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

MOST_LINES = 400
_DIM = 'style="opacity:.65"'
_CELL = 'style="text-align:left;vertical-align:top;padding:0 1.5em 0 0;border:0;background:none"'
_TEXT = 'style="margin:.3em 0;line-height:1.3;white-space:pre;overflow-x:auto"'


def block(*parts: str) -> str:
    """Return parts of HTML as one.

    >>> block(line("Func", "<f>"))
    '<div><div><b>Func</b> <code>&lt;f&gt;</code></div></div>'
    """
    return f"<div>{''.join(parts)}</div>"


def line(title: str, text: str) -> str:
    """Return a title and a short text beside it."""
    return f"<div><b>{escape(title)}</b> <code>{escape(text)}</code></div>"


def text(lines: str) -> str:
    """Return a text of several lines as it stands; of a very long one, its beginning and how much more there is."""
    kept = lines.rstrip("\n").split("\n")
    more = f"\n... and {len(kept) - MOST_LINES} lines more" if len(kept) > MOST_LINES else ""
    return f"<pre {_TEXT}>{escape(chr(10).join(kept[:MOST_LINES]) + more)}</pre>"


def folded(title: str, inner: str) -> str:
    """Return HTML that is seen when its title is clicked."""
    return f"<details><summary>{escape(title)}</summary>{inner}</details>"


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Return lines of code, each with a remark."""
    cells = (
        f"<tr {_CELL}><td {_CELL}><code style='white-space:pre'>{escape(code)}</code></td>"
        f"<td {_CELL}><span {_DIM}>{escape(remark)}</span></td></tr>"
        for code, remark in rows
    )
    return f'<table style="border:0">{"".join(cells)}</table>'
