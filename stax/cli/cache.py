"""`stax cache`: what is kept on disk, for people."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from stax.compiler import cache_folder
from stax.errors import ArgumentError
from stax.options import Options
from stax.runtime.cache import KINDS, MOST_BYTES, Store, digest
from stax.runtime.shelf import damaged, kept, remove, sweep


def tell(folder: Path | None) -> None:
    """Print where the cache is and what is in it."""
    store = _store(folder)
    place = _place(store)
    store.put(digest("test"), b"test")
    remove(place / digest("test")[:2] / f"{digest('test')[2:]}.entry")
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"folder    {place.parent}", markup=False)
    console.print(f"state     {store.problem or 'private, and can be written'}", markup=False)
    count, size = Counter[str](), Counter[str]()
    for one in kept(place):
        count[one.kind] += 1
        size[one.kind] += one.size_bytes
    for kind in (*KINDS, "damaged"):
        if count[kind]:
            console.print(f"{kind:9} {count[kind]:6} entries, {size[kind] / 1e6:8.2f} MB", markup=False)
    total = sum(size.values())
    console.print(
        f"all       {sum(count.values()):6} entries, {total / 1e6:8.2f} MB of {MOST_BYTES / 1e6:.0f}", markup=False
    )


def show(folder: Path | None, most: int) -> None:
    """Print a table of the entries that were used last."""
    entries = sorted(kept(_place(_store(folder))), key=lambda one: -one.used_s)
    table = Table("key", "kind", "bytes", "used", box=None, pad_edge=False)
    for one in entries[:most]:
        table.add_row(one.key[:16], one.kind, f"{one.size_bytes:,}", _ago(time.time() - one.used_s))
    console = Console(highlight=False)
    console.print(table)
    if len(entries) > most:
        console.print(f"and {len(entries) - most} more")


def check(folder: Path | None) -> bool:
    """Remove what is damaged; return whether there was any."""
    place = _place(_store(folder))
    found = damaged(place)
    for one in found:
        remove(one.path)
    all_ = len(found) + sum(1 for _ in kept(place))
    print(f"{all_} entries, {len(found)} damaged" + (" and removed" if found else ""))
    return bool(found)


def collect(folder: Path | None, most_bytes: int) -> None:
    """Make room, and say how much."""
    gone, size = sweep(_place(_store(folder)), most_bytes)
    print(f"{gone} entries removed, {size / 1e6:.2f} MB")


def _store(folder: Path | None) -> Store:
    return Store(folder or cache_folder(Options()))


def _place(store: Store) -> Path:
    if store.folder is None:
        raise ArgumentError("there is no cache folder on this system", hint="name one: --folder, or STAX_CACHE_DIR")
    return store.folder


def _ago(seconds: float) -> str:
    for unit, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name} ago"
    return "just now"
