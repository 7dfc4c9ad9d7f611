"""The nine cases of "Stax (5): Caching and Measurement" beside NumPy, operator by operator: S = rho * beta.

python -m examples.apps.seed [--only softmax ...] [--beside numpy funcs torch] [--sessions 2]

Each operator is a Func, so that what moves Func by Func is what NumPy moves. `numpy` writes into arrays that it has
already, and computes on one thread but for products; `funcs` is stax with every Func a result, on all threads;
`torch`, where it is installed, computes on all threads. Two sessions show how far two runs differ; compare in one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import stax as sx
from stax.measure.compare import Comparison, compare, tabulate

y, x = sx.vars("y x")
ROWS, SOFTMAX = (8192, 2048), (16384, 1000)
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """Funcs, of which the last `results` are wanted, the shapes of inputs, and the same by operators of a library."""

    name: str
    funcs: Callable[[], tuple[sx.Func, ...]]
    shapes: dict[str, tuple[int, ...]]
    eager: Callable[..., Any]
    results: int = 1

    def program(self) -> tuple[sx.Func, ...]:
        """Return the Funcs that are wanted."""
        return self.funcs()[-self.results :]


def _inputs(*names: str) -> list[sx.Input]:
    return [sx.Input(name, sx.float32, 2) for name in names]


def _row(a: sx.Input) -> sx.RDom:
    return sx.RDom("k", k=a.shape[1])


def _funcs(names: str) -> list[sx.Func]:
    return [sx.Func(name) for name in names.split()]


def example_1_1() -> tuple[sx.Func, ...]:
    """Return ((a + w).relu() * 2).sum(-1), and what leads there."""
    a, w = _inputs("a", "w")
    added, positive, twice, out = _funcs("added positive twice out")
    k = _row(a)
    added[y, x] = a[y, x] + w[y, x]
    positive[y, x] = sx.maximum(added[y, x], 0)
    twice[y, x] = positive[y, x] * 2
    out[y] = sx.sum(twice[y, k], k)
    return added, positive, twice, out


def softmax() -> tuple[sx.Func, ...]:
    """Return softmax in five operators."""
    (a,) = _inputs("a")
    most, less, grown, total, out = _funcs("most less grown total out")
    k = _row(a)
    most[y] = sx.max(a[y, k], k, initial=-sx.inf)
    less[y, x] = a[y, x] - most[y]
    grown[y, x] = sx.exp(less[y, x])
    total[y] = sx.sum(grown[y, k], k)
    out[y, x] = grown[y, x] / total[y]
    return most, less, grown, total, out


def example_7_1() -> tuple[sx.Func, ...]:
    """Return x / x.sum(-1, keepdim=True)."""
    (a,) = _inputs("a")
    total, out = _funcs("total out")
    k = _row(a)
    total[y] = sx.sum(a[y, k], k)
    out[y, x] = a[y, x] / total[y]
    return total, out


def example_7_2() -> tuple[sx.Func, ...]:
    """Return the sum and the maximum of rows of exp(x), written twice."""
    (a,) = _inputs("a")
    first, second, total, most = _funcs("first second total most")
    k = _row(a)
    first[y, x] = sx.exp(a[y, x])
    second[y, x] = sx.exp(a[y, x])
    total[y] = sx.sum(first[y, k], k)
    most[y] = sx.max(second[y, k], k, initial=0.0)
    return first, second, total, most


def row_sum() -> tuple[sx.Func, ...]:
    """Return x.sum(-1)."""
    (a,), (out,) = _inputs("a"), _funcs("out")
    k = _row(a)
    out[y] = sx.sum(a[y, k], k)
    return (out,)


def row_max() -> tuple[sx.Func, ...]:
    """Return x.amax(-1)."""
    (a,), (out,) = _inputs("a"), _funcs("out")
    k = _row(a)
    out[y] = sx.max(a[y, k], k, initial=-sx.inf)
    return (out,)


def add() -> tuple[sx.Func, ...]:
    """Return x + w."""
    (a, w), (out,) = _inputs("a", "w"), _funcs("out")
    out[y, x] = a[y, x] + w[y, x]
    return (out,)


def exp() -> tuple[sx.Func, ...]:
    """Return e to the power of x."""
    (a,), (out,) = _inputs("a"), _funcs("out")
    out[y, x] = sx.exp(a[y, x])
    return (out,)


def relu() -> tuple[sx.Func, ...]:
    """Return max(x, 0)."""
    (a,), (out,) = _inputs("a"), _funcs("out")
    out[y, x] = sx.maximum(a[y, x], 0)
    return (out,)


class NumPy:
    """Operators that write into arrays which they keep, one for each place in a program."""

    def __init__(self) -> None:
        self._kept: dict[str, Array] = {}

    def __call__(self, place: str, operator: Any, *given: Any, **more: Any) -> Array:
        """Return operator(*given, **more), written where the same place wrote before."""
        if place not in self._kept:
            self._kept[place] = operator(*given, **more)
        return operator(*given, **more, out=self._kept[place])

    add, subtract, divide, multiply, exp, maximum = np.add, np.subtract, np.divide, np.multiply, np.exp, np.maximum

    @staticmethod
    def row_sum(a: Array, keep: bool = False, **out: Any) -> Array:
        """Return the sum of each row."""
        return np.sum(a, axis=-1, keepdims=keep, **out)

    @staticmethod
    def row_max(a: Array, keep: bool = False, **out: Any) -> Array:
        """Return the largest of each row."""
        return np.max(a, axis=-1, keepdims=keep, **out)


class Torch:
    """The same operators of torch."""

    def __init__(self) -> None:
        import torch

        self._torch, self._kept = torch, {}
        self.add, self.subtract, self.divide = torch.add, torch.subtract, torch.divide
        self.multiply, self.exp = torch.multiply, torch.exp

    __call__ = NumPy.__call__

    def maximum(self, a: Any, least: float, **out: Any) -> Any:
        """Return `a`, at least `least`."""
        return self._torch.clamp_min(a, least, **out)

    def row_sum(self, a: Any, keep: bool = False, **out: Any) -> Any:
        """Return the sum of each row."""
        return self._torch.sum(a, dim=-1, keepdim=keep, **out)

    def row_max(self, a: Any, keep: bool = False, **out: Any) -> Any:
        """Return the largest of each row."""
        return self._torch.amax(a, dim=-1, keepdim=keep, **out)


def _eager_1_1(do: Any, a: Any, w: Any) -> Any:
    z = do("relu", do.maximum, do("add", do.add, a, w), 0)
    return do("sum", do.row_sum, do("twice", do.multiply, z, 2))


def _eager_softmax(do: Any, a: Any) -> Any:
    less = do("less", do.subtract, a, do("most", do.row_max, a, keep=True))
    grown = do("grown", do.exp, less)
    return do("out", do.divide, grown, do("total", do.row_sum, grown, keep=True))


def _eager_7_1(do: Any, a: Any) -> Any:
    return do("out", do.divide, a, do("total", do.row_sum, a, keep=True))


def _eager_7_2(do: Any, a: Any) -> Any:
    total = do("total", do.row_sum, do("first", do.exp, a))
    return total, do("most", do.row_max, do("second", do.exp, a))


ONE, BOTH, SOFT = {"a": ROWS}, {"a": ROWS, "w": ROWS}, {"a": SOFTMAX}
CASES = (
    Case("example 1.1", example_1_1, BOTH, _eager_1_1),
    Case("softmax", softmax, SOFT, _eager_softmax),
    Case("example 7.1", example_7_1, ONE, _eager_7_1),
    Case("example 7.2", example_7_2, ONE, _eager_7_2, results=2),
    Case("row sum", row_sum, ONE, lambda do, a: do("out", do.row_sum, a)),
    Case("row max", row_max, ONE, lambda do, a: do("out", do.row_max, a)),
    Case("add", add, BOTH, lambda do, a, w: do("out", do.add, a, w)),
    Case("exp", exp, ONE, lambda do, a: do("out", do.exp, a)),
    Case("relu", relu, ONE, lambda do, a: do("out", do.maximum, a, 0)),
)


def measured(case: Case, beside: str, options: argparse.Namespace) -> Comparison:
    """Return how the kernel of `case` compares, its values checked against the baseline's."""
    rng = np.random.default_rng(11)
    small = {name: tuple(max(1, n // options.smaller) for n in shape) for name, shape in case.shapes.items()}
    given = {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in small.items()}
    program = case.program()
    kernel = sx.compile(program, sx.auto_schedule(program, arrays=given), strict_native=True)
    baseline = _baseline(case, beside, given)
    wanted, got = baseline(*given.values()), kernel(*given.values())
    for mine, its in zip(_each(got), _each(wanted)[-case.results :], strict=True):
        _check(case, mine, np.asarray(its).reshape(mine.shape), given)
    more = {"rounds": options.rounds, "threads": options.threads, "name": case.name}
    return compare(kernel, baseline, *given.values(), **more)


def _baseline(case: Case, beside: str, given: dict[str, Array]) -> Any:
    if beside == "funcs":
        funcs = case.funcs()
        return sx.compile(funcs, sx.auto_schedule(funcs, arrays=given), strict_native=True)
    if beside == "torch":
        try:
            import torch
        except ImportError:
            raise SystemExit("--beside torch: torch is not installed") from None
        do, arrays = Torch(), [torch.from_numpy(a) for a in given.values()]
        return lambda *_: case.eager(do, *arrays)
    do = NumPy()
    return lambda *arrays: case.eager(do, *arrays)


def _check(case: Case, mine: Array, its: Array, given: dict[str, Array]) -> None:
    """Raise where values differ by more than sums in another order, divided by sums that may be close to 0."""
    tight = case.name != "example 7.1"
    near = mine if tight else mine * given["a"].sum(axis=-1, keepdims=True, dtype=np.float64)
    also = its if tight else given["a"]
    if not np.allclose(near, also, rtol=1e-4, atol=1e-3 if tight else 0.1):
        raise AssertionError(f"{case.name}: values differ by {np.abs(near - also).max()}")


def _each(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def main() -> int:
    """Print a table for each baseline and session."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[c.name for c in CASES], default=[c.name for c in CASES])
    parser.add_argument("--beside", nargs="+", choices=["numpy", "funcs", "torch"], default=["numpy", "funcs"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--sessions", type=int, default=2)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--smaller", type=int, default=1, help="divide sizes by this, to see whether all is well")
    options = parser.parse_args()
    cases = [c for c in CASES if c.name in options.only]
    machine = None if options.smaller > 1 else sx.roofline(threads=options.threads)
    if machine is not None:
        print(f"{machine}\n")
    for beside in options.beside:
        for session in range(options.sessions):
            found = [measured(case, beside, options) for case in cases]
            print(f"stax beside {beside}, session {'AB'[session] if session < 2 else session + 1}")
            print(f"{tabulate(found, None if machine is None else machine.bandwidth)}\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
