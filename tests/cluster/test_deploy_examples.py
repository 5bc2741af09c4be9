"""deploy/examples on the real control plane: each is applied as its comment says, and its pods are where it says."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart import Helm
from tests.cluster.charted import scheduler_with
from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import node_of
from tests.cluster.metrics_servers import MetricsServer
from tests.controlplane import Client, Cluster, Component, wait_until

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "deploy" / "examples"
GPUS = {"nvidia.com/gpu": "4"}


def values_of(example: str) -> Any:
    path = EXAMPLES / example / "values.yaml"
    return yaml.safe_load(path.read_text()) if path.exists() else {}


@pytest.fixture
def scheduler(
    request: pytest.FixtureRequest, cluster: Cluster, helm: Helm, namespace: str, tmp_path: Path
) -> Iterator[Component]:
    """A scheduler of the chart with the values of the example whose name is the parameter."""
    with scheduler_with(cluster, helm, namespace, values_of(request.param), tmp_path) as process:
        yield process


def placed(cluster: Cluster, api: Client, namespace: str, file: str, pods: int) -> Counter[str]:
    """Apply a file, wait until its pods are bound, and return node → how many pods."""
    cluster.kubectl("apply", f"--namespace={namespace}", "-f", str(EXAMPLES / file))

    def nodes() -> list[str]:
        return [node for pod in api.list("Pod", namespace) if (node := node_of(pod))]

    wait_until(lambda: len(nodes()) == pods, 30, f"{pods} pods are bound")
    return Counter(nodes())


@pytest.mark.parametrize("scheduler", ["spread"], indirect=True)
def test_a_deployment_is_spread_over_zones_and_nodes(
    cluster: Cluster, scheduler: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    zones = {zone: make_nodes(2, zone=zone) for zone in ("a", "b", "c")}

    found = placed(cluster, api, namespace, "spread/deployment.yaml", 6)

    assert {zone: [found[node] for node in nodes] for zone, nodes in zones.items()} == {zone: [1, 1] for zone in "abc"}


@pytest.mark.parametrize("scheduler", ["gpu"], indirect=True)
def test_a_jobs_workers_are_packed_on_one_node_of_gpus(
    cluster: Cluster, scheduler: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(3, resources=GPUS, taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}])
    make_nodes(2)

    found = placed(cluster, api, namespace, "gpu/job.yaml", 4)

    assert sorted(found.values()) == [4]


def test_pods_avoid_a_node_that_is_busy(
    cluster: Cluster,
    metrics_api: MetricsServer,
    helm: Helm,
    api: Client,
    namespace: str,
    make_nodes: MakeNodes,
    tmp_path: Path,
) -> None:
    busy, idle = make_nodes(2, cpu="4")
    metrics_api.cores = {busy: 3.8, idle: 0.8}

    with scheduler_with(cluster, helm, namespace, values_of("load-aware"), tmp_path):
        wait_until(lambda: metrics_api.answers >= 2, 40, "the metrics that the first decisions use are read")
        found = placed(cluster, api, namespace, "load-aware/deployment.yaml", 3)

    assert found == {idle: 3}


@pytest.mark.parametrize("scheduler", ["plugin"], indirect=True)
def test_a_plugin_in_a_config_map_keeps_pods_away_from_gpu_nodes(
    cluster: Cluster, scheduler: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(3, resources=GPUS)
    (plain,) = make_nodes()

    assert placed(cluster, api, namespace, "plugin/deployment.yaml", 3) == {plain: 3}


def test_the_plugin_is_the_one_of_the_documentation() -> None:
    (text,) = values_of("plugin")["plugins"]["files"].values()

    assert text == (ROOT / "docs" / "examples" / "gpu_guard.py").read_text()


def test_every_example_is_applied_here_and_is_on_the_list() -> None:
    names = {each.name for each in EXAMPLES.iterdir() if each.is_dir()}
    listed = (EXAMPLES / "README.md").read_text()

    assert names == {"spread", "gpu", "load-aware", "plugin"}
    assert all(f"[{name}]({name})" in listed for name in names)
