"""Polynomials in sizes add and multiply as numbers do."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from stax.measure.polynomial import Polynomial

SIZES = {"n": 7, "m": 11, "k": 2}
polynomials = st.recursive(
    st.one_of(st.integers(-5, 5).map(Polynomial.of), st.sampled_from(sorted(SIZES)).map(Polynomial.of)),
    lambda below: st.tuples(below, below, st.booleans()).map(lambda p: p[0] * p[1] if p[2] else p[0] + p[1]),
    max_leaves=8,
)


def at(p: Polynomial) -> int:
    """Return `p` where sizes are those of `SIZES`."""
    total = 0
    for product, factor in p.terms:
        for name in product:
            factor *= SIZES[name]
        total += factor
    return total


@given(polynomials, polynomials)
def test_sums_and_products_have_the_values_of_their_parts(p: Polynomial, q: Polynomial) -> None:
    assert at(p + q) == at(p) + at(q)
    assert at(p * q) == at(p) * at(q)
    assert p * q == q * p


@given(polynomials)
def test_the_text_says_the_value(p: Polynomial) -> None:
    assert eval(str(p), dict(SIZES)) == at(p)


def test_what_one_comes_to_over_another_is_of_the_terms_of_most_sizes() -> None:
    n, m = Polynomial.of("n"), Polynomial.of("m")
    assert (n * m * 3 + n * 100).over(n * m * 2 + 7) == Fraction(3, 2)
    assert (n * n).over(n * m) is None
    assert (n * n + n * m).over(n * n) is None
    assert n.over(n * n) is None
