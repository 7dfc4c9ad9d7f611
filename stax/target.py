"""The machine that code is made for: a value, so that code for another machine can be made and keyed."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from stax.dtypes import DType

CUDA = "cuda"
"""The target that is NVIDIA's GPUs: which of them, arrays say at the call."""

GPU_SHARED_BYTES = 227 << 10
"""How much shared memory a program has on an H100 or H200."""

_CPU = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True, slots=True)
class Target:
    """A processor. `features` is LLVM's list, such as "+avx2,-avx512f"; `cores` may run at once; caches in bytes.

    >>> t = Target("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,+fma,+f16c", 32, 8)
    >>> from stax import dtypes
    >>> t.lanes(dtypes.float32), t.has("f16c"), t.has("avx512f")
    (8, True, False)
    """

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    cores: int
    l1_bytes: int = 32 << 10
    l2_bytes: int = 512 << 10
    l3_bytes: int = 8 << 20

    @staticmethod
    def host() -> Target:
        """Return this machine, with the cores that this process may use at once."""
        return _host(cores())

    @property
    def is_x86(self) -> bool:
        """Whether this is an x86 of 64 bits."""
        return self.triple.startswith("x86_64")

    def has(self, feature: str) -> bool:
        """Return whether LLVM's `feature` is there."""
        return f"+{feature}" in self.features.split(",")

    def lanes(self, dtype: DType) -> int:
        """Return how many values of `dtype` a vector register holds."""
        return max(1, self.vector_bytes // dtype.size_bytes)


def cores() -> int:
    """Return how many cores this process may use at once, by affinity and by the quota of its control group."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota()
    return allowed if quota is None else max(1, min(allowed, -int(-quota // 1)))


def _quota() -> float | None:
    """Return the cores that control groups grant: the least of this one's and those around it."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    found: list[float] = []
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if kinds and "cpu" not in kinds.split(","):
            continue
        root = Path("/sys/fs/cgroup") if not kinds else Path("/sys/fs/cgroup") / "cpu"
        place = root / path.lstrip("/")
        for folder in (place, *place.parents):
            if folder != root and root not in folder.parents:
                break
            found += _grant(folder)
    return min(found, default=None)


def _grant(folder: Path) -> list[float]:
    try:
        if (folder / "cpu.max").exists():
            limit, period = (folder / "cpu.max").read_text().split()
        elif (folder / "cpu.cfs_quota_us").exists():
            limit = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
        else:
            return []
        return [int(limit) / int(period)] if limit not in ("max", "-1") else []
    except (OSError, ValueError, ZeroDivisionError):
        return []


@cache
def _host(cores: int) -> Target:
    try:
        from llvmlite import binding
    except ImportError:  # then programs are interpreted
        return Target(f"{platform.machine()}-unknown-{platform.system().lower()}", "generic", "", 16, cores)
    binding.initialize_native_target()
    triple = binding.get_process_triple()
    cpu, features = binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    found = caches()
    return Target(
        triple, cpu, features, _vector_bytes(triple, features), cores,
        found.get(1, 32 << 10), found.get(2, 512 << 10), found.get(3, 8 << 20),
    )  # fmt: skip


def _vector_bytes(triple: str, features: str) -> int:
    have = set(features.split(","))
    if not triple.startswith("x86_64"):
        return 16
    if {"+avx512f", "+avx512bw", "+avx512vl", "+avx512dq"} <= have:
        return 64
    return 32 if "+avx2" in have else 16


def caches() -> dict[int, int]:
    """Return the bytes of the caches of a core, by their level."""
    sizes: dict[int, int] = {}
    for folder in sorted(_CPU.glob("index*")):
        try:
            kind = (folder / "type").read_text().strip()
            level, size = int((folder / "level").read_text()), (folder / "size").read_text().strip()
            if kind != "Instruction":
                sizes[level] = int(size.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(size[-1], 0)
        except (OSError, ValueError):
            continue
    return sizes
