"""Statements: blocks and what they bind, scratch memory, stores and branches."""

from __future__ import annotations

from typing import assert_never

from stax.backends.llvm import loop, memory, parallel, pixels, types
from stax.backends.llvm.expr import emit, emit_scalar
from stax.backends.llvm.lanes import scalar
from stax.backends.llvm.state import Bound, Place, State
from stax.expr import build
from stax.loops import walk
from stax.loops.nodes import Allocate, Block, Buffer, For, If, Let, LoopKind, Memory, Prefetch, Stmt, Store, Timed

_STACK_BYTES = 64 << 10
_HEAP_ALIGN = 64


def emit_block(s: State, block: Block) -> None:
    """Append the statements of `block`, in the scope that is open; its scratch is freed after the last use of it."""
    last = _last_uses(block)
    done = 0
    for k, stmt in enumerate(block.stmts):
        if k < done:
            continue
        run = pixels.run(s, block.stmts, k) if isinstance(stmt, Store) else None
        if run is None:
            emit_stmt(s, stmt)
            done = k + 1
        else:
            for let in run.lets:
                emit_stmt(s, let)
            pixels.store(s, run)
            done = k + run.count
        for name, at in last.items():
            if k <= at < done:
                _free(s, name)


def _last_uses(block: Block) -> dict[str, int]:
    """Return, for each scratch of `block`, the last of its statements that touches it."""
    found = {stmt.buffer.name: k for k, stmt in enumerate(block.stmts) if isinstance(stmt, Allocate)}
    if found:
        for k, stmt in enumerate(block.stmts):
            for name in walk.buffers_loaded(stmt) | walk.buffers_stored(stmt):
                if name in found:
                    found[name] = k
    return found


def emit_stmt(s: State, stmt: Stmt) -> None:
    """Append one statement."""
    match stmt:
        case Block():
            with s.scope():
                emit_block(s, stmt)
        case Allocate(buffer=buffer):
            s.scopes[-1].places[buffer.name] = _scratch(s, buffer)
        case Let(name=name, value=value):
            s.scopes[-1].names[name.name] = Bound(value.dtype, value.axes, emit(s, value))
        case Store():
            _store(s, stmt)
        case Prefetch(buffer=buffer, index=index):
            memory.prefetch(s, s.place(buffer), [emit(s, i)[0] for i in index])
        case For(kind=LoopKind.PARALLEL) if not s.parallel:
            parallel.emit_parallel(s, stmt)
        case For() if s.outer is None and s.context.long and not stmt.carries:
            parallel.emit_apart(s, stmt)
        case For():
            loop.emit_for(s, stmt)
        case If():
            _branch(s, stmt)
        case Timed():
            _timed(s, stmt)
        case _:
            assert_never(stmt)


def _store(s: State, stmt: Store) -> None:
    layout = s.context.layout
    exprs = (*stmt.index, stmt.value, *stmt.mask)
    axes = layout.union(e.axes for e in exprs)
    rows = [layout.spread(emit(s, e), e.axes, axes) for e in exprs]
    rank, place = len(stmt.index), s.place(stmt.buffer)
    for k, run in enumerate(layout.widths(axes)):
        m = memory.mask(s, [row[k] for row in rows[rank + 1 :]], run.width)
        index = [row[k] for row in rows[:rank]]
        memory.store(s, place, index, m, rows[rank][k], run.width, stmt.atomic, stmt.stream)
    s.f.module.wrote(stmt.buffer)


def _scratch(s: State, buffer: Buffer) -> Place:
    f, size, kind = s.f, buffer.dtype.size_bytes, types.memory(buffer.dtype)
    tag = f.module.tag(buffer.name)
    f.module.wrote(buffer.name)
    constant = [build.integer(n) for n in buffer.shape]
    cells = 1
    for n in constant:
        cells *= max(0, n) if n is not None else 0
    fixed = None not in constant and buffer.memory is not Memory.HEAP
    asked = buffer.memory in (Memory.STACK, Memory.REGISTER)
    if fixed and (asked or s.stack_bytes + cells * size <= _STACK_BYTES):
        s.stack_bytes += cells * size
        f.module.thorough |= buffer.memory is Memory.REGISTER
        pointer = f.early(f"alloca [{cells} x {kind}], align {buffer.align}")
    else:
        pointer = _heap(s, buffer)
    strides = [str(size)]
    for n in reversed(buffer.shape[1:]):
        strides.insert(0, f.mul(strides[0], emit_scalar(s, n)))
    return Place(buffer.name, buffer.dtype, pointer, tuple(strides[: len(buffer.shape)]), size, tag)


def _heap(s: State, buffer: Buffer) -> str:
    """Return scratch from the runtime; where there is none, the function returns the code that the runtime gives.

    What is held is in a table, so that an error finds it wherever it comes from. In a loop it is kept from iteration to
    iteration, where it is not large: the heap is one for all threads.
    """
    f = s.f
    total, over = str(buffer.dtype.size_bytes), "false"
    for n in buffer.shape:
        extent = f.over("smax", "i64", 0, emit_scalar(s, n), "0")
        f.module.declare("{ i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)")
        pair = f.put(f"call {{ i64, i1 }} @llvm.smul.with.overflow.i64(i64 {total}, i64 {extent})")
        total = f.put(f"extractvalue {{ i64, i1 }} {pair}, 0")
        over = f.put(f"or i1 {over}, {f.put(f'extractvalue {{ i64, i1 }} {pair}, 1')}")
    if buffer.align > _HEAP_ALIGN:  # room to begin later
        pair = f.put(f"call {{ i64, i1 }} @llvm.sadd.with.overflow.i64(i64 {total}, i64 {buffer.align})")
        f.module.declare("{ i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)")
        total = f.put(f"extractvalue {{ i64, i1 }} {pair}, 0")
        over = f.put(f"or i1 {over}, {f.put(f'extractvalue {{ i64, i1 }} {pair}, 1')}")
    wanted = f.put(f"select i1 {over}, i64 {(1 << 63) - 1}, i64 {total}")
    f.module.declare("noalias ptr @stax_alloc(i64)")
    f.module.declare("void @stax_free(ptr)")
    f.module.out_of_memory = True
    slot = f.early(f"getelementptr i8, ptr %held, i64 {16 * s.slots}")
    s.slots += 1
    s.keeps |= bool(s.loops)
    pointer, code = f.name(), f.name()
    bytes_ = f.over("smax", "i64", 0, wanted, "1")
    if s.loops:
        f.act(f"{pointer} = call ptr @stax.scratch(ptr {slot}, i64 {bytes_})")
    else:
        f.act(f"{pointer} = call noalias ptr @stax_alloc(i64 {bytes_})")
    failed = f.put(f"icmp eq ptr {pointer}, null")
    bad, good = f.label("full"), f.label("held")
    f.act(f"br i1 {failed}, label %{bad}, label %{good}, !prof {f.module.unlikely()}")
    f.begin(bad)
    f.act(f"{code} = call i32 @stax.full(ptr {s.error()}, i64 {wanted})")
    s.leave(code)
    f.begin(good)
    if not s.loops:
        f.act(f"store ptr {pointer}, ptr {slot}, align 8")
    s.heap[buffer.name] = (pointer, slot)
    if buffer.align > _HEAP_ALIGN:
        past = f.put(f"and i64 {f.put(f'ptrtoint ptr {pointer} to i64')}, {buffer.align - 1}")
        rest = f.put(f"and i64 {f.put(f'sub i64 0, {past}')}, {buffer.align - 1}")
        return f.put(f"getelementptr i8, ptr {pointer}, i64 {rest}")
    return pointer


def _free(s: State, name: str) -> None:
    """Give back the scratch `name`, which may be on the stack."""
    held = s.heap.pop(name, None)
    if held is None:
        return
    if s.loops:
        s.f.act(f"call void @stax.drop(ptr {held[1]})")
        return
    s.f.act(f"call void @stax_free(ptr {held[0]})")
    s.f.act(f"store ptr null, ptr {held[1]}, align 8")


def _timed(s: State, stmt: Timed) -> None:
    """Append the body between two looks at the processor's clock, and what it took where other threads may add too."""
    f, place = s.f, s.place(stmt.buffer)
    start, end, took = f.name(), f.name(), f.name()
    f.module.declare("i64 @llvm.readcyclecounter()")
    f.act(f"{start} = call i64 @llvm.readcyclecounter()")
    emit_block(s, stmt.body)
    f.act(f"{end} = call i64 @llvm.readcyclecounter()")
    f.act(f"{took} = sub i64 {end}, {start}")
    for k, amount in enumerate((took, "1")):
        where = f.put(f"getelementptr i8, ptr {place.pointer}, i64 {16 * stmt.row + 8 * k}")
        f.act(f"{f.name()} = atomicrmw add ptr {where}, i64 {amount} monotonic, align 8")


def _branch(s: State, stmt: If) -> None:
    f = s.f
    cond = scalar(f, emit(s, stmt.cond)[0], stmt.cond.dtype)
    if cond in ("true", "false"):
        with s.scope():
            emit_block(s, stmt.then if cond == "true" else stmt.orelse)
        return
    then, other, join = f.label("then"), f.label("else"), f.label("join")
    empty = not stmt.orelse.stmts
    f.act(f"br i1 {cond}, label %{then}, label %{join if empty else other}")
    for label, part in ((then, stmt.then), (other, stmt.orelse)):
        if part is stmt.orelse and empty:
            continue
        f.begin(label)
        with f.part(), s.scope():
            emit_block(s, part)
        f.act(f"br label %{join}")
    f.begin(join)
