"""Stores of pixels: all channels of as many neighbouring points as there are lanes, interleaved into one vector.

Lanes that run along the last dimension but one are as many elements apart as there are channels; lanes of every second
element of a row are two apart. An unrolled loop over channels, or over the steps of such a row, stores them one after
another; lane by lane each element would take an extraction and a store of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stax.backends.llvm import memory, types
from stax.backends.llvm.expr import emit
from stax.backends.llvm.lanes import vector
from stax.backends.llvm.state import State
from stax.dtypes import DType
from stax.expr.affine import Algebra
from stax.expr.nodes import Load
from stax.expr.number import Numbering
from stax.expr.walk import postorder
from stax.loops.nodes import Let, Stmt, Store
from stax.loops.walk import MOST_CHANNELS, across, expressions


@dataclass(frozen=True, slots=True)
class Run:
    """`stores` of one buffer, channel after channel, and the `lets` that stand between them."""

    stores: tuple[Store, ...]
    lets: tuple[Let, ...]

    @property
    def count(self) -> int:
        """How many statements it replaces."""
        return len(self.stores) + len(self.lets)


def run(s: State, stmts: Sequence[Stmt], at: int) -> Run | None:
    """Return the stores of all channels of the same points that begin at `at`, if they do and may be made at once."""
    first = stmts[at]
    channels = _channels(s, first) if isinstance(first, Store) else 0
    if channels < 2:
        return None
    stores: list[Store] = []
    lets: list[Let] = []
    for k in range(at, len(stmts)):
        match stmts[k]:
            case Let() as stmt:
                lets.append(stmt)
            case Store(mask=(), atomic=None) as stmt if len(stmt.value.axes) == 1:
                stores.append(stmt)
            case _:
                return None
        if len(stores) == channels:
            found = Run(tuple(stores), tuple(lets))
            return found if _side_by_side(s, stores) and not _is_read(found) else None
    return None


def store(s: State, run: Run) -> None:
    """Write the channels of a run, as the shuffles and the store that LLVM knows as an interleaved store."""
    f, layout, first = s.f, s.context.layout, run.stores[0]
    place, axes = s.place(first.buffer), first.value.axes
    values = [emit(s, one.value) for one in run.stores]
    index = [layout.spread(emit(s, i), i.axes, axes) for i in first.index]
    for k, lanes in enumerate(layout.widths(axes)):
        at = memory.address(s, place, [row[k] for row in index], lanes.width).first
        rows = [memory.stored(s, vector(f, v[k], place.dtype, lanes.width), place.dtype, lanes.width) for v in values]
        mixed = _interleaved(s, rows, place.dtype, lanes.width)
        wide = types.vector(types.memory(place.dtype), lanes.width * len(rows))
        f.act(f"store {wide} {mixed}, ptr {at}, align {place.align}, !tbaa {place.tag}")
    f.module.wrote(first.buffer)


def _interleaved(s: State, rows: Sequence[str], dtype: DType, lanes: int) -> str:
    """Return the vector that has lane 0 of each row, then lane 1 of each."""
    one, two = (types.vector(types.memory(dtype), n * lanes) for n in (1, 2))
    both = types.row(list(range(2 * lanes)), "i32")
    pairs = [(*rows[k : k + 2], "poison")[:2] for k in range(0, len(rows), 2)]
    joined = [s.f.put(f"shufflevector {one} {a}, {one} {b}, <{2 * lanes} x i32> {both}") for a, b in pairs]
    a, b = (*joined, "poison")[:2]
    order = [c * lanes + lane for lane in range(lanes) for c in range(len(rows))]
    return s.f.put(f"shufflevector {two} {a}, {two} {b}, <{len(order)} x i32> {types.row(order, 'i32')}")


def _channels(s: State, stmt: Store) -> int:
    """Return how many elements neighbouring lanes are apart in memory; 0 where they are not few."""
    place, size = s.place(stmt.buffer), s.place(stmt.buffer).dtype.size_bytes
    if not place.strides or place.strides[-1] != str(size) or stmt.mask or stmt.atomic is not None:
        return 0
    if across(stmt.index):
        step = types.known(place.strides[-2])
        apart = step // size if step is not None else 0
    elif stmt.index[-1].axes and not any(i.axes for i in stmt.index[:-1]):
        apart = emit(s, stmt.index[-1])[0].slope or 0
    else:
        return 0
    return apart if apart <= MOST_CHANNELS else 0


def _side_by_side(s: State, stores: Sequence[Store]) -> bool:
    """Return whether the stores go to channel after channel of the same points, and lanes to neighbouring ones."""
    algebra, numbering = Algebra(), Numbering()
    first = stores[0]
    channel = algebra.of(first.index[-1])
    for k, one in enumerate(stores):
        gap = algebra.of(one.index[-1]) - channel
        same = all(numbering.of(i) == numbering.of(j) for i, j in zip(first.index[:-1], one.index[:-1], strict=True))
        if one.buffer != first.buffer or gap.terms or gap.const != k or not same:
            return False
    lanes, step = (first.index[-2], 1) if across(first.index) else (first.index[-1], len(stores))
    return all(part.slope == step for part in emit(s, lanes))


def _is_read(run: Run) -> bool:
    """Return whether what is stored is also read in between: then the order matters."""
    roots = [e for stmt in (*run.lets, *run.stores) for e in expressions(stmt)]
    return any(isinstance(node, Load) and node.buffer == run.stores[0].buffer for node in postorder(roots))
