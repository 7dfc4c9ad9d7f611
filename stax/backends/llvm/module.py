"""A program as one LLVM module, with the entry that the runtime calls."""

from __future__ import annotations

import re

from stax.backends.artifact import OUT_OF_MEMORY, Facts, Slot, SlotKind
from stax.backends.llvm import beside, effort, lanes, memory, stmt, tiles
from stax.backends.llvm.optimize import SHORT
from stax.backends.llvm.state import Context, State
from stax.backends.llvm.writer import Function, Module
from stax.expr.nodes import Param, Size
from stax.loops.nodes import For, Program
from stax.target import Target

_MANY_NESTS = 8
MOST_KEPT_BYTES = 256 << 10
_FULL = f"""define internal i32 @stax.full(ptr %record, i64 %bytes) cold noinline nounwind {{
  %pair = cmpxchg ptr %record, i64 0, i64 1 seq_cst seq_cst, align 8
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %write, label %out
write:
  %code = getelementptr i8, ptr %record, i64 8
  store i64 {OUT_OF_MEMORY}, ptr %code, align 8
  %first = getelementptr i8, ptr %record, i64 16
  store i64 %bytes, ptr %first, align 8
  br label %out
out:
  ret i32 {OUT_OF_MEMORY}
}}"""

_RELEASE = """define internal void @stax.release(ptr %held, i64 %count) noinline nounwind {
start:
  br label %loop
loop:
  %k = phi i64 [ 0, %start ], [ %next, %more ]
  %place = getelementptr [2 x i64], ptr %held, i64 %k
  %one = load ptr, ptr %place, align 8
  %none = icmp eq ptr %one, null
  br i1 %none, label %more, label %free
free:
  call void @stax_free(ptr %one)
  br label %more
more:
  %next = add nuw nsw i64 %k, 1
  %left = icmp ult i64 %next, %count
  br i1 %left, label %loop, label %done
done:
  ret void
}"""

_SCRATCH = f"""define internal ptr @stax.scratch(ptr %slot, i64 %bytes) nounwind {{
start:
  %size_at = getelementptr i8, ptr %slot, i64 8
  %size = load i64, ptr %size_at, align 8
  %fits = icmp ule i64 %bytes, %size
  br i1 %fits, label %keep, label %grow
keep:
  %same = load ptr, ptr %slot, align 8
  ret ptr %same
grow:
  %old = load ptr, ptr %slot, align 8
  store ptr null, ptr %slot, align 8
  store i64 0, ptr %size_at, align 8
  %first = icmp eq ptr %old, null
  br i1 %first, label %get, label %give
give:
  call void @stax_free(ptr %old)
  br label %get
get:
  %new = call ptr @stax_alloc(i64 %bytes)
  store ptr %new, ptr %slot, align 8
  %none = icmp eq ptr %new, null
  %large = icmp ugt i64 %bytes, {MOST_KEPT_BYTES}
  %once = or i1 %none, %large
  %capacity = select i1 %once, i64 0, i64 %bytes
  store i64 %capacity, ptr %size_at, align 8
  ret ptr %new
}}

define internal void @stax.drop(ptr %slot) nounwind {{
  %size_at = getelementptr i8, ptr %slot, i64 8
  %size = load i64, ptr %size_at, align 8
  %kept = icmp ne i64 %size, 0
  br i1 %kept, label %done, label %free
free:
  %one = load ptr, ptr %slot, align 8
  call void @stax_free(ptr %one)
  store ptr null, ptr %slot, align 8
  br label %done
done:
  ret void
}}"""
"""Scratch of the body of a loop: what is not large is kept for the next iteration, in a slot of pointer and size."""

_HALF = """define half @__truncdfhf2(double %x) nounwind {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %exact = fcmp oeq double %back, %x
  %size = bitcast double %x to i64
  %far = bitcast double %back to i64
  %past = icmp ugt i64 %far, %size
  %one = zext i1 %past to i32
  %bits = bitcast float %near to i32
  %below = sub i32 %bits, %one
  %odd = or i32 %below, 1
  %kept = select i1 %exact, i32 %bits, i32 %odd
  %single = bitcast i32 %kept to float
  %half = fptrunc float %single to half
  ret half %half
}
"""
"""LLVM turns the conversion of an integer, where a float holds it exactly, into one from double, and calls a helper."""


def slots(program: Program) -> tuple[Slot, ...]:
    """Return the argument block: each buffer's pointer and byte strides, then sizes, then params, THREADS, ERROR."""
    found: list[Slot] = []
    for buffer in program.buffers:
        found.append(Slot(SlotKind.POINTER, buffer.name))
        found += [Slot(SlotKind.STRIDE, buffer.name, d) for d in range(len(buffer.shape))]
    found += [Slot(SlotKind.SIZE, s.array, s.dim) for s in program.scalars if isinstance(s, Size)]
    found += [Slot(SlotKind.SCALAR, s.name) for s in program.scalars if isinstance(s, Param)]
    return (*found, Slot(SlotKind.THREADS), Slot(SlotKind.ERROR))


def entry(program: Program) -> str:
    """Return the symbol of the entry."""
    return "stax_kernel_" + re.sub(r"\W", "_", program.name, flags=re.ASCII)


def emit(program: Program, facts: Facts, target: Target) -> str:
    """Return `program` as the text of an LLVM module.

    What `facts` say of argument arrays is taken for granted. The text depends on nothing but the arguments.
    """
    words = {slot: k for k, slot in enumerate(slots(program))}
    context = Context(program, facts, lanes.layout(program), words, {b.name: b for b in program.buffers})
    context.tiles = tiles.find(program)
    context.beside = beside.find(program) if target.vector_bytes >= beside.LINE_BYTES else {}
    context.long = sum(isinstance(s, For) for s in program.body.stmts) > _MANY_NESTS
    module = Module(target)
    state = State(context, Function(module))
    stmt.emit_block(state, program.body)
    module.functions.append(state.text(f"define i32 @{entry(program)}(ptr noalias readonly %words)"))
    thorough = module.thorough or effort.has_fixed_access(program.body)
    head = [] if thorough else [SHORT]
    head += [f'target triple = "{target.triple}"']
    head += [memory.ZEROS] if module.zeros else []
    head += [_FULL, _RELEASE, _SCRATCH] if module.out_of_memory else []
    text = module.text("\n".join(head))
    return text + _HALF if " half" in text else text
