"""Why a call is not served by the versions of a kernel that there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from stax.backends.artifact import Facts

Array = np.ndarray[Any, Any]


def explain(versions: Iterable[Facts], wanted: Facts, arrays: Mapping[str, Array]) -> str:
    """Return, a line for each version, what it takes for granted that does not hold of `arrays`, or the reverse.

    wanted: what holds of `arrays`.
    """
    lines: list[str] = []
    for number, facts in enumerate(versions, 1):
        if facts == wanted:
            return f"version {number} serves these arrays"
        for name in sorted(arrays):
            lines += [f"version {number}: {text}" for text in _differences(name, arrays[name], facts, wanted)]
    return "\n".join([*lines, "a call compiles a version for these arrays"])


def _differences(name: str, array: Array, facts: Facts, wanted: Facts) -> list[str]:
    found: list[str] = []
    if (name in facts.dense) != (name in wanted.dense):
        step = f"`{name}` steps by {array.strides[-1]} bytes in its last dimension, of elements of {array.itemsize}"
        found.append(f"{step}; it takes one element" if name in facts.dense else f"{step}; it takes any other step")
    if (name in facts.aligned) != (name in wanted.aligned):
        lies = f"`{name}` lies at address {array.__array_interface__['data'][0]:#x} with strides {array.strides}"
        found.append(
            f"{lies}; it takes {'multiples' if name in facts.aligned else 'what is no multiple'} of {array.itemsize}"
        )
    had, has = dict(facts.packed).get(name), dict(wanted.packed).get(name)
    if had != has:
        channels = (
            f"{has} channels side by side" if has else f"no few channels side by side, its shape is {array.shape}"
        )
        found.append(f"`{name}` has {channels}; it takes {had if had else 'any other shape'}")
    return found
