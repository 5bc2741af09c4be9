"""A pod that wants to be near others, in namespaces of a label: an event about a namespace helps it."""

import secrets
from collections.abc import Iterator

import pytest

from tests.cluster.requeue_stage import Event, Stage
from tests.controlplane import Client, Cluster

DB = {"app": "db"}
NEAR_DB = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {"matchLabels": DB},
    "namespaceSelector": {"matchLabels": {"team": "shop"}},
}
NOT_NEAR = "0/1 nodes are available: 1 node(s) didn't match pod affinity rules."


@pytest.fixture
def neighbour(cluster: Cluster, api: Client) -> Iterator[str]:
    """A second namespace, empty and without labels of its own."""
    name = f"neighbour-{secrets.token_hex(4)}"
    cluster.create_namespace(name)
    yield name
    api.delete("Namespace", name)


def test_when_a_namespace_gets_the_label_that_it_wants_to_be_near(stage: Stage, neighbour: str) -> None:
    def label(team: str | None) -> object:
        return stage.api.patch("Namespace", neighbour, {"metadata": {"labels": {"team": team}}})

    def prepare() -> tuple[str, Event]:
        label(None)
        stage.running_elsewhere("db", neighbour, stage.node(), labels=DB)
        near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NEAR_DB]}}
        waiting = stage.waiting("web", NOT_NEAR, affinity=near)
        return waiting, lambda: label("shop")

    stage.repeat("affinity: a namespace labelled", prepare)
