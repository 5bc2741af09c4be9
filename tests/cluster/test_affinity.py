"""Pods near the pods that they name and away from others: who waits and why, and how soon an event helps them."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.loadmaster import node_of
from tests.cluster.requeue_stage import Event, Stage, by_label, wait_out_backoff
from tests.controlplane import Client, Cluster, a_pod, wait_until

HOSTNAME = "kubernetes.io/hostname"
WEB, DB = {"app": "web"}, {"app": "db"}

NOT_NEAR = "0/1 nodes are available: 1 node(s) didn't match pod affinity rules."
UNWELCOME = "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules."


@pytest.fixture
def neighbour(cluster: Cluster, api: Client) -> Iterator[str]:
    """A second namespace, empty and without labels of its own."""
    name = f"neighbour-{secrets.token_hex(4)}"
    cluster.create_namespace(name)
    yield name
    api.delete("Namespace", name)


def near(labels: dict[str, str], **more: Any) -> dict[str, Any]:
    """Affinity: on the node of a pod with these labels; `more` of the term by the API's own names."""
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [a_term(labels, **more)]}}


def away_from(labels: dict[str, str], **more: Any) -> dict[str, Any]:
    """Affinity: on no node that has a pod with these labels."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [a_term(labels, **more)]}}


def a_term(labels: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": labels}, **more}


def relabel(stage: Stage, pod: str, app: str) -> Event:
    """Change the label that the terms here ask for."""
    return lambda: stage.api.patch("Pod", pod, {"metadata": {"labels": {"app": app}}}, stage.namespace)


def test_when_we_place_the_pod_that_it_wants_to_be_near(stage: Stage) -> None:
    def prepare() -> tuple[str, Event]:
        stage.node()
        waiting = stage.waiting("web", NOT_NEAR, affinity=near(DB))
        return waiting, lambda: stage.api.create(a_pod("db", labels=DB), stage.namespace)

    # Two pods are placed and bound in this time, one after the other.
    stage.repeat("affinity: the partner created", prepare)


def test_when_a_namespace_gets_the_label_that_it_wants_to_be_near(stage: Stage, neighbour: str) -> None:
    def label(team: str | None) -> object:
        return stage.api.patch("Namespace", neighbour, {"metadata": {"labels": {"team": team}}})

    def prepare() -> tuple[str, Event]:
        label(None)
        stage.running_elsewhere("db", neighbour, stage.node(), labels=DB)
        selector = {"matchLabels": {"team": "shop"}}
        waiting = stage.waiting("web", NOT_NEAR, affinity=near(DB, namespaceSelector=selector))
        return waiting, lambda: label("shop")

    stage.repeat("affinity: a namespace labelled", prepare)


def test_when_one_of_the_replicas_goes_that_hold_every_node(stage: Stage) -> None:
    replica: dict[str, Any] = {"labels": WEB, "affinity": away_from(WEB)}
    full = "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules."

    def prepare() -> tuple[str, Event]:
        nodes = {stage.node() for _ in range(3)}
        for number in range(3):
            stage.running(f"web-{number}", **replica)
        assert {node_of(pod) for pod in stage.api.list("Pod", stage.namespace)} == nodes
        waiting = stage.waiting("one-more", full, **replica)
        return waiting, lambda: stage.api.delete("Pod", "web-0", stage.namespace, grace=0)

    stage.repeat("anti-affinity: a replica deleted", prepare)


def test_when_it_gets_another_label_itself_than_the_one_avoided(stage: Stage) -> None:
    def prepare() -> tuple[str, Event]:
        stage.node()
        stage.running("db", labels=DB, affinity=away_from(WEB))
        return stage.waiting("web", UNWELCOME, labels=WEB), relabel(stage, "web", "other")

    stage.repeat("anti-affinity: its own label changed", prepare)


def test_pods_that_are_not_meant_do_not_bring_it_back(stage: Stage, neighbour: str) -> None:
    node = stage.node()
    stage.running("other", labels={"app": "other"})
    waiting = stage.waiting("web", NOT_NEAR, affinity=near(DB))
    wait_out_backoff()
    tries = "scheduler_schedule_attempts_total"
    before = by_label(stage.port, tries, "result")

    stage.running_elsewhere("db", neighbour, node, labels=DB)
    stage.api.patch("Namespace", neighbour, {"metadata": {"labels": {"team": "shop"}}})
    stage.api.create(a_pod("db-nowhere", scheduler="somebody-else", labels=DB), stage.namespace)
    relabel(stage, "other", "another")()
    stage.running("last", labels={"app": "last"})  # the news of pods come in order
    wait_until(lambda: by_label(stage.port, tries, "result")["scheduled"] > before["scheduled"], 5, "it was counted")

    assert by_label(stage.port, tries, "result") == before | {"scheduled": before["scheduled"] + 1}
    assert waiting not in stage.watch.bound
    stage.api.bind("db-nowhere", node, stage.namespace)
    stage.watch.bound_at(waiting)  # the one that is meant does bring it back
