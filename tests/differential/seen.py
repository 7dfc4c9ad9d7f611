"""What a compiled program really has in it, and the table of that.

A word is counted once a program and schedule, where its node is in the loops handed to the printer and its instruction
in the LLVM text; a construct of the language where the Func that has it is among those with loops of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from stax.algorithm.nodes import Func, Pipeline
from stax.expr.nodes import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Expr,
    Fn,
    Load,
    Param,
    Read,
    Select,
    Size,
    Unary,
    Var,
)  # fmt: skip
from stax.expr.walk import names, postorder, reads
from stax.loops import walk
from stax.loops.nodes import For, If, LoopKind, Program, Role, Store
from tests.differential.generate import ALL, Drawn, Term

LEAST = 100
DIRECTIVES = (
    "split", "split shift", "split round_up", "split predicate", "tile", "fuse", "reorder", "reverse", "skew",
    "vectorize", "vectorize upto", "parallel", "unroll", "partition", "specialize", "inline", "compute_root",
    "compute_at", "store_at", "store_root", "hoist_storage", "compute_with", "compute_with shift", "fold_storage",
    "layout", "layout align", "memory heap", "memory stack", "memory register", "bound", "align_bounds", "cache_read",
    "clone", "prefetch", "stream", "reassociate", "rfactor", "accumulators", "atomic", "split_reduction",
)  # fmt: skip

_INTEGER = {
    BinaryOp.ADD: r"= add ", BinaryOp.SUB: r"= sub |= add ", BinaryOp.MUL: r"= mul |= shl ", BinaryOp.AND: r"= and ",
    BinaryOp.OR: r"= or ", BinaryOp.XOR: r"= xor ", BinaryOp.SHL: r"= shl ", BinaryOp.SHR: r"= [al]shr ",
    BinaryOp.LT: r"icmp [su][lg][te]", BinaryOp.LE: r"icmp [su][lg][te]", BinaryOp.EQ: r"icmp eq",
    BinaryOp.NE: r"icmp ne", BinaryOp.MIN: r"[su]min|icmp", BinaryOp.MAX: r"[su]max|icmp",
    BinaryOp.FLOORDIV: r"[su]div|[su]rem|[al]shr|fdiv|fptosi", BinaryOp.MOD: r"[su]rem|[su]div|= and |fdiv|fptosi",
}  # fmt: skip
_FLOAT = {
    BinaryOp.ADD: r"= fadd ", BinaryOp.SUB: r"= fsub ", BinaryOp.MUL: r"= fmul ", BinaryOp.DIV: r"= fdiv ",
    BinaryOp.LT: r"fcmp o[lg]t", BinaryOp.LE: r"fcmp o[lg]e", BinaryOp.EQ: r"fcmp oeq", BinaryOp.NE: r"fcmp une",
    BinaryOp.MIN: r"minimum|minnum|fcmp", BinaryOp.MAX: r"maximum|maxnum|fcmp", BinaryOp.MOD: r"frem|fdiv|fmod",
    BinaryOp.FLOORDIV: r"llvm\.floor|frem|fmod",
}  # fmt: skip
_CALLS = {
    Fn.FMA: r"llvm\.fma", Fn.SQRT: r"llvm\.sqrt", Fn.FLOOR: r"llvm\.floor", Fn.CEIL: r"llvm\.ceil",
    Fn.TRUNC: r"llvm\.trunc", Fn.RINT: r"llvm\.(rint|roundeven|nearbyint)", Fn.ISNAN: r"fcmp uno",
    Fn.COPYSIGN: r"llvm\.copysign", Fn.POPCOUNT: r"llvm\.ctpop", Fn.CLZ: r"llvm\.ctlz",
    Fn.SATURATING_ADD: r"llvm\.[us]add\.sat", Fn.SATURATING_SUB: r"llvm\.[us]sub\.sat",
}  # fmt: skip
_ELEMENTS = {8: r"\bi8\b", 16: r"\bi16\b", 32: r"\bi32\b", 64: r"\bi64\b", 1: r"\bi1\b"}
_INSTRUCTIONS = {
    "masked load": r"llvm\.masked\.load", "masked store": r"llvm\.masked\.store", "gather": r"llvm\.masked\.gather",
    "vector load": r"= load <", "vector store": r"store <", "shuffle": r"shufflevector", "phi of vectors": r"phi <",
    "parallel loop": r"@stax\.(parallel|run|pool)\w*|call .*@stax_parallel",
}  # fmt: skip


def words_drawn(drawn: Drawn) -> set[str]:
    """Return the words that the text of a program has, those that can be told from text."""
    text = drawn.text()
    found = {f"fn {fn.value}" for fn in Fn if f"sx.{fn.value}(" in text}
    found |= {f"dtype {t}" for t in ALL if re.search(rf"sx\.{t}_?\b", text)}
    found.add(f"fp {drawn.fp}")
    ops = {op.value: op.value for op in BinaryOp} | {">": "<", ">=": "<="}
    for term in (t for line in drawn.lines for t in line.terms()):
        for before, part in zip(term.parts, term.parts[1:], strict=False):
            if isinstance(before, Term) and isinstance(part, str) and part.strip() in ops:
                t = before.dtype
                kind = "bool" if t == "bool" else "float" if t.startswith("float") else "integer"
                found.add(f"{kind} {ops[part.strip()]}")
        if term.parts and term.parts[0] in ("sx.minimum(", "sx.maximum("):
            kind = "float" if "float" in term.dtype else "integer"
            found.add(f"{kind} {str(term.parts[0])[3:6]}")
    return found


class _Text:
    """An LLVM text, and which patterns it was found to have."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.known: dict[str, bool] = {}

    def has(self, pattern: str) -> bool:
        """Return whether `pattern` matches anywhere."""
        if pattern not in self.known:
            self.known[pattern] = re.search(pattern, self.text) is not None
        return self.known[pattern]


def words_of(
    drawn: Drawn, pipeline: Pipeline, program: Program, texts: Sequence[str], arrays: Mapping[str, np.ndarray]
) -> Iterator[str]:
    """Yield what is in a program, each word once; `pipeline` is that after inlining."""
    text = _Text("\n".join(texts))
    found: set[str] = set()
    nodes = list(walk.nodes(program.body))
    for node in nodes:
        found.update(_of_node(node, text))
    for name, pattern in _INSTRUCTIONS.items():
        if text.has(pattern):
            found.add(f"llvm {name}")
    tables = {b.name for b in program.buffers if b.role is Role.TABLE}
    for stmt in walk.statements(program.body):
        match stmt:
            case For(kind=kind, down=down, carries=carries):
                found.add(f"loop {kind.value}" if kind is not LoopKind.SERIAL else "loop serial")
                found |= {"loop downwards"} if down else set()
                found |= {"loop with carried values"} if carries else set()
            case Store(mask=mask):
                found |= {"store under a mask"} if mask else set()
            case If():
                found.add("branch")
            case _:
                pass
    found |= {"read of a Const" for n in nodes if isinstance(n, Load) and n.buffer in tables}
    found |= set(_of_pipeline(drawn, pipeline))
    found |= set(_of_arrays(program, arrays))
    found.add(f"fp {drawn.fp}")
    yield from found


def _of_node(node: Expr, text: _Text) -> Iterator[str]:
    kind = "bool" if node.dtype.is_bool else "float" if node.dtype.is_float else "integer"
    match node:
        case Binary(op=op, left=left):
            of = "float" if left.dtype.is_float else "bool" if left.dtype.is_bool else "integer"
            if left.dtype.name == "index":
                return
            pattern = (_FLOAT if of == "float" else _INTEGER).get(op, "")
            if of == "bool" or text.has(pattern):
                yield f"{of} {op.value}"
                yield from _of_type(node, text)
        case Unary(op=op):
            yield f"{kind} unary {op.value}"
        case Call(fn=fn):
            if text.has(_CALLS.get(fn, "")):
                yield f"fn {fn.value}"
        case Cast(value=value) if "index" not in (node.dtype.name, value.dtype.name):
            yield f"cast {_kind(value)} to {_kind(node)}"
            yield from _of_type(node, text)
        case Select(cond=cond):
            data = any(isinstance(n, Load) for n in postorder((cond,)))
            yield "select on data" if data else "select on positions"
            yield f"{kind} select"
        case Load(mask=mask):
            yield from _of_type(node, text)
            if mask:
                yield "read under a mask"
        case Param():
            yield f"Param {_kind(node)}"
        case _:
            pass


def _of_type(node: Expr, text: _Text) -> Iterator[str]:
    bits = {32: r"\bfloat\b", 64: r"\bdouble\b"} if node.dtype.is_float and node.dtype.bits > 16 else _ELEMENTS
    if node.dtype.name in ALL and text.has(bits[node.dtype.bits]):
        yield f"dtype {node.dtype.name}"


def _kind(node: Expr) -> str:
    t = node.dtype
    return "half" if t.is_half else "bool" if t.is_bool else t.kind.name.lower()


def _of_pipeline(drawn: Drawn, pipeline: Pipeline) -> Iterator[str]:
    if len(pipeline.outputs) > 1:
        yield "several outputs"
    known = {f.name: f for f in pipeline.funcs}
    if any(name in group for group in pipeline.groups for name in known):
        yield "group"
    for f in pipeline.funcs:
        yield from _of_func(f)
        if f.name in pipeline.outputs and any(
            r.source == f.name for g in pipeline.funcs if g is not f for r in reads(_roots(g))
        ):
            yield "output read by another Func"
    for name, words in drawn.words.items():
        inside = [g for g in known if g == name or g.startswith(f"{name}.")]
        updated = any(known[g].updates for g in inside)
        for word in words:
            if not inside or ((word.startswith("inline ") or word in ("Monoid", "argmin", "argmax")) and not updated):
                continue
            if word.startswith(("pad ", "inline ", "Monoid", "arg", "lookup")):
                yield word


def _roots(f: Func) -> list[Expr]:
    roots = list(f.values)
    for u in f.updates:
        roots += [*u.index, *u.values, *([] if u.where is None else [u.where])]
    return roots


def _of_func(f: Func) -> Iterator[str]:
    if len(f.dtypes) > 1:
        yield "Func of a tuple"
    yield f"Func of {len(f.dims)} dims"
    own = [r for r in reads(f.values) if r.source == f.name]
    if own:
        moved = [d for d in range(len(f.dims)) if any(not _is_var(r.index[d], f.dims[d]) for r in own)]
        yield "recurrence downwards" if f.backwards else "recurrence"
        if len(moved) > 1:
            yield "recurrence in two dims"
    sources: dict[str, set[str]] = {}
    for r in reads(_roots(f)):
        sources.setdefault(r.source, set()).add(str([str(i) for i in r.index]))
        yield from _of_index(r)
    for u in f.updates:
        yield "update over an RDom" if u.domain else "update without an RDom"
        if len(u.domain) > 1:
            yield "RDom of two variables"
        if any(not isinstance(i, Var) for i in u.index):
            yield "scatter by data" if reads(u.index) else "update of a part or by positions"
        if u.where is not None:
            yield "RDom where, by data" if reads((u.where,)) else "RDom where, by positions"
        for r in u.domain:
            ends = postorder((r.lo, r.hi))
            if any(n in f.dims for n in names((r.lo, r.hi))):
                yield "ragged RDom"
            elif names((r.lo, r.hi)):
                yield "RDom range by another variable"
            if any(isinstance(e, Param) for e in ends):
                yield "RDom range by a Param"
            if any(isinstance(e, Size) for e in ends):
                yield "RDom range by a size"
    if len(f.updates) > 1:
        yield "two updates"


def _is_var(e: Expr, name: str) -> bool:
    return isinstance(e, Var) and e.name == name


def _of_index(r: Read) -> Iterator[str]:
    for i in r.index:
        if reads((i,)):
            yield "index by data"
            continue
        for node in postorder((i,)):
            match node:
                case Binary(op=BinaryOp.FLOORDIV):
                    yield "index // n (up)"
                case Binary(op=BinaryOp.MOD):
                    yield "index % n"
                case Binary(op=BinaryOp.MIN | BinaryOp.MAX):
                    yield "index clamped"
                case Binary(op=BinaryOp.MUL):
                    yield "index * n (down)"
                case Binary(op=BinaryOp.ADD | BinaryOp.SUB, left=left, right=right):
                    if names((left,)) and names((right,)):
                        yield "index of two variables"
                    elif isinstance(left, Var) or isinstance(right, Var):
                        yield "index shifted"
                case _:
                    pass


def _of_arrays(program: Program, arrays: Mapping[str, np.ndarray]) -> Iterator[str]:
    for b in program.buffers:
        a = arrays.get(b.name)
        if a is None:
            continue
        if a.size == 0:
            yield "array empty"
            continue
        strides = [s for s, n in zip(a.strides, a.shape, strict=True) if n > 1]
        if any(s < 0 for s in strides):
            yield "array with a negative stride"
        if any(s == 0 for s in strides):
            yield "array with a stride of zero"
        if a.ndim > 1 and a.flags.f_contiguous and not a.flags.c_contiguous:
            yield "array in Fortran order"
        if not a.flags.aligned:
            yield "array off its alignment"
        if strides and abs(strides[-1]) > a.itemsize:
            yield "array with gaps"


def expected() -> list[str]:
    """Return the words that a run of full size must see `LEAST` times each."""
    out = [f"dtype {t}" for t in ALL]
    out += [f"integer {op.value}" for op in BinaryOp if op is not BinaryOp.DIV]
    out += [f"float {op.value}" for op in _FLOAT]
    out += [f"bool {op.value}" for op in (BinaryOp.AND, BinaryOp.OR, BinaryOp.XOR, BinaryOp.EQ, BinaryOp.NE)]
    out += [
        "integer unary -",
        "integer unary ~",
        "integer unary abs",
        "float unary -",
        "float unary abs",
        "bool unary ~",
    ]
    out += [f"fn {fn.value}" for fn in Fn]
    kinds = ("bool", "int", "uint", "half", "float")
    out += [f"cast {a} to {b}" for a in kinds for b in kinds[1:] if (a, b) != ("half", "half")]
    out += [f"{kind} select" for kind in ("bool", "integer", "float")]
    out += ["select on data", "select on positions", "read under a mask", "read of a Const", "fp strict", "fp default"]
    out += [f"Param {kind}" for kind in ("bool", "int", "uint", "half", "float")]
    out += [f"pad {mode}" for mode in ("constant", "edge", "reflect", "symmetric", "wrap")]
    out += [f"inline {word}" for word in ("sum", "prod", "min", "max", "any", "all", "mean", "var")]
    out += ["argmin", "argmax", "Monoid", "lookup in a Func", "group", "several outputs", "output read by another Func"]
    out += ["Func of a tuple", *(f"Func of {n} dims" for n in range(4)), "recurrence", "recurrence downwards"]
    out += ["recurrence in two dims", "update over an RDom", "update without an RDom", "RDom of two variables"]
    out += ["scatter by data", "update of a part or by positions", "RDom where, by data", "RDom where, by positions"]
    out += ["ragged RDom", "RDom range by another variable", "RDom range by a Param", "RDom range by a size"]
    out += ["two updates", "index by data", "index // n (up)", "index * n (down)", "index % n", "index clamped"]
    out += ["index of two variables", "index shifted", "loop parallel", "loop with carried values", "loop downwards"]
    out += [f"array {w}" for w in ("empty", "with a negative stride", "with a stride of zero", "in Fortran order",
                                   "off its alignment", "with gaps")]  # fmt: skip
    out += [f"llvm {w}" for w in ("vector load", "vector store", "masked load", "masked store")]
    return out + [f"directive {w}" for w in DIRECTIVES]


def table(drawn: Counter[str], seen: Counter[str], least: int = 0) -> str:
    """Return how often each word was drawn, where that is known, and seen."""
    rows = [f"{'':40s}{'drawn':>8s}{'seen':>8s}"]
    for word in sorted({*drawn, *seen, *expected()}):
        mark = "  <<<" if word in expected() and seen[word] < least else ""
        rows.append(f"{word:40s}{drawn[word] or '':>8}{seen[word]:8d}{mark}")
    return "\n".join(rows)
