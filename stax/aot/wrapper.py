"""The exported functions as LLVM text, to be linked with the kernel's own and with the pool's.

    int32_t NAME(arrays and Params in order, int32_t threads)    checks, then runs the kernel; 0 or a code
    int32_t NAME_shape(the same without outputs, shapes...)      fills the shapes that the inputs serve
    const char *NAME_message(int32_t code)                       what a code means

An array is a pointer, its extents, and its byte strides, which may be null where it is dense in C order. Codes of
checks are negative, those of the kernel itself positive.
"""

from __future__ import annotations

import numpy as np

from stax.algorithm.nodes import Table
from stax.aot.interface import Array, Interface, Number
from stax.backends.artifact import OUT_OF_MEMORY, Artifact
from stax.backends.llvm import types
from stax.backends.llvm.writer import Function, Module
from stax.dtypes import DType
from stax.runtime.checked import Checked, Given, Need, View
from stax.runtime.signature import Signature
from stax.target import Target

_SETUP = """
@stax_pool_ready = weak_odr global i32 0
%when = type { i32, ptr, ptr }
@llvm.global_ctors = appending global [1 x %when] [%when { i32 65535, ptr @stax.setup, ptr null }]
declare i32 @pthread_atfork(ptr, ptr, ptr) nounwind
declare void @stax_pool_lock()
declare void @stax_pool_unlock()
declare void @stax_pool_reset()
define internal void @stax.setup() nounwind {
  %pair = cmpxchg ptr @stax_pool_ready, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue { i32, i1 } %pair, 1
  br i1 %mine, label %first, label %done
first:
  %r = call i32 @pthread_atfork(ptr @stax_pool_lock, ptr @stax_pool_unlock, ptr @stax_pool_reset)
  br label %done
done:
  ret void
}
"""


class Messages:
    """What the codes of one library mean: the k-th text is that of -k."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def code(self, text: str) -> int:
        """Return the code of a text."""
        if text not in self.texts:
            self.texts.append(text)
        return -1 - self.texts.index(text)


def wrapper(face: Interface, signature: Signature, artifact: Artifact, target: Target) -> tuple[str, Messages]:
    """Return the text of the exported functions around the entry of `artifact`, and what their codes mean."""
    module, messages = Module(target), Messages()
    tables = {t.name: _table(module, k, t) for k, t in enumerate(signature.tables)}
    _call(module, messages, face, signature, artifact, tables)
    if face.shapes:
        _shape(module, messages, face, signature, tables)
    _message(module, face, messages)
    module.declare(f"i32 @{artifact.entry}(ptr)")
    head = f'target triple = "{target.triple}"' + (_SETUP if uses_pool(artifact.text) else "")
    return module.text(head), messages


def uses_pool(text: str) -> bool:
    """Return whether a kernel's text calls the pool: threads, or memory from the heap."""
    return "@stax_par_for(" in text or "@stax_alloc(" in text


def _call(
    module: Module,
    messages: Messages,
    face: Interface,
    signature: Signature,
    artifact: Artifact,
    tables: dict[str, View],
) -> None:
    f = Function(module)
    heads: list[str] = []
    views, scalars = dict(tables), dict[str, Given]()
    for k, one in enumerate(face.arguments):
        if isinstance(one, Number):
            heads.append(f"{_passed(one.dtype)} %p{k}")
            scalars[one.param] = _number(f, one.dtype, f"%p{k}")
        else:
            heads += [f"ptr %p{k}", *([f"ptr %e{k}", f"ptr %s{k}"] if one.rank else [])]
            view = _array(f, messages, one, k)
            views |= dict.fromkeys((one.input, *one.buffers) if one.input else one.buffers, view)
    heads.append("i32 %threads")
    check = Checked(f, signature, views, scalars, _needing(f, messages))
    check.declared()
    check.limits()
    check.small()
    _same_shapes(f, check, signature)
    full, none = f.label("some"), f.label("none")
    f.act(f"br i1 {check.empty()}, label %{none}, label %{full}")
    f.tail += [f"{none}:", "  ret i32 0"]
    f.begin(full)
    check.conditions(agreeing=False)
    for array in face.arrays:
        for buffer in array.buffers:
            check.facts(buffer, artifact.facts)
        if array.written:
            check.distinct(array.buffers[0])
    written = [a.buffers[0] for a in face.arrays if a.written]
    check.no_overlap(written, [a.buffers[0] for a in face.arrays if not a.written])
    least = f.put(f"select i1 {f.put('icmp sgt i32 %threads, 1')}, i32 %threads, i32 1")
    block, _ = check.block(artifact.slots, f.put(f"sext i32 {least} to i64"))
    result = f.name()
    f.act(f"{result} = call i32 @{artifact.entry}(ptr {block})")
    f.act(f"ret i32 {result}")
    module.functions.append(_function(f, f"define i32 @{face.name}({', '.join(heads)})"))


def _same_shapes(f: Function, check: Checked, signature: Signature) -> None:
    """Need one shape of the parts of an output."""
    for one in signature.outputs:
        for buffer in one.buffers:
            for mine, first in zip(check.views[buffer].dims, check.dims[one.name], strict=True):
                if mine != first:
                    check.need(f.put(f"icmp eq i64 {mine}, {first}"), f"`{buffer}` has not the shape of `{one.name}`")
    _overwritten(f, check, signature)


def _overwritten(f: Function, check: Checked, signature: Signature) -> None:
    """Need an Input that an output is kept over to have the extents that the inputs serve of the output."""
    held = {buffer: name for name, buffer in signature.overwritten}
    for one in signature.outputs:
        if one.buffers[0] in held:
            for dim, extent in enumerate(check.shapes(one.shape)):
                if extent is not None:
                    equal = f.put(f"icmp eq i64 {check.dims[one.name][dim]}, {extent}")
                    check.need(equal, f"`{held[one.buffers[0]]}` has not the shape of `{one.name}`, which it becomes")
    check.small()


def _shape(module: Module, messages: Messages, face: Interface, signature: Signature, tables: dict[str, View]) -> None:
    f = Function(module)
    heads: list[str] = []
    views, scalars = dict(tables), dict[str, Given]()
    need = _needing(f, messages)
    for k, one in enumerate(face.arguments):
        if isinstance(one, Number):
            heads.append(f"{_passed(one.dtype)} %p{k}")
            scalars[one.param] = _number(f, one.dtype, f"%p{k}")
        elif one.input and one.rank:
            heads.append(f"ptr %e{k}")
            need(f.put(f"icmp ne ptr %e{k}, null"), f"the shape of `{one.name}` is a null pointer")
            views[one.input] = View("null", _extents(f, need, one, k), ("0",) * one.rank, one.dtype.size_bytes)
    check = Checked(f, signature, views, scalars, need)
    check.declared()
    check.limits()
    for k, shape in enumerate(face.shapes):
        heads.append(f"ptr %o{k}")
        need(f.put(f"icmp ne ptr %o{k}, null"), f"the shape of `{shape.output}` is a null pointer")
        one = next(o for o in signature.outputs if o.name == shape.output)
        extents: list[str] = []
        for dim, extent in enumerate(check.shapes(one.shape)):
            where = f.put(f"getelementptr i64, ptr %o{k}, i64 {dim}") if dim else f"%o{k}"
            if extent is None:
                extents.append(f.put(f"load i64, ptr {where}, align 8"))
            else:
                check.small()
                f.act(f"store i64 {extent}, ptr {where}, align 8")
                extents.append(extent)
        check.dims[one.name] = tuple(extents)
    f.act("ret i32 0")
    module.functions.append(_function(f, f"define i32 @{face.name}_shape({', '.join(heads)})"))


def _message(module: Module, face: Interface, messages: Messages) -> None:
    texts = ["out of memory", *messages.texts]
    for k, text in enumerate(texts):
        data = text.encode() + b"\0"
        escaped = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data)
        module.functions.append(f'@stax.text.{k} = private unnamed_addr constant [{len(data)} x i8] c"{escaped}"')
    module.functions.append('@stax.text.fine = private unnamed_addr constant [9 x i8] c"no error\\00"')
    module.functions.append('@stax.text.other = private unnamed_addr constant [21 x i8] c"no code of this name\\00"')
    cases = "".join(f" i32 {-k if k else OUT_OF_MEMORY}, label %t{k}" for k in range(len(texts)))
    lines = [f"define ptr @{face.name}_message(i32 %code) nounwind {{", "start:"]
    lines += [f"  switch i32 %code, label %other [ i32 0, label %fine{cases} ]"]
    lines += [line for k in range(len(texts)) for line in (f"t{k}:", f"  ret ptr @stax.text.{k}")]
    lines += ["fine:", "  ret ptr @stax.text.fine", "other:", "  ret ptr @stax.text.other", "}"]
    module.functions.append("\n".join(lines))


def _needing(f: Function, messages: Messages) -> Need:
    def need(holds: str, text: str) -> None:
        good, bad = f.label("good"), f.label("bad")
        f.act(f"br i1 {holds}, label %{good}, label %{bad}")
        f.tail += [f"{bad}:", f"  ret i32 {messages.code(text)}"]
        f.begin(good)

    return need


def _array(f: Function, messages: Messages, one: Array, k: int) -> View:
    """Return the view of argument `k`, after looking for null pointers and negative extents."""
    need = _needing(f, messages)
    need(f.put(f"icmp ne ptr %p{k}, null"), f"`{one.name}` is a null pointer")
    if not one.rank:
        return View(f"%p{k}", (), (), one.dtype.size_bytes)
    need(f.put(f"icmp ne ptr %e{k}, null"), f"the shape of `{one.name}` is a null pointer")
    dims = _extents(f, need, one, k)
    dense, item = [str(one.dtype.size_bytes)], one.dtype.size_bytes
    for extent in reversed(dims[1:]):
        dense.append(f.put(f"mul i64 {dense[-1]}, {extent}"))
    strides: list[str] = []
    given, plain, both = f.label("given"), f.label("plain"), f.label("both")
    f.act(f"br i1 {f.put(f'icmp eq ptr %s{k}, null')}, label %{plain}, label %{given}")
    f.begin(given)
    loaded: list[str] = []
    for dim in range(one.rank):
        at, word = f.name(), f.name()
        f.act(f"{at} = getelementptr i64, ptr %s{k}, i64 {dim}")
        f.act(f"{word} = load i64, ptr {at}, align 8")
        loaded.append(word)
    f.act(f"br label %{both}")
    f.begin(plain)
    f.act(f"br label %{both}")
    f.begin(both)
    for word, other in zip(loaded, reversed(dense), strict=True):
        made = f.name()
        f.act(f"{made} = phi i64 [ {word}, %{given} ], [ {other}, %{plain} ]")
        strides.append(made)
    return View(f"%p{k}", dims, tuple(strides), item)


def _extents(f: Function, need: Need, one: Array, k: int) -> tuple[str, ...]:
    dims: list[str] = []
    for dim in range(one.rank):
        where = f.put(f"getelementptr i64, ptr %e{k}, i64 {dim}") if dim else f"%e{k}"
        extent = f.put(f"load i64, ptr {where}, align 8")
        need(f.put(f"icmp ult i64 {extent}, {1 << 48}"), f"an extent of `{one.name}` is negative or too large")
        dims.append(extent)
    return tuple(dims)


def _number(f: Function, dtype: DType, value: str) -> Given:
    """Return a scalar argument as the word that the kernel's entry takes."""
    if dtype.is_float and dtype.bits > 16:
        double = value if dtype.bits == 64 else f.put(f"fpext float {value} to double")
        bits = f.put(f"bitcast {types.element(dtype)} {value} to i{dtype.bits}")
        return Given(bits if dtype.bits == 64 else f.put(f"zext i{dtype.bits} {bits} to i64"), double)
    if dtype.bits == 64:
        return Given(value)
    if dtype.is_bool:
        return Given(f.put(f"zext i1 {f.put(f'icmp ne i8 {value}, 0')} to i64"))
    if dtype.name == "float16":
        half = f.put(f"bitcast i16 {value} to half")
        return Given(f.put(f"zext i16 {value} to i64"), f.put(f"fpext half {half} to double"))
    if dtype.is_float:
        wide = f.put(f"shl i32 {f.put(f'zext i16 {value} to i32')}, 16")
        single = f.put(f"bitcast i32 {wide} to float")
        return Given(f.put(f"zext i16 {value} to i64"), f.put(f"fpext float {single} to double"))
    return Given(f.put(f"{'sext' if dtype.is_signed else 'zext'} i{dtype.bits} {value} to i64"))


def _passed(dtype: DType) -> str:
    """Return the type of a scalar argument."""
    return types.memory(dtype) if not dtype.is_half else "i16"


def _table(module: Module, k: int, table: Table) -> View:
    """Add the cells of a Const to the module."""
    cells = np.ascontiguousarray(table.array)
    data = cells.tobytes()
    escaped = "".join(f"\\{b:02X}" for b in data)
    module.functions.append(
        f'@stax.table.{k} = internal unnamed_addr constant [{len(data)} x i8] c"{escaped}", align 64'
    )
    strides = tuple(str(s) for s in cells.strides)
    return View(f"@stax.table.{k}", tuple(str(n) for n in cells.shape), strides, cells.itemsize)


def _function(f: Function, head: str) -> str:
    return "\n".join(
        [f"{head} nounwind {{", "start:", *f.prologue, "  br label %body", "body:", *f.lines, *f.tail, "}"]
    )
