"""Which reads a stage makes, and what is known of its variables where each is needed.

A read in an arm of a `select` is needed only where the affine part of the condition holds; a condition on data removes
nothing. A predicate of an RDom holds wherever its update runs, and may bound a data-dependent index too.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from stax.algorithm.domain import conjuncts, plain_dims
from stax.algorithm.nodes import Func, Update
from stax.expr import build
from stax.expr.affine import Affine, Algebra
from stax.expr.nodes import INDEX, Binary, BinaryOp, Expr, Read, Select, Unary, UnaryOp, Var
from stax.expr.walk import children, names, postorder


@dataclass(frozen=True, slots=True)
class Fact:
    """`sum` >= 0, or where `unequal`, `sum` != 0."""

    sum: Affine
    unequal: bool = False


Facts = frozenset[Fact]
NOTHING: Facts = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """A read, or the cell an update writes (`read` None), by stage `stage` of `func`, and what holds there."""

    func: str
    stage: int
    source: str
    index: tuple[Affine, ...]
    facts: Facts
    read: Read | None


def accesses(func: Func, stage: int, algebra: Algebra) -> list[Access]:
    """Return the reads of a stage, equal ones once, and last its write where the stage is an update."""
    update = func.updates[stage - 1] if stage else None
    facts = _always(update, algebra) if update else NOTHING
    roots = func.values if update is None else (*update.values, *update.index)
    known = contexts(roots, facts, algebra)
    if update is not None and update.where is not None:
        guards = contexts((update.where,), _domain(update, algebra), algebra)
        known |= {k: (n, f & known[k][1] if k in known else f) for k, (n, f) in guards.items()}
    out: list[Access] = []
    seen: set[tuple[str, tuple[Affine, ...], Facts]] = set()
    for node, held in known.values():
        if isinstance(node, Read):
            access = Access(func.name, stage, node.source, tuple(algebra.of(i) for i in node.index), held, node)
            key = (access.source, access.index, held)
            if key not in seen:
                seen.add(key)
                out.append(access)
    if update is not None:
        out.append(Access(func.name, stage, func.name, tuple(algebra.of(i) for i in update.index), facts, None))
    return out


def domain_facts(f: Func, stage: int, algebra: Algebra) -> list[Fact]:
    """Return what holds of the plain dims of a stage by the domain of its Func, in an order that is always the same."""
    if f.where is None:
        return []
    plain = set(plain_dims(f, f.updates[stage - 1]) if stage else f.dims)
    found = [
        fact
        for part in conjuncts(f.where)
        if names((part,)) <= plain
        for fact in conditions(part, algebra, frozenset())[0]
    ]
    return sorted(found, key=lambda fact: (fact.sum.terms, fact.sum.const))


def kept_inside(found: Iterable[Access]) -> bool:
    """Return whether conditions on positions keep some of these accesses inside what they read."""
    return any(a.facts for a in found)


def at_data(access: Access, algebra: Algebra) -> bool:
    """Return whether the index of an access depends on values read."""
    return any(_reads(i, algebra) for i in access.index)


def contexts(roots: tuple[Expr, ...], facts: Facts, algebra: Algebra) -> dict[int, tuple[Expr, Facts]]:
    """Return, for the id of each node below `roots`, the node and what holds wherever it is needed."""
    held: dict[int, Facts] = {id(root): facts for root in roots}
    order = postorder(roots)
    data = _data(order)
    for node in reversed(order):
        here = held[id(node)]
        match node:
            case Select(cond=cond, yes=yes, no=no):
                yes_facts, no_facts = conditions(cond, algebra, data)
                gives = ((cond, here), (yes, here | yes_facts), (no, here | no_facts))
            case _:
                gives = tuple((child, here) for child in children(node))
        for child, given in gives:
            held[id(child)] = held[id(child)] & given if id(child) in held else given
    return {id(node): (node, held[id(node)]) for node in order}


def conditions(cond: Expr, algebra: Algebra, data: AbstractSet[int]) -> tuple[Facts, Facts]:
    """Return what is known where `cond` holds, and where it does not, of all but nodes whose ids are in `data`."""
    return _known(cond, True, algebra, data), _known(cond, False, algebra, data)


def _data(order: Iterable[Expr]) -> set[int]:
    """Return the ids of those nodes that depend on values read, of nodes in postorder."""
    found: set[int] = set()
    for node in order:
        if isinstance(node, Read) or any(id(child) in found for child in children(node)):
            found.add(id(node))
    return found


def _known(cond: Expr, holds: bool, algebra: Algebra, data: AbstractSet[int]) -> Facts:
    found: set[Fact] = set()
    stack = [(cond, holds)]
    while stack:
        node, wanted = stack.pop()
        match node:
            case Unary(op=UnaryOp.NOT, value=value) if node.dtype.is_bool:
                stack.append((value, not wanted))
            case Binary(op=BinaryOp.AND | BinaryOp.MUL, left=left, right=right) if left.dtype.is_bool and wanted:
                stack += [(left, True), (right, True)]
            case Binary(op=BinaryOp.OR | BinaryOp.ADD, left=left, right=right) if left.dtype.is_bool and not wanted:
                stack += [(left, False), (right, False)]
            case Binary(op=op, left=left, right=right) if left.dtype.is_integer and left.dtype.name != "uint64":
                if id(node) not in data:
                    gap = algebra.of(build.cast(right, INDEX)) - algebra.of(build.cast(left, INDEX))
                    found.update(_compared(op, gap, wanted))
            case _:
                pass
    return frozenset(found)


def _compared(op: BinaryOp, gap: Affine, holds: bool) -> list[Fact]:
    """Return what `left op right` says of gap = right - left."""
    back = gap * -1
    match op, holds:
        case (BinaryOp.LT, True):
            return [Fact(gap - 1)]
        case (BinaryOp.LT, False):
            return [Fact(back)]
        case (BinaryOp.LE, True):
            return [Fact(gap)]
        case (BinaryOp.LE, False):
            return [Fact(back - 1)]
        case (BinaryOp.EQ, True) | (BinaryOp.NE, False):
            return [Fact(gap), Fact(back)]
        case (BinaryOp.EQ, False) | (BinaryOp.NE, True):
            return [Fact(gap, unequal=True)]
        case _:
            return []


def _reads(a: Affine, algebra: Algebra) -> bool:
    return any(isinstance(node, Read) for node in postorder(algebra.atom(n) for n, _ in a.terms))


def _domain(update: Update, algebra: Algebra) -> Facts:
    """Return what ragged bounds say: constant ones are ranges, and need no fact."""
    found: set[Fact] = set()
    for r in update.domain:
        v = algebra.of(Var(r.lo.dtype, r.name))
        for gap in (v - algebra.of(r.lo), algebra.of(r.hi) - v - 1):
            if sum(isinstance(algebra.atom(n), Var) for n, _ in gap.terms) > 1:
                found.add(Fact(gap))
    return frozenset(found)


def _always(update: Update, algebra: Algebra) -> Facts:
    facts = _domain(update, algebra)
    return facts if update.where is None else facts | conditions(update.where, algebra, frozenset())[0]
