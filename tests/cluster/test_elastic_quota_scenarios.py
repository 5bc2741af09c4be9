"""scheduler-plugins' own integration test of CapacityScheduling, played with Loadmaster on a real API server."""

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import defined, granted, node_of, prioritised, start, with_plugin_instead
from tests.controlplane import Client, Cluster, Component, a_pod, condition, wait_until
from tests.controlplane.client import Object
from tests.controlplane.definitions import ELASTIC_QUOTA

PRIORITIES: Final = {"low": 0, "mid": 100, "high": 1000}
NAMESPACES: Final = ("ns1", "ns2", "ns3")
SECONDS: Final = 60.0

TABLE: Final[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("elastic_quota_scenarios.yaml").read_text(encoding="utf-8")
)
SCENARIOS: Final = [pytest.param(each, id=each["name"]) for each in TABLE["scenarios"]]


def test_the_table_has_all_cases_of_its_source() -> None:
    assert len(TABLE["scenarios"]) == TABLE["count"] == 7


@pytest.fixture(scope="module", autouse=True)
def loadmaster(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Component]:
    """The scheduler with the plugin alone at PostFilter, as there."""
    config = with_plugin_instead(tmp_path_factory.mktemp("quotas"), "CapacityScheduling", "DefaultPreemption")
    with (
        defined(cluster, ELASTIC_QUOTA),
        prioritised(cluster, PRIORITIES),
        granted(cluster, "CapacityScheduling", "scheduling.x-k8s.io", "scheduling.sigs.k8s.io"),
        start(cluster, config) as component,
    ):
        yield component


@pytest.fixture
def namespaces(cluster: Cluster, api: Client) -> Iterator[dict[str, str]]:
    """Their names in the table → in the cluster."""
    made = {name: f"{name}-{secrets.token_hex(4)}" for name in NAMESPACES}
    for name in made.values():
        cluster.create_namespace(name)
    yield made
    cluster.kubectl("delete", "elasticquotas", "--all", "--all-namespaces")
    for name in made.values():
        api.delete("Namespace", name)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_of_scheduler_plugins_ends_as_there(
    cluster: Cluster, api: Client, namespaces: dict[str, str], make_nodes: MakeNodes, scenario: dict[str, Any]
) -> None:
    nodes = dict(zip(("n1", "n2"), make_nodes(2, cpu="100", memory="100", pods="32"), strict=True))
    for namespace, (least, most) in scenario["quotas"].items():
        spec = {"min": amounts(*least), "max": amounts(*most)}
        metadata = {"name": "quota", "namespace": namespaces[namespace]}
        quota = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota"}
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps({**quota, "metadata": metadata, "spec": spec}))
    names = {name: namespaces[namespace] for name, namespace, *_ in (*scenario["existing"], *scenario["added"])}
    for name, namespace, memory, cpu, priority, node in scenario["existing"]:
        api.create(made(name, memory, cpu, priority, nodeName=nodes[node]), namespaces[namespace])

    for name, namespace, memory, cpu, priority in scenario["added"]:
        api.create(made(name, memory, cpu, priority), namespaces[namespace])

    expected = set(scenario["scheduled"])
    refused = [name for name, *_ in scenario["added"] if name not in expected]
    wait_until(lambda: expected <= bound(api, names), SECONDS, "those have a node")
    wait_until(lambda: all(is_refused(api, name, names[name]) for name in refused), SECONDS, "the others are refused")
    wait_until(lambda: bound(api, names) == expected, SECONDS, "nobody else has a node")


def amounts(memory: int, cpu: int) -> dict[str, str]:
    return {"memory": str(memory), "cpu": f"{cpu}m"}


def made(name: str, memory: int, cpu: int, priority: str, **spec: Any) -> Object:
    return a_pod(
        name, memory=str(memory), cpu=f"{cpu}m", priorityClassName=priority, terminationGracePeriodSeconds=0, **spec
    )


def bound(api: Client, names: dict[str, str]) -> set[str]:
    """The names of the pods that have a node."""
    found = [pod for namespace in set(names.values()) for pod in api.list("Pod", namespace)]
    return {pod["metadata"]["name"] for pod in found if node_of(pod) and "deletionTimestamp" not in pod["metadata"]}


def is_refused(api: Client, name: str, namespace: str) -> bool:
    found = condition(api.get("Pod", name, namespace), "PodScheduled")
    return (
        found is not None and found["status"] == "False" and found.get("reason") in ("Unschedulable", "WaitingForQuota")
    )
