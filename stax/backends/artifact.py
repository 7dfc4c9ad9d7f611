"""What a backend gives: machine code or text, its entry point, and what the entry takes.

The entry is `int32 entry(int64 *words)`: one 64-bit word for each slot, in order. It returns 0, or an error code after
filling the record that the ERROR slot points at.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class SlotKind(Enum):
    """What a word of the argument block holds.

    POINTER: address of element 0 of array `name`. STRIDE: byte stride of its dimension `dim`. SIZE: its extent.
    SCALAR: the bits of Param `name`, in the low bytes. THREADS: how many threads a parallel loop may use.
    ERROR: address of four int64: claimed, code and two values.
    """

    POINTER = "pointer"
    STRIDE = "stride"
    SIZE = "size"
    SCALAR = "scalar"
    THREADS = "threads"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Slot:
    """One word of the argument block."""

    kind: SlotKind
    name: str = ""
    dim: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """What a version of a kernel may take for granted of its array arguments; guarded at the call.

    `dense`: arrays whose last dimension steps by one element. `aligned`: arrays whose address and strides are multiples
    of the element size. Arrays in neither are reached by byte strides and byte alignment. `packed`: dense arrays whose
    last dimension but one steps by the given number of elements, the extent of the last. For GPUs, `even`: arrays whose
    address, strides and last extent are multiples of 16 bytes; `wide`: positions may need 64 bits; `row`: the rows that
    a program keeps as lanes have at most so many elements, where it is not 0; `many`: there are so many points that
    programs may take strips of them.
    """

    dense: frozenset[str] = frozenset()
    aligned: frozenset[str] = frozenset()
    packed: frozenset[tuple[str, int]] = frozenset()
    even: frozenset[str] = frozenset()
    wide: bool = False
    row: int = 0
    many: bool = False


OUT_OF_MEMORY = 1


@dataclass(frozen=True, slots=True)
class Artifact:
    """`text` is what was printed; `code` the object file; `imports` the symbols it needs from the runtime."""

    text: str
    code: bytes
    entry: str
    slots: tuple[Slot, ...]
    facts: Facts
