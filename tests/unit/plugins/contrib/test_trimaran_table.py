"""The cases by which scheduler-plugins judges Trimaran: targetloadpacking_test.go, loadvariationriskbalancing_test.go,
and analysis_test.go.

Amounts and scores are theirs. Of analysis_test.go those are left out that cannot be here: negative usage is no
measurement, and negative margins and sensitivities are refused.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from plugins.contrib.load_aware.measurements import Measurement, Usage
from plugins.contrib.load_aware.strategies import load_variation, rounded
from plugins.contrib.load_aware.table import ResourceLoad
from scheduler.testing import a_cluster, a_handle, a_node, pod_from_dict, started
from tests.unit.plugins.contrib.metrics import NOW, a_limited_pod, measured, scores

GIB = 2**30
EMPTY = pod_from_dict({"metadata": {"name": "p"}, "spec": {"containers": []}})


def score(pod: Any, measurements: Mapping[str, Measurement], **arguments: Any) -> int:
    """Of a node with one core and 1 GiB."""
    nodes = a_cluster(a_node("n", cpu="1", memory="1Gi"))
    return scores(started(measured(measurements, **arguments), a_handle(nodes)), nodes, pod)["n"]


@pytest.mark.parametrize(
    ("percent", "limit", "expected"), [(0, None, 40), (50, None, 33), (30, "1", 0), (None, None, 0)]
)
def test_target_load_packing(percent: int | None, limit: str | None, expected: int) -> None:
    pod = EMPTY if limit is None else a_limited_pod(limits={"cpu": limit})
    known = {} if percent is None else {"n": Measurement(NOW, Usage(percent * 10), None)}

    assert score(pod, known) == expected


@pytest.mark.parametrize(
    ("cpu", "memory", "requests", "expected"),
    [
        ((50, 0), None, None, 75),
        ((100, 0), None, None, 50),
        ((30, 16), None, {"cpu": "200m", "memory": "256Mi"}, 67),
        ((40, 16), (50, 10), {"cpu": "100m", "memory": "512Mi"}, 45),
        ((80, 20), (25, 15), {"cpu": "100m", "memory": "512Mi"}, 45),
        (None, None, None, 0),
    ],
)
def test_load_variation_risk_balancing(
    cpu: tuple[int, int] | None, memory: tuple[int, int] | None, requests: Mapping[str, str] | None, expected: int
) -> None:
    """Mean and deviation in percent."""
    pod = EMPTY if requests is None else a_limited_pod(requests=requests, limits=requests)
    measurement = Measurement(
        NOW,
        None if cpu is None else Usage(cpu[0] * 10, cpu[1] * 10),
        None if memory is None else Usage(memory[0] * GIB / 100, memory[1] * GIB / 100),
    )

    assert score(pod, {"n": measurement}, strategy="LoadVariationRiskBalancing") == expected


@pytest.mark.parametrize(
    ("mean", "deviation", "sensitivity", "capacity", "expected"),
    [
        (40, 36, 1, 100, 57),
        (40, 36, 2, 0, 0),
        (200, 36, 2, 100, 20),
        (40, 120, 2, 100, 25),
        (40, 36, 0, 100, 75),
    ],
)
def test_the_risk_of_one_resource(
    mean: float, deviation: float, sensitivity: float, capacity: float, expected: int
) -> None:
    load = ResourceLoad(np.array([[1.0], [mean], [deviation]]))

    found = load_variation(load, 10, np.array([float(capacity)]), 1, sensitivity)

    assert rounded(found).tolist() == [expected]
