"""Object code on disk, by the hash of all that determines it.

An entry is a file: a line of format, the key, the SHA-256 of the code, the code. It is written beside its place and
renamed, so a reader sees a whole entry or none; what does not verify is built again. A folder that cannot be made, read
or written is no error: then nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stax.target import Target

_FORMAT = b"stax object 1"


def digest(*parts: str) -> str:
    """Return the SHA-256 of a sequence of texts.

    >>> digest("ab", "c") == digest("a", "bc")
    False
    """
    made = hashlib.sha256()
    for part in parts:
        data = part.encode()
        made.update(len(data).to_bytes(8, "little") + data)
    return made.hexdigest()


def object_key(text: str, target: Target, settings: str = "") -> str:
    """Return the key of the object code of an LLVM text; `settings` are the options of the optimiser.

    The facts that a version takes for granted are in its text; LLVM's version is part of the key.
    """
    binding: Any = importlib.import_module("llvmlite.binding")
    version = ".".join(str(n) for n in binding.llvm_version_info)
    return digest("object", text, target.triple, target.cpu, target.features, settings, version)


def default_folder() -> Path | None:
    """Return the platform's cache folder for stax; None where there is none."""
    import platformdirs

    folder = Path(platformdirs.user_cache_dir("stax"))
    return folder if folder.is_absolute() else None


class Store:
    """Bytes by key in a folder, or nowhere where that is None; safe among threads and processes.

    `hits` and `misses` count what `entry` found and had to build; `problem` is the last reason why something could not
    be kept, for a report.
    """

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = None if folder is None else Path(folder)
        self.hits = 0
        self.misses = 0
        self.problem: str | None = None

    def entry(self, key: str, build: Callable[[], bytes]) -> bytes:
        """Return what is kept under `key`, or what `build` makes, which is then kept."""
        found = self.get(key)
        if found is not None:
            self.hits += 1
            return found
        self.misses += 1
        made = build()
        self.put(key, made)
        return made

    def get(self, key: str) -> bytes | None:
        """Return what is kept under `key`; None where that is nothing, or is damaged."""
        if self.folder is None:
            return None
        try:
            whole = self._path(self.folder, key).read_bytes()
        except OSError:
            return None
        head, _, rest = whole.partition(b"\n")
        named, _, rest = rest.partition(b"\n")
        proof, _, data = rest.partition(b"\n")
        if (head, named, proof) != (_FORMAT, key.encode(), hashlib.sha256(data).hexdigest().encode()):
            return None
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep `data` under `key`, if that can be done."""
        if self.folder is None:
            return
        path = self._path(self.folder, key)
        proof = hashlib.sha256(data).hexdigest().encode()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, written = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        except OSError as error:
            self.problem = str(error)
            return
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(b"\n".join((_FORMAT, key.encode(), proof, data)))
            os.replace(written, path)
        except OSError as error:
            self.problem = str(error)
            with contextlib.suppress(OSError):
                os.unlink(written)

    @staticmethod
    def _path(folder: Path, key: str) -> Path:
        return folder / key[:2] / f"{key[2:]}.object"
