"""Text of one function and of the module around it.

Instructions without effect are looked up before they are written, so that equal ones are written once; a scope forgets
those that do not dominate what follows it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from stax import dtypes
from stax.backends.llvm import types
from stax.expr.build import wrap
from stax.target import Target


@dataclass(slots=True)
class Module:
    """What the functions of one module share."""

    target: Target
    functions: list[str] = field(default_factory=list[str])
    declared: dict[str, None] = field(default_factory=dict[str, None])
    metadata: list[str] = field(default_factory=list[str])
    tags: dict[str, str] = field(default_factory=dict[str, str])
    clock: int = 0
    stored: dict[str, int] = field(default_factory=dict[str, int])
    thorough: bool = False
    zeros: bool = False
    out_of_memory: bool = False

    def wrote(self, buffer: str) -> None:
        """Note that a buffer has changed, so that what was loaded from it is old."""
        self.clock += 1
        self.stored[buffer] = self.clock

    def declare(self, line: str) -> None:
        """Ask for a declaration."""
        self.declared[f"declare {line}"] = None

    def note(self, text: str) -> str:
        """Append a metadata node; return its name."""
        self.metadata.append(text)
        return f"!{len(self.metadata) - 1}"

    def tag(self, buffer: str) -> str:
        """Return the alias tag of a buffer: accesses under different tags never meet."""
        if "" not in self.tags:
            self.tags[""] = self.note('!{!"stax"}')
        if buffer not in self.tags:
            kind = self.note(f'!{{!"{len(self.tags)}", {self.tags[""]}, i64 0}}')
            self.tags[buffer] = self.note(f"!{{{kind}, {kind}, i64 0}}")
        return self.tags[buffer]

    def unlikely(self) -> str:
        """Return the weights of a branch that is seldom taken."""
        if "\2" not in self.tags:
            self.tags["\2"] = self.note('!{!"branch_weights", i32 1, i32 1048576}')
        return self.tags["\2"]

    def once(self) -> str:
        """Return the mark of what is not used again soon."""
        if "\3" not in self.tags:
            self.tags["\3"] = self.note("!{i32 1}")
        return self.tags["\3"]

    def extents(self) -> str:
        """Return the range of sizes, as metadata."""
        if "\1" not in self.tags:
            self.tags["\1"] = self.note("!{i64 0, i64 4611686018427387904}")
        return self.tags["\1"]

    def loop(self) -> str:
        """Return the metadata of a loop, which keeps LLVM from unrolling what the schedule did not."""
        off = self.tags.get("\0") or self.note('!{!"llvm.loop.unroll.disable"}')
        self.tags["\0"] = off
        mine = f"!{len(self.metadata)}"
        return self.note(f"distinct !{{{mine}, {off}}}")

    def text(self, head: str) -> str:
        """Return the whole module."""
        notes = [f"!{k} = {text}" for k, text in enumerate(self.metadata)]
        return "\n".join([head, *self.functions, *self.declared, *notes]) + "\n"


@dataclass(frozen=True, slots=True)
class Narrow:
    """The vector `text` of integers of `bits`, of which another vector is made by widening."""

    text: str
    bits: int
    signed: bool


@dataclass(slots=True)
class Function:
    """The text of one function so far. `prologue` stands in the entry block, before all that is in `lines`.

    `widened` tells what vectors of 64-bit integers were made of.
    """

    module: Module
    prologue: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    tail: list[str] = field(default_factory=list[str])
    count: int = 0
    block: str = "body"
    scopes: list[dict[str, str]] = field(default_factory=lambda: [{}])
    loads: list[dict[str, tuple[str, int]]] = field(default_factory=lambda: [{}])
    floor: int = 0
    fails: bool = False
    streams: bool = False
    widened: dict[str, Narrow] = field(default_factory=dict[str, Narrow])

    def fence(self) -> None:
        """Let what was stored past the caches be seen by other threads."""
        if self.streams:
            if self.module.target.is_x86:
                self.module.declare("void @llvm.x86.sse.sfence()")
                self.act("call void @llvm.x86.sse.sfence()")
            else:
                self.act("fence release")
            self.streams = False

    def name(self) -> str:
        """Return a name that no value has."""
        self.count += 1
        return f"%v{self.count}"

    def label(self, stem: str) -> str:
        """Return a label that no block has."""
        self.count += 1
        return f"{stem}.{self.count}"

    def put(self, text: str) -> str:
        """Return the value of an instruction without effect."""
        for scope in reversed(self.scopes):
            found = scope.get(text)
            if found is not None:
                return found
        self.count += 1
        made = f"%v{self.count}"
        self.lines.append(f"  {made} = {text}")
        self.scopes[-1][text] = made
        return made

    def read(self, text: str, buffer: str) -> str:
        """Return the value of a load; equal loads give one value until the buffer changes."""
        for scope in reversed(self.loads):
            found = scope.get(text)
            if found is not None and self.is_fresh(found[1], (buffer,)):
                return found[0]
        made = self.name()
        self.loads[-1][text] = (made, self.module.clock)
        self.lines.append(f"  {made} = {text}")
        return made

    def is_fresh(self, when: int, buffers: Iterable[str]) -> bool:
        """Return whether what was loaded from `buffers` at a time is what they hold now."""
        return when >= self.floor and all(when >= self.module.stored.get(b, 0) for b in buffers)

    @contextmanager
    def part(self, *, repeated: bool = False) -> Generator[None]:
        """Open a part that does not dominate what follows it; one that is repeated may change what was loaded."""
        floor = self.floor
        if repeated:
            self.module.clock += 1
            self.floor = self.module.clock
        self.scopes.append({})
        self.loads.append({})
        yield
        self.scopes.pop()
        self.loads.pop()
        self.floor = floor

    def act(self, text: str) -> None:
        """Append an instruction that gives no value."""
        self.lines.append(f"  {text}")

    def early(self, text: str) -> str:
        """Return the value of an instruction that stands in the entry block."""
        made = self.name()
        self.prologue.append(f"  {made} = {text}")
        return made

    def begin(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self.block = label

    def intrinsic(self, stem: str, result: str, arguments: Sequence[tuple[str, str]]) -> str:
        """Return the value of `llvm.<stem>`, which has no effect."""
        name = f"@llvm.{stem}"
        self.module.declare(f"{result} {name}({', '.join(t for t, _ in arguments)})")
        return self.put(f"call {result} {name}({', '.join(f'{t} {v}' for t, v in arguments)})")

    def over(self, stem: str, element: str, lanes: int, *arguments: str) -> str:
        """Return the value of an intrinsic whose arguments and result have one type."""
        kind = types.vector(element, lanes)
        return self.intrinsic(f"{stem}.{types.mangled(element, lanes)}", kind, [(kind, a) for a in arguments])

    def splat(self, scalar: str, element: str, lanes: int) -> str:
        """Return a vector of one scalar."""
        if not lanes:
            return scalar
        if types.is_constant(scalar):
            return types.splat(scalar, element, lanes)
        kind = types.vector(element, lanes)
        first = self.put(f"insertelement {kind} poison, {element} {scalar}, i64 0")
        return self.put(f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer")

    def add(self, a: str, b: str, exact: str = " nsw") -> str:
        """Return the sum of two i64, by default positions, whose sums do not overflow."""
        x, y = types.known(a), types.known(b)
        if x is not None and y is not None:
            return str(wrap(x + y, dtypes.int64))
        return b if x == 0 else a if y == 0 else self.put(f"add{exact} i64 {a}, {b}")

    def sub(self, a: str, b: str, exact: str = " nsw") -> str:
        """Return the difference of two i64."""
        x, y = types.known(a), types.known(b)
        if x is not None and y is not None:
            return str(wrap(x - y, dtypes.int64))
        return "0" if a == b else a if y == 0 else self.put(f"sub{exact} i64 {a}, {b}")

    def mul(self, a: str, b: str, exact: str = " nsw") -> str:
        """Return the product of two i64."""
        x, y = types.known(a), types.known(b)
        if x is not None and y is not None:
            return str(wrap(x * y, dtypes.int64))
        if 0 in (x, y):
            return "0"
        return b if x == 1 else a if y == 1 else self.put(f"mul{exact} i64 {a}, {b}")

    def clamp(self, a: str, low: int, high: int) -> str:
        """Return i64 `a`, but at least `low` and at most `high`."""
        known = types.known(a)
        if known is not None:
            return str(min(max(known, low), high))
        return self.over("smin", "i64", 0, self.over("smax", "i64", 0, a, str(low)), str(high))
