"""A scheduler is measured on the simulated API server."""

import pytest

from tests.sizing.clusters import SIMULATED
from tests.sizing.measure import measure
from tests.sizing.objects import Size

pytestmark = pytest.mark.programs


def test_a_scheduler_is_measured_from_its_start_to_a_takeover() -> None:
    found = measure(SIMULATED, Size(20, 60), pods_a_kind=20, idle_seconds=1.0, note=lambda _: None)

    assert (found.nodes, found.pods, found.server) == (20, 60, SIMULATED)
    assert found.ready_cpu <= found.first_bound_cpu
    assert found.steady <= found.peak
    assert min(found.ready, found.takeover, found.takeover_peak, *found.bound_rate.values()) > 0
