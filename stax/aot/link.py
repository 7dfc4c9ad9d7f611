"""An object file -> a shared library, by the first linker of this machine that can."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from stax.errors import BackendError

_COMPILERS = ("cc", "gcc", "clang")
_LINKERS = ("ld", "ld.lld")
_TIMEOUT_S = 120


def linkers() -> tuple[tuple[str, ...], ...]:
    """Return the commands to try; what they link is never unloaded, as it has threads."""
    found: list[tuple[str, ...]]
    found = [(path, "-shared", "-Wl,-z,nodelete") for name in _COMPILERS if (path := shutil.which(name))]
    found += [(path, "-shared", "-z", "nodelete") for name in _LINKERS if (path := shutil.which(name))]
    if importlib.util.find_spec("ziglang") is not None:
        found.append((sys.executable, "-m", "ziglang", "ld.lld", "-shared", "-z", "nodelete"))
    return tuple(found)


def link(object_file: Path, library: Path, commands: Sequence[Sequence[str]] | None = None) -> str:
    """Write `library`, and return the name of the program that linked it.

    Raises BackendError where there is none, or none can.
    """
    tried: list[str] = []
    for command in linkers() if commands is None else commands:
        for rest in (["-lpthread", "-lc"], ["-lc"], []):
            done = _run([*command, "-o", str(library), str(object_file), *rest])
            if done is None:
                return Path(command[0]).name
        tried.append(f"{' '.join(command)}: {done}")
    raise BackendError(
        "there is no linker here for a shared library" if not tried else "no linker could make a shared library",
        facts=tried or [f"looked for {', '.join((*_COMPILERS, *_LINKERS))}, and the package ziglang"],
        hint=f"{object_file} and its header are written: link them elsewhere, or pass library=False",
    )


def _run(command: Sequence[str]) -> str | None:
    """Return None where the command succeeds, else the last line that it says."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    lines = (done.stderr or done.stdout).strip().splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"
