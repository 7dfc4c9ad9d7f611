"""Why one is faster than another: the ratio of times as a ratio of bytes times a ratio of rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stax.errors import ArgumentError, UnsupportedError
from stax.measure.bench import Bench, Interval, bench
from stax.measure.text import bytes_text, digits, table, time_text
from stax.measure.traffic import traffic
from stax.runtime.arguments import Arguments
from stax.runtime.kernel import Kernel

OURS, OTHER = "kernel", "baseline"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A kernel beside a baseline: `moved_bytes` and `baseline_bytes` are by the model of `sx.traffic`, times measured.

    `speedup` is `rho * beta`: what comes of moving less, and what comes of moving it faster. Printed, a table.
    """

    name: str
    moved_bytes: int
    baseline_bytes: int
    times: Bench

    @property
    def time_s(self) -> float:
        """The median time of the kernel."""
        return self.times.timing(OURS).median_s

    @property
    def baseline_s(self) -> float:
        """The median time of the baseline."""
        return self.times.timing(OTHER).median_s

    @property
    def speedup(self) -> float:
        """How many times as fast the kernel is, by medians."""
        return self.baseline_s / self.time_s

    @property
    def rho(self) -> float:
        """How many times as many bytes the baseline moves."""
        return self.baseline_bytes / self.moved_bytes

    @property
    def beta(self) -> float:
        """How many times as many bytes a second the kernel moves."""
        return self.rate / self.baseline_rate

    @property
    def rate(self) -> float:
        """Bytes a second that the kernel moves."""
        return self.moved_bytes / self.time_s

    @property
    def baseline_rate(self) -> float:
        """Bytes a second that the baseline moves."""
        return self.baseline_bytes / self.baseline_s

    @property
    def ratio(self) -> Interval:
        """How many times as fast the kernel is, by the ratios within rounds."""
        return self.times.ratio(OTHER, OURS)

    def __str__(self) -> str:
        rows = [("", "median", "between", "moved", "GB/s")]
        moved = (self.moved_bytes, self.rate), (self.baseline_bytes, self.baseline_rate)
        for timing, (size, rate) in zip(self.times.timings, moved, strict=True):
            found = timing.interval
            between = f"{time_text(found.low)} .. {time_text(found.high)}"
            rows.append((timing.name, time_text(found.median), between, bytes_text(size), f"{rate / 1e9:.1f}"))
        return "\n".join([*table(rows), "", tabulate([self])])


def tabulate(found: Sequence[Comparison], bandwidth: float | None = None) -> str:
    """Return a table with a row for each comparison, in which S = rho * beta to the digits shown.

    bandwidth: bytes a second that the machine can move, of which both rates are then said to be a part.
    """
    rate = "GB/s" if bandwidth is None else "of B"
    rows = [("", "kernel", "baseline", rate, rate, "S", "rho", "beta", "S between")]
    for one in found:
        between = f"{digits(one.ratio.low, 3)} .. {digits(one.ratio.high, 3)}"
        times = (time_text(one.time_s), time_text(one.baseline_s))
        rates = (_rate(one.rate, bandwidth), _rate(one.baseline_rate, bandwidth))
        split = (digits(one.speedup, 3), digits(one.rho, 5), digits(one.beta, 5))
        rows.append((one.name, *times, *rates, *split, between))
    return "\n".join(table(rows))


def _rate(rate: float, bandwidth: float | None) -> str:
    return f"{rate / 1e9:.1f}" if bandwidth is None else f"{rate / bandwidth:.0%}"


def compare(
    kernel: Kernel,
    baseline: Kernel | Callable[..., Any],
    /,
    *arrays: Any,
    rounds: int = 15,
    warmup: int = 3,
    threads: int | None = None,
    shape: Any = None,
    baseline_bytes: int | None = None,
    name: str | None = None,
    **named: Any,
) -> Comparison:
    """Return how `kernel` and `baseline` compare on these arguments, timed in turns, and why.

    baseline: another kernel of the same arguments, or a callable, which gets `arrays` and `named` as they are. Kernels
    write into the same arrays at each call. baseline_bytes: what the baseline moves; without it, what a kernel's own
    schedule moves, and a callable is taken to compute the Funcs of `kernel` one by one.

    The speed-up S is the product of rho, a ratio of bytes that is known before anything runs, and beta, a ratio of
    bytes a second. Method: proposition 13.3 of "Stax (5): Caching and Measurement".

    >>> import numpy as np, stax as sx
    >>> x, a, f, g = sx.Var("x"), sx.Input("a", sx.float32, 1), sx.Func("f"), sx.Func("g")
    >>> f[x] = a[x] * 2
    >>> g[x] = f[x] + 1
    >>> v = np.zeros(1000, np.float32)
    >>> found = sx.compare(sx.compile(g), lambda a: a * 2 + 1, v, rounds=5)
    >>> found.rho, abs(found.speedup / (found.rho * found.beta) - 1) < 1e-12
    (2.0, True)
    """
    if not isinstance(kernel, Kernel):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(f"{kernel!r:.60} is no kernel", hint="sx.compare(sx.compile(f), baseline, array)")

    def bound(k: Kernel) -> Callable[[], Any]:
        return k.bind(*arrays, threads=threads, shape=shape, **named)

    ours = bound(kernel)
    other = bound(baseline) if isinstance(baseline, Kernel) else lambda: baseline(*arrays, **named)
    moved, apart = _bytes(kernel, arrays, named, shape)
    if baseline_bytes is None:
        baseline_bytes = _bytes(baseline, arrays, named, shape)[0] if isinstance(baseline, Kernel) else apart
    if min(moved, baseline_bytes) < 1:
        raise ArgumentError("nothing is moved, so that there are no rates to compare")
    times = bench(ours, other, rounds=rounds, warmup=warmup, names=(OURS, OTHER))
    return Comparison(name or kernel.signature.name, moved, baseline_bytes, times)


def _bytes(kernel: Kernel, arrays: Sequence[Any], named: dict[str, Any], shape: Any) -> tuple[int, int]:
    """Return what `kernel` moves, called with these arguments, and what its Funcs would move one by one."""
    taken = kernel.signature
    bound = Arguments(taken).bind(tuple(arrays), named, None, shape)
    known: dict[str, Any] = {one.name: bound.sizes[one.name] for one in (*taken.inputs, *taken.outputs)}
    known |= {s.name: bound.scalars[s.name] for s in taken.scalars}
    found = traffic(kernel, **known)
    if found.bytes_moved is None or found.bytes_apart is None:
        raise UnsupportedError(f"what {taken.name} moves depends on data: {found.moved} bytes")
    return found.bytes_moved, found.bytes_apart
