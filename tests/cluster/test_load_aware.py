"""LoadAware on the real control plane: enabled by its name, with the RBAC of the default plugins and its own rule."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.fresh import rbac as rbac
from tests.cluster.loadmaster import granted, metric, node_of, start
from tests.cluster.metrics_servers import MetricsServer
from tests.controlplane import Client, Cluster, Component, a_pod, wait_until

FAULTS = "loadmaster_plugin_data_faults_total"


@pytest.fixture
def allowed(cluster: Cluster, metrics_api: MetricsServer) -> Iterator[None]:
    with granted(cluster, "LoadAware", "metrics.k8s.io"):
        yield


def started(cluster: Cluster, directory: Path, **arguments: Any) -> Any:
    """Start the scheduler with LoadAware, whose score decides."""
    arguments = {"refreshInterval": "1s", "expiration": "5s", **arguments}
    profile = {
        "schedulerName": "loadmaster",
        "plugins": {"multiPoint": {"enabled": [{"name": "LoadAware", "weight": 100}]}},
        "pluginConfig": [{"name": "LoadAware", "args": arguments}],
    }
    config = directory / "config.json"
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(json.dumps({**kind, "profiles": [profile]}))
    return start(cluster, f"--config={config}")


def a_small_pod(name: str) -> Any:
    pod = a_pod(name)
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10m"}, "limits": {"cpu": "10m"}}
    return pod


def bound(api: Client, namespace: str, *names: str) -> set[str]:
    """Create pods; return on which nodes they are."""
    for name in names:
        api.create(a_small_pod(name), namespace)
    wait_until(lambda: all(node_of(api.get("Pod", name, namespace)) for name in names), 20, "the pods are bound")
    return {node_of(api.get("Pod", name, namespace)) for name in names}


def test_pods_go_where_measured_usage_is_next_to_the_target(
    cluster: Cluster,
    metrics_api: MetricsServer,
    allowed: None,
    api: Client,
    namespace: str,
    make_nodes: MakeNodes,
    tmp_path: Path,
) -> None:
    idle, right, busy = make_nodes(3, cpu="4")
    metrics_api.cores = {idle: 0.1, right: 1.4, busy: 3.8, "no-node": 0.0}
    with started(cluster, tmp_path):
        metrics_api.wait_until_read()
        first = bound(api, namespace, "a", "b", "c")

        metrics_api.cores = {idle: 1.4, right: 3.8, busy: 3.8}
        metrics_api.wait_until_read()
        then = bound(api, namespace, "d", "e", "f")

    assert (first, then) == ({right}, {idle})


def faults(loadmaster: Component, reason: str) -> float:
    return metric(loadmaster.port, FAULTS, plugin="LoadAware", reason=reason)


def test_without_the_right_to_read_metrics_pods_are_bound_and_it_is_told(
    cluster: Cluster, metrics_api: MetricsServer, api: Client, namespace: str, make_nodes: MakeNodes, tmp_path: Path
) -> None:
    make_nodes(2)
    with started(cluster, tmp_path) as loadmaster:
        wait_until(lambda: faults(loadmaster, "HTTP 4xx") >= 1, 20, "the fault is counted")
        bound(api, namespace, "web")

    assert metrics_api.answers == 0
