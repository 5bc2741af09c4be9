"""kube-scheduler's own integration tests of groups of pods, played with Loadmaster on a real API server."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from tests.cluster import native_groups
from tests.cluster.loadmaster import allow_groups, metric, node_of, start
from tests.cluster.native_groups import API, CONDITION, GATES, GROUP, SERVED_GATES, TOPOLOGY, WORKLOAD
from tests.controlplane import Client, Cluster, Component, ControlPlane, Settings, a_node, a_pod, condition, wait_until
from tests.controlplane.client import ApiError, Object

SECONDS: Final = 30.0
"""For one step."""

TABLES: Final[list[dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("pod_group_scenarios.yaml").read_text(encoding="utf-8")
)


class Variant(NamedTuple):
    """The gates of a scheduler."""

    gates: tuple[str, ...]

    def __str__(self) -> str:
        return "+".join(self.gates[1:]) or "gangs only"


class Played(NamedTuple):
    scenario: dict[str, Any]
    variant: Variant


def plays() -> list[Played]:
    """Each scenario with each variant of the gates with which kube-scheduler's test runs it."""
    found = [
        Played(scenario, variant)
        for table in TABLES
        for scenario in table["scenarios"]
        if native_groups.NEWER or not any("minimum" in step for step in scenario["steps"])  # 1.36 lets nobody change it
        for variant in variants(scenario, needs_topology=table["source"].startswith("topology"))
    ]
    return sorted(found, key=lambda played: str(played.variant))  # a scheduler is started once for each variant


def variants(scenario: Mapping[str, Any], *, needs_topology: bool) -> Iterator[Variant]:
    yield Variant((WORKLOAD, TOPOLOGY))
    if not needs_topology and not scenario.get("needsTopology"):
        yield Variant((WORKLOAD,))


PLAYS: Final = plays()

pytestmark = native_groups.served


def test_the_tables_have_all_cases_of_their_sources() -> None:
    assert [len(table["scenarios"]) for table in TABLES] == [table["count"] for table in TABLES]


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    # No taint that a controller lifts a moment later, now here, now there: the tests expect one of several domains.
    settings = Settings(controller_manager=True, kwok=True, disable_admission=("TaintNodesByCondition",))
    with ControlPlane(settings.with_feature_gates(SERVED_GATES, API)) as plane:
        allow_groups(plane)
        yield plane


@pytest.fixture(scope="module")
def admin(plane: ControlPlane) -> Iterator[Client]:
    with plane.client() as client:
        for value in (5, 10, 50, 100, 200):
            metadata = {"name": f"priority-{value}"}
            client.create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "value": value,
                    "metadata": metadata,
                }
            )
        yield client


@pytest.fixture(scope="module")
def scheduler_of(plane: ControlPlane) -> Iterator[Callable[[Variant], Component]]:
    """Gives Loadmaster with the gates of a variant: the same one as long as the variant is."""
    with ExitStack() as running:
        started: dict[Variant, Component] = {}

        def scheduler_of(variant: Variant) -> Component:
            if variant not in started:
                running.pop_all().close()
                flag = "--feature-gates=" + ",".join(f"{gate}=true" for gate in variant.gates)
                started.clear()
                started[variant] = running.enter_context(start(plane, flag))
            return started[variant]

        yield scheduler_of


@pytest.mark.parametrize(
    ("scenario", "variant"),
    [pytest.param(*played, id=f"{played.scenario['name']}-{played.variant}") for played in PLAYS],
)
def test_a_scenario_of_kube_scheduler_ends_as_there(
    plane: ControlPlane,
    admin: Client,
    scheduler_of: Callable[[Variant], Component],
    scenario: dict[str, Any],
    variant: Variant,
) -> None:
    with a_stage(plane, admin, scheduler_of(variant)) as stage:
        if not any("nodes" in step for step in scenario["steps"]):
            stage.nodes([{"name": "node", "zone": "zone1", "cpu": "4"}])
        for number, step in enumerate(scenario["steps"]):
            ((what, given),) = step.items()
            stage.play(what, given, f"step {number}, {what} {given}")


class Stage:
    """A namespace in which a scenario is played."""

    def __init__(self, api: Client, scheduler: Component, namespace: str) -> None:
        self._api, self._scheduler, self._namespace = api, scheduler, namespace
        self._racks: dict[str, Mapping[str, str]] = {}

    def play(self, what: str, given: Any, name: str) -> None:
        """Do a step, or wait until its expectation comes true."""
        does: Mapping[str, Callable[[Any], None]] = {
            "nodes": self.nodes,
            "group": self._group,
            "pods": self._pods,
            "minimum": self._change_minimum,
            "delete": self._delete,
        }
        if what in does:
            does[what](given)
            return
        expects: Mapping[str, Callable[[Any], bool]] = {
            "scheduled": lambda names: all(self._node_of(each) for each in names),
            "unschedulable": lambda names: all(self._is_unschedulable(each) for each in names),
            "untried": lambda names: not any(self._is_unschedulable(each) for each in names),
            "gated": partial(self._pending, "gated"),
            "incomplete": partial(self._pending, "incomplete"),
            "removed": lambda names: not any(self._is_there(each) for each in names),
            "left": lambda left: sum(map(self._is_there, left["of"])) == left["count"],
            "some": self._has_some,
            "condition": self._has_condition,
            "onNodes": lambda on: {self._node_of(each) for each in on["pods"]} <= set(on["nodes"]),
            "inOneDomain": self._is_in_one_domain,
        }
        wait_until(partial(expects[what], given), SECONDS, name)

    def nodes(self, nodes: Sequence[Mapping[str, str]]) -> None:
        for each in nodes:
            labels = {key: each[key] for key in ("rack", "zone") if key in each}
            self._racks[each["name"]] = labels
            self._api.create(a_node(each["name"], cpu=each.get("cpu", "2"), labels=labels, zone=each.get("zone", "")))
        wait_until(lambda: self._known_nodes() == len(self._racks), SECONDS, "the scheduler has seen the nodes")

    def clear_up(self) -> None:
        """Leave no pod and no node."""
        self._api.delete_all("Pod", self._namespace)
        wait_until(lambda: not self._api.list("Pod", self._namespace), SECONDS, "the pods are gone")
        self._api.delete_all("Node")
        wait_until(lambda: not self._known_nodes(), SECONDS, "the scheduler knows of no node")

    def _known_nodes(self) -> float:
        return metric(self._scheduler.port, "scheduler_cache_size", type="nodes")

    def _group(self, group: Mapping[str, Any]) -> None:
        minimum = group.get("minCount")
        spec: Object = {"schedulingPolicy": {"gang": {"minCount": minimum}} if minimum else {"basic": {}}}
        if "topology" in group:
            spec["schedulingConstraints"] = {"topology": [{"key": group["topology"]}]}
        if "priority" in group:
            spec["priorityClassName"] = f"priority-{group['priority']}"
        metadata = {"name": group["name"], "namespace": self._namespace}
        self._api.create({"apiVersion": API, "kind": "PodGroup", "metadata": metadata, "spec": spec})

    def _change_minimum(self, group: Mapping[str, Any]) -> None:
        spec = {"schedulingPolicy": {"gang": {"minCount": group["minCount"]}}}
        self._api.patch(GROUP, group["group"], {"spec": spec}, self._namespace)

    def _pods(self, pods: Sequence[Mapping[str, Any]]) -> None:
        for pod in pods:
            spec: Object = {"priorityClassName": f"priority-{pod['priority']}"}
            if "group" in pod:
                spec["schedulingGroup"] = {"podGroupName": pod["group"]}
            if "node" in pod:
                spec["nodeName"] = pod["node"]
            self._api.create(a_pod(pod["name"], self._namespace, cpu=pod["cpu"], memory="1Mi", **spec))

    def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            self._api.delete("Pod", name, self._namespace)

    def _pod(self, name: str) -> Object:
        return self._api.get("Pod", name, self._namespace)

    def _node_of(self, name: str) -> str:
        return node_of(self._pod(name))

    def _is_unschedulable(self, name: str) -> bool:
        found = condition(self._pod(name), "PodScheduled")
        return found is not None and (found["status"], found.get("reason")) == ("False", "Unschedulable")

    def _pending(self, queue: str, names: Sequence[str]) -> bool:
        return metric(self._scheduler.port, "scheduler_pending_pods", queue=queue) == len(names)

    def _is_there(self, name: str) -> bool:
        try:
            return "deletionTimestamp" not in self._pod(name)["metadata"]
        except ApiError as error:
            if error.status != 404:
                raise
            return False

    def _has_some(self, wanted: Mapping[str, Any]) -> bool:
        scheduled = [name for name in wanted["of"] if self._node_of(name)]
        refused = [name for name in wanted["of"] if name not in scheduled and self._is_unschedulable(name)]
        return (len(scheduled), len(refused)) == (wanted["scheduled"], wanted["unschedulable"])

    def _has_condition(self, wanted: Mapping[str, str]) -> bool:
        found = condition(self._api.get(GROUP, wanted["group"], self._namespace), CONDITION)
        return found is not None and (found["status"], found["reason"]) == (wanted["status"], wanted["reason"])

    def _is_in_one_domain(self, wanted: Mapping[str, Any]) -> bool:
        return len({self._racks[self._node_of(name)][wanted["key"]] for name in wanted["pods"]}) == 1


@contextmanager
def a_stage(plane: ControlPlane, api: Client, scheduler: Component) -> Iterator[Stage]:
    """An empty cluster; nothing is left afterwards."""
    namespace = f"scenario-{secrets.token_hex(3)}"
    plane.create_namespace(namespace)
    stage = Stage(api, scheduler, namespace)
    try:
        yield stage
    finally:
        stage.clear_up()


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
