"""Where in the user's files a thing was written."""

from __future__ import annotations

import linecache
import os
import sys
from dataclasses import dataclass
from itertools import islice
from types import CodeType, FrameType
from typing import Any

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one source line; columns count from 0, `end` is exclusive, 0 where unknown."""

    file: str
    line: int
    column: int = 0
    end: int = 0

    @property
    def text(self) -> str:
        """The source line, or nothing where the file cannot be read."""
        return linecache.getline(self.file, self.line).rstrip("\n")

    @property
    def place(self) -> str:
        """The file and the line, as a person would look for them; a cell of a notebook by its number, `In[3]:2`."""
        file = self.file
        if os.path.isabs(file) and file.startswith(os.getcwd()):
            file = os.path.relpath(file)
        elif os.path.basename(os.path.dirname(file)).startswith("ipykernel_"):
            file = _cell(file)
        return f"{file}:{self.line}"


def here() -> Span | None:
    """Return the place in the nearest frame outside stax."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return None
    return _place(frame.f_code, frame.f_lasti, frame.f_lineno)


def _cell(file: str) -> str:
    """Return what IPython calls the cell that it compiled as `file`."""
    ipython: Any = sys.modules.get("IPython")
    try:
        named = ipython.get_ipython().compile.format_code_name(file)
    except AttributeError:  # not in a notebook, or in one of before IPython 8
        return file
    return named[1] if named else file


def _place(code: CodeType, instruction: int, line: int) -> Span:
    found = next(islice(code.co_positions(), instruction // 2, None), None)
    if found is not None:
        first, last, column, end = found
        if first is not None and column is not None and end is not None:
            return Span(code.co_filename, first, column, end if first == last else 0)
    return Span(code.co_filename, line)
