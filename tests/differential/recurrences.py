"""Programs that are mostly recurrences, and the words of schedules that these are for.

Loops are skewed, reversed, mapped, tiled in time and run in wavefronts; storage is folded and taken over.
"""

from __future__ import annotations

from random import Random

from stax.algorithm.nodes import Func, Pipeline
from stax.expr.walk import reads
from stax.schedule.directives import Line, Skew, StageRef, Tile
from stax.schedule.schedule import Schedule
from stax.schedule.words import make
from tests.differential.generate import Drawer, Drawn, Kind, Scope, Source, Term, index_text, type_text

SIZES = (1, 2, 2, 3, 4, 5, 8)
MAPS = (
    ((1, 0), (1, 1)), ((1, 1), (0, 1)), ((0, 1), (1, 0)), ((1, 0), (-1, 1)), ((2, 1), (1, 1)), ((1, -1), (0, 1)),
    ((1, 0), (2, 1)), ((-1, 0), (0, 1)), ((1, 1), (1, 2)),
)  # fmt: skip
COUNTED = ("skew", "reverse", "affine", "overwrite", "fold_storage", "time tile")


def draw(seed: int) -> Drawn:
    """Return the program of `seed`."""
    made = _Recurrences(seed)
    made.out.fp, made.out.recurrences = "strict", True
    return made.program()


class _Recurrences(Drawer):
    def kinds(self) -> tuple[tuple[Kind, int], ...]:
        return ((self.steps, 8), (self.recurrence, 5), (self.in_place, 4), (self.group, 1), (self.pure, 2))

    def _extent(self) -> int:
        return self.r.choice((1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 19))

    def steps(self) -> str:
        """Say steps of neighbours: each cell reads the step before around it, and of its own step what is done."""
        r = self.r
        dims = self._dims(r.choice((2, 2, 3)))
        name, dtype = self.fresh("s"), self._dtype()
        shape, ceils = self._declare(len(dims))
        floors: list[int | None] = [0] * len(dims)
        scope = self._scope(dims, floors, ceils)
        scope.depth = 1
        down = r.random() < 0.25
        t, rest = dims[0], dims[1:]
        first = self.expr(dtype, Scope([n for n in scope.names if n.text != t], 1))
        self._make(name, f", shape={shape}, dtype={type_text(dtype)}")
        self.out.declared.add(name)
        self.say(f"{name}[{index_text([str(ceils[0] if down else 0), *rest])}] = ", first)
        before = f"{t} {'+' if down else '-'} 1"
        ways = {v: r.choice((-1, -1, 1)) for v in rest}
        sweeps = r.random() < 0.45
        cells: list[str] = []
        for v in rest:
            for way in (-1, 1):
                if r.random() < 0.75:
                    now = t if sweeps and way == ways[v] else before
                    cells.append(f"{name}[{index_text([now, *self._beside(rest, {v: way})])}]")
        if len(rest) > 1 and r.random() < 0.3:
            corner = {v: r.choice((-1, 1)) for v in rest}
            cells.append(f"{name}[{index_text([before, *self._beside(rest, corner)])}]")
        inside = [f"({v} > 0) & ({v} < {c})" for v, c in zip(rest, ceils[1:], strict=True)]
        here = f"{name}[{index_text([before, *rest])}]"
        whole = Term(dtype, [here])
        for cell in cells:
            form = r.choice(self._steps(dtype))
            whole = Term(dtype, [form[0], whole, form[1], Term(dtype, [cell]), form[2]] if form[0] else
                         ["(", whole, form[1], Term(dtype, [cell]), ")"])  # fmt: skip
        if r.random() < 0.5:
            form = r.choice(self._steps(dtype))
            value = Term(dtype, ["(", self.expr(dtype, scope), ")"])
            whole = Term(dtype, [form[0], whole, form[1], value, form[2]] if form[0] else
                         ["(", whole, form[1], value, ")"])  # fmt: skip
        edge = Term(dtype, [here])
        self.say(
            f"{name}[{index_text(dims)}] = ",
            Term(dtype, [f"sx.select({' & '.join(inside)}, ", whole, ", ", edge, ")"]),
        )
        self.word("sweeps" if sweeps else "steps")
        if r.random() < 0.5:
            return self._last(name, dtype, dims, floors, ceils, down)
        self.sources.append(Source(name, (dtype,), floors, ceils, [None] * len(dims)))
        return name

    def _last(
        self, name: str, dtype: str, dims: list[str], floors: list[int | None], ceils: list[int | None], down: bool
    ) -> str:
        """Say a Func of the last step, the only one that others read, so that the steps may be kept folded."""
        last, rest = self.fresh("l"), dims[1:]
        self.out.words[name] = set(self.current)
        self.say(f'{last} = sx.Func("{last}", dtype={type_text(dtype)})')
        self.say(f"{last}[{index_text(rest)}] = {name}[{index_text(['0' if down else str(ceils[0]), *rest])}]")
        self.sources.append(Source(last, (dtype,), floors[1:], ceils[1:], [None] * len(rest)))
        return last

    def _beside(self, rest: list[str], by: dict[str, int]) -> list[str]:
        return [f"{v} {'+' if by[v] > 0 else '-'} 1" if v in by else v for v in rest]

    def in_place(self) -> str:
        """Say a Func, and another of its type and shape that reads it where it is, or one cell ahead."""
        r = self.r
        dims = self._dims(r.choice((1, 1, 2)))
        one, two, dtype = self.fresh("p"), self.fresh("q"), self._dtype()
        shape, ceils = self._declare(len(dims))
        floors: list[int | None] = [0] * len(dims)
        scope = self._scope(dims, floors, ceils)
        scope.depth = min(scope.depth, 2)
        values = [self.expr(dtype, scope), self.expr(dtype, scope)]
        for name in (one, two):
            self.say(f'{name} = sx.Func("{name}", shape={shape}, dtype={type_text(dtype)})')
            self.out.declared.add(name)
        self.say(f"{one}[{index_text(dims)}] = ", values[0])
        here = Term(dtype, [f"{one}[{index_text(dims)}]"])
        if r.random() < 0.5:
            v, top = dims[-1], ceils[-1]
            ahead = f"{one}[{index_text([*dims[:-1], f'{v} + 1'])}]"
            form = r.choice(self._steps(dtype))
            beside = Term(dtype, [f"sx.select({v} < {top}, {ahead}, {one}[{index_text(dims)}])"])
            here = Term(dtype, [form[0], here, form[1], beside, form[2]] if form[0] else
                        ["(", here, form[1], beside, ")"])  # fmt: skip
        form = r.choice(self._steps(dtype))
        rest = Term(dtype, ["(", values[1], ")"])
        self.say(f"{two}[{index_text(dims)}] = ", Term(dtype, [form[0], here, form[1], rest, form[2]]))
        self.word("in place")
        self.sources.append(Source(two, (dtype,), floors, ceils, [None] * len(dims)))
        self.out.words[one] = set(self.current)
        return two


def directive(rng: Random, pipeline: Pipeline, schedule: Schedule, fresh: str) -> list[Line]:
    """Return lines of one of the words, for a stage that they may be said of; none now and then."""
    own = [f for f in pipeline.funcs if any(r.source == f.name for v in f.values for r in reads([v]))]
    word = rng.choice(
        (
            "time tile",
            "time tile",
            "skew",
            "skew",
            "reverse",
            "affine",
            "affine",
            "fold_storage",
            "overwrite",
            "overwrite",
        )
    )
    if word == "overwrite":
        return _overwrite(rng, pipeline)
    f: Func = rng.choice(own or list(pipeline.funcs))
    ref = StageRef(f.name, 0)
    loops = [loop.name for loop in schedule.nest(ref).loops]

    def said(name: str, *args: object, **named: object) -> Line:
        return Line(ref, make(name, args, named))  # type: ignore[arg-type]

    if word == "reverse":
        return [said("reverse", rng.choice(loops))] if loops else []
    if word == "fold_storage":
        dim = f.dims[0] if f.dims and rng.random() < 0.7 else rng.choice(f.dims or ("",))
        return [said("fold_storage", dim, rng.choice((1, 1, 2, 2, 3, 4)))] if f.dims else []
    if len(loops) < 2:
        return []
    if word == "skew":
        v, w = rng.sample(loops, 2)
        if rng.random() < 0.5:
            v, w = loops[1], loops[0]
        made = [said("skew", v, w, rng.choice((-2, -1, 1, 1, 1, 2)), **({"new": fresh} if rng.random() < 0.3 else {}))]
        return [*made, said("reorder", v, w)] if rng.random() < 0.4 and "new" not in str(made) else made
    if word == "affine":
        two = tuple(rng.sample(loops, 2))
        return [
            said("affine", rng.choice(MAPS), two, **({"new": (f"{fresh}m", f"{fresh}n")} if rng.random() < 0.3 else {}))
        ]
    return _time_tile(rng, loops, said, fresh)


def _time_tile(rng: Random, loops: list[str], said: object, fresh: str) -> list[Line]:
    """Return a tiling of the outer loops, the others skewed by the first, in wavefronts now and then."""
    assert callable(said)
    some = loops[: rng.choice((2, 2, 3))]
    t, rest = some[0], some[1:]
    lines = [said("skew", v, t, rng.choice((1, 1, 1, 2, -1))) for v in rest if rng.random() < 0.95]
    outers, inners = (tuple(f"{fresh}{k}{way}" for k in range(len(some))) for way in "oi")
    lines.append(said("tile", tuple(some), outers, inners, tuple(rng.choice(SIZES) for _ in some)))
    if rng.random() < 0.5:
        lines += [said("skew", outers[0], v, 1) for v in outers[1:]]
        if rng.random() < 0.7:
            lines.append(said("parallel", outers[1]))
    if rng.random() < 0.3:
        order = [inners[0], inners[1]]
        rng.shuffle(order)
        lines.append(said("reorder", *order))
    last = loops[-1] if loops[-1] not in some else inners[-1]
    match rng.choice(("vectorize", "vectorize", "unroll", "")):
        case "vectorize":
            lines.append(said("vectorize", last, rng.choice((2, 4, 8))))
        case "unroll":
            lines.append(said("unroll", last, rng.choice((2, 4))))
        case _:
            pass
    return lines


def _overwrite(rng: Random, pipeline: Pipeline) -> list[Line]:
    pairs = [
        (f.name, g)
        for f in pipeline.funcs
        for g in sorted({r.source for v in f.values for r in reads([v])} - {f.name})
        if any(h.name == g and h.dtypes == f.dtypes and len(h.dims) == len(f.dims) for h in pipeline.funcs)
    ]
    if not pairs:
        return []
    f, g = rng.choice(pairs)
    rooted = [Line(StageRef(name), make("compute_root", (), {})) for name in (g, f) if name not in pipeline.outputs]
    return [*rooted, Line(StageRef(f), make("overwrite", (g,), {}))]


def is_counted(lines: tuple[Line, ...], at: int) -> str | None:
    """Return the word of `COUNTED` that line `at` stands for, if it is one."""
    line = lines[at]
    here = [k for k, other in enumerate(lines) if other.at == line.at]
    if isinstance(line.directive, Tile) and any(isinstance(lines[k].directive, Skew) and k < at for k in here):
        return "time tile"
    name = type(line.directive).__name__
    word = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
    return word if word in COUNTED else None
