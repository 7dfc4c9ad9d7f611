"""Loop programs as LLVM text, and that text as object code."""

from __future__ import annotations

from stax.backends.artifact import Artifact, Facts
from stax.backends.llvm.module import emit, entry, slots
from stax.backends.llvm.optimize import compile_text
from stax.loops.nodes import Program
from stax.target import Target

__all__ = ["build", "compile_text", "emit", "slots"]


def build(program: Program, facts: Facts, target: Target) -> Artifact:
    """Return the machine code of `program` on `target`, where `facts` hold of its arguments.

    Raises BackendError where LLVM fails.
    """
    text = emit(program, facts, target)
    return Artifact(text, compile_text(text, target), entry(program), slots(program), facts)
