"""A reduction inside an expression: a Func that `freeze` names after its reader."""

from __future__ import annotations

from collections.abc import Callable

from stax.dtypes import DType
from stax.errors import UnsupportedError
from stax.expr.nodes import Expr, Var
from stax.lang.promote import converts, meet
from stax.lang.scan import Scan, close_reads, scan
from stax.lang.terms import Access, Nodes, refuse, serials, settled
from stax.lang.value import Value
from stax.lang.var import RDom
from stax.source import Span, here

Combine = Callable[[tuple[Value, ...], tuple[Value, ...]], tuple[Value, ...]]


class Reduction:
    """`start`, then for each point of `domain` what `step` says of the values so far and those of the point.

    `free` are the variables that it depends on; `dtypes` the accumulator's. `op` names it unless `name` does.
    """

    def __init__(
        self, op: str, elements: tuple[Value, ...], over: RDom, dtypes: tuple[DType, ...], start: tuple[Value, ...],
        combine: Combine, name: str | None = None,
    ) -> None:  # fmt: skip
        self.op, self.domain, self.dtypes, self.name, self.span = op, over, dtypes, name, here()
        self.serial = next(serials)
        bounds = [e for b in over.bounds for e in (b.lo, b.hi)]
        where = [] if over.predicate is None else [over.predicate]
        own = scan([*(e.node for e in elements), *(s.node for s in start), *bounds, *where])
        self.free: tuple[Var, ...] = (
            *(own.leads[place] for place in sorted(own.leads, reverse=True)),
            *own.vars.values(),
            *(s for s in own.steps.values() if s.owner is not over),
        )
        bound = {b.name for b in over.bounds}
        clash = next((s.name for s in own.steps.values() if s.owner is not over and s.name in bound), None)
        if clash is not None:
            refuse(f"two RDoms of one reduction call a variable `{clash}`", hint="give the RDoms different names")
        self.scan: Scan = own
        parts = tuple(Value(self.read(k)) for k in range(len(dtypes)))
        stepped = combine(parts, elements)
        self.start: Nodes = tuple(_converted(s.node, t) for s, t in zip(start, dtypes, strict=True))
        self.step: Nodes = tuple(_converted(s.node, t) for s, t in zip(stepped, dtypes, strict=True))

    def read(self, part: int, span: Span | None = None) -> Expr:
        """Return the expression that reads part `part`."""
        source = f"{self.op}#{self.serial}"
        return Access(self.dtypes[part], source, self.free, part, span=span, owner=self)

    def values(self) -> tuple[Value, ...]:
        """Return the result, one Value a part."""
        span = here()
        return tuple(Value(self.read(k, span)) for k in range(len(self.dtypes)))


def domain_of(over: object) -> RDom:
    """Return `over` where it is an RDom, else refuse it."""
    if not isinstance(over, RDom):
        refuse(
            f"a reduction runs over an RDom, not over {over!r:.40}", hint='over= takes an RDom: r = sx.RDom("r", x=n)'
        )
    return over


def elements_of(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return `values` as they are reduced: Funcs without a type take the default one."""
    return close_reads(values, None)


def _converted(node: Expr, dtype: DType) -> Expr:
    if not converts(node, dtype):
        refuse(f"a reduction's step gives {settled(node.dtype)} for a part that is {dtype}", kind=UnsupportedError)
    return meet(node, dtype)
