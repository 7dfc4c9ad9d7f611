"""Iterations past the end of a dim, which `tail="round_up"` runs: they must store into padding, and nowhere else.

What they load is masked, so that they read no more than is there; only their stores are as any other's. So the Func has
storage of its own, new wherever it is computed, and none of it is another cell's place.
"""

from __future__ import annotations

from stax.algorithm.nodes import Func
from stax.errors import LegalityError
from stax.schedule.legal import Placed
from stax.schedule.points import Points


def check_rounding(f: Func, stage: int, points: Points, placed: Placed, output: bool) -> None:
    """Raise LegalityError where iterations past an end would write what is not theirs."""
    for root in points.rounded:
        if root not in f.dims:
            raise LegalityError(
                f'tail="round_up" would run more iterations of `{root}`, which `{f.name}.update({stage - 1})` reduces',
                [(f.updates[stage - 1].span, "defined here")], hint='tail="guard"',
            )  # fmt: skip
        if output:
            raise LegalityError(
                f'tail="round_up" would write `{f.name}` beyond `{root}`: it is an output, whose array has no padding',
                [(f.span, "defined here")],
                hint=f"s[{f.name!r}].align_bounds({root!r}, {points.rounded[root]}) promises that there is no tail, or "
                'tail="guard"',
            )
        if placed.compute != placed.store or placed.new != placed.box:
            raise LegalityError(
                f'tail="round_up" would write over values of `{f.name}` that are kept from earlier iterations',
                [(f.span, "defined here")], hint="keep it at the loop where it is computed",
            )  # fmt: skip


def check_unfolded(f: Func, dims: set[str], folded: set[str]) -> None:
    """Raise LegalityError where the end of a dim is not followed by padding, as its storage is folded."""
    for dim in sorted(dims & folded):
        raise LegalityError(
            f'tail="round_up" would write over other values of `{f.name}`: its storage is folded along `{dim}`',
            [(f.span, "defined here")], hint='tail="guard"',
        )  # fmt: skip
