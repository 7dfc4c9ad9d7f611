"""Threads: the same bits with any number of them, several callers at once, and life after a fork."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import stax as sx

Array = np.ndarray[Any, Any]
y, x = sx.vars("y x")


def heavy() -> sx.Kernel:
    """Two stages in parallel strips, floats, and a sum a row."""
    a, bx, by, rows = sx.Input("a", sx.float32, 2), sx.Func("bx"), sx.Func("by"), sx.Func("rows")
    bx[y, x] = sx.sqrt(a[y, x] + a[y, x + 1] * 0.3)
    by[y, x] = bx[y, x] - bx[y + 1, x] * 0.7
    r = sx.RDom("r", x=a.shape[1])
    rows[y] = np.float32(0)
    rows[y] += a[y, r] * 1.1
    s = sx.Schedule((by, rows))
    s[by].split(y, "yo", "yi", 4).parallel("yo").vectorize(x, 8)
    s[bx].compute_at(by, "yo").vectorize(x, 8)
    s[rows].parallel(y, 4).update(0).parallel(y, 2)
    return sx.compile((by, rows), s, strict_native=True)


def image(seed: int, h: int = 67, w: int = 131) -> Array:
    return np.random.default_rng(seed).random((h, w), np.float32)


def bits(found: tuple[Array, ...]) -> bytes:
    return b"".join(part.tobytes() for part in found)


def test_the_same_bits_with_1_2_and_5_threads() -> None:
    kernel = heavy()
    for seed in range(5):
        a = image(seed, 67 + seed, 131 + seed)
        one = bits(kernel(a, threads=1))
        for threads in (1, 2, 3, 5, 64, 10_000):
            assert bits(kernel(a, threads=threads)) == one, threads


def test_8_python_threads_on_one_kernel() -> None:
    kernel = heavy()
    images = [image(k, 60 + k, 100 + 3 * k) for k in range(8)]
    wanted = [bits(kernel(a, threads=1)) for a in images]
    wrong: list[Any] = []
    together = threading.Barrier(8)

    def work(k: int) -> None:
        together.wait(30)
        for n in range(40):
            try:
                if bits(kernel(images[k], threads=1 + (n + k) % 5)) != wanted[k]:
                    wrong.append((k, n))
            except BaseException as error:
                wrong.append(error)

    workers = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not any(worker.is_alive() for worker in workers)
    assert wrong == []


def test_8_python_threads_compile_and_call_for_the_first_time_at_once() -> None:
    """The pool, the code and its versions are each made once, whoever comes first."""
    kernel = heavy()
    wrong: list[Any] = []
    together = threading.Barrier(8)

    def work(k: int) -> None:
        a = image(k)
        together.wait(30)
        try:
            f, b = sx.Func("f"), sx.Input("b", sx.float32, 2)
            f[y, x] = b[y, x] * (k + 2)
            mine = sx.compile(f, options=sx.Options(cache=False, strict_native=True))
            if not (mine(a) == a * np.float32(k + 2)).all():
                wrong.append(k)
            kernel(np.asfortranarray(a) if k % 2 else a)
        except BaseException as error:
            wrong.append(error)

    workers = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert not any(worker.is_alive() for worker in workers)
    assert wrong == []


def test_others_run_while_a_kernel_does() -> None:
    """The interpreter's lock is not held: a Python thread counts while one call takes its time."""
    a, f = sx.Input("a", sx.float32, 1), sx.Func("f")
    e = a[x]
    for _ in range(300):
        e = sx.sqrt(e) + 1
    f[x] = e
    kernel = sx.compile(f, strict_native=True)
    v = np.ones(1_000_000, np.float32)
    kernel(v[:10])
    seen: list[float] = []
    done = threading.Event()

    def count() -> None:
        while not done.is_set():
            seen.append(time.perf_counter())
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    start = time.perf_counter()
    kernel(v, threads=1)
    end = time.perf_counter()
    done.set()
    counter.join(10)
    if end - start > 0.05:
        assert sum(start < t < end for t in seen) >= 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_after_use() -> None:
    """The child has no threads of the pool, makes its own, and both give the same bits."""
    kernel = heavy()
    a = image(3)
    wanted = bits(kernel(a, threads=3))
    for _ in range(3):
        child = os.fork()
        if child == 0:
            try:
                good = all(bits(kernel(a, threads=n)) == wanted for n in (3, 1, 2))
                f, b = sx.Func("f"), sx.Input("b", sx.float32, 2)
                f[y, x] = b[y, x] + 1
                good &= bool((sx.compile(f, strict_native=True)(a) == a + 1).all())
                os._exit(0 if good else 3)
            except BaseException:
                os._exit(4)
        limit = time.monotonic() + 60
        while (found := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < limit:
            assert bits(kernel(a, threads=2)) == wanted
            time.sleep(0.01)
        if found[0] == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert found == (child, 0)
    assert bits(kernel(a, threads=5)) == wanted


def test_multiprocessing_by_fork_and_the_end_of_a_process_while_threads_wait() -> None:
    """A process that used the pool ends at once and without a word."""
    program = """
import multiprocessing, sys
import numpy as np, stax as sx
y, x = sx.vars("y x")
a, f = sx.Input("a", sx.int32, 2), sx.Func("f")
f[y, x] = a[y, x] * 3
s = sx.Schedule(f)
s[f].parallel(y)
k = sx.compile(f, s, strict_native=True)
v = np.arange(600, dtype=np.int32).reshape(30, 20)
def work(n):
    return int(k(v + n, threads=2).sum())
if __name__ == "__main__":
    k(v, threads=3)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(work, range(6)) == [int(((v + n) * 3).sum()) for n in range(6)]
    print("right")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env={**os.environ}, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "right\n", "")


def test_an_interrupt_leaves_the_kernel_usable() -> None:
    kernel = heavy()
    a = image(1)
    wanted = bits(kernel(a))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a job that a shell put behind

    def raise_one() -> None:
        time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    interrupter = threading.Thread(target=raise_one)
    interrupter.start()
    try:
        limit = time.monotonic() + 10
        while time.monotonic() < limit:
            kernel(a, threads=2)
        raise AssertionError("no interrupt came")
    except KeyboardInterrupt:
        pass
    finally:
        interrupter.join()
        signal.signal(signal.SIGINT, before)
    assert bits(kernel(a, threads=2)) == wanted
