"""scheduler-plugins' own integration tests of Coscheduling, played with Loadmaster on a real API server."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.cluster.conftest import MakeNodes
from tests.cluster.coscheduling import GROUPS, started
from tests.cluster.loadmaster import defined, granted, node_of, prioritised
from tests.controlplane import Client, Cluster, Component, a_pod, condition, wait_until
from tests.controlplane.client import Object
from tests.controlplane.definitions import POD_GROUP

API: Final = "scheduling.x-k8s.io/v1alpha1"
LABEL: Final = "scheduling.x-k8s.io/pod-group"
PRIORITIES: Final = {"mid": 100, "high": 1000}
SECONDS: Final = 60.0

TABLES: Final[list[dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("coscheduling_scenarios.yaml").read_text(encoding="utf-8")
)
SCENARIOS: Final = [scenario for table in TABLES for scenario in table["scenarios"]]


def test_the_tables_have_all_cases_of_their_sources() -> None:
    assert [len(table["scenarios"]) for table in TABLES] == [table["count"] for table in TABLES]


@pytest.fixture(scope="module", autouse=True)
def loadmaster(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Component]:
    """The scheduler with the plugin, where PodGroups and the two priorities are defined."""
    with (
        defined(cluster, POD_GROUP),
        prioritised(cluster, PRIORITIES),
        granted(cluster, "Coscheduling", *GROUPS),
        started(cluster, tmp_path_factory.mktemp("coscheduling")) as component,
    ):
        yield component


@pytest.mark.parametrize("scenario", [pytest.param(each, id=each["name"]) for each in SCENARIOS])
def test_a_scenario_of_scheduler_plugins_ends_as_there(
    cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes, scenario: dict[str, Any]
) -> None:
    for node in scenario["nodes"]:
        make_nodes(1, pods="32", **node)
    for group in scenario["groups"]:
        api.create(a_group(group), namespace)

    for pod in scenario["pods"]:
        api.create(a_member(pod), namespace)
        if "phase" in pod:  # the API server takes none with a new pod
            status = json.dumps({"status": {"phase": pod["phase"]}})
            cluster.kubectl("patch", "pod", pod["name"], "-n", namespace, "--subresource=status", "-p", status)

    wait_until(lambda: set(scenario["scheduled"]) <= bound(api, namespace), SECONDS, "those have a node")
    refused = scenario.get("unscheduled", [])
    wait_until(lambda: all(is_refused(api, namespace, name) for name in refused), SECONDS, "those were tried in vain")
    if not any("priority" in pod for pod in scenario["pods"]):  # nobody was there before those and is evicted
        assert bound(api, namespace) == set(scenario["scheduled"])


def a_group(group: Mapping[str, Any]) -> Object:
    spec = {field: group[field] for field in ("minMember", "minResources") if field in group}
    return {"apiVersion": API, "kind": "PodGroup", "metadata": {"name": group["name"]}, "spec": spec}


def a_member(pod: Mapping[str, Any]) -> Object:
    labels = {LABEL: pod["group"]} if "group" in pod else {}
    spec = {"priorityClassName": pod.get("priority", "mid")} | ({"nodeName": pod["node"]} if "node" in pod else {})
    return a_pod(pod["name"], cpu=pod.get("cpu", "0"), memory=pod.get("memory", "0"), labels=labels, **spec)


def bound(api: Client, namespace: str) -> set[str]:
    """The names of the pods that have a node, and have not ended."""
    found = api.list("Pod", namespace)
    return {pod["metadata"]["name"] for pod in found if node_of(pod) and pod["status"].get("phase") != "Succeeded"}


def is_refused(api: Client, namespace: str, name: str) -> bool:
    found = condition(api.get("Pod", name, namespace), "PodScheduled")
    return found is not None and (found["status"], found.get("reason")) == ("False", "Unschedulable")
