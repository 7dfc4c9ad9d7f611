"""Many kernels compiled at a time: all are submitted, then waited for.

What Python does, proof and lowering, is done one program after the other; what LLVM does, on threads, which it does not
need the interpreter for. Whenever a worker is free it takes the next job, so the time T of P workers is at least
max(sum / P, longest) and at most sum / P + longest, after the last job was submitted (Graham's bound).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from stax.runtime.kernel import Kernel


@dataclass(frozen=True, slots=True)
class Progress:
    """One more kernel is ready: `done` of `total`, this one after `time_s` in its worker."""

    done: int
    total: int
    name: str
    time_s: float


class Batch(list[Kernel]):
    """Kernels in the order of their programs, and how long that took.

    `front_s` went by before the last one was submitted, `times_s` are those of each job in its worker, and `took_s` is
    from the first to the last; printed, these and the bounds of `took_s`.
    """

    def __init__(
        self, kernels: Iterable[Kernel], workers: int, front_s: float, times_s: tuple[float, ...], took_s: float
    ) -> None:
        super().__init__(kernels)
        self.workers, self.front_s, self.times_s, self.took_s = workers, front_s, times_s, took_s

    @property
    def least_s(self) -> float:
        """What no order of the jobs takes less than."""
        return max(sum(self.times_s) / self.workers, max(self.times_s, default=0.0))

    @property
    def most_s(self) -> float:
        """What a worker that never waits while there is a job does not exceed."""
        return self.front_s + sum(self.times_s) / self.workers + max(self.times_s, default=0.0)

    def __str__(self) -> str:
        longest = max(self.times_s, default=0.0)
        return (
            f"{len(self)} kernels by {self.workers} workers in {self.took_s:.3f} s, between {self.least_s:.3f} and "
            f"{self.most_s:.3f} s; the last one submitted after {self.front_s:.3f} s, "
            f"code {sum(self.times_s):.3f} s in sum, {longest:.3f} s at most for one"
        )


def compile_jobs(
    programs: Iterable[Callable[[], Kernel]], workers: int, progress: Callable[[Progress], None] | None = None
) -> Batch:
    """Return the kernels that `programs` give, each with its code for dense arrays.

    The first error of any is raised when all that were begun are done.
    """
    begin = time.perf_counter()
    kernels: list[Kernel] = []
    times: dict[int, float] = {}

    def prepared(kernel: Kernel) -> float:
        start = time.perf_counter()
        kernel.prepare()
        return time.perf_counter() - start

    with ThreadPoolExecutor(workers, thread_name_prefix="stax-compile") as pool:
        jobs: dict[Future[float], int] = {}
        for make in programs:
            kernels.append(make())
            jobs[pool.submit(prepared, kernels[-1])] = len(kernels) - 1
        front_s = time.perf_counter() - begin
        for count, job in enumerate(as_completed(jobs), 1):
            times[jobs[job]] = job.result()
            if progress is not None:
                name = kernels[jobs[job]].signature.name
                progress(Progress(count, len(kernels), name, times[jobs[job]]))
    took_s = time.perf_counter() - begin
    return Batch(kernels, workers, front_s, tuple(times[k] for k in range(len(kernels))), took_s)
