"""Sums of products of sizes: how many cells a box has before anybody says how large arrays are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

Product: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """The sum, over `terms`, of a factor times a product of sizes; printed, as one writes it.

    Sizes go by their texts, such as `a.shape[0]`. Terms of more sizes come first, and no factor is 0.

    >>> n, m = Polynomial.of("n"), Polynomial.of("m")
    >>> print(n * m * 8 + n + 2, "|", (n + 1) * (n + -1))
    8*m*n + n + 2 | n**2 - 1
    """

    terms: tuple[tuple[Product, int], ...] = ()

    @staticmethod
    def of(size: str | int) -> Polynomial:
        """Return a size by its text, or a number."""
        return _made({(size,): 1} if isinstance(size, str) else {(): size})

    def __add__(self, other: Polynomial | int) -> Polynomial:
        sums = dict(self.terms)
        for product, factor in _terms(other):
            sums[product] = sums.get(product, 0) + factor
        return _made(sums)

    def __mul__(self, other: Polynomial | int) -> Polynomial:
        sums: dict[Product, int] = {}
        for product, factor in self.terms:
            for by, times in _terms(other):
                both = tuple(sorted((*product, *by)))
                sums[both] = sums.get(both, 0) + factor * times
        return _made(sums)

    @property
    def number(self) -> int | None:
        """What it is, where it has no sizes."""
        return None if any(product for product, _ in self.terms) else sum(factor for _, factor in self.terms)

    def at_most(self, other: Polynomial) -> bool:
        """Return whether it is no more than `other`, where sizes are large.

        >>> n, m = Polynomial.of("n"), Polynomial.of("m")
        >>> (n + 2).at_most(n * 2), (n * 2).at_most(n + 2), n.at_most(m)
        (True, False, False)
        """
        return all(factor > 0 for factor in _leading(other + self * -1).values())

    def over(self, other: Polynomial) -> Fraction | None:
        """Return what self / other comes to as all sizes grow; None where that depends on which of them grow.

        >>> n, m = Polynomial.of("n"), Polynomial.of("m")
        >>> (n * m * 8 + n).over(n * m * 2), n.over(m)
        (Fraction(4, 1), None)
        """
        mine, its = _leading(self), _leading(other)
        ratios = {Fraction(mine.get(product, 0), its[product]) for product in its} if mine.keys() == its.keys() else ()
        return next(iter(ratios)) if len(ratios) == 1 else None

    def __str__(self) -> str:
        text = ""
        for product, factor in self.terms:
            size = abs(factor)
            powers = [f"{name}**{count}" if count > 1 else name for name, count in Counter(product).items()]
            word = "*".join(powers if size == 1 and product else (str(size), *powers))
            text += f" {'-' if factor < 0 else '+'} {word}" if text else f"-{word}" if factor < 0 else word
        return text or "0"


def _terms(other: Polynomial | int) -> tuple[tuple[Product, int], ...]:
    return (((), other),) if isinstance(other, int) else other.terms


def _made(sums: Mapping[Product, int]) -> Polynomial:
    kept = [(product, factor) for product, factor in sums.items() if factor]
    return Polynomial(tuple(sorted(kept, key=lambda term: (-len(term[0]), term[0]))))


def _leading(p: Polynomial) -> dict[Product, int]:
    degree = max((len(product) for product, _ in p.terms), default=0)
    return {product: factor for product, factor in p.terms if len(product) == degree}
