"""What `Prover` proves is so: against all values of random sums with quotients and remainders."""

from __future__ import annotations

import random

import numpy as np

from stax.dtypes import int64
from stax.expr import build
from stax.expr.affine import Affine, Algebra, Interval, Prover
from stax.expr.evaluate import evaluate
from stax.expr.nodes import INDEX, Cast, Expr, Local, Read
from stax.expr.show import show


def test_what_is_proved_holds_at_every_value() -> None:
    """Sums like `((2*x - y + 3) // 4)*p + (y // 3)*q + (x % 4)*r + x + m`, over boxes of x and y."""
    draw = random.Random(1)
    algebra = Algebra()
    x, y = build.local("x"), build.local("y")
    proved = true = 0
    for _ in range(2000):
        xs, ys = (range(lo := draw.randint(-5, 5), lo + draw.randint(1, 10)) for _ in range(2))
        k, j = draw.choice([2, 3, 4]), draw.choice([2, 3])
        u, v, w, p, q, r = (draw.randint(-3, 3) for _ in range(6))
        m = draw.randint(-12, 12)
        inner = build.add(build.mul(x, u), build.add(build.mul(y, v), build.index(w)))
        total = algebra.of(build.floordiv(inner, k)) * p + algebra.of(build.floordiv(y, j)) * q
        total += algebra.of(build.mod(x, k)) * r + algebra.of(x) + m
        ranges = {n: Interval(Affine(i.start), Affine(i.stop - 1)) for n, i in (("x", xs), ("y", ys))}
        found = Prover(algebra, ranges).nonnegative(total)
        holds = all((u * a + v * b + w) // k * p + b // j * q + a % k * r + a + m >= 0 for a in xs for b in ys)
        assert holds or not found
        proved, true = proved + found, true + holds
    assert proved > true * 0.75


def test_a_quotient_is_bounded_exactly() -> None:
    """`v // 2 >= 0` where `v >= 0`, and `v // 2 <= 3` where `v <= 7`."""
    algebra = Algebra()
    v = build.local("v")
    half = algebra.of(build.floordiv(v, 2))
    prover = Prover(algebra, {"v": Interval(Affine(0), Affine(7))})
    assert prover.nonnegative(half)
    assert prover.less_equal(half, Affine(3))
    assert not prover.less_equal(half, Affine(2))


def test_an_extreme_waits_for_what_cancels_it() -> None:
    """`max(n, m) - 16 * x >= 16` where `x < max(n, m) // 16`, though neither `n` nor `m` alone is large enough."""
    algebra = Algebra()
    n, m, x = (build.local(name) for name in ("n", "m", "x"))
    most = algebra.of(build.maximum(n, m))
    runs = algebra.of(build.floordiv(build.maximum(n, m), 16))
    prover = Prover(algebra, {"x": Interval(Affine(0), runs - 1)})
    assert prover.less_equal(Affine(16), most - algebra.of(x) * 16)
    assert not prover.less_equal(Affine(17), most - algebra.of(x) * 16)


def test_the_normal_form_of_clamped_data_wraps_where_what_it_stands_for_does() -> None:
    """Sums, minima and maxima of a position `n` and of `v`, which is any of 64 bits: 2**63 - 1 plus 1 is no sum."""
    draw = random.Random(2)
    v, n = Cast(INDEX, Read(int64, "v", ())), build.local("n")
    most = 2**63 - 1
    given = {
        "v": np.array([-most - 1, -most, -most + 6, -7, -1, 0, 1, 3, 9, most - 6, most - 1, most]),
        "n": np.arange(12),
    }

    def some(depth: int) -> Expr:
        if depth == 0 or draw.random() < 0.15:
            return draw.choice((v, v, n, build.index(draw.randint(-5, 5))))
        match draw.choice(("add", "sub", "min", "max", "min", "max", "both")):
            case "add":
                return build.add(some(depth - 1), draw.randint(-5, 5))
            case "sub":
                return build.sub(some(depth - 1), n)
            case "min":
                return build.minimum(some(depth - 1), some(depth - 1))
            case "max":
                return build.maximum(some(depth - 1), some(depth - 1))
            case _:
                return build.maximum(build.minimum(some(depth - 1), draw.randint(0, 6)), draw.randint(-6, 0))

    for _ in range(4000):
        before = some(4)
        after = Algebra().simplify(before)

        def leaf(node: Expr) -> np.ndarray:
            assert isinstance(node, Local | Read)
            return given[node.name if isinstance(node, Local) else node.source]

        with np.errstate(over="ignore"):
            found, wanted = evaluate([after, before], leaf)
        assert (found == wanted).all(), f"{show(before)} is not {show(after)}"
