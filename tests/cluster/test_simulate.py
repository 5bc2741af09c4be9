"""A simulation creates the same pods as the real API server and the real controllers."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

import pytest

from scheduler.api.quantities.quantity import parse_quantity
from scheduler.config.documents import Document
from scheduler.framework.events import PERSISTENT_VOLUME_CLAIM
from scheduler.framework.nodes.resources import KNOWN
from scheduler.simulate.apiserver.defaults import ServerPod
from scheduler.simulate.cluster import SimulatedCluster, cluster_of
from scheduler.simulate.files.objects import decoded, raw_of
from tests.cluster.conftest import MakeNodes
from tests.controlplane import Client, Cluster, wait_until
from tests.controlplane.client import ApiError, Object

POOL: Final = {"pool": "simulated"}
OURS: Final = ("kube-api-access",)
"""Volumes that admission adds for the service account: scheduling does not read them."""

UNLIKE: Final = re.compile(r"pod-template-hash|controller-revision-hash|controller-uid")
"""Labels with a hash or a UID."""


def a_spec(**fields: Any) -> dict[str, Any]:
    return {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i"}], **fields}


def a_workload(kind: str, name: str, spec: dict[str, Any], version: str = "apps/v1", **fields: Any) -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels, "annotations": {"a": "b"}}, "spec": spec}
    selector = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**selector, "template": template, **fields},
    }


CLASSES: Final[list[Object]] = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "sim-high"}, "value": 1000},
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "sim-default"},
        "value": 7,
        "globalDefault": True,
        "preemptionPolicy": "Never",
    },
    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "sim-bare"}, "handler": "bare"},
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "sim-kata"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
        "scheduling": {
            "nodeSelector": {"kata": "yes"},
            "tolerations": [
                {"key": "kata", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "own", "operator": "Equal", "value": "x", "effect": "NoSchedule"},
            ],
        },
    },
]

LIMITS: Final[Object] = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "limits"},
    "spec": {
        "limits": [
            {
                "type": "Container",
                "max": {"cpu": "2", "memory": "1Gi"},
                "min": {"cpu": "10m"},
                "defaultRequest": {"cpu": "100m"},
                "maxLimitRequestRatio": {"memory": "4"},
            }
        ]
    },
}

CLAIM: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

WORKLOADS: Final[list[Object]] = [
    a_workload("Deployment", "web", a_spec(priorityClassName="sim-high"), replicas=3),
    a_workload("ReplicaSet", "cache", a_spec(tolerations=[{"operator": "Exists"}]), replicas=2),
    a_workload(
        "StatefulSet",
        "db",
        a_spec(volumes=[{"name": "data", "emptyDir": {}}, {"name": "more", "emptyDir": {}}]),
        replicas=2,
        serviceName="db",
        podManagementPolicy="Parallel",
        ordinals={"start": 3},
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": CLAIM}],
    ),
    a_workload("Job", "once", a_spec(restartPolicy="Never"), "batch/v1", parallelism=2, completions=5),
    a_workload(
        "Job",
        "indexed",
        a_spec(restartPolicy="Never"),
        "batch/v1",
        parallelism=2,
        completions=3,
        completionMode="Indexed",
    ),
    a_workload("Job", "later", a_spec(restartPolicy="Never"), "batch/v1", suspend=True),
    a_workload("Job", "any", a_spec(restartPolicy="Never"), "batch/v1", parallelism=2),
    a_workload("Job", "of-others", a_spec(restartPolicy="Never"), "batch/v1", managedBy="example.com/queue"),
    a_workload("Deployment", "paused", a_spec(), replicas=2, paused=True),
    a_workload("ReplicaSet", "a-name-of-sixty-characters-that-is-longer-than-generated-ones", a_spec()),
    a_workload("DaemonSet", "agent", a_spec(nodeSelector=POOL)),
    a_workload(
        "DaemonSet",
        "net",
        a_spec(nodeSelector=POOL, hostNetwork=True, tolerations=[{"key": "dedicated", "operator": "Exists"}]),
    ),
]

PODS: Final[list[Object]] = [
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    for name, spec in {
        "plain": a_spec(),
        "critical": a_spec(priorityClassName="system-node-critical"),
        "kata": a_spec(
            runtimeClassName="sim-kata",
            nodeSelector={"own": "1"},
            tolerations=[{"key": "own", "operator": "Equal", "value": "x", "effect": "NoSchedule"}],
        ),
        "limited": a_spec(
            containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "20m"}}}],
            initContainers=[{"name": "init", "image": "i", "resources": {"limits": {"memory": "512Mi"}}}],
        ),
        "patient": a_spec(
            tolerations=[
                {
                    "key": "node.kubernetes.io/not-ready",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 1,
                }
            ]
        ),
        "scratch": a_spec(volumes=[{"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}]),
        "host": a_spec(hostNetwork=True, containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 8080}]}]),
    }.items()
]

REFUSED: Final[dict[str, dict[str, Any]]] = {
    "no-class": a_spec(priorityClassName="sim-none"),
    "a-priority": a_spec(priority=5),
    "a-policy": a_spec(preemptionPolicy="PreemptLowerPriority"),
    "no-runtime": a_spec(runtimeClassName="sim-none"),
    "an-overhead": a_spec(overhead={"cpu": "1"}),
    "another-overhead": a_spec(runtimeClassName="sim-kata", overhead={"cpu": "1"}),
    "overhead-of-no-class": a_spec(runtimeClassName="sim-bare", overhead={"cpu": "1"}),
    "a-conflict": a_spec(runtimeClassName="sim-kata", nodeSelector={"kata": "no"}),
    "too-much": a_spec(containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": "3"}}}]),
    "too-little": a_spec(containers=[{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1m"}}}]),
    "a-ratio": a_spec(
        containers=[
            {"name": "c", "image": "i", "resources": {"limits": {"memory": "1Gi"}, "requests": {"memory": "1Mi"}}}
        ]
    ),
}


def a_spread(**fields: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}


def near(**fields: Any) -> dict[str, Any]:
    return a_spec(affinity={"podAffinity": fields})


def selecting(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"labelSelector": {"matchExpressions": list(expressions)}, "topologyKey": "zone"}


def on_nodes(**term: Any) -> dict[str, Any]:
    return a_spec(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}})


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
INVALID: Final[dict[str, dict[str, Any]]] = {
    "toleration-of-nothing": a_spec(tolerations=[{"value": "x"}]),
    "toleration-operator": a_spec(tolerations=[{"key": "a", "operator": "Near"}]),
    "toleration-effect": a_spec(tolerations=[{"key": "a", "operator": "Exists", "effect": "Never"}]),
    "spread-of-no-skew": a_spec(topologySpreadConstraints=[a_spread(maxSkew=0)]),
    "spread-without-key": a_spec(topologySpreadConstraints=[a_spread(topologyKey="")]),
    "spread-action": a_spec(topologySpreadConstraints=[a_spread(whenUnsatisfiable="Never")]),
    "spread-twice": a_spec(topologySpreadConstraints=[a_spread(), a_spread()]),
    "spread-of-no-domains": a_spec(topologySpreadConstraints=[a_spread(minDomains=0)]),
    "spread-policy": a_spec(topologySpreadConstraints=[a_spread(nodeTaintsPolicy="Maybe")]),
    "spread-selector": a_spec(
        topologySpreadConstraints=[
            a_spread(labelSelector={"matchExpressions": [{"key": "a", "operator": "DoesNotExist", "values": ["b"]}]})
        ]
    ),
    "near-nothing": near(**{REQUIRED: [{"labelSelector": {}, "topologyKey": ""}]}),
    "near-weight": near(**{PREFERRED: [{"weight": 101, "podAffinityTerm": {"topologyKey": "zone"}}]}),
    "near-operator": near(**{REQUIRED: [selecting({"key": "a", "operator": "Near"})]}),
    "near-no-value": near(**{REQUIRED: [selecting({"key": "a", "operator": "In"})]}),
    "no-terms": a_spec(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}),
    "no-weight": a_spec(affinity={"nodeAffinity": {PREFERRED: [{"weight": 0, "preference": {}}]}}),
    "node-operator": on_nodes(matchExpressions=[{"key": "a", "operator": "Near"}]),
    "node-no-value": on_nodes(matchExpressions=[{"key": "a", "operator": "NotIn", "values": []}]),
    "node-two-values": on_nodes(matchExpressions=[{"key": "a", "operator": "Gt", "values": ["1", "2"]}]),
    "node-field": on_nodes(matchFields=[{"key": "metadata.uid", "operator": "In", "values": ["b"]}]),
    "node-field-values": on_nodes(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]),
    "port-protocol": a_spec(
        containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 80, "protocol": "HTTP"}]}]
    ),
}


@pytest.fixture
def classes(api: Client) -> Iterator[None]:
    api.create_many(CLASSES)
    yield
    for obj in CLASSES:
        api.delete(f"{obj['apiVersion']}/{obj['kind']}", obj["metadata"]["name"])


def simulated(objects: Iterable[Object], namespace: str) -> tuple[SimulatedCluster, list[str]]:
    problems: list[str] = []
    documents = []
    for obj in objects:
        inside = obj["kind"] not in ("Node", "PriorityClass", "RuntimeClass")
        metadata = {**obj["metadata"], **({"namespace": namespace} if inside else {})}
        documents.append(Document("f", {**obj, "metadata": metadata}))
    return cluster_of(documents, problems), problems


def normal(pod: Any) -> dict[str, Any]:
    """What scheduling reads of a pod, without names drawn by lot, hashes and UIDs."""
    spec = pod.spec
    owners = [owner for owner in pod.metadata.owner_references or () if owner.controller]
    kind = owners[0].kind if owners else ""
    name = pod.name
    if kind in ("ReplicaSet", "Job", "DaemonSet"):
        name = name[:-5]
        name = re.sub(r"^web-[a-z0-9]+-$", "web-HASH-", name)
    return {
        "owner": kind,
        "name": name,
        "labels": sorted(item for item in pod.labels.items() if not UNLIKE.search(item[0])),
        "keys": sorted(pod.labels),
        "priority": spec.priority,
        "policy": spec.preemption_policy,
        "selector": spec.node_selector or {},
        "tolerations": sorted(map(repr, spec.tolerations or ())),
        "overhead": amounts(spec.overhead),
        "affinity": spec.affinity,
        "containers": [
            (each.name, resources(each), each.ports)
            for each in (*(spec.containers or ()), *(spec.init_containers or ()))
        ],
        "claims": sorted(
            (volume.name, volume.persistent_volume_claim and volume.persistent_volume_claim.claim_name)
            for volume in spec.volumes or ()
            if not volume.name.startswith(OURS)
        ),
    }


def amounts(written: Any) -> dict[str, int]:
    return {name: parse_quantity(text) for name, text in (written or {}).items()}


def resources(container: Any) -> tuple[dict[str, int], dict[str, int]]:
    own = container.resources
    return (amounts(own and own.requests), amounts(own and own.limits))


def by_name(pods: Iterable[Any]) -> list[dict[str, Any]]:
    return sorted(map(normal, pods), key=lambda pod: (pod["owner"], pod["name"], repr(pod["affinity"])))


def test_pods_are_those_of_the_api_server_and_the_controllers(
    cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes, classes: None
) -> None:
    free = make_nodes(2, labels=POOL)
    (tainted,) = make_nodes(1, labels=POOL, taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}])
    wait_until(lambda: bool(api.list("ServiceAccount", namespace)), 30, "the namespace has its service account")
    api.create(LIMITS, namespace)
    for obj in (*WORKLOADS, *PODS):
        api.create(obj, namespace)
    nodes = [api.get("Node", name) for name in (*free, tainted)]

    ours, problems = simulated([*nodes, *CLASSES, LIMITS, *WORKLOADS, *PODS], namespace)

    assert problems == []
    count = len(ours.pods)
    wait_until(lambda: len(api.list("Pod", namespace)) >= count, 60, f"there are {count} pods")
    theirs = [decoded(raw_of(pod), ServerPod) for pod in api.list("Pod", namespace)]
    for expected, actual in zip(by_name(theirs), by_name(ours.pods), strict=True):
        assert actual == expected
    claims = {obj["metadata"]["name"] for obj in api.list("PersistentVolumeClaim", namespace)}
    taken = ours.others.take({PERSISTENT_VOLUME_CLAIM: KNOWN[PERSISTENT_VOLUME_CLAIM]})
    assert {claim.name for _, claim in taken} == claims == {"data-db-3", "data-db-4", "scratch-tmp"}


def test_what_is_there_already_is_not_made_again(
    cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes, classes: None
) -> None:
    nodes = [api.get("Node", name) for name in make_nodes(2, labels=POOL)]
    wait_until(lambda: bool(api.list("ServiceAccount", namespace)), 30, "the namespace has its service account")
    for obj in WORKLOADS:
        api.create(obj, namespace)
    count = len(simulated([*nodes, *CLASSES, *WORKLOADS], namespace)[0].pods)
    wait_until(lambda: len(api.list("Pod", namespace)) >= count, 60, f"there are {count} pods")
    kinds = (
        "Pod",
        "apps/v1/ReplicaSet",
        "apps/v1/Deployment",
        "apps/v1/StatefulSet",
        "apps/v1/DaemonSet",
        "batch/v1/Job",
    )
    dump = []
    for kind in kinds:
        version, _, name = kind.rpartition("/")
        dump += [{"apiVersion": version or "v1", "kind": name, **obj} for obj in api.list(kind, namespace)]

    ours, problems = simulated([*nodes, *CLASSES, *dump], namespace)

    assert problems == []
    assert len(ours.pods) == count


def test_what_admission_refuses_is_refused_in_its_words(api: Client, namespace: str, classes: None) -> None:
    api.create(LIMITS, namespace)
    wait_until(lambda: bool(api.list("ServiceAccount", namespace)), 30, "the namespace has its service account")
    for name, spec in REFUSED.items():
        pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        refusal = wait_until(partial(_refusal, api, namespace, pod), 15, "admission knows the limits and classes")

        _, problems = simulated([*CLASSES, LIMITS, pod], namespace)

        assert problems == [f"f: {refusal.partition(': ')[2]}"]


def _refusal(api: Client, namespace: str, pod: Object) -> str:
    try:
        api.create(pod, namespace)
    except ApiError as error:
        return str(error)
    api.delete("Pod", pod["metadata"]["name"], namespace, grace=0)
    return ""


def test_what_decides_placement_and_the_api_server_calls_invalid_is_an_error(api: Client, namespace: str) -> None:
    wait_until(lambda: bool(api.list("ServiceAccount", namespace)), 30, "the namespace has its service account")
    for name, spec in INVALID.items():
        pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        with pytest.raises(ApiError, match="is invalid"):
            api.create(pod, namespace)

        _, problems = simulated([pod], namespace)

        assert len(problems) == 1, name
