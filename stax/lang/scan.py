"""What the expressions of one definition use: found once, when it is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stax.expr.nodes import Expr, Size, Var
from stax.expr.walk import postorder
from stax.lang.terms import Access, Argument, Extent, Lead, Step, is_weak
from stax.lang.value import Value, again

if TYPE_CHECKING:
    from stax.lang.reduction import Reduction
    from stax.lang.var import RDom


@dataclass(slots=True, eq=False)
class Scan:
    """Uses, in the order of first use.

    `reads` are the direct ones, `inner` those inside reductions; `owners` are all Funcs, Inputs and Consts read or
    measured, and `params` the Params. Free are the `vars` by name, the `leads` by place, and the `steps` by name.
    """

    reads: list[Access] = field(default_factory=list[Access])
    inner: list[Access] = field(default_factory=list[Access])
    reductions: dict[int, Reduction] = field(default_factory=dict[int, "Reduction"])
    owners: dict[int, Any] = field(default_factory=dict[int, Any])
    params: dict[int, Any] = field(default_factory=dict[int, Any])
    vars: dict[str, Var] = field(default_factory=dict[str, Var])
    leads: dict[int, Lead] = field(default_factory=dict[int, Lead])
    steps: dict[tuple[int, str], Step] = field(default_factory=dict[tuple[int, str], Step])

    @property
    def domains(self) -> list[RDom]:
        """The RDoms whose variables are free, each once."""
        return list({id(s.owner): s.owner for s in self.steps.values()}.values())


def scan(roots: Iterable[Expr]) -> Scan:
    """Return what `roots` use, reductions looked through."""
    found = Scan()
    for node in postorder(roots):
        match node:
            case Access(owner=owner):
                inside = getattr(owner, "scan", None)
                if inside is None:
                    found.reads.append(node)
                    found.owners.setdefault(id(owner), owner)
                else:
                    _inside(found, owner, inside)
            case Extent(owner=owner):
                found.owners.setdefault(id(owner), owner)
            case Argument(owner=owner):
                found.params.setdefault(id(owner), owner)
            case Step(owner=owner, name=name):
                found.steps.setdefault((id(owner), name), node)
            case Lead(place=place):
                found.leads.setdefault(place, node)
            case Var(name=name):
                found.vars.setdefault(name, node)
            case Size():
                raise AssertionError("a Size without its Input")
            case _:
                pass
    return found


def _inside(found: Scan, owner: Any, inside: Scan) -> None:
    if id(owner) in found.reductions:
        return
    for key, reduction in inside.reductions.items():
        found.reductions.setdefault(key, reduction)
    found.reductions[id(owner)] = owner
    found.inner += [*inside.reads, *inside.inner]
    for key, used in inside.owners.items():
        found.owners.setdefault(key, used)
    for key, used in inside.params.items():
        found.params.setdefault(key, used)


def close_reads(values: tuple[Value, ...], reader: object) -> tuple[Value, ...]:
    """Return `values` for `reader`, the Funcs they read that have no type yet having taken the default one."""
    if all(v.recipe is None for v in values):
        return values
    others = [
        node.owner
        for node in postorder(v.node for v in values)
        if isinstance(node, Access) and is_weak(node.dtype) and node.owner is not reader
    ]
    if not others:
        return values
    for owner in others:
        owner.close()
    return again(values)
