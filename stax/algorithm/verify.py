"""What holds of every frozen Pipeline, checked: names are defined once, before their use, and types agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stax import dtypes
from stax.algorithm.nodes import Func, Pipeline
from stax.dtypes import DType
from stax.errors import InternalError
from stax.expr.nodes import (
    COMPARES,
    Binary,
    BinaryOp,
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    Fn,
    Param,
    Read,
    Select,
    Size,
    Unary,
    UnaryOp,
    Var,
)  # fmt: skip
from stax.expr.show import show
from stax.expr.walk import postorder

_WORDS = frozenset({BinaryOp.AND, BinaryOp.OR, BinaryOp.XOR, BinaryOp.SHL, BinaryOp.SHR})


def verify(pipeline: Pipeline) -> None:
    """Raise InternalError where `pipeline` is not well formed."""
    check = _Check(pipeline)
    for a in pipeline.inputs:
        check.exprs(f"input {a.name}", (e for e in a.sizes if e is not None), frozenset())
    for f in pipeline.funcs:
        check.func(f)
    for name in pipeline.outputs:
        check.that(name in check.funcs, f"output {name}", "is no Func")
    arguments = sorted((*(a.name for a in pipeline.inputs), *(s.name for s in pipeline.scalars)))
    check.that(sorted(pipeline.arguments) == arguments, "arguments", "are not the Inputs and Params")
    for shape in pipeline.shapes:
        check.exprs("shape", shape or (), frozenset())


class _Check:
    def __init__(self, pipeline: Pipeline) -> None:
        self.funcs: dict[str, Func] = {}
        self.sources: dict[str, tuple[int, tuple[DType, ...]]] = {}
        for a in pipeline.inputs:
            self._source(a.name, len(a.dims), (a.dtype,))
        for t in pipeline.tables:
            self._source(t.name, t.array.ndim, (t.dtype,))
        self.arrays = {a.name: len(a.dims) for a in pipeline.inputs}
        self.params: Mapping[str, DType] = {s.name: s.dtype for s in pipeline.scalars}
        for f in pipeline.funcs:
            self._source(f.name, len(f.dims), f.dtypes)
            self.funcs[f.name] = f
            self.arrays[f.name] = len(f.dims)
        self.place = {f.name: k for k, f in enumerate(pipeline.funcs)}
        self.group = {name: g for g in pipeline.groups for name in g}

    def that(self, holds: bool, where: str, what: str) -> None:
        if not holds:
            raise InternalError(f"the frozen program is not well formed: {where} {what}")

    def func(self, f: Func) -> None:
        self.that(len(set(f.dims)) == len(f.dims), f.name, "has two dims of one name")
        self.that(len(f.values) == len(f.dtypes) and len(f.shape) == len(f.dims), f.name, "has parts missing")
        self.that(f.backwards <= set(f.dims), f.name, "runs downwards along no dim of its own")
        dims = frozenset(f.dims)
        self.exprs(f.name, (e for e in f.shape if e is not None), frozenset())
        self._typed(f.name, f.values, f.dtypes)
        self.exprs(f.name, f.values if f.where is None else (*f.values, f.where), dims, f)
        for k, u in enumerate(f.updates):
            where = f"{f.name}.update({k})"
            seen = set(dims)
            for r in u.domain:
                self.exprs(where, (r.lo, r.hi), frozenset(seen), f)
                self.that(r.lo.dtype == dtypes.int64 and r.hi.dtype == dtypes.int64, where, "has bounds of other types")
                self.that(r.name not in seen, where, f"binds {r.name} twice")
                seen.add(r.name)
            self._typed(where, u.values, f.dtypes)
            self.that(len(u.index) == len(f.dims), where, "has another rank")
            for e in u.index:
                self.that(e.dtype == dtypes.int64, where, "has an index that is no int64")
            condition = () if u.where is None else (u.where,)
            self.that(all(c.dtype.is_bool for c in condition), where, "has a condition that is no bool")
            self.exprs(where, (*u.index, *u.values, *condition), frozenset(seen), f)

    def exprs(self, where: str, roots: Iterable[Expr], names: frozenset[str], reader: Func | None = None) -> None:
        for node in postorder(roots):
            if not self._node(node, names, reader):
                self.that(False, where, f"has an ill-formed `{show(node, 60)}`")
            self.that(not node.dtype.is_half or _stores(node), where, f"computes in {node.dtype}")

    def _node(self, node: Expr, names: frozenset[str], reader: Func | None) -> bool:
        dtype = node.dtype
        if dtype not in dtypes.ALL or node.axes:
            return False
        match node:
            case Const(value=value):
                return dtype.is_float or dtype.low <= value <= dtype.high
            case Var(name=name):
                return dtype == dtypes.int64 and name in names
            case Param(name=name):
                return name in self.params and self.params[name] == dtype
            case Size(array=array, dim=dim):
                return dtype == dtypes.int64 and array in self.arrays and 0 <= dim < self.arrays[array]
            case Unary(op=op, value=value):
                return value.dtype == dtype and (op is not UnaryOp.NOT or not dtype.is_float)
            case Binary(op=op, left=left, right=right):
                if left.dtype != right.dtype or (op in _WORDS and left.dtype.is_float):
                    return False
                return dtype.is_bool if op in COMPARES else left.dtype == dtype
            case Select(cond=cond, yes=yes, no=no):
                return cond.dtype.is_bool and yes.dtype == no.dtype == dtype
            case Cast():
                return True
            case Bitcast(value=value):
                return value.dtype.bits == dtype.bits
            case Call(fn=fn, args=args):
                return fn is Fn.SATURATING_CAST or len({a.dtype.name for a in args}) == 1
            case Read(source=source, index=index, part=part):
                return self._read(source, index, part, dtype, reader)
            case _:
                return False

    def _read(self, source: str, index: tuple[Expr, ...], part: int, dtype: DType, reader: Func | None) -> bool:
        if source not in self.sources or any(i.dtype != dtypes.int64 for i in index):
            return False
        rank, types = self.sources[source]
        if len(index) != rank or part >= len(types) or types[part] != dtype:
            return False
        if reader is None or source not in self.place or source == reader.name:
            return True
        together = source in self.group.get(reader.name, ())
        return together or self.place[source] < self.place[reader.name]

    def _typed(self, where: str, values: tuple[Expr, ...], types: tuple[DType, ...]) -> None:
        self.that([v.dtype.name for v in values] == [t.name for t in types], where, "has a value of another type")

    def _source(self, name: str, rank: int, types: tuple[DType, ...]) -> None:
        self.that(name not in self.sources, name, "is defined twice")
        self.sources[name] = rank, types


def _stores(node: Expr) -> bool:
    return isinstance(node, Const | Read | Param | Cast | Bitcast)
