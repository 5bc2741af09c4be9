"""What the running scheduler says of a group of pods that waits, through a real API server."""

import io
import json
import secrets
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from scheduler.__main__ import main
from tests.cluster import native_groups
from tests.cluster.loadmaster import allow_groups
from tests.cluster.native_groups import API, CONDITION, GATES, GROUP, SERVED_GATES
from tests.cluster.proxied import asker, proxied
from tests.controlplane import Client, Component, ControlPlane, Settings, a_node, a_pod, condition, wait_until
from tests.controlplane.client import Object

pytestmark = native_groups.served


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    settings = Settings(controller_manager=True, kwok=True).with_feature_gates(SERVED_GATES, API)
    with ControlPlane(settings) as plane:
        yield plane


@pytest.fixture(scope="module")
def admin(plane: ControlPlane) -> Iterator[Client]:
    with plane.client() as client:
        client.create_many([a_node(f"node-{number}", cpu="2") for number in range(2)])
        yield client


@pytest.fixture(scope="module", autouse=True)
def loadmaster(plane: ControlPlane, admin: Client, address: str) -> Iterator[Component]:
    allow_groups(plane)
    with proxied(plane, admin, address, f"--feature-gates={GATES}") as process:
        yield process


@pytest.fixture(scope="module")
def user(plane: ControlPlane, loadmaster: Component) -> Path:
    return asker(plane)


class Gang:
    """A group of pods of a core each, all of which are needed, in a namespace of its own."""

    def __init__(self, plane: ControlPlane, api: Client, pods: int) -> None:
        self.api, self.pods = api, [f"p-{number}" for number in range(pods)]
        self.namespace = f"gang-{secrets.token_hex(3)}"
        plane.create_namespace(self.namespace)
        spec = {"schedulingPolicy": {"gang": {"minCount": pods}}}
        api.create({"apiVersion": API, "kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec}, self.namespace)
        grouped: Object = {"schedulingGroup": {"podGroupName": "g"}}
        api.create_many([a_pod(name, self.namespace, cpu="1", **grouped) for name in self.pods])

    def was_tried(self) -> bool:
        return condition(self.api.get(GROUP, "g", self.namespace), CONDITION) is not None

    def delete(self) -> None:
        self.api.delete_all("Pod", self.namespace)
        wait_until(lambda: not self.api.list("Pod", self.namespace), 30, "the pods are gone")


def explained(user: Path, what: str, *options: str) -> tuple[int, dict[str, Any]]:
    out = io.StringIO()
    with redirect_stdout(out):
        code = main(["explain", what, f"--kubeconfig={user}", "--output=json", *options])
    return code, json.loads(out.getvalue())


def test_a_gang_that_waits_is_explained_in_one_sentence_by_itself_and_by_each_of_its_pods(
    plane: ControlPlane, admin: Client, user: Path
) -> None:
    gang = Gang(plane, admin, 5)
    try:
        wait_until(gang.was_tried, 30, "the gang was tried")

        code, group = explained(user, f"podgroup/{gang.namespace}/g")
        _, pod = explained(user, f"{gang.namespace}/{gang.pods[0]}")

        assert code == 0
        assert (group["state"], group["needed"], group["members"], group["scheduled"]) == ("unschedulable", 5, 5, 0)
        assert group["text"] == "5 pods are needed at once: 4 of 5 fit; 1 does not: Insufficient cpu (on 2 nodes)"
        assert sorted(each["name"] for each in group["waiting"]) == gang.pods
        assert pod["group"]["text"] == group["text"]
    finally:
        gang.delete()


def test_the_group_has_one_event_with_the_sentence_in_addition_to_those_of_its_pods(
    plane: ControlPlane, admin: Client
) -> None:
    gang = Gang(plane, admin, 5)
    try:

        def of_group() -> list[Object]:
            events = admin.list("events.k8s.io/v1/Event", gang.namespace)
            return [each for each in events if each["regarding"]["kind"] == "PodGroup"]

        (event,) = wait_until(of_group, 30, "the Event is there")

        group = admin.get(GROUP, "g", gang.namespace)
        assert event["regarding"] | {"resourceVersion": ""} == {
            "apiVersion": API,
            "kind": "PodGroup",
            "name": "g",
            "namespace": gang.namespace,
            "uid": group["metadata"]["uid"],
            "resourceVersion": "",
        }
        assert (event["type"], event["reason"]) == ("Warning", "FailedScheduling")
        assert event["note"] == "5 pods are needed at once: 4 of 5 fit; 1 does not: Insufficient cpu (on 2 nodes)"
        assert "FailedScheduling" in plane.kubectl("describe", "podgroup", "g", f"--namespace={gang.namespace}")
    finally:
        gang.delete()
