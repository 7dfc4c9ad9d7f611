"""Runs compiled programs: their arguments as words, and a serial stand-in for the runtime."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from llvmlite import binding

from stax.backends.artifact import Artifact, Facts, SlotKind
from stax.backends.llvm.build import build as build_artifact
from stax.dtypes import DType
from stax.expr import build
from stax.expr.nodes import INDEX, Axes, Axis, Expr, Load, Param, Ramp, Size
from stax.loops.interpret import interpret
from stax.loops.nodes import Block, Buffer, For, LoopKind, Program, Role, Stmt, Store
from stax.target import Target

Array: TypeAlias = np.ndarray[Any, Any]
HOST = Target.host()
_RUNTIME = """
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
@stax_held = global i64 0
@stax_limit = global i64 4611686018427387904
define ptr @stax_alloc(i64 %n) {
  %cell = alloca ptr
  %limit = load i64, ptr @stax_limit
  %large = icmp sgt i64 %n, %limit
  br i1 %large, label %none, label %some
none:
  ret ptr null
some:
  %rc = call i32 @posix_memalign(ptr %cell, i64 64, i64 %n)
  %held = load i64, ptr @stax_held
  %more = add i64 %held, 1
  store i64 %more, ptr @stax_held
  %p = load ptr, ptr %cell
  ret ptr %p
}
define void @stax_free(ptr %p) {
  call void @free(ptr %p)
  %held = load i64, ptr @stax_held
  %less = sub i64 %held, 1
  store i64 %less, ptr @stax_held
  ret void
}
define i32 @stax_par_for(ptr %f, ptr %ctx, i64 %n, i32 %threads) {
start:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %start ], [ %next, %on ]
  %code = call i32 %f(ptr %ctx, i64 %i)
  %bad = icmp ne i32 %code, 0
  br i1 %bad, label %fail, label %on
on:
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
fail:
  ret i32 %code
done:
  ret i32 0
}
"""
_numbers = itertools.count()


class Runtime:
    """One loader, with the stand-ins."""

    def __init__(self) -> None:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        machine = binding.Target.from_triple(HOST.triple).create_target_machine(
            cpu=HOST.cpu, features=HOST.features, opt=2, reloc="pic", codemodel="default", jit=True
        )
        self.jit = binding.create_lljit_compiler(machine)
        module = binding.parse_assembly(_RUNTIME)
        module.triple, module.data_layout = HOST.triple, str(machine.target_data)
        names = ("stax_alloc", "stax_free", "stax_par_for", "stax_held", "stax_limit")
        self.symbols: dict[str, int] = {}
        self.kept = [self.link(machine.emit_object(module), names)]
        self.symbols = {name: self.kept[0][name] for name in names}

    def link(self, code: bytes, exports: tuple[str, ...]) -> Any:
        builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name in exports:
            builder.export_symbol(name)
        for name, address in self.symbols.items():
            builder.import_symbol(name, address)
        return builder.link(self.jit, f"test.{next(_numbers)}")

    def cell(self, name: str) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self.symbols[name])


_runtime: list[Runtime] = []


def runtime() -> Runtime:
    if not _runtime:
        _runtime.append(Runtime())
    return _runtime[0]


def facts_of(program: Program, arrays: Mapping[str, Array]) -> Facts:
    """Return what holds of `arrays`."""
    dense, aligned = set[str](), set[str]()
    for b in program.buffers:
        a = arrays[b.name]
        if a.ndim and a.strides[-1] == a.itemsize:
            dense.add(b.name)
        if all(x % a.itemsize == 0 for x in (a.ctypes.data, *a.strides)):
            aligned.add(b.name)
    return Facts(frozenset(dense), frozenset(aligned))


def call(artifact: Artifact, arrays: Mapping[str, Array], scalars: Mapping[str, Any]) -> tuple[int, list[int]]:
    """Run an artifact; return its code and its error record."""
    library = runtime().link(artifact.code, (artifact.entry,))
    error = (ctypes.c_int64 * 4)()
    words: list[int] = []
    for slot in artifact.slots:
        match slot.kind:
            case SlotKind.POINTER:
                words.append(arrays[slot.name].ctypes.data)
            case SlotKind.STRIDE:
                words.append(arrays[slot.name].strides[slot.dim])
            case SlotKind.SIZE:
                words.append(arrays[slot.name].shape[slot.dim])
            case SlotKind.SCALAR:
                words.append(int.from_bytes(np.asarray(scalars[slot.name]).tobytes(), "little"))
            case SlotKind.THREADS:
                words.append(2)
            case SlotKind.ERROR:
                words.append(ctypes.addressof(error))
    block = (ctypes.c_uint64 * len(words))(*(w & (2**64 - 1) for w in words))
    code = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(library[artifact.entry])(ctypes.addressof(block))
    library.close()
    return code, list(error)


def run(
    program: Program,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, Any] | None = None,
    target: Target = HOST,
    facts: Facts | None = None,
) -> None:
    """Compile and run `program`; all scratch must have been freed."""
    artifact = build_artifact(program, facts_of(program, arrays) if facts is None else facts, target)
    code, _ = call(artifact, arrays, scalars or {})
    assert code == 0
    assert runtime().cell("stax_held").value == 0


def check(
    program: Program,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, Any] | None = None,
    target: Target = HOST,
    facts: Facts | None = None,
) -> None:
    """Assert that compiled code and the interpreter leave the same bits, NaNs apart."""
    wanted = {name: a.copy() for name, a in arrays.items()}
    sizes = {(b.name, d): n for b in program.buffers for d, n in enumerate(arrays[b.name].shape)}
    interpret(program, wanted, {k: np.asarray(v)[()] for k, v in (scalars or {}).items()}, sizes)
    run(program, arrays, scalars, target, facts)
    for name, a in arrays.items():
        assert_same(a, wanted[name], name)


def assert_same(a: Array, b: Array, name: str = "") -> None:
    """Assert that two arrays have the same bits, NaNs apart."""
    kind = f"u{a.dtype.itemsize}"
    same = a.copy().view(kind) == b.copy().view(kind)
    if a.dtype.kind == "f":
        same |= np.isnan(a) & np.isnan(b)
    if not same.all():
        at = tuple(int(k[0]) for k in np.nonzero(~same))
        raise AssertionError(f"{name}{list(at)} is {a[at]!r}, not {b[at]!r} ({(~same).sum()} differ)")


def buffer(name: str, dtype: DType, rank: int = 1, role: Role = Role.INPUT) -> Buffer:
    """Return an array argument."""
    return Buffer(name, dtype, tuple(Size(INDEX, name, d) for d in range(rank)), role)


def size(name: str, dim: int = 0) -> Size:
    """Return an extent."""
    return Size(INDEX, name, dim)


def loop(var: str, extent: Expr | int, *body: Stmt, kind: LoopKind = LoopKind.SERIAL, **rest: Any) -> For:
    """Return a loop from 0."""
    n = build.index(extent) if isinstance(extent, int) else extent
    return For(build.local(var), build.index(0), n, kind, Block(body), **rest)


def program(
    buffers: list[Buffer], *body: Stmt, axes: Axes = (), params: tuple[Param, ...] = (), name: str = "p"
) -> Program:
    """Return a program that may use all sizes of its buffers."""
    sizes = tuple(Size(INDEX, b.name, d) for b in buffers for d in range(len(b.shape)))
    return Program(name, tuple(buffers), (*sizes, *params), Block(body), axes)


def elementwise(out: DType, ins: list[DType], make: Any, lanes: int) -> Program:
    """Return out[i] = make(a0[i], a1[i], ...), by `lanes` at once where that is not 0; the extent is a multiple."""
    buffers = [buffer(f"a{k}", t) for k, t in enumerate(ins)] + [buffer("out", out, role=Role.OUTPUT)]
    i: Expr = build.local("i")
    axes: Axes = ()
    extent: Expr = size("out")
    if lanes:
        axis = Axis("v", lanes)
        axes = (axis,)
        base = build.spread(build.mul(i, lanes), axes)
        i = build.add(base, Ramp(INDEX, axes=axes))
        extent = build.floordiv(extent, lanes)
    loads = [Load(t, f"a{k}", (i,), axes=axes) for k, t in enumerate(ins)]
    return program(buffers, loop("i", extent, Store("out", (i,), make(*loads))), axes=axes)
