"""Func: values over indices, defined once and updated in order."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Any, Literal, NoReturn

from stax.algorithm.nodes import MARK
from stax.dtypes import DType
from stax.errors import StaxError, StaxWarning
from stax.expr.nodes import Cast, Const, Expr, Var
from stax.expr.number import Numbering
from stax.lang import index as indices
from stax.lang.domain import domain_of
from stax.lang.promote import converts, index_of, join
from stax.lang.scan import Scan, close_reads, scan
from stax.lang.terms import (
    NUMBER,
    Access,
    Lead,
    Nodes,
    Step,
    as_tuple,
    is_weak,
    refuse,
    scalar_type,
    serials,
    settled,
)  # fmt: skip
from stax.lang.value import Indexed, Value, again, value_of
from stax.lang.var import RDom
from stax.source import Span, here

Fp = Literal["strict", "default", "fast"]


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """One line of a user: `func[index] = values`, over `domain` where it is an update that uses one.

    `written` are the values, then the indices, where they read Funcs whose types later lines may change.
    """

    index: Nodes
    values: Nodes
    domain: RDom | None
    scan: Scan
    span: Span | None
    written: tuple[Value, ...] = ()

    def anew(self) -> Definition:
        """Return the definition with the types that Funcs have by now."""
        if not self.written:
            return self
        nodes = tuple(v.node for v in again(self.written))
        count = len(self.values)
        places = nodes[count:]
        return replace(self, values=nodes[:count], index=(*self.index[: len(self.index) - len(places)], *places))


class Func(Indexed):
    """Values over indices: `f[y, x] = e` says what they are, later lines with other indices change them in order.

    `dtype` (a tuple of them for a Func of tuples) and `shape` are declared where they cannot be seen: by a recurrence,
    or for an output. Entries of `shape` are None, ints, Params, sizes, and sums of those. `where` is a function of the
    indices that says which cells there are, such as `lambda y, x: x <= y`: loops run over those alone, a read of
    another one is refused, and it is 0 in an output. `fp` is "strict", "default" or "fast", and wins over the kernel's.

    >>> import stax as sx
    >>> y, x = sx.vars("y x")
    >>> a = sx.Input("a", sx.float32, 2)
    >>> f = sx.Func("f")
    >>> f[y, x] = a[y, x] + a[y, x + 1]
    >>> f.dims, f.dtype
    (('y', 'x'), float32)
    """

    def __init__(
        self,
        name: str,
        dtype: Any = None,
        shape: Any = None,
        where: Callable[..., object] | None = None,
        fp: Fp | None = None,
    ) -> None:
        if not isinstance(name, str) or not name or MARK in name:  # pyright: ignore[reportUnnecessaryIsInstance]
            refuse(f"{name!r} is no name of a Func", hint=f"a name is text without `{MARK}`")
        if where is not None and not callable(where):
            refuse(f"`where` of `{name}` is {where!r:.40}", hint="where=lambda y, x: x <= y, of all its dims")
        if fp not in (None, "strict", "default", "fast"):
            refuse(f"fp is {fp!r}", hint='it is "strict", "default" or "fast"')
        self.name, self.fp, self.span, self.serial = name, fp, here(), next(serials)
        self._where = where
        self.domain: Expr | None = None
        self.declared: tuple[DType, ...] | None = None
        if dtype is not None:
            self.declared = tuple(scalar_type(t) for t in as_tuple(dtype))
        self.extents: tuple[Expr | None, ...] | None = None
        if shape is not None:
            entries = as_tuple(tuple(shape) if isinstance(shape, list) else shape)  # pyright: ignore[reportUnknownArgumentType]
            self.extents = tuple(
                None if s is None else index_of(value_of(s, "an extent").node, "an extent") for s in entries
            )
        self.starts: list[Definition] = []
        self.pure: Definition | None = None
        self.updates: list[Definition] = []
        self._types: list[DType] = list(self.declared or ())
        self._reader: tuple[str, Span | None] | None = None

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of its dims, of the definition whose indices are all Vars."""
        if self.pure is None:
            refuse(f"`{self.name}` has no definition yet")
        return self._names()

    @property
    def dtype(self) -> DType:
        """The type of its values."""
        if len(self._types) > 1:
            refuse(f"`{self.name}` has {len(self._types)} values an index", hint="ask for `dtypes`")
        return self.dtypes[0]

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The types of its values, one a part."""
        if not self._types:
            refuse(f"`{self.name}` has no type yet", hint="define it, or declare a dtype")
        return tuple(settled(t) for t in self._types)

    @property
    def shape(self) -> tuple[Value, ...]:
        """The declared extents."""
        if self.extents is None or None in self.extents:
            refuse(f"`{self.name}` has no declared shape", hint="sx.Func(name, shape=(...))")
        return tuple(Value(_index_number(e)) for e in self.extents if e is not None)

    def __repr__(self) -> str:
        return f"Func({self.name!r})"

    def _repr_html_(self) -> str:
        from stax.lang.freeze import freeze
        from stax.notebook import block, line

        try:
            return freeze(self)._repr_html_()  # pyright: ignore[reportPrivateUsage]
        except StaxError as error:
            return block(line(repr(self), f"is no program yet: {error.message}"))

    def __getattr__(self, word: str) -> NoReturn:
        hint = "" if word.startswith("_") else "; a Schedule says how it is run: s = sx.Schedule(f); s[f].parallel(y)"
        raise AttributeError(f"a Func has no {word!r}{hint}")

    def __getitem__(self, index: object) -> Any:
        """Return the value at `index`: a Value, or a tuple of them for a Func of tuples.

        >>> import stax as sx
        >>> x = sx.Var("x")
        >>> f = sx.Func("f")
        >>> f[x] = (x, x / 2)
        >>> quotient = f[x + 1][1]
        >>> quotient.dtype
        float64
        """
        span = here()
        if self.pure is None and self.declared is None and (not self._types or any(map(is_weak, self._types))):
            self._untyped_read(span)
        rank = self._rank()
        given = indices.entries(index)
        dims = self._names() if self.pure is not None else tuple(f"d{k}" for k in range(rank or 0))
        if rank is None:
            found = tuple(indices.entry(g, self.name) for g in given)
        else:
            found = indices.of_read(index, dims, self.name)
        parts = tuple(self._read(k, found, span) for k in range(len(self._types)))
        return parts[0] if len(parts) == 1 else parts

    def __setitem__(self, index: object, value: object) -> None:
        """Define, start or update the Func."""
        span = here()
        values = tuple(value_of(v, f"a value of `{self.name}`") for v in as_tuple(value))
        if not values:
            refuse(f"`{self.name}` is given no value")
        if self._types and len(values) != len(self._types):
            refuse(f"`{self.name}` has {_parts(len(self._types))}, and is given {len(values)}")
        count = len(indices.entries(index))
        entries = tuple(e for e in indices.entries(index) if not isinstance(e, EllipsisType))
        dotted = len(entries) != count
        places = tuple(indices.entry(e, self.name) for e in entries)
        everything = close_reads((*values, *places), self)
        values, places = everything[: len(values)], everything[len(values) :]
        nodes = tuple(v.node for v in values)
        found = scan((*nodes, *(p.node for p in places)))
        left = (*self._leads(found, len(places), dotted), *(p.node for p in places))
        loose = any(v.recipe is not None for v in everything)
        self._define(left, nodes, found, span, everything if loose else ())

    def close(self) -> None:
        """Take the default types where there are none yet; another Func reads this one."""
        self._types = [settled(t) for t in self._types]

    def _names(self) -> tuple[str, ...]:
        assert self.pure is not None
        out: list[str] = []
        for place in self.pure.index:
            assert isinstance(place, Var)
            out.append(place.name)
        taken = {n.name for n in self.pure.index if isinstance(n, Var) and not isinstance(n, Lead)}
        for k, place in enumerate(self.pure.index):
            number = 2
            while isinstance(place, Lead) and (out[k] in taken or out[k] in out[:k]):
                out[k], number = f"{place.name}.{number}", number + 1
        return tuple(out)

    def _rank(self) -> int | None:
        if self.pure is not None:
            return len(self.pure.index)
        if self.starts:
            return len(self.starts[0].index)
        return len(self.extents) if self.extents is not None else None

    def _read(self, part: int, index: tuple[Value, ...], span: Span | None) -> Value:
        def make(*places: Expr) -> Expr:
            found = tuple(index_of(i, f"an index of `{self.name}`") for i in places)
            return Access(self._types[part], f"{self.name}#{self.serial}", found, part, span=span, owner=self)

        node = make(*(i.node for i in index))
        loose = is_weak(node.dtype) or any(i.recipe is not None for i in index)
        return Value(node, (make, index) if loose else None)

    def _leads(self, found: Scan, explicit: int, dotted: bool) -> tuple[Expr, ...]:
        """Return the Vars that `...` stands for on the left."""
        most = max(found.leads, default=0)
        if not dotted:
            if most:
                refuse(f"`...` stands on the right of a definition of `{self.name}`, not on the left")
            return ()
        rank = self._rank()
        count = most if rank is None else rank - explicit
        if count < most or count < 0:
            refuse(f"`...` on the left stands for {max(count, 0)} dims of `{self.name}`, on the right for {most}")
        named = {place: lead.name for place, lead in found.leads.items()}
        if self.pure is not None:
            named = {count - k: name for k, name in enumerate(self._names()[:count])}
        return tuple(Lead(NUMBER, named.get(p, f"d{count - p}"), place=p) for p in range(count, 0, -1))

    def _define(self, left: Nodes, values: Nodes, found: Scan, span: Span | None, written: tuple[Value, ...]) -> None:
        rank = self._rank()
        if rank is not None and len(left) != rank:
            dims = self._names() if self.pure is not None else tuple(f"d{k}" for k in range(rank))
            indices.wrong_count(self.name, dims, len(left))
        plain = [p if isinstance(p, Var) and not isinstance(p, Step) else None for p in left]
        names = [p.name for p in plain if p is not None and not isinstance(p, Lead)]
        if len(set(names)) != len(names):
            twice = next(n for n in names if names.count(n) > 1)
            refuse(
                f"`{twice}` stands twice on the left of `{self.name}`",
                hint="use two Vars, or an update over an RDom for the diagonal",
            )
        for place in left:
            if place.dtype.is_float:
                index_of(place, f"an index of `{self.name}`")
        self._no_inner_reads(found, span)
        whole = all(p is not None for p in plain)
        reads_itself = any(r.owner is self for r in found.reads)
        if self.pure is None:
            if whole:
                self._pure_definition(left, values, found, span, reads_itself)
                self.pure = Definition(left, values, None, found, span, written)
            else:
                self._start_value(left, values, found, span, plain)
                self.starts.append(Definition(left, values, None, found, span, written))
        else:
            domain = self._update(left, values, found, span, plain, whole and not reads_itself)
            self.updates.append(Definition(left, values, domain, found, span, written))

    def _pure_definition(self, left: Nodes, values: Nodes, found: Scan, span: Span | None, reads_itself: bool) -> None:
        if found.steps:
            one = next(iter(found.steps.values())).name
            refuse(
                f"`{self.name}` is updated over `{one}` before it has a definition",
                hint=f"write {self.name}[...] = 0 first, or use sx.sum(..., over=...)",
            )
        own = Numbering()
        here_ = [own.of(p) for p in left]
        for r in found.reads if reads_itself else ():
            if r.owner is self and [own.of(_plain(i)) for i in r.index] == here_:
                refuse(
                    f"`{self.name}` is defined by its own value at the same index",
                    places=[(r.span, "this is what the line defines")],
                    hint=f"for an update, write {self.name}[...] = 0 first; for a recurrence, read an earlier index",
                )
        self._known_vars(left, found, span)
        if self.extents is not None and len(self.extents) != len(left):
            refuse(f"`{self.name}` has {len(left)} dims, and a declared shape of {len(self.extents)}")
        if self._where is not None:
            names = [p.name for p in left if isinstance(p, Var)]
            self.domain = domain_of(self._where, names, self.name, self.span)
        self._take(values, span)
        self._mark(found, span)

    def _start_value(self, left: Nodes, values: Nodes, found: Scan, span: Span | None, plain: list[Var | None]) -> None:
        fixed = scan(p for p, v in zip(left, plain, strict=True) if v is None)
        if found.steps:
            one = next(iter(found.steps.values())).name
            refuse(
                f"`{self.name}` is updated over `{one}` before it has a definition",
                hint=f"write {self.name}[...] = 0 first",
            )
        if fixed.vars or fixed.leads:
            name = next(iter(fixed.vars), "...")
            refuse(
                f"an index of `{self.name}` on the left is made of `{name}`",
                hint="before the definition over all Vars, an index is a Var alone or free of Vars (a start value)",
            )
        self._known_vars(left, found, span)
        self._take(values, span)
        self._mark(found, span)

    def _update(
        self, left: Nodes, values: Nodes, found: Scan, span: Span | None, plain: list[Var | None], redefines: bool
    ) -> RDom | None:
        assert self.pure is not None
        names = self._names()
        if redefines and not found.steps:
            refuse(
                f"`{self.name}` is defined a second time",
                places=[(self.pure.span, "first here"), (span, "and here")],
                hint="an update reads the Func, or fixes an index, or runs over an RDom; else make a new Func",
            )
        if self._reader is not None:
            refuse(
                f"`{self.name}` is updated after `{self._reader[0]}` has read it",
                places=[(self._reader[1], "read here"), (span, "updated here")],
                hint="write all updates before the Func is read, or make a new Func",
            )
        fixed = scan(p for p, v in zip(left, plain, strict=True) if v is None)
        loose = [name for name in fixed.vars if name not in {p.name for p in plain if p is not None}]
        if loose or fixed.leads:
            name = next(iter(loose), "...")
            refuse(
                f"an index of an update of `{self.name}` is made of `{name}`",
                hint="a Var of an update stands alone in the place of a dim, too; an RDom gives variables for the rest",
            )
        domains = found.domains
        for domain in domains:
            more = scan([e for b in domain.bounds for e in (b.lo, b.hi)] + _some(domain.predicate))
            _merge(found, more)
        domains = found.domains
        if len(domains) > 1:
            refuse(f"an update of `{self.name}` runs over two RDoms", hint="make one RDom of all the variables")
        self._known_vars(left, found, span)
        self._same_places(left, plain, found, names)
        domain = domains[0] if domains else None
        self._warn_of_recurrence(left, found, domain)
        self._take(values, span)
        self._mark(found, span)
        return domain

    def _same_places(self, left: Nodes, plain: list[Var | None], found: Scan, names: tuple[str, ...]) -> None:
        for r in found.reads:
            if r.owner is not self:
                continue
            for k, var in enumerate(plain):
                at = _plain(r.index[k])
                if var is not None and not (isinstance(at, Var) and type(at) is type(var) and at.name == var.name):
                    refuse(
                        f"an update of `{self.name}` reads it at another place along `{names[k]}`",
                        places=[(r.span, f"`{var.name}` alone must stand for `{names[k]}` here")],
                        hint="run over an RDom in that dim, or define a recurrence, or read another Func",
                    )

    def _warn_of_recurrence(self, left: Nodes, found: Scan, domain: RDom | None) -> None:
        if domain is None or not self.updates or self.updates[-1].domain is None:
            return
        numbers = Numbering()

        def key(d: RDom) -> object:
            return [(numbers.of(b.lo), numbers.of(b.hi)) for b in d.bounds]

        own = [numbers.of(p) for p in left]
        moved = any(r.owner is self and [numbers.of(_plain(i)) for i in r.index] != own for r in found.reads)
        if moved and key(domain) == key(self.updates[-1].domain):
            warnings.warn(
                f"two updates of `{self.name}` run one after the other, each over its whole RDom; "
                "where a step of the second needs the same step of the first, write one update or a recurrence",
                StaxWarning,
                stacklevel=4,
            )

    def _known_vars(self, left: Nodes, found: Scan, span: Span | None) -> None:
        known = {p.name for p in left if isinstance(p, Var)}
        for name in found.vars:
            if name not in known:
                refuse(
                    f"`{name}` stands on the right of a definition of `{self.name}`, not on the left",
                    hint="put it on the left, fix it, or reduce over an RDom",
                )

    def _no_inner_reads(self, found: Scan, span: Span | None) -> None:
        for r in found.inner:
            if r.owner is self:
                refuse(
                    f"a reduction inside a definition of `{self.name}` reads `{self.name}`",
                    places=[(r.span, "read here"), (span, "while this is defined")],
                    hint="write a recurrence, or an update over an RDom",
                )

    def _take(self, values: Nodes, span: Span | None) -> None:
        """Check that `values` convert to the Func's types, or let them say what those are."""
        types = list(self._types) or [v.dtype for v in values]
        for k, value in enumerate(values):
            if is_weak(types[k]):
                types[k] = join((types[k], value.dtype)) if is_weak(value.dtype) else value.dtype
            elif not converts(value, types[k]):
                part = f"part {k} of `{self.name}`" if len(values) > 1 else f"`{self.name}`"
                refuse(
                    f"a value of {settled(value.dtype)} is given to {part}, which is {types[k]}",
                    hint=f"sx.cast(..., sx.{types[k].name.rstrip('_')})",
                )
        self._types = types

    def _mark(self, found: Scan, span: Span | None) -> None:
        for r in (*found.reads, *found.inner):
            other = r.owner
            if isinstance(other, Func) and other is not self and other._reader is None:
                other.close()
                other._reader = (self.name, r.span or span)

    def _untyped_read(self, span: Span | None) -> NoReturn:
        if self.starts:
            refuse(
                f"`{self.name}` is read before its type is known: its start values are Python numbers",
                hint=f'declare it: sx.Func("{self.name}", dtype=...)',
            )
        refuse(
            f"`{self.name}` is read before it is defined",
            hint=f"{self.name}[...] = ... comes before updates and readers; a recurrence needs a start value or dtype=",
        )


def _plain(node: Expr) -> Expr:
    """Return the Var of an index that is a Var alone."""
    return node.value if isinstance(node, Cast) and is_weak(node.value.dtype) else node


def _index_number(node: Expr) -> Expr:
    """Return an int64 extent as the index number that it was declared as."""
    return Const(NUMBER, node.value) if isinstance(node, Const) else _plain(node)


def _some(node: Expr | None) -> list[Expr]:
    return [] if node is None else [node]


def _merge(found: Scan, more: Scan) -> None:
    found.reads += more.reads
    found.inner += more.inner
    for mine, other in (
        (found.reductions, more.reductions), (found.owners, more.owners), (found.params, more.params),
        (found.vars, more.vars), (found.leads, more.leads), (found.steps, more.steps),
    ):  # fmt: skip
        for key, value in other.items():  # pyright: ignore[reportUnknownVariableType]
            mine.setdefault(key, value)  # pyright: ignore


def _parts(n: int) -> str:
    return "one value an index" if n == 1 else f"{n} values an index"
