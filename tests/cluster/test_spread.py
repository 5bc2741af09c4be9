"""Pods spread over zones and nodes: where real controllers' replicas end up, and how soon an event helps one."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.loadmaster import node_of, start
from tests.cluster.requeue_stage import Event, Stage, pause
from tests.controlplane import Cluster, Component, a_node, a_pod, wait_until

PROGRAM = Path(__file__).with_name("decision_log_scheduler.py")
WITH_LOG = "loadmaster-with-log"

ZONE = "topology.kubernetes.io/zone"
ZONES = ("a", "b", "c")
WEB = {"app": "web"}

UNEVEN = "node(s) didn't match pod topology spread constraints"


class Deployment:
    """A Deployment of the stage, through the real controllers; gone with its ReplicaSet before the stage is cleared."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def create(self, replicas: int, **spec: Any) -> None:
        """Create it with the pod's spec by the API's own names."""
        pod = a_pod("web", labels=WEB, **spec)
        template = {"metadata": {"labels": WEB}, "spec": pod["spec"]}
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": WEB}, "template": template},
        }
        self._stage.api.create(deployment, self._stage.namespace)
        self._wait_for(replicas)

    def delete(self) -> None:
        """Delete it and wait until nothing makes pods any more."""
        api, namespace = self._stage.api, self._stage.namespace
        for kind in ("apps/v1/Deployment", "apps/v1/ReplicaSet"):
            api.delete_all(kind, namespace)
            wait_until(partial(self._is_gone, kind), 15, f"no {kind} is left")

    def _is_gone(self, kind: str) -> bool:
        return not self._stage.api.list(kind, self._stage.namespace)

    def _wait_for(self, replicas: int) -> None:
        watch = self._stage.watch
        wait_until(lambda: len(watch.bound) == replicas, 20, f"{replicas} replicas are bound", interval=0.01)


@pytest.fixture
def deployment(stage: Stage) -> Iterator[Deployment]:
    deployment = Deployment(stage)
    yield deployment
    deployment.delete()


def over_zones(**more: Any) -> dict[str, Any]:
    """Part of a pod's spec: at most one replica more in a zone than in another."""
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [constraint | {"labelSelector": {"matchLabels": WEB}} | more]}


def nodes_in_binding_order(stage: Stage) -> list[str]:
    """The node of each pod, in the order in which the watch showed them bound."""
    pods = stage.api.list("Pod", stage.namespace)
    pods.sort(key=lambda pod: stage.watch.bound_at(pod["metadata"]["uid"]))
    return [node_of(pod) for pod in pods]


def skews(zones: Sequence[str]) -> list[int]:
    """The difference between the fullest and the emptiest zone after each pod."""
    counts = dict.fromkeys(ZONES, 0)
    found = []
    for zone in zones:
        counts[zone] += 1
        found.append(max(counts.values()) - min(counts.values()))
    return found


def nine_nodes(stage: Stage) -> dict[str, str]:
    """Node → zone: 4 in a, 3 in b, 2 in c. Whoever spreads over nodes alone fills the zones unevenly."""
    return {stage.node(zone=zone): zone for zone in "aaaabbbcc"}


def start_with_log(cluster: Cluster, config: Path, decisions: Path) -> Component:
    """Start a second scheduler, which writes down the nodes that it decides for. A context manager."""
    enabled = {"multiPoint": {"enabled": [{"name": "DecisionLog"}]}}
    arguments = [{"name": "DecisionLog", "args": {"path": str(decisions)}}]
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": WITH_LOG, "plugins": enabled, "pluginConfig": arguments}],
    }
    config.write_text(json.dumps(configuration), encoding="utf-8")
    return start(cluster, f"--config={config}", name=WITH_LOG, program=(str(PROGRAM),))


def test_thirty_replicas_at_once_are_ten_in_each_zone_by_decisions_that_are_never_uneven(
    cluster: Cluster, stage: Stage, deployment: Deployment, tmp_path: Path
) -> None:
    """Decisions are what is even at any moment: their bindings are under way together, and overtake each other."""
    zone_of, decisions = nine_nodes(stage), tmp_path / "decisions"

    with start_with_log(cluster, tmp_path / "config.json", decisions):
        deployment.create(30, scheduler=WITH_LOG, **over_zones())

    zones = [zone_of[node] for node in decisions.read_text().splitlines()]
    assert max(skews(zones)) == 1, zones
    assert Counter(zones) == dict.fromkeys(ZONES, 10)
    assert Counter(zone_of[node] for node in nodes_in_binding_order(stage)) == Counter(zones)


def test_replicas_behind_a_service_are_spread_over_nodes_by_default(stage: Stage, deployment: Deployment) -> None:
    """The resource plugins alone would put them onto the large node, see the next test."""
    large, *small = unequal_nodes(stage)
    serve_web(stage)

    deployment.create(12)

    assert Counter(nodes_in_binding_order(stage)) == dict.fromkeys((large, *small), 4)


def test_pods_without_a_controller_are_spread_only_behind_a_service(stage: Stage) -> None:
    large, *_ = unequal_nodes(stage)
    for number in range(4):
        stage.running(f"before-{number}", labels=WEB)
    assert Counter(nodes_in_binding_order(stage)) == {large: 4}
    stage.clear()
    large, *small = unequal_nodes(stage)
    serve_web(stage)
    for number in range(6):
        stage.running(f"behind-{number}", labels=WEB)

    assert Counter(nodes_in_binding_order(stage)) == dict.fromkeys((large, *small), 2)


def unequal_nodes(stage: Stage) -> list[str]:
    """A large node, and two that are small but have room for everything."""
    return [stage.node(cpu=cpu) for cpu in ("64", "4", "4")]


def serve_web(stage: Stage) -> None:
    """Create a Service for the pods here."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": WEB, "ports": [{"port": 80}]},
    }
    stage.api.create(service, stage.namespace)
    pause()  # it comes by another watch than the pods


def test_when_a_node_comes_in_a_zone_that_was_missing(stage: Stage) -> None:
    replica = {"labels": WEB, **over_zones(minDomains=3)}

    def prepare() -> tuple[str, Event]:
        first, second = (stage.node(zone=zone) for zone in "ab")
        for name in (first, second):
            stage.running(f"on-{name}", nodeName=name, labels=WEB)
        waiting = stage.waiting("web", f"0/2 nodes are available: 2 {UNEVEN}.", **replica)
        return waiting, lambda: stage.create_node(a_node(f"{first}-c", zone="c"))

    stage.repeat("spread: a node in the missing zone", prepare)


def test_when_a_pod_goes_from_the_crowded_zone(stage: Stage) -> None:
    replica = {"labels": WEB, **over_zones()}
    message = f"0/2 nodes are available: 1 Insufficient cpu, 1 {UNEVEN}."

    def prepare() -> tuple[str, Event]:
        stage.node(zone="a")
        stage.node(zone="b", cpu="50m")
        stage.running("first", **replica)
        waiting = stage.waiting("second", message, **replica)
        return waiting, lambda: stage.api.delete("Pod", "first", stage.namespace, grace=0)

    stage.repeat("spread: a pod of the fullest zone deleted", prepare)
