"""A user's file, imported; the Funcs it defines, and which of them is asked for."""

from __future__ import annotations

import difflib
import importlib.util
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from stax.compiler import default_schedule
from stax.errors import ArgumentError, DefinitionError, StaxError
from stax.lang.func import Func
from stax.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Loaded:
    """What `FILE.py[:name]` stands for: a Func or a tuple of them."""

    file: Path
    name: str
    outputs: Any


def load_program(text: str) -> Loaded:
    """Return what `text`, `FILE.py` or `FILE.py:name`, stands for.

    A name is that of a Func, of a tuple of Funcs, or of a function without arguments that returns those. Without a
    name, the one Func of the file that no other reads.
    """
    path, _, name = text.partition(".py:")
    file = Path(f"{path}.py" if name else text)
    if not file.is_file():
        raise ArgumentError(f"there is no file {file}")
    module = _imported(file)
    funcs = {k: v for k, v in vars(module).items() if isinstance(v, Func) and v.pure is not None}
    if name:
        return Loaded(file, name, _named(module, file, name, funcs))
    read = {id(owner) for f in funcs.values() for owner in _reads(f)}
    last = {id(f): k for k, f in funcs.items() if id(f) not in read}
    if not last:
        raise ArgumentError(
            f"{file} defines no Func at its top level", hint="give the name of a function: FILE.py:make"
        )
    if len(last) > 1:
        names = ", ".join(last.values())
        raise ArgumentError(
            f"{file} defines several outputs: {names}", hint=f"say which: {file}:{next(iter(last.values()))}"
        )
    (name,) = last.values()
    return Loaded(file, name, funcs[name])


def load_schedule(file: Path | None, outputs: Any) -> Schedule:
    """Return the schedule in `file`, else the default one."""
    if file is None:
        return default_schedule(outputs)
    if not file.is_file():
        raise ArgumentError(f"there is no file {file}", hint="`stax schedule FILE.py -o schedule.py` writes one")
    return Schedule.load(file, outputs)


def write(file: Path, data: bytes) -> None:
    """Write `data` to `file`; ArgumentError where that cannot be done."""
    try:
        file.write_bytes(data)
    except OSError as error:
        raise ArgumentError(f"cannot write {file}: {error.strerror}") from None


def _imported(file: Path) -> ModuleType:
    name = f"stax_program_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(file.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except StaxError:
        raise
    except (Exception, SystemExit) as error:
        raise DefinitionError(f"{file} cannot be imported: {_where(error, file)}") from None
    finally:
        sys.path.pop(0)
    return module


def _named(module: ModuleType, file: Path, name: str, funcs: dict[str, Func]) -> Any:
    if not hasattr(module, name):
        close = difflib.get_close_matches(name, funcs, 1)
        hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(funcs)}" if funcs else None
        raise ArgumentError(f"{file} has no `{name}`", hint=hint)
    found = getattr(module, name)
    if callable(found) and not isinstance(found, Func):
        try:
            found = found()
        except StaxError:
            raise
        except Exception as error:
            raise DefinitionError(f"{name}() of {file} fails: {_where(error, file)}") from None
    if not isinstance(found, Func) and not _is_tuple(found):
        raise ArgumentError(f"`{name}` of {file} is a {type(found).__name__}", hint="name a Func, or a tuple of them")
    return found


def _is_tuple(found: Any) -> bool:
    return isinstance(found, tuple) and len(found) > 0 and all(isinstance(f, Func) for f in found)  # pyright: ignore


def _reads(func: Func) -> list[Any]:
    definitions = [*func.starts, *([func.pure] if func.pure else []), *func.updates]
    return [owner for d in definitions for owner in d.scan.owners.values() if owner is not func]


def _where(error: BaseException, file: Path) -> str:
    """Return what went wrong and, where it is in `file`, at which line."""
    what = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {type(error).__name__}: {error.msg}"
    own = str(file.resolve())
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == own]
    return f"line {lines[-1]}: {what}" if lines else what
