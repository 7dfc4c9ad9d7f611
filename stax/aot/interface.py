"""What an exported function takes, in order: the one list that the code, the header and the loader are made from."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

from stax.dtypes import DType
from stax.errors import ArgumentError
from stax.runtime.signature import Signature

_WORDS = frozenset((
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern",
    "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed",
    "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "bool",
    "true", "false", "asm", "main", "free", "class", "new", "delete", "this", "template", "private", "public",
    "protected", "operator", "namespace", "try", "catch", "throw", "threads", "code", "pthread_create",
    "pthread_detach", "posix_memalign", "pthread_atfork",
))  # fmt: skip
_FLOATS = {16: "uint16_t", 32: "float", 64: "double"}


@dataclass(frozen=True, slots=True)
class Array:
    """An array argument: what it is called in C, and the input and buffers of the kernel that it is.

    `written` ones are outputs; one that is also an `input` is written over.
    """

    name: str
    dtype: DType
    rank: int
    input: str = ""
    buffers: tuple[str, ...] = ()
    written: bool = False


@dataclass(frozen=True, slots=True)
class Number:
    """A Param."""

    name: str
    dtype: DType
    param: str
    default: int | float | bool | None


@dataclass(frozen=True, slots=True)
class Shape:
    """The extents of an output, which the shape function gives; `known` says of which dims."""

    name: str
    output: str
    known: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Interface:
    """`arguments` in positional order, then what is only written; `shapes` of the outputs that have any dims."""

    name: str
    arguments: tuple[Array | Number, ...]
    shapes: tuple[Shape, ...]

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Those that are arrays."""
        return tuple(a for a in self.arguments if isinstance(a, Array))


def interface(name: str, signature: Signature) -> Interface:
    """Return what the function `name` takes for a kernel of this signature."""
    check_name(name)
    taken: set[str] = set()
    inputs = {i.name: i for i in signature.inputs}
    scalars = {s.name: s for s in signature.scalars}
    over = dict(signature.overwritten)
    arguments: list[Array | Number] = []
    for given in signature.arguments:
        if given in scalars:
            one = scalars[given]
            arguments.append(Number(_plain(given, taken), one.dtype, given, one.default))
        else:
            array = inputs[given]
            held = (over[given],) if given in over else (given,)
            arguments.append(
                Array(_plain(given, taken), array.dtype, len(array.dims), given, held, written=given in over)
            )
    for out in signature.outputs:
        for buffer, dtype in zip(out.buffers, out.dtypes, strict=True):
            if buffer not in over.values():
                arguments.append(Array(_plain(buffer, taken), dtype, len(out.shape), "", (buffer,), written=True))
    shapes = tuple(
        Shape(_plain(f"{out.name}_shape", set()), out.name, tuple(e is not None for e in out.shape))
        for out in signature.outputs
        if out.shape
    )
    return Interface(name, tuple(arguments), shapes)


def c_type(dtype: DType) -> str:
    """Return C's name of a type; a bool is a uint8_t, a float of 16 bits its bits in a uint16_t."""
    if dtype.is_bool:
        return "uint8_t"
    if dtype.is_float:
        return _FLOATS[dtype.bits]
    return f"{'int' if dtype.is_signed else 'uint'}{dtype.bits}_t"


def check_name(name: str) -> None:
    """Refuse what cannot be the name of a function in C and in Python."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.ASCII) or name in _WORDS or keyword.iskeyword(name):
        raise ArgumentError(
            f"the exported function cannot be called {name!r}",
            hint='the last part of the path is its name: sx.export(k, "build/blur") exports blur()',
        )


def _plain(name: str, taken: set[str]) -> str:
    """Return `name` as a name in C, other than those that are taken."""
    made = re.sub(r"\W", "_", name, flags=re.ASCII)
    made = f"{made}_" if made in _WORDS or keyword.iskeyword(made) or made[:1].isdigit() else made
    while made in taken:
        made += "_"
    taken.add(made)
    return made
