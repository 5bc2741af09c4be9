"""Whatever stands in the place of a part of an object, it is told or taken, and nothing raises."""

import copy
from collections.abc import Iterator
from typing import Any, Final

import pytest

from scheduler.config.documents import Document
from scheduler.framework.errors import ConfigError
from scheduler.framework.nodes.resources import KNOWN, STRUCTS
from scheduler.simulate.cluster import cluster_of

ODD: Final[tuple[Any, ...]] = (
    None,
    [],
    {},
    "",
    "x",
    0,
    -1,
    1.5,
    10**30,
    True,
    [[]],
    [None],
    {"a": None},
    ["x"],
    {"": {}},
)
TOLERATION: Final = {"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 3}
CLAIM: Final = {"metadata": {"name": "d", "labels": {"a": "b"}}, "spec": {"storageClassName": "s"}}
SPEC: Final[dict[str, Any]] = {
    "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}],
    "initContainers": [{"name": "i", "ports": [{"containerPort": 1, "hostPort": 2}]}],
    "priorityClassName": "high",
    "runtimeClassName": "kata",
    "nodeSelector": {"a": "b"},
    "tolerations": [TOLERATION],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
            }
        },
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "z", "labelSelector": {"matchLabels": {"a": "b"}}}}
            ]
        },
    },
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 1}
    ],
    "volumes": [
        {"name": "v", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "e", "ephemeral": {"volumeClaimTemplate": CLAIM}},
    ],
    "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "gpu"}],
    "schedulingGates": [{"name": "g"}],
    "overhead": {"cpu": "1"},
}


def a_workload(kind: str, version: str, **fields: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template, **fields}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w", "uid": "u", "controller": True}
    metadata = {"name": "w", "namespace": "default", "uid": "u", "ownerReferences": [owner]}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def an_object(kind: str, version: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "annotations": {"a": "b"}}, **fields}


OBJECTS: Final[dict[str, dict[str, Any]]] = {
    "pod": {
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": SPEC,
        "status": {"phase": "Running"},
    },
    "node": {
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        "status": {"capacity": {"cpu": "1"}},
    },
    "deployment": a_workload("Deployment", "apps/v1", replicas=1),
    "replica set": a_workload("ReplicaSet", "apps/v1", replicas=1),
    "stateful set": a_workload(
        "StatefulSet", "apps/v1", replicas=1, ordinals={"start": 1}, volumeClaimTemplates=[CLAIM], serviceName="s"
    ),
    "job": a_workload("Job", "batch/v1", parallelism=1, completions=2, completionMode="Indexed", suspend=False),
    "daemon set": a_workload("DaemonSet", "apps/v1"),
    "priority class": an_object(
        "PriorityClass", "scheduling.k8s.io/v1", "high", value=1, globalDefault=True, preemptionPolicy="Never"
    ),
    "runtime class": an_object(
        "RuntimeClass",
        "node.k8s.io/v1",
        "kata",
        overhead={"podFixed": {"cpu": "1"}},
        scheduling={"nodeSelector": {"a": "b"}, "tolerations": [TOLERATION]},
    ),
    "limit range": an_object(
        "LimitRange",
        "v1",
        "l",
        spec={
            "limits": [
                {
                    "type": "Container",
                    "max": {"cpu": "2"},
                    "default": {"cpu": "1"},
                    "maxLimitRequestRatio": {"cpu": "3"},
                },
                {"type": "Pod", "max": {"cpu": "2"}},
            ]
        },
    ),
    "storage class": an_object("StorageClass", "storage.k8s.io/v1", "s", volumeBindingMode="Immediate"),
    "claim template": an_object(
        "ResourceClaimTemplate",
        "resource.k8s.io/v1",
        "gpu",
        spec={"metadata": {"labels": {"a": "b"}}, "spec": {"devices": {}}},
    ),
    "claim": an_object("PersistentVolumeClaim", "v1", "c", spec={"accessModes": ["ReadWriteOnce"]}),
    "volume": an_object("PersistentVolume", "v1", "v", spec={"claimRef": {"name": "c"}}, status={"phase": "Bound"}),
}


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*path, key))


def replaced(obj: dict[str, Any], path: tuple[Any, ...], odd: Any) -> dict[str, Any]:
    changed = copy.deepcopy(obj)
    inner: Any = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = odd
    return changed


@pytest.mark.parametrize("name", OBJECTS)
def test_nothing_that_stands_anywhere_raises(name: str) -> None:
    others = [obj for other, obj in OBJECTS.items() if other != name]
    watched = {resource: KNOWN[resource] for resource in STRUCTS if resource in KNOWN}
    for path in paths(OBJECTS[name]):
        if not path or path == ("kind",):
            continue
        for odd in ODD:
            problems: list[str] = []
            objects = [replaced(OBJECTS[name], path, odd), *others]
            try:
                cluster = cluster_of([Document("f", obj) for obj in objects], problems)
                cluster.others.take(watched)
                assert all(pod.requests is not None for pod in cluster.pods)
            except ConfigError as error:
                problems += error.problems
            except Exception as error:
                raise AssertionError(f"{odd!r} at {path}") from error
            assert all(len(problem) < 2000 for problem in problems)
