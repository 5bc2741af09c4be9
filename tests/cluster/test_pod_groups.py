"""Groups of pods on a real API server that has them: beside kube-scheduler, with the same feature gates."""

import secrets
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.cluster import native_groups
from tests.cluster.loadmaster import allow_groups, metric, node_of, start
from tests.cluster.native_groups import API, CONDITION, GATES, GROUP
from tests.controlplane import Client, Cluster, Component, ControlPlane, Settings, a_node, a_pod, condition, wait_until
from tests.controlplane.client import Object

pytestmark = native_groups.compared

SCHEDULERS = ("default-scheduler", "loadmaster")


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane that has groups of pods."""
    settings = Settings(controller_manager=True, kwok=True).with_feature_gates(GATES, API)
    with ControlPlane(settings) as plane:
        yield plane


@pytest.fixture(scope="module")
def admin(plane: ControlPlane) -> Iterator[Client]:
    with plane.client() as client:
        client.create_many([a_node(f"node-{number}", cpu="2", zone=f"zone-{number}") for number in range(2)])
        important = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
        client.create({**important, "metadata": {"name": "important"}})
        yield client


@pytest.fixture(scope="module", autouse=True)
def schedulers(plane: ControlPlane, admin: Client) -> Iterator[Component]:
    """Both schedulers, each for the pods that name it; Loadmaster is returned."""
    allow_groups(plane)
    with (
        plane.start_kube_scheduler(further=[f"--feature-gates={GATES}"]),
        start(plane, f"--feature-gates={GATES}") as loadmaster,
    ):
        yield loadmaster


class Gang:
    """A group, its pods of a core each, and what becomes of them, in a namespace of its own."""

    def __init__(
        self, plane: ControlPlane, api: Client, scheduler: str, pods: int, minimum: int, **spec: object
    ) -> None:
        self.api, self.pods = api, [f"p-{number}" for number in range(pods)]
        self.namespace = f"{scheduler}-{pods}-of-{minimum}-{secrets.token_hex(3)}"
        plane.create_namespace(self.namespace)
        spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}, **spec}
        api.create({"apiVersion": API, "kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec}, self.namespace)
        shared: Object = {key: value for key, value in spec.items() if key == "priorityClassName"}
        self._shared = {"scheduler": scheduler, **shared}
        self._create(self.pods)

    def add(self, name: str) -> None:
        """Let a further pod come."""
        self.pods.append(name)
        self._create([name])

    def _create(self, names: Iterable[str]) -> None:
        grouped: Object = {"schedulingGroup": {"podGroupName": "g"}}
        pods = [a_pod(name, self.namespace, cpu="1", **self._shared, **grouped) for name in names]
        self.api.create_many(pods)

    def condition(self) -> tuple[str, str, str, int] | None:
        """Status, reason and message of the group, and the generation that it is about."""
        found = condition(self.api.get(GROUP, "g", self.namespace), CONDITION)
        if found is None:
            return None
        return found["status"], found["reason"], found["message"], found.get("observedGeneration", 0)

    def messages(self) -> list[str]:
        """Why the pods are not scheduled, as their conditions say, in any order: equals are tried in any order."""
        found = [condition(self.api.get("Pod", name, self.namespace), "PodScheduled") for name in self.pods]
        return sorted(each["message"] for each in found if each is not None and each["status"] == "False")

    def bound(self) -> int:
        return sum(bool(node_of(self.api.get("Pod", name, self.namespace))) for name in self.pods)

    def delete(self) -> None:
        self.api.delete_all("Pod", self.namespace)
        wait_until(lambda: not self.api.list("Pod", self.namespace), 30, "the pods are gone")


def play(plane: ControlPlane, api: Client, pods: int, minimum: int, done: Any, **spec: object) -> list[dict[str, Any]]:
    """Let each scheduler have such a gang on an empty cluster, until `done(gang)`; return what is seen of it then."""
    seen = []
    for scheduler in SCHEDULERS:
        gang = Gang(plane, api, scheduler, pods, minimum, **spec)
        try:
            wait_until(lambda gang=gang: done(gang), 30, f"{scheduler} has tried a gang of {pods}")  # type: ignore[misc]
            seen.append({"condition": gang.condition(), "messages": gang.messages(), "bound": gang.bound()})
        finally:
            gang.delete()
    return seen


def test_a_gang_that_fits_is_placed_as_by_kube_scheduler(
    plane: ControlPlane, admin: Client, schedulers: Component
) -> None:
    theirs, ours = play(plane, admin, 3, 3, lambda gang: gang.bound() == 3 and gang.condition())

    assert ours == theirs
    assert (ours["condition"][:3], ours["bound"]) == (("True", "Scheduled", ""), 3)
    assert metric(schedulers.port, "scheduler_podgroup_schedule_attempts_total", result="scheduled") >= 1


def test_a_gang_that_does_not_fit_places_nothing_and_says_what_kube_scheduler_says(
    plane: ControlPlane, admin: Client
) -> None:
    theirs, ours = play(plane, admin, 5, 5, lambda gang: gang.condition() and len(gang.messages()) == 5)

    assert ours == theirs
    assert ours["bound"] == 0
    assert ours["condition"][:2] == ("False", "Unschedulable")
    assert "minCount (5) cannot be satisfied: 4 scheduled, 0 remaining" in ours["condition"][2]


def test_a_gang_waits_for_its_pods_and_takes_those_beyond_its_minimum_as_they_fit(
    plane: ControlPlane, admin: Client
) -> None:
    theirs, ours = play(plane, admin, 5, 3, lambda gang: gang.bound() == 4 and len(gang.messages()) == 1)

    # Not the conditions: kube-scheduler may set its own to False again before it has heard that it was True.
    assert (ours["bound"], ours["messages"]) == (theirs["bound"], theirs["messages"])
    assert ours["condition"][:3] == ("True", "Scheduled", "")


def test_a_gang_stays_in_one_zone_or_nowhere(plane: ControlPlane, admin: Client) -> None:
    in_a_zone = {"topology": [{"key": "topology.kubernetes.io/zone"}]}

    both = [
        play(plane, admin, pods, pods, lambda gang: gang.condition(), schedulingConstraints=in_a_zone)
        for pods in (2, 3)
    ]

    for theirs, ours in both:
        assert ours["condition"] == theirs["condition"]
    fits, too_large = (ours["condition"] for _, ours in both)
    assert fits[:3] == ("True", "Scheduled", "")
    assert "0/2 placements are available, first placement status: minCount (3) cannot be satisfied" in too_large[2]


def test_a_gang_evicts_what_it_needs_and_no_more(plane: ControlPlane, admin: Client) -> None:
    left = {}
    for scheduler in SCHEDULERS:
        lower = Gang(plane, admin, scheduler, 4, 1)
        wait_until(lambda lower=lower: lower.bound() == 4, 30, "the cluster is full")  # type: ignore[misc]
        gang = Gang(plane, admin, scheduler, 3, 3, priorityClassName="important")
        try:
            wait_until(lambda gang=gang: gang.bound() == 3, 60, f"{scheduler} has made space")  # type: ignore[misc]
            left[scheduler] = len(admin.list("Pod", lower.namespace)), gang.condition()
        finally:
            gang.delete()
            lower.delete()

    assert left["loadmaster"] == left["default-scheduler"]
    assert left["loadmaster"][0] == 1


def test_two_gangs_that_want_the_same_room_do_not_share_it(plane: ControlPlane, admin: Client) -> None:
    first, second = Gang(plane, admin, "loadmaster", 3, 3), Gang(plane, admin, "loadmaster", 4, 3)
    try:
        wait_until(lambda: first.condition() and second.condition(), 30, "both were tried")
        wait_until(lambda: 3 in (first.bound(), second.bound()) or second.bound() == 4, 30, "one is placed")

        assert 0 in (first.bound(), second.bound())
    finally:
        first.delete()
        wait_until(lambda: second.bound() == 4, 30, "the other has the room now")
        second.delete()


def test_where_the_api_server_has_no_groups_pods_are_scheduled_all_the_same(cluster: Cluster, api: Client) -> None:
    allow_groups(cluster)
    api.create(a_node("without-groups"))
    with start(cluster, f"--feature-gates={GATES}"):
        api.create(a_pod("alone"), "default")

        try:
            wait_until(lambda: node_of(api.get("Pod", "alone", "default")), 20, "the pod is bound")
        finally:
            api.delete("Pod", "alone", "default")
            api.delete("Node", "without-groups")
