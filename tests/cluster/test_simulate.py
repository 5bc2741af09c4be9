"""A simulation creates the same pods as the real API server and the real controllers."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

import pytest

from scheduler.api.quantity import parse_quantity
from scheduler.config.documents import Document
from scheduler.framework.events import PERSISTENT_VOLUME_CLAIM
from scheduler.framework.resources import KNOWN
from scheduler.simulate.apiserver.creation import wide_pod_type
from scheduler.simulate.cluster import SimulatedCluster, cluster_of
from scheduler.simulate.files.written import decoded, raw_of
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


def resources_of(requests: dict[str, str], limits: dict[str, str]) -> dict[str, Any]:
    return a_spec(containers=[{"name": "c", "image": "i", "resources": {"requests": requests, "limits": limits}}])


def a_spread(**fields: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}


def near(**fields: Any) -> dict[str, Any]:
    return a_spec(affinity={"podAffinity": fields})


def with_ports(*containers: list[dict[str, Any]]) -> dict[str, Any]:
    return a_spec(containers=[{"name": f"c{i}", "image": "i", "ports": ports} for i, ports in enumerate(containers)])


def claiming(claims: list[dict[str, Any]]) -> dict[str, Any]:
    return a_spec(containers=[{"name": "c", "image": "i", "resources": {"claims": claims}}])


def selecting(*expressions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchExpressions": list(expressions)}, "topologyKey": "zone", **fields}


def on_nodes(expression: dict[str, Any]) -> dict[str, Any]:
    return a_spec(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}})


def on_fields(field: dict[str, Any]) -> dict[str, Any]:
    return a_spec(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}})


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
INVALID: Final[dict[str, dict[str, Any]]] = {
    "toleration-of-nothing": a_spec(tolerations=[{"value": "x"}]),
    "toleration-for-seconds": a_spec(tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": 1}]),
    "toleration-operator": a_spec(tolerations=[{"key": "a", "operator": "Near"}]),
    "toleration-compares": a_spec(tolerations=[{"key": "a", "operator": "Lt", "value": "1"}]),
    "toleration-value": a_spec(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
    "toleration-odd-value": a_spec(tolerations=[{"key": "a", "value": "-x-"}]),
    "toleration-key": a_spec(tolerations=[{"key": "a b", "operator": "Exists"}]),
    "toleration-effect": a_spec(tolerations=[{"key": "a", "operator": "Exists", "effect": "Never"}]),
    "request-above-limit": resources_of({"cpu": "2"}, {"cpu": "1"}),
    "extended-without-limit": resources_of({"example.com/gpu": "1"}, {}),
    "extended-unequal": resources_of({"example.com/gpu": "1"}, {"example.com/gpu": "2"}),
    "spread-of-no-skew": a_spec(topologySpreadConstraints=[a_spread(maxSkew=0)]),
    "spread-without-key": a_spec(topologySpreadConstraints=[a_spread(topologyKey="")]),
    "spread-action": a_spec(topologySpreadConstraints=[a_spread(whenUnsatisfiable="Never")]),
    "spread-twice": a_spec(topologySpreadConstraints=[a_spread(), a_spread()]),
    "spread-of-no-domains": a_spec(topologySpreadConstraints=[a_spread(minDomains=0)]),
    "spread-of-domains": a_spec(topologySpreadConstraints=[a_spread(minDomains=1, whenUnsatisfiable="ScheduleAnyway")]),
    "spread-policy": a_spec(topologySpreadConstraints=[a_spread(nodeTaintsPolicy="Maybe")]),
    "gate-name": a_spec(schedulingGates=[{"name": "a b"}]),
    "gated-on-a-node": a_spec(schedulingGates=[{"name": "a"}], nodeName="n"),
    "selector-key": a_spec(nodeSelector={"a b": "c"}),
    "selector-value": a_spec(nodeSelector={"a": "b c"}),
    "no-terms": a_spec(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}),
    "no-weight": a_spec(affinity={"nodeAffinity": {PREFERRED: [{"weight": 0, "preference": {}}]}}),
    "near-nothing": near(**{REQUIRED: [{"labelSelector": {}, "topologyKey": ""}]}),
    "near-odd-key": near(**{REQUIRED: [{"labelSelector": {}, "topologyKey": "a b"}]}),
    "near-weight": near(**{PREFERRED: [{"weight": 101, "podAffinityTerm": {"topologyKey": "zone"}}]}),
    "In-Capitals": a_spec(),
    "near-operator": near(**{REQUIRED: [selecting({"key": "a", "operator": "Near"})]}),
    "near-no-value": near(**{REQUIRED: [selecting({"key": "a", "operator": "In"})]}),
    "near-a-value": near(**{REQUIRED: [selecting({"key": "a", "operator": "Exists", "values": ["b"]})]}),
    "near-odd-value": near(**{REQUIRED: [selecting({"key": "a", "operator": "In", "values": ["b c", "d"]})]}),
    "near-odd-selector-key": near(**{REQUIRED: [selecting({"key": "a b", "operator": "Exists"})]}),
    "near-odd-label": near(**{REQUIRED: [{"labelSelector": {"matchLabels": {"a": "b c"}}, "topologyKey": "zone"}]}),
    "near-odd-namespaces": near(**{REQUIRED: [{"namespaces": ["A.b"], "labelSelector": {}, "topologyKey": "zone"}]}),
    "near-odd-namespace-selector": near(
        **{
            PREFERRED: [
                {
                    "weight": 1,
                    "podAffinityTerm": {
                        "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn"}]},
                        "topologyKey": "zone",
                    },
                }
            ]
        }
    ),
    "near-keys-of-nothing": near(**{REQUIRED: [{"matchLabelKeys": ["a"], "topologyKey": "zone"}]}),
    "near-keys-twice": near(
        **{REQUIRED: [selecting({"key": "app", "operator": "In", "values": ["x"]}, matchLabelKeys=["app"])]}
    ),
    "near-keys-both-ways": near(
        **{REQUIRED: [selecting(matchLabelKeys=["other"], mismatchLabelKeys=["more", "other"])]}
    ),
    "near-odd-keys": near(**{REQUIRED: [selecting(mismatchLabelKeys=["a b"])]}),
    "spread-keys-twice": a_spec(
        topologySpreadConstraints=[
            a_spread(labelSelector={"matchLabels": {"app": "x"}}, matchLabelKeys=["other", "app"])
        ]
    ),
    "spread-keys-of-nothing": a_spec(topologySpreadConstraints=[a_spread(matchLabelKeys=["app"])]),
    "spread-selector": a_spec(
        topologySpreadConstraints=[
            a_spread(labelSelector={"matchExpressions": [{"key": "a", "operator": "DoesNotExist", "values": ["b"]}]})
        ]
    ),
    "node-operator": on_nodes({"key": "a", "operator": "Near"}),
    "node-no-value": on_nodes({"key": "a", "operator": "NotIn", "values": []}),
    "node-a-value": on_nodes({"key": "a", "operator": "Exists", "values": ["b"]}),
    "node-two-values": on_nodes({"key": "a", "operator": "Gt", "values": ["1", "2"]}),
    "node-odd-value": on_nodes({"key": "a", "operator": "In", "values": ["b c"]}),
    "node-odd-key": on_nodes({"key": "a b", "operator": "Exists"}),
    "node-field": on_fields({"key": "metadata.uid", "operator": "In", "values": ["b"]}),
    "node-field-operator": on_fields({"key": "metadata.name", "operator": "Exists"}),
    "node-field-values": on_fields({"key": "metadata.name", "operator": "In", "values": ["a", "b"]}),
    "node-field-name": on_fields({"key": "metadata.name", "operator": "In", "values": ["A b"]}),
    "node-preference": a_spec(
        affinity={
            "nodeAffinity": {
                PREFERRED: [
                    {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Lt", "values": []}]}}
                ]
            }
        }
    ),
    "huge-alone": resources_of({"hugepages-2Mi": "2Mi"}, {"hugepages-2Mi": "2Mi"}),
    "huge-unequal": resources_of({"hugepages-2Mi": "2Mi", "cpu": "1"}, {"hugepages-2Mi": "4Mi"}),
    "huge-without-limit": resources_of({"hugepages-2Mi": "2Mi", "cpu": "1"}, {}),
    "huge-and-a-half": resources_of({"hugepages-2Mi": "3Mi", "cpu": "1"}, {"hugepages-2Mi": "3Mi"}),
    "no-resource": resources_of({"gpu": "1"}, {}),
    "resource-of-a-quota": resources_of({"pods": "1"}, {}),
    "half-a-device": resources_of({"example.com/gpu": "500m"}, {"example.com/gpu": "500m"}),
    "port-number": with_ports([{"containerPort": 70000}]),
    "host-port-number": with_ports([{"containerPort": 80, "hostPort": 70000}]),
    "port-protocol": with_ports([{"containerPort": 80, "protocol": "HTTP"}]),
    "host-port-twice": with_ports(
        [{"containerPort": 80, "hostPort": 80}], [{"containerPort": 81, "hostPort": 80, "hostIP": ""}]
    ),
    "host-port-twice-at-first": a_spec(
        initContainers=[
            {
                "name": "i",
                "image": "i",
                "ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}],
            }
        ]
    ),
    "container-twice": a_spec(containers=[{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]),
    "container-twice-at-first": a_spec(initContainers=[{"name": "c", "image": "i"}]),
    "container-name": a_spec(containers=[{"name": "a.b", "image": "i"}]),
    "volume-twice": a_spec(volumes=[{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]),
    "volume-name": a_spec(volumes=[{"name": "A_b", "emptyDir": {}}]),
    "volume-of-no-claim": a_spec(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": ""}}]),
    "volume-of-its-own-claim": a_spec(
        volumes=[
            {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}},
            {"name": "again", "persistentVolumeClaim": {"claimName": "volume-of-its-own-claim-tmp"}},
        ]
    ),
    "mount-of-nothing": a_spec(
        containers=[{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]
    ),
    "device-of-nothing": a_spec(
        containers=[{"name": "c", "image": "i", "volumeDevices": [{"name": "v", "devicePath": "/v"}]}]
    ),
    "claims-twice": a_spec(resourceClaims=[{"name": "g", "resourceClaimName": "x"}] * 2),
    "claim-of-nothing": a_spec(resourceClaims=[{"name": "g"}]),
    "claim-of-both": a_spec(resourceClaims=[{"name": "g", "resourceClaimName": "x", "resourceClaimTemplateName": "y"}]),
    "claim-name": a_spec(resourceClaims=[{"name": "g", "resourceClaimName": "X_y"}]),
    "claim-own-name": a_spec(resourceClaims=[{"name": "a.b", "resourceClaimName": "x"}]),
    "claims-nothing": claiming([{"name": "g"}]),
    "claims-another": {**claiming([{"name": "g"}]), "resourceClaims": [{"name": "h", "resourceClaimName": "x"}]},
    "claims-it-twice": {
        **claiming([{"name": "g"}, {"name": "g", "request": "r"}]),
        "resourceClaims": [{"name": "g", "resourceClaimName": "x"}],
    },
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
    if not cluster.has_controllers:
        pytest.skip("needs controllers")
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
    theirs = [decoded(raw_of(pod), wide_pod_type(())) for pod in api.list("Pod", namespace)]
    for expected, actual in zip(by_name(theirs), by_name(ours.pods), strict=True):
        assert actual == expected
    claims = {obj["metadata"]["name"] for obj in api.list("PersistentVolumeClaim", namespace)}
    taken = ours.others.take({PERSISTENT_VOLUME_CLAIM: KNOWN[PERSISTENT_VOLUME_CLAIM]})
    assert {claim.name for _, claim in taken} == claims == {"data-db-3", "data-db-4", "scratch-tmp"}


def test_what_is_there_already_is_not_made_again(
    cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes, classes: None
) -> None:
    if not cluster.has_controllers:
        pytest.skip("needs controllers")
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


def test_what_a_quota_does_not_admit_is_noted(cluster: Cluster, api: Client, namespace: str) -> None:
    if not cluster.has_controllers:
        pytest.skip("needs controllers")
    hard = {"requests.cpu": "1", "pods": "9"}
    quota: Object = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}
    sets = a_workload("ReplicaSet", "web", resources_of({"cpu": "300m"}, {}), replicas=4)

    def noted(*objects: Object) -> list[str]:
        ours, problems = simulated(objects, namespace)
        assert (problems, ours.creation is not None) == ([], True)
        return [] if ours.creation is None else ours.creation.quotas.notes((pod, 1) for _, pod in ours.creation.pods)

    def used() -> str | None:
        status: Object = api.get("ResourceQuota", "q", namespace)["status"]
        cpu: str | None = status.get("used", {}).get("requests.cpu")
        return cpu

    def there(kind: str) -> list[Object]:
        version, _, name = kind.rpartition("/")
        return [{"apiVersion": version or "v1", "kind": name, **obj} for obj in api.list(kind, namespace)]

    wait_until(lambda: bool(api.list("ServiceAccount", namespace)), 30, "the namespace has its service account")
    api.create(quota, namespace)
    wait_until(lambda: used() == "0", 15, "the quota's controller has counted")
    before = noted(*there("ResourceQuota"), sets)
    api.create(sets, namespace)
    wait_until(lambda: used() == "900m", 15, "three pods are admitted")
    after = noted(*there("ResourceQuota"), *there("Pod"), *there("apps/v1/ReplicaSet"))

    end = "the API server would not admit all, a simulation does"
    name = f"ResourceQuota {namespace}/q"
    assert before == [f"{name}: 0 of 1 requests.cpu in use, and 1.2 for 4 new pods: {end}"]
    assert after == [f"{name}: 0.9 of 1 requests.cpu in use, and 0.3 for 1 new pod: {end}"]
    assert len(api.list("Pod", namespace)) == 3


@pytest.mark.parametrize("name", REFUSED)
def test_what_admission_refuses_is_refused_in_its_words(
    cluster: Cluster, api: Client, namespace: str, classes: None, name: str
) -> None:
    pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": REFUSED[name]}
    api.create(LIMITS, namespace)
    wait_until(lambda: bool(api.list("ServiceAccount", namespace)), 30, "the namespace has its service account")
    wait_until(partial(_refuses, api, namespace, pod), 15, "admission knows the limits and classes")
    with pytest.raises(ApiError) as caught:
        api.create(pod, namespace)

    _, problems = simulated([*CLASSES, LIMITS, pod], namespace)

    assert problems == [f"f: {str(caught.value).partition(': ')[2]}"]


def _refuses(api: Client, namespace: str, pod: Object) -> bool:
    try:
        api.create(pod, namespace)
    except ApiError:
        return True
    api.delete("Pod", pod["metadata"]["name"], namespace, grace=0)
    return False


def test_what_the_api_server_calls_invalid_is_told_in_its_words(api: Client, namespace: str) -> None:
    wait_until(lambda: bool(api.list("ServiceAccount", namespace)), 30, "the namespace has its service account")
    ours, theirs = {}, {}
    for name, spec in INVALID.items():
        metadata = {"name": name, "labels": {"app": "a", "other": "b"}}
        pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        try:
            api.create(pod, namespace)
            theirs[name] = "nothing"
        except ApiError as error:
            theirs[name] = str(error).partition(" is invalid: ")[2]

        _, problems = simulated([pod], namespace)

        told = [problem.removeprefix("f: ") for problem in problems]
        ours[name] = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    assert ours == theirs
