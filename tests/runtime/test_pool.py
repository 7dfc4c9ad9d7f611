"""The thread pool and its memory, by themselves: every index once, no more threads than allowed, no hang."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stax.runtime.load import load
from stax.runtime.pool import CACHED, LARGE, Pool, pool, pool_text, python_pool
from tests.runtime.artifacts import assemble

TASK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64)
PAR_FOR = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)
ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)
FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

Run = Callable[[Callable[[int], int], int, int], int]


@pytest.fixture(params=["native", "python"])
def one(request: pytest.FixtureRequest) -> Pool:
    return pool() if request.param == "native" else python_pool()


@pytest.fixture
def run(one: Pool) -> Run:
    par_for = PAR_FOR(one.symbols["stax_par_for"])

    def call(body: Callable[[int], int], n: int, threads: int) -> int:
        task = TASK(lambda _, i: body(i))
        return par_for(ctypes.cast(task, ctypes.c_void_p), None, n, threads)

    return call


@pytest.fixture(autouse=True)
def hang() -> Iterator[None]:
    """End the test run with a traceback where it hangs, as threads inside machine code cannot be interrupted."""
    import faulthandler

    faulthandler.dump_traceback_later(60, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def test_the_pool_of_this_machine_is_native() -> None:
    assert pool().native
    assert pool() is pool()


@pytest.mark.parametrize("n", [0, 1, 2, 3, 100])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_index_runs_once(run: Run, n: int, threads: int) -> None:
    seen: list[int] = []
    assert run(lambda i: seen.append(i) or 0, n, threads) == 0
    assert sorted(seen) == list(range(n))


def test_a_negative_extent_or_thread_count_is_harmless(run: Run) -> None:
    seen: list[int] = []
    assert run(lambda i: seen.append(i) or 0, -3, 4) == 0
    assert run(lambda i: seen.append(i) or 0, 2, -1) == 0
    assert seen == [0, 1]


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_as_many_threads_as_allowed_meet_and_no_more(run: Run, threads: int) -> None:
    """The tasks wait for each other, so that they can only end if `threads` of them run at once."""
    run(lambda i: 0, 64, 8)
    barrier = threading.Barrier(threads)
    lock, now, most = threading.Lock(), [0], [0]

    def body(i: int) -> int:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        if i < threads:
            barrier.wait(20)
        time.sleep(0.001)
        with lock:
            now[0] -= 1
        return 0

    assert run(body, threads + 20, threads) == 0
    assert most[0] == threads


def test_one_thread_is_the_caller_in_order(run: Run) -> None:
    seen: list[tuple[int, int]] = []
    run(lambda i: seen.append((threading.get_ident(), i)) or 0, 10, 1)
    assert seen == [(threading.get_ident(), i) for i in range(10)]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_first_error_is_returned_and_ends_the_rest(run: Run, threads: int) -> None:
    seen: list[int] = []
    assert run(lambda i: seen.append(i) or (7 if i == 5 else 0), 100_000, threads) == 7
    assert len(seen) < 100_000


def test_jobs_within_jobs(run: Run) -> None:
    seen: list[tuple[int, int]] = []

    def outer(i: int) -> int:
        return run(lambda j: seen.append((i, j)) or 0, 20, 3)

    assert run(outer, 20, 3) == 0
    assert sorted(seen) == [(i, j) for i in range(20) for j in range(20)]


def test_an_error_within_a_job_within_a_job(run: Run) -> None:
    assert run(lambda i: run(lambda j: 9 if (i, j) == (3, 4) else 0, 10, 3), 10, 3) == 9


def test_several_threads_start_jobs(run: Run) -> None:
    totals = [0] * 6

    def collected(threads: int) -> int:
        seen: list[int] = []
        assert run(lambda i: seen.append(i) or 0, 30, threads) == 0
        return sum(seen)

    def caller(k: int) -> None:
        for _ in range(20):
            totals[k] += collected(2 + k % 3)

    callers = [threading.Thread(target=caller, args=(k,)) for k in range(6)]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert totals == [20 * sum(range(30))] * 6


BUSY = """
declare i32 @stax_par_for(ptr, ptr, i64, i32)
define internal i32 @inner(ptr %sum, i64 %i) nounwind {
  %old = atomicrmw add ptr %sum, i64 %i monotonic
  %bad = icmp eq i64 %i, 777
  %r = select i1 %bad, i32 3, i32 0
  ret i32 %r
}
define internal i32 @outer(ptr %sum, i64 %i) nounwind {
  %r = call i32 @stax_par_for(ptr @inner, ptr %sum, i64 100, i32 3)
  ret i32 %r
}
define i32 @flat(ptr %sum, i64 %n, i32 %threads) nounwind {
  %r = call i32 @stax_par_for(ptr @inner, ptr %sum, i64 %n, i32 %threads)
  ret i32 %r
}
define i32 @nested(ptr %sum, i64 %n, i32 %threads) nounwind {
  %r = call i32 @stax_par_for(ptr @outer, ptr %sum, i64 %n, i32 %threads)
  ret i32 %r
}
"""


@pytest.fixture(scope="module")
def busy() -> dict[str, Any]:
    """Jobs without Python in them, so that threads really race."""
    code = load(assemble(BUSY), ("flat", "nested"), pool().symbols)
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)
    return {"code": code} | {name: kind(address) for name, address in code.addresses.items()}


def test_thousands_of_jobs_in_machine_code(busy: dict[str, Any]) -> None:
    total = ctypes.c_int64()
    for n in range(2000):
        assert busy["flat"](ctypes.addressof(total), n % 200, 1 + n % 4) == 0
    assert total.value == 10 * sum(n * (n - 1) // 2 for n in range(200))


def test_thousands_of_failing_jobs(busy: dict[str, Any]) -> None:
    total = ctypes.c_int64()
    assert {busy["flat"](ctypes.addressof(total), 100_000, 2) for _ in range(2000)} == {3}


def test_nested_and_concurrent_jobs_in_machine_code(busy: dict[str, Any]) -> None:
    totals = [ctypes.c_int64() for _ in range(4)]

    def caller(total: ctypes.c_int64) -> None:
        for _ in range(100):
            assert busy["nested"](ctypes.addressof(total), 10, 3) == 0

    callers = [threading.Thread(target=caller, args=(t,)) for t in totals]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert [t.value for t in totals] == [100 * 10 * 4950] * 4


def test_a_child_after_a_fork_has_threads_again(run: Run) -> None:
    """Its workers did not survive, and a job must not wait for them."""
    run(lambda i: 0, 64, 4)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(20)
            barrier = threading.Barrier(3)
            seen: list[int] = []
            code = run(lambda i: seen.append(i) or (0 if barrier.wait(10) >= 0 else 1), 3, 3)
            code = code or int(sorted(seen) != [0, 1, 2])
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert run(lambda i: 0, 64, 4) == 0


def test_a_fork_while_jobs_run(busy: dict[str, Any]) -> None:
    """The child sees the pool between two steps of it, never within one."""
    stop = threading.Event()

    def work() -> None:
        total = ctypes.c_int64()
        while not stop.is_set():
            busy["nested"](ctypes.addressof(total), 5, 3)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                total = ctypes.c_int64()
                os._exit(busy["nested"](ctypes.addressof(total), 5, 3) or int(total.value != 5 * 4950))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        worker.join()


def test_a_process_ends_while_its_workers_sleep_or_run() -> None:
    """No crash at exit: the pool's code is never unmapped."""
    script = (
        "import ctypes, threading\n"
        "from tests.runtime.test_pool import BUSY\n"
        "from stax.runtime.load import load\n"
        "from tests.runtime.artifacts import assemble\n"
        "from stax.runtime.pool import pool\n"
        "code = load(assemble(BUSY), ('nested',), pool().symbols)\n"
        "kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)\n"
        "total, f = ctypes.c_int64(), kind(code.addresses['nested'])\n"
        "f(ctypes.addressof(total), 50, 4)\n"
        "threading.Thread(target=lambda: f(ctypes.addressof(total), 10**9, 4), daemon=True).start()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], timeout=60, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_memory_is_aligned_and_writable(one: Pool) -> None:
    alloc, free = ALLOC(one.symbols["stax_alloc"]), FREE(one.symbols["stax_free"])
    for size in (0, 1, 63, 64, 65, 4096, LARGE - 64, LARGE, 3 * LARGE + 1):
        address = alloc(size)
        assert address
        assert address % 64 == 0
        ctypes.memset(address, 255, size)
        free(address)
    free(None)


def test_memory_that_is_not_there_is_null(one: Pool) -> None:
    alloc = ALLOC(one.symbols["stax_alloc"])
    assert [alloc(size) for size in (-1, 1 << 62, (1 << 63) - 1, 1 << 50)] == [None] * 4


def test_a_large_block_is_used_again() -> None:
    one = pool()
    alloc, free = ALLOC(one.symbols["stax_alloc"]), FREE(one.symbols["stax_free"])
    first = alloc(5 * LARGE)
    free(first)
    again = alloc(5 * LARGE - 100)
    assert again == first
    other = alloc(5 * LARGE)
    assert other != first
    free(again)
    free(other)


def test_kept_blocks_are_bounded() -> None:
    """Blocks beyond the bound go back to the system, and so does a block above it."""
    one = pool()
    alloc, free = ALLOC(one.symbols["stax_alloc"]), FREE(one.symbols["stax_free"])
    for _ in range(2):
        blocks = [alloc(CACHED // 10) for _ in range(25)]
        assert all(blocks)
        assert len(set(blocks)) == 25
        for block in blocks:
            free(block)
    huge = alloc(CACHED + 1)
    free(huge)


def test_threads_share_the_memory() -> None:
    one = pool()
    alloc, free = ALLOC(one.symbols["stax_alloc"]), FREE(one.symbols["stax_free"])
    wrong: list[int] = []

    def work(mark: int) -> None:
        for k in range(300):
            size = LARGE + 4096 * (k % 7)
            address = alloc(size)
            ctypes.memset(address, mark, 64)
            ctypes.memset(address + size - 64, mark, 64)
            if ctypes.string_at(address, 64) != bytes([mark] * 64):
                wrong.append(k)
            free(address)

    workers = [threading.Thread(target=work, args=(k + 1,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_the_text_is_the_same_each_time() -> None:
    """Its object code is cached by it."""
    assert pool_text() == pool_text()
