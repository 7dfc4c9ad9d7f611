"""Sums as isl reads them: variables by the names they are given, all that does not vary inside as parameters.

`x // 2`, `x % 3`, minimum and maximum are said as they are. What depends on data has no words, nor has a product.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from stax.expr.affine import Affine, Algebra
from stax.expr.nodes import Binary, BinaryOp, Const, Expr, Load, Local, Read, Size, Var
from stax.expr.walk import postorder

MOST_LETTERS = 3000


class Words:
    """What was said so far: `parameters` are the expressions behind the names p0, p1, ...

    `same` names arrays that have the shape of another.
    """

    def __init__(self, algebra: Algebra, at_least: Mapping[int, int], same: Mapping[str, str] | None = None) -> None:
        self.algebra, self.at_least, self.same = algebra, at_least, same or {}
        self.parameters: list[Expr] = []
        self._names: dict[int, str] = {}
        self._low: list[int | None] = []

    def sum(self, a: Affine, names: Mapping[str, str]) -> str | None:
        """Return the words for `a`, its Vars named as `names` says; None where there are none."""
        said: dict[int, str] = {}
        stack = [n for n, _ in a.terms]
        while stack:
            n = stack[-1]
            if n in said:
                stack.pop()
                continue
            atom = self.algebra.atom(n)
            parts = self._parts(atom, names)
            if parts is None:
                return None
            new = [m for part in parts for m, _ in part.terms if m not in said]
            if new:
                stack += new
                continue
            stack.pop()
            said[n] = self._atom(n, atom, [_text(part, said) for part in parts], names)
            if len(said[n]) > MOST_LETTERS:
                return None
        return _text(a, said)

    def prefix(self) -> str:
        """Return the declaration of the parameters."""
        return f"[{', '.join(f'p{k}' for k in range(len(self.parameters)))}] -> "

    def context(self) -> str:
        """Return what is known of the parameters."""
        return " and ".join(f"p{k} >= {low}" for k, low in enumerate(self._low) if low is not None) or "true"

    def _parts(self, atom: Expr, names: Mapping[str, str]) -> list[Affine] | None:
        """Return the sums that `atom` is made of; None where isl has no such thing."""
        of = self.algebra.of
        match atom:
            case Var(name=name) | Local(name=name) if name in names:
                return []
            case Binary(op=BinaryOp.FLOORDIV | BinaryOp.MOD, left=left, right=Const(value=int(by))) if by > 0:
                return [of(left), Affine(by)]
            case Binary(op=BinaryOp.MIN | BinaryOp.MAX, left=left, right=right):
                return [of(left), of(right)]
            case _:
                return [] if _still(atom, names) else None

    def _atom(self, n: int, atom: Expr, parts: list[str], names: Mapping[str, str]) -> str:
        match atom:
            case Var(name=name) | Local(name=name) if name in names:
                return names[name]
            case Binary(op=BinaryOp.FLOORDIV) if parts:
                return f"floor(({parts[0]})/{parts[1]})"
            case Binary(op=BinaryOp.MOD) if parts:
                return f"(({parts[0]}) mod {parts[1]})"
            case Binary(op=op) if parts:
                return f"{'min' if op is BinaryOp.MIN else 'max'}({parts[0]}, {parts[1]})"
            case _:
                return self._parameter(n, atom)

    def _parameter(self, n: int, atom: Expr) -> str:
        if isinstance(atom, Size) and atom.array in self.same:
            atom = replace(atom, array=self.same[atom.array])
            n = self.algebra.of(atom).terms[0][0]
        if n not in self._names:
            self._names[n] = f"p{len(self.parameters)}"
            self.parameters.append(atom)
            self._low.append(0 if isinstance(atom, Size) else self.at_least.get(n))
        return self._names[n]


def _still(atom: Expr, names: Mapping[str, str]) -> bool:
    """Return whether `atom` is the same at every point."""
    return not any(
        isinstance(e, Read | Load) or (isinstance(e, Var | Local) and e.name in names) for e in postorder((atom,))
    )


def _text(a: Affine, said: Mapping[int, str]) -> str:
    words = [f"{factor}*{said[n]}" if factor != 1 else said[n] for n, factor in a.terms]
    return " + ".join([*words, str(a.const)] if a.const or not words else words)


def all_of(conditions: Iterable[str]) -> str:
    """Return what is so where all of `conditions` are."""
    return " and ".join(conditions) or "true"
