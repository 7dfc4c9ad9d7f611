"""What a program is, as far as its schedule depends on it: for each stage its loops, its work, and how its reads move.

A read of `f[2 * y + r - 1, x]` moves with `y`, two rows a step, over those that `r` adds; where an index depends on
data or on several loops, it may be anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from stax.algorithm.combine import Combine, combine
from stax.algorithm.domain import plain_dims
from stax.algorithm.nodes import Func, Pipeline, Update
from stax.bounds.accesses import Access
from stax.bounds.infer import Regions, infer
from stax.dtypes import DType
from stax.expr.affine import Affine, Algebra
from stax.expr.nodes import COMPARES, Binary, BinaryOp, Const, Expr, Read, Var
from stax.expr.walk import names, postorder, reads
from stax.schedule.channels import channels
from stax.schedule.default import lanes_of, operations

MOST_PERIOD = 4


@dataclass(frozen=True, slots=True)
class Move:
    """An index that is `scale * root` plus `lo .. hi`; without a root, `lo .. hi` alone, or, `wild`, anything.

    `even` is whether a step of the root is always the same number of cells.
    """

    root: str | None
    scale: Fraction
    lo: int
    hi: int
    wild: bool = False

    @property
    def even(self) -> bool:
        """Whether each step of the root moves by the same whole number of cells."""
        return not self.wild and self.scale.denominator == 1

    @property
    def same(self) -> bool:
        """Whether it counts as its root does."""
        return self.root is not None and not self.wild and self.scale == 1 and self.lo == self.hi


ANYWHERE = Move(None, Fraction(0), 0, 0, wild=True)


@dataclass(frozen=True, slots=True)
class Reach:
    """A read at `index`: what of, how each of its indices moves, and which loops they use, all or the `last` one."""

    source: str
    index: tuple[Affine, ...]
    moves: tuple[Move, ...]
    uses: frozenset[str]
    last: frozenset[str]


@dataclass(frozen=True, slots=True)
class Reduced:
    """A variable of an RDom, and how many values it has, where that is a constant."""

    name: str
    extent: int | None
    ragged: bool


@dataclass(frozen=True, slots=True, eq=False)
class StageFacts:
    """A stage: `plain` are the dims it loops over, `domain` its RDom, outermost first. `ops` is the work of a point.

    Positions are divided by `periods`, and compared or clamped along `edges`. `joins` says how an update combines
    values, where it does; `scatters` whether it writes where data say.
    """

    func: str
    stage: int
    plain: tuple[str, ...]
    domain: tuple[Reduced, ...]
    ops: int
    lanes: int
    reaches: tuple[Reach, ...]
    joins: Combine | None
    scatters: bool
    periods: Mapping[str, int]
    edges: frozenset[str]
    where: bool

    @property
    def ragged(self) -> bool:
        """Whether loops of the RDom depend on other loops."""
        return any(r.ragged for r in self.domain)


@dataclass(frozen=True, slots=True, eq=False)
class FuncFacts:
    """A Func with its stages. `pure`: one definition that reads only other Funcs; `local`: each cell by itself.

    `moved` are the dims that a recurrence reads itself elsewhere in.
    """

    func: Func
    stages: tuple[StageFacts, ...]
    pure: bool
    local: bool
    moved: tuple[str, ...]
    output: bool
    cell_bytes: int
    channels: int | None
    grouped: bool
    extents: tuple[int | None, ...]

    @property
    def name(self) -> str:
        """Its name."""
        return self.func.name

    @property
    def dims(self) -> tuple[str, ...]:
        """Its dims, outermost first."""
        return self.func.dims

    @property
    def runs_along_rows(self) -> bool:
        """Whether it is a recurrence along its last dim alone, so that its rows have nothing to do with each other."""
        plain = not self.func.updates and not self.func.order and self.func.together == 1
        return plain and not self.grouped and len(self.dims) > 1 and self.moved == self.dims[-1:]

    @property
    def ops(self) -> int:
        """The work of a cell of its definition and one point of each update."""
        return sum(s.ops for s in self.stages)


@dataclass(frozen=True, slots=True, eq=False)
class ProgramFacts:
    """A program after inlining: Funcs by name, producers first, and who reads each of them."""

    pipeline: Pipeline
    regions: Regions
    funcs: Mapping[str, FuncFacts]
    readers: Mapping[str, tuple[tuple[StageFacts, Reach], ...]]
    types: Mapping[str, DType] = field(repr=False)

    def dims_of_input(self, name: str) -> tuple[str, ...]:
        """Return the dims of an array of the caller; none of anything else."""
        return next((i.dims for i in self.pipeline.inputs if i.name == name), ())


def facts_of(pipeline: Pipeline) -> ProgramFacts:
    """Return what is to be known of `pipeline`."""
    regions = infer(pipeline)
    context = regions.context
    made = {(f.name, k): found for f in pipeline.funcs for k, found in enumerate(context.accesses[f.name])}
    pixels = channels(pipeline, made, context.algebra)
    grouped = {name for group in pipeline.groups for name in group}
    funcs: dict[str, FuncFacts] = {}
    readers: dict[str, list[tuple[StageFacts, Reach]]] = {}
    for f in pipeline.funcs:
        stages = tuple(_stage(f, k, context.accesses[f.name][k], context.algebra) for k in range(len(f.updates) + 1))
        for stage in stages:
            for reach in stage.reaches:
                if reach.source != f.name:
                    readers.setdefault(reach.source, []).append((stage, reach))
        own = f.name not in grouped and not any(r.source == f.name for r in stages[0].reaches)
        funcs[f.name] = FuncFacts(
            f,
            stages,
            pure=own and not f.updates,
            local=own and all(_keeps_cell(f, s) for s in stages[1:]) and not any(s.scatters for s in stages),
            moved=_moved(f, stages[0]),
            output=f.name in pipeline.outputs,
            cell_bytes=sum(t.size_bytes for t in f.dtypes),
            channels=pixels.get(f.name),
            grouped=f.name in grouped,
            extents=tuple(_constant(regions, f.name, d) for d in range(len(f.dims))),
        )
    types = {i.name: i.dtype for i in pipeline.inputs} | {t.name: t.dtype for t in pipeline.tables}
    return ProgramFacts(pipeline, regions, funcs, {k: tuple(v) for k, v in readers.items()}, types)


def accesses_of(facts: ProgramFacts, name: str) -> tuple[tuple[Access, ...], ...]:
    """Return the accesses of each stage of a Func."""
    return facts.regions.context.accesses[name]


def _constant(regions: Regions, name: str, dim: int) -> int | None:
    box = regions.boxes[name][dim]
    if box.lo is None or box.hi is None:
        return None
    extent = box.hi - box.lo + 1
    return None if extent.terms else extent.const


def _moved(f: Func, stage: StageFacts) -> tuple[str, ...]:
    own = [r.moves for r in stage.reaches if r.source == f.name]
    return tuple(
        d for k, d in enumerate(f.dims) if any(m[k].root != d or m[k].scale != 1 or m[k].lo or m[k].hi for m in own)
    )


def _keeps_cell(f: Func, stage: StageFacts) -> bool:
    """Return whether an update reads of its own Func only the cell that it writes."""
    return all(
        m.root == d and m.scale == 1 and m.lo == m.hi == 0
        for r in stage.reaches
        if r.source == f.name
        for m, d in zip(r.moves, f.dims, strict=True)
    )


def _stage(f: Func, stage: int, found: tuple[Access, ...], algebra: Algebra) -> StageFacts:
    update = f.updates[stage - 1] if stage else None
    plain = f.dims if update is None else plain_dims(f, update)
    domain = () if update is None else _domain(f, update, algebra)
    spans = {r.name: r.extent for r in domain}
    lows = {} if update is None else {r.name: algebra.of(r.lo) for r in update.domain}
    roots = f.values if update is None else (*update.values, *update.index)
    reaches: list[Reach] = []
    loops = frozenset((*plain, *spans))
    for access in found:
        if access.read is None:
            continue
        moves = tuple(move_of(i, algebra, plain, spans, lows) for i in access.index)
        used = [frozenset(names(algebra.atom(t) for t, _ in i.terms)) & loops for i in access.index]
        everywhere = frozenset[str]().union(*used)
        reaches.append(Reach(access.source, access.index, moves, everywhere, used[-1] if used else frozenset()))
    scatters = update is not None and any(
        not (isinstance(i, Var) and i.name == d) and reads((i,)) for d, i in zip(f.dims, update.index, strict=True)
    )
    return StageFacts(
        f.name, stage, plain, domain, operations(roots, {}), lanes_of(f, stage), tuple(reaches),
        None if update is None else combine(f, update), scatters, _periods(roots, loops), _edges(roots, loops),
        update is not None and update.where is not None,
    )  # fmt: skip


def _domain(f: Func, update: Update, algebra: Algebra) -> tuple[Reduced, ...]:
    out: list[Reduced] = []
    loops = {*f.dims, *(r.name for r in update.domain)}
    for r in update.domain:
        extent = algebra.of(r.hi) - algebra.of(r.lo)
        ragged = bool(names((r.lo, r.hi)) & loops)
        out.append(Reduced(r.name, None if extent.terms else extent.const, ragged))
    return tuple(out)


def move_of(
    index: Affine, algebra: Algebra, plain: tuple[str, ...], spans: Mapping[str, int | None], lows: Mapping[str, Affine]
) -> Move:
    """Return how `index` moves, by the loops `plain` and by variables with `spans` values from `lows` on."""
    root, scale, lo, hi = None, Fraction(0), index.const, index.const
    for term, factor in index.terms:
        atom = algebra.atom(term)
        if isinstance(atom, Var) and atom.name in spans:
            span, low = spans[atom.name], lows[atom.name]
            if span is None or low.terms:
                return ANYWHERE
            ends = sorted((low.const * factor, (low.const + span - 1) * factor))
            lo, hi = lo + ends[0], hi + ends[1]
            continue
        if isinstance(atom, Var) and atom.name in plain:
            name, step, below, above = atom.name, Fraction(factor), 0, 0
        elif (divided := _divided(atom, algebra, plain, spans, lows)) is not None:
            inner, by = divided
            if inner.root is None or factor < 0:
                return ANYWHERE
            name, step = inner.root, inner.scale * factor / by
            below, above = (inner.lo // by) * factor, -(-inner.hi // by) * factor
        else:
            return ANYWHERE
        if root is not None:
            return ANYWHERE
        root, scale, lo, hi = name, step, lo + below, hi + above
    return Move(root, scale, lo, hi)


def _divided(
    atom: Expr, algebra: Algebra, plain: tuple[str, ...], spans: Mapping[str, int | None], lows: Mapping[str, Affine]
) -> tuple[Move, int] | None:
    match atom:
        case Binary(op=BinaryOp.FLOORDIV, left=left, right=Const(value=by)) if int(by) > 0:
            inner = algebra.of(left)
            if any(not isinstance(algebra.atom(t), Var) for t, _ in inner.terms):
                return None
            found = move_of(inner, algebra, plain, spans, lows)
            return None if found.wild else (found, int(by))
        case _:
            return None


_DECIDING = COMPARES | {BinaryOp.MIN, BinaryOp.MAX}


def _edges(roots: tuple[Expr, ...], loops: frozenset[str]) -> frozenset[str]:
    """Return the loops along which positions are compared or clamped, so that most of a loop has no conditions."""
    out: set[str] = set()
    for node in postorder(roots):
        match node:
            case Binary(op=op, left=left, right=right) if op in _DECIDING and left.dtype.is_integer:
                found = postorder((left, right))
                if not any(isinstance(n, Read) for n in found):
                    out |= names(found) & loops
            case _:
                pass
    return frozenset(out)


def _periods(roots: tuple[Expr, ...], loops: frozenset[str]) -> dict[str, int]:
    """Return by how many steps of a loop positions repeat that are divided by a small constant."""
    out: dict[str, int] = {}
    for node in postorder(roots):
        match node:
            case Binary(op=BinaryOp.FLOORDIV | BinaryOp.MOD, left=left, right=Const(value=by)) if (
                left.dtype.is_integer and 1 < int(by) <= MOST_PERIOD
            ):
                found = names((left,)) & loops
                if len(found) == 1 and not any(isinstance(n, Read) for n in postorder((left,))):
                    (name,) = found
                    out[name] = max(out.get(name, 1), int(by))
            case _:
                pass
    return out
