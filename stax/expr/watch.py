"""What an interpreter tells of a run, to who asks: each load, each store, each storage that is made."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np


class Watch(Protocol):
    """Told of what happens, in order. `at` are indices that spread over each other; `on` which of them count, or all.

    `by` is the stage that does it, "" where none is known.
    """

    def loaded(
        self, source: str, by: str, at: tuple[np.ndarray[Any, Any], ...], values: np.ndarray[Any, Any], on: Any
    ) -> None:
        """Told of values read."""
        ...

    def stored(
        self, target: str, by: str, at: tuple[np.ndarray[Any, Any], ...], values: np.ndarray[Any, Any], on: Any
    ) -> None:
        """Told of values written."""
        ...

    def realized(self, name: str, box: tuple[tuple[int, int], ...]) -> None:
        """Told of storage made, and its inclusive bounds."""
        ...
