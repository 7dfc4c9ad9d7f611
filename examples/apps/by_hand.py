"""The hand schedules of `schedules/cpu` beside the peers: run time, and CPU time of compiling.

    python -m examples.apps.by_hand apps --peers PYTHON [--torch PYTHON]    run time, beside Halide, Numba, PyTorch
    python -m examples.apps.by_hand sgemm                                   products of matrices, beside OpenBLAS
    python -m examples.apps.by_hand compile --peers PYTHON                  CPU time of compiling, beside Halide

All figures of a line come from one run: processes of their own for each system, in turns, the least time of each.
`PYTHON` has halide==21.0.0, numba and what stax needs; that of `--torch` has PyTorch. `--lock FILE` holds a lock while
timing; `--exclusive` raises the priority (needs root). `--only` picks lines.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PEERS = Path(__file__).resolve().parent / "peers"
SUITE = ROOT / "examples" / "apps" / "stax_suite.py"
MOST_COMPILE_S = 3.0
RESOLUTION_S = 0.005


@dataclass(frozen=True)
class Line:
    """An app under one of its hand schedules, and the least speed wanted, as a multiple of the peer's.

    With `copy`, that share of the bandwidth of a streaming copy will do as well, or, with `both`, is wanted as well.
    """

    app: str
    ours: str
    peer: str
    least: float
    threads: int = 2
    copy: float | None = None
    both: bool = False

    @property
    def name(self) -> str:
        """What the line is called."""
        return f"{self.app}/{self.ours}"


LINES = (
    Line("blur3x3", "hand", "halide/hand", 1 / 1.05, 1),
    Line("blur3x3", "hand", "halide/hand", 1 / 1.05, 2),
    Line("blur3x3", "hand_stream", "halide/hand", 1 / 0.70, 1),
    Line("blur3x3", "hand_stream", "halide/hand", 1 / 0.80, 2, copy=0.9),
    Line("hist_eq", "hand", "halide/hand", 1.0),
    Line("iir_blur", "hand", "halide/hand", 1.0),
    Line("softmax", "hand", "halide/hand", 1.1, copy=0.6, both=True),
    Line("layernorm", "hand", "numba/numba", 1.0),
    Line("harris", "hand", "halide/hand", 1.0),
    Line("unsharp", "hand", "halide/hand", 1.0),
    Line("camera_pipe", "hand", "halide/hand", 0.9),
    Line("local_laplacian", "hand", "halide/hand", 0.8),
    Line("conv_layer", "hand", "torch/torch", 0.85),
)
PRODUCTS = ((1024, False, 0.85), (2048, False, 0.80), (1000, False, 0.7), (1023, False, 0.7), (37, False, 0.7),
            (1024, True, 0.7))  # fmt: skip


def compared(options: argparse.Namespace) -> bool:
    """Print, for each line, both times and the ratio of speeds; return whether each is reached."""
    well = True
    for line in LINES:
        if options.only and line.name not in options.only and line.app not in options.only:
            continue
        if line.peer.startswith("torch") and not options.torch:
            print(f"{line.name:28s} needs --torch PYTHON", flush=True)
            continue
        well &= _line(line, options)
    return well


def _line(line: Line, options: argparse.Namespace) -> bool:
    suite, variant = line.peer.split("/")
    python = options.torch if suite == "torch" else options.peers
    ours: list[float] = []
    theirs: list[float] = []
    copies: list[float] = []
    for _ in range(options.rounds):
        theirs += _turn(python, line.app, suite, variant if suite == "halide" else "", line.threads, options)
        ours += _turn(options.peers, line.app, str(SUITE), line.ours, line.threads, options)
        if line.copy is not None:
            copies.append(_child(["copy", "--threads", str(line.threads)], options)["gb_per_s"])
    if not ours or not theirs:
        print(f"{line.name:28s} {line.threads} threads: no result", flush=True)
        return False
    ratio = min(theirs) / min(ours)
    reached = ratio >= line.least
    text = f"{line.name:28s} {line.threads} threads: {min(ours) * 1e3:8.3f} ms, {line.peer} {min(theirs) * 1e3:8.3f} ms"
    text += f", {ratio:.2f} of its speed, wanted {line.least:.2f}"
    if line.copy is not None:
        share = _bytes(line.app) / min(ours) / 1e9 / max(copies)
        text += f"; {share:.2f} of a streaming copy, {'and' if line.both else 'or'} {line.copy:.2f}"
        reached = (reached and share >= line.copy) if line.both else (reached or share >= line.copy)
    print(f"{text}: {'reached' if reached else 'MISSED'}", flush=True)
    return reached


def _bytes(app: str) -> float:
    one = _apps()[app]
    return one.work(one.params("full"))["bytes"]


def _turn(python: str, app: str, suite: str, variants: str, threads: int, options: argparse.Namespace) -> list[float]:
    """Return the least time of one process of `peers/run.py`; nothing, with its words, where it failed."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [
            python, str(PEERS / "run.py"), "--suite", suite, "--variants", variants, "--apps", app, "--quick",
            "--threads", str(threads), "--lock", options.lock, "--json", file.name, "--reps", str(options.reps),
            *(["--exclusive"] if options.exclusive else []),
        ]  # fmt: skip
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        text = Path(file.name).read_text()
        rows = json.loads(text)["results"][app] if text else {}
    found = [row["min_s"] for row in rows.values() if "min_s" in row]
    if not found:
        print(f"{app} {suite}: {rows or done.stderr[-400:]}", flush=True)
    return found


def products(options: argparse.Namespace) -> bool:
    """Time products of matrices beside NumPy's, on one thread and two; return whether each ratio is reached."""
    well = True
    kernels: set[str] = set()
    for n, transposed, least in PRODUCTS:
        name = f"sgemm {n}{' transposed' if transposed else ''}"
        if options.only and str(n) not in options.only:
            continue
        for threads in (1, 2):
            times: dict[str, float] = {}
            for _ in range(options.rounds):
                for system in ("numpy", "stax"):
                    extra = ["--transposed"] if transposed else []
                    found = _child(["product", system, str(n), "--threads", str(threads), *extra], options)
                    times[system] = min(times.get(system, found["min_s"]), found["min_s"])
                    kernels |= {found["kernel"]} if system == "numpy" else set()
            ratio = times["numpy"] / times["stax"]
            well &= ratio >= least
            rates = {s: 2 * n**3 / t / 1e9 for s, t in times.items()}
            print(
                f"{name:28s} {threads} threads: {rates['stax']:7.1f} GFLOP/s, OpenBLAS {rates['numpy']:7.1f}, "
                f"{ratio:.2f} of its speed, wanted {least}: {'reached' if ratio >= least else 'MISSED'}",
                flush=True,
            )
    print(f"OpenBLAS ran its kernel for {', '.join(sorted(kernels))}")
    return well


def _child(arguments: list[str], options: argparse.Namespace, python: str | None = None) -> dict[str, Any]:
    """Return what a process of this file says; OpenBLAS is left to choose its kernel."""
    env = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    threads = arguments[arguments.index("--threads") + 1] if "--threads" in arguments else "1"
    env |= {"OPENBLAS_NUM_THREADS": threads, "PYTHONPATH": str(ROOT)}
    command = [python or sys.executable, str(Path(__file__).resolve()), *arguments, "--lock", options.lock]
    command += ["--exclusive"] if options.exclusive else []
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env=env, start_new_session=True
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


@contextlib.contextmanager
def _alone(options: argparse.Namespace) -> Iterator[None]:
    """Hold the lock, with a raised priority where that is asked for."""
    sys.path.insert(0, str(PEERS))
    import run

    with run.Lock(options.lock):
        if options.exclusive:
            run.priority(-15)
            if options.threads > 1:
                run.pin()
        yield


def product(options: argparse.Namespace) -> bool:
    """Time one system on one size, and print the least time."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((options.n, options.n), dtype=np.float32) for _ in range(2))
    expected = (a.T if options.transposed else a) @ b
    kernel = ""
    if options.system == "numpy":
        out, left = np.empty_like(b), a.T if options.transposed else a
        kernel = _openblas_kernel()

        def call() -> np.ndarray:
            return np.matmul(left, b, out=out)
    else:
        call = _ours(a, b, options)
    np.testing.assert_allclose(call(), expected, rtol=1e-3, atol=1e-3 * options.n**0.5)
    inner = max(1, min(2000, int(2e8 / options.n**3)))
    with _alone(options):
        least = min(_once(call, inner) for _ in range(12))
    print(json.dumps({"min_s": least, "kernel": kernel}))
    return True


def _once(call: Callable[[], Any], inner: int) -> float:
    start = time.perf_counter()
    for _ in range(inner):
        call()
    return (time.perf_counter() - start) / inner


def _ours(a: np.ndarray, b: np.ndarray, options: argparse.Namespace) -> Callable[[], np.ndarray]:
    import stax as sx
    from examples.apps import algebra

    c = algebra.transposed_sgemm() if options.transposed else algebra.sgemm()
    word = "transposed_" if options.transposed else ""
    s = sx.Schedule.load(ROOT / "schedules" / "cpu" / f"{word}sgemm.stax", c)
    kernel = sx.compile(c, s, fp="default", strict_native=True)
    return kernel.bind(a=a, b=b, threads=options.threads)


def _openblas_kernel() -> str:
    """Return the processor whose kernel NumPy's OpenBLAS runs, in its own words."""
    for path in sorted(
        {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "blas" in line}
    ):
        library = ctypes.CDLL(path)
        for name in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename"):
            if hasattr(library, name):
                call = getattr(library, name)
                call.restype = ctypes.c_char_p
                return call().decode()
    return "?"


def copy(options: argparse.Namespace) -> bool:
    """Print the bandwidth of a copy that stores past the caches, of 64 MiB to 64 MiB, read and write counted."""
    import stax as sx

    y, x = sx.vars("y x")
    a, f = sx.Input("a", sx.float32, 2), sx.Func("f")
    f[y, x] = a[y, x]
    s = sx.Schedule(f)
    s[f].parallel("y", 16).vectorize("x", 32).stream()
    given = np.ones((16384, 1024), np.float32)
    call = sx.compile(f, s, strict_native=True).bind(a=given, threads=options.threads)
    call()
    with _alone(options):
        least = min(_once(call, 1) for _ in range(15))
    print(json.dumps({"gb_per_s": 2 * given.nbytes / least / 1e9}))
    return True


def compiled(options: argparse.Namespace) -> bool:
    """Time compiling each app under its hand schedule, nothing cached, beside Halide; at most half of its CPU time."""
    well = True
    for app, ours in dict.fromkeys((line.app, line.ours) for line in LINES):
        if options.only and app not in options.only and f"{app}/{ours}" not in options.only:
            continue
        found = {
            system: min(
                _child(["build", system, app, word], options, options.peers)["cpu_s"] for _ in range(options.rounds)
            )
            for system, word in (("stax", ours), ("halide", "hand"))
        }
        reached = found["stax"] <= min(found["halide"] / 2 + RESOLUTION_S, MOST_COMPILE_S)
        well &= reached
        print(
            f"{app + '/' + ours:28s} {found['stax']:.3f} s CPU, Halide {found['halide']:.3f} s, "
            f"{found['stax'] / found['halide']:.2f} of it, wanted 0.5: {'reached' if reached else 'MISSED'}",
            flush=True,
        )
    return well


def build(options: argparse.Namespace) -> bool:
    """Print the CPU seconds from the definition of an app to its first result at the small size.

    LLVM is loaded before, as it is with Halide's import.
    """
    apps = _apps()
    params = apps[options.app].params("small")
    inputs = apps[options.app].make(params)
    if options.system == "halide":
        import halide_suite as suite
    else:
        import llvmlite.binding  # noqa: F401

        from examples.apps import stax_suite as suite
        from stax.runtime.pool import pool

        pool()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        start = time.process_time()
        suite.build(options.app, inputs, params, options.variant, 2)()
        print(json.dumps({"cpu_s": time.process_time() - start}))
    return True


def _apps() -> Any:
    sys.path[:0] = [str(PEERS), str(PEERS.parent)]
    import apps

    return apps.APPS


def main() -> int:
    """Run what the command line names; return 1 where a figure is missed."""
    parser = argparse.ArgumentParser(prog="hand", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True)
    actions = {
        "apps": compared, "sgemm": products, "compile": compiled, "product": product, "copy": copy, "build": build,
    }  # fmt: skip
    for name, function in actions.items():
        command = commands.add_parser(name, help=(function.__doc__ or "").splitlines()[0])
        command.set_defaults(function=function)
        command.add_argument("--lock", default="", help="a file to lock while timing")
        command.add_argument("--exclusive", action="store_true", help="raise the priority while timing; needs root")
        command.add_argument("--threads", type=int, default=2)
        if name in ("apps", "sgemm", "compile"):
            command.add_argument("--peers", default=sys.executable, help="a Python that has halide==21.0.0 and numba")
            command.add_argument("--torch", default="", help="a Python that has PyTorch")
            command.add_argument("--rounds", type=int, default=3, help="turns of each system")
            command.add_argument("--reps", type=int, default=15, help="calls in a turn, at least")
            command.add_argument("--only", nargs="*", default=[], help="some lines")
        if name == "product":
            command.add_argument("system", choices=["stax", "numpy"])
            command.add_argument("n", type=int)
            command.add_argument("--transposed", action="store_true")
        if name == "build":
            command.add_argument("system", choices=["stax", "halide"])
            command.add_argument("app")
            command.add_argument("variant")
    options = parser.parse_args()
    return 0 if options.function(options) else 1


if __name__ == "__main__":
    sys.exit(main())
