"""The machine that a schedule is written for, as far as choices depend on it: registers, caches, rates.

Rates are those of one core of a server of the 2020s; only their ratios matter, and only roughly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from stax.target import Target, caches, cores


@dataclass(frozen=True, slots=True)
class Machine:
    """Vector registers, caches of a core in bytes, and what takes how long, in nanoseconds and bytes a nanosecond.

    `masks_bytes` is the size of the smallest type that masks of lanes cost nothing for.
    """

    vector_bytes: int = 32
    vector_registers: int = 16
    masks_bytes: int = 4
    cores: int = 2
    l1_bytes: int = 32 << 10
    l2_bytes: int = 512 << 10
    l3_bytes: int = 16 << 20
    op_ns: float = 0.15
    l1_rate: float = 100.0
    l2_rate: float = 50.0
    l3_rate: float = 20.0
    memory_rate: float = 12.0
    together_rate: float = 22.0
    loop_ns: float = 2.0
    task_ns: float = 1500.0

    @staticmethod
    def of(target: Target) -> Machine:
        """Return the machine that `target` describes."""
        wide = target.vector_bytes == 64
        return Machine(
            target.vector_bytes, 32 if wide else 16, 1 if wide else 4, target.cores,
            target.l1_bytes, target.l2_bytes, target.l3_bytes,
        )  # fmt: skip

    @staticmethod
    def host() -> Machine:
        """Return this machine, from what its operating system says: nothing is loaded for it."""
        return _host(cores())

    def lanes(self, size_bytes: int) -> int:
        """Return how many values of `size_bytes` a register holds."""
        return max(1, self.vector_bytes // size_bytes)


@cache
def _host(count: int) -> Machine:
    found = caches()
    try:
        flags = set(Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0].split())
    except OSError:
        flags = set[str]()
    wide = {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= flags
    plain = Machine()
    return Machine(
        64 if wide else 32, 32 if wide else 16, 1 if wide else 4, count,
        found.get(1, plain.l1_bytes), found.get(2, plain.l2_bytes), found.get(3, plain.l3_bytes),
    )  # fmt: skip
