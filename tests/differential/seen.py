"""What a compiled program really has in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from stax.algorithm.nodes import Pipeline
from stax.loops.nodes import Program
from tests.differential.generate import Drawn


def words_of(drawn: Drawn, pipeline: Pipeline, program: Program, texts: Sequence[str]) -> Iterator[str]:
    """Yield what is in the loops and the text of a program, each once."""
    yield from ()


def table(drawn: Counter[str], seen: Counter[str]) -> str:
    """Return how often each word was drawn and seen."""
    rows = [f"{'':40s}{'drawn':>8s}{'seen':>8s}"]
    for word in sorted({*drawn, *seen}):
        rows.append(f"{word:40s}{drawn[word]:8d}{seen[word]:8d}")
    return "\n".join(rows)
