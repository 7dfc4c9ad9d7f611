"""Numbers and tables as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line for each of `rows`: the first column at its left, the others at their right.

    >>> table([("stage", "calls"), ("f", "12")])
    ['stage  calls', 'f         12']
    """
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join(text.rjust(n) if k else text.ljust(n) for k, (text, n) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]


def time_text(seconds: float) -> str:
    """Return `seconds` in the unit that fits.

    >>> time_text(0.00123), time_text(2)
    ('1.23 ms', '2.00 s')
    """
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= scale:
            return f"{seconds / scale:.2f} {unit}"
    return f"{seconds * 1e6:.2f} us"


def bytes_text(n: int) -> str:
    """Return `n` bytes in the unit that fits.

    >>> bytes_text(1536), bytes_text(7)
    ('1.5 KiB', '7 B')
    """
    scale, unit = next(((s, u) for s, u in _UNITS if n >= s), (1, "B"))
    return f"{n / scale:.1f} {unit}" if scale > 1 else f"{n} {unit}"


def digits(value: float, count: int) -> str:
    """Return a positive `value` with `count` digits, or as many as it has before its point.

    >>> digits(3.14159, 3), digits(0.0123456, 3), digits(12345.6, 3), digits(0, 3)
    ('3.14', '0.0123', '12346', '0.00')
    """
    places = count - 1 - (math.floor(math.log10(value)) if value > 0 else 0)
    return f"{value:.{max(0, places)}f}"
