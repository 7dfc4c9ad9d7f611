"""The cache under what may happen to it: `python -m tests.runtime.torture`.

Processes that start together and build one kernel; processes killed with SIGKILL at random times while they compile
into one folder; an entry of each kind with each of its bits flipped; keys under several hash seeds.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stax.runtime.cache import Store, content
from stax.runtime.shelf import damaged, kept

ROOT = Path(__file__).resolve().parents[2]
WORK = """
import os, sys, time
import numpy as np
import stax as sx
from stax.backends.llvm import build, optimize

folder, log, start, count = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
plain = optimize.compile_text

def noted(text, target, *options):
    if log:
        with open(log, "a") as file:
            file.write(f"{os.getpid()} {hash(text)}\\n")
    return plain(text, target, *options)

build.compile_text = noted
time.sleep(max(0.0, start - time.time()))
a = np.arange(60, dtype=np.float32).reshape(3, 20)
for n in range(count):
    y, x = sx.vars("y x")
    img, f = sx.Input("img", sx.float32, 2), sx.Func("f")
    f[y, x] = img[y, x] * np.float32(n) + img[y, x + 1] * np.float32(2)
    kernel = sx.compile(f, options=sx.Options(cache_dir=folder), strict_native=True)
    assert np.array_equal(kernel(a), a[:, :-1] * np.float32(n) + a[:, 1:] * np.float32(2)), n
"""


def spawn(folder: Path, log: Path | None, start: float, count: int, seed: int = 0) -> subprocess.Popen[bytes]:
    """Start a process that compiles `count` kernels into a folder and looks at their values."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-c", WORK, str(folder), "" if log is None else str(log), str(start), str(count)]
    return subprocess.Popen(command, env=env)


def together(folder: Path, processes: int) -> str:
    """Return what is wrong after processes that build one kernel at a time, each under a hash seed of its own."""
    log = folder / "log"
    log.touch()
    workers = [spawn(folder / "cache", log, time.time() + 3, 1, seed) for seed in range(processes)]
    codes = [worker.wait() for worker in workers]
    built = len(log.read_text().splitlines())
    return "" if codes == [0] * processes and built == 1 else f"{built} builds, exit codes {sorted(set(codes))}"


def killed(folder: Path, kills: int, seed: int) -> str:
    """Return what is wrong after processes were killed at random times."""
    rng, cache = random.Random(seed), folder / "cache"
    for _ in range(kills):
        worker = spawn(cache, None, 0, 1000)
        time.sleep(rng.uniform(0.2, 1.2))
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    bad = damaged(cache / "entries")
    if bad:
        return f"{len(bad)} entries are damaged"
    code = spawn(cache, None, 0, 30).wait()
    return "" if code == 0 else f"exit code {code} afterwards"


def flipped(folder: Path) -> str:
    """Return what is wrong after each bit of one entry of each kind was flipped, and one of each kind for good."""
    cache, seen = folder / "cache", dict[str, Path]()
    if spawn(cache, None, 0, 1).wait():
        return "a kernel is not compiled"
    for one in kept(cache / "entries"):
        seen.setdefault(one.kind, one.path)
    for kind, path in seen.items():
        whole, key = path.read_bytes(), path.parent.name + path.stem
        for at in range(len(whole)):
            for bit in range(8):
                if content(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :], key) is not None:
                    return f"bit {bit} of byte {at} of an entry of kind {kind} makes no difference"
        path.write_bytes(whole[:-3] + bytes([whole[-3] ^ 16]) + whole[-2:])
        if Store(cache).get(key) is not None or spawn(cache, None, 0, 1).wait():
            return f"a damaged entry of kind {kind} is used"
    print(f"  {', '.join(f'{k}: {8 * p.stat().st_size} bits' for k, p in seen.items())}")
    return ""


def main() -> int:
    """Run it; return 0 where all went well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    well = True
    for name, run in (
        (f"{options.processes} processes, one build", lambda f: together(f, options.processes)),
        (f"{options.kills} processes killed at random times", lambda f: killed(f, options.kills, options.seed)),
        ("each bit of an entry of each kind", flipped),
    ):
        with tempfile.TemporaryDirectory() as folder:
            wrong = run(Path(folder))
        well = well and not wrong
        print(f"{name}: {wrong or 'ok'}", flush=True)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
