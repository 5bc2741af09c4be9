"""What plugins read in the background is read from the files, as of the time at which it was measured."""

import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scheduler.__main__ import main
from scheduler.framework.errors import ApiError
from scheduler.simulate.other_objects import OtherObject, OtherObjects, SimulatedReader
from tests.fakes.config import a_config, a_profile

CONFIG: Any = a_config(profiles=[a_profile("LoadAware", "NodeResourceTopologyMatch", name="loadmaster")])
CONFIG["profiles"][0]["plugins"]["multiPoint"]["enabled"][0]["weight"] = 100
NODES: Any = [
    {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}}}
    for name in ("idle", "busy")
]
SMALL = {"requests": {"cpu": "100m", "memory": "1Gi"}}
WHOLE = {"requests": {"cpu": "3", "memory": "1Gi"}, "limits": {"cpu": "3", "memory": "1Gi"}}
METRICS = "metrics.k8s.io/v1beta1"


def a_pod(resources: Any) -> Any:
    return {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": resources}]}}


def usage(cpu: str, node: str, at: str = "2025-01-01T00:00:00Z", **more: Any) -> Any:
    return {"metadata": {"name": node}, "timestamp": at, "usage": {"cpu": cpu, "memory": "1Gi"}, **more}


def as_kubectl_gets_it(*items: Any) -> Any:
    """The answer of `kubectl get --raw`: the items do not say what they are."""
    return {"kind": "NodeMetricsList", "apiVersion": METRICS, "metadata": {}, "items": list(items)}


def simulated(directory: Path, *objects: Any) -> int:
    (directory / "config.json").write_text(json.dumps(CONFIG))
    (directory / "cluster.json").write_text(json.dumps({"kind": "List", "items": [*NODES, *objects]}))
    return main(["simulate", f"{directory}/cluster.json", f"--config={directory}/config.json", "-o", "json"])


@pytest.fixture
def placed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Simulate a cluster with these objects; return where the pod goes."""

    def place(*objects: Any) -> Any:
        assert simulated(tmp_path, *objects) == 0
        out, err = capsys.readouterr()
        assert "left out" not in err
        return json.loads(out)["pods"][0]["node"]

    return place


@pytest.mark.parametrize(
    "metrics",
    [
        [as_kubectl_gets_it(usage("100m", "idle"), usage("3900m", "busy"))],
        [usage(cpu, node, kind="NodeMetrics", apiVersion=METRICS) for cpu, node in (("0", "idle"), ("4", "busy"))],
        # Measured as idle, but too long before the newest: without data a node scores nothing.
        [as_kubectl_gets_it(usage("3", "idle"), usage("0", "busy", "2024-12-31T23:00:00Z"))],
    ],
    ids=["as kubectl gets it", "one by one", "an old measurement"],
)
def test_load_aware_goes_by_the_usage_that_the_files_have(placed: Any, metrics: list[Any]) -> None:
    assert placed(a_pod(SMALL), *metrics) == "idle"


def test_zones_are_those_of_the_files(placed: Any) -> None:
    topology = {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": "idle"},
        "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"}],
        "zones": [
            {"name": f"node-{i}", "type": "Node", "resources": [{"name": "cpu", "available": 2}]} for i in range(2)
        ],
    }
    metrics = as_kubectl_gets_it(usage("0", "idle"), usage("4", "busy"))

    assert placed(a_pod(WHOLE), metrics, topology) == "busy"


@pytest.mark.parametrize(
    ("metrics", "why"),
    [
        ([], "the files have no nodes of metrics.k8s.io/v1beta1"),
        ([as_kubectl_gets_it(usage("much", "idle"))], "idle: cpu: not a quantity: 'much'"),
    ],
)
def test_what_cannot_be_read_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, metrics: list[Any], why: str
) -> None:
    with caplog.at_level(logging.WARNING):
        assert simulated(tmp_path, a_pod(SMALL), *metrics) == 0

    (record,) = caplog.records
    assert why in record.__dict__["err"]


async def test_only_what_the_api_server_would_have_is_read() -> None:
    content = usage("1", "a", kind="NodeMetrics", apiVersion=METRICS)
    others = OtherObjects([OtherObject("f:1", "NodeMetrics", content)])
    reader = SimulatedReader(others)

    assert reader.now() == datetime(2025, 1, 1, tzinfo=UTC)
    answers = [json.loads(await reader.read(f"/apis/{METRICS}/nodes", 1)) for _ in range(2)]
    assert answers == [{"items": [content]}] * 2
    for url in ("https://prometheus/api/v1/query", "/api/v1/pods", f"/apis/{METRICS}/pods", "/", ""):
        with pytest.raises(ApiError):
            await reader.read(url, 1)


@pytest.mark.parametrize("time", [None, 7, "yesterday", "2025-01-01T00:00:00", ["2025-01-01T00:00:00Z"]])
def test_a_time_that_is_none_is_not_the_newest(time: Any) -> None:
    odd = OtherObject("f:1", "NodeMetrics", {"kind": "NodeMetrics", "apiVersion": METRICS, "timestamp": time})

    assert OtherObjects([odd]).newest() is None
