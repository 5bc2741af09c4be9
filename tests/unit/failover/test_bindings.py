"""How long nothing was bound around a takeover."""

import pytest

from tests.failover.load import Bindings


@pytest.mark.parametrize(
    ("times", "gap"),
    [
        ([1.0, 9.9, 10.3, 10.7], 0.4),  # begins just before the moment
        ([9.9, 10.1, 10.7, 10.8], 0.6),
        ([3.0, 9.8, 9.9, 10.1], 0.9),  # goes on at the end
        ([3.0, 8.0, 9.9, 10.5, 11.0, 14.0], 0.6),  # what was before and after does not count
    ],
)
def test_the_longest_gap_is_that_of_the_takeover_alone(times: list[float], gap: float) -> None:
    bindings = Bindings()
    bindings.times = times

    assert bindings.longest_gap(10.0, 11.0) == pytest.approx(gap)
