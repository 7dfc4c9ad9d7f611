"""Threads and memory that kernels call: a pool of workers and aligned blocks, as LLVM text loaded once a process.

    i32 stax_par_for(ptr fn, ptr ctx, i64 n, i32 threads)   calls i32 fn(ptr ctx, i64 i) for i = 0 .. n - 1
    ptr stax_alloc(i64 bytes)                               64-byte aligned; null where there is no memory
    void stax_free(ptr)

At most `threads` threads, the caller being one, take the next index from a shared counter. The caller can finish alone,
so a core that another process holds costs nothing but its work. The first call that returns other than 0 ends the job,
and that value is returned. Jobs open for workers stand in a list; a worker takes the newest, so nested and concurrent
calls are ordinary. Workers spin shortly, then sleep; they are created when first asked for, and never end.

Blocks of LARGE bytes or more are kept when freed, CACHED bytes at most, for the next allocation that they fit: fresh
pages cost more than most passes over them.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import platform
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stax.backends.llvm.optimize import compile_text
from stax.errors import BackendError
from stax.runtime.load import keep_forever, load
from stax.target import Target

SPIN = 2000
MOST_WORKERS = 1024
LARGE = 256 << 10
CACHED = 512 << 20
CACHED_BLOCKS = 64
_ENDED = 1 << 62
_EXPORTS = ("stax_par_for", "stax_alloc", "stax_free", "stax_pool_lock", "stax_pool_unlock", "stax_pool_reset")

_lock = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The addresses that kernels import; `native` is false where Python threads do the work."""

    symbols: Mapping[str, int]
    native: bool
    kept: tuple[Any, ...] = field(repr=False)


def pool(objects: Callable[[str, Callable[[], bytes]], bytes] | None = None) -> Pool:
    """Return the pool of this process.

    `objects(text, build)` gives the object code of a text, from a cache or by `build`; only the first call uses it.
    """
    with _lock:
        if not _started:
            _started.append(_start(objects or (lambda text, build: build())))
        return _started[0]


_started: list[Pool] = []


def _start(objects: Callable[[str, Callable[[], bytes]], bytes]) -> Pool:
    if os.name != "posix":
        return python_pool()
    text = pool_text()
    try:
        made = load(objects(text, lambda: _compiled(text)), _EXPORTS)
    except BackendError:
        return python_pool()
    keep_forever(made)
    calls = {name: ctypes.CFUNCTYPE(None)(made.addresses[name]) for name in _EXPORTS[3:]}
    calls["stax_pool_reset"]()
    os.register_at_fork(
        before=calls["stax_pool_lock"],
        after_in_parent=calls["stax_pool_unlock"],
        after_in_child=calls["stax_pool_reset"],
    )
    return Pool({name: made.addresses[name] for name in _EXPORTS[:3]}, True, tuple(calls.values()))


def _compiled(text: str) -> bytes:
    return compile_text(text, Target.host())


def python_pool() -> Pool:
    """Return the same three functions done by Python threads: slow, right, and available everywhere."""
    task_type = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64)
    blocks: dict[int, np.ndarray[Any, Any]] = {}

    def par_for(fn: int, ctx: int, n: int, threads: int) -> int:
        task = task_type(fn)
        indices, errors = itertools.count(), list[int]()

        def work() -> None:
            while not errors and (i := next(indices)) < n:
                if result := task(ctx, i):
                    errors.append(result)

        helpers: list[threading.Thread] = []
        with contextlib.suppress(RuntimeError):  # the system gives no more threads: those that there are suffice
            for _ in range(min(threads, n, MOST_WORKERS) - 1):
                helper = threading.Thread(target=work)
                helper.start()
                helpers.append(helper)
        work()
        for helper in helpers:
            helper.join()
        return errors[0] if errors else 0

    def alloc(size: int) -> int | None:
        if size < 0:
            return None
        try:
            block = np.empty(size + 64, np.uint8)
        except (MemoryError, ValueError):
            return None
        address = (block.ctypes.data + 63) & ~63
        blocks[address] = block
        return address

    def free(address: int | None) -> None:
        blocks.pop(address or 0, None)

    kept = (
        ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)(par_for),
        ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(alloc),
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(free),
    )
    symbols = {
        name: ctypes.cast(call, ctypes.c_void_p).value or 0 for name, call in zip(_EXPORTS[:3], kept, strict=True)
    }
    for call in kept:
        keep_forever(call)
    return Pool(symbols, False, kept)


def pool_text() -> str:
    """Return the pool for this machine as LLVM text."""
    pause = "yield" if platform.machine().lower() in ("aarch64", "arm64") else "pause"
    return _TEXT.replace("PAUSE", f'call void asm sideeffect "{pause}", ""()')


# A job: fn 0, ctx 8, n 16, next 24, link 32, refs 40, error 44, listed 48, seats 52. A block: capacity 0, link 8.
_TEXT = f"""
@work_lock = internal global [128 x i8] zeroinitializer, align 64
@work_come = internal global [128 x i8] zeroinitializer, align 64
@work_done = internal global [128 x i8] zeroinitializer, align 64
@block_lock = internal global [128 x i8] zeroinitializer, align 64
@jobs = internal global ptr null, align 64
@workers = internal global i32 0
@sleepers = internal global i32 0
@blocks = internal global ptr null, align 64
@block_bytes = internal global i64 0
@block_count = internal global i64 0

declare i32 @pthread_mutex_lock(ptr) nounwind
declare i32 @pthread_mutex_unlock(ptr) nounwind
declare i32 @pthread_mutex_init(ptr, ptr) nounwind
declare i32 @pthread_cond_init(ptr, ptr) nounwind
declare i32 @pthread_cond_wait(ptr, ptr) nounwind
declare i32 @pthread_cond_signal(ptr) nounwind
declare i32 @pthread_cond_broadcast(ptr) nounwind
declare i32 @pthread_create(ptr, ptr, ptr, ptr) nounwind
declare i32 @pthread_detach(i64) nounwind
declare i32 @posix_memalign(ptr, i64, i64) nounwind
declare void @free(ptr) nounwind

define internal void @run(ptr %job) nounwind {{
entry:
  %fn = load ptr, ptr %job
  %ctx_at = getelementptr i8, ptr %job, i64 8
  %ctx = load ptr, ptr %ctx_at
  %n_at = getelementptr i8, ptr %job, i64 16
  %n = load i64, ptr %n_at
  %next_at = getelementptr i8, ptr %job, i64 24
  br label %loop
loop:
  %i = atomicrmw add ptr %next_at, i64 1 monotonic
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %end
body:
  %r = call i32 %fn(ptr %ctx, i64 %i)
  %bad = icmp ne i32 %r, 0
  br i1 %bad, label %failed, label %loop, !prof !0
failed:
  %error_at = getelementptr i8, ptr %job, i64 44
  %old = cmpxchg ptr %error_at, i32 0, i32 %r acq_rel monotonic
  store atomic i64 {_ENDED}, ptr %next_at monotonic, align 8
  br label %end
end:
  ret void
}}

; Take the job out of the list, if it is still there; work_lock is held.
define internal void @unlist(ptr %job) nounwind {{
entry:
  %listed_at = getelementptr i8, ptr %job, i64 48
  %listed = load i32, ptr %listed_at
  %gone = icmp eq i32 %listed, 0
  br i1 %gone, label %end, label %find
find:
  %at = phi ptr [@jobs, %entry], [%link_at, %find]
  %current = load ptr, ptr %at
  %link_at = getelementptr i8, ptr %current, i64 32
  %found = icmp eq ptr %current, %job
  br i1 %found, label %remove, label %find
remove:
  %link = load ptr, ptr %link_at
  store atomic ptr %link, ptr %at release, align 8
  store i32 0, ptr %listed_at
  br label %end
end:
  ret void
}}

define internal ptr @worker(ptr %none) nounwind {{
entry:
  br label %idle
idle:
  br label %spin
spin:
  %s = phi i32 [0, %idle], [%s1, %again]
  %top = load atomic ptr, ptr @jobs monotonic, align 8
  %some = icmp ne ptr %top, null
  br i1 %some, label %look, label %again
again:
  PAUSE
  %s1 = add i32 %s, 1
  %longer = icmp ult i32 %s1, {SPIN}
  br i1 %longer, label %spin, label %look
look:
  %l0 = call i32 @pthread_mutex_lock(ptr @work_lock)
  br label %check
check:
  %job = load ptr, ptr @jobs
  %nothing = icmp eq ptr %job, null
  br i1 %nothing, label %sleep, label %take
sleep:
  %a0 = load i32, ptr @sleepers
  %a1 = add i32 %a0, 1
  store i32 %a1, ptr @sleepers
  %w = call i32 @pthread_cond_wait(ptr @work_come, ptr @work_lock)
  %a2 = load i32, ptr @sleepers
  %a3 = sub i32 %a2, 1
  store i32 %a3, ptr @sleepers
  br label %check
take:
  %refs_at = getelementptr i8, ptr %job, i64 40
  %r0 = atomicrmw add ptr %refs_at, i32 1 monotonic
  %seats_at = getelementptr i8, ptr %job, i64 52
  %seats = load i32, ptr %seats_at
  %left = sub i32 %seats, 1
  store i32 %left, ptr %seats_at
  %full = icmp sle i32 %left, 0
  br i1 %full, label %close, label %go
close:
  call void @unlist(ptr %job)
  br label %go
go:
  %l1 = call i32 @pthread_mutex_unlock(ptr @work_lock)
  call void @run(ptr %job)
  %l2 = call i32 @pthread_mutex_lock(ptr @work_lock)
  call void @unlist(ptr %job)
  %r1 = atomicrmw sub ptr %refs_at, i32 1 acq_rel
  %last = icmp eq i32 %r1, 1
  br i1 %last, label %tell, label %leave
tell:
  %b = call i32 @pthread_cond_broadcast(ptr @work_done)
  br label %leave
leave:
  %l3 = call i32 @pthread_mutex_unlock(ptr @work_lock)
  br label %idle
}}

; Create workers until there are `want`, or the system refuses; work_lock is held.
define internal void @grow(i32 %want) nounwind {{
entry:
  %id = alloca i64
  br label %loop
loop:
  %have = load i32, ptr @workers
  %enough = icmp sge i32 %have, %want
  br i1 %enough, label %end, label %make
make:
  %r = call i32 @pthread_create(ptr %id, ptr null, ptr @worker, ptr null)
  %made = icmp eq i32 %r, 0
  br i1 %made, label %count, label %end
count:
  %thread = load i64, ptr %id
  %d = call i32 @pthread_detach(i64 %thread)
  %more = add i32 %have, 1
  store i32 %more, ptr @workers
  br label %loop
end:
  ret void
}}

define i32 @stax_par_for(ptr %fn, ptr %ctx, i64 %n, i32 %threads) nounwind {{
entry:
  %job = alloca [64 x i8], align 64
  %others = sub i32 %threads, 1
  %single = icmp slt i32 %others, 1
  %few = icmp sle i64 %n, 1
  %alone = or i1 %single, %few
  br i1 %alone, label %serial, label %parallel
serial:
  %i = phi i64 [0, %entry], [%i1, %next]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %fine
body:
  %r = call i32 %fn(ptr %ctx, i64 %i)
  %bad = icmp ne i32 %r, 0
  br i1 %bad, label %failed, label %next
next:
  %i1 = add i64 %i, 1
  br label %serial
failed:
  ret i32 %r
fine:
  ret i32 0
parallel:
  %rest = sub i64 %n, 1
  %others64 = sext i32 %others to i64
  %fewer = icmp slt i64 %rest, %others64
  %least = select i1 %fewer, i64 %rest, i64 %others64
  %over = icmp sgt i64 %least, {MOST_WORKERS}
  %want64 = select i1 %over, i64 {MOST_WORKERS}, i64 %least
  %want = trunc i64 %want64 to i32
  store ptr %fn, ptr %job
  %ctx_at = getelementptr i8, ptr %job, i64 8
  store ptr %ctx, ptr %ctx_at
  %n_at = getelementptr i8, ptr %job, i64 16
  store i64 %n, ptr %n_at
  %next_at = getelementptr i8, ptr %job, i64 24
  store i64 0, ptr %next_at
  %link_at = getelementptr i8, ptr %job, i64 32
  %refs_at = getelementptr i8, ptr %job, i64 40
  store i32 0, ptr %refs_at
  %error_at = getelementptr i8, ptr %job, i64 44
  store i32 0, ptr %error_at
  %listed_at = getelementptr i8, ptr %job, i64 48
  store i32 1, ptr %listed_at
  %seats_at = getelementptr i8, ptr %job, i64 52
  store i32 %want, ptr %seats_at
  %l0 = call i32 @pthread_mutex_lock(ptr @work_lock)
  call void @grow(i32 %want)
  %top = load ptr, ptr @jobs
  store ptr %top, ptr %link_at
  store atomic ptr %job, ptr @jobs release, align 8
  %asleep = load i32, ptr @sleepers
  %l1 = call i32 @pthread_mutex_unlock(ptr @work_lock)
  %fewer_asleep = icmp slt i32 %asleep, %want
  %calls = select i1 %fewer_asleep, i32 %asleep, i32 %want
  br label %wake
wake:
  %k = phi i32 [%calls, %parallel], [%k1, %signal]
  %asked = icmp sgt i32 %k, 0
  br i1 %asked, label %signal, label %work
signal:
  %s = call i32 @pthread_cond_signal(ptr @work_come)
  %k1 = sub i32 %k, 1
  br label %wake
work:
  call void @run(ptr %job)
  %l2 = call i32 @pthread_mutex_lock(ptr @work_lock)
  call void @unlist(ptr %job)
  %l3 = call i32 @pthread_mutex_unlock(ptr @work_lock)
  br label %spin
spin:
  %q = phi i32 [0, %work], [%q1, %again]
  %refs = load atomic i32, ptr %refs_at acquire, align 4
  %idle = icmp eq i32 %refs, 0
  br i1 %idle, label %done, label %again
again:
  PAUSE
  %q1 = add i32 %q, 1
  %longer = icmp ult i32 %q1, {SPIN}
  br i1 %longer, label %spin, label %block
block:
  %l4 = call i32 @pthread_mutex_lock(ptr @work_lock)
  br label %wait
wait:
  %refs2 = load atomic i32, ptr %refs_at acquire, align 4
  %idle2 = icmp eq i32 %refs2, 0
  br i1 %idle2, label %woken, label %sleep
sleep:
  %w = call i32 @pthread_cond_wait(ptr @work_done, ptr @work_lock)
  br label %wait
woken:
  %l5 = call i32 @pthread_mutex_unlock(ptr @work_lock)
  br label %done
done:
  %error = load atomic i32, ptr %error_at acquire, align 4
  ret i32 %error
}}

; Give all kept blocks back; block_lock is held.
define internal void @flush() nounwind {{
entry:
  br label %loop
loop:
  %block = load ptr, ptr @blocks
  %none = icmp eq ptr %block, null
  br i1 %none, label %end, label %drop
drop:
  %link_at = getelementptr i8, ptr %block, i64 8
  %link = load ptr, ptr %link_at
  store ptr %link, ptr @blocks
  call void @free(ptr %block)
  br label %loop
end:
  store i64 0, ptr @block_bytes
  store i64 0, ptr @block_count
  ret void
}}

define ptr @stax_alloc(i64 %bytes) nounwind {{
entry:
  %made_at = alloca ptr
  %absurd = icmp ugt i64 %bytes, {1 << 62}
  br i1 %absurd, label %refused, label %measure
refused:
  ret ptr null
measure:
  %more = add i64 %bytes, 127
  %capacity = and i64 %more, -64
  %most = shl i64 %capacity, 1
  %large = icmp uge i64 %capacity, {LARGE}
  br i1 %large, label %search, label %fresh
search:
  %l0 = call i32 @pthread_mutex_lock(ptr @block_lock)
  br label %look
look:
  %at = phi ptr [@blocks, %search], [%link_at, %skip]
  %block = load ptr, ptr %at
  %none = icmp eq ptr %block, null
  br i1 %none, label %missed, label %try
try:
  %link_at = getelementptr i8, ptr %block, i64 8
  %held = load i64, ptr %block
  %holds = icmp uge i64 %held, %capacity
  %close = icmp ule i64 %held, %most
  %fits = and i1 %holds, %close
  br i1 %fits, label %reuse, label %skip
skip:
  br label %look
reuse:
  %link = load ptr, ptr %link_at
  store ptr %link, ptr %at
  %bytes0 = load i64, ptr @block_bytes
  %bytes1 = sub i64 %bytes0, %held
  store i64 %bytes1, ptr @block_bytes
  %count0 = load i64, ptr @block_count
  %count1 = sub i64 %count0, 1
  store i64 %count1, ptr @block_count
  %l1 = call i32 @pthread_mutex_unlock(ptr @block_lock)
  %reused = getelementptr i8, ptr %block, i64 64
  ret ptr %reused
missed:
  %l2 = call i32 @pthread_mutex_unlock(ptr @block_lock)
  br label %fresh
fresh:
  %r = call i32 @posix_memalign(ptr %made_at, i64 64, i64 %capacity)
  %given = icmp eq i32 %r, 0
  br i1 %given, label %made, label %retry
retry:
  %l3 = call i32 @pthread_mutex_lock(ptr @block_lock)
  call void @flush()
  %l4 = call i32 @pthread_mutex_unlock(ptr @block_lock)
  %r2 = call i32 @posix_memalign(ptr %made_at, i64 64, i64 %capacity)
  %given2 = icmp eq i32 %r2, 0
  br i1 %given2, label %made, label %refused
made:
  %new = load ptr, ptr %made_at
  store i64 %capacity, ptr %new
  %used = getelementptr i8, ptr %new, i64 64
  ret ptr %used
}}

define void @stax_free(ptr %used) nounwind {{
entry:
  %none = icmp eq ptr %used, null
  br i1 %none, label %end, label %some
some:
  %block = getelementptr i8, ptr %used, i64 -64
  %capacity = load i64, ptr %block
  %small = icmp ult i64 %capacity, {LARGE}
  %huge = icmp ugt i64 %capacity, {CACHED}
  %direct = or i1 %small, %huge
  br i1 %direct, label %drop, label %keep
drop:
  call void @free(ptr %block)
  ret void
keep:
  %l0 = call i32 @pthread_mutex_lock(ptr @block_lock)
  %bytes0 = load i64, ptr @block_bytes
  %bytes1 = add i64 %bytes0, %capacity
  %over = icmp ugt i64 %bytes1, {CACHED}
  %count0 = load i64, ptr @block_count
  %many = icmp uge i64 %count0, {CACHED_BLOCKS}
  %crowded = or i1 %over, %many
  br i1 %crowded, label %clear, label %push
clear:
  call void @flush()
  br label %push
push:
  %top = load ptr, ptr @blocks
  %link_at = getelementptr i8, ptr %block, i64 8
  store ptr %top, ptr %link_at
  store ptr %block, ptr @blocks
  %bytes2 = load i64, ptr @block_bytes
  %bytes3 = add i64 %bytes2, %capacity
  store i64 %bytes3, ptr @block_bytes
  %count2 = load i64, ptr @block_count
  %count3 = add i64 %count2, 1
  store i64 %count3, ptr @block_count
  %l1 = call i32 @pthread_mutex_unlock(ptr @block_lock)
  br label %end
end:
  ret void
}}

; Around a fork: nothing is half done while it happens, and the child starts without workers.
define void @stax_pool_lock() nounwind {{
  %l0 = call i32 @pthread_mutex_lock(ptr @work_lock)
  %l1 = call i32 @pthread_mutex_lock(ptr @block_lock)
  ret void
}}

define void @stax_pool_unlock() nounwind {{
  %l0 = call i32 @pthread_mutex_unlock(ptr @block_lock)
  %l1 = call i32 @pthread_mutex_unlock(ptr @work_lock)
  ret void
}}

define void @stax_pool_reset() nounwind {{
  %l0 = call i32 @pthread_mutex_init(ptr @work_lock, ptr null)
  %l1 = call i32 @pthread_mutex_init(ptr @block_lock, ptr null)
  %l2 = call i32 @pthread_cond_init(ptr @work_come, ptr null)
  %l3 = call i32 @pthread_cond_init(ptr @work_done, ptr null)
  store ptr null, ptr @jobs
  store i32 0, ptr @workers
  store i32 0, ptr @sleepers
  ret void
}}

!0 = !{{!"branch_weights", i32 1, i32 1000000}}
"""
