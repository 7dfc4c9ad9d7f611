"""A kernel whose calls of the runtime are noted: parallel loops, how often they run, and what is allocated."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import stax as sx
from stax.runtime.kernel import Kernel
from stax.runtime.pool import pool

PAR_FOR = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)
TASK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64)
ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)


@dataclass
class Seen:
    """The extents of the parallel loops that ran, the threads that ran their bodies, the bytes of each allocation."""

    loops: list[int] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    bytes: list[int] = field(default_factory=list)
    addresses: list[int] = field(default_factory=list)


def watched(kernel: sx.Kernel) -> tuple[Callable[..., Any], Seen]:
    """Return `kernel` run over a runtime that notes what is asked of it, and the notes."""
    seen, native = Seen(), pool().symbols
    alloc = ALLOC(native["stax_alloc"])

    def par_for(fn: int, ctx: int, n: int, threads: int) -> int:
        task, left = TASK(fn), list(range(n))
        seen.loops.append(n)

        def work() -> None:
            seen.threads.add(threading.get_ident())
            while left:
                task(ctx, left.pop(0))

        helper = threading.Thread(target=work)
        if threads > 1:
            helper.start()
            helper.join()
        work()
        return 0

    def noted(size: int) -> int | None:
        seen.bytes.append(size)
        seen.addresses.append(alloc(size))
        return seen.addresses[-1]

    calls = PAR_FOR(par_for), ALLOC(noted)
    par, noting = (ctypes.cast(c, ctypes.c_void_p).value or 0 for c in calls)
    addresses: Mapping[str, int] = {**native, "stax_par_for": par, "stax_alloc": noting}
    made = Kernel(replace(kernel._build, symbols=lambda: addresses))

    def run(*args: Any, keep: object = calls, **named: Any) -> Any:
        return made(*args, **named)

    return run, seen
