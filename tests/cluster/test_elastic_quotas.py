"""Elastic quotas on a real API server, with the resource of scheduler-plugins and the rules that the chart adds."""

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import bound, defined, granted, message, metric, start, with_plugin
from tests.controlplane import Client, Cluster, Component, a_pod, wait_until
from tests.controlplane.client import Object
from tests.controlplane.definitions import ELASTIC_QUOTA

API = "scheduling.x-k8s.io/v1alpha1"
KIND = f"{API}/ElasticQuota"


@pytest.fixture(scope="module", autouse=True)
def permissions(cluster: Cluster) -> Iterator[None]:
    """Give the shipped account the rules that the chart adds while a profile enables the plugin."""
    groups = "scheduling.x-k8s.io", "scheduling.sigs.k8s.io"
    with granted(cluster, "CapacityScheduling", *groups), defined(cluster, ELASTIC_QUOTA):
        yield


@pytest.fixture
def loadmaster(cluster: Cluster, tmp_path: Path) -> Iterator[Component]:
    with start(cluster, with_plugin(tmp_path, "CapacityScheduling")) as component:
        yield component


@pytest.fixture(autouse=True)
def quotas_that_are_gone(cluster: Cluster) -> Iterator[None]:
    """Delete all quotas after each test: those of a namespace that is being deleted would still count."""
    yield
    cluster.kubectl("delete", "elasticquotas", "--all", "--all-namespaces")


@pytest.fixture
def other(cluster: Cluster, api: Client) -> Iterator[str]:
    """Another namespace."""
    name = f"other-{secrets.token_hex(4)}"
    cluster.create_namespace(name)
    yield name
    api.delete("Namespace", name)


def set_quota(cluster: Cluster, namespace: str, minimum: str, maximum: str, name: str = "quota") -> None:
    amounts = {kind: {"cpu": cpu, "memory": "64Gi"} for kind, cpu in (("min", minimum), ("max", maximum))}
    metadata = {"name": name, "namespace": namespace}
    quota = {"apiVersion": API, "kind": "ElasticQuota", "metadata": metadata, "spec": amounts}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(quota))


def has(api: Client, namespace: str, count: int) -> bool:
    return len(bound(api, namespace)) == count


def used(api: Client, namespace: str, name: str = "quota") -> Object:
    found: Object = api.get(KIND, name, namespace).get("status", {}).get("used", {})
    return found


def pods(names: range) -> list[Object]:
    return [a_pod(f"p{number}", cpu="1") for number in names]


def test_a_namespace_has_no_more_than_its_maximum_and_what_ends_makes_room(
    loadmaster: Component, cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, cpu="16")
    set_quota(cluster, namespace, "2", "2")
    api.create_many(pods(range(5)), namespace)
    wait_until(lambda: has(api, namespace, 2), 30, "two of them run")
    waiting = next(name for name in (f"p{number}" for number in range(5)) if name not in bound(api, namespace))
    expected = f"ElasticQuota {namespace} is more than Max"
    wait_until(lambda: expected in message(api, waiting, namespace), 30, "the others say why they wait")
    wait_until(lambda: used(api, namespace).get("cpu") == "2", 30, "the status says what is used")

    api.delete("Pod", bound(api, namespace)[0], namespace)

    wait_until(lambda: has(api, namespace, 2) and len(api.list("Pod", namespace)) == 4, 30, "the next one runs")
    wait_until(lambda: used(api, namespace).get("cpu") == "2", 30, "as much is used again")


def test_quotas_borrow_of_each_other_follow_their_objects_and_end_with_them(
    loadmaster: Component, cluster: Cluster, api: Client, namespace: str, other: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, cpu="32")
    set_quota(cluster, namespace, "1", "10")
    set_quota(cluster, other, "2", "10")
    api.create_many(pods(range(6)), namespace)
    wait_until(lambda: has(api, namespace, 3), 30, "it has its own minimum and that of the other")
    wait_until(lambda: used(api, namespace).get("cpu") == "3", 30, "the status says so")
    wait_until(
        lambda: any("total ElasticQuota used is more than min" in message(api, f"p{n}", namespace) for n in range(6)),
        30,
        "the others say why they wait",
    )

    set_quota(cluster, other, "3", "10")
    wait_until(lambda: has(api, namespace, 4), 30, "a quota that rises makes room for one")
    cluster.kubectl("delete", "elasticquota", "quota", "-n", namespace)

    wait_until(lambda: has(api, namespace, 6), 30, "without a quota all of them run")


def test_of_two_quotas_the_second_has_an_event(
    loadmaster: Component, cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, cpu="16")
    set_quota(cluster, namespace, "1", "1", name="a")
    set_quota(cluster, namespace, "9", "9", name="b")
    api.create_many(pods(range(2)), namespace)

    def notes() -> list[str]:
        events = [each for each in api.list("events.k8s.io/v1/Event", namespace) if each["regarding"]["name"] == "b"]
        return [each["note"] for each in events]

    expected = f'the quota is not used: the namespace has an older one, "{namespace}/a", which counts alone'
    wait_until(lambda: expected in notes(), 30, "it says which one counts")
    wait_until(lambda: has(api, namespace, 1), 30, "that one holds")
    assert metric(loadmaster.port, "loadmaster_shares_unusable", source="scheduling.x-k8s.io/ElasticQuota") == 1


def test_a_quota_below_its_minimum_takes_back_what_another_has_borrowed_over_nodes(
    loadmaster: Component, cluster: Cluster, api: Client, namespace: str, other: str, make_nodes: MakeNodes
) -> None:
    make_nodes(4, cpu="1500m")
    set_quota(cluster, namespace, "2", "4")
    set_quota(cluster, other, "2", "4")
    borrowers = [a_pod(f"b{number}", cpu="900m") for number in range(4)]
    api.create_many(borrowers, other)
    wait_until(lambda: has(api, other, 4), 30, "one has borrowed what the other leaves idle")
    first = [pod["metadata"]["uid"] for pod in api.list("Pod", other)]

    api.create_many([a_pod("mine", cpu="1400m")], namespace)

    wait_until(lambda: has(api, namespace, 1), 60, "the other has taken back what it needs")
    left = [pod["metadata"]["uid"] for pod in api.list("Pod", other)]
    assert set(left) < set(first)
    assert len(left) == 2, "no more than needed: two of 900m for 1400m, where 400m were free"
