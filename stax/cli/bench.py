"""`stax bench`: the benchmarks of the source checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import stax
from stax.errors import ArgumentError

BENCHES = ("b4", "b5", "imports", "wavefronts", "hand", "heat2d", "seidel2d", "call", "start", "gpu", "seed")
_OWN = {
    "hand": ("examples.apps.by_hand",),
    "call": ("examples.apps.calls", "call"),
    "start": ("examples.apps.calls", "start"),
    "gpu": ("examples.apps.gpu",),
    "seed": ("examples.apps.seed",),
}


def run_bench(name: str, options: list[str]) -> int:
    """Run benchmark `name` with its own `options` in a fresh process; return its exit code."""
    if name not in BENCHES:
        raise ArgumentError(f"there is no benchmark {name!r}", hint=f"one of {', '.join(BENCHES)}")
    root = Path(stax.__file__).resolve().parent.parent
    if not (root / "examples" / "apps" / "bench.py").is_file():
        raise ArgumentError("benchmarks come with the source checkout, not with the package")
    command = _OWN.get(name, ("examples.apps.bench", name))
    return subprocess.call([sys.executable, "-m", *command, *options], cwd=root)
