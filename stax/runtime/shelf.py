"""What is in a folder of the cache: listed, verified, cut to a size, emptied. Others may read and write meanwhile."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stax.runtime.cache import FORMAT, KINDS, content

_LEFT_OVER_S = 3600.0


@dataclass(frozen=True, slots=True)
class Kept:
    """A file of an entry; `used_s` is when it was used last, in seconds of the system's clock."""

    path: Path
    key: str
    kind: str
    size_bytes: int
    used_s: float


def kept(folder: Path) -> Iterator[Kept]:
    """Yield the entries of a folder, in the order of their keys."""
    for path in sorted(folder.glob("*/*.entry")):
        try:
            found = path.stat()
            with path.open("rb") as file:
                head = file.readline(64).strip()
        except OSError:
            continue
        kind = head[len(FORMAT) + 1 :].decode(errors="replace") if head.startswith(FORMAT) else ""
        key = path.parent.name + path.stem
        yield Kept(path, key, kind if kind in KINDS else "damaged", found.st_size, found.st_mtime)


def damaged(folder: Path) -> list[Kept]:
    """Return the entries whose content is not what was written."""
    found: list[Kept] = []
    for one in kept(folder):
        with contextlib.suppress(OSError):
            if content(one.path.read_bytes(), one.key) is None:
                found.append(one)
    return found


def sweep(folder: Path, most_bytes: int) -> tuple[int, int]:
    """Remove what was used least recently until the rest fits, and what killed processes left; say how many and bytes.

    >>> sweep(Path("/nowhere"), 0)
    (0, 0)
    """
    entries = sorted(kept(folder), key=lambda one: one.used_s)
    total, gone, gone_bytes = sum(one.size_bytes for one in entries), 0, 0
    for one in entries:
        if total <= most_bytes:
            break
        if remove(one.path):
            total -= one.size_bytes
            gone, gone_bytes = gone + 1, gone_bytes + one.size_bytes
    now = time.time()
    for left in folder.glob("*/*.tmp"):
        with contextlib.suppress(OSError):
            if now - left.stat().st_mtime > _LEFT_OVER_S:
                left.unlink()
    return gone, gone_bytes


def remove(path: Path) -> bool:
    """Remove a file; return whether it was there and is gone."""
    try:
        path.unlink()
    except OSError:
        return False
    return True
