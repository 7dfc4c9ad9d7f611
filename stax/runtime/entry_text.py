"""The entry that Python calls, as LLVM text: a function that reads NumPy arrays where they lie.

It has two heads, for METH_FASTCALL, which Python calls directly, and for a tuple and a dict, which a Kernel is called
with: each saves what the other would have to be turned into.

It takes the arguments in order and `out=`, and checks what `arguments.py` checks. Where anything differs - a type, a
layout, a size, a keyword - it calls the next callable of its table with the same arguments: another entry, or Python,
which converts or says what is wrong. So nothing here makes an error, and nothing here is a second meaning of a call.

Pointers of the process are in the table, so that the object code is the same in every process.
"""

from __future__ import annotations

from dataclasses import dataclass

from stax import dtypes
from stax.algorithm.nodes import Scalar
from stax.backends.artifact import Artifact
from stax.backends.llvm import types
from stax.backends.llvm.optimize import SHORT
from stax.backends.llvm.writer import Function, Module
from stax.dtypes import DType
from stax.errors import UnsupportedError
from stax.loops.walk import MOST_CHANNELS
from stax.runtime.checked import Checked, Given, View
from stax.runtime.signature import Output, Signature
from stax.target import Target

DIRECT, OF_KERNEL = "stax_entry", "stax_entry_of_kernel"
TABLE = "stax_table"
FIXED = (
    "array", "tuple", "float", "int", "true", "false", "out", "kernel", "next", "new_array",
    "threads", "calls", "ticks",
)  # fmt: skip
"""What stands first in the table; after it the type of each array, then the cells of each Const."""

_SMALL_ELEMENTS = 4096
_SHORT_TICKS = 100_000
_LARGE_BYTES = 64 << 10
_WRITEABLE = 0x400


@dataclass(frozen=True, slots=True)
class Layout:
    """Where CPython and NumPy keep what is read here: byte offsets into objects."""

    header: int

    @property
    def type(self) -> int:
        """The type of an object."""
        return self.header - 8

    @property
    def items(self) -> int:
        """The first item of a tuple, behind their number."""
        return self.header + 8

    def field(self, name: str) -> int:
        """Return the offset of a field of an array."""
        return self.header + {"data": 0, "nd": 8, "dims": 16, "strides": 24, "descr": 40, "flags": 48}[name]


@dataclass(frozen=True, slots=True)
class Entry:
    """`dtypes` and `tables` say what follows FIXED in the table."""

    text: str
    dtypes: tuple[DType, ...]
    tables: tuple[str, ...]


def entry_text(
    signature: Signature, artifact: Artifact, pixels: frozenset[str], layout: Layout, target: Target
) -> Entry:
    """Return the entry of the version `artifact`. Raises UnsupportedError where only Python can check a call."""
    return _Writer(signature, artifact, pixels, layout, target).entry()


class _Writer:
    def __init__(
        self, signature: Signature, artifact: Artifact, pixels: frozenset[str], layout: Layout, target: Target
    ) -> None:
        if signature.overwritten or any(o.origin for o in signature.outputs):
            raise UnsupportedError("arguments that are written over, and moved outputs, are left to Python")
        if not {*(i.name for i in signature.inputs), *(b for o in signature.outputs for b in o.buffers)} <= (
            artifact.facts.aligned
        ):
            raise UnsupportedError("arrays that are not aligned are left to Python")
        if any(s.dtype.is_half for s in signature.scalars):
            raise UnsupportedError("Params of 16 bits are left to Python")
        if len(signature.outputs) > 1 and any(len(o.dtypes) > 1 for o in signature.outputs):
            raise UnsupportedError("outputs of several parts among others are left to Python")
        self.signature, self.artifact, self.pixels, self.layout = signature, artifact, pixels, layout
        self.f = Function(Module(target))
        arrays = {i.name: i.dtype for i in signature.inputs}
        outs = {b: t for o in signature.outputs for b, t in zip(o.buffers, o.dtypes, strict=True)}
        self.arrays, self.outs = arrays, outs
        self.dtypes = tuple(dict.fromkeys((*arrays.values(), *outs.values())))
        self.tables = tuple(t.name for t in signature.tables)

    def entry(self) -> Entry:
        f, taken = self.f, self.signature.arguments
        scalars = {s.name: s for s in self.signature.scalars}
        required = max(
            (k + 1 for k, a in enumerate(taken) if a not in scalars or scalars[a].default is None), default=0
        )
        self.need(f.put(f"icmp sge i64 %count, {required}"), "")
        self.need(f.put(f"icmp sle i64 %count, {len(taken)}"), "")
        views = {t.name: self.table(k) for k, t in enumerate(self.signature.tables)}
        given: dict[str, Given] = {}
        for k, name in enumerate(taken):
            if name in self.arrays:
                views[name] = self.array(self.argument(k), self.arrays[name], self.rank(name), writing=False)
            else:
                given[name] = self.scalar(scalars[name], k)
        check = Checked(f, self.signature, views, given, self.need)
        check.declared()
        check.limits()
        for name in self.arrays:
            self.exact(check, name)
        with_out, without = f.label("out"), f.label("fresh")
        f.act(f"br i1 {f.put('icmp ne ptr %out, null')}, label %{with_out}, label %{without}")
        with f.part():
            f.begin(with_out)
            self.given_outputs(views, given)
        with f.part():
            f.begin(without)
            self.fresh_output(views, given)
        return Entry(self.text(), self.dtypes, self.tables)

    def given_outputs(self, views: dict[str, View], given: dict[str, Given]) -> None:
        """Append a call with out=: one array, or a tuple of them."""
        f, layout, out = self.f, self.layout, "%out"
        names = [b for o in self.signature.outputs for b in o.buffers]
        if len(names) == 1:
            views = views | {names[0]: self.array(out, self.outs[names[0]], self.rank(names[0]), writing=True)}
        else:
            self.need(f.put(f"icmp eq ptr {self.load(out, layout.type)}, {self.fixed('tuple')}"), "")
            self.need(f.put(f"icmp eq i64 {self.word(out, layout.header)}, {len(names)}"), "")
            items = [self.load(out, layout.items + 8 * k) for k in range(len(names))]
            views = views | {
                n: self.array(i, self.outs[n], self.rank(n), writing=True) for n, i in zip(names, items, strict=True)
            }
        check = Checked(f, self.signature, views, given, self.need)
        for one in self.signature.outputs:
            for buffer in one.buffers:
                for mine, first in zip(views[buffer].dims, check.dims[one.name], strict=True):
                    if mine != first:
                        self.need(f.put(f"icmp eq i64 {mine}, {first}"), "")
        self.need(f.put(f"xor i1 {check.empty()}, true"), "")
        check.conditions(agreeing=False)
        for name in names:
            self.exact(check, name)
            check.distinct(name)
        check.no_overlap(names, list(self.arrays))
        self.run(check)
        f.act(f"call void @Py_IncRef(ptr {out})")
        f.act(f"ret ptr {out}")

    def fresh_output(self, views: dict[str, View], given: dict[str, Given]) -> None:
        """Append a call that gives no output: a small one is made here, others by Python."""
        f = self.f
        one = self.signature.outputs[0]
        if not self.makes(one):
            f.act("br label %slow")
            return
        check = Checked(f, self.signature, views, given, self.need)
        dims = [d for d in check.shapes(one.shape) if d is not None]
        check.small()
        dtype = one.dtypes[0]
        strides, size = list[str](), str(dtype.size_bytes)
        for extent in reversed(dims):
            self.need(f.put(f"icmp ult i64 {f.put(f'sub i64 {extent}, 1')}, {_LARGE_BYTES}"), "")
            strides.append(size)
            size = f.put(f"mul i64 {size}, {extent}")
            self.need(f.put(f"icmp ult i64 {size}, {_LARGE_BYTES}"), "")
        check.dims[one.name] = tuple(dims)
        check.conditions(agreeing=True)
        f.module.declare("void @Py_IncRef(ptr)")
        rank, descr = len(dims), self.descr(dtype)
        held = f.early(f"alloca [{max(1, rank)} x i64], align 8")
        for k, extent in enumerate(dims):
            f.act(f"store i64 {extent}, ptr {f.put(f'getelementptr i64, ptr {held}, i64 {k}') if k else held}, align 8")
        f.act(f"call void @Py_IncRef(ptr {descr})")
        made, none, good = f.name(), f.label("none"), f.label("made")
        f.act(
            f"{made} = call ptr {self.fixed('new_array')}(ptr {self.fixed('array')}, ptr {descr}, i32 {rank}, "
            f"ptr {held}, ptr null, ptr null, i32 0, ptr null)"
        )
        f.act(f"br i1 {f.put(f'icmp eq ptr {made}, null')}, label %{none}, label %{good}")
        f.tail += [f"{none}:", "  ret ptr null"]
        f.begin(good)
        view = View(self.load(made, self.layout.field("data")), tuple(dims), tuple(reversed(strides)), dtype.size_bytes)
        check.views = {**views, one.name: view}
        self.run(check, dropped=made)
        f.act(f"ret ptr {made}")

    def makes(self, one: Output) -> bool:
        """Return whether this entry makes the output: there is one, of known extents, and dense ones are taken."""
        facts = self.artifact.facts
        alone = len(self.signature.outputs) == 1 and len(one.dtypes) == 1 and None not in one.shape
        return alone and one.name in facts.dense & facts.aligned and one.name not in self.pixels

    def run(self, check: Checked, dropped: str | None = None) -> None:
        """Run the kernel; where it fails, Python runs it once more and says why."""
        f, table = self.f, f"@{TABLE}"
        threads = self.word(table, 8 * FIXED.index("threads"))
        block, _ = check.block(self.artifact.slots, threads)
        kernel, ticks = self.fixed("kernel"), f.put(f"getelementptr i8, ptr {table}, i64 {8 * FIXED.index('ticks')}")
        elements = "0"
        for name in (*self.arrays, *self.outs):
            size = "1"
            for extent in check.views[name].dims if name in check.views else ():
                size = f.put(f"mul i64 {size}, {extent}")
            elements = f.put(f"add i64 {elements}, {size}")
        last, start, end, took = f.name(), f.name(), f.name(), f.name()
        f.act(f"{last} = load i64, ptr {ticks}, align 8")
        few, short = f.put(f"icmp ult i64 {elements}, {_SMALL_ELEMENTS}"), f.put(f"icmp ult i64 {last}, {_SHORT_TICKS}")
        held, freed, after, code = f.label("held"), f.label("freed"), f.label("after"), f.name()
        f.module.declare("i64 @llvm.readcyclecounter()")
        f.act(f"{start} = call i64 @llvm.readcyclecounter()")
        f.act(f"br i1 {f.put(f'and i1 {few}, {short}')}, label %{held}, label %{freed}")
        codes = {held: f.name(), freed: f.name()}
        f.begin(held)
        f.act(f"{codes[held]} = call i32 {kernel}(ptr {block})")
        f.act(f"br label %{after}")
        f.begin(freed)
        state = f.name()
        f.act(f"{state} = call ptr @PyEval_SaveThread()")
        f.act(f"{codes[freed]} = call i32 {kernel}(ptr {block})")
        f.act(f"call void @PyEval_RestoreThread(ptr {state})")
        f.act(f"br label %{after}")
        f.begin(after)
        f.act(f"{code} = phi i32 [ {codes[held]}, %{held} ], [ {codes[freed]}, %{freed} ]")
        f.act(f"{end} = call i64 @llvm.readcyclecounter()")
        f.act(f"{took} = sub i64 {end}, {start}")
        f.act(f"store i64 {took}, ptr {ticks}, align 8")
        fine = f.put(f"icmp eq i32 {code}, 0")
        if dropped is None:
            self.need(fine, "")
        else:
            good, bad = f.label("good"), f.label("bad")
            f.act(f"br i1 {fine}, label %{good}, label %{bad}")
            f.tail += [f"{bad}:", f"  call void @Py_DecRef(ptr {dropped})", "  br label %slow"]
            f.begin(good)
        count, more = f.name(), f.name()
        at = f.put(f"getelementptr i8, ptr {table}, i64 {8 * FIXED.index('calls')}")
        f.act(f"{count} = load i64, ptr {at}, align 8")
        f.act(f"{more} = add i64 {count}, 1")
        f.act(f"store i64 {more}, ptr {at}, align 8")

    def exact(self, check: Checked, name: str) -> None:
        """Need the array to be of the kind that this version is for, and of none that a better one may be for."""
        f, view, facts = self.f, check.views[name], self.artifact.facts
        check.facts(name, facts)
        item = view.item_bytes
        if name not in facts.dense and view.dims:
            self.need(f.put(f"icmp ne i64 {view.strides[-1]}, {item}"), "")
            self.need(f.put(f"icmp sgt i64 {view.dims[-1]}, 1"), "")
        if name in self.pixels and name not in {n for n, _ in facts.packed}:
            few = f.put(f"icmp ult i64 {f.put(f'sub i64 {view.dims[-1]}, 2')}, {MOST_CHANNELS - 1}")
            self.need(f.put(f"xor i1 {few}, true"), "")

    def array(self, thing: str, dtype: DType, rank: int, writing: bool) -> View:
        """Return the view of an object that is an array of this type and rank."""
        f, layout = self.f, self.layout
        self.need(f.put(f"icmp eq ptr {self.load(thing, layout.type)}, {self.fixed('array')}"), "")
        self.need(f.put(f"icmp eq ptr {self.load(thing, layout.field('descr'))}, {self.descr(dtype)}"), "")
        self.need(f.put(f"icmp eq i32 {self.half(thing, layout.field('nd'))}, {rank}"), "")
        if writing:
            flags = f.put(f"and i32 {self.half(thing, layout.field('flags'))}, {_WRITEABLE}")
            self.need(f.put(f"icmp ne i32 {flags}, 0"), "")
        dims, strides = (self.load(thing, layout.field(n)) for n in ("dims", "strides")) if rank else ("", "")
        return View(
            self.load(thing, layout.field("data")),
            tuple(self.word(dims, 8 * k) for k in range(rank)),
            tuple(self.word(strides, 8 * k) for k in range(rank)),
            dtype.size_bytes,
        )

    def scalar(self, one: Scalar, k: int) -> Given:
        """Return argument `k` as a word, or the default where the call ends before it."""
        f = self.f
        if one.default is None:
            return self.number(one, self.argument(k))
        given, default, both = f.label("given"), f.label("default"), f.label("both")
        f.act(f"br i1 {f.put(f'icmp sgt i64 %count, {k}')}, label %{given}, label %{default}")
        with f.part():
            f.begin(given)
            mine = self.number(one, self.argument(k))
            f.act(f"br label %{both}")
            last = f.block
        f.begin(default)
        f.act(f"br label %{both}")
        f.begin(both)
        usual = self.constant(one, one.default)
        word = f.name()
        f.act(f"{word} = phi i64 [ {mine.word}, %{last} ], [ {usual.word}, %{default} ]")
        if not one.dtype.is_float:
            return Given(word)
        double = f.name()
        f.act(f"{double} = phi double [ {mine.double}, %{last} ], [ {usual.double}, %{default} ]")
        return Given(word, double)

    def constant(self, one: Scalar, value: float) -> Given:
        if not one.dtype.is_float:
            return Given(types.literal(int(value), dtypes.int64))
        rounded = float(one.dtype.dtype.type(value))
        bits = int(one.dtype.dtype.type(value).view(f"int{one.dtype.bits}"))
        return Given(
            str(bits & ((1 << one.dtype.bits) - 1) if one.dtype.bits < 64 else bits),
            types.literal(rounded, dtypes.float64),
        )

    def number(self, one: Scalar, thing: str) -> Given:
        """Return a Python number of just the type of the Param as its word."""
        f, dtype = self.f, one.dtype
        if dtype.is_bool:
            yes, no = (f.put(f"icmp eq ptr {thing}, {self.fixed(n)}") for n in ("true", "false"))
            self.need(f.put(f"or i1 {yes}, {no}"), "")
            return Given(f.put(f"zext i1 {yes} to i64"))
        kind = "float" if dtype.is_float else "int"
        self.need(f.put(f"icmp eq ptr {self.load(thing, self.layout.type)}, {self.fixed(kind)}"), "")
        if dtype.is_float:
            at = f.put(f"getelementptr i8, ptr {thing}, i64 {self.layout.header}")
            double = f.put(f"load double, ptr {at}, align 8")
            if dtype.bits == 64:
                return Given(f.put(f"bitcast double {double} to i64"), double)
            single = f.put(f"fptrunc double {double} to float")
            wide = f.put(f"fpext float {single} to double")
            f.module.declare("double @llvm.fabs.f64(double)")
            sizes = [f.put(f"call double @llvm.fabs.f64(double {v})") for v in (wide, double)]
            infinite = [f.put(f"fcmp oeq double {s}, 0x7FF0000000000000") for s in sizes]
            self.need(f.put(f"icmp eq i1 {infinite[0]}, {infinite[1]}"), "")
            bits = f.put(f"bitcast float {single} to i32")
            return Given(f.put(f"zext i32 {bits} to i64"), wide)
        f.module.declare("i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)")
        over, whole, flag = f.early("alloca i32, align 4"), f.name(), f.name()
        f.act(f"{whole} = call i64 @PyLong_AsLongLongAndOverflow(ptr {thing}, ptr {over})")
        f.act(f"{flag} = load i32, ptr {over}, align 4")
        self.need(f.put(f"icmp eq i32 {flag}, 0"), "")
        low, high = max(dtype.low, -(1 << 63)), min(dtype.high, (1 << 63) - 1)
        self.need(f.put(f"icmp sge i64 {whole}, {low}"), "")
        self.need(f.put(f"icmp sle i64 {whole}, {high}"), "")
        return Given(whole)

    def table(self, k: int) -> View:
        one = self.signature.tables[k]
        at = 8 * (len(FIXED) + len(self.dtypes) + k)
        array = one.array
        return View(
            self.load(f"@{TABLE}", at),
            tuple(str(n) for n in array.shape),
            tuple(str(s) for s in array.strides),
            array.itemsize,
        )

    def rank(self, name: str) -> int:
        for i in self.signature.inputs:
            if i.name == name:
                return len(i.dims)
        return next(len(o.shape) for o in self.signature.outputs if name in o.buffers)

    def need(self, holds: str, _: str) -> None:
        """Go on only where it holds."""
        good = self.f.label("good")
        self.f.act(f"br i1 {holds}, label %{good}, label %slow")
        self.f.begin(good)

    def argument(self, k: int) -> str:
        return self.load("%args", 8 * k)

    def fixed(self, name: str) -> str:
        return self.load(f"@{TABLE}", 8 * FIXED.index(name))

    def descr(self, dtype: DType) -> str:
        return self.load(f"@{TABLE}", 8 * (len(FIXED) + self.dtypes.index(dtype)))

    def load(self, base: str, offset: int) -> str:
        at = self.f.put(f"getelementptr i8, ptr {base}, i64 {offset}") if offset else base
        return self.f.put(f"load ptr, ptr {at}, align 8")

    def word(self, base: str, offset: int) -> str:
        at = self.f.put(f"getelementptr i8, ptr {base}, i64 {offset}") if offset else base
        return self.f.put(f"load i64, ptr {at}, align 8")

    def half(self, base: str, offset: int) -> str:
        return self.f.put(f"load i32, ptr {self.f.put(f'getelementptr i8, ptr {base}, i64 {offset}')}, align 4")

    def text(self) -> str:
        f = self.f
        for line in (
            "ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)", "ptr @PyObject_Call(ptr, ptr, ptr)",
            "ptr @PyDict_GetItemWithError(ptr, ptr)", "ptr @PyEval_SaveThread()", "void @PyEval_RestoreThread(ptr)",
            "void @Py_IncRef(ptr)", "void @Py_DecRef(ptr)",
        ):  # fmt: skip
            f.module.declare(line)
        lines = ["define internal ptr @stax.serve(ptr %args, i64 %count, ptr %out, ptr %other) nounwind {", "start:"]
        lines += [*f.prologue, "  br label %body", "body:", *f.lines, *f.tail]
        lines += ["slow:", "  store i8 1, ptr %other", "  ret ptr null", "}"]
        f.module.functions += ["\n".join(lines), self.head()]
        size = len(FIXED) + len(self.dtypes) + len(self.tables)
        head = f'{SHORT}\ntarget triple = "{f.module.target.triple}"\n@{TABLE} = external global [{size} x ptr]'
        return f.module.text(head)

    def head(self) -> str:
        """Return the two heads."""
        places = {n: f"getelementptr (i8, ptr @{TABLE}, i64 {8 * FIXED.index(n)})" for n in ("next", "out")}
        return _HEADS.format(
            direct=DIRECT, kernel=OF_KERNEL, next=places["next"], out=places["out"], number=self.layout.header,
            items=self.layout.items,
        )  # fmt: skip


_HEADS = """define ptr @{direct}(ptr %self, ptr %args, i64 %count, ptr %names) nounwind {{
start:
  %other = alloca i8
  store i8 0, ptr %other
  %plain = icmp eq ptr %names, null
  br i1 %plain, label %serve, label %named
named:
  %number_at = getelementptr i8, ptr %names, i64 {number}
  %number = load i64, ptr %number_at
  %single = icmp eq i64 %number, 1
  br i1 %single, label %look, label %slow
look:
  %name_at = getelementptr i8, ptr %names, i64 {items}
  %name = load ptr, ptr %name_at
  %wanted = load ptr, ptr {out}
  %right = icmp eq ptr %name, %wanted
  br i1 %right, label %take, label %slow
take:
  %value_at = getelementptr ptr, ptr %args, i64 %count
  %value = load ptr, ptr %value_at
  br label %serve
serve:
  %out = phi ptr [ null, %start ], [ %value, %take ]
  %found = call ptr @stax.serve(ptr %args, i64 %count, ptr %out, ptr %other)
  %said = load i8, ptr %other
  %done = icmp eq i8 %said, 0
  br i1 %done, label %end, label %slow
end:
  ret ptr %found
slow:
  %next = load ptr, ptr {next}
  %asked = call ptr @PyObject_Vectorcall(ptr %next, ptr %args, i64 %count, ptr %names)
  ret ptr %asked
}}

define ptr @{kernel}(ptr %self, ptr %tuple, ptr %dict) nounwind {{
start:
  %other = alloca i8
  store i8 0, ptr %other
  %args = getelementptr i8, ptr %tuple, i64 {items}
  %count_at = getelementptr i8, ptr %tuple, i64 {number}
  %count = load i64, ptr %count_at
  %plain = icmp eq ptr %dict, null
  br i1 %plain, label %serve, label %named
named:
  %number_at = getelementptr i8, ptr %dict, i64 {number}
  %number = load i64, ptr %number_at
  switch i64 %number, label %slow [ i64 0, label %serve
    i64 1, label %look ]
look:
  %wanted = load ptr, ptr {out}
  %value = call ptr @PyDict_GetItemWithError(ptr %dict, ptr %wanted)
  %right = icmp ne ptr %value, null
  br i1 %right, label %serve, label %slow
serve:
  %out = phi ptr [ null, %start ], [ null, %named ], [ %value, %look ]
  %found = call ptr @stax.serve(ptr %args, i64 %count, ptr %out, ptr %other)
  %said = load i8, ptr %other
  %done = icmp eq i8 %said, 0
  br i1 %done, label %end, label %slow
end:
  ret ptr %found
slow:
  %next = load ptr, ptr {next}
  %asked = call ptr @PyObject_Call(ptr %next, ptr %tuple, ptr %dict)
  ret ptr %asked
}}"""
