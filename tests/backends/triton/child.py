"""Run or compile every program with Triton, one JSON line each; a process of its own, since Triton asks at its import.

`TRITON_INTERPRET=1 python -m tests.backends.triton.child run` gives differences from the loop interpreter,
`python -m tests.backends.triton.child compile` what each kernel uses on an H100 that need not be there, and
`python -m tests.backends.triton.child device` what `run` does, on the GPU that is there, with torch to hold memory.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from stax import dtypes
from stax.backends.artifact import Facts
from stax.backends.triton.launch import compile_only, run
from stax.backends.triton.source import emit
from stax.loops.launches import Host
from stax.loops.nodes import Program, Role
from stax.lower.carry_rows import carry_rows
from stax.lower.split_kernels import split_kernels
from tests.backends.triton import operators, pipelines
from tests.loops import programs
from tests.loops.programs import Array, Case

BAND = 64
DEVICE = sys.argv[1:] == ["device"]
PIPELINES = 20
CASES = (
    Case("pointwise", programs.pointwise(4, 24), programs.pointwise_data),
    Case("row_sum", programs.row_sum(2, 12), programs.row_sum_data, 1e-5),
    Case("blur", programs.blur(4, 24), programs.blur_data),
    Case("blur_folded", carry_rows(programs.blur_folded(4, 12)), programs.blur_data),
    Case("blur in scratch", programs.blur_folded(4, 12), programs.blur_data),
    Case("matmul", programs.matmul(16, 16, 16), programs.matmul_data, 1e-5),
    Case("matmul of small blocks", programs.matmul(4, 3, 8), programs.matmul_data, 1e-5),
    Case("histogram", programs.histogram(24), programs.histogram_data),
    Case("heat", programs.heat(24), programs.heat_data),
)
LARGE: tuple[tuple[str, Program, int], ...] = (
    ("large pointwise", programs.pointwise(1, 1024), 4),
    ("large row_sum", programs.row_sum(4, 1024), 4),
    ("large blur", programs.blur(32, 256), 4),
    ("large matmul f16", programs.matmul(128, 64, 128, dtypes.float16), 8),
)


def host_of(program: Program) -> tuple[Host, ...]:
    """Return the kernels of `program`."""
    return split_kernels(program)


def guarded(array: Array) -> tuple[Array, Array]:
    """Return a copy of `array` inside a band of strange values, and all of it."""
    strange = np.nan if array.dtype.kind == "f" else True if array.dtype.kind == "b" else np.iinfo(array.dtype).max - 3
    whole = np.full(array.size + 2 * BAND, strange, array.dtype)
    inner = whole[BAND : BAND + array.size].reshape(array.shape)
    inner[...] = array
    return inner, whole


def in_triton(program: Program, arrays: dict[str, Array], scalars: dict[str, float]) -> dict[str, Array]:
    """Return what Triton's interpreter makes of copies of `arrays`; nothing is written around them."""
    guards = {name: guarded(a) for name, a in arrays.items()}
    inner = {name: a for name, (a, _) in guards.items()}
    before = {name: whole.copy() for name, (_, whole) in guards.items()}
    if DEVICE:
        held: list[tuple[Array, Any]] = []
        run(host_of(program), inner, scalars, programs.sizes_of(program, arrays), lambda a: uploaded(a, held, guards))
        for array, tensor in held:
            array[...] = tensor.cpu().numpy()
    else:
        run(host_of(program), inner, scalars, programs.sizes_of(program, arrays))
    for name, (_, whole) in guards.items():
        for band in (slice(BAND), slice(len(whole) - BAND, None)):
            if not np.array_equal(whole[band], before[name][band], equal_nan=whole.dtype.kind == "f"):
                raise SystemExit(f"{program.name} writes around `{name}`")
    return inner


def uploaded(array: Array, held: list[tuple[Array, Any]], guards: dict[str, tuple[Array, Array]]) -> Any:
    """Return what Triton takes for `array` on the device, its guards around it, copied there at its first use."""
    import torch

    whole = next((w for inner, w in guards.values() if inner is array), array)
    known = next((t for a, t in held if a is whole), None)
    if known is None:
        known = torch.from_numpy(whole).cuda()
        held.append((whole, known))
    return known if whole is array else known[BAND:]


def gap(got: Array, want: Array) -> float:
    """Return the largest relative difference, where a NaN equals only a NaN."""
    if got.dtype.kind != "f":
        return float(np.count_nonzero(got != want))
    with np.errstate(all="ignore"):
        a, b = got.astype(np.float64), want.astype(np.float64)
        alike = (a == b) | (np.isnan(a) & np.isnan(b))
        far = np.where(alike, 0.0, np.abs(a - b) / np.maximum(np.abs(b), 1e-30))
    return float(np.max(np.where(np.isnan(far), np.inf, far), initial=0.0))


def ran() -> Iterator[dict[str, object]]:
    """Yield a difference for each case and each operation."""
    rng = np.random.default_rng(0)
    for case in CASES:
        worst = 0.0
        for extents in ((1, 1), (5, 7), (9, 33)):
            arrays, scalars, right = case.data(rng, *extents)
            got = in_triton(case.program, arrays, scalars)
            worst = max([worst, *(gap(got[name], want) for name, want in right.items())])
        yield {"name": case.name, "gap": worst, "tolerance": case.tolerance}
    for dtype in operators.TYPES:
        program, words = operators.program(dtype)
        arrays, _ = operators.data(dtype, 1)
        want = {name: a.copy() for name, a in arrays.items()}
        programs.run(program, want, {})
        got = in_triton(program, arrays, {})
        for k, word in enumerate(words):
            name = f"out{k}"
            yield {
                "name": f"{dtype.name} {word}",
                "gap": gap(got[name], want[name]),
                "float": want[name].dtype.kind == "f",
            }

    for seed in range(PIPELINES):
        random = pipelines.pipeline(seed)
        out = next(b for b in random.program.buffers if b.role is Role.OUTPUT)
        arrays = {**random.inputs, out.name: np.zeros(random.shape, out.dtype.dtype)}
        want = {name: a.copy() for name, a in arrays.items()}
        programs.run(random.program, want, {})
        got = in_triton(random.program, arrays, {})
        yield {
            "name": random.name, "gap": gap(got[out.name], want[out.name]), "tolerance": 1e-6, "pipeline": True,
            "values": len(np.unique(want[out.name])),
        }  # fmt: skip


def compiled() -> Iterator[dict[str, object]]:
    """Yield what each kernel uses."""
    every = [*((c.name, c.program, 4) for c in CASES), *LARGE]
    every += [(p.name, p.program, 4) for p in map(pipelines.pipeline, range(PIPELINES))]
    every += [(f"all {d.name}", operators.program(d)[0], 4) for d in operators.TYPES]
    for name, program, warps in every:
        every_array = frozenset(b.name for b in program.buffers)
        facts = Facts(dense=every_array, aligned=every_array) if name.startswith("large") else Facts()
        for source in emit(host_of(program), facts):
            found = compile_only(source, warps=warps)
            wgmma = found.ptx.count("wgmma.mma_async")
            yield {"name": name, "spilled": found.spilled_bytes, "shared": found.shared_bytes, "wgmma": wgmma}


if __name__ == "__main__":
    for line in compiled() if sys.argv[1] == "compile" else ran():
        print(json.dumps(line), flush=True)
