"""The passes from a proved schedule to loops for a machine of masked blocks, in order.

They are no part of `passes`, so that compiling for a processor does not wait for them to be loaded.
"""

from __future__ import annotations

from functools import partial

from stax.loops.nodes import Program
from stax.lower.build_nests import build_nests
from stax.lower.carry_accumulators import carry_accumulators
from stax.lower.carry_rows import carry_rows
from stax.lower.hints import units
from stax.lower.keep_partials import keep_partials
from stax.lower.keep_values import keep_values
from stax.lower.mask_arms import mask_arms
from stax.lower.mask_branches import mask_branches
from stax.lower.mask_lanes import mask_lanes
from stax.lower.passes import run
from stax.lower.settle_conditions import settle_conditions
from stax.lower.settle_extents import settle_extents
from stax.lower.share_axes import share_axes
from stax.lower.start_rows import start_rows
from stax.lower.tidy_loops import tidy_loops
from stax.lower.unroll_loops import unroll_loops
from stax.lower.use_matrix_unit import rows_first, use_matrix_unit
from stax.lower.vectorize_loops import vectorize_loops
from stax.schedule.legal import Legal


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
    return run(program, (settled, simplify, rolled, mask_lanes, mask_arms, *lanes, *kept), debug)
