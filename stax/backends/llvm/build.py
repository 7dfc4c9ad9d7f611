"""A loop program -> an artifact: printed, then compiled or taken from a store."""

from __future__ import annotations

from collections.abc import Callable

from stax.backends.artifact import Artifact, Facts
from stax.backends.llvm.module import emit, entry, slots
from stax.backends.llvm.optimize import assembled, compile_text
from stax.loops.nodes import Program
from stax.target import Target


def text(program: Program, facts: Facts, target: Target) -> str:
    """Return `program` as LLVM text."""
    return emit(program, facts, target)


def build(program: Program, facts: Facts, target: Target) -> Artifact:
    """Return machine code for `program` on `target`, where `facts` hold of its arguments.

    Raises BackendError where LLVM fails.
    """
    return artifact(program, facts, target, lambda _, make: make())


def artifact(
    program: Program,
    facts: Facts,
    target: Target,
    kept: Callable[[str, Callable[[], bytes]], bytes],
    quick: bool = False,
) -> Artifact:
    """Return machine code for `program`; `kept(text, make)` gives the object of a text, from a store or by `make`."""
    printed = emit(program, facts, target)
    code = kept(printed, lambda: compile_text(printed, target, quick))
    return Artifact(printed, code, entry(program), slots(program), facts)


def assembly(printed: str, target: Target) -> str:
    """Return the machine instructions that LLVM text becomes."""
    return assembled(printed, target)
