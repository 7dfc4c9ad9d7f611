"""Run or compile every program with Triton, one JSON line each; a process of its own, since Triton asks at its import.

`TRITON_INTERPRET=1 python -m tests.backends.triton.child run` gives differences from the loop interpreter,
`python -m tests.backends.triton.child compile` what each kernel uses on an H100 that need not be there, and
`python -m tests.backends.triton.child device` differences from the oracle on the GPU at hand, on torch's tensors.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

import stax as sx
from stax import dtypes
from stax.backends.artifact import Facts
from stax.backends.triton.build import usage
from stax.backends.triton.source import Source, emit
from stax.loops.launches import Host
from stax.loops.nodes import Program, Role
from stax.lower.carry_rows import carry_rows
from stax.lower.split_kernels import split_kernels
from stax.runtime import launches
from stax.runtime.arguments import Bound
from stax.runtime.launches import facts_on_gpu, interpreted
from stax.testing import interpret
from tests.backends.triton import operators, pipelines, public
from tests.loops import programs
from tests.loops.programs import Array, Case

BAND = 64
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


def floats(array: Array) -> bool:
    """Return whether an array holds floats."""
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def guarded(array: Array) -> tuple[Array, Array]:
    """Return a copy of `array` inside a band of strange values, and all of it."""
    strange = np.nan if floats(array) else True if array.dtype.kind == "b" else np.iinfo(array.dtype).max - 3
    whole = np.full(array.size + 2 * BAND, strange, array.dtype)
    inner = whole[BAND : BAND + array.size].reshape(array.shape)
    inner[...] = array
    return inner, whole


def in_triton(program: Program, arrays: dict[str, Array], scalars: dict[str, float]) -> dict[str, Array]:
    """Return what Triton's interpreter makes of copies of `arrays`; nothing is written around them."""
    guards = {name: guarded(a) for name, a in arrays.items()}
    inner = {name: a for name, (a, _) in guards.items()}
    before = {name: whole.copy() for name, (_, whole) in guards.items()}
    host = host_of(program)
    sizes: dict[str, dict[int, int]] = {}
    for (name, dim), extent in programs.sizes_of(program, arrays).items():
        sizes.setdefault(name, {})[dim] = extent
    bound = Bound(inner, {n: tuple(d[k] for k in sorted(d)) for n, d in sizes.items()}, scalars, None)
    interpreted(host, facts_on_gpu(host)(bound))(bound, 1)()
    for name, (_, whole) in guards.items():
        for band in (slice(BAND), slice(len(whole) - BAND, None)):
            if whole[band].tobytes() != before[name][band].tobytes():
                raise SystemExit(f"{program.name} writes around `{name}`")
    return inner


def gap(got: Array, want: Array) -> float:
    """Return the largest relative difference, where a NaN equals only a NaN."""
    if not floats(got):
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
                "float": floats(want[name]),
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


def public_ran() -> Iterator[dict[str, object]]:
    """Yield a difference for each program, from the oracle, called through the door that users have."""
    for name, one in public.PROGRAMS.items():
        outputs = one.make()
        kernel = sx.compile(outputs, one.schedule(outputs), target="cuda")
        with as_many(one):
            got, want = parts(kernel(**one.given)), parts(interpret(outputs, one.given))
        worst = max(gap(np.asarray(a), np.asarray(b)) for a, b in zip(got, want, strict=True))
        yield {"name": name, "gap": worst, "tolerance": one.tolerance, "public": True}


def on_device() -> Iterator[dict[str, object]]:
    """Yield a difference for each program, from the oracle, on a GPU."""
    import torch

    def there(value: object) -> object:
        if not isinstance(value, np.ndarray):
            return value
        if value.dtype.name == "bfloat16":
            return torch.from_numpy(value.view(np.int16).copy()).cuda().view(torch.bfloat16)
        whole = torch.from_numpy(np.ascontiguousarray(value)).cuda()
        return whole

    def here(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(here(v) for v in value)  # pyright: ignore[reportUnknownVariableType]
        raw = value.cpu()
        return raw.view(torch.int16).numpy().view(sx.bfloat16.dtype) if raw.dtype == torch.bfloat16 else raw.numpy()

    for name, one in public.PROGRAMS.items():
        outputs = one.make()
        kernel = sx.compile(outputs, one.schedule(outputs), target="cuda")
        with as_many(one):  # twice: the second call is served by what was prepared for the first
            for _ in range(2):
                got = parts(here(kernel(**{n: there(v) for n, v in one.given.items()})))
        want = parts(interpret(outputs, one.given))
        worst = max(gap(a, b) for a, b in zip(got, want, strict=True))
        yield {"name": name, "gap": worst, "tolerance": 10 * one.tolerance}  # matrix units take float32 in three parts


def parts(value: object) -> list[Array]:
    """Return the arrays of a result: of each output, each part."""
    if isinstance(value, tuple):
        return [array for one in value for array in parts(one)]  # pyright: ignore[reportUnknownVariableType]
    return [np.asarray(value)]


def public_compiled() -> Iterator[dict[str, object]]:
    """Yield what the kernels of each program use, by their text."""
    for name, one in public.PROGRAMS.items():
        outputs = one.make()
        kernel = sx.compile(outputs, one.schedule(outputs), target="cuda")
        for source in (s for facts in versions(kernel) for s in facts):
            found = usage(source)
            yield {"name": name, "spilled": found.spilled_bytes, "shared": found.shared_bytes, "public": True}


def as_many(one: public.Program) -> mock._patch[int]:  # pyright: ignore[reportPrivateUsage]
    """Return what has a few points count as many, where a program asks for that."""
    return mock.patch.object(launches, "MANY", 1 if one.many else launches.MANY)


def versions(kernel: sx.Kernel) -> list[list[Source]]:
    """Return the kernels of `kernel` for dense, even arrays: for any size, some lengths of rows, and many points."""
    device = kernel.build.device
    assert device is not None
    arrays = frozenset(name for one in kernel.signature.outputs for name in one.buffers)
    arrays |= {one.name for one in kernel.signature.inputs}
    every = Facts(arrays, even=arrays)
    some = (every, *(replace(every, row=n) for n in (launches.ROWS[0], launches.ROWS[-1])), replace(every, many=True))
    found = {tuple(s.text for s in made): made for made in map(device.sources, some)}
    return [list(made) for made in found.values()]


def compiled() -> Iterator[dict[str, object]]:
    """Yield what each kernel uses."""
    every = [*((c.name, c.program, 4) for c in CASES), *LARGE]
    every += [(p.name, p.program, 4) for p in map(pipelines.pipeline, range(PIPELINES))]
    every += [(f"all {d.name}", operators.program(d)[0], 4) for d in operators.TYPES]
    for name, program, warps in every:
        every_array = frozenset(b.name for b in program.buffers)
        facts = Facts(dense=every_array, even=every_array) if name.startswith("large") else Facts()
        for source in emit(host_of(program), facts):
            found = usage(replace(source, warps=warps))
            wgmma = found.ptx.count("wgmma.mma_async")
            yield {"name": name, "spilled": found.spilled_bytes, "shared": found.shared_bytes, "wgmma": wgmma}


if __name__ == "__main__":
    works = {"compile": (compiled, public_compiled), "run": (ran, public_ran), "device": (on_device,)}[sys.argv[1]]
    for line in (line for work in works for line in work()):
        print(json.dumps(line), flush=True)
