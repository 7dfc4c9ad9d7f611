"""What the machine can do: bytes a second from memory, operations a second, and where the two lines meet."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from stax.compiler import auto_schedule, cache_folder, host, threads_of
from stax.compiler import compile as compile_
from stax.dtypes import float32
from stax.lang.func import Func
from stax.lang.inputs import Input
from stax.lang.reduce import sum as sum_
from stax.lang.var import RDom, Var
from stax.measure.bench import bench
from stax.measure.text import table
from stax.options import Options
from stax.runtime.cache import Store, digest
from stax.target import Target

COLUMNS, LEAST_BYTES, TIMES_L3 = 2048, 64 << 20, 4
ORDER = 1024
PAUSE_S = 0.3
MOST_APART = 0.1
_FORMAT = "roofline 3"


@dataclass(frozen=True, slots=True)
class Rate:
    """The best rates of two runs, in units a second: bytes, or operations."""

    first: float
    second: float

    @property
    def best(self) -> float:
        """The better of both: what else happens only slows."""
        return max(self.first, self.second)

    @property
    def is_steady(self) -> bool:
        """Whether the runs differ by less than a tenth."""
        return 1 - min(self.first, self.second) / self.best < MOST_APART


@dataclass(frozen=True, slots=True)
class Roofline:
    """What `sx.roofline` found of `threads` threads; printed, a table.

    `read` is the rate at which rows that are in no cache are summed, `copy` that of a copy, a read and a write counted
    for each byte, and `stream` that of one whose stores go past the caches; `work` the operations of a product of
    float32 matrices, by stax or NumPy, whichever is faster.
    """

    cpu: str
    threads: int
    size_bytes: int
    read: Rate
    copy: Rate
    stream: Rate
    work: Rate

    @property
    def bandwidth(self) -> float:
        """B, bytes a second: the best of the three."""
        return max(self.read.best, self.copy.best, self.stream.best)

    @property
    def peak(self) -> float:
        """P, operations a second."""
        return self.work.best

    @property
    def ridge(self) -> float:
        """P / B: programs of fewer operations a byte wait for memory."""
        return self.peak / self.bandwidth

    @property
    def write_factor(self) -> float:
        """What a byte that is written costs beside one that is read; 2 where a line is read before it is written."""
        return 2 * self.read.best / self.copy.best - 1

    @property
    def is_steady(self) -> bool:
        """Whether no two runs differ by a tenth or more."""
        return all(rate.is_steady for rate in (self.read, self.copy, self.stream, self.work))

    def __str__(self) -> str:
        rows: list[list[str]] = [[f"{self.cpu}, {self.threads} threads", "best", "run 1", "run 2"]]
        notes = [""]
        shown = {
            "memory read, GB/s": self.read,
            "copied, GB/s": self.copy,
            "copied past the caches, GB/s": self.stream,
            "products, GFLOP/s": self.work,
        }
        for name, rate in shown.items():
            rows.append([name, *(f"{r / 1e9:.1f}" for r in (rate.best, rate.first, rate.second))])
            notes.append("" if rate.is_steady else "  UNSTEADY: the runs differ by a tenth or more")
        lines = [line + note for line, note in zip(table(rows), notes, strict=True)]
        best = (
            f"B {self.bandwidth / 1e9:.1f} GB/s, P {self.peak / 1e9:.1f} GFLOP/s, ridge P / B {self.ridge:.1f} FLOP/B"
        )
        return "\n".join([*lines, f"{best}; a byte written costs {self.write_factor:.2f} that are read"])


def roofline(*, threads: int | None = None, again: bool = False, rounds: int = 7) -> Roofline:
    """Return the bandwidth B, the peak P and their ridge of this machine.

    They are measured once, as the fastest of `rounds` readings in each of two runs, and kept in the cache folder, by
    how many rounds there were; `again` measures anew. Runs that differ by a tenth or more are said to be unsteady.
    threads: how many may work.

    >>> import stax as sx
    >>> machine = sx.roofline(rounds=1)
    >>> machine.ridge == machine.peak / machine.bandwidth
    True
    """
    machine, count = host(), threads or threads_of(host())
    store = Store(cache_folder(Options()))
    key = digest(_FORMAT, machine.cpu, machine.triple, machine.features, str(count), str(rounds))
    if not again:
        kept = store.get(key)
        if kept is not None:
            return _read(kept)
    found = measured(machine, count, rounds, max(LEAST_BYTES, TIMES_L3 * machine.l3_bytes), ORDER)
    store.put(key, json.dumps(asdict(found)).encode(), "machine")
    return found


def measured(machine: Target, threads: int, rounds: int, size_bytes: int, order: int) -> Roofline:
    """Return the roofline by arrays of `size_bytes` bytes and matrices of `order` rows."""
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((max(1, size_bytes // 4 // COLUMNS), COLUMNS), dtype=np.float32)
    square = rng.standard_normal((order, order), dtype=np.float32)
    sums = _bound(_row_sums(), threads, a=rows)
    copies = _bound(_copy(), threads, automatic=False, a=rows)
    streams = _bound(_copy(), threads, a=rows)
    products = _bound(_product(), threads, a=square, b=square)
    return Roofline(
        machine.cpu,
        threads,
        rows.nbytes,
        read=_rate(rows.nbytes, rounds, sums),
        copy=_rate(2 * rows.nbytes, rounds, copies),
        stream=_rate(2 * rows.nbytes, rounds, streams),
        work=_rate(2 * order**3, rounds, products, lambda: square @ square),
    )


def _rate(amount: int, rounds: int, *calls: Callable[[], Any]) -> Rate:
    """Return the rates of two runs at which the fastest of `calls` does `amount`.

    They take no turns: threads of NumPy's products go on spinning after each, and would slow those of stax.
    """
    best: list[float] = []
    for _ in range(2):
        times: list[float] = []
        for call in calls:
            time.sleep(PAUSE_S)
            times.append(bench(call, rounds=rounds).timings[0].least_s)
        best.append(amount / min(times))
    return Rate(*best)


def _bound(func: Func, threads: int, automatic: bool = True, **arrays: Any) -> Callable[[], Any]:
    """Return `func` on these arrays, by its automatic schedule, which stores past the caches, or the default one."""
    schedule = auto_schedule(func, arrays=arrays) if automatic else None
    return compile_(func, schedule, strict_native=True).bind(threads=threads, **arrays)


def _row_sums() -> Func:
    y, a, total = Var("y"), Input("a", float32, 2), Func("total")
    k = RDom("k", k=a.shape[1])
    total[y] = sum_(a[y, k], k)
    return total


def _copy() -> Func:
    y, x = Var("y"), Var("x")
    a, same = Input("a", float32, 2), Func("same")
    same[y, x] = a[y, x]
    return same


def _product() -> Func:
    i, j = Var("i"), Var("j")
    a, b, c = Input("a", float32, 2), Input("b", float32, 2), Func("c")
    k = RDom("k", k=a.shape[1])
    c[i, j] = sum_(a[i, k] * b[k, j], k)
    return c


def _read(kept: bytes) -> Roofline:
    found: dict[str, Any] = json.loads(kept)
    read, copy, stream, work = (Rate(**found.pop(name)) for name in ("read", "copy", "stream", "work"))
    return Roofline(**found, read=read, copy=copy, stream=stream, work=work)
