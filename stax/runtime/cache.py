"""What was compiled, on disk, by the hash of all that determines it.

An entry is a file: a line of format and kind, the key, the SHA-256 of the content, the content. It is written beside
its place and renamed, so a reader sees a whole entry or none; what does not verify is built again. Who builds one holds
a lock, and looks once more when he has it, so that of many processes one builds. A folder that cannot be made, read,
written or locked, or that others may write, is no error: then nothing is kept. `shelf.py` lists, verifies and empties.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib
import os
import stat
import tempfile
import time
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path
from typing import Any

from stax.target import Target

FORMAT = b"stax entry 2"
KINDS = ("object", "program", "artifact", "proof", "machine", "choice")
MOST_BYTES = 1 << 30
_FOLDER, _LOCKS = "entries", "locks"
_LOCK_TIMEOUT_S = 120.0
_USED_S = 3600.0
_PUTS_BETWEEN_SWEEPS = 64


def digest(*parts: str | bytes) -> str:
    """Return the SHA-256 of a sequence of texts, cut to 255 bits: 51 small letters and digits.

    >>> digest("ab", "c") == digest("a", "bc"), len(digest("a"))
    (False, 51)
    """
    made = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        made.update(len(data).to_bytes(8, "little") + data)
    return base64.b32encode(made.digest()).decode().lower()[:51]


def object_key(text: str, target: Target, settings: str = "") -> str:
    """Return the key of the object code of an LLVM text; `settings` are what it is compiled for.

    The facts that a version takes for granted are in its text. LLVM's version is part of the key, and how it is driven.
    """
    return digest("object", text, target.triple, target.cpu, target.features, settings, llvm_version(), _driver())


@cache
def llvm_version() -> str:
    """Return the version of LLVM, and of its binding."""
    try:
        llvmlite: Any = importlib.import_module("llvmlite")
        binding: Any = importlib.import_module("llvmlite.binding")
    except ImportError:
        return "none"
    return f"{llvmlite.__version__} {'.'.join(str(n) for n in binding.llvm_version_info)}"


@cache
def _driver() -> str:
    """Return the hash of the file that drives LLVM's passes."""
    from stax.backends.llvm import optimize

    return digest(Path(optimize.__file__).read_bytes())


@cache
def sources() -> str:
    """Return the hash of the compiler itself: the content of each of its files."""
    root = Path(__file__).resolve().parents[1]
    files = sorted(p for p in root.rglob("*") if p.suffix in (".py", ".triton"))
    return digest(*(part for p in files for part in (str(p.relative_to(root)), p.read_bytes())))


def default_folder() -> Path | None:
    """Return the platform's cache folder for stax; None where there is none."""
    import platformdirs

    folder = Path(platformdirs.user_cache_dir("stax"))
    return folder if folder.is_absolute() else None


class Store:
    """Bytes by key in a folder, or nowhere where that is None; safe among threads and processes.

    `hits` and `misses` count what `entry` found and had to build; `problem` is the last reason why something could not
    be kept, for a report. Past `most_bytes` the entries that were used least recently go.
    """

    def __init__(self, folder: str | Path | None, most_bytes: int = MOST_BYTES) -> None:
        self.folder = None if folder is None else Path(folder) / _FOLDER
        self.most_bytes = most_bytes
        self.hits = 0
        self.misses = 0
        self.problem: str | None = None
        self._puts = 0
        self._private: bool | None = None

    def entry(self, key: str, build: Callable[[], bytes], kind: str = "object") -> bytes:
        """Return what is kept under `key`, or what `build` makes, which is then kept."""
        found = self.get(key)
        if found is None:
            with self._locked(key):
                found = self.get(key)
                if found is None:
                    self.misses += 1
                    made = build()
                    self.put(key, made, kind)
                    return made
        self.hits += 1
        return found

    def get(self, key: str) -> bytes | None:
        """Return what is kept under `key`; None where that is nothing, or is damaged."""
        if self.folder is None or not self._is_private():
            return None
        path = path_of(self.folder, key)
        try:
            whole = path.read_bytes()
        except OSError:
            return None
        found = content(whole, key)
        if found is not None:
            _used(path)
        return found

    def put(self, key: str, data: bytes, kind: str = "proof") -> None:
        """Keep `data` under `key`, if that can be done."""
        if self.folder is None:
            return
        path = path_of(self.folder, key)
        try:
            self._make(path.parent)
            self._private = None
            if not self._is_private():
                return
            handle, written = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        except OSError as error:
            self.problem = str(error)
            return
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(whole(key, data, kind))
            os.replace(written, path)
        except OSError as error:
            self.problem = str(error)
            with contextlib.suppress(OSError):
                os.unlink(written)
        self._sweep()

    def _make(self, inside: Path) -> None:
        """Make the folder, which only its owner may enter, and one inside of it."""
        if self.folder is not None:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            inside.mkdir(mode=0o700, exist_ok=True)

    def _is_private(self) -> bool:
        """Return whether nobody else may write the folder: what is read from it is run."""
        if self._private is None and self.folder is not None:
            try:
                found = self.folder.stat()
            except OSError:
                return True
            mine = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
            self._private = mine and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if not self._private:
                self.problem = f"others may write {self.folder}, so nothing is read from it or kept there"
        return self._private is not False

    @contextlib.contextmanager
    def _locked(self, key: str) -> Generator[None]:
        """Hold the lock of those who build `key`; where there can be none, or it is held too long, go on without."""
        if self.folder is None or not self._is_private():
            yield
            return
        import filelock

        lock = filelock.FileLock(str(self.folder / _LOCKS / key[:2]), timeout=_LOCK_TIMEOUT_S)
        try:
            self._make(self.folder / _LOCKS)
            lock.acquire()
        except (OSError, NotImplementedError, filelock.Timeout) as error:
            self.problem = str(error)
            yield
            return
        try:
            yield
        finally:
            lock.release()

    def _sweep(self) -> None:
        """Now and then, make room."""
        self._puts += 1
        if self.folder is not None and self._puts % _PUTS_BETWEEN_SWEEPS == 1:
            from stax.runtime.shelf import sweep

            with contextlib.suppress(OSError):
                sweep(self.folder, self.most_bytes)


def path_of(folder: Path, key: str) -> Path:
    """Return where an entry lies."""
    return folder / key[:2] / f"{key[2:]}.entry"


def whole(key: str, data: bytes, kind: str) -> bytes:
    """Return a file of an entry."""
    proof = hashlib.sha256(b"\n".join((kind.encode(), key.encode(), data))).hexdigest()
    return b"\n".join((FORMAT + b" " + kind.encode(), key.encode(), proof.encode(), data))


def content(whole: bytes, key: str) -> bytes | None:
    """Return what the file of an entry holds; None where any of its bits is not as it was written."""
    head, _, rest = whole.partition(b"\n")
    named, _, rest = rest.partition(b"\n")
    proof, _, data = rest.partition(b"\n")
    kind = head[len(FORMAT) + 1 :]
    if not head.startswith(FORMAT + b" ") or named != key.encode() or kind.decode(errors="replace") not in KINDS:
        return None
    wanted = hashlib.sha256(b"\n".join((kind, named, data))).hexdigest().encode()
    return data if proof == wanted else None


def _used(path: Path) -> None:
    """Note that an entry was used, when that was not noted lately."""
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > _USED_S:
            os.utime(path)
