"""In which order the loops of a stage may run: what a rule on boxes sees to be safe at once, and then what isl proves.

A pure definition may run in any order. A recurrence keeps, for each read of itself, the first dim in which the read
lies elsewhere serial and outside the other dims it moves in. An update keeps the variables of its RDom serial and in
order, but for those that name the cell they write. So much is seen without isl, by dependence distances by dim, as in
Allen and Kennedy; `poly` decides all else, skewed and reversed loops too. What neither proves is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stax.algorithm.combine import is_cell
from stax.algorithm.nodes import Func, Update
from stax.bounds.accesses import Access
from stax.bounds.infer import stage_name
from stax.errors import LegalityError, Place
from stax.expr.affine import Algebra
from stax.expr.nodes import Binary, BinaryOp, Expr, Read, Var
from stax.expr.walk import names, postorder, reads
from stax.legality.witness import clashed
from stax.loops.nodes import LoopKind
from stax.poly.clash import Clash, How, TooHard, problem
from stax.poly.proofs import Proofs
from stax.schedule.nest import Nest
from stax.schedule.points import Points


@dataclass(frozen=True, slots=True)
class Chain:
    """Roots whose loops are serial and stand in this order, because of `access`."""

    first: str
    then: frozenset[str]
    access: Access | None


def check_order(
    f: Func, stage: int, nest: Nest, points: Points, found: tuple[Access, ...], algebra: Algebra,
    at_least: Mapping[int, int], proofs: Proofs,
) -> None:  # fmt: skip
    """Raise LegalityError where the loops of a stage may change what it computes; a Clashed where they do."""
    try:
        if stage == 0 and f.order:
            raise LegalityError(
                f"the loops of `{f.name}` may run in an order that changes its values", [(f.span, "defined here")]
            )
        _seen_to_be_safe(f, stage, points, found, algebra)
    except LegalityError as refused:
        free = stage > 0 and _commutes(f, f.updates[stage - 1])
        try:
            asked = problem(f, stage, nest, points, found, free, algebra, at_least, unequal=False)
            bad = proofs.clash(asked)
            if bad is not None and any(fact.unequal for access in found for fact in access.facts):
                asked = problem(f, stage, nest, points, found, free, algebra, at_least, unequal=True)
                bad = proofs.clash(asked)
        except TooHard:
            why = "whether the values stay the same was not found out: the question is too hard"
            raise LegalityError(refused.message, refused.places, [*refused.facts, why], refused.hint) from None
        if bad is not None:
            own = [a for a in found if a.source == f.name]
            raise clashed(f, stage, points, own, asked, bad, _fitting(refused, points, bad)) from None


def _fitting(refused: LegalityError, points: Points, bad: Clash) -> str | None:
    """Return the hint of the rule on boxes where it speaks of what isl found."""
    if points.skewed or any(loop.loop.reversed for loop in points.loops):
        return None
    order = not refused.message.startswith(("parallel(", "vectorize("))
    return refused.hint if order == (bad.how is How.ORDER) else None


def _seen_to_be_safe(f: Func, stage: int, points: Points, found: tuple[Access, ...], algebra: Algebra) -> None:
    chains = _recurrence(f, found, algebra) if stage == 0 else _update(f, f.updates[stage - 1], found, algebra)
    who = stage_name(f.name, stage)
    for chain in chains:
        _serial(f, who, chain, points, stage)


def _recurrence(f: Func, found: tuple[Access, ...], algebra: Algebra) -> list[Chain]:
    chains: list[Chain] = []
    for access in found:
        if access.source == f.name:
            moved = [dim for dim, i in zip(f.dims, access.index, strict=True) if algebra.name(i) != dim]
            if moved:
                chains.append(Chain(moved[0], frozenset(moved[1:]), access))
    return chains


def _update(f: Func, update: Update, found: tuple[Access, ...], algebra: Algebra) -> list[Chain]:
    cells = [a.index for a in found if a.source == f.name]
    free = {
        name
        for d in range(len(f.dims))
        if (name := algebra.name(cells[-1][d])) is not None
        and all(algebra.name(c[d]) == name for c in cells)
        and sum(name in names(i for i in (update.index[k],)) for k in range(len(f.dims))) == 1
    }
    bound = [r.name for r in update.domain if r.name not in free]
    ragged = {n for r in update.domain for n in names((r.lo, r.hi))}
    bound += [r.name for r in update.domain if r.name in free and r.name in ragged]
    anyhow = _commutes(f, update)
    reader = next((a for a in found if a.source == f.name and a.read is not None), found[-1])
    return [Chain(name, frozenset() if anyhow else frozenset(bound[k + 1 :]), reader) for k, name in enumerate(bound)]


def _commutes(f: Func, update: Update) -> bool:
    """Return whether the update is `cell = cell op e` with an `op` that no order changes."""
    if len(update.values) != 1:
        return False
    match update.values[0]:
        case Binary(op=op, left=left, right=right):
            whole = left.dtype.is_integer and op in (
                BinaryOp.ADD,
                BinaryOp.MUL,
                BinaryOp.AND,
                BinaryOp.OR,
                BinaryOp.XOR,
            )
            if not whole and op not in (BinaryOp.MIN, BinaryOp.MAX):
                return False
            return any(
                is_cell(cell, f, update) and not any(r.source == f.name for r in reads((rest, *_conditions(update))))
                for cell, rest in ((left, right), (right, left))
            )
        case _:
            return False


def _conditions(update: Update) -> tuple[Expr, ...]:
    return () if update.where is None else (update.where,)


def _serial(f: Func, who: str, chain: Chain, points: Points, stage: int) -> None:
    mine = points.leaves(chain.first)
    for at in sorted(mine):
        loop = points.loops[at]
        if loop.loop.kind in (LoopKind.PARALLEL, LoopKind.VECTOR):
            word = "parallel" if loop.loop.kind is LoopKind.PARALLEL else "vectorize"
            raise LegalityError(
                f"{word}({loop.loop.name!r}) would change the values of `{who}`",
                _places(f, chain, stage), _fact(f, chain, stage), _hint(chain, stage))  # fmt: skip
    if not points.in_order(chain.first):
        raise LegalityError(
            f"the loops of `{chain.first}` in `{who}` no longer run in order",
            _places(f, chain, stage),
            _fact(f, chain, stage),
            "keep the outer part of a split outside its inner part",
        )
    for other in sorted(chain.then):
        if max(mine) >= min(points.leaves(other)):
            raise LegalityError(
                f"running `{other}` outside `{chain.first}` would change the values of `{who}`",
                _places(f, chain, stage),
                _fact(f, chain, stage),
                f"keep the loops of `{chain.first}` outermost",
            )


def _places(f: Func, chain: Chain, stage: int) -> list[Place]:
    span = f.span if chain.access is None or chain.access.read is None else chain.access.read.span
    if stage and (chain.access is None or chain.access.read is None):
        return [(f.updates[stage - 1].span, "written here in order")]
    return [(span, "reads what an earlier point wrote")]


def _fact(f: Func, chain: Chain, stage: int) -> list[str]:
    """Return two points that would collide, where the distance between them is constant."""
    access = chain.access
    if access is None or access.read is None:
        return []
    if stage:
        name, cell = chain.first, f.updates[stage - 1].index
        if name not in names(cell):
            return [f"for example, {name} = 0 and {name} = 1 update the same cell of `{f.name}`"]
        if any(isinstance(e, Read) for e in postorder(cell)):
            return [f"{name} = 0 and {name} = 1 may update the same cell of `{f.name}`: the data say which"]
        return [f"{name} = 1 may read a cell of `{f.name}` that {name} = 0 wrote, or the other way round"]
    gaps: list[int] = []
    for dim, index in zip(f.dims, access.read.index, strict=True):
        match index:
            case Var(name=name) if name == dim:
                gaps.append(0)
            case _:
                gap = _distance(index, dim)
                if gap is None:
                    return []
                gaps.append(gap)
    reader = [max(0, -g) for g in gaps]
    return [f"for example, {_point(reader)} reads {_point([p + g for p, g in zip(reader, gaps, strict=True)])}"]


def _distance(index: Expr, dim: str) -> int | None:
    algebra = Algebra()
    gap = algebra.of(index) - algebra.of(Var(index.dtype, dim))
    return gap.const if not gap.terms else None


def _point(values: list[int]) -> str:
    return f"({', '.join(map(str, values))})" if len(values) != 1 else str(values[0])


def _hint(chain: Chain, stage: int) -> str:
    return (
        "for an update that combines: reassociate() allows lanes, atomic() and rfactor(...) allow threads"
        if stage
        else "use a loop it does not move in"
    )
