"""Groups that operators make for Volcano, with the permissions of the chart."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.coscheduling import GROUPS, started
from tests.cluster.loadmaster import bound, defined, granted
from tests.controlplane import Client, Cluster, Component, a_pod, wait_until
from tests.controlplane.client import Object
from tests.controlplane.definitions import FOREIGN_GROUPS, VOLCANO


@pytest.fixture(scope="module")
def loadmaster(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Component]:
    directory: Path = tmp_path_factory.mktemp("foreign-groups")
    with (
        defined(cluster, *FOREIGN_GROUPS),
        granted(cluster, "Coscheduling", *GROUPS),
        started(cluster, directory, "foreign-groups") as component,
    ):
        yield component


def annotated(pod: Object, **annotations: str) -> Object:
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}


def test_a_group_of_volcano_starts_whole_and_its_status_says_so(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, cpu="1")
    group = {"apiVersion": VOLCANO, "kind": "PodGroup", "metadata": {"name": "train"}, "spec": {"minMember": 2}}
    api.create(group, namespace)
    member = {"scheduling.k8s.io/group-name": "train"}
    api.create_many([annotated(a_pod(f"train-{each}", cpu="1"), **member) for each in range(2)], namespace)

    def status() -> Object:
        found: Object = api.get(f"{VOLCANO}/PodGroup", "train", namespace).get("status", {})
        return {"phase": found.get("phase"), **{each["type"]: each["status"] for each in found.get("conditions", ())}}

    wait_until(lambda: status() == {"phase": "Inqueue", "Unschedulable": "True"}, 30, "it waits as a whole")
    assert bound(api, namespace) == []

    make_nodes(1, cpu="1")
    wait_until(lambda: len(bound(api, namespace)) == 2, 30, "it fits as a whole")
    running = {"phase": "Running", "Unschedulable": "False", "Scheduled": "True"}
    wait_until(lambda: status() == running, 30, "and the status says so")
