"""The checks of a call as machine code, for entries that do not pass through Python.

`arguments.py` is what they must agree with: what they let pass, it lets pass. They may refuse more: an entry of a
kernel then asks Python, and an exported function says so in its header.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stax import dtypes
from stax.algorithm.nodes import Scalar
from stax.algorithm.positions import LARGEST_POSITION
from stax.backends.artifact import Facts, Slot, SlotKind
from stax.backends.llvm import types
from stax.backends.llvm.sizes import Sizes
from stax.backends.llvm.writer import Function
from stax.expr.nodes import Expr, Param, Size
from stax.runtime.signature import Check, CheckKind, Signature, size_text

Need = Callable[[str, str], None]
"""Appends a branch: what does not hold (an i1) is refused, for the reason that is told."""


@dataclass(frozen=True, slots=True)
class View:
    """An array as values of a function: a ptr, and an i64 for each extent and stride, in bytes."""

    data: str
    dims: tuple[str, ...]
    strides: tuple[str, ...]
    item_bytes: int


@dataclass(frozen=True, slots=True)
class Given:
    """A scalar as values of a function: its word, an i64; of a float also the double."""

    word: str
    double: str = ""


class Checked:
    """Appends to `f` what a call of `signature` checks of `views` (by input, table and buffer) and `scalars`."""

    def __init__(
        self,
        f: Function,
        signature: Signature,
        views: Mapping[str, View],
        scalars: Mapping[str, Given],
        need: Need,
    ) -> None:
        self.f, self.signature, self.views, self.scalars, self.need = f, signature, views, scalars, need
        self.dims: dict[str, tuple[str, ...]] = {name: view.dims for name, view in views.items()}
        for one in signature.outputs:
            for buffer in one.buffers:
                if buffer in views:
                    self.dims.setdefault(one.name, views[buffer].dims)
        self.sizes = Sizes(f, self._leaf)

    def _leaf(self, node: Size | Param) -> str:
        return self.scalars[node.name].word if isinstance(node, Param) else self.dims[node.array][node.dim]

    def limits(self) -> None:
        """Need scalars within their limits, and those that positions are computed from within theirs."""
        for one in self.signature.scalars:
            given = self.scalars[one.name]
            for limit, order in ((one.low, "ge"), (one.high, "le")):
                if limit is not None:
                    self.need(self._compared(one, given, limit, order), f"Param `{one.name}` is outside its limits")
            if one.name in self.signature.positions:
                text = f"Param `{one.name}` is too large for positions that are computed from it"
                for limit, order in ((-LARGEST_POSITION, "sge"), (LARGEST_POSITION, "sle")):
                    self.need(self.f.put(f"icmp {order} i64 {given.word}, {limit}"), text)

    def _compared(self, one: Scalar, given: Given, limit: float, order: str) -> str:
        if one.dtype.is_float:
            bits = types.literal(float(limit), dtypes.float64)
            return self.f.put(f"fcmp o{order} double {given.double}, {bits}")
        kind = "u" if one.dtype.name == "uint64" else "s"
        return self.f.put(f"icmp {kind}{order} i64 {given.word}, {int(limit)}")

    def declared(self) -> None:
        """Need the extents that are declared."""
        for one in self.signature.inputs:
            for dim, size in enumerate(one.sizes):
                if size is not None:
                    equal = self.f.put(f"icmp eq i64 {self.dims[one.name][dim]}, {self.sizes.values([size])[0]}")
                    text = f"`{one.name}` has not the extent {size_text(size)} in {self.signature.dim(one.name, dim)}"
                    self.need(equal, text)

    def conditions(self, agreeing: bool) -> None:
        """Need that what is read is there, and what the schedule promises; with `agreeing`, equal extents of inputs."""
        for check in self.signature.checks:
            if check.kind is not CheckKind.AGREE or agreeing:
                holds = self.sizes.holds(check.cond)
                if check.kind in (CheckKind.READ, CheckKind.WRITE):
                    low, high = self.sizes.values([check.lo, check.hi])
                    nothing = self.f.put(f"icmp sgt i64 {low}, {high}")
                    holds = self.f.put(f"or i1 {holds}, {nothing}")
                self.need(holds, said(self.signature, check))
        self.small()

    def small(self) -> None:
        """Need that every size that was computed so far fits into 64 bits."""
        if self.sizes.flag != "false":
            self.need(self.f.put(f"xor i1 {self.sizes.flag}, true"), "a size does not fit into 64 bits")
            self.sizes.flag = "false"

    def facts(self, name: str, facts: Facts) -> None:
        """Need the array `name` to be as `facts` say of it: dense, aligned, packed."""
        view, put = self.views[name], self.f.put
        item, last = view.item_bytes, len(view.dims) - 1
        if name in facts.dense and view.dims:
            self.need(self._steps(view, last, str(item)), f"the last dimension of `{name}` must step by one element")
        if name in facts.aligned and item > 1:
            joined = put(f"ptrtoint ptr {view.data} to i64")
            for stride in view.strides:
                joined = put(f"or i64 {joined}, {stride}")
            low = put(f"and i64 {joined}, {item - 1}")
            self.need(put(f"icmp eq i64 {low}, 0"), f"`{name}` must be aligned to its elements, in strides too")
        for other, count in facts.packed:
            if other == name:
                self.need(put(f"icmp eq i64 {view.dims[-1]}, {count}"), f"`{name}` must have {count} channels")
                text = f"the {count} channels of pixels of `{name}` must lie side by side"
                self.need(put(f"icmp eq i64 {view.strides[-1]}, {item}"), text)
                if last:
                    self.need(put(f"icmp eq i64 {view.strides[-2]}, {item * count}"), text)

    def _steps(self, view: View, dim: int, by: str) -> str:
        """Return whether a dimension steps by so many bytes, or has no second element."""
        equal = self.f.put(f"icmp eq i64 {view.strides[dim]}, {by}")
        return self.f.put(f"or i1 {equal}, {self.f.put(f'icmp sle i64 {view.dims[dim]}, 1')}")

    def no_overlap(self, written: Sequence[str], read: Sequence[str]) -> None:
        """Need the bytes between the first and the last of each array that is written to be its own."""
        spans = {name: self._span(self.views[name]) for name in (*written, *read)}
        for k, name in enumerate(written):
            for other in (*written[k + 1 :], *read):
                before = self.f.put(f"icmp ule i64 {spans[name][1]}, {spans[other][0]}")
                after = self.f.put(f"icmp ule i64 {spans[other][1]}, {spans[name][0]}")
                self.need(self.f.put(f"or i1 {before}, {after}"), f"`{name}` and `{other}` overlap in memory")

    def _span(self, view: View) -> tuple[str, str]:
        """Return the addresses of the first byte and past the last one."""
        put = self.f.put
        low = high = put(f"ptrtoint ptr {view.data} to i64")
        for extent, stride in zip(view.dims, view.strides, strict=True):
            some = put(f"select i1 {put(f'icmp sgt i64 {extent}, 1')}, i64 {extent}, i64 1")
            reach = put(f"mul i64 {put(f'sub i64 {some}, 1')}, {stride}")
            down = put(f"icmp slt i64 {stride}, 0")
            low = put(f"add i64 {low}, {put(f'select i1 {down}, i64 {reach}, i64 0')}")
            high = put(f"add i64 {high}, {put(f'select i1 {down}, i64 0, i64 {reach}')}")
        return low, put(f"add i64 {high}, {view.item_bytes}")

    def distinct(self, name: str) -> None:
        """Need elements that share no memory: each dimension steps over all that is further in."""
        view = self.views[name]
        reach = str(view.item_bytes)
        for dim in range(len(view.dims) - 1, -1, -1):
            far = self.f.put(f"icmp sge i64 {view.strides[dim]}, {reach}")
            one = self.f.put(f"icmp sle i64 {view.dims[dim]}, 1")
            self.need(self.f.put(f"or i1 {far}, {one}"), f"elements of `{name}` must not overlap, in C order")
            if dim:
                whole = self.f.put(f"mul i64 {view.strides[dim]}, {view.dims[dim]}")
                reach = self.f.put(f"select i1 {one}, i64 {reach}, i64 {whole}")

    def empty(self) -> str:
        """Return the i1 that says that each output has an extent of 0."""
        whole = "true"
        for one in self.signature.outputs:
            none = "false"
            for extent in self.dims[one.name]:
                none = self.f.put(f"or i1 {none}, {self.f.put(f'icmp eq i64 {extent}, 0')}")
            whole = self.f.put(f"and i1 {whole}, {none}")
        return whole

    def shapes(self, exprs: Sequence[Expr | None]) -> tuple[str | None, ...]:
        """Return the extents that the inputs serve of an output, at least 0; None where nothing says."""
        found: list[str | None] = []
        for expr in exprs:
            if expr is None:
                found.append(None)
                continue
            (value,) = self.sizes.values([expr])
            found.append(self.f.put(f"select i1 {self.f.put(f'icmp sgt i64 {value}, 0')}, i64 {value}, i64 0"))
        return tuple(found)

    def block(self, slots: Sequence[Slot], threads: str) -> tuple[str, str]:
        """Return the argument block of the kernel's own entry, filled, and the record of an error."""
        f = self.f
        block, record = f.early(f"alloca [{len(slots)} x i64], align 64"), f.early("alloca [4 x i64], align 64")
        f.act(f"store i64 0, ptr {record}, align 8")
        for k, slot in enumerate(slots):
            kind, value = self._word(slot, threads, record)
            where = f.put(f"getelementptr i64, ptr {block}, i64 {k}") if k else block
            f.act(f"store {kind} {value}, ptr {where}, align 8")
        return block, record

    def _word(self, slot: Slot, threads: str, record: str) -> tuple[str, str]:
        match slot.kind:
            case SlotKind.POINTER:
                return "ptr", self.views[slot.name].data
            case SlotKind.STRIDE:
                return "i64", self.views[slot.name].strides[slot.dim]
            case SlotKind.SIZE:
                return "i64", self.dims[slot.name][slot.dim]
            case SlotKind.SCALAR:
                return "i64", self.scalars[slot.name].word
            case SlotKind.THREADS:
                return "i64", threads
            case SlotKind.ERROR:
                return "ptr", record


def said(signature: Signature, check: Check) -> str:
    """Return a check in words, without the numbers of a call."""
    dim, size = signature.dim(check.source, check.dim), size_text(check.size)
    low, high = size_text(check.lo), size_text(check.hi)
    match check.kind:
        case CheckKind.READ:
            return f"`{check.stage}` reads `{check.source}` at {low} to {high} of its {dim}, which has {size} elements"
        case CheckKind.WRITE:
            return f"`{check.stage}` may write `{check.source}` at {low} to {high} of its {dim}, which has {size}"
        case CheckKind.EXTENT:
            return f"`{check.source}` must have extent {low} in {dim}"
        case CheckKind.AGREE:
            return f"the inputs serve `{check.stage}` to different extents, {low} and {high}, in {dim}"
        case CheckKind.PROMISE | CheckKind.LANES:
            return f"the schedule says {check.stage} of `{check.source}`, which is {low} to {high} there"
