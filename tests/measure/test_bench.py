"""Readings are taken in turns, and the median lies where the binomial says, whatever the distribution."""

import random

import pytest

import stax as sx
from stax.errors import ArgumentError
from stax.measure.bench import Bench, Interval, Timing, median_places

BEST = {
    7: (1, 7, 0.9844), 9: (2, 8, 0.9609), 11: (2, 10, 0.9883), 15: (4, 12, 0.9648), 21: (6, 16, 0.9734),
    31: (10, 22, 0.9706), 51: (19, 33, 0.9511), 101: (41, 61, 0.9540),
}  # fmt: skip


@pytest.mark.parametrize("count", BEST)
def test_the_places_are_those_of_the_seed(count: int) -> None:
    """Proposition 13.2, and Exercise 41 (1) at 15 readings."""
    j, k, chance = median_places(count)
    assert (j, k) == BEST[count][:2]
    assert chance == pytest.approx(BEST[count][2], abs=5e-5)


def test_fifteen_readings_cover_the_median_with_exactly_this_chance() -> None:
    assert median_places(15) == (4, 12, 0.96484375)


def test_the_ends_cover_99_percent_from_eight_readings_on() -> None:
    """Exercise 41 (2)."""
    assert next(n for n in range(2, 20) if median_places(n, 0.99)[2] >= 0.99) == 8
    assert median_places(8, 0.99)[:2] == (1, 8)


def test_few_readings_say_how_little_they_tell() -> None:
    assert median_places(3) == (1, 3, 0.75)
    assert Interval.of([2.0]).chance == 0
    assert Interval.of([4.0, 1.0]).median == 2.5


def test_the_interval_holds_the_median_as_often_as_it_says() -> None:
    """Of a skewed distribution whose median is known, over 4,000 experiments."""
    rng = random.Random(7)
    median, inside = 2**0.5, 0
    for _ in range(4000):
        found = Interval.of(1 / (1 - rng.random()) ** 0.5 for _ in range(15))
        inside += found.low <= median < found.high
    assert inside / 4000 == pytest.approx(0.9648, abs=0.01)


def test_callables_take_turns_and_nobody_is_always_first() -> None:
    order: list[str] = []
    quick = [lambda: (order.append("a"), _wait()), lambda: (order.append("b"), _wait())]
    found = sx.bench(*quick, rounds=4, warmup=0, names=["a", "b"])
    assert "".join(order[-8:]) == "abbaabba"
    assert [len(t.readings) for t in found.timings] == [4, 4]


def _wait() -> None:
    import time

    time.sleep(0.002)


def test_short_calls_are_repeated_until_they_can_be_read() -> None:
    found = sx.bench(lambda: None, rounds=3)
    assert found.timings[0].calls > 100
    assert 0 < found.timings[0].least_s < 1e-4


def test_ratios_are_of_readings_in_one_round() -> None:
    """The second is always twice as slow, while the machine itself gets ten times as slow."""
    slow = [1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    found = Bench((Timing("one", tuple(slow), 1), Timing("two", tuple(2 * s for s in slow), 1)))
    ratio = found.ratio("two", "one")
    assert (ratio.low, ratio.median, ratio.high) == (2, 2, 2)
    assert "2.00 .. 2.00" in str(found)
    assert found.timing("one").least_s == 1.0


def test_what_cannot_be_timed_is_refused() -> None:
    with pytest.raises(ArgumentError, match="nothing to time"):
        sx.bench()
    with pytest.raises(ArgumentError, match="is not callable"):
        sx.bench(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="1 names do not fit 2 callables"):
        sx.bench(dict, dict, names=["a"])
    with pytest.raises(ArgumentError, match="0 rounds"):
        sx.bench(dict, rounds=0)
    assert [t.name for t in sx.bench(dict, dict, rounds=1).timings] == ["dict", "dict.2"]
