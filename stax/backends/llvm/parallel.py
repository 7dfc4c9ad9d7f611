"""Parallel loops: the body becomes a function of its own, which the runtime calls for each iteration.

Perfectly nested parallel loops, whose extents do not vary, are one; those further inside run serially. A serial nest of
a long program becomes a function too: LLVM's time for a function grows faster than its length.
"""

from __future__ import annotations

from stax.backends.artifact import Slot, SlotKind
from stax.backends.llvm import loop, stmt, types
from stax.backends.llvm.expr import emit_scalar
from stax.backends.llvm.lanes import Part
from stax.backends.llvm.state import Bound, State
from stax.backends.llvm.writer import Function
from stax.expr import walk
from stax.expr.nodes import INDEX
from stax.loops.nodes import For, LoopKind


def emit_parallel(s: State, node: For) -> None:
    """Append a call of the runtime, and the function that it calls."""
    f, nest = s.f, _nest(node)
    extents = [emit_scalar(s, n.extent) for n in nest]
    if all(types.known(e) in (0, 1) for e in extents):
        loop.emit_for(s, node)
        return
    starts = [emit_scalar(s, n.start) for n in nest]
    total = "1"
    for n in extents:
        known = types.known(n)
        total = f.mul(total, str(max(0, known)) if known is not None else f.over("smax", "i64", 0, n, "0"))
    inner = State(s.context, Function(f.module), s, parallel=True)
    with inner.scope() as scope:
        rest = "%i"
        for k in range(len(nest) - 1, -1, -1):
            start, at = inner.capture(starts[k], "i64"), rest
            if k:
                extent = inner.capture(extents[k], "i64")
                at = inner.f.put(f"urem i64 {rest}, {extent}")
                rest = inner.f.put(f"udiv i64 {rest}, {extent}")
            scope.names[nest[k].var.name] = Bound(INDEX, (), [Part(inner.f.add(start, at))])
        stmt.emit_block(inner, nest[-1].body)
    name, block = _task(s, inner)
    f.fence()
    f.module.declare("i32 @stax_par_for(ptr, ptr, i64, i32)")
    threads = f.put(f"trunc i64 {s.word(Slot(SlotKind.THREADS))} to i32")
    _checked(s, f"call i32 @stax_par_for(ptr {name}, ptr {block}, i64 {total}, i32 {threads})")


def emit_apart(s: State, node: For) -> None:
    """Append a call of a function that runs the loop `node`."""
    inner = State(s.context, Function(s.f.module), s)
    with inner.scope():
        loop.emit_for(inner, node)
    name, block = _task(s, inner)
    _checked(s, f"call i32 {name}(ptr {block}, i64 0)")


def _task(s: State, inner: State) -> tuple[str, str]:
    """Add the finished function `inner` to the module; return its name, and the block of what it captures, filled."""
    f = s.f
    s.context.tasks += 1
    name = f"@stax.task.{s.context.tasks}"
    f.module.functions.append(inner.text(f"define internal i32 {name}(ptr noalias readonly %ctx, i64 %i) noinline"))
    block = f.early(f"alloca [{max(8, inner.capture_bytes)} x i8], align 64")
    for text, (_, kind, at) in inner.captured.items():
        where = f.put(f"getelementptr i8, ptr {block}, i64 {at}") if at else block
        f.act(f"store {kind} {text}, ptr {where}, align {64 if kind[0] == '<' else 8}")
    return name, block


def _checked(s: State, call: str) -> None:
    """Append a call that returns an error code, and leave where it is not 0."""
    f = s.f
    code = f.name()
    f.act(f"{code} = {call}")
    bad, good = f.label("failed"), f.label("went")
    failed = f.put(f"icmp ne i32 {code}, 0")
    f.act(f"br i1 {failed}, label %{bad}, label %{good}, !prof {f.module.unlikely()}")
    f.begin(bad)
    s.leave(code)
    f.begin(good)


def _nest(node: For) -> list[For]:
    """Return `node` and the parallel loops that are all of its body, while their bounds do not vary within it."""
    found = [node]
    while len(found[-1].body.stmts) == 1:
        inside = found[-1].body.stmts[0]
        if not isinstance(inside, For) or inside.kind is not LoopKind.PARALLEL:
            break
        if walk.names((inside.start, inside.extent)) & {n.var.name for n in found}:
            break
        found.append(inside)
    return found
