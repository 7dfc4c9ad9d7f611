"""Programs run in processes of their own, so that one that dies or hangs is a line of the report."""

from __future__ import annotations

import multiprocessing as mp
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

Job = Any


@dataclass(slots=True)
class _Worker:
    process: Any
    pipe: Connection
    job: Job = None
    since: float = 0.0
    spent: float = 0.0


@dataclass(frozen=True, slots=True)
class Died:
    """A job whose process ended (`signal`, or the code it left with), or took longer than it may."""

    job: Job
    why: str


def run_all(
    work: Callable[[Job], Any], jobs: Iterable[Job], processes: int, most_s: float = 60.0, setup: Any = None
) -> Iterator[Any]:
    """Yield `work(job)` for all jobs, in any order, or Died.

    A job may take `most_s` of processor time, and ten times that of waiting, since machines are shared.
    """
    context = mp.get_context("spawn")
    pending = iter(jobs)
    workers: list[_Worker] = []
    done = False

    def start() -> _Worker:
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, work, setup), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def give(worker: _Worker) -> bool:
        nonlocal done
        job = None if done else next(pending, None)
        if job is None:
            done = True
            return False
        worker.job, worker.since, worker.spent = job, time.monotonic(), _spent_s(worker.process.pid)
        worker.pipe.send(job)
        return True

    try:
        for _ in range(processes):
            worker = start()
            workers.append(worker)
            give(worker)
        while any(w.job is not None for w in workers):
            ready = wait([w.pipe for w in workers if w.job is not None], timeout=1.0)
            for k, worker in enumerate(workers):
                if worker.job is None:
                    continue
                late = worker.pipe not in ready and (
                    time.monotonic() - worker.since > 10 * most_s
                    or _spent_s(worker.process.pid) - worker.spent > most_s
                )
                if worker.pipe not in ready and not late:
                    continue
                job, worker.job = worker.job, None
                try:
                    if late:
                        worker.process.terminate()
                        raise EOFError
                    yield worker.pipe.recv()
                except (EOFError, ConnectionResetError):
                    worker.process.join(5)
                    code = worker.process.exitcode
                    yield Died(job, f"took more than {most_s:.0f} s" if late else f"process ended with {code}")
                    worker.pipe.close()
                    worker = workers[k] = start()
                give(worker)
    finally:
        for worker in workers:
            worker.pipe.close()
            worker.process.join(1)
            if worker.process.is_alive():
                worker.process.terminate()


def _spent_s(pid: int) -> float:
    """Return the processor time that a process has taken; 0 where that cannot be known."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


def _serve(pipe: Connection, work: Callable[[Job], Any], setup: Any) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    if setup is not None:
        function, argument = setup
        function(argument)
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        pipe.send(work(job))
