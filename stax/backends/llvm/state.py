"""What names stand for while a function is printed, and how the body of a parallel loop gets at what is outside it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from stax.backends.artifact import Facts, Slot, SlotKind
from stax.backends.llvm import types
from stax.backends.llvm.beside import Beside
from stax.backends.llvm.lanes import Layout, Part
from stax.backends.llvm.tiles import Tile
from stax.backends.llvm.writer import Function
from stax.dtypes import DType
from stax.errors import InternalError
from stax.expr.nodes import Axes, Expr, Param, Size
from stax.loops.nodes import Buffer, Program


@dataclass(frozen=True, slots=True)
class Place:
    """Where a buffer lies: its pointer, byte strides, the alignment that may be claimed, and its alias tag."""

    name: str
    dtype: DType
    pointer: str
    strides: tuple[str, ...]
    align: int
    tag: str


@dataclass(frozen=True, slots=True)
class Bound:
    """What a Local stands for."""

    dtype: DType
    axes: Axes
    parts: list[Part]


@dataclass(slots=True)
class Scope:
    """Names, buffers and values that hold in one block and those inside it; `loaded` also says when it was loaded."""

    names: dict[str, Bound] = field(default_factory=dict[str, Bound])
    places: dict[str, Place] = field(default_factory=dict[str, Place])
    values: dict[int, list[Part]] = field(default_factory=dict[int, list[Part]])
    loaded: dict[int, tuple[list[Part], int]] = field(default_factory=dict[int, tuple[list[Part], int]])


@dataclass(slots=True)
class Context:
    """What the functions of one program share; a `long` one prints each of its nests as a function."""

    program: Program
    facts: Facts
    layout: Layout
    words: dict[Slot, int]
    buffers: dict[str, Buffer]
    reads: dict[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])
    expanded: dict[int, tuple[Expr, Expr]] = field(default_factory=dict[int, tuple[Expr, Expr]])
    tiles: dict[int, Tile] = field(default_factory=dict[int, Tile])
    beside: dict[int, Beside] = field(default_factory=dict[int, Beside])
    tasks: int = 0
    long: bool = False


@dataclass(slots=True)
class State:
    """One function being printed. `outer` is the function that calls it; `parallel` ones are run by several threads.

    `heap` has the pointer of scratch that is held, and its slot in the table; one that `keeps` some gives it back at
    its end. `loops` counts those open. `captured` maps a value of the outer function to its name here, its type, and
    its place in the block of captures.
    """

    context: Context
    f: Function
    outer: State | None = None
    scopes: list[Scope] = field(default_factory=lambda: [Scope()])
    captured: dict[str, tuple[str, str, int]] = field(default_factory=dict[str, tuple[str, str, int]])
    capture_bytes: int = 0
    words: dict[Slot, str] = field(default_factory=dict[Slot, str])
    sink_bytes: int = 0
    stack_bytes: int = 0
    heap: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    slots: int = 0
    keeps: bool = False
    loops: int = 0
    parallel: bool = False

    @contextmanager
    def scope(self) -> Generator[Scope]:
        """Open a scope for a block of statements that stands in the order of the text."""
        made = Scope()
        self.scopes.append(made)
        yield made
        self.scopes.pop()

    def value(self, node: Expr) -> list[Part] | None:
        """Return the components of `node`, if they are known and memory still says so."""
        key = id(node)
        reads = self.context.reads.get(key)
        if reads is None:
            for scope in reversed(self.scopes):
                found = scope.values.get(key)
                if found is not None:
                    return found
            return None
        for scope in reversed(self.scopes):
            kept = scope.loaded.get(key)
            if kept is not None:
                return kept[0] if self.f.is_fresh(kept[1], reads) else None
        return None

    def keep(self, node: Expr, parts: list[Part], reads: frozenset[str] | None, when: int) -> None:
        """Remember the components of `node`, which were loaded from `reads`, in part, from `when` on."""
        if reads is None:
            self.scopes[-1].values[id(node)] = parts
        else:
            self.context.reads[id(node)] = reads
            self.scopes[-1].loaded[id(node)] = (parts, when)

    def find(self, name: str) -> Bound | None:
        """Return what the Local `name` stands for."""
        for scope in reversed(self.scopes):
            found = scope.names.get(name)
            if found is not None:
                return found
        if self.outer is None:
            return None
        found = self.outer.find(name)
        if found is None:
            return None
        runs = self.context.layout.widths(found.axes)
        parts = [
            Part(self.capture(p.text, types.value(found.dtype, run.width if p.slope is None else 0)), p.slope, p.offset)
            for p, run in zip(found.parts, runs, strict=True)
        ]
        bound = self.scopes[0].names[name] = Bound(found.dtype, found.axes, parts)
        return bound

    def local(self, name: str) -> Bound:
        """Return what the Local `name` stands for; it must be bound."""
        found = self.find(name)
        if found is None:
            raise InternalError(f"nothing binds {name} in program {self.context.program.name}")
        return found

    def capture(self, text: str, kind: str) -> str:
        """Return the name in this function of a value of the outer one."""
        if types.is_constant(text):
            return text
        if text not in self.captured:
            step = 64 if kind[0] == "<" else 8
            at = -(-self.capture_bytes // step) * step
            place = self.f.early(f"getelementptr i8, ptr %ctx, i64 {at}")
            self.captured[text] = (self.f.early(f"load {kind}, ptr {place}, align {step}"), kind, at)
            self.capture_bytes = at + (_bytes(kind) if step == 64 else 8)
        return self.captured[text][0]

    def word(self, slot: Slot, kind: str = "i64", note: str = "") -> str:
        """Return a word of the argument block, read as `kind`."""
        found = self.words.get(slot)
        if found is None:
            if self.outer is not None:
                found = self.capture(self.outer.word(slot, kind, note), kind)
            else:
                if slot not in self.context.words:
                    raise InternalError(f"program {self.context.program.name} has no {slot.kind.value} {slot.name}")
                place = self.f.early(f"getelementptr i8, ptr %words, i64 {8 * self.context.words[slot]}")
                found = self.f.early(f"load {kind}, ptr {place}, align 8{note}")
            self.words[slot] = found
        return found

    def error(self) -> str:
        """Return the address of the error record."""
        return self.word(Slot(SlotKind.ERROR), "ptr")

    def leave(self, code: str) -> None:
        """Leave the function with an error code, freeing what is held."""
        self.f.fails = True
        self.f.act(f"store i32 {code}, ptr %code, align 4")
        self.f.act("br label %leave")

    def text(self, head: str) -> str:
        """Return the whole function."""
        f = self.f
        f.fence()
        first = [f"{head} nounwind {{", "start:"]
        first += [f"  %sink = alloca [{self.sink_bytes} x i8], align 64"] if self.sink_bytes else []
        first += ["  %code = alloca i32, align 4"] if f.fails else []
        last = [f"  call void @stax.release(ptr %held, i64 {self.slots})"] if self.keeps else []
        last += ["  ret i32 0", *f.tail]
        if f.fails:
            last += ["leave:"]
            last += [f"  call void @stax.release(ptr %held, i64 {self.slots})"] if self.slots else []
            last += ["  %left = load i32, ptr %code, align 4", "  ret i32 %left"]
        if self.slots:
            first += [f"  %held = alloca [{2 * self.slots} x i64], align 8"]
            f.module.declare("void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            first += [f"  call void @llvm.memset.p0.i64(ptr align 8 %held, i8 0, i64 {16 * self.slots}, i1 false)"]
        return "\n".join([*first, *f.prologue, "  br label %body", "body:", *f.lines, *last, "}"])

    def size(self, node: Size) -> str:
        """Return the extent of a dimension."""
        return self.word(Slot(SlotKind.SIZE, node.array, node.dim), "i64", f", !range {self.f.module.extents()}")

    def param(self, node: Param) -> str:
        """Return a scalar argument."""
        word = self.word(Slot(SlotKind.SCALAR, node.name), types.memory(node.dtype))
        return self.f.put(f"icmp ne i8 {word}, 0") if node.dtype.is_bool else word

    def place(self, name: str) -> Place:
        """Return where the buffer `name` lies."""
        for scope in reversed(self.scopes):
            found = scope.places.get(name)
            if found is not None:
                return found
        buffer = self.context.buffers.get(name)
        if buffer is None:
            if self.outer is None:
                raise InternalError(f"program {self.context.program.name} has no buffer {name}")
            there = self.outer.place(name)
            strides = tuple(self.capture(s, "i64") for s in there.strides)
            made = Place(name, there.dtype, self.capture(there.pointer, "ptr"), strides, there.align, there.tag)
        else:
            facts, size = self.context.facts, buffer.dtype.size_bytes
            pointer = self.word(Slot(SlotKind.POINTER, name), "ptr")
            rank = len(buffer.shape)
            known = {rank - 1: size} if name in facts.dense else {}
            for channels in (n for one, n in facts.packed if one == name):
                known[rank - 2] = size * channels
            strides = tuple(
                str(known[d]) if d in known else self.word(Slot(SlotKind.STRIDE, name, d)) for d in range(rank)
            )
            align = size if name in facts.aligned else 1
            made = Place(name, buffer.dtype, pointer, strides, align, self.f.module.tag(name))
        self.scopes[0].places[name] = made
        return made


def _bytes(kind: str) -> int:
    lanes, element = kind[1:-1].split(" x ")
    bits = {"float": 32, "double": 64, "ptr": 64}.get(element) or int(element[1:])
    return max(1, -(-int(lanes) * bits // 8))
