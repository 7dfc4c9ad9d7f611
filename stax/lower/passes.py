"""The passes from a proved schedule to loops for a processor, in order; those for blocks are in `blocks`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from stax.loops.nodes import Program
from stax.loops.verify import verify
from stax.lower.build_nests import build_nests
from stax.lower.carry_accumulators import carry_accumulators
from stax.lower.full_tiles import full_tiles
from stax.lower.hoist_conditions import hoist_conditions
from stax.lower.keep_partials import keep_partials
from stax.lower.partition_loops import partition_loops
from stax.lower.place_memory import place_memory
from stax.lower.settle_conditions import settle_conditions
from stax.lower.tidy_loops import tidy_loops
from stax.lower.unroll_loops import unroll_loops
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
    return run(program, (simplify, tiles, cut, hoist, *lanes, placed), debug)


def run(program: Program, steps: tuple[Callable[[Program], Program], ...], debug: bool) -> Program:
    """Return `program` after each of `steps` in turn; `debug` verifies after each."""
    for step in steps:
        program = step(program)
        if debug:
            verify(program)
    return program
