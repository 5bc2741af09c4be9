import pytest

from tests.bench.rates import percentile, samples, throughput, timeline


def steady(rate: int, seconds: int, start: float = 100.0) -> list[float]:
    """Times of binding, evenly over the time, the last at its end."""
    return [start + (number + 1) / rate for number in range(rate * seconds)]


def test_a_steady_rate_is_the_rate_of_every_sample() -> None:
    rate = throughput(100, steady(rate=400, seconds=5))

    assert (rate.overall, rate.average, rate.p50, rate.p90, rate.p95, rate.p99) == (400, 400, 400, 400, 400, 400)
    assert rate.samples == (400, 400, 400, 400)


def test_the_first_second_with_pods_and_a_last_one_that_is_not_full_are_no_samples() -> None:
    bound = [1.5, 1.9, *[2.5] * 100, *[3.4] * 900]

    assert samples(0, bound) == [100]


def test_a_second_without_pods_is_merged_with_the_next() -> None:
    bound = [0.5, *[3.5] * 300, 4.1]

    assert samples(0, bound) == [100, 100, 100]


def test_the_overall_rate_counts_from_the_start_of_the_measurement() -> None:
    assert throughput(10, [11.0] * 50 + [12.0] * 50).overall == 50


@pytest.mark.parametrize("bound", [[], [1.0]], ids=["no pod", "one, at the start"])
def test_without_time_there_is_no_rate(bound: list[float]) -> None:
    rate = throughput(1.0, bound)

    assert (rate.overall, rate.average, rate.p50, rate.p99, rate.samples) == (0, 0, 0, 0, ())
    assert timeline(1.0, bound) == []


@pytest.mark.parametrize(
    ("percent", "expected"),
    [pytest.param(50, 2, id="the lower of the two in the middle"), pytest.param(99, 4, id="the largest")],
)
def test_a_percentile_is_a_value_that_occurred(percent: int, expected: float) -> None:
    assert percentile([4, 1, 3, 2], percent) == expected


def test_a_timeline_goes_from_nothing_to_all() -> None:
    points = timeline(100, steady(rate=120, seconds=1))

    assert points[0] == (0.0, 0)
    assert points[-1] == (1.0, 120)
    assert [count for _, count in points] == sorted(count for _, count in points)
