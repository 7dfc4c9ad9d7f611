"""Which points the loops of a nest visit: the loops with their extents, and the value of each root they make.

Loops count from 0, but those of skewed nests, whose bounds `scan` finds. A split by n gives `ceil(extent / n)` and
`min(n, what is left)`; where a reordering puts the inner loop outside the outer one, its extent is n and a guard keeps
the points that are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stax.algorithm.nodes import MARK
from stax.errors import UnsupportedError
from stax.expr import build
from stax.expr.affine import Algebra
from stax.expr.nodes import INDEX, Expr, Local, Var
from stax.expr.walk import names, substitute
from stax.schedule.directives import Tail
from stax.schedule.nest import Affine, Fuse, Loop, Nest, Skew, Split
from stax.schedule.scan import Range as Root
from stax.schedule.scan import Scan


@dataclass(frozen=True, slots=True)
class Shift:
    """How the last run of an inner loop is moved: the loop of the runs, how many values there are, and are left.

    With `alone`, the loop of the runs counts nothing else.
    """

    outer: int
    alone: bool
    whole: Expr
    left: Expr
    factor: int


@dataclass(frozen=True, slots=True)
class Counted:
    """A loop of the finished nest, from `start` on; its extent does not exceed the constant `width`, where known.

    Its last run is moved as `shift` says; with `masked`, its lanes are all run.
    """

    loop: Loop
    var: Local
    start: Expr
    extent: Expr
    width: int | None
    down: bool
    shift: Shift | None = None
    masked: bool = False


@dataclass(frozen=True, slots=True)
class Points:
    """`loops` outermost first, made from `roots`; the point with these `values` is run where all `guards` hold.

    Points that are not `inside` are run too, of roots that are `rounded` up to multiples of a number.
    """

    roots: tuple[Root, ...]
    loops: tuple[Counted, ...]
    values: Mapping[str, Expr]
    guards: tuple[Expr, ...]
    _tree: _Tree | Scan
    inside: tuple[Expr, ...] = ()
    rounded: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def skewed(self) -> bool:
        """Whether loops are skewed, so that one may count several roots."""
        return isinstance(self._tree, Scan)

    def within(self, root: str, depth: int) -> tuple[Expr, Expr]:
        """Return the first and last value of `root` while the outermost `depth` loops stand still."""
        return self._tree.within(root, depth)

    def leaves(self, root: str) -> frozenset[int]:
        """Return the places of the loops that `root` is made of."""
        tree = self._tree
        return tree.leaves(root) if isinstance(tree, Scan) else tree.leaves(tree.roots[root])

    def in_order(self, root: str) -> bool:
        """Return whether the loops of `root` run its values in order: split, each outer part outside its inner part."""
        if any(self.loops[at].loop.reversed for at in self.leaves(root)):
            return False
        tree = self._tree
        return tree.in_order(root) if isinstance(tree, Scan) else tree.in_order(tree.roots[root])


def points(
    nest: Nest, roots: tuple[Root, ...], stage: str, backwards: frozenset[str], taken: set[str],
    inside: tuple[Expr, ...] = (),
) -> Points:  # fmt: skip
    """Return the points of `nest`; `stage` begins the names of its loop variables, which are added to `taken`.

    Sums `inside` over Vars of roots are at least 0 at every point.
    Raises UnsupportedError where a loop would stand outside another that its own extent depends on.
    """
    locals_ = [build.local(_fresh(f"{stage}.{loop.name}", taken)) for loop in nest.loops]
    if any(isinstance(step, Skew | Affine) for step in nest.derivations):
        return _skewed(nest, roots, locals_, stage, backwards, inside)
    tree = _Tree(nest, roots, locals_, stage)
    roots, left = tree.bound(inside)
    splits = all(isinstance(step, Split) and step.tail is Tail.GUARD for step in nest.derivations)
    if left and splits:
        return _skewed(nest, tree.given, locals_, stage, backwards, inside)
    tree.settle(stage)
    down = [
        any(r in backwards and at in tree.leaves(tree.roots[r]) for r in nest.roots) for at in range(len(nest.loops))
    ]
    for at, loop in enumerate(nest.loops):
        mine = [r for r in nest.roots if at in tree.leaves(tree.roots[r])]
        if down[at] and len(mine) > 1:
            raise UnsupportedError(
                f"{stage}: loop `{loop.name}` fuses `{'` and `'.join(mine)}`, which run opposite ways"
            )
    loops = tuple(
        Counted(
            loop, locals_[at], build.index(0), tree.extent(tree.final[at]), tree.lanes(at, loop),
            down[at] != loop.reversed, *tree.tail(at, loop),
        )
        for at, loop in enumerate(nest.loops)
    )  # fmt: skip
    values = {r: tree.actual(r) for r in nest.roots}
    more = tuple(build.less_equal(build.index(0), substitute(c, values)) for c in left)
    return Points(roots, loops, values, (*tree.guards(), *more), tree, tuple(tree.inside()), tree.rounded)


def _skewed(
    nest: Nest, roots: tuple[Root, ...], locals_: list[Local], stage: str, backwards: frozenset[str],
    inside: tuple[Expr, ...],
) -> Points:  # fmt: skip
    """Return the points of a nest with skews: a loop runs the way of the root that it is named after, then skewed."""
    if any(isinstance(step, Split) and step.tail is not Tail.GUARD for step in nest.derivations):
        raise UnsupportedError(f"{stage}: a loop is skewed, so tails are guarded", hint='tail="guard"')
    scan = Scan(nest, roots, locals_, stage, inside)
    down = _downwards(nest, backwards)
    loops = tuple(
        Counted(loop, var, bounds.start, bounds.extent, bounds.width, (loop.name in down) != loop.reversed)
        for loop, var, bounds in zip(nest.loops, locals_, scan.bounds, strict=True)
    )
    return Points(roots, loops, scan.values, scan.guards, scan)


def _downwards(nest: Nest, backwards: frozenset[str]) -> set[str]:
    """Return the loops that come of roots that a recurrence runs downwards."""
    down = set(backwards)
    for step in nest.derivations:
        match step:
            case Split(parent=parent, outer=outer, inner=inner):
                if parent in down:
                    down = down - {parent} | {outer, inner}
            case Skew(parent=parent, new=new):
                if parent in down:
                    down = down - {parent} | {new}
            case Affine(parents=parents, new=new):
                turned = {made for parent, made in zip(parents, new, strict=True) if parent in down}
                down = down - set(parents) | turned
            case Fuse():
                pass
    return down


class _Tree:
    """The names of a nest told apart: a node is a name from the directive that makes it to the one that consumes it."""

    def __init__(self, nest: Nest, roots: tuple[Root, ...], locals_: list[Local], stage: str) -> None:
        self.roots: dict[str, int] = {}
        self.used: dict[int, tuple[Split | Fuse, tuple[int, ...]]] = {}
        self._extent: dict[int, Expr] = {}
        self._count = 0
        self.given = roots
        self._given = {r.name: r for r in roots}
        self._made: dict[int, tuple[Split, int]] = {}
        alive: dict[str, int] = {}
        for name in nest.roots:
            self.roots[name] = alive[name] = self._new()
        for step in nest.derivations:
            match step:
                case Split():
                    parent = alive.pop(step.parent)
                    children = (self._new(), self._new())
                    alive[step.outer], alive[step.inner] = children
                    self.used[parent] = (step, children)
                    self._made[children[1]] = (step, parent)
                case Fuse():
                    pair = (alive.pop(step.outer), alive.pop(step.inner))
                    fused = self._new()
                    alive[step.fused] = fused
                    for one in pair:
                        self.used[one] = (step, (*pair, fused))
                case Skew() | Affine():
                    raise AssertionError("`Scan` has the loops of skewed nests")
        self.final = [alive[loop.name] for loop in nest.loops]
        self.locals = locals_
        self._leaf = {node: at for at, node in enumerate(self.final)}
        self._leaves: dict[int, frozenset[int]] = {}
        self._values: dict[int, Expr] = {}
        self._guarded: list[int] = []
        self.rounded: dict[str, int] = {}

    def bound(self, inside: tuple[Expr, ...]) -> tuple[tuple[Root, ...], tuple[Expr, ...]]:
        """Give roots smaller ranges, which may depend on loops outside theirs; return them, and what that leaves out.

        A sum that is at least 0 bounds the one of its roots whose loops stand inside those of all others, but for one
        that is rounded up: it begins where its storage does.
        """
        algebra, left = Algebra(), list[Expr]()
        for cond in inside:
            whole = algebra.of(cond)
            used = names(algebra.atom(n) for n, _ in whole.terms) & self.roots.keys()
            inner = [r for r in used if all(r == o or self._outside(o, r) for o in used)]
            factor = whole.factor(algebra.of(Var(INDEX, inner[0])).terms[0][0]) if inner else 0
            rest = whole - algebra.of(Var(INDEX, inner[0])) * factor if inner else whole
            bent = inner[0] in names(algebra.atom(n) for n, _ in rest.terms) if factor else True
            if bent or self._is_rounded(inner[0]):
                left.append(cond)
                continue
            root = self._given[inner[0]]
            lo, end = root.lo, build.add(root.lo, root.extent)
            if factor > 0:
                lo = build.maximum(lo, algebra.expr(algebra.divided(rest, factor) * -1))
            else:
                end = build.minimum(end, algebra.expr(algebra.divided(rest, -factor) + 1))
            self._given[root.name] = Root(root.name, lo, algebra.simplify(build.sub(end, lo)))
        return tuple(self._given[r.name] for r in self.given), tuple(left)

    def _is_rounded(self, root: str) -> bool:
        step, _ = self.used.get(self.roots[root], (None, ()))
        return isinstance(step, Split) and step.tail is Tail.ROUND_UP

    def _outside(self, one: str, other: str) -> bool:
        return max(self.leaves(self.roots[one])) < min(self.leaves(self.roots[other]))

    def settle(self, stage: str) -> None:
        """Give every node its extent."""
        for name in self.roots:
            self._size(name, stage)
        self._sized(stage)
        self._movable(stage)

    def _new(self) -> int:
        self._count += 1
        return self._count - 1

    def extent(self, node: int) -> Expr:
        """Return how many values `node` has."""
        if node not in self._extent:
            raise UnsupportedError("a fused loop has a range that depends on another loop")
        return self._extent[node]

    def leaves(self, node: int) -> frozenset[int]:
        """Return the places of the loops made of `node`."""
        if node not in self._leaves:
            if node in self._leaf:
                self._leaves[node] = frozenset({self._leaf[node]})
            else:
                step, others = self.used[node]
                below = others if isinstance(step, Split) else others[2:]
                self._leaves[node] = frozenset(at for n in below for at in self.leaves(n))
        return self._leaves[node]

    def in_order(self, node: int) -> bool:
        """Return whether the loops of `node` run its values in order, what else a fused loop counts being fixed."""
        if node in self._leaf:
            return True
        step, others = self.used[node]
        if isinstance(step, Fuse):
            return self.in_order(others[2])
        return max(self.leaves(others[0])) < min(self.leaves(others[1])) and all(self.in_order(n) for n in others)

    def value(self, node: int) -> Expr:
        """Return what `node` counts."""
        if node not in self._values:
            if node in self._leaf:
                found: Expr = self.locals[self._leaf[node]]
            else:
                step, others = self.used[node]
                if isinstance(step, Split):
                    found = build.add(build.mul(self.value(others[0]), step.factor), self.value(others[1]))
                else:
                    of = build.floordiv if node == others[0] else build.mod
                    found = of(self.value(others[2]), self.extent(others[1]))
            self._values[node] = found
        return self._values[node]

    def actual(self, root: str) -> Expr:
        """Return the value of a root: its start and what its loops count."""
        return build.add(self._start(root), self.value(self.roots[root]))

    def _start(self, root: str) -> Expr:
        lo = self._given[root].lo
        return substitute(lo, {n: self.actual(n) for n in names((lo,)) if n in self.roots})

    def _size(self, name: str, stage: str) -> None:
        root, node = self._given[name], self.roots[name]
        for other in sorted(names((root.lo, root.extent)) & self.roots.keys()):
            if max(self.leaves(self.roots[other])) >= min(self.leaves(node)):
                raise UnsupportedError(
                    f"{stage}: the range of `{name}` depends on `{other}`: its loops must stay inside"
                )
        known = {n: self.actual(n) for n in names((root.extent,)) if n in self.roots}
        self._extent[node] = substitute(root.extent, known)

    def _sized(self, stage: str) -> None:
        """Give every node its extent, in the order the directives made them."""
        done = {node for node in self.roots.values()}
        order = sorted(self.used)
        while order:
            node = next(n for n in order if self._ready(n, done))
            order.remove(node)
            step, others = self.used[node]
            if isinstance(step, Fuse):
                if others[2] not in done and others[0] in done and others[1] in done:
                    a, b = (build.maximum(self.extent(n), 0) for n in others[:2])
                    self._extent[others[2]] = build.mul(a, b)
                    done.add(others[2])
                continue
            outer, inner = others
            whole, n = self.extent(node), step.factor
            self._extent[outer] = build.floordiv(build.add(whole, n - 1), n)
            done |= {outer, inner}
            exact = isinstance(known := build.integer(whole), int) and known % n == 0
            if exact:
                self._extent[inner] = build.index(n)
            elif step.tail is Tail.ROUND_UP:
                self._extent[inner] = build.index(n)
                self._round_up(node, step, stage)
            elif max(self.leaves(outer)) < min(self.leaves(inner)):
                left = build.sub(whole, build.mul(self.value(outer), n))
                self._extent[inner] = build.minimum(build.index(n), left)
            else:
                self._extent[inner] = build.index(n)
                self._guarded.append(node)

    def _ready(self, node: int, done: set[int]) -> bool:
        step, others = self.used[node]
        return node in done if isinstance(step, Split) else {others[0], others[1]} <= done

    def _round_up(self, node: int, step: Split, stage: str) -> None:
        name = next((r for r, root in self.roots.items() if root == node), None)
        if name is None:
            raise UnsupportedError(
                f'{stage}: tail="round_up" is for a dim of a Func, and loop `{step.parent}` is a part of one',
                hint='tail="guard"',
            )
        self.rounded[name] = step.factor

    def inside(self) -> list[Expr]:
        """Return the conditions under which a point is one that is asked for."""
        nodes = [self.roots[name] for name in self.rounded]
        return [build.less(self.value(node), self.extent(node)) for node in nodes]

    def guards(self) -> list[Expr]:
        """Return the conditions under which a point is there."""
        return [build.less(self.value(node), self.extent(node)) for node in self._guarded]

    def width(self, node: int) -> int | None:
        """Return a constant that the extent of `node` does not exceed."""
        known = build.integer(self.extent(node))
        if known is not None:
            return known
        return self._made[node][0].factor if node in self._made else None

    def lanes(self, at: int, loop: Loop) -> int | None:
        """Return a constant that the extent of the loop at `at` does not exceed, `upto` where that is said."""
        known = self.width(self.final[at])
        return known if loop.upto is None or (known is not None and known <= loop.upto) else loop.upto

    def tail(self, at: int, loop: Loop) -> tuple[Shift | None, bool]:
        """Return how the last run of the loop at `at` is moved, and whether its lanes are masked."""
        made = self._made.get(self.final[at])
        if loop.upto is not None:
            return None, build.integer(self.extent(self.final[at])) is None
        if made is None or build.integer(self.extent(self.final[at])) is not None:
            return None, False
        step, node = made
        outer = self.used[node][1][0]
        if step.tail is not Tail.SHIFT:
            return None, step.tail is Tail.PREDICATE
        whole = self.extent(node)
        if (build.integer(whole) or step.factor + 1) <= step.factor:
            return None, False
        left = build.sub(whole, build.mul(self.value(outer), step.factor))
        return Shift(max(self.leaves(outer)), outer in self._leaf, whole, left, step.factor), False

    def _movable(self, stage: str) -> None:
        """Refuse runs that are to be moved where no loop is left that could be."""
        for step, others in self.used.values():
            if isinstance(step, Fuse) or step.tail is not Tail.SHIFT:
                continue
            outer, inner = others
            inside = max(self.leaves(outer)) < min(self.leaves(inner))
            if inner not in self._leaf or not inside:
                raise UnsupportedError(
                    f'{stage}: tail="shift" moves runs of loop `{step.inner}`, which '
                    + ("is split or fused further" if inner not in self._leaf else "stands outside its outer part"),
                    hint='tail="guard"',
                )

    def within(self, root: str, depth: int) -> tuple[Expr, Expr]:
        """Return the interval of a root's value."""
        lo, hi = self._interval(self.roots[root], depth)
        start = self._start(root)
        return build.add(start, lo), build.add(start, hi)

    def _interval(self, node: int, depth: int) -> tuple[Expr, Expr]:
        mine = self.leaves(node)
        still = all(at < depth for at in mine)
        if still and not self._may_be_past(node):
            return self.value(node), self.value(node)
        zero = build.index(0)
        if all(at >= depth for at in mine):
            if node in self._made and build.integer(self.extent(node)) is None:
                return zero, build.index(self._made[node][0].factor - 1)
            return zero, build.sub(self.extent(node), 1)
        step, others = self.used[node]
        if isinstance(step, Fuse):
            lo, hi = self._interval(others[2], depth)
            inner = self.extent(others[1])
            if node == others[0]:
                return build.floordiv(lo, inner), build.floordiv(hi, inner)
            return (self.value(node), self.value(node)) if still else (zero, build.sub(inner, 1))
        (lo_out, hi_out), (lo_in, hi_in) = (self._interval(n, depth) for n in others)
        lo = build.add(build.mul(lo_out, step.factor), lo_in)
        hi = build.add(build.mul(hi_out, step.factor), hi_in)
        return lo, build.minimum(hi, build.sub(self.extent(node), 1))

    def _may_be_past(self, node: int) -> bool:
        """Return whether loops of `node` run past its extent, where a guard keeps the point from being run.

        Then its interval is empty, and nothing is computed for a point that is not there.
        """
        if node in self._guarded or any(self.roots[name] == node for name in self.rounded):
            return True
        if node not in self.used:
            return False
        step, others = self.used[node]
        return any(self._may_be_past(n) for n in (others if isinstance(step, Split) else others[2:]))


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += MARK
    taken.add(name)
    return name
