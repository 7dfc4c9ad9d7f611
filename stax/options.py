"""How a program is compiled and run: a value, given to `compile`."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from stax.errors import ArgumentError

MODES = ("default", "fast-compile", "max-autotune")


@dataclass(frozen=True, slots=True)
class Options:
    """What may be chosen about compiling; every field has a usual value.

    `threads`: how many threads a call may use; None means as many as this process may run at once. `mode`: a preset
    of the optimiser, so far without effect. `strict_native`: raise where machine code cannot be had, instead of
    interpreting. `cache`: keep object code on disk, in `cache_dir` or, by default, the platform's cache folder.

    >>> Options(threads=2).threads
    2
    """

    threads: int | None = None
    mode: str = "default"
    strict_native: bool = False
    cache: bool = True
    cache_dir: str | Path | None = None

    def __post_init__(self) -> None:
        if self.threads is not None and (type(self.threads) is not int or self.threads < 1):
            raise ArgumentError(f"threads is {self.threads!r}, and must be an integer of at least 1")
        if self.mode not in MODES:
            close = difflib.get_close_matches(self.mode, MODES, 1)
            raise ArgumentError(
                f"there is no mode {self.mode!r}",
                facts=[f"modes: {', '.join(MODES)}"],
                hint=f"did you mean {close[0]!r}?" if close else None,
            )
