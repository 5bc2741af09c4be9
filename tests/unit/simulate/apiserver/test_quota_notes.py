"""ResourceQuotas refuse nothing in a simulation, and a note says so."""

from typing import Any

from tests.unit.simulate.apiserver.test_creation import a_pod
from tests.unit.simulate.what_if.world import a_node, a_spec, a_workload, asked, read

END = "`kubectl create --dry-run=server` of a pod says what they refuse"


def a_quota(namespace: str = "default") -> dict[str, Any]:
    metadata = {"name": "q", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": "3"}}}


def notes(*objects: Any) -> list[str]:
    cluster, problems = read(*objects)
    assert (problems, cluster.creation is not None) == ([], True)
    created = cluster.creation.pods if cluster.creation else ()
    return [] if cluster.creation is None else cluster.creation.quota_notes((pod.namespace, 1) for _, pod in created)


def test_new_pods_of_a_namespace_with_a_quota_are_counted() -> None:
    assert notes(a_pod("a"), a_pod("b"), a_quota(), a_quota("other")) == [
        f"ResourceQuotas of default are not applied to 2 new pods: {END}"
    ]
    assert notes(a_pod("a"), a_quota("other")) == []


def test_copies_count_and_what_they_stand_for_does_not() -> None:
    deployment = a_workload("Deployment", "w", a_spec(), replicas=9)

    document = asked(a_node("n1"), deployment, a_quota(), fill=True)

    assert document["notes"] == [f"ResourceQuotas of default are not applied to 4 new pods: {END}"]


def test_of_many_namespaces_only_some_are_named() -> None:
    quotas, pods = [], []
    for number in range(12):
        quotas.append(a_quota(f"n{number:02}"))
        pods.append(a_pod("p") | {"metadata": {"name": "p", "namespace": f"n{number:02}"}})

    (note,) = notes(*pods, *quotas)

    assert "n09, … are not applied to 12 new pods" in note
