"""How a program is compiled and run: a value, given to `compile`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from stax.errors import ArgumentError

MODES: Mapping[str, Mapping[str, str | bool]] = MappingProxyType(
    {
        "default": {},
        "fast-compile": {"effort": "quick"},
        "deterministic": {"require": "bitwise"},
        "reduce-overhead": {"graphs": True},
        "max-autotune-no-cudagraphs": {"autotune": True},
        "max-autotune": {"autotune": True, "graphs": True},
    }
)
"""What each mode presets of `Options`; a field that is given wins over its preset."""

_USUAL: Mapping[str, str | bool | None] = {"effort": "full", "require": None, "autotune": False, "graphs": False}
_CHOICES = {
    "effort": ("full", "quick"),
    "require": ("bitwise", "reassociates"),
    "autotune": (True, False),
    "graphs": (True, False),
}


@dataclass(frozen=True, slots=True)
class Options:
    """What may be chosen about compiling; every field has a usual value.

    `threads`: how many threads a call may use; None means as many as this process may run at once. `strict_native`:
    raise BackendError where machine code cannot be had, instead of interpreting. `cache`: keep what is compiled on
    disk, in `cache_dir` or, by default, the platform's cache folder.

    `mode` presets the rest, as `MODES` says, and what is given here wins. `effort`: of LLVM, "full" or "quick".
    `require`: "bitwise" refuses directives that reassociate. `autotune`: on a processor, and where no schedule is
    given, the first call measures a few on its arrays and stays with the fastest; the cache remembers which. `graphs`:
    launch the kernels of a call on a GPU as one, where its arrays come again.

    >>> Options(mode="max-autotune", graphs=False).chosen == Options(mode="max-autotune-no-cudagraphs").chosen
    True
    """

    threads: int | None = None
    mode: str = "default"
    strict_native: bool = False
    cache: bool = True
    cache_dir: str | Path | None = None
    effort: str | None = None
    require: str | None = None
    autotune: bool | None = None
    graphs: bool | None = None

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
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in choices:
                raise ArgumentError(f"{name} is {value!r}", hint=f"it is {' or '.join(map(repr, choices))}")

    @property
    def chosen(self) -> Mapping[str, str | bool | None]:
        """What holds after the mode's presets and the fields that were given."""
        given = {name: getattr(self, name) for name in _USUAL if getattr(self, name) is not None}
        return {**_USUAL, **MODES[self.mode], **given}
