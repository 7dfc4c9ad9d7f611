"""The applications on an NVIDIA GPU: that they are right there, and their times beside torch's in one run.

    python -m examples.apps.gpu right                   every application with its default schedule, beside the oracle
    python -m examples.apps.gpu times [CASE ...]        times beside torch, torch.compile and the device's own ceilings
    python -m examples.apps.gpu calls                   what a call costs on the host, beside torch

Needs a GPU, torch and Triton. Times are of CUDA graphs over rotating sets of arrays, so that neither launches on the
host nor a warm cache count; outputs are full of NaN before, and compared afterwards.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import stax as sx
from examples.apps import stax_suite
from stax.errors import StaxError
from stax.testing import interpret

SCHEDULES = Path(__file__).resolve().parents[2] / "schedules" / "gpu"
SETS_BYTES = 3 << 30
TOLERANCE = 1e-4
M, N = sx.vars("m n")


def right(names: list[str], jobs: int) -> bool:
    """Run applications at their small sizes and say how far each is from the oracle."""
    chosen = names or list(stax_suite.PROGRAMS)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(_right_alone, chosen))
    for line in found:
        print(line)
    wrong = sum(" WRONG" in line or " FAILED" in line for line in found)
    print(f"{len(found) - wrong} of {len(found)} applications are right on the GPU")
    return not wrong


def _right_alone(name: str) -> str:
    """Run one application in a process of its own, since a fault on the GPU ends a process."""
    command = [sys.executable, "-W", "ignore", "-m", "examples.apps.gpu", "one", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    lines = done.stdout.strip().splitlines()
    return lines[-1] if done.returncode == 0 and lines else f"{name:18} FAILED {done.stderr.strip()[-600:]}"


def one(name: str) -> None:
    """Print how far application `name` is from the oracle on the GPU."""
    import torch

    app = stax_suite.apps.APPS[name]
    params = app.params("small")
    inputs = app.make(params)
    given = stax_suite.arguments(name, inputs, params)
    start = time.perf_counter()
    try:
        kernel = sx.compile(stax_suite.PROGRAMS[name](), target="cuda")
        there = {k: torch.from_numpy(v).cuda() if isinstance(v, np.ndarray) else v for k, v in given.items()}
        size = app.ref(inputs, params).shape
        got = kernel(**there, shape=size)
        again = kernel(**there, out=torch.empty_like(got))
        kernel(**there, out=again.fill_(0))
        torch.cuda.synchronize()
    except StaxError as error:
        print(f"{name:18} FAILED {str(error)[:500]}".replace("\n", " | "))
        return
    seconds = time.perf_counter() - start
    if got.cpu().numpy().tobytes() != again.cpu().numpy().tobytes():
        print(f"{name:18} differs from call to call")
    got, wanted = got.cpu().numpy(), interpret(stax_suite.PROGRAMS[name](), given)
    same = got.tobytes() == wanted.tobytes()
    large = max(1e-30, float(np.abs(wanted.astype(np.float64)).max()))
    gap = float(np.abs(got.astype(np.float64) - wanted.astype(np.float64)).max()) / large
    verdict = "the oracle's bits" if same else f"off by {gap:.1e} of the largest value"
    good = app.check(got, app.ref(inputs, params)) is None and (same or gap < TOLERANCE)
    print(f"{name:18} {verdict}{'' if good else ' WRONG'}, {kernel.contract}, {seconds:.1f} s with compiling")


@dataclass(frozen=True)
class Case:
    """A program and what torch has for it.

    `make` gives the inputs of a call as tensors, `torch` computes the same; `work` is in bytes, or in operations for
    matrix products. `least` is how large a part of `of` is wanted: "copy", "matmul" or "torch.compile".
    """

    program: Callable[[], sx.Func]
    make: Callable[[Any], dict[str, Any]]
    torch: Callable[..., Any]
    work: float
    of: str
    least: float
    params: dict[str, int] | None = None
    tolerance: float = 1e-5
    sets: int | None = None


def gelu() -> sx.Func:
    """Return GELU, by the error function, of `x + b`, plus `r`."""
    x, b = sx.Input("x", sx.float32, 2), sx.Input("b", sx.float32, 1)
    r = sx.Input("r", sx.float32, 2)
    t, out = sx.Func("t"), sx.Func("out")
    t[M, N] = x[M, N] + b[N]
    v = t[M, N]
    out[M, N] = v * 0.5 * (1 + sx.erf(v * 0.7071067811865476)) + r[M, N]
    return out


def softmax() -> sx.Func:
    """Return the softmax of each row."""
    x = sx.Input("x", sx.float32, 2)
    r = sx.RDom("r", j=x.shape[1])
    top, e, total, out = sx.Func("top"), sx.Func("e"), sx.Func("total"), sx.Func("out")
    top[M] = sx.max(x[M, r], over=r, initial=-sx.inf)
    e[M, N] = sx.exp(x[M, N] - top[M])
    total[M] = sx.sum(e[M, r], over=r)
    out[M, N] = e[M, N] / total[M]
    return out


def layernorm() -> sx.Func:
    """Return each row of halves with mean 0 and variance 1, scaled and shifted; computed in floats."""
    x = sx.Input("x", sx.float16, 2)
    w, b = (sx.Input(name, sx.float16, (x.shape[1],)) for name in ("w", "b"))
    r = sx.RDom("r", j=x.shape[1])
    v, mean, scale, out = sx.Func("v"), sx.Func("mean"), sx.Func("scale"), sx.Func("out")
    v[M, N] = sx.cast(x[M, N], sx.float32)
    mean[M] = sx.mean(v[M, r], over=r)
    scale[M] = sx.rsqrt(sx.mean((v[M, r] - mean[M]) ** 2, over=r) + 1e-5)
    made = (v[M, N] - mean[M]) * scale[M] * sx.cast(w[N], sx.float32) + sx.cast(b[N], sx.float32)
    out[M, N] = sx.cast(made, sx.float16)
    return out


def matmul() -> sx.Func:
    """Return the positive part of a product of matrices of halves and a bias; summed in floats."""
    a, b = sx.Input("a", sx.float16, 2), sx.Input("b", sx.float16, 2)
    bias = sx.Input("bias", sx.float16, 1)
    k = sx.RDom("k", k=a.shape[1])
    c, out = sx.Func("c"), sx.Func("out")
    c[M, N] = sx.float32(0)
    c[M, N] += sx.cast(a[M, k], sx.float32) * sx.cast(b[k, N], sx.float32)
    out[M, N] = sx.cast(sx.maximum(c[M, N] + sx.cast(bias[N], sx.float32), 0), sx.float16)
    return out


def blur() -> sx.Func:
    """Return each 3 x 3 mean, by rows and columns."""
    a = sx.Input("a", sx.float32, 2)
    bx, out = sx.Func("bx"), sx.Func("out")
    third = sx.float32(1 / 3)
    bx[M, N] = (a[M, N] + a[M, N + 1] + a[M, N + 2]) * third
    out[M, N] = (bx[M, N] + bx[M + 1, N] + bx[M + 2, N]) * third
    return out


def _cases() -> dict[str, Case]:
    import torch
    from torch.nn import functional

    def randn(*shape: int, dtype: Any = torch.float32) -> Any:
        return torch.randn(*shape, device="cuda", dtype=torch.float32).to(dtype)

    half = torch.float16
    rows, columns = 16384, 4096
    plate = 8192

    def heat(u: Any, steps: int) -> Any:
        for _ in range(steps):
            c = u[1:-1, 1:-1]
            around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
            u = _stepped(u, c, around)
        return u

    def _stepped(u: Any, c: Any, around: Any) -> Any:
        new = u.clone()
        new[1:-1, 1:-1] = c + 0.1 * (around - 4 * c)
        return new

    def blurred(a: Any) -> Any:
        bx = (a[:, :-2] + a[:, 1:-1] + a[:, 2:]) * (1 / 3)
        return (bx[:-2] + bx[1:-1] + bx[2:]) * (1 / 3)

    return {
        "gelu": Case(
            gelu, lambda _: {"x": randn(rows, columns), "b": randn(columns), "r": randn(rows, columns)},
            lambda x, b, r: functional.gelu(x + b) + r, 12.0 * rows * columns, "copy", 0.85,
        ),
        "softmax": Case(
            softmax, lambda _: {"x": randn(rows, 1000)}, lambda x: torch.softmax(x, 1), 8.0 * rows * 1000, "copy", 0.85
        ),
        "layernorm": Case(
            layernorm,
            lambda _: {"x": randn(rows, columns, dtype=half), "w": randn(columns, dtype=half),
                       "b": randn(columns, dtype=half)},
            lambda x, w, b: functional.layer_norm(x, (columns,), w, b), 4.0 * rows * columns, "copy", 0.85,
            tolerance=2e-3,
        ),
        "rows": Case(
            stax_suite.PROGRAMS["rows"], lambda _: {"x": randn(32768, 8192), "w": randn(8192)},
            lambda x, w: (2 * torch.relu(x + w)).sum(1), 4.0 * 32768 * 8192, "copy", 0.85,
        ),
        "matmul": Case(
            matmul,
            lambda _: {"a": randn(4096, 4096, dtype=half), "b": randn(4096, 4096, dtype=half),
                       "bias": randn(4096, dtype=half)},
            lambda a, b, bias: torch.relu(a @ b + bias), 2.0 * 4096**3, "matmul", 0.88, tolerance=2e-3,
        ),
        "blur": Case(
            blur, lambda _: {"a": randn(plate, plate)}, blurred, 8.0 * plate * plate, "torch.compile", 1.0
        ),
        "heat2d": Case(
            stax_suite.PROGRAMS["heat2d"], lambda _: {"u": randn(plate, plate)}, heat, 8.0 * plate * plate * 100,
            "torch.compile", 1.0, params={"steps": 100}, sets=1,
        ),
    }  # fmt: skip


def times(names: list[str], compiled: bool) -> bool:
    """Print the time of each case, and whether it is as good as it should be."""
    import torch

    torch.manual_seed(0)
    n = 1 << 29
    source = torch.randn(n, device="cuda")
    goal = torch.empty_like(source)
    copy = max(
        8.0 * n / _graph([partial(goal.copy_, source)]), 8.0 * n / _graph([partial(torch.abs, source, out=goal)])
    )
    a, b = (torch.randn(4096, 4096, device="cuda").half() for _ in range(2))
    product = 2.0 * 4096**3 / _graph([lambda: a @ b] * 8)
    print(f"copy {copy / 1e9:.0f} GB/s, half matmul of 4096 {product / 1e12:.0f} TFLOP/s, torch {torch.__version__}")
    good = True
    for name, case in _cases().items():
        if not names or name in names:
            ceiling = {"copy": copy, "matmul": product}.get(case.of)
            good = _case(name, case, ceiling, compiled) and good
    return good


def _case(name: str, case: Case, ceiling: float | None, compiled: bool) -> bool:
    import torch

    params = case.params or {}
    first = case.make(None)
    size = sum(v.numel() * v.element_size() for v in first.values())
    count = case.sets or max(1, min(8, SETS_BYTES // max(1, 2 * size)))
    given = [first, *(case.make(None) for _ in range(count - 1))]
    wanted = case.torch(**{k: v.double() for k, v in first.items()}, **params)
    seconds: dict[str, float] = {}
    for variant in ["stax", *_by_hand(name)]:
        try:
            func = case.program()
            kernel = sx.compile(func, _schedule(name, variant, func), target="cuda")
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                outs = [torch.full_like(wanted, float("nan"), dtype=_result(first)) for _ in given]
                calls = [kernel.bind(**g, **params, out=o) for g, o in zip(given, outs, strict=True)]
                calls[0]()
            torch.cuda.synchronize()
            gap = float((outs[0].double() - wanted).norm() / wanted.norm())
            if not gap <= case.tolerance:
                print(f"{name:10} {variant:16} WRONG: off by {gap:.1e}")
                continue
            seconds[variant] = _graph(calls, stream)
            del outs, calls
        except (StaxError, RuntimeError) as error:
            print(f"{name:10} {variant:16} FAILED {str(error)[:300]}")
    plain = [lambda g=g: case.torch(**g, **params) for g in given]
    seconds["torch"] = _graph(plain)
    if compiled:
        made = torch.compile(case.torch, dynamic=False)
        seconds["torch.compile"] = _graph([lambda g=g: made(**g, **params) for g in given])
    for variant, found in seconds.items():
        unit = (
            f"{case.work / found / 1e12:.0f} TFLOP/s" if case.of == "matmul" else f"{case.work / found / 1e9:.0f} GB/s"
        )
        part = "" if ceiling is None else f", {case.work / found / ceiling:.2f} of {case.of}"
        print(f"{name:10} {variant:16} {found * 1e3:8.4f} ms  {unit}{part}")
    ours = min((t for v, t in seconds.items() if v.startswith(("stax", "hand"))), default=float("inf"))
    reached = case.work / ours / ceiling if ceiling is not None else seconds.get(case.of, 0.0) / ours
    verdict = "reached" if reached >= case.least else "MISSED"
    print(f"{name:10} {reached:.2f} of {case.of}, wanted {case.least:.2f}: {verdict}", flush=True)
    return reached >= case.least


def _result(given: dict[str, Any]) -> Any:
    return next(iter(given.values())).dtype


def _by_hand(name: str) -> list[str]:
    return [f"hand {path.stem}" for path in sorted(SCHEDULES.glob(f"{name}*.stax"))]


def _schedule(name: str, variant: str, func: sx.Func) -> sx.Schedule | None:
    if variant == "stax":
        return None
    return sx.Schedule.load(SCHEDULES / f"{variant.removeprefix('hand ')}.stax", func)


def _graph(calls: list[Callable[[], Any]], stream: Any = None) -> float:
    """Return the median seconds of one of `calls`, in a CUDA graph of all of them."""
    import torch

    stream = torch.cuda.Stream() if stream is None else stream
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for call in calls:
            call()
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for call in calls:
            call()
    found: list[float] = []
    for turn in range(25):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        if turn >= 5:
            found.append(begin.elapsed_time(end) / 1e3 / len(calls))
    return statistics.median(found)


def calls() -> None:
    """Print what a call of a small kernel costs on the host, beside a call of torch."""
    import torch

    y, x = sx.vars("y x")
    a, b, s = sx.Input("a", sx.float32, 2), sx.Input("b", sx.float32, 1), sx.Param("s", sx.float32)
    f = sx.Func("f")
    f[y, x] = sx.maximum(a[y, x] * s + b[x], 0)
    kernel = sx.compile(f, target="cuda")
    left, right = torch.randn(8, 128, device="cuda"), torch.randn(128, device="cuda")
    out = torch.empty_like(left)
    ways: dict[str, Callable[[], Any]] = {
        "call": lambda: kernel(left, right, 2.0),
        "call, out=": lambda: kernel(left, right, 2.0, out=out),
        "bound": kernel.bind(left, right, 2.0, out=out),
        "torch.add": lambda: torch.add(left, right),
        "torch.add, out=": lambda: torch.add(left, right, out=out),
    }
    for name, call in ways.items():
        print(f"{name:18} {_host_us(call):8.2f} us")
    plate = torch.randn(512, 512, device="cuda")
    wanted = sx.compile(stax_suite.PROGRAMS["heat2d"](), target="cuda")(plate, 100)
    for mode in ("default", "reduce-overhead"):
        heat = sx.compile(stax_suite.PROGRAMS["heat2d"](), target="cuda", mode=mode)
        goal = torch.empty_like(plate)
        us = _host_us(lambda heat=heat, goal=goal: (heat(plate, 100, out=goal), torch.cuda.synchronize()), 20)
        same = bool((goal == wanted).all())
        print(f"{'heat, ' + mode:22} {us:8.1f} us, 100 steps of 512 x 512, waited for{'' if same else ' WRONG'}")


def _host_us(call: Callable[[], Any], count: int = 500) -> float:
    """Return the median microseconds that `call` keeps the host."""
    import torch

    found: list[float] = []
    for _ in range(9):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        found.append((time.perf_counter() - start) / count * 1e6)
    torch.cuda.synchronize()
    return statistics.median(found[1:])


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("right", "times", "calls", "one"), default="times", nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--without-compile", action="store_true", help="leave torch.compile out")
    options = parser.parse_args()
    if options.what == "one":
        one(options.names[0])
        return 0
    if options.what == "calls":
        calls()
        return 0
    if options.what == "right":
        return 0 if right(options.names, options.jobs) else 1
    return 0 if times(options.names, not options.without_compile) else 1


if __name__ == "__main__":
    raise SystemExit(main())
