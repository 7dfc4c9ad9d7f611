"""Runs a program as a file of a user, whose lines errors can show."""

from __future__ import annotations

import linecache

import numpy as np

import stax as sx
from stax.lang.freeze import freeze


def run(program: str) -> None:
    program = program.lstrip("\n")
    linecache.cache["program.py"] = (len(program), None, program.splitlines(keepends=True), "program.py")
    exec(compile(program, "program.py", "exec"), {"sx": sx, "np": np, "freeze": freeze})
