"""An order for each recurrence whose distances alone did not show one: isl finds it, or a cycle is named.

Needs: a Pipeline as frozen. Gives: one in which every recurrence has an order, and every group its steps.
"""

from __future__ import annotations

from dataclasses import replace

from stax.algorithm.nodes import Func, Pipeline
from stax.bounds.infer import Context, Regions, infer
from stax.errors import DefinitionError, Place, UnsupportedError
from stax.legality.cycle import Cycle, find_cycle
from stax.poly.band import order, reads_of
from stax.poly.isl import TooHard


def in_sequence(pipeline: Pipeline, regions: Regions | None = None) -> Pipeline:
    """Return `pipeline` with the orders that were left open.

    Raises DefinitionError where values need themselves, with the cells of a cycle, and UnsupportedError where neither
    an order nor a cycle was found.
    """
    open_ = [f for f in pipeline.funcs if f.order is None]
    grouped = {name for group in pipeline.groups for name in group}
    stuck = [group for group in pipeline.groups if any(pipeline.func(n).together == 0 for n in group)]
    if not open_ and not stuck:
        return pipeline
    regions = regions or infer(pipeline)
    for group in stuck:
        _refuse(pipeline, group, regions.context)
    made = {f.name: _ordered(f, pipeline, regions) for f in open_ if f.name not in grouped}
    for f in open_:
        if f.name in grouped:
            _refuse(pipeline, next(g for g in pipeline.groups if f.name in g), regions.context)
    return replace(pipeline, funcs=tuple(made.get(f.name, f) for f in pipeline.funcs))


def _ordered(f: Func, pipeline: Pipeline, regions: Regions) -> Func:
    context, hard = regions.context, ""
    found = None
    try:
        asked = reads_of(f, context.accesses[f.name][0], regions.boxes[f.name], context.algebra, context.at_least)
        found = order(asked)
    except TooHard as error:
        hard = "where it reads itself depends on data" if "data" in str(error) else "the question is too hard"
    if found is None:
        _refuse(pipeline, (f.name,), context, hard)
    assert found is not None
    if all(len(row) == 1 for row in found):
        return replace(f, order=found, backwards=frozenset(d for ((d, way),) in found if way < 0))
    return replace(f, order=found, backwards=frozenset())


def _refuse(pipeline: Pipeline, group: tuple[str, ...], context: Context, hard: str = "") -> None:
    cycle = find_cycle(pipeline, group, context)
    first = pipeline.func(group[0])
    who = ", ".join(f"`{name}`" for name in group)
    if cycle is None:
        why = hard or "there is none by sums of dims, nor was a cycle of cells found that need each other"
        raise UnsupportedError(
            f"no order was found in which the values of {who} can be computed",
            [(first.span, "defined here")],
            [why],
            "read the step before in an outer dim, such as u[t - 1, x + 1]",
        )
    raise DefinitionError(_message(cycle), _places(cycle), [_fact(cycle)], _hint(len(cycle.cells) > 1))


def _message(cycle: Cycle) -> str:
    names = list(dict.fromkeys(name for name, _ in cycle.cells))
    if len(names) > 1:
        return f"{' and '.join(f'`{n}`' for n in names)} need each other: there is no value to begin with"
    return f"`{names[0]}` needs itself: there is no order in which each value comes after those it reads"


def _places(cycle: Cycle) -> list[Place]:
    found: list[Place] = []
    for k, span in enumerate(cycle.spans):
        name, cell = cycle.cells[k]
        place = (span, f"{_cell(name, cell)} reads here")
        if all(span != s for s, _ in found):
            found.append(place)
    return found


def _fact(cycle: Cycle) -> str:
    cells = [_cell(name, cell) for name, cell in (*cycle.cells, cycle.cells[0])]
    sizes = ", ".join(f"{name} = {value}" for name, value in cycle.sizes)
    return " needs ".join(cells[:2]) + "".join(f", that {c}" for c in cells[2:]) + (f", for {sizes}" if sizes else "")


def _cell(name: str, cell: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, cell))}]"


def _hint(several: bool) -> str:
    if several:
        return "read the step before in an outer dim, such as u[t - 1, x + 1], or give one of these cells a start value"
    return "give this cell a start value, or read it in an arm of sx.select that leaves it out"
