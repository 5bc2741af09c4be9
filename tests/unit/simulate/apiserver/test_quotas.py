"""ResourceQuotas refuse nothing in a simulation, but what new pods would exceed is noted."""

from typing import Any

import pytest

from tests.unit.simulate.apiserver.test_creation import a_pod, of, stored
from tests.unit.simulate.what_if.world import a_node, a_spec, a_workload, asked


def a_quota(hard: Any, used: Any = None, **spec: Any) -> dict[str, Any]:
    status = {} if used is None else {"status": {"hard": hard, "used": used}}
    metadata = {"name": "q", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard, **spec}, **status}


def asking(name: str = "p", **resources: Any) -> dict[str, Any]:
    return a_pod(name, containers=[{"name": "c", "resources": resources}])


def notes(*objects: Any) -> list[str]:
    cluster, problems = of(*objects)
    assert problems == []
    assert cluster.creation is not None
    return cluster.creation.quotas.notes((pod, 1) for _, pod in cluster.creation.pods)


def exceeded(resource: str, used: str, hard: str, wanted: str, pods: str = "1 new pod") -> str:
    return (
        f"ResourceQuota default/q: {used} of {hard} {resource} in use, and {wanted} for {pods}: "
        "the API server would not admit all, a simulation does"
    )


@pytest.mark.parametrize(
    ("hard", "used", "resources", "note"),
    [
        ({"pods": "1"}, {"pods": "1"}, {}, exceeded("pods", "1", "1", "1")),
        ({"pods": "2"}, {"pods": "1"}, {}, None),
        ({"count/pods": "1"}, {"count/pods": "1"}, {}, exceeded("count/pods", "1", "1", "1")),
        (
            {"requests.cpu": "1"},
            {"requests.cpu": "700m"},
            {"requests": {"cpu": "400m"}},
            exceeded("requests.cpu", "0.7", "1", "0.4"),
        ),
        ({"cpu": "1"}, {}, {"requests": {"cpu": "2"}}, exceeded("cpu", "0", "1", "2")),
        ({"limits.memory": "1Gi"}, {}, {"limits": {"memory": "2Gi"}}, exceeded("limits.memory", "0", "1Gi", "2Gi")),
        (
            {"requests.example.com/gpu": "1"},
            {"requests.example.com/gpu": "1"},
            {"limits": {"example.com/gpu": "1"}},
            exceeded("requests.example.com/gpu", "1", "1", "1"),
        ),
        ({"limits.example.com/gpu": "0", "configmaps": "0"}, {}, {"limits": {"example.com/gpu": "1"}}, None),
        (
            {"limits.cpu": "9"},
            {},
            {"requests": {"cpu": "1"}},
            "ResourceQuota default/q demands limits.cpu of each container, and 1 new pod would be without: "
            "the API server would not admit them, a simulation does",
        ),
        ({"requests.ephemeral-storage": "9Gi"}, {}, {}, None),
    ],
)
def test_what_new_pods_would_exceed_is_noted(hard: Any, used: Any, resources: Any, note: str | None) -> None:
    assert notes(asking(**resources), a_quota(hard, used)) == ([note] if note else [])


@pytest.mark.parametrize(
    ("scope", "counts"),
    [
        ({"scopes": ["BestEffort"]}, ["best"]),
        ({"scopes": ["NotBestEffort"]}, ["high", "job", "web"]),
        ({"scopes": ["Terminating"]}, ["job"]),
        ({"scopes": ["NotTerminating"]}, ["best", "high", "web"]),
        ({"scopes": ["PriorityClass"]}, ["high"]),
        ({"scopes": ["CrossNamespacePodAffinity"]}, ["web"]),
        ({"scopes": ["NotBestEffort", "NotTerminating"]}, ["high", "web"]),
        ({"scopes": ["of another version"]}, []),
        *(
            ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", **expression}]}}, counts)
            for expression, counts in (
                ({"operator": "In", "values": ["high"]}, ["high"]),
                ({"operator": "NotIn", "values": ["high"]}, ["best", "job", "web"]),
                ({"operator": "DoesNotExist"}, ["best", "job", "web"]),
                ({"operator": "Exists"}, ["high"]),
            )
        ),
    ],
)
def test_only_pods_of_its_scopes_count(scope: Any, counts: list[str]) -> None:
    small = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    term = {"topologyKey": "zone", "namespaceSelector": {}, "labelSelector": {}}
    away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1}
    pods = {
        "best": a_pod("best"),
        "high": a_pod("high", containers=small, priorityClassName="high"),
        "job": a_pod("job", containers=small, activeDeadlineSeconds=60),
        "web": a_pod("web", containers=small, affinity=away),
    }
    quota = a_quota({"pods": "0"}, {}, **scope)

    assert [name for name, pod in pods.items() if notes(pod, high, quota)] == counts


def test_a_quota_without_a_status_counts_the_pods_that_are_there() -> None:
    there = stored(asking("there", requests={"cpu": "1"}))

    (note,) = notes(there, asking(requests={"cpu": "1"}), a_quota({"requests.cpu": "1"}))

    assert note == exceeded("requests.cpu", "1", "1", "1")


@pytest.mark.parametrize("scope", ["PriorityClass", "NotTerminating", "BestEffort", "CrossNamespacePodAffinity"])
def test_a_quota_with_scopes_and_without_a_status_is_read_beside_pods_that_are_there(scope: str) -> None:
    assert notes(stored(a_pod("there")), a_quota({"pods": "1"}, scopes=[scope])) == []


def test_each_namespace_has_its_own() -> None:
    other = asking()
    other["metadata"]["namespace"] = "other"

    assert notes(other, a_quota({"pods": "0"}, {})) == []


def test_copies_count_and_what_they_stand_for_does_not() -> None:
    deployment = a_workload("Deployment", "w", a_spec(), replicas=9)

    document = asked(a_node("n1"), deployment, a_quota({"pods": "3"}, {}), fill=True)

    assert document["notes"] == [exceeded("pods", "0", "3", "4", "4 new pods")]


def test_of_many_only_some_are_named() -> None:
    quotas = [{**a_quota({"pods": "0"}, {}), "metadata": {"name": f"q{number}"}} for number in range(12)]

    lines = notes(asking(), *quotas)

    assert (len(lines), lines[-1]) == (11, "and 2 more quotas without room")


@pytest.mark.parametrize(
    ("quota", "problem"),
    [
        (
            a_quota({"pods": "many"}),
            'f:1: spec.hard[pods]: Invalid value: "many": not a quantity such as 500m or 1.5Gi',
        ),
        (a_quota({}, {"pods": "x" * 5000}), f'f:1: status.used[pods]: Invalid value: "{"x" * 100}…": not a quantity'),
        (a_quota([]), "f:1: spec.hard: expected object | null, got array"),
    ],
)
def test_one_that_cannot_be_read_is_a_problem(quota: Any, problem: str) -> None:
    (told,) = of(quota)[1]

    assert told.startswith(problem)
