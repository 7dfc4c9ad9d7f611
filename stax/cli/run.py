"""`stax run`: compile a program and call it on files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import typer

from stax.cli.files import read_array, write_arrays
from stax.cli.programs import load_program, load_schedule
from stax.compiler import compile as compile_
from stax.errors import ArgumentError
from stax.runtime.kernel import Kernel


def run_program(
    program: str,
    given: list[str],
    out: Path | None,
    schedule: Path | None,
    shape: list[str],
    threads: int | None,
    fp: str | None,
    strict: bool,
) -> None:
    """Call the kernel of `program` on the `NAME=VALUE` of `given`; write its outputs to `out`, or say what they are."""
    outputs = load_program(program).outputs
    chosen = None if schedule is None else load_schedule(schedule, outputs)
    kernel = compile_(outputs, chosen, fp=fp, strict_native=strict)
    typer.echo(kernel.signature)
    arguments = dict(_argument(kernel, text) for text in given)
    extents = tuple(_shape(text) for text in shape)
    start = time.perf_counter()
    found = kernel(**arguments, shape=extents[0] if len(extents) == 1 else extents or None, threads=threads)
    took = time.perf_counter() - start
    names = tuple(b for o in kernel.signature.outputs for b in o.buffers)
    arrays = tuple(_flat(found))
    for name, array in zip(names, arrays, strict=True):
        typer.echo(f"{name}: {array.dtype} {array.shape}{_range(array)}")
    typer.echo(f"first call, with compilation: {took * 1e3:.1f} ms ({kernel.provenance['backend']})")
    if out is not None:
        write_arrays(out, names, arrays)
        typer.echo(f"wrote {out}")


def _argument(kernel: Kernel, text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ArgumentError(f"--input {text} has no value", hint="--input NAME=VALUE")
    if name not in kernel.signature.arguments:
        raise ArgumentError(f"the program has no argument `{name}`", [], [f"it is {kernel.signature}"])
    if name in {s.name for s in kernel.signature.scalars}:
        return name, _number(name, value)
    return name, read_array(Path(value))


def _number(name: str, value: str) -> int | float | bool:
    if value in ("True", "False"):
        return value == "True"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    raise ArgumentError(f"Param `{name}` is given {value!r}, which is no number")


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(n) for n in text.replace("x", ",").split(",") if n.strip())
    except ValueError:
        raise ArgumentError(f"--shape {text} is no list of extents", hint="such as 480,640") from None


def _flat(found: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(found, tuple):
        return [a for part in found for a in _flat(part)]  # pyright: ignore[reportUnknownVariableType]
    return [np.asarray(found)]


def _range(array: np.ndarray[Any, Any]) -> str:
    return f", {array.min()} .. {array.max()}" if array.size else ", empty"
