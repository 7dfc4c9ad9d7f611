"""S = rho * beta holds: exactly in numbers, and in each printed row to the digits shown."""

import re

import numpy as np
import pytest

import stax as sx
from stax.errors import ArgumentError
from stax.measure.bench import Bench, Timing
from stax.measure.compare import Comparison, tabulate

y, x = sx.vars("y x")


def three() -> sx.Func:
    a = sx.Input("a", sx.float32, 2)
    f, g, h = sx.Func("f"), sx.Func("g"), sx.Func("h")
    f[y, x] = a[y, x] + 1
    g[y, x] = sx.maximum(f[y, x], 0)
    h[y, x] = g[y, x] * 2
    return h


def plain(a: np.ndarray) -> np.ndarray:
    return np.maximum(a + np.float32(1), 0) * np.float32(2)


def test_the_speed_up_is_a_ratio_of_bytes_times_a_ratio_of_rates() -> None:
    a = np.ones((64, 100), np.float32)
    found = sx.compare(sx.compile(three()), plain, a, rounds=7)
    assert (found.moved_bytes, found.baseline_bytes) == (2 * a.nbytes, 6 * a.nbytes)
    assert found.rho == 3
    assert found.speedup == pytest.approx(found.rho * found.beta, rel=1e-12)
    assert found.speedup == pytest.approx(found.baseline_s / found.time_s, rel=1e-12)
    assert found.ratio.low <= found.ratio.median <= found.ratio.high


def test_a_kernel_as_the_baseline_moves_what_its_own_schedule_moves() -> None:
    f = three()
    s = sx.Schedule(f)
    s["f"].compute_root()
    a = np.ones((64, 100), np.float32)
    found = sx.compare(sx.compile(f), sx.compile(f, s), a, rounds=3)
    assert found.baseline_bytes == 4 * a.nbytes
    assert sx.compare(sx.compile(f), plain, a, rounds=3, baseline_bytes=a.nbytes).rho == 0.5


def test_params_decide_what_is_moved() -> None:
    a, n = sx.Input("a", sx.float32, 1), sx.Param("n", sx.int64, low=1)
    f, g = sx.Func("f"), sx.Func("g", shape=(n,))
    f[x] = a[x] * 2
    g[x] = f[x] + 1
    v = np.ones(100, np.float32)
    found = sx.compare(sx.compile(g), lambda a, n: a[:n] * 2 + 1, v, n=40, rounds=3)
    assert (found.moved_bytes, found.baseline_bytes) == (2 * 160, 4 * 160)


@pytest.mark.parametrize("seed", range(50))
def test_each_printed_row_holds_to_the_digits_shown(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = [tuple(10 ** rng.uniform(-6, 1, 3)) for _ in range(2)]
    moved = [int(n) for n in 10 ** rng.uniform(0, 10, 2)]
    bench = Bench((Timing("kernel", times[0], 1), Timing("baseline", times[1], 1)))
    row = tabulate([Comparison("case", *moved, bench)]).splitlines()[1]
    s, rho, beta = (float(word) for word in re.split(r"\s{2,}", row.strip())[5:8])
    assert s == pytest.approx(rho * beta, rel=5.2e-3)


def test_rates_are_told_as_parts_of_what_the_machine_moves() -> None:
    bench = Bench((Timing("kernel", (1.0,), 1), Timing("baseline", (2.0,), 1)))
    text = tabulate([Comparison("case", 8 * 10**9, 8 * 10**9, bench)], 16e9)
    assert "50%" in text
    assert "25%" in text


def test_what_is_no_kernel_is_refused() -> None:
    with pytest.raises(ArgumentError, match="is no kernel"):
        sx.compare(plain, plain, np.ones((2, 2), np.float32))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="nothing is moved"):
        sx.compare(sx.compile(three()), plain, np.ones((0, 2), np.float32))
