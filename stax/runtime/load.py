"""Object code -> addresses that can be called, through one LLJIT a process."""

from __future__ import annotations

import ctypes
import functools
import importlib
import itertools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stax.errors import BackendError

_lock = threading.RLock()
_numbers = itertools.count()


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """Loaded machine code; it is unmapped when this is collected, so who holds an address must hold this too."""

    addresses: Mapping[str, int]
    tracker: Any = field(repr=False)


def load(code: bytes, names: Sequence[str], imports: Mapping[str, int] | None = None) -> Code:
    """Return the addresses of `names` in the object `code`, whose own undefined symbols are `imports`, then libc's.

    Raises BackendError, in LLVM's words, where the object or a symbol cannot be had.
    """
    binding = _binding()

    builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name in names:
        builder.export_symbol(name)
    for name, address in (imports or {}).items():
        builder.import_symbol(name, address)
    with _lock:
        number = next(_numbers)
    try:
        tracker = builder.link(_jit(), f"stax{number}")
    except RuntimeError as error:
        raise BackendError("machine code could not be loaded", facts=_words(error)) from None
    return Code({name: int(tracker[name]) for name in names}, tracker)


def _binding() -> Any:
    return importlib.import_module("llvmlite.binding")


def _words(error: RuntimeError) -> list[str]:
    return [line for line in str(error).splitlines() if line.strip()][:8]


def _jit() -> Any:
    with _lock:
        return _made_jit()


@functools.cache
def _made_jit() -> Any:
    binding = _binding()

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    try:
        jit = binding.create_lljit_compiler(suppress_errors=True)
    except RuntimeError as error:
        raise BackendError("LLVM's loader could not be started", facts=_words(error)) from None
    keep_forever(jit)
    return jit


def keep_forever(owner: object) -> None:
    """Never collect `owner`: threads may be inside its code until the very end of the process."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
