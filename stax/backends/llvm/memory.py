"""Loads and stores: addresses, masks, and lanes that are apart in memory.

Where a scalar condition does not hold, a load reads a cell of zeros and a store writes a spare cell, so that there is
no branch. Lanes are masked by instructions where the processor has them, else one by one in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stax import dtypes
from stax.backends.llvm import arith, types
from stax.backends.llvm.lanes import Part, scalar, vector
from stax.backends.llvm.state import Place, State
from stax.backends.llvm.writer import Narrow
from stax.dtypes import DType
from stax.expr.nodes import BinaryOp, Size

ZEROS_BYTES = 512
_MANY = 16
_APART = 4
_LINE_BYTES = 64
_LEAST_STREAMED_BYTES = 16
_BURST_BYTES = 1024
ZEROS = f"@stax.zeros = private unnamed_addr constant [{ZEROS_BYTES} x i8] zeroinitializer, align 64"
_RMW = {BinaryOp.ADD: "add", BinaryOp.SUB: "sub", BinaryOp.AND: "and", BinaryOp.OR: "or", BinaryOp.XOR: "xor"}


@dataclass(frozen=True, slots=True)
class Mask:
    """A conjunction: a condition for all lanes, and one for each; None where there is none."""

    whole: str | None
    lanes: str | None


@dataclass(frozen=True, slots=True)
class Address:
    """Where lane 0 is, and the bytes from lane to lane: a number, a name, or a vector of bytes from `first`.

    Those bytes may be `size` times a vector of `narrow` integers instead.
    """

    first: str
    step: int | str
    scattered: bool = False
    narrow: Narrow | None = None
    size: int = 1


def mask(s: State, parts: list[Part], lanes: int) -> Mask:
    """Return the conjunction of predicates."""
    whole: str | None = None
    each: str | None = None
    for part in parts:
        if part.text == "true":
            continue
        if part.slope is None:
            each = part.text if each is None else s.f.put(f"and {types.vector('i1', lanes)} {each}, {part.text}")
        else:
            whole = part.text if whole is None else s.f.put(f"and i1 {whole}, {part.text}")
    return Mask(whole, each)


def joined(s: State, m: Mask, lanes: int) -> str | None:
    """Return a mask as one vector; None where all hold."""
    kind = types.vector("i1", lanes)
    if m.lanes is None:
        return None if m.whole is None else s.f.splat(m.whole, "i1", lanes)
    if m.whole is None:
        return m.lanes
    return s.f.put(f"select i1 {m.whole}, {kind} {m.lanes}, {kind} zeroinitializer")


def address(s: State, place: Place, index: list[Part], lanes: int) -> Address:
    """Return where the lanes of an element lie."""
    f = s.f
    at, fixed, step_bytes = place.pointer, 0, 0
    steps: list[str] = []
    scattered: str | None = None
    narrow = _narrow(s, place, index)
    for part, stride in zip(index, place.strides, strict=True):
        size = types.known(stride)
        if part.slope is None and narrow is not None:
            continue
        if part.slope is None:
            kind = types.vector("i64", lanes)
            offsets = f.put(f"mul {kind} {part.text}, {f.splat(stride, 'i64', lanes)}") if size != 1 else part.text
            scattered = offsets if scattered is None else f.put(f"add {kind} {scattered}, {offsets}")
            continue
        at = _move(s, at, f.mul(part.text, stride))
        if size is None:
            at = _move(s, at, f.mul(str(part.offset), stride))
            if part.slope:
                steps.append(f.mul(str(part.slope), stride))
        else:
            fixed += part.offset * size
            step_bytes += part.slope * size
    at = _move(s, at, str(fixed))
    if narrow is not None:
        return Address(at, "", True, *narrow)
    if scattered is None and not steps:
        return Address(at, step_bytes)
    if scattered is None:
        step = str(step_bytes)
        for more in steps:
            step = f.add(step, more)
        return Address(at, step)
    linear = Part("0", step_bytes)
    for more in [vector(f, linear, dtypes.index, lanes)] if step_bytes else []:
        scattered = f.put(f"add {types.vector('i64', lanes)} {scattered}, {more}")
    for more in steps:
        row = types.row(list(range(lanes)), "i64")
        kind, all_more = types.vector("i64", lanes), f.splat(more, "i64", lanes)
        scattered = f.put(f"add {kind} {scattered}, {f.put(f'mul {kind} {all_more}, {row}')}")
    return Address(at, scattered, scattered=True)


def _narrow(s: State, place: Place, index: list[Part]) -> tuple[Narrow, int] | None:
    """Return the integers that alone tell lanes apart, with the bytes between them, where a small type has them."""
    vectors = [(part, stride) for part, stride in zip(index, place.strides, strict=True) if part.slope != 0]
    if len(vectors) != 1 or vectors[0][0].slope is not None:
        return None
    ((part, stride),) = vectors
    found, size = s.f.widened.get(part.text), types.known(stride)
    return None if found is None or size is None else (found, size)


def _move(s: State, at: str, by: str) -> str:
    return at if by == "0" else s.f.put(f"getelementptr i8, ptr {at}, i64 {by}")


def _lane(s: State, where: Address, k: int, lanes: int) -> str:
    """Return the address of lane `k`."""
    if where.narrow is not None:
        return _move(s, where.first, s.f.mul(_unpacked(s, where.narrow, k, lanes), str(where.size)))
    if where.scattered:
        offset = s.f.put(f"extractelement {types.vector('i64', lanes)} {where.step}, i64 {k}")
        return _move(s, where.first, offset)
    if isinstance(where.step, int):
        return _move(s, where.first, str(where.step * k))
    return _move(s, where.first, s.f.mul(where.step, str(k)))


def _hidden(s: State, where: Address, lanes: int) -> Address:
    """Return `where`, of which LLVM does not see that it moves with loops, where there are many lanes.

    It would look for the cheapest way to count each lane's address along, in time beyond all use.
    """
    if lanes < _MANY:
        return where
    return replace(where, first=s.f.put(f'call ptr asm "", "=r,0"(ptr {where.first})'))


def _unpacked(s: State, narrow: Narrow, k: int, lanes: int) -> str:
    """Return lane `k` as 64 bits, out of a word with its neighbours: taking words out of a vector is what is slow.

    LLVM 22 loses a mask of the neighbours where it looks through the word at lanes that were masked and shuffled, so
    that the word passes through an instruction of no bytes, which it does not look through.
    """
    f, words = s.f, lanes * narrow.bits // 64
    whole = f.put(f"bitcast <{lanes} x i{narrow.bits}> {narrow.text} to <{words} x i64>")
    word, at = f.put(f"extractelement <{words} x i64> {whole}, i64 {k * narrow.bits // 64}"), k * narrow.bits % 64
    word = f.put(f'call i64 asm "", "=r,0"(i64 {word})')
    if narrow.signed:
        word = f.put(f"shl i64 {word}, {64 - narrow.bits - at}") if at < 64 - narrow.bits else word
        return f.put(f"ashr i64 {word}, {64 - narrow.bits}")
    word = f.put(f"lshr i64 {word}, {at}") if at else word
    return f.put(f"and i64 {word}, {(1 << narrow.bits) - 1}")


def native_mask(s: State, dtype: DType) -> bool:
    """Return whether lanes of `dtype` can be masked by one instruction."""
    target = s.f.module.target
    return target.has("avx512bw") and target.has("avx512vl") if dtype.size_bytes < 4 else target.has("avx")


def load(s: State, place: Place, index: list[Part], m: Mask, other: str | None, lanes: int) -> Part:
    """Return the element at `index`, or `other` where the mask does not hold."""
    f, kind = s.f, types.memory(place.dtype)
    where = address(s, place, index, lanes)
    if not lanes or (where.step == 0 and m.lanes is None):
        return Part(_value(s, _one(s, place, where.first, m.whole, other), place.dtype, 0))
    size = place.dtype.size_bytes
    wide = types.vector(kind, lanes)
    if where.step in (size, -size) and (m.lanes is None or native_mask(s, place.dtype)):
        at = where.first if where.step == size else _move(s, where.first, str(-size * (lanes - 1)))
        if m.lanes is None:
            at, rest = _safe(s, at, m.whole), types.splat(other, kind, lanes) if other is not None else None
            found = f.read(f"load {wide}, ptr {at}, align {place.align}, !tbaa {place.tag}", place.name)
            found = _reversed(s, found, kind, lanes) if where.step == -size else found
            if m.whole is not None and rest is not None and other != "0":
                found = f.put(f"select i1 {m.whole}, {wide} {found}, {wide} {rest}")
        else:
            on = joined(s, m, lanes) or ""
            on = _reversed(s, on, "i1", lanes) if where.step == -size else on
            rest = "zeroinitializer" if other is None else types.splat(other, kind, lanes)  # it may be an index
            name = f"@llvm.masked.load.{types.mangled(kind, lanes)}.p0"
            f.module.declare(f"{wide} {name}(ptr, {types.vector('i1', lanes)}, {wide})")
            found = f.read(
                f"call {wide} {name}(ptr align {place.align} {at}, {types.vector('i1', lanes)} {on}, {wide} {rest}), "
                f"!tbaa {place.tag}",
                place.name,
            )
            found = _reversed(s, found, kind, lanes) if where.step == -size else found
        return Part(_value(s, found, place.dtype, lanes), None)
    apart = abs(where.step) // size if isinstance(where.step, int) and where.step % size == 0 else 0
    if 2 <= apart <= _APART and lanes >= 4 and m.lanes is None and apart * lanes * size <= ZEROS_BYTES:
        found = _every(s, place, where, m.whole, apart, lanes)
        if m.whole is not None and other is not None and other != "0":
            found = f.put(f"select i1 {m.whole}, {wide} {found}, {wide} {types.splat(other, kind, lanes)}")
        return Part(_value(s, found, place.dtype, lanes), None)
    on, where = joined(s, m, lanes), _hidden(s, where, lanes)
    total = "poison"
    for k in range(lanes):
        keep = f.put(f"extractelement {types.vector('i1', lanes)} {on}, i64 {k}") if on is not None else None
        one = _one(s, place, _lane(s, where, k, lanes), keep, other)
        total = f.put(f"insertelement {wide} {total}, {kind} {one}, i64 {k}")
    return Part(_value(s, total, place.dtype, lanes), None)


def prefetch(s: State, place: Place, index: list[Part]) -> None:
    """Fetch the line of a cell into the caches; there may be none at that address."""
    s.f.module.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    at = address(s, place, index, 0).first
    s.f.act(f"call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 3, i32 1)")


def beside(s: State, place: Place, index: list[Part], base: str, by: int, lanes: int) -> Part:
    """Return the vector at `index`, whose lanes are those of `base` moved by one, and an element of its own."""
    f, kind = s.f, types.memory(place.dtype)
    wide, where = types.vector(kind, lanes), address(s, place, index, lanes)
    own = _one(s, place, _lane(s, where, 0 if by < 0 else lanes - 1, lanes), None, None)
    order = [2 * lanes - 1, *range(lanes - 1)] if by < 0 else [*range(1, lanes), lanes]
    one = f.splat(own, kind, lanes)
    moved = f.put(f"shufflevector {wide} {base}, {wide} {one}, <{lanes} x i32> {types.row(order, 'i32')}")
    return Part(moved, None)


def tile(s: State, place: Place, index: list[Part], lanes: int) -> list[str]:
    """Return the vectors at `index` and at the `lanes - 1` positions after it: rows are loaded, and turned.

    Method: log2(lanes) rounds, each interleaving the first half of the vectors with the second.
    """
    f, kind = s.f, types.memory(place.dtype)
    wide, where = types.vector(kind, lanes), address(s, place, index, lanes)
    rows = [
        f.read(f"load {wide}, ptr {_lane(s, where, k, lanes)}, align {place.align}, !tbaa {place.tag}", place.name)
        for k in range(lanes)
    ]
    _fetch_rows(s, place, where, index[-1], lanes)
    half = lanes // 2
    low = types.row([k // 2 + lanes * (k % 2) for k in range(lanes)], "i32")
    high = types.row([half + k // 2 + lanes * (k % 2) for k in range(lanes)], "i32")
    for _ in range(lanes.bit_length() - 1):
        pairs = list(zip(rows[:half], rows[half:], strict=True))
        rows = [
            f.put(f"shufflevector {wide} {a}, {wide} {b}, <{lanes} x i32> {order}")
            for a, b in pairs
            for order in (low, high)
        ]
    return [_value(s, row, place.dtype, lanes) for row in rows]


def _fetch_rows(s: State, place: Place, where: Address, column: Part, lanes: int) -> None:
    """Fetch ahead what the tiles after this one need, a kilobyte of one row after the other.

    Read tile by tile, as many streams as there are lanes would share the banks of memory; in bursts there is one at a
    time. A step fetches as many lines as it uses, of the row whose turn it is; near the end of the rows, of those that
    the next lanes will read.
    """
    size = place.dtype.size_bytes
    lines = lanes * lanes * size // _LINE_BYTES
    if not lines or where.scattered:
        return
    f = s.f
    f.module.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    steps = _BURST_BYTES // (lines * _LINE_BYTES)
    col = scalar(f, column, dtypes.index)
    step = f.put(f"lshr i64 {col}, {lanes.bit_length() - 1}")
    row = f.put(f"and i64 {f.put(f'lshr i64 {step}, {steps.bit_length() - 1}')}, {lanes - 1}")
    part = f.put(f"and i64 {step}, {steps - 1}")
    past = f.put(f"and i64 {col}, {_BURST_BYTES // size - 1}")
    at = _move(s, where.first, f.mul(str(where.step), row))
    at = _move(s, at, f.mul(past, str(-size)))
    at = _move(s, at, f.mul(part, str(lines * _LINE_BYTES)))
    extent = s.context.buffers[place.name].shape[-1] if place.name in s.context.buffers else None
    if isinstance(extent, Size):
        end = f.mul(s.size(extent), str(size))
        reached = f.add(f.mul(f.sub(col, past), str(size)), f.mul(part, str(lines * _LINE_BYTES)))
        over = f.put(f"icmp sge i64 {f.add(reached, str(2 * _BURST_BYTES))}, {end}")
        jump = f.sub(f.mul(str(where.step), str(lanes)), end)
        at = _move(s, at, f.put(f"select i1 {over}, i64 {jump}, i64 0"))
    for k in range(lines):
        ahead = _move(s, at, str(2 * _BURST_BYTES + _LINE_BYTES * k))
        f.act(f"call void @llvm.prefetch.p0(ptr {ahead}, i32 0, i32 3, i32 1)")


def _every(s: State, place: Place, where: Address, keep: str | None, apart: int, lanes: int) -> str:
    """Return lanes that are `apart` elements from each other, by vectors that cover the first to the last of them."""
    f, kind, size = s.f, types.memory(place.dtype), place.dtype.size_bytes
    wide, back = types.vector(kind, lanes), isinstance(where.step, int) and where.step < 0
    first = _safe(s, _move(s, where.first, str(-size * apart * (lanes - 1))) if back else where.first, keep)
    starts = [*(j * lanes for j in range(apart - 1)), (apart - 1) * (lanes - 1)]  # the last ends with the last element
    wanted = [apart * (lanes - 1 - k if back else k) for k in range(lanes)]
    total = ""
    for j, start in enumerate(starts):
        at = _move(s, first, str(start * size))
        more = f.read(f"load {wide}, ptr {at}, align {place.align}, !tbaa {place.tag}", place.name)
        if j == 0:
            total = more
            continue
        lower = starts[j - 1] + lanes
        pick: list[int] = []
        for k, n in enumerate(wanted):  # lanes of later vectors are filled with what comes, and replaced by those
            old = k if j > 1 else min(n, lanes - 1)
            pick.append(min(lanes + n - start, 2 * lanes - 1) if n >= lower else old)
        order = types.row(pick, "i32")
        total = f.put(f"shufflevector {wide} {total}, {wide} {more}, <{lanes} x i32> {order}")
    return total


def _one(s: State, place: Place, at: str, keep: str | None, other: str | None) -> str:
    kind = types.memory(place.dtype)
    found = s.f.read(f"load {kind}, ptr {_safe(s, at, keep)}, align {place.align}, !tbaa {place.tag}", place.name)
    if keep is None or other is None or other == "0":
        return found
    return s.f.put(f"select i1 {keep}, {kind} {found}, {kind} {other}")


def _safe(s: State, at: str, keep: str | None) -> str:
    if keep is None:
        return at
    s.f.module.zeros = True
    return s.f.put(f"select i1 {keep}, ptr {at}, ptr @stax.zeros")


def _value(s: State, found: str, dtype: DType, lanes: int) -> str:
    """Return what was loaded as a value."""
    return (
        s.f.put(f"icmp ne {types.vector('i8', lanes)} {found}, {types.splat('0', 'i8', lanes)}")
        if dtype.is_bool
        else found
    )


def _reversed(s: State, found: str, element: str, lanes: int) -> str:
    kind = types.vector(element, lanes)
    order = types.row(list(range(lanes - 1, -1, -1)), "i32")
    return s.f.put(f"shufflevector {kind} {found}, {kind} poison, <{lanes} x i32> {order}")


def store(
    s: State, place: Place, index: list[Part], m: Mask, value: Part, lanes: int, atomic: BinaryOp | None,
    stream: bool = False,
) -> None:  # fmt: skip
    """Write one component; where lanes meet in memory the last one stays. With `stream`, past the caches."""
    f, kind, dtype = s.f, types.memory(place.dtype), place.dtype
    where = address(s, place, index, lanes)
    size = dtype.size_bytes
    shared = value.slope == 0 and where.step == 0 and m.lanes is None and atomic is None
    if not lanes or shared:
        text = stored(s, scalar(f, value, dtype), dtype, 0)
        _put_one(s, place, where.first, text, m.whole, atomic)
        return
    text = stored(s, vector(f, value, dtype, lanes), dtype, lanes)
    wide = types.vector(kind, lanes)
    only = None if m.lanes is None or atomic is not None else _only(m.lanes)
    if only is not None:  # LLVM 22 stores all bytes of what a masked store of one lane would have cut off
        one = f.put(f"extractelement {wide} {text}, i64 {only}")
        _put_one(s, place, _lane(s, where, only, lanes), one, m.whole, atomic)
        return
    if atomic is None and where.step in (size, -size) and (m.lanes is None or native_mask(s, dtype)):
        back = where.step == -size
        at = _move(s, where.first, str(-size * (lanes - 1))) if back else where.first
        text = _reversed(s, text, kind, lanes) if back else text
        if m.lanes is None:
            at = _spare(s, at, m.whole, size * lanes)
            if (
                stream
                and m.whole is None
                and lanes * size >= _LEAST_STREAMED_BYTES
                and not lanes * size & (lanes * size - 1)
            ):
                _streamed(s, place, at, text, wide, lanes * size)
                return
            f.act(f"store {wide} {text}, ptr {at}, align {place.align}, !tbaa {place.tag}")
            return
        on = joined(s, m, lanes) or ""
        on = _reversed(s, on, "i1", lanes) if back else on
        name, flag = f"@llvm.masked.store.{types.mangled(kind, lanes)}.p0", types.vector("i1", lanes)
        f.module.declare(f"void {name}({wide}, ptr, {flag})")
        f.act(f"call void {name}({wide} {text}, ptr align {place.align} {at}, {flag} {on}), !tbaa {place.tag}")
        return
    on, where = joined(s, m, lanes), _hidden(s, where, lanes)
    for k in range(lanes):
        keep = f.put(f"extractelement {types.vector('i1', lanes)} {on}, i64 {k}") if on is not None else None
        one = f.put(f"extractelement {wide} {text}, i64 {k}")
        _put_one(s, place, _lane(s, where, k, lanes), one, keep, atomic)


def _only(lanes: str) -> int | None:
    """Return the one lane that holds, of a mask that is known."""
    found = [k for k, flag in enumerate(lanes[1:-1].split(", ")) if flag == "i1 true"] if lanes[0] == "<" else []
    return found[0] if len(found) == 1 else None


def _streamed(s: State, place: Place, at: str, text: str, wide: str, size: int) -> None:
    """Write a vector past the caches where its address is a multiple of its size, or in pieces of 16 bytes.

    Arrays are mostly at multiples of 16, and pieces that follow each other leave as whole lines; at other addresses a
    vector is written as any other.
    """
    f, aligned = s.f, min(size, _LINE_BYTES)
    f.streams = True
    bits = f.put(f"ptrtoint ptr {at} to i64")
    join = f.label("stored")
    for align in dict.fromkeys((aligned, _LEAST_STREAMED_BYTES)):
        low = f.put(f"and i64 {bits}, {align - 1}")
        past, plain = f.label("past"), f.label("plain")
        f.act(f"br i1 {f.put(f'icmp eq i64 {low}, 0')}, label %{past}, label %{plain}")
        f.begin(past)
        f.act(f"store {wide} {text}, ptr {at}, align {align}, !tbaa {place.tag}, !nontemporal {f.module.once()}")
        f.act(f"br label %{join}")
        f.begin(plain)
    f.act(f"store {wide} {text}, ptr {at}, align {place.align}, !tbaa {place.tag}")
    f.act(f"br label %{join}")
    f.begin(join)


def stored(s: State, text: str, dtype: DType, lanes: int) -> str:
    """Return a value as it is kept in memory."""
    if not dtype.is_bool:
        return text
    return s.f.put(f"zext {types.vector('i1', lanes)} {text} to {types.vector('i8', lanes)}")


def _spare(s: State, at: str, keep: str | None, size: int) -> str:
    if keep is None:
        return at
    s.sink_bytes = max(s.sink_bytes, size)
    return s.f.put(f"select i1 {keep}, ptr {at}, ptr %sink")


def _put_one(s: State, place: Place, at: str, text: str, keep: str | None, atomic: BinaryOp | None) -> None:
    kind = types.memory(place.dtype)
    at = _spare(s, at, keep, 8)
    if atomic is None:
        s.f.act(f"store {kind} {text}, ptr {at}, align {place.align}, !tbaa {place.tag}")
        return
    dtype, align = place.dtype, place.dtype.size_bytes
    word = _RMW.get(atomic) if dtype.is_integer else None
    if dtype.is_integer and atomic in (BinaryOp.MIN, BinaryOp.MAX):
        word = ("" if dtype.is_signed else "u") + atomic.value
    if dtype.is_float and dtype.bits > 16 and atomic is BinaryOp.ADD:
        word = "fadd"
    if word is not None:
        s.f.act(f"{s.f.name()} = atomicrmw {word} ptr {at}, {kind} {text} monotonic, align {align}, !tbaa {place.tag}")
        return
    _exchange(s, place, at, text, atomic)


def _exchange(s: State, place: Place, at: str, text: str, op: BinaryOp) -> None:
    """Combine into a cell by trying until nobody else has written it meanwhile."""
    f, dtype = s.f, place.dtype
    kind, bits = types.memory(dtype), f"i{8 * dtype.size_bytes}"
    before, head, done = f.block, f.label("try"), f.label("done")
    first = f.name()
    f.act(f"{first} = load {bits}, ptr {at}, align {dtype.size_bytes}, !tbaa {place.tag}")
    f.act(f"br label %{head}")
    f.begin(head)
    old, pair, seen, won = f.name(), f.name(), f.name(), f.name()
    f.act(f"{old} = phi {bits} [ {first}, %{before} ], [ {seen}, %{head} ]")
    with f.part():
        value = f.put(f"bitcast {bits} {old} to {kind}") if kind != bits else old
        if dtype.is_bool:
            both = arith.binary(f, op, _value(s, value, dtype, 0), f.put(f"trunc i8 {text} to i1"), dtype, 0)
            new = stored(s, both, dtype, 0)
        else:
            new = arith.binary(f, op, value, text, dtype, 0)
        new = f.put(f"bitcast {kind} {new} to {bits}") if kind != bits else new
    f.act(f"{pair} = cmpxchg ptr {at}, {bits} {old}, {bits} {new} monotonic monotonic, align {dtype.size_bytes}")
    f.act(f"{seen} = extractvalue {{ {bits}, i1 }} {pair}, 0")
    f.act(f"{won} = extractvalue {{ {bits}, i1 }} {pair}, 1")
    f.act(f"br i1 {won}, label %{done}, label %{head}")
    f.begin(done)
