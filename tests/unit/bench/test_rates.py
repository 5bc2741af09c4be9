import pytest

from tests.bench.rates import Sighting, overall, percentile, samples, throughput


def steady(rate: int, seconds: float, step: float = 0.25) -> list[Sighting]:
    """As many pods in each step, from the time 100 on."""
    steps = round(seconds / step)
    return [Sighting(100 + number * step, round(rate * step) * (number + 1)) for number in range(steps + 1)]


def test_a_steady_rate_is_the_rate_of_every_sample() -> None:
    rate = throughput(steady(rate=400, seconds=5))

    assert (rate.overall, rate.average, rate.p50, rate.p99) == (400, 400, 400, 400)
    assert rate.samples == (400, 400, 400, 400)


def test_the_first_second_and_a_last_one_that_is_not_full_are_no_samples() -> None:
    seen = [Sighting(0, 1), Sighting(0.9, 500), Sighting(1.5, 600), Sighting(2.5, 700), Sighting(2.9, 900)]

    assert samples(seen) == [100]


def test_a_second_without_pods_is_merged_with_the_next() -> None:
    seen = [Sighting(0, 1), Sighting(1, 100), Sighting(3.5, 400), Sighting(4, 400)]

    assert samples(seen) == [100, 100, 100]


def test_the_first_batch_is_not_part_of_the_overall_rate() -> None:
    assert overall([Sighting(10, 50), Sighting(12, 250)]) == 100


@pytest.mark.parametrize("seen", [[], [Sighting(1, 10)]])
def test_without_a_second_sighting_there_is_no_rate(seen: list[Sighting]) -> None:
    rate = throughput(seen)

    assert (rate.overall, rate.average, rate.p50, rate.p99, rate.samples) == (0, 0, 0, 0, ())


@pytest.mark.parametrize(
    ("percent", "expected"),
    [pytest.param(50, 2, id="the lower of the two in the middle"), pytest.param(99, 4, id="the largest")],
)
def test_a_percentile_is_a_value_that_occurred(percent: int, expected: float) -> None:
    assert percentile([4, 1, 3, 2], percent) == expected
