"""Which reads a stage makes, and what is known of its variables where each is needed.

A read in an arm of a `select` is needed only where the affine part of the condition holds; a condition on data removes
nothing. A predicate of an RDom holds wherever its update runs, and may bound a data-dependent index too.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NoReturn

from stax.algorithm.domain import conjuncts, plain_dims
from stax.algorithm.nodes import Func, Update
from stax.errors import DefinitionError
from stax.expr import build
from stax.expr.affine import Affine, Algebra, whole
from stax.expr.nodes import INDEX, Binary, BinaryOp, Cast, Const, Expr, Read, Select, Unary, UnaryOp, Var
from stax.expr.show import show
from stax.expr.walk import children, names, postorder


@dataclass(frozen=True, slots=True)
class Fact:
    """`sum` >= 0, or where `unequal`, `sum` != 0."""

    sum: Affine
    unequal: bool = False


Facts = frozenset[Fact]
NOTHING: Facts = frozenset()
MOST_ARMS = 16


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
    """Return the reads of a stage, equal ones once, and last its write where the stage is an update.

    A read under a condition that no point meets is none.
    """
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
        if isinstance(node, Read) and not any(_fails(fact) for fact in held):
            access = Access(func.name, stage, node.source, tuple(algebra.of(i) for i in node.index), held, node)
            key = (access.source, access.index, held)
            if key not in seen:
                seen.add(key)
                out.append(access)
    if update is not None:
        out.append(Access(func.name, stage, func.name, tuple(algebra.of(i) for i in update.index), facts, None))
    return out


def _fails(fact: Fact) -> bool:
    """Return whether `fact` is of a number, and not so."""
    return not fact.sum.terms and (fact.sum.const == 0 if fact.unequal else fact.sum.const < 0)


def domain_facts(f: Func, stage: int, algebra: Algebra) -> list[Fact]:
    """Return what holds of the plain dims of a stage by the domain of its Func, in an order that is always the same.

    Each is a sum of dims and of what no dim moves, since loops run between such ends. Together they are the domain:
    where a part of it is no such sum, DefinitionError says so.
    """
    if f.where is None:
        return []
    plain = set(plain_dims(f, f.updates[stage - 1]) if stage else f.dims)
    found = {fact for part in conjuncts(f.where) if names((part,)) <= plain for fact in _in_sums(part, f, algebra)}
    return sorted(found, key=lambda fact: (fact.sum.terms, fact.sum.const))


def _in_sums(part: Expr, f: Func, algebra: Algebra) -> list[Fact]:
    """Return what `part` says of the dims of `f`, quotients multiplied out: x // 2 <= y is x <= 2y + 1."""
    found = [fact.sum for fact in conditions(part, algebra, frozenset(), split_only=True)[0]]
    out: list[Fact] = []
    while found:
        one = found.pop()
        moved = [(n, k) for n, k in one.terms if not isinstance(algebra.atom(n), Var) and algebra.names(n)]
        if not moved:
            out.append(Fact(one))
            continue
        number, factor = moved[0]
        rest = one.without(number)
        match algebra.atom(number):
            case Binary(op=BinaryOp.FLOORDIV, left=left, right=Const(value=int(by))) if by > 0 and abs(factor) == 1:
                slack = 0 if factor > 0 else by - 1
                found.append(rest * by + algebra.of(left) * factor + slack)
            case Cast(value=atom) | atom:
                _no_sum(atom, f)
    return out if out else _no_sum(part, f)


def _no_sum(node: Expr, f: Func) -> NoReturn:
    why = "is no sum of positions"
    match node:
        case Unary(op=UnaryOp.ABS) | Binary(op=BinaryOp.MAX):
            why = "may only be on the smaller side, as in abs(e) <= n: elsewhere it leaves two parts"
        case Binary(op=BinaryOp.MIN):
            why = "may only be on the larger side: elsewhere it leaves two parts"
        case _:
            pass
    raise DefinitionError(
        f"the `where` of `{f.name}` is no conjunction of comparisons of positions",
        [(f.span, "defined here")],
        [f"`{show(node)}` {why}"],
        hint="compare sums of indices, sizes and Params, joined by &; sx.select in the definition takes any condition",
    )


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


def conditions(cond: Expr, algebra: Algebra, data: AbstractSet[int], split_only: bool = False) -> tuple[Facts, Facts]:
    """Return what is known where `cond` holds, and where it does not, of all but nodes whose ids are in `data`.

    abs(x) <= y says that x <= y and -x <= y, too; with `split_only`, nothing but those.
    """
    yes, no = _known(cond, True, algebra, data), _known(cond, False, algebra, data)
    return _apart(yes, algebra, split_only), _apart(no, algebra, split_only)


def _apart(facts: Facts, algebra: Algebra, split_only: bool) -> Facts:
    """Return `facts` with what they say of both arms of a minimum, a maximum or a magnitude."""
    out: set[Fact] = set()
    for fact in facts:
        arms = [fact.sum] if fact.unequal else _arms(fact.sum, algebra)
        out.update([fact] if fact.unequal or (len(arms) > 1 and not split_only) else [])
        out.update(Fact(arm) for arm in arms if not fact.unequal)
    return frozenset(out)


def _arms(total: Affine, algebra: Algebra) -> list[Affine]:
    """Return sums that are all at least 0 just where `total` is; itself, where it has no arms."""
    waiting, out = [total], list[Affine]()
    while waiting:
        one = waiting.pop()
        arms = next((a for a in (_two_arms(one, n, k, algebra) for n, k in one.terms) if a), ())
        if len(waiting) + len(out) + len(arms) > MOST_ARMS:
            return [total]
        waiting += arms
        out += [] if arms else [one]
    return out


def _two_arms(total: Affine, number: int, factor: int, algebra: Algebra) -> tuple[Affine, ...]:
    match algebra.atom(number):
        case Binary(op=BinaryOp.MIN | BinaryOp.MAX as op, left=left, right=right) if (op is BinaryOp.MIN) == (
            factor > 0
        ):
            ends = (algebra.of(left), algebra.of(right))
        case Unary(op=UnaryOp.ABS, value=value) | Cast(value=Unary(op=UnaryOp.ABS, value=value)) if factor < 0:
            end = algebra.of(value)
            ends = (end, end * -1) if whole(value) and algebra.holds(end) else ()
        case _:
            return ()
    return tuple(total.without(number) + end * factor for end in ends)


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
            case Const(value=value) if node.dtype.is_bool and bool(value) != wanted:
                found.add(Fact(Affine(-1)))
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
