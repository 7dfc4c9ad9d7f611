"""Hand-written kernels: LLVM text as a printer would give it, without one."""

from __future__ import annotations

from stax import dtypes
from stax.algorithm.nodes import Input, Scalar
from stax.backends.artifact import Artifact, Facts, Slot, SlotKind
from stax.backends.llvm.optimize import compile_text
from stax.dtypes import DType
from stax.expr import build
from stax.expr.nodes import Const, Expr, Param, Size
from stax.runtime.kernel import Build, Kernel
from stax.runtime.signature import Check, CheckKind, Output, Signature
from stax.target import Target

K = SlotKind


def assemble(text: str) -> bytes:
    return compile_text(text, Target.host())


_code: dict[str, bytes] = {}


def size(array: str, dim: int = 0) -> Expr:
    return Size(dtypes.int64, array, dim)


def number(value: int) -> Expr:
    return Const(dtypes.int64, value)


def array(name: str, dtype: DType = dtypes.int32, rank: int = 1, sizes: tuple[Expr | None, ...] | None = None) -> Input:
    return Input(name, dtype, tuple(f"d{k}" for k in range(rank)), sizes or (None,) * rank)


def artifact(text: str, slots: list[Slot], facts: Facts) -> Artifact:
    if text not in _code:
        _code[text] = assemble(text)
    return Artifact(text, _code[text], "entry", tuple(slots), facts)


def scaled_text(facts: Facts) -> str:
    """`f[i] = a[i + 1] * k + 1` over strided int32 arrays, rows in parallel; each index is one task."""
    stride = {name: "4" if name in facts.dense else f"%{name}_stride" for name in ("a", "f")}
    align = {name: 4 if name in facts.aligned else 1 for name in ("a", "f")}
    return f"""
declare i32 @stax_par_for(ptr, ptr, i64, i32)
define internal i32 @task(ptr %w, i64 %i) nounwind {{
  {_loads(("a", 0), ("a_stride", 1), ("f", 3), ("f_stride", 4), ("k", 6))}
  %k32 = trunc i64 %k to i32
  %j = add i64 %i, 1
  %ao = mul i64 %j, {stride["a"]}
  %ap = inttoptr i64 %a to ptr
  %aq = getelementptr i8, ptr %ap, i64 %ao
  %v = load i32, ptr %aq, align {align["a"]}
  %m = mul i32 %v, %k32
  %r = add i32 %m, 1
  %fo = mul i64 %i, {stride["f"]}
  %fp = inttoptr i64 %f to ptr
  %fq = getelementptr i8, ptr %fp, i64 %fo
  store i32 %r, ptr %fq, align {align["f"]}
  ret i32 0
}}
define i32 @entry(ptr %w) nounwind {{
  {_loads(("n", 5), ("t", 7))}
  %threads = trunc i64 %t to i32
  %r = call i32 @stax_par_for(ptr @task, ptr %w, i64 %n, i32 %threads)
  ret i32 %r
}}
"""


def _loads(*words: tuple[str, int]) -> str:
    lines = [f"%{n}_at = getelementptr i64, ptr %w, i64 {k}\n  %{n} = load i64, ptr %{n}_at" for n, k in words]
    return "\n  ".join(lines)


SCALED_SLOTS = [
    Slot(K.POINTER, "a"), Slot(K.STRIDE, "a", 0), Slot(K.SIZE, "a", 0), Slot(K.POINTER, "f"), Slot(K.STRIDE, "f", 0),
    Slot(K.SIZE, "f", 0), Slot(K.SCALAR, "k"), Slot(K.THREADS), Slot(K.ERROR),
]  # fmt: skip


def scaled_signature() -> Signature:
    """Return `f` of `scaled_text`: `a` int32, `k` int32 in -100..100, default 2; `f` has one element less than `a`."""
    last = build.sub(size("f"), number(1))
    need = build.add(last, number(1))
    read = Check(build.less(need, size("a")), CheckKind.READ, "a", 0, number(1), need, size("a"), "f")
    return Signature(
        (array("a"),),
        (Scalar("k", dtypes.int32, 2, -100, 100),),
        (),
        (Output("f", (dtypes.int32,), (build.sub(size("a"), number(1)),), ("i",)),),
        ("a", "k"),
        (read,),
        "f",
    )


def scaled(**changes: object) -> Kernel:
    made = {"respecialise": lambda facts: artifact(scaled_text(facts), SCALED_SLOTS, facts), "threads": 2}
    return Kernel(Build(scaled_signature(), **(made | changes)))  # type: ignore[arg-type]


def param(name: str) -> Expr:
    return Param(dtypes.int64, name)


def plain_text(facts: Facts) -> str:
    """`f[y, x] = a[y, x]` of float64 by byte strides, which are 8 in the last dimension of dense arrays."""
    step = {name: "8" if name in facts.dense else f"%{name}1" for name in ("a", "f")}
    align = {name: 8 if name in facts.aligned else 1 for name in ("a", "f")}
    return f"""
define i32 @entry(ptr %w) nounwind {{
entry:
  {_loads(("a", 0), ("a0", 1), ("a1", 2), ("f", 3), ("f0", 4), ("f1", 5), ("n", 6), ("m", 7))}
  %ap = inttoptr i64 %a to ptr
  %fp = inttoptr i64 %f to ptr
  br label %rows
rows:
  %y = phi i64 [0, %entry], [%y1, %next]
  %more = icmp slt i64 %y, %n
  br i1 %more, label %cells, label %end
cells:
  %x = phi i64 [0, %rows], [%x1, %cell]
  %some = icmp slt i64 %x, %m
  br i1 %some, label %cell, label %next
cell:
  %ay = mul i64 %y, %a0
  %ax = mul i64 %x, {step["a"]}
  %ao = add i64 %ay, %ax
  %aq = getelementptr i8, ptr %ap, i64 %ao
  %v = load double, ptr %aq, align {align["a"]}
  %fy = mul i64 %y, %f0
  %fx = mul i64 %x, {step["f"]}
  %fo = add i64 %fy, %fx
  %fq = getelementptr i8, ptr %fp, i64 %fo
  store double %v, ptr %fq, align {align["f"]}
  %x1 = add i64 %x, 1
  br label %cells
next:
  %y1 = add i64 %y, 1
  br label %rows
end:
  ret i32 0
}}
"""


def copied() -> Kernel:
    """`f[y, x] = a[y, x]` of float64."""
    slots = [
        Slot(K.POINTER, "a"), Slot(K.STRIDE, "a", 0), Slot(K.STRIDE, "a", 1), Slot(K.POINTER, "f"),
        Slot(K.STRIDE, "f", 0), Slot(K.STRIDE, "f", 1), Slot(K.SIZE, "f", 0), Slot(K.SIZE, "f", 1),
    ]  # fmt: skip
    f64 = dtypes.float64
    signature = Signature(
        (array("a", f64, 2),), (), (), (Output("f", (f64,), (size("a", 0), size("a", 1))),), ("a",), (), "f"
    )
    return Kernel(Build(signature, lambda facts: artifact(plain_text(facts), slots, facts)))


def failing(code: int, first: int = 0, second: int = 0) -> Kernel:
    """Return a kernel whose every call ends with `code` and the record of it."""
    text = f"""
define i32 @entry(ptr %w) nounwind {{
  {_loads(("e", 0))}
  %r = inttoptr i64 %e to ptr
  %c = getelementptr i64, ptr %r, i64 1
  store i64 {code}, ptr %c
  %p = getelementptr i64, ptr %r, i64 2
  store i64 {first}, ptr %p
  %q = getelementptr i64, ptr %r, i64 3
  store i64 {second}, ptr %q
  ret i32 {code}
}}
"""
    signature = Signature((), (), (), (Output("f", (dtypes.int32,), (number(1),)),), (), (), "f")
    return Kernel(Build(signature, lambda facts: artifact(text, [Slot(K.ERROR)], facts)))


def echo(dtype: DType) -> Kernel:
    """Return a kernel of one Param that stores its whole word as int64: `f[0] = k`."""
    text = f"""
define i32 @entry(ptr %w) nounwind {{
  {_loads(("k", 0), ("f", 1))}
  %p = inttoptr i64 %f to ptr
  store i64 %k, ptr %p
  ret i32 0
}}
"""
    signature = Signature((), (Scalar("k", dtype),), (), (Output("f", (dtypes.int64,), (number(1),)),), ("k",), (), "f")
    slots = [Slot(K.SCALAR, "k"), Slot(K.POINTER, "f")]
    return Kernel(Build(signature, lambda facts: artifact(text, slots, facts)))
