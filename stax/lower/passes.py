"""The passes from a proved schedule to loops, in order: one list a kind of machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from stax.loops.nodes import Program
from stax.loops.verify import verify
from stax.lower.build_nests import build_nests
from stax.lower.carry_accumulators import carry_accumulators
from stax.lower.carry_rows import carry_rows
from stax.lower.full_tiles import full_tiles
from stax.lower.hints import units
from stax.lower.hoist_conditions import hoist_conditions
from stax.lower.keep_partials import keep_partials
from stax.lower.keep_values import keep_values
from stax.lower.mask_arms import mask_arms
from stax.lower.mask_branches import mask_branches
from stax.lower.mask_lanes import mask_lanes
from stax.lower.partition_loops import partition_loops
from stax.lower.place_memory import place_memory
from stax.lower.settle_conditions import settle_conditions
from stax.lower.settle_extents import settle_extents
from stax.lower.share_axes import share_axes
from stax.lower.start_rows import start_rows
from stax.lower.tidy_loops import tidy_loops
from stax.lower.unroll_loops import unroll_loops
from stax.lower.use_matrix_unit import rows_first, use_matrix_unit
from stax.lower.vectorize_loops import vectorize_loops
from stax.schedule.legal import Legal


def lower(legal: Legal, name: str = "kernel", debug: bool = False) -> Program:
    """Return the loops of `legal` for a machine with registers of lanes; `debug` verifies after each pass."""
    context = legal.regions.context
    program = build_nests(legal, name)
    simplify = partial(tidy_loops, algebra=context.algebra, at_least=context.at_least)
    cut = partial(partition_loops, algebra=context.algebra, at_least=context.at_least)
    tiles = partial(full_tiles, algebra=context.algebra, at_least=context.at_least)
    hoist = partial(hoist_conditions, algebra=context.algebra, at_least=context.at_least)
    lanes = (keep_partials, vectorize_loops, unroll_loops, settle_conditions, carry_accumulators)
    placed = partial(place_memory, said_of=legal.resolved.storage.memories)
    return _run(program, (simplify, tiles, cut, hoist, *lanes, placed), debug)


def lower_to_blocks(legal: Legal, name: str = "kernel", debug: bool = False) -> Program:
    """Return the loops of `legal` for a machine of masked blocks: no loop is cut, every lane axis is kept."""
    context = legal.regions.context
    program = build_nests(legal, name)
    simplify = partial(tidy_loops, algebra=context.algebra, at_least=context.at_least)
    products = units(legal)
    partials = partial(keep_partials, blocks=True, but=frozenset(products))
    dots = partial(use_matrix_unit, said=products)
    lanes = (partials, partial(vectorize_loops, single=False), dots, unroll_loops, settle_conditions)
    kept = (carry_accumulators, mask_branches, share_axes, rows_first, keep_values, carry_rows)
    rolled = partial(start_rows, algebra=context.algebra, at_least=context.at_least)
    settled = partial(settle_extents, checks=legal.regions.checks, algebra=context.algebra)
    return _run(program, (settled, simplify, rolled, mask_lanes, mask_arms, *lanes, *kept), debug)


def _run(program: Program, steps: tuple[Callable[[Program], Program], ...], debug: bool) -> Program:
    for step in steps:
        program = step(program)
        if debug:
            verify(program)
    return program
