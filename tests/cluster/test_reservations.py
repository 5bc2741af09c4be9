"""Nodes that are reserved for a gang on a real API server: it starves without, and not with them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.coscheduling import GROUPS, started
from tests.cluster.loadmaster import bound, granted, message, metric, notes
from tests.controlplane import Client, Cluster, a_pod, wait_until
from tests.controlplane.client import Object

WAIT_SECONDS = 3
FULL = "4"
"""Cores of a node, all of which a member of the gang asks for."""


@pytest.fixture(scope="module", autouse=True)
def permissions(cluster: Cluster) -> Iterator[None]:
    with granted(cluster, "Coscheduling", *GROUPS):
        yield


def ending(pod: Object, seconds: int) -> Object:
    """The same pod with a deadline."""
    pod["spec"]["activeDeadlineSeconds"] = seconds
    return pod


def gang() -> list[Object]:
    annotations = {"loadmaster.dev/pod-group": "gang", "loadmaster.dev/pod-group-min-available": "2"}
    pods = [a_pod(f"gang-{number}", cpu=FULL) for number in range(2)]
    for pod in pods:
        pod["metadata"]["annotations"] = annotations
    return pods


def both_nodes_are_half_full(api: Client, namespace: str) -> None:
    api.create_many([ending(a_pod(f"before-{number}", cpu="3"), 3_600) for number in range(2)], namespace)
    wait_until(lambda: len(bound(api, namespace)) == 2, 30, "two pods run")
    api.create_many(gang(), namespace)
    wait_until(lambda: notes(api, namespace, "FailedScheduling") != [], 30, "the gang does not fit")


def test_without_a_reservation_a_small_pod_takes_what_the_gang_waits_for(
    cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes, tmp_path: Path
) -> None:
    make_nodes(2, cpu=FULL)
    with started(cluster, tmp_path, groupReservationSeconds=0):
        both_nodes_are_half_full(api, namespace)

        api.delete("Pod", "before-0", namespace)
        api.create(a_pod("small", cpu="1"), namespace)

        wait_until(lambda: "small" in bound(api, namespace), 30, "the small pod runs")
        assert notes(api, namespace, "NodesReserved") == []


def test_with_a_reservation_the_gang_gets_its_nodes_and_only_a_short_pod_runs_there_before(
    cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes, tmp_path: Path
) -> None:
    make_nodes(2, cpu=FULL)
    with started(cluster, tmp_path, groupReservationSeconds=WAIT_SECONDS) as loadmaster:
        both_nodes_are_half_full(api, namespace)
        wait_until(lambda: notes(api, namespace, "NodesReserved") != [], 60, "nodes are reserved")
        assert metric(loadmaster.port, "loadmaster_podgroup_reserved_nodes") == 2

        api.create_many([a_pod("small", cpu="1"), ending(a_pod("short", cpu="1"), 60)], namespace)
        wait_until(lambda: "short" in bound(api, namespace), 30, "the pod that ends soon is let on")
        wait_until(
            lambda: f'reserved for the pod group "{namespace}/gang"' in message(api, "small", namespace), 30, "why"
        )
        for name in ("before-0", "short", "before-1"):
            api.delete("Pod", name, namespace)
        wait_until(lambda: len(bound(api, namespace, "gang-")) == 2, 60, "the gang runs")
        assert "small" not in bound(api, namespace)
        wait_until(lambda: metric(loadmaster.port, "loadmaster_podgroup_reserved_nodes") == 0, 30, "nothing is kept")

        api.delete("Pod", "gang-0", namespace)

        wait_until(lambda: "small" in bound(api, namespace), 60, "then the small pod runs")
