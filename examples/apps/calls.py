"""What a call costs, and what a process costs before its first result.

python -m examples.apps.calls call      a checked call of 8 elements, in ns
python -m examples.apps.calls start     CPU time from `import stax` to a first result, in fresh processes
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
MOST_NS = 150.0
MOST_S = {"cold": 1.0, "warm": 0.25}
PROGRAM = """
import json, sys, time
begin = time.process_time()
import stax as sx
y, x = sx.vars("y x")
img = sx.Input("img", sx.uint16, 2)
rows, blur = sx.Func("rows"), sx.Func("blur")
rows[y, x] = (img[y, x] + img[y, x + 1] + img[y, x + 2]) // 3
blur[y, x] = (rows[y, x] + rows[y + 1, x] + rows[y + 2, x]) // 3
kernel = sx.compile(blur, options=sx.Options(cache_dir=sys.argv[1]), strict_native=True)
import numpy as np
out = kernel(np.arange(66 * 98, dtype=np.uint16).reshape(66, 98))
took = time.process_time() - begin
assert out.shape == (64, 96)
print(json.dumps([took, [m for m in ("islpy", "sympy", "triton", "matplotlib") if m in sys.modules]]))
"""


def call(options: argparse.Namespace) -> bool:
    """Time calls whose arguments are checked, beside NumPy's of the same values."""
    import stax as sx

    x, a, f = sx.Var("x"), sx.Input("a", sx.float32, 1), sx.Func("f")
    f[x] = a[x] * 2 + 1
    kernel = sx.compile(f, strict_native=True)
    v = np.arange(8, dtype=np.float32)
    out = np.empty_like(v)
    for _ in range(3):
        kernel(v, out=out)
    names = {"kernel": kernel, "v": v, "out": out, "bound": kernel.bind(v, out=out), "entry": kernel.entry}
    names |= {"two": np.float32(2), "one": np.float32(1)}
    took: dict[str, float] = {}
    for text in ("kernel(v, out=out)", "kernel(v)", "entry(v, out=out)", "bound()", "v * two + one", "len(v)"):
        times = timeit.repeat(
            text, timer=time.process_time, globals=names, number=options.number, repeat=options.repeat
        )
        took[text] = statistics.median(times) / options.number * 1e9
        print(f"{text:20}  {took[text]:7.0f} ns")
    good = took["kernel(v, out=out)"] <= MOST_NS
    print(f"kernel(v, out=out) of 8 elements: at most {MOST_NS:.0f} ns: {'ok' if good else 'MISSED'}")
    return good


def start(options: argparse.Namespace) -> bool:
    """Time fresh processes with an empty cache, and with what such a process left there."""
    well = True
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env |= {"PYTHONPYCACHEPREFIX": f"{folder}/pyc", "PYTHONPATH": str(ROOT)}

        def run(cache: str) -> tuple[float, list[str]]:
            command = [sys.executable, "-c", PROGRAM, f"{folder}/{cache}"]
            done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder, env=env)
            took, heavy = json.loads(done.stdout)
            return took, heavy

        run("first")
        for kind, most in MOST_S.items():
            found = [run(f"cold{k}" if kind == "cold" else "first") for k in range(options.repeat)]
            took = statistics.median(t for t, _ in found)
            heavy = sorted({name for _, names in found for name in names})
            good = took <= most and not heavy
            well = well and good
            loaded = f", and loads {', '.join(heavy)}" if heavy else ""
            print(f"{kind}: {took:.3f} s CPU{loaded}; at most {most} s: {'ok' if good else 'MISSED'}")
    return well


def main() -> int:
    """Run one of them; return 0 where its limits are kept."""
    parser = argparse.ArgumentParser(prog="calls", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("name", choices=["call", "start"])
    parser.add_argument("--repeat", type=int, default=9, help="how often each is timed")
    parser.add_argument("--number", type=int, default=50_000, help="calls of one time")
    options = parser.parse_args()
    return 0 if {"call": call, "start": start}[options.name](options) else 1


if __name__ == "__main__":
    sys.exit(main())
