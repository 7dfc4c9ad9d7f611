"""Is a witness true? Run by hand: its points exist, they touch the cell, and the schedule turns them round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stax.algorithm.nodes import Func, Pipeline
from stax.expr.nodes import Read
from stax.expr.walk import postorder
from stax.legality.witness import Witness
from stax.schedule import directives as said
from stax.schedule.directives import Line, StageRef
from tests.legality.brute import Box, Cell, Instance, Point, Run, Truth, exprs


def confirmed(pipeline: Pipeline, lines: Sequence[Line], sizes: Mapping[str, Cell], found: Witness) -> str:
    """Return "" where the points of a witness collide as it says, else what is not as it says.

    The sizes are those of the witness; where nothing says a size, those of `sizes`.
    """
    run = _run(pipeline, lines, sizes, found)
    points = [dict(p) for p in found.points]
    for ref, point in zip(found.stages, points, strict=True):
        f = run.funcs[ref.func]
        if point not in run.truth.points(f, ref.stage, _box(run, f, points)):
            return f"{ref} has no point {point}"
    first, second = (_does(run, ref, p, found) for ref, p in zip(found.stages, points, strict=True))
    wanted = {"flow": ("writes", "reads"), "anti": ("reads", "writes"), "output": ("writes", "writes"),
        "in place": ("reads", "writes")}  # fmt: skip
    if found.kind in wanted:
        for does, asked, point in zip((first, second), wanted[found.kind], points, strict=True):
            if asked not in does and not (found.kind == "in place" and does):
                return f"{point} does not do this: {asked} {found.array}{list(found.cell)}"
    again = found.kind == "in place" and found.stages[0].func in run.places
    if found.stages[0] != found.stages[1] or again:
        return ""  # which of them comes first depends on the loops around: that the values differ says so
    return _turned(run, found, points)


def _run(pipeline: Pipeline, lines: Sequence[Line], sizes: Mapping[str, Cell], found: Witness) -> Run:
    whole = {name: list(shape) for name, shape in sizes.items()}
    for array, dim, value in found.sizes:
        for name in {array, *_alike(lines, array)} & whole.keys():
            whole[name][dim] = value
    truth = Truth(pipeline, {name: tuple(shape) for name, shape in whole.items()}, 0)
    return Run(pipeline, lines, truth, None, calm=True)


def _box(run: Run, f: Func, points: Sequence[Point]) -> Box:
    """Return the box of a Func; of one that is no output, more may be computed than is read."""
    box = run.truth.boxes[f.name]
    if f.name in run.pipeline.outputs:
        return box
    seen = [[p.get(d, lo) for p in points] for d, (lo, _) in zip(f.dims, box, strict=True)]
    return [(min(lo, *at), max(hi, *at)) for at, (lo, hi) in zip(seen, box, strict=True)]


def _alike(lines: Sequence[Line], array: str) -> set[str]:
    """Return what lies in the storage of `array`, and has its shape."""
    found, before = {array}, set[str]()
    while found != before:
        before = set(found)
        for line in lines:
            if isinstance(d := line.directive, said.Overwrite) and {d.target, line.at.func} & found:
                found |= {d.target, line.at.func}
    return found


def _does(run: Run, ref: StageRef, point: Point, found: Witness) -> set[str]:
    """Return whether a point reads or writes the cell; both, where data say which cell it is."""
    f, cell = run.funcs[ref.func], found.cell
    if _at_data(f, ref.stage):
        return {"reads", "writes"}
    effect = run.truth.effect(f, ref.stage, point, lambda name, at: 0)
    if effect is None:
        return set()
    does = {"writes"} if effect[0] == cell and (ref.func == found.array or found.kind == "in place") else set[str]()
    read = run.truth.read(f, ref.stage, point, found.array)
    return does | ({"reads"} if cell in read else set())


def _at_data(f: Func, stage: int) -> bool:
    """Return whether data say which cells a stage touches."""
    update = f.updates[stage - 1] if stage else None
    indices = [i for e in postorder(exprs(f, stage)) if isinstance(e, Read) for i in e.index]
    roots = [*indices, *((*update.index, *(() if update.where is None else (update.where,))) if update else ())]
    return any(isinstance(e, Read) for e in postorder(tuple(roots)))


def _turned(run: Run, found: Witness, points: Sequence[Point]) -> str:
    """Return "" where the loops run the second point first, or both at once."""
    ref = found.stages[0]
    f, twin = run.funcs[ref.func], run.twins[ref]
    times = [[i.time for i in run.instances(f, ref.stage, _box(run, f, points), [p])] for p in points]
    every = list(range(len(twin.turns)))
    vector = [k for k in every if twin.turns[k].kind == "vector"]
    orders = [every, *([[k for k in every if k not in gone] + gone for gone in (vector, vector[-1:])])]
    for one in times[0]:
        for other in times[1]:
            for order in orders if found.how == "order" else []:
                if [other[k] for k in order] <= [one[k] for k in order]:
                    return ""
            differ = [k for k in every if one[k] != other[k]]
            if found.how == "parallel" and differ and twin.turns[differ[0]].kind == "parallel":
                return ""
            if found.how == "parallel" and any(
                twin.turns[k].kind == "parallel" and all(twin.turns[j].kind == "vector" for j in differ if j < k)
                for k in differ
            ):
                return ""
            if found.how == "lanes" and all(twin.turns[k].kind == "vector" for k in differ):
                return ""
    return f"{points[1]} does not run before {points[0]}, nor with it: {times}"


__all__ = ["Instance", "confirmed"]
