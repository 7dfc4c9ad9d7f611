"""Funcs -> algorithm.Pipeline: all named, typed and in order, sharing nothing that users may still change."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from stax import dtypes
from stax.algorithm import nodes
from stax.algorithm.domain import within
from stax.algorithm.order import order_group, order_self
from stax.dtypes import DType
from stax.errors import UnsupportedError
from stax.expr import build
from stax.expr.nodes import Binary, BinaryOp, Expr, Read, Var
from stax.expr.number import Numbering
from stax.expr.walk import names as names_in
from stax.expr.walk import reads, rewrite_all
from stax.lang.contract import contract
from stax.lang.func import Definition, Func
from stax.lang.half import widen_half
from stax.lang.inputs import Array, Const, Input, Param
from stax.lang.promote import index_of
from stax.lang.reduction import Reduction
from stax.lang.resolve import Context, resolve
from stax.lang.scan import scan
from stax.lang.terms import Access, Lead, Step, refuse
from stax.lang.value import value_of
from stax.lang.var import RDom

ACCUMULATOR = "\0"
"""Stands for the name of a reduction while it is compared with others."""


def freeze(
    outputs: Func | tuple[Func, ...], shape: Any = None, inputs: Sequence[Any] | None = None, fp: str | None = None
) -> nodes.Pipeline:
    """Return the program that computes `outputs`.

    shape: the symbolic extents of the output, or a tuple of those, one an output (None where one is not given).
    inputs: Inputs and Params, or their names, in the order of the kernel's arguments. fp: for Funcs that say nothing.
    """
    return freeze_named(outputs, shape, inputs, fp)[0]


def freeze_named(
    outputs: Func | tuple[Func, ...], shape: Any = None, inputs: Sequence[Any] | None = None, fp: str | None = None
) -> tuple[nodes.Pipeline, Mapping[int, str]]:
    """Return what `freeze` does, and what each Func, Input, Param and Const is called in it, by `id`."""
    wanted = outputs if isinstance(outputs, tuple) else (outputs,)
    for f in wanted:
        if not isinstance(f, Func):  # pyright: ignore[reportUnnecessaryIsInstance]
            refuse(f"{type(f).__name__} {f!r:.40} is no output", hint="outputs are Funcs: a Func, or a tuple of them")
    if not wanted:
        refuse("a program has no outputs")
    if len({id(f) for f in wanted}) != len(wanted):
        refuse("an output is named twice")
    if fp not in (None, "strict", "default", "fast"):
        refuse(f"fp is {fp!r}", hint='it is "strict", "default" or "fast"')
    shapes = _shapes(wanted, shape)
    freezer = _Freezer(wanted, shapes, inputs, fp or "default")
    return freezer.pipeline(), freezer.names


def _shapes(wanted: tuple[Func, ...], shape: Any) -> list[tuple[Expr, ...] | None]:
    if shape is None:
        return [None] * len(wanted)
    given: Sequence[Any] = shape if len(wanted) > 1 else (shape,)
    if len(given) != len(wanted):
        refuse(f"`shape` has {len(given)} entries for {len(wanted)} outputs", hint="give a shape, or None, an output")
    out: list[tuple[Expr, ...] | None] = []
    for f, one in zip(wanted, given, strict=True):
        if one is None:
            out.append(None)
            continue
        entries: tuple[Any, ...] = tuple(one) if isinstance(one, tuple | list) else (one,)  # pyright: ignore
        if len(entries) != len(f.dims):
            refuse(f"`{f.name}` has {len(f.dims)} dims, and `shape` {len(entries)}")
        out.append(tuple(index_of(value_of(e, "an extent").node, "an extent") for e in entries))
    return out


class _Freezer:
    """Holds what is named so far; used for one program."""

    def __init__(
        self, wanted: tuple[Func, ...], shapes: list[tuple[Expr, ...] | None], inputs: Sequence[Any] | None, fp: str
    ) -> None:
        self.wanted, self.shapes, self.given, self.fp = wanted, shapes, inputs, fp
        self.names: dict[int, str] = {}
        self.taken: set[str] = set()
        self.frozen: dict[str, nodes.Func] = {}
        self.numbering = Numbering()
        self.instances: dict[object, str] = {}
        self.made: dict[int, list[str]] = {}
        self.limits: dict[str, tuple[float, float]] = {}

    def pipeline(self) -> nodes.Pipeline:
        extra = scan(e for s in self.shapes if s is not None for e in s)
        components, arrays, params = _reachable(self.wanted, list(extra.owners.values()), list(extra.params.values()))
        arguments = self._arguments(arrays, params)
        arrays = {id(a): a for a in (*arrays.values(), *(a for a in arguments if isinstance(a, Array)))}
        params = {id(p): p for p in (*params.values(), *(p for p in arguments if isinstance(p, Param)))}
        inputs = sorted((a for a in arrays.values() if isinstance(a, Input)), key=lambda a: a.serial)
        tables = sorted((a for a in arrays.values() if isinstance(a, Const)), key=lambda a: a.serial)
        scalars = sorted(params.values(), key=lambda p: p.serial)
        for thing in sorted((*inputs, *scalars, *tables), key=lambda t: t.serial):
            self.names[id(thing)] = self._name(thing.name)
        for component in components:
            for f in component:
                self.names[id(f)] = self._name(f.name)
        for p in scalars:
            low, high = (-math.inf if p.low is None else p.low), (math.inf if p.high is None else p.high)
            self.limits[self.names[id(p)]] = low, high
        order: list[nodes.Func] = []
        groups: list[tuple[str, ...]] = []
        for component in components:
            for f in component:
                self._freeze(f)
            if len(component) > 1:
                members, inner = self._group(component)
                groups.append(tuple(m.name for m in members))
                order += [*(self.frozen[n] for n in inner), *members]
            else:
                (f,) = component
                order += [self.frozen[n] for n in (*self.made[id(f)], self.names[id(f)])]
        plain = self._context(None)
        return nodes.Pipeline(
            tuple(self._input(a, plain) for a in inputs),
            tuple(nodes.Scalar(self.names[id(p)], p.dtype, p.default, p.low, p.high, p.span) for p in scalars),
            tuple(nodes.Table(self.names[id(t)], t.dtype, t.array, t.span) for t in tables),
            tuple(order),
            tuple(self.names[id(f)] for f in self.wanted),
            tuple(self.names[id(a)] for a in arguments),
            tuple(groups),
            tuple(None if s is None else self._integers(s, plain) for s in self.shapes),
        )

    def _name(self, wanted: str) -> str:
        name, number = wanted, 2
        while name in self.taken:
            name, number = f"{wanted}.{number}", number + 1
        self.taken.add(name)
        return name

    def _arguments(self, arrays: dict[int, Any], params: dict[int, Any]) -> list[Any]:
        used = [*(a for a in arrays.values() if isinstance(a, Input)), *params.values()]
        used.sort(key=lambda t: t.serial)
        if self.given is None:
            return used
        out: list[Any] = []
        for given in self.given:
            found = next((u for u in used if u is given or (isinstance(given, str) and u.name == given)), given)
            if not isinstance(found, Input | Param):
                refuse(f"`inputs` names {found!r}, which the program does not use")
            out.append(found)
        missing = [u for u in used if all(u is not o for o in out)]
        if missing:
            refuse(f"`inputs` leaves out `{missing[0].name}`, which the program uses")
        if len({id(o) for o in out}) != len(out):
            refuse("`inputs` names one twice")
        return out

    def _context(self, f: Func | None, **more: Any) -> Context:
        strict = (self.fp if f is None or f.fp is None else f.fp) == "strict"
        return Context(self.names, more.pop("read", self._read), strict=strict, **more)

    def _read(self, owner: Any, part: int) -> tuple[str, DType, tuple[Expr, ...] | None]:
        dtype = owner.dtypes[part] if isinstance(owner, Func) else owner.dtype
        return self.names[id(owner)], dtype, None

    def _integers(self, exprs: Sequence[Expr], context: Context) -> tuple[Expr, ...]:
        return resolve([(e, dtypes.int64) for e in exprs], context)

    def _input(self, a: Input, context: Context) -> nodes.Input:
        sizes = tuple(None if s is None else self._integers((s,), context)[0] for s in a.sizes)
        return nodes.Input(self.names[id(a)], a.dtype, a.dims, sizes, a.span)

    def _freeze(self, f: Func) -> None:
        """Freeze `f` and the reductions in its definitions."""
        assert f.pure is not None
        pure = f.pure.anew()
        name, dims, types = self.names[id(f)], f.dims, f.dtypes
        fp = f.fp or self.fp
        shape: tuple[Expr | None, ...] = (None,) * len(dims)
        if f.extents is not None:
            shape = tuple(None if e is None else self._integers((e,), self._context(f))[0] for e in f.extents)
        self.made[id(f)] = []
        where = self._where(f)
        whole = _whole(f)
        updates: list[nodes.Update] = []
        if whole is not None:
            reading = self._reader(f, pure, dims, (whole, name))
            values = self._values(whole.start, types, reading, fp)
            updates.append(self._step(whole, types, dims, reading, fp))
        else:
            values = self._stage(f, pure, dims, types, fp)
            for start in reversed([d.anew() for d in f.starts]):
                chosen = self._stage(f, start, dims, types, fp)
                cond = self._is_start(f, start, dims)
                values = tuple(build.select(cond, c, v) for c, v in zip(chosen, values, strict=True))
        updates += [self._update(f, u, dims, types, fp) for u in map(Definition.anew, f.updates)]
        made = nodes.Func(name, dims, types, values, tuple(updates), shape, frozenset(), fp, f.pure.span)
        made = within(made, where) if where is not None else made
        recurs = any(r.owner is f for d in (*f.starts, f.pure) for r in d.scan.reads)
        self.frozen[name] = order_self(made, self.limits) if recurs else made

    def _where(self, f: Func) -> Expr | None:
        """Return the domain of `f` where it has one that is not everything."""
        if f.domain is None:
            return None
        (where,) = resolve([(f.domain, dtypes.bool_)], self._context(f))
        return None if build.integer(where) == 1 else where

    def _stage(
        self, f: Func, d: Definition, dims: tuple[str, ...], types: tuple[DType, ...], fp: str
    ) -> tuple[Expr, ...]:
        return self._values(d.values, types, self._reader(f, d, dims), fp)

    def _values(self, values: Sequence[Expr], types: tuple[DType, ...], context: Context, fp: str) -> tuple[Expr, ...]:
        typed = resolve(list(zip(values, types, strict=True)), context)
        return self._rounded(typed, fp)

    def _rounded(self, typed: tuple[Expr, ...], fp: str) -> tuple[Expr, ...]:
        typed = widen_half(typed, fp == "strict")
        return typed if fp == "strict" else contract(typed)

    def _is_start(self, f: Func, start: Definition, dims: tuple[str, ...]) -> Expr:
        context = self._reader(f, start, dims)
        cond: Expr = build.const(True, dtypes.bool_)
        for dim, place in zip(dims, start.index, strict=True):
            if isinstance(place, Var) and not isinstance(place, Step):
                continue
            (at,) = self._integers((index_of(place, "an index"),), context)
            var = Var(dtypes.int64, dim)
            cond = build.both(cond, Binary(dtypes.bool_, BinaryOp.EQ, var, at))
        return cond

    def _update(self, f: Func, d: Definition, dims: tuple[str, ...], types: tuple[DType, ...], fp: str) -> nodes.Update:
        context = self._reader(f, d, dims)
        count = len(d.index)
        roots = [(index_of(p, "an index"), dtypes.int64) for p in d.index]
        made = self._rounded(resolve([*roots, *zip(d.values, types, strict=True)], context), fp)
        domain, where = self._domain(d.domain, context, fp)
        return nodes.Update(made[:count], made[count:], domain, where, d.span)

    def _domain(self, r: RDom | None, context: Context, fp: str) -> tuple[tuple[nodes.Range, ...], Expr | None]:
        if r is None:
            return (), None
        out: list[nodes.Range] = []
        for b in r.bounds:
            lo, hi = self._integers((b.lo, b.hi), context)
            out.append(nodes.Range(b.name, lo, hi))
        where: Expr | None = None
        if r.predicate is not None:
            (where,) = self._rounded(resolve([(r.predicate, dtypes.bool_)], context), fp)
        return tuple(out), where

    def _reader(
        self, f: Func, d: Definition, dims: tuple[str, ...], own: tuple[Reduction, str] | None = None
    ) -> Context:
        """Return the context of a definition of `f`, the reductions in it having become Funcs; `own` is `f` itself."""
        names, leads = _renaming(d, dims)
        called: dict[int, tuple[str, tuple[Expr, ...]]] = {}

        def read(owner: Any, part: int) -> tuple[str, DType, tuple[Expr, ...] | None]:
            if isinstance(owner, Reduction):
                name, index = called[id(owner)]
                return name, owner.dtypes[part], index
            return self._read(owner, part)

        context = self._context(f, vars=names, leads=leads, read=read)
        outer = [*dims, *([] if d.domain is None else [b.name for b in d.domain.bounds])]
        rank = {n: k for k, n in enumerate(outer)}
        for reduction in d.scan.reductions.values():
            if own is not None and reduction is own[0]:
                called[id(reduction)] = own[1], _vars(dims)
                continue
            free = sorted((context.name_of(v) for v in reduction.free), key=lambda n: rank.get(n, len(rank)))
            called[id(reduction)] = ACCUMULATOR, _vars(free)
            called[id(reduction)] = self._instance(f, reduction, tuple(free), context), _vars(free)
        return context

    def _instance(self, f: Func, r: Reduction, dims: tuple[str, ...], context: Context) -> str:
        """Return the name of the Func that `r` is in `f`, which may be one that is there already."""
        fp = f.fp or self.fp
        values = self._values(r.start, r.dtypes, context, fp)
        step = self._step(r, r.dtypes, dims, context, fp)
        base = r.name or f"{self.names[id(f)]}.{r.op}"
        key = (id(f), base, dims, self._numbers([*values, *step.values, *_bounds(step)]), len(step.domain))
        found = self.instances.get(key)
        if found is None:
            found = self.instances[key] = self._name(base)
            step = replace(step, values=_called(step.values, found))
            none = (None,) * len(dims)
            made = nodes.Func(found, dims, r.dtypes, values, (step,), none, frozenset(), fp, r.span)
            where = self._where(f)
            inside = where is not None and names_in([where]) <= set(dims)
            self.frozen[found] = within(made, where) if inside and where is not None else made
            self.made[id(f)].append(found)
        return found

    def _numbers(self, exprs: Sequence[Expr]) -> tuple[int, ...]:
        return tuple(self.numbering.of(e) for e in exprs)

    def _step(
        self, r: Reduction, types: tuple[DType, ...], dims: tuple[str, ...], context: Context, fp: str
    ) -> nodes.Update:
        values = self._values(r.step, types, context, fp)
        domain, where = self._domain(r.domain, context, fp)
        return nodes.Update(_vars(dims), values, domain, where, r.span)

    def _group(self, component: list[Func]) -> tuple[list[nodes.Func], list[str]]:
        """Return the Funcs of a cycle in order, their reductions before them."""
        inner = [name for f in component for name in self.made[id(f)]]
        members = {self.names[id(f)] for f in component}
        for name in inner:
            made = self.frozen[name]
            for r in reads(e for u in made.updates for e in (*u.values, *_bounds(u))):
                if r.source in members:
                    raise UnsupportedError(
                        f"a reduction inside a cycle of Funcs reads `{r.source}`; that comes with a later version",
                        [(r.span, "read here")],
                    )
        ordered = order_group([self.frozen[self.names[id(f)]] for f in component], self.limits)
        return ordered, inner


def _renaming(d: Definition, dims: tuple[str, ...]) -> tuple[dict[str, str], dict[int, str]]:
    """Return what the Vars on the left of `d` are called in a Func with `dims`: they match by position."""
    names: dict[str, str] = {}
    leads: dict[int, str] = {}
    for place, dim in zip(d.index, dims, strict=True):
        if isinstance(place, Lead):
            leads[place.place] = dim
        elif isinstance(place, Var) and not isinstance(place, Step):
            names[place.name] = dim
    return names, leads


def _whole(f: Func) -> Reduction | None:
    """Return the reduction that the definition of `f` is, in the types of `f`."""
    assert f.pure is not None
    values = f.pure.values
    first = values[0]
    if f.starts or not isinstance(first, Access) or not isinstance(first.owner, Reduction):
        return None
    made = first.owner
    alike = all(isinstance(v, Access) and v.owner is made and v.part == k for k, v in enumerate(values))
    return made if alike and made.name is None and made.dtypes == f.dtypes else None


def _vars(names: Sequence[str]) -> tuple[Expr, ...]:
    return tuple(Var(dtypes.int64, name) for name in names)


def _bounds(step: nodes.Update) -> list[Expr]:
    out = [e for r in step.domain for e in (r.lo, r.hi)]
    return out if step.where is None else [*out, step.where]


def _called(values: tuple[Expr, ...], name: str) -> tuple[Expr, ...]:
    def rule(node: Expr) -> Expr:
        return replace(node, source=name) if isinstance(node, Read) and node.source == ACCUMULATOR else node

    return rewrite_all(values, rule)


def _reachable(
    wanted: tuple[Func, ...], more: list[Any], params: list[Any]
) -> tuple[list[list[Func]], dict[int, Any], dict[int, Any]]:
    """Return the Funcs below `wanted` in cycles, producers first, and the arrays and Params they use.

    Method: Tarjan's strongly connected components, on a stack of its own.
    """
    arrays: dict[int, Any] = {}
    used: dict[int, Any] = {id(p): p for p in params}
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_: list[Func] = []
    is_open: set[int] = set()
    out: list[list[Func]] = []
    pending: list[Any] = list(more)

    def producers(f: Func) -> list[Func]:
        if f.pure is None:
            _undefined(f)
        found: dict[int, Func] = {}
        extents = scan(e for e in (*(f.extents or ()), f.domain) if e is not None)
        for s in (*(d.scan for d in (*f.starts, f.pure, *f.updates)), extents):
            used.update(s.params)
            for key, owner in s.owners.items():
                if isinstance(owner, Func):
                    found.setdefault(key, owner)
                else:
                    pending.append(owner)
        return list(found.values())

    for root in wanted:
        if id(root) in index:
            continue
        work: list[tuple[Func, list[Func], int]] = []
        _open(root, producers, index, low, open_, is_open, work)
        while work:
            f, below, k = work.pop()
            if k < len(below):
                work.append((f, below, k + 1))
                g = below[k]
                if id(g) not in index:
                    _open(g, producers, index, low, open_, is_open, work)
                elif id(g) in is_open:
                    low[id(f)] = min(low[id(f)], index[id(g)])
                continue
            if work:
                parent = work[-1][0]
                low[id(parent)] = min(low[id(parent)], low[id(f)])
            if low[id(f)] == index[id(f)]:
                component: list[Func] = []
                while True:
                    g = open_.pop()
                    is_open.discard(id(g))
                    component.append(g)
                    if g is f:
                        break
                out.append(sorted(component, key=lambda g: g.serial))
    while pending:
        a = pending.pop()
        if id(a) not in arrays:
            arrays[id(a)] = a
            if isinstance(a, Input):
                sizes = scan(e for e in a.sizes if e is not None)
                pending += sizes.owners.values()
                used.update(sizes.params)
    return out, arrays, used


def _open(
    f: Func, producers: Callable[[Func], list[Func]], index: dict[int, int], low: dict[int, int], open_: list[Func],
    is_open: set[int], work: list[tuple[Func, list[Func], int]],
) -> None:  # fmt: skip
    index[id(f)] = low[id(f)] = len(index)
    open_.append(f)
    is_open.add(id(f))
    work.append((f, producers(f), 0))


def _undefined(f: Func) -> NoReturn:
    if f.starts:
        refuse(
            f"`{f.name}` has start values only",
            places=[(f.starts[-1].span, "a start value")],
            hint=f"define it over all its Vars too: {f.name}[...] = ...",
        )
    refuse(f"`{f.name}` has no definition", places=[(f.span, "made here")], hint=f"write {f.name}[...] = ...")
