"""Objects that have all that scheduling reads, to be made hostile."""

from typing import Any, Final

from tests.conformance.generate import generate

Json = dict[str, Any]

META: Final[Json] = {
    "name": "a",
    "namespace": "default",
    "uid": "u-1",
    "resourceVersion": "7",
    "generation": 1,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "labels": {"app": "web"},
    "annotations": {"note": "x"},
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "o", "controller": True}],
    "managedFields": [{"manager": "kubectl", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:containers": {}}}}],
}
SELECTOR: Final[Json] = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["front", "back"]},
        {"key": "x", "operator": "Exists"},
    ],
}
TERM: Final[Json] = {
    "matchExpressions": [
        {"key": "zone", "operator": "In", "values": ["a"]},
        {"key": "n", "operator": "Gt", "values": ["3"]},
    ],
    "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}],
}
AFFINITY_TERM: Final[Json] = {
    "labelSelector": SELECTOR,
    "topologyKey": "zone",
    "namespaces": ["a"],
    "namespaceSelector": {},
    "matchLabelKeys": ["app"],
}
_CASES: Final = tuple(generate(seed) for seed in range(40))


def of_kind(kind: str) -> tuple[Json, ...]:
    """Those of generated clusters, with all metadata that objects have."""
    every = (each for case in _CASES for each in case["objects"] if each["kind"] == kind)
    return tuple({**each, "metadata": META | each["metadata"]} for each in every)


PODS, CLAIMS, SLICES, CLASSES = map(of_kind, ("Pod", "ResourceClaim", "ResourceSlice", "DeviceClass"))
LEADER_ELECTION: Final = {"leaderElect": True, "leaseDuration": "15s", "renewDeadline": "10s"}
CONFIGS: Final = tuple({**case["config"], "leaderElection": LEADER_ELECTION, "extenders": []} for case in _CASES)
CLUSTER_QUEUE: Final[Json] = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "metadata": META,
    "spec": {
        "cohortName": "all",
        "queueingStrategy": "StrictFIFO",
        "namespaceSelector": SELECTOR,
        "stopPolicy": "Hold",
        "fairSharing": {"weight": "0.5"},
        "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "MayStopSearch"},
        "preemption": {
            "reclaimWithinCohort": "Any",
            "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 100},
            "withinClusterQueue": "LowerPriority",
        },
        "admissionChecksStrategy": {"admissionChecks": [{"name": "c"}]},
        "resourceGroups": [
            {
                "coveredResources": ["cpu", "example.com/gpu"],
                "flavors": [
                    {
                        "name": "spot",
                        "resources": [
                            {"name": "cpu", "nominalQuota": "40", "borrowingLimit": "1e3", "lendingLimit": "500m"},
                            {"name": "example.com/gpu", "nominalQuota": 8},
                        ],
                    }
                ],
            }
        ],
    },
}
COHORT: Final[Json] = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "Cohort",
    "metadata": META | {"name": "all"},
    "spec": {
        "parentName": "org",
        "resourceGroups": CLUSTER_QUEUE["spec"]["resourceGroups"],
        "fairSharing": {"weight": 2},
    },
}
RESOURCE_FLAVOR: Final[Json] = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ResourceFlavor",
    "metadata": META | {"name": "spot"},
    "spec": {
        "nodeLabels": {"zone": "a"},
        "nodeTaints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
        "topologyName": "racks",
        "resourceWeights": {"cpu": "1"},
    },
}
NODES: Final[tuple[Json, ...]] = tuple(
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": "a"}},
        "spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}] if name == "n2" else []},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10", "hugepages-2Mi": "8Mi"}},
    }
    for name in ("n1", "n2")
)

_NEW: Final[Json] = {
    "priorityClassName": "high",
    "runtimeClassName": "kata",
    "nodeSelector": {"kubernetes.io/hostname": "n1"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [AFFINITY_TERM]},
    },
    "containers": [
        {
            "name": "c",
            "resources": {
                "requests": {"cpu": "100m", "hugepages-2Mi": "2Mi"},
                "limits": {"hugepages-2Mi": "2Mi"},
                "claims": [{"name": "g"}],
            },
            "ports": [{"containerPort": 80, "hostPort": 80}],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
    ],
    "volumes": [
        {"name": "data", "emptyDir": {}},
        {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
    ],
    "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    ],
}
_SIMPLE: Final[Json] = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}


def _workload(kind: str, version: str, spec: Json, **fields: Any) -> Json:
    template = {"metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}}, "spec": spec}
    whole = {"selector": {"matchLabels": {"app": "web"}}, "template": template, **fields}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": kind.lower()}, "spec": whole}


WORKLOADS: Final[tuple[Json, ...]] = (
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"app": "web"}}, "spec": _NEW},
    {"apiVersion": "v1", "kind": "Pod", "metadata": META, "spec": {**_SIMPLE, "nodeName": "n1"}},
    _workload("Deployment", "apps/v1", _NEW, replicas=2),
    _workload("Deployment", "apps/v1", _SIMPLE, replicas=2),
    _workload("ReplicaSet", "apps/v1", _SIMPLE, replicas=2),
    _workload("ReplicationController", "v1", _SIMPLE, replicas=1),
    _workload(
        "StatefulSet",
        "apps/v1",
        _SIMPLE,
        replicas=2,
        serviceName="s",
        ordinals={"start": 1},
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}],
    ),
    _workload("DaemonSet", "apps/v1", _SIMPLE),
    _workload("Job", "batch/v1", _SIMPLE, parallelism=2, completions=3, completionMode="Indexed", suspend=False),
    _workload("CronJob", "batch/v1", {}, jobTemplate={"spec": {"template": {"spec": _SIMPLE}}}),
)
"""What controllers make pods of."""

ADMISSION: Final[tuple[Json, ...]] = (
    {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l"},
        "spec": {
            "limits": [
                {
                    "type": "Container",
                    "default": {"cpu": "1"},
                    "defaultRequest": {"cpu": "500m"},
                    "min": {"cpu": "10m"},
                    "max": {"cpu": "2"},
                    "maxLimitRequestRatio": {"cpu": "4"},
                },
                {"type": "Pod", "max": {"memory": "1Gi"}},
            ]
        },
    },
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 9,
        "globalDefault": True,
        "preemptionPolicy": "Never",
    },
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]},
    },
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "s", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "d.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}},
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "generation": 1},
        "spec": {"maxUnavailable": "50%", "selector": SELECTOR, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
        "status": {
            "observedGeneration": 1,
            "expectedPods": 2,
            "disruptionsAllowed": 1,
            "currentHealthy": 2,
            "desiredHealthy": 1,
        },
    },
)
"""What decides what becomes of a new pod."""
