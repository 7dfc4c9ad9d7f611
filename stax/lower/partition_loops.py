"""Cut loops where conditions change, so that the steady part has none.

before                                     after
    for x in 0 +: n:                           for x in 0 +: 1: g[x] = a[max(x - 1, 0)]
        g[x] = a[max(x - 1, 0)]                for x in 1 +: n - 1: g[x] = a[x - 1]

A parallel loop is not cut: its body gets an `if`. Short ends keep their conditions. A loop marked `cut` is cut all the
same, parallel or not, and its ends too. The last part of a vectorised loop that does not fill its lanes runs serially,
and loops right around it are not unrolled there: many copies of what seldom runs.

Needs: `tidy_loops`. Gives: the same program; VECTOR and UNROLL loops have constant extents, others became serial.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from stax.algorithm.nodes import MARK
from stax.bounds.interval import Bounder, plain_read
from stax.expr import build
from stax.expr.affine import Affine, Algebra, Interval
from stax.expr.nodes import INDEX, Binary, BinaryOp, Expr, Load, Select
from stax.expr.walk import children, names, postorder
from stax.loops.nodes import Allocate, Block, For, If, Let, LoopKind, Prefetch, Program, Stmt, Store, Timed
from stax.loops.walk import as_block, copy_with_fresh_names, expressions, statements, substitute
from stax.loops.walk import children as children_of
from stax.lower.tidy_loops import Scope, tidy

SHORT = 8
MOST_NODES = 6000
MOST_CUTS = 12
NARROW = 8
MOST_NODES_AGAIN = 600
LEAST_COPIED, MOST_COPIED = 20_000, 12  # nodes that copies may have: so many, and so many times those there were
MORE_ASKED = 200_000  # and so many more where a schedule asks that a loop is cut


def partition_loops(program: Program, algebra: Algebra, at_least: Mapping[int, int]) -> Program:
    """Return `program` with its loops cut."""
    cutter = _Cutter(algebra, _tilted(program))
    cutter.left = LEAST_COPIED + MOST_COPIED * cutter.weight(program.body)
    return replace(program, body=cutter.block(program.body, Scope(algebra, at_least)))


def _tilted(program: Program) -> frozenset[str]:
    """Return the loops of skewed nests that have others inside, lanes and copies apart.

    Their bounds depend on each other, so that every cut of one would be cut again in all loops inside.
    """
    found: set[str] = set()
    for s in statements(program.body):
        if isinstance(s, For):
            apart = (LoopKind.VECTOR, LoopKind.UNROLL)
            inside = [t for t in statements(s.body) if isinstance(t, For) and t.kind not in apart]
            if inside and any(build.integer(t.start) is None for t in (s, *inside)):
                found.add(s.var.name)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Threshold:
    """A condition holds in all iterations from `at` on (`up`), or in all before `at`; or `only` at `at` itself."""

    at: Affine
    up: bool
    only: bool = False


class _Cutter:
    def __init__(self, algebra: Algebra, tilted: frozenset[str]) -> None:
        self.algebra = algebra
        self.tilted = tilted
        self.copies = 0
        self.left = 0
        self._seen: dict[int, tuple[Expr, int, list[Expr]]] = {}
        self._named: dict[int, tuple[Expr, set[str]]] = {}

    def block(self, block: Block, scope: Scope) -> Block:
        out: list[Stmt] = []
        for stmt in block.stmts:
            out += self.stmt(stmt, scope).stmts
        return Block(tuple(out))

    def stmt(self, stmt: Stmt, scope: Scope) -> Block:
        match stmt:
            case Block():
                return self.block(stmt, scope)
            case If(cond=cond, then=then, orelse=orelse):
                return Block((If(cond, self.block(then, scope.assuming(cond)), self.block(orelse, scope)),))
            case For():
                return self.loop(stmt, scope)
            case Timed(body=body):
                return Block((replace(stmt, body=self.block(body, scope)),))
            case Allocate() | Let() | Store() | Prefetch():
                return Block((stmt,))

    def loop(self, loop: For, scope: Scope, done: frozenset[_Threshold] = frozenset()) -> Block:
        of = self.algebra.of
        lo, hi = of(loop.start), of(loop.start) + of(loop.extent)
        if self._is_partial(loop):
            return self.block(self._in_eights(loop, scope), scope)
        plain = self._fixed(loop)
        if plain.kind in (LoopKind.VECTOR, LoopKind.UNROLL) or loop.carries:
            return self._whole(plain, scope)
        if plain.var.name in self.tilted and not plain.cut:
            return self._whole(plain, scope)
        found = [t for t in self._thresholds(plain, scope) if t not in done]
        dear = self.left + MORE_ASKED <= 0 if plain.cut else self.weight(plain) > MOST_NODES or self.left <= 0
        if not found or dear:
            return self._whole(plain, scope)
        only = [t for t in found if t.only]
        together = loop.kind is LoopKind.PARALLEL and not plain.cut
        if only and not together:
            return self._single(plain, only[0], lo, hi, scope, done)
        first, last = lo, hi
        for t in found:
            if t.only:
                continue
            if t.up:
                first = scope.prover.maximum(first, t.at)
            else:
                last = scope.prover.minimum(last, t.at)
        if only and first == lo and last == hi:
            return self._whole(plain, scope)
        if together and self.weight(plain) > MOST_NODES_AGAIN:
            return self._whole(plain, scope)
        if together:
            return self._branch(plain, first, last, lo, hi, scope)
        return self._three(plain, first, last, lo, hi, scope, done | set(found))

    def _fixed(self, loop: For) -> For:
        """Return `loop`, serial where its extent must be constant and is not, or where its copies would be of loops."""
        of_loops = loop.kind is LoopKind.UNROLL and _has_open_lanes(loop.body)
        return replace(loop, kind=LoopKind.SERIAL) if of_loops or _is_open(loop) else loop

    def _is_partial(self, loop: For) -> bool:
        """Return whether the lanes of `loop` may not fill a vector, and its body is small enough for one more copy."""
        wide = loop.kind is LoopKind.VECTOR and loop.width is not None and loop.width > NARROW
        return wide and not loop.carries and _is_open(loop) and self.weight(loop) <= MOST_NODES_AGAIN

    def _in_eights(self, loop: For, scope: Scope) -> Block:
        """Return the lanes that do not fill a vector in runs of eight, and the rest one by one."""
        self.copies += 1
        count = build.floordiv(build.maximum(loop.extent, 0), NARROW)
        run, lane = (replace(loop.var, name=f"{loop.var.name}{MARK}{self.copies}{k}") for k in ("r", "l"))
        first = copy_with_fresh_names(loop.body, f"{MARK}{self.copies}a")
        at = build.add(loop.start, build.add(build.mul(run, NARROW), lane))
        lanes = For(
            lane, build.index(0), build.index(NARROW), LoopKind.VECTOR, as_block(first), width=NARROW, apart=loop.apart
        )
        runs = For(run, build.index(0), count, LoopKind.SERIAL, Block((substitute(lanes, {loop.var.name: at}),)))
        done = build.mul(count, NARROW)
        rest = replace(
            loop,
            start=build.add(loop.start, done),
            extent=build.sub(loop.extent, done),
            kind=LoopKind.SERIAL,
            width=NARROW,
        )
        return tidy(Block((rest, runs) if loop.down else (runs, rest)), scope)

    def _whole(self, loop: For, scope: Scope) -> Block:
        of = self.algebra.of
        start = of(loop.start)
        inner = scope.inside(loop.var, start, start + of(loop.extent) - 1)
        return Block((replace(loop, body=self.block(loop.body, inner)),))

    def _piece(
        self,
        loop: For,
        start: Affine,
        end: Affine,
        known: tuple[Affine, Affine],
        scope: Scope,
        done: frozenset[_Threshold] | None,
    ) -> Block:
        """Return a copy of `loop` from `start` to before `end`, its variable known to be in `known`.

        It is cut further at thresholds that are not `done`; not at all where that is None.
        """
        if (end - start).const <= 0 and not (end - start).terms:
            return Block()
        if scope.prover.less_equal(end, start):
            return Block()
        self.copies += 1
        self.left -= self.weight(loop)
        copy = copy_with_fresh_names(loop, f"{MARK}{self.copies}")
        assert isinstance(copy, For)
        expr = self.algebra.expr
        inner = scope.inside(copy.var, *known)
        extent = expr(end - start)
        if build.integer(extent) == 1:
            body = tidy(copy.body, scope.named(copy.var.name, expr(start)))
            return self._settled(body, scope) if done is None else self.block(body, scope)
        body = tidy(copy.body, inner)
        made = replace(copy, start=expr(start), extent=extent, body=body)
        return self._settled(Block((made,)), scope) if done is None else self.loop(made, scope, done)

    def _settled(self, block: Block, scope: Scope) -> Block:
        """Return `block` uncut: what should be constant and is not runs serially."""
        out: list[Stmt] = []
        for stmt in block.stmts:
            match stmt:
                case For() if self._is_partial(stmt):
                    out += self._settled(self._in_eights(stmt, scope), scope).stmts
                case For(body=body):
                    out.append(replace(self._fixed(stmt), body=self._settled(body, scope)))
                case If(cond=cond, then=then, orelse=orelse):
                    out.append(If(cond, self._settled(then, scope.assuming(cond)), self._settled(orelse, scope)))
                case Block():
                    out += self._settled(stmt, scope).stmts
                case Timed(body=body):
                    out.append(replace(stmt, body=self._settled(body, scope)))
                case Allocate() | Let() | Store() | Prefetch():
                    out.append(stmt)
        return Block(tuple(out))

    def _single(
        self, loop: For, only: _Threshold, lo: Affine, hi: Affine, scope: Scope, done: frozenset[_Threshold]
    ) -> Block:
        """Return `loop` with the iteration of `only` on its own."""
        at, done = only.at, done | {only}
        before, after = self._clamped(at, lo, hi, scope), self._clamped(at + 1, lo, hi, scope)
        parts = [
            self._piece(loop, lo, before, (lo, scope.prover.minimum(hi, at) - 1), scope, done),
            self._piece(loop, before, after, (at, at), scope, done),
            self._piece(loop, after, hi, (scope.prover.maximum(lo, at + 1), hi - 1), scope, done),
        ]
        return self._ordered(loop, parts)

    def _three(
        self,
        loop: For,
        first: Affine,
        last: Affine,
        lo: Affine,
        hi: Affine,
        scope: Scope,
        done: frozenset[_Threshold],
    ) -> Block:
        """Return `loop` as the part before `first`, the steady part, and the part from `last` on."""
        begin = self._clamped(first, lo, hi, scope)
        end = scope.prover.maximum(self._clamped(last, lo, hi, scope), begin)
        before = scope.prover.minimum(begin, first)
        parts = [
            self._piece(
                loop, lo, begin, (lo, before - 1), scope, done if self._long(begin - lo, loop, scope) else None
            ),
            self._piece(loop, begin, end, (first, last - 1), scope, done),
            self._piece(loop, end, hi, (lo, hi - 1), scope, done if self._long(hi - end, loop, scope) else None),
        ]
        return self._ordered(loop, parts)

    def _branch(self, loop: For, first: Affine, last: Affine, lo: Affine, hi: Affine, scope: Scope) -> Block:
        """Return a parallel `loop` whose body asks whether its iteration is a steady one."""
        self.copies += 2
        steady = copy_with_fresh_names(loop.body, f"{MARK}{self.copies - 1}")
        other = copy_with_fresh_names(loop.body, f"{MARK}{self.copies}")
        expr = self.algebra.expr
        cond = build.const(True, build.less(build.index(0), 1).dtype)
        if first != lo:
            cond = build.both(cond, build.less_equal(expr(first), loop.var))
        if last != hi:
            cond = build.both(cond, build.less(loop.var, expr(last)))
        inside = scope.inside(loop.var, first, last - 1)
        outside = scope.inside(loop.var, lo, hi - 1)
        then = self.block(tidy(steady, inside), inside)
        orelse = self.block(as_block(other), outside)
        return Block((replace(loop, body=Block((If(cond, then, orelse),))),))

    def _ordered(self, loop: For, parts: list[Block]) -> Block:
        ordered = reversed(parts) if loop.down else parts
        return Block(tuple(s for part in ordered for s in part.stmts))

    def _clamped(self, at: Affine, lo: Affine, hi: Affine, scope: Scope) -> Affine:
        return scope.prover.minimum(scope.prover.maximum(at, lo), hi)

    def _long(self, length: Affine, loop: For, scope: Scope) -> bool:
        return loop.cut or not scope.prover.less_equal(length, Affine(SHORT))

    def _thresholds(self, loop: For, scope: Scope) -> list[_Threshold]:
        """Return where the conditions below `loop` that its variable decides become true for all inner iterations."""
        inner: dict[str, Interval] = {}
        for s in statements(loop.body):
            if isinstance(s, For):
                start = self.algebra.of(s.start)
                last = self.algebra.of(s.extent) - 1 if s.width is None else Affine(s.width - 1)
                inner[s.var.name] = Interval(start, start + last)
        bounder = Bounder(self.algebra, inner, scope.prover, plain_read)
        var = self.algebra.of(loop.var).terms[0][0]
        found: dict[_Threshold, None] = {}
        lo, hi = self.algebra.of(loop.start), self.algebra.of(loop.start) + self.algebra.of(loop.extent)
        for gap in (*self._gaps(loop.body), *self._full_lanes(loop.body)):
            low = self._lowest(gap, inner, bounder)
            at = None if low is None else self._crossing(low, var, loop.var.name)
            if low is not None and at is not None:
                found[_Threshold(at, low.factor(var) > 0)] = None
        for gap in self._equalities(loop.body):
            gap = gap if gap.factor(var) > 0 else gap * -1
            at = self._crossing(gap, var, loop.var.name)
            if at is not None and gap.factor(var) == 1 and not self._names(at) & inner.keys():
                found[_Threshold(at, True, only=True)] = None
                continue
            for side in (gap, gap * -1):
                low = self._lowest(side - 1, inner, bounder)
                at = None if low is None else self._crossing(low, var, loop.var.name)
                if low is not None and at is not None:
                    up = low.factor(var) > 0
                    short = at - lo if up else hi - at
                    if not short.terms and short.const <= SHORT:
                        found[_Threshold(at, up)] = None
        return list(found)[:MOST_CUTS]

    def _lowest(self, gap: Affine, inner: Mapping[str, Interval], bounder: Bounder) -> Affine | None:
        for _ in range(8):
            if not self._names(gap) & inner.keys():
                return gap
            low = bounder.interval(gap, frozenset()).lo
            if low is None or low == gap:
                return None
            gap = low
        return None

    def _crossing(self, gap: Affine, var: int, name: str) -> Affine | None:
        """Return the first iteration where `gap` >= 0, or where it falls with `var`, the first where it is not."""
        slope, rest = gap.factor(var), gap.without(var)
        if not slope or name in self._names(rest):
            return None
        if slope > 0:
            return self.algebra.divided(rest, slope) * -1
        return self.algebra.divided(rest, -slope) + 1

    def _names(self, a: Affine) -> set[str]:
        return {name for n, _ in a.terms for name in self.algebra.names(n)}

    def _gaps(self, body: Block) -> list[Affine]:
        """Return sums that are >= 0 where a condition is settled the way that makes code plain."""
        of = self.algebra.of
        found: list[Affine] = []
        for node in self._conditions(body):
            match node:
                case Binary(op=BinaryOp.LT, left=left, right=right):
                    found.append(of(right) - of(left) - 1)
                case Binary(op=BinaryOp.LE, left=left, right=right):
                    found.append(of(right) - of(left))
                case Binary(op=BinaryOp.MIN, left=left, right=right):
                    found.append(self._kept_arm(of(left), of(right)))
                case Binary(op=BinaryOp.MAX, left=left, right=right):
                    found.append(self._kept_arm(of(left), of(right)) * -1)
                case _:
                    pass
        return found

    def _equalities(self, body: Block) -> list[Affine]:
        """Return sums that are 0 only where an equality holds."""
        of = self.algebra.of
        return [
            of(node.right) - of(node.left)
            for node in self._conditions(body)
            if isinstance(node, Binary) and node.op in (BinaryOp.EQ, BinaryOp.NE)
        ]

    def _full_lanes(self, body: Block) -> list[Affine]:
        """Return sums that are >= 0 where a loop that should have a constant extent has it."""
        of = self.algebra.of
        loops = [s for s in statements(body) if isinstance(s, For) and s.kind in (LoopKind.VECTOR, LoopKind.UNROLL)]
        found: list[Affine] = []
        for node in postorder(loop.extent for loop in loops):
            if isinstance(node, Binary) and node.op is BinaryOp.MIN:
                a, b = of(node.left), of(node.right)
                found += [y - x for x, y in ((a, b), (b, a)) if not x.terms]
        return found

    def _kept_arm(self, a: Affine, b: Affine) -> Affine:
        """Return larger - smaller as it must be for the arm that moves to be the one that stays.

        Of `min(a, b)`; for a maximum it is the other way round.
        """
        moves = [bool(self._names(e)) for e in (a, b)]
        return a - b if moves[1] and not moves[0] else b - a

    def _conditions(self, body: Block) -> list[Expr]:
        """Return the conditions that cost something: all but those in bounds of loops and of storage."""
        found: dict[int, Expr] = {}
        for s, inner in _within(body, None):
            match s:
                case Allocate():
                    roots: tuple[Expr, ...] = ()
                case For():
                    roots = tuple(e for c in s.carries for e in (c.init, c.next))
                case _:
                    roots = expressions(s)
            for root in roots:
                for node in self._below(root)[1]:
                    if inner is None or not _is_clamp(node) or inner in self._names_in(node):
                        found[id(node)] = node
        return list(found.values())

    def _names_in(self, node: Expr) -> set[str]:
        known = self._named.get(id(node))
        if known is None:
            known = self._named[id(node)] = (node, names((node,)))
        return known[1]

    def weight(self, stmt: Stmt) -> int:
        """Return how many nodes `stmt` has, those shared among its statements counted again."""
        return sum(self._below(root)[0] for s in statements(stmt) for root in expressions(s))

    def _below(self, root: Expr) -> tuple[int, list[Expr]]:
        """Return how many nodes are below `root`, and those that decide something by plain positions."""
        known = self._seen.get(id(root))
        if known is None:
            order = postorder((root,))
            made: set[int] = set()
            deciding: list[Expr] = []
            for node in order:
                if isinstance(node, Load | Select) or any(id(c) in made for c in children(node)):
                    made.add(id(node))
                elif _decides(node):
                    deciding.append(node)
            known = self._seen[id(root)] = (root, len(order), deciding)
        return known[1], known[2]


def _is_open(loop: For) -> bool:
    """Return whether `loop` is of lanes or copies that must be of a constant number, and are not."""
    masked = loop.masked and loop.width is not None
    return loop.kind in (LoopKind.VECTOR, LoopKind.UNROLL) and build.integer(loop.extent) is None and not masked


def _has_open_lanes(stmt: Stmt) -> bool:
    """Return whether lanes right inside `stmt`, copies and branches apart, will be loops, as they may not be full."""
    match stmt:
        case For(kind=LoopKind.VECTOR):
            return _is_open(stmt)
        case For(kind=kind):
            return kind is LoopKind.UNROLL and _has_open_lanes(stmt.body)
        case _:
            return any(_has_open_lanes(s) for s in children_of(stmt))


def _within(stmt: Stmt, inner: str | None) -> Iterator[tuple[Stmt, str | None]]:
    """Yield statements, each with the variable of the innermost loop of many turns around it, if there is one."""
    yield stmt, inner
    below = inner
    if isinstance(stmt, For) and stmt.kind is LoopKind.SERIAL and (build.integer(stmt.extent) or SHORT + 1) > SHORT:
        below = stmt.var.name
    for child in children_of(stmt):
        yield from _within(child, below)


def _is_clamp(node: Expr) -> bool:
    return isinstance(node, Binary) and node.op in (BinaryOp.MIN, BinaryOp.MAX)


def _decides(node: Expr) -> bool:
    match node:
        case Binary(op=BinaryOp.MIN | BinaryOp.MAX):
            return node.dtype is INDEX
        case Binary(op=BinaryOp.LT | BinaryOp.LE | BinaryOp.EQ | BinaryOp.NE, left=left):
            return left.dtype.name in ("int64", "index")
        case _:
            return False
