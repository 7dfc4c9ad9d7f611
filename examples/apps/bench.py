"""The benchmarks whose figures the README quotes.

    python -m examples.apps.bench b4 --peers PYTHON     run time, beside Halide's best schedules
    python -m examples.apps.bench b5                    CPU time from a definition to its first result
    python -m examples.apps.bench imports               `import stax` beside `import numpy`
    python -m examples.apps.bench wavefronts            recurrences in wavefronts on threads, beside one thread
    python -m examples.apps.bench heat2d --peers PYTHON     tiles of time, beside other schedules, Halide and Numba
    python -m examples.apps.bench seidel2d --peers PYTHON   the same of Gauss and Seidel's sweeps

`PYTHON` is that of a virtual environment with halide==21.0.0, numba and what stax needs; by default this one. `--lock
FILE` holds a lock while timing, for a machine that others use.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PEERS = Path(__file__).resolve().parent / "peers"
STAX = str(ROOT / "examples/apps/stax_suite.py")

# The app, the peers that count, and how fast stax is to be at least, as a multiple of the fastest of them.
B4 = (
    ("rows", "hand,mullapudi2016,adams2019,li2018,root", 0.9),
    ("gelu_bias_res", "hand,hand_exp,adams2019_exp", 0.9),
    ("blur3x3", "hand", 0.6),
)
# What has been tried against tiles of time, by suite, and how fast those are to be, as a multiple of the fastest.
TILED = {
    "heat2d": {"peers": 1.5, "stax": 2.5},
    "seidel2d": {"peers": 1.5},
}
HALIDE, NUMBA = "hand,mullapudi2016,root", "numba,numba_tiled,numba_skewed"
CHAINS = {62: 1.0, 125: 2.0, 250: 4.0, 500: 9.0}
MOST_GROWTH = 2.4
POOL = "pool"
MOST_IMPORT = 0.1
LEAST_WAVES = 1.4
LIMITS = {"blur": 0.2, "harris": 0.6, **{f"chain{n}": limit for n, limit in CHAINS.items()}, "deep": 2.0}


@contextlib.contextmanager
def held(lock: str) -> Iterator[None]:
    """Hold the lock file `lock`, where one is named."""
    if not lock:
        yield
        return
    with open(lock, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def b4(options: argparse.Namespace) -> bool:
    """Time the default schedule and Halide's schedules in one run, in turns; return whether each ratio is reached.

    Each turn of each system is a process of its own: idle threads of one spin, and would slow the other.
    """
    well = True
    for app, variants, least in B4:
        timed = _timed(app, (("halide", variants), (STAX, "stax")), options)
        well &= _ratio(app, timed, "stax/stax", [name for name in timed if name != "stax/stax"], "best peer", least)
    return well


def tiled(options: argparse.Namespace) -> bool:
    """Time a hand schedule in tiles of time, those without, Halide's and Numba's in one run, in turns."""
    app: str = options.app
    turns = (("halide", HALIDE), ("numba", NUMBA), *((STAX, v) for v in ("stax", "hand", "hand_untiled")))
    timed = _timed(app, turns, options)
    own = [name for name in timed if name in ("stax/stax", "stax/hand_untiled")]
    others = {"peers": ("best peer", [n for n in timed if not n.startswith("stax/")]), "stax": ("best untiled", own)}
    return all([_ratio(app, timed, "stax/hand", others[k][1], others[k][0], least) for k, least in TILED[app].items()])


def _timed(app: str, turns: Iterable[tuple[str, str]], options: argparse.Namespace) -> dict[str, float]:
    """Return and print the best time of each variant, by its name; `turns` of a suite and variants are gone through."""
    timed: dict[str, float] = {}
    for _ in range(options.rounds):
        for suite, chosen in turns:
            for name, row in _turn(app, suite, chosen, options).items():
                if "min_s" in row:
                    timed[name] = min(timed.get(name, row["min_s"]), row["min_s"])
                else:
                    print(f"{app:14s} {name:24s} failed: {row.get('error', '?')[:200]}", flush=True)
    for name, seconds in sorted(timed.items()):
        print(f"{app:14s} {name:24s} {seconds * 1e3:9.3f} ms", flush=True)
    return timed


def _ratio(app: str, timed: dict[str, float], ours: str, others: list[str], which: str, least: float) -> bool:
    """Print how fast `ours` is as a multiple of the best of `others`; return whether it is as fast as wanted."""
    if ours not in timed or not others:
        return False
    ratio = min(timed[name] for name in others) / timed[ours]
    print(f"{app:14s} {ours} has {ratio:.2f} of the {which}'s speed, wanted {least}: {_verdict(ratio >= least)}")
    return ratio >= least


def _turn(app: str, suite: str, variants: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return what `peers/run.py` says of some variants of one suite."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [
            options.peers, str(PEERS / "run.py"), "--suite", suite, "--variants", variants, "--apps", app,
            "--threads", str(options.threads), "--size", options.size, "--lock", options.lock, "--json", file.name,
            "--quick", "--reps", "9", *(["--exclusive"] if options.exclusive else []),
        ]  # fmt: skip
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        return json.loads(Path(file.name).read_text())["results"][app]


def b5(options: argparse.Namespace) -> bool:
    """Time, in fresh processes without a kernel in the cache, from a definition to its checked first result."""
    medians: dict[str, float] = {}
    well = True
    for name, limit in LIMITS.items():
        if options.only and name not in options.only:
            continue
        with held(options.lock):
            found = [_fresh(name, options.threads) for _ in range(options.repeat)]
        cpu, wall = (statistics.median(f[k] for f in found) for k in (0, 1))
        medians[name] = cpu
        well &= cpu <= limit
        print(
            f"{name:10s} {cpu:7.3f} s CPU, {wall:7.3f} s wall; at most {limit} s: {_verdict(cpu <= limit)}", flush=True
        )
    if {"chain250", "chain500"} <= set(medians):
        growth = medians["chain500"] / medians["chain250"]
        good = growth <= MOST_GROWTH
        well &= good
        print(f"500 stages take {growth:.2f} times as long as 250; at most {MOST_GROWTH}: {_verdict(good)}")
    return well


def imports(options: argparse.Namespace) -> bool:
    """Time `import stax` and `import numpy` in fresh processes, in turns."""
    times: dict[str, list[float]] = {"stax": [], "numpy": []}
    with held(options.lock):
        for _ in range(4 * options.repeat):
            for module, kept in times.items():
                kept.append(_import(module))
    ours, numpys = (statistics.median(times[m]) for m in ("stax", "numpy"))
    good = ours <= numpys + MOST_IMPORT
    print(f"import numpy {numpys:.3f} s, import stax {ours:.3f} s; at most {MOST_IMPORT} s more: {_verdict(good)}")
    return good


def wavefronts(options: argparse.Namespace) -> bool:
    """Time recurrences in wavefronts of tiles on `--threads` threads, beside one, and the default schedule."""
    import stax as sx
    from examples import gauss_seidel, smith_waterman

    plate = np.random.default_rng(0).random((2000, 2000), dtype=np.float32)
    cases = (
        (gauss_seidel, gauss_seidel.smooth, {"plate": plate, "sweeps": 16}),
        (smith_waterman, smith_waterman.best, smith_waterman.inputs(6000)),
    )
    well = True
    for module, output, given in cases:
        plain, tiled = (sx.compile(output, s, strict_native=True) for s in (None, module.by_hand()))
        assert (plain(**given) == tiled(**given)).all()
        runs = {"default": (plain, 1), "one thread": (tiled, 1), "threads": (tiled, options.threads)}
        timed: dict[str, list[float]] = {name: [] for name in runs}
        with held(options.lock):
            for _ in range(options.repeat):
                for name, (kernel, threads) in runs.items():
                    start = time.perf_counter()
                    kernel(**given, threads=threads)
                    timed[name].append(time.perf_counter() - start)
        plain_s, one_s, many_s = (min(timed[name]) for name in runs)
        ratio = min(plain_s, one_s) / many_s
        well &= ratio >= LEAST_WAVES
        print(
            f"{module.__name__.rpartition('.')[2]:16s} default {plain_s * 1e3:.1f} ms; wavefronts {one_s * 1e3:.1f} ms "
            f"on 1 thread, {many_s * 1e3:.1f} ms on {options.threads}: {ratio:.2f} times the best serial speed, wanted "
            f"{LEAST_WAVES}: {_verdict(ratio >= LEAST_WAVES)}",
            flush=True,
        )
    return well


def _verdict(good: bool) -> str:
    return "reached" if good else "MISSED"


def _import(module: str) -> float:
    code = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT).stdout)


def _fresh(name: str, threads: int) -> tuple[float, float]:
    """Return CPU and wall seconds of `name` in a process of its own, whose cache holds the thread pool alone."""
    with tempfile.TemporaryDirectory() as folder:
        for program in (POOL, name):
            command = [sys.executable, "-m", "examples.apps.bench", "one", program, "--threads", str(threads)]
            env = {**os.environ, "XDG_CACHE_HOME": folder}
            done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, check=False)
            if done.returncode:
                raise SystemExit(f"{program} failed: {done.stderr[-2000:]}")
    cpu, wall = done.stdout.split()
    return float(cpu), float(wall)


def one(options: argparse.Namespace) -> bool:
    """Print CPU and wall seconds from the definition of one program to its first result, and check that."""
    import llvmlite.binding  # noqa: F401  imported before the clock starts

    import stax as sx

    arguments, expected, make = _program(options.name)
    cpu, wall = time.process_time(), time.perf_counter()
    output, schedule = make()
    kernel = sx.compile(output, schedule, fp="default", strict_native=True)
    got = kernel(*arguments, threads=options.threads)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-5)
    print(cpu, wall)
    return True


def _program(name: str) -> tuple[tuple[np.ndarray, ...], np.ndarray, Callable[[], tuple[Any, Any]]]:
    """Return arguments, the right result, and what defines the program and its schedule."""
    from examples.apps import imaging

    sys.path.insert(0, str(PEERS))
    import apps

    if name in ("blur", "harris"):
        app = apps.APPS[{"blur": "blur3x3"}.get(name, name)]
        given = app.inputs("small")
        make = imaging.blur3x3 if name == "blur" else imaging.harris
        return (given["inp"],), app.ref(given, app.params("small")), lambda: (make(), None)
    if name == "deep":
        return _deep(5000)
    if name == POOL:
        return _deep(1)
    return _chain(int(name.removeprefix("chain")))


def _chain(count: int) -> tuple[tuple[np.ndarray, ...], np.ndarray, Callable[[], tuple[Any, Any]]]:
    import stax as sx

    rng = np.random.default_rng(0)
    start = rng.random(count * 2 + 500, dtype=np.float32)
    weights = [rng.permutation([0.25, 0.5, 0.25]).astype(np.float32) for _ in range(count)]
    expected = start.astype(np.float64)
    for w in weights:
        expected = w[0] * expected[:-2] + w[1] * expected[1:-1] + w[2] * expected[2:]

    def make() -> tuple[Any, Any]:
        x, a = sx.Var("x"), sx.Input("a", sx.float32, 1)
        stages, last = [], a
        for k, w in enumerate(weights):
            f = sx.Func(f"f{k}")
            f[x] = float(w[0]) * last[x] + float(w[1]) * last[x + 1] + float(w[2]) * last[x + 2]
            stages.append(f)
            last = f
        s = sx.Schedule(last)
        for f in stages[:-1]:
            s[f].compute_root()
        return last, s

    return (start,), expected.astype(np.float32), make


def _deep(depth: int) -> tuple[tuple[np.ndarray, ...], np.ndarray, Callable[[], tuple[Any, Any]]]:
    """Return an expression of `depth` operators, each on the one before and an input, so that nothing folds."""
    import stax as sx

    start = np.random.default_rng(0).integers(-99, 99, 1000, dtype=np.int32)
    expected = start.copy()
    for k in range(depth // 2):
        expected = (expected ^ start) + np.int32(k)

    def make() -> tuple[Any, Any]:
        x, a, f = sx.Var("x"), sx.Input("a", sx.int32, 1), sx.Func("f")
        value = a[x]
        for k in range(depth // 2):
            value = (value ^ a[x]) + k
        f[x] = value
        return f, None

    return (start,), expected, make


def main() -> int:
    """Run the benchmark that the command line names; return 1 where a figure is missed."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True)
    cases = {"b4": b4, "b5": b5, "imports": imports, "wavefronts": wavefronts, "one": one}
    for name, function in {**cases, **dict.fromkeys(TILED, tiled)}.items():
        command = commands.add_parser(name, help=function.__doc__)
        command.set_defaults(function=function, app=name)
        command.add_argument("--threads", type=int, default=2)
        command.add_argument("--lock", default="", help="a file to lock while timing")
        if name == "b4" or name in TILED:
            command.add_argument("--peers", default=sys.executable, help="a Python that has the peers")
            command.add_argument("--size", default="full", choices=["full", "small"])
            command.add_argument("--rounds", type=int, default=3, help="turns of each system")
            command.add_argument("--exclusive", action="store_true", help="raise the priority while timing; needs root")
        elif name == "one":
            command.add_argument("name", choices=[POOL, *LIMITS])
        else:
            command.add_argument("--repeat", type=int, default=5)
            command.add_argument("--only", nargs="*", choices=list(LIMITS), help="some of the programs")
    options = parser.parse_args()
    return 0 if options.function(options) else 1


if __name__ == "__main__":
    sys.exit(main())
