"""The objects of a cluster of some size, as large as those of real ones, each made from its number. Pure.

A third of the nodes is in each of three zones. Thirty pods of an app run under one ReplicaSet, behind one Service. Of
five apps three ask for nothing special, one is spread over the zones, and one prefers nodes without its own pods.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from scheduler.framework.events import CSI_DRIVER, CSI_NODE, NAMESPACE, STORAGE_CLASS
from scheduler.framework.nodes import resources
from scheduler.framework.nodes.resources import KNOWN, NODES, PODS, REPLICA_SET, SERVICE, ApiResource

Object = dict[str, Any]

ZONES: Final = 3
PODS_OF_AN_APP: Final = 30
NAMESPACES: Final = 50
IMAGES_OF_A_NODE: Final = 50
"""A kubelet reports no more."""

NODE_GROUPS: Final = 16
"""Nodes of one group have the same images."""

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
DRIVER: Final = "ebs.csi.aws.com"
CREATED: Final = "2026-01-05T08:00:00Z"

PLAIN: Final = "plain"
SPREAD: Final = "spread"
AFFINITY: Final = "affinity"
KINDS: Final = (PLAIN, SPREAD, AFFINITY)

SCHEDULER: Final = "loadmaster"
SAFE: Final = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class Family:
    """All objects of one resource that are there at the beginning."""

    resource: ApiResource
    kind: str
    count: int
    make: Callable[[int], Object]


@dataclass(frozen=True, slots=True)
class Size:
    """Of a cluster."""

    nodes: int
    pods: int

    @property
    def apps(self) -> int:
        return max(5, -(-self.pods // PODS_OF_AN_APP))

    def families(self) -> list[Family]:
        """In an order in which a real API server takes them."""
        return [
            Family(KNOWN[NAMESPACE], "Namespace", NAMESPACES, lambda number: _named(namespace(number))),
            Family(KNOWN[STORAGE_CLASS], "StorageClass", 1, lambda _: _named("gp3") | {"provisioner": DRIVER}),
            Family(KNOWN[CSI_DRIVER], "CSIDriver", 1, lambda _: _named(DRIVER) | {"spec": {"attachRequired": True}}),
            Family(NODES, "Node", self.nodes, node),
            Family(KNOWN[CSI_NODE], "CSINode", self.nodes, csi_node),
            Family(KNOWN[SERVICE], "Service", self.apps, service),
            Family(KNOWN[REPLICA_SET], "ReplicaSet", self.apps, replica_set),
            Family(PODS, "Pod", self.pods, self.running_pod),
        ]

    def running_pod(self, number: int) -> Object:
        """A pod that runs: the nodes get theirs in turn, so that no node has two of one app unless it must."""
        pod = pod_of(number // PODS_OF_AN_APP, f"{number % PODS_OF_AN_APP:05d}", node_name(number % self.nodes))
        pod["status"] = RUNNING
        return pod


def kind_of_app(app: int) -> str:
    return {3: SPREAD, 4: AFFINITY}.get(app % 5, PLAIN)


def apps_of(kind: str, size: Size, count: int = 10) -> list[int]:
    """Some apps of a kind, fewer if there are not as many."""
    return [app for app in range(size.apps) if kind_of_app(app) == kind][:count]


def node_name(number: int) -> str:
    return f"node-{number:06d}"


def namespace(app: int) -> str:
    return f"team-{app % NAMESPACES:02d}"


def app_name(app: int) -> str:
    return f"app-{app:05d}"


def node(number: int, heartbeat: str = CREATED) -> Object:
    """A node with 17 labels, 50 images and what else a kubelet reports; 16 KiB of JSON."""
    name, zone = node_name(number), f"eu-1{'abc'[number % ZONES]}"
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        HOSTNAME: name,
        "node.kubernetes.io/instance-type": "m7i.8xlarge",
        "topology.kubernetes.io/region": "eu-1",
        ZONE: zone,
        "topology.ebs.csi.aws.com/zone": zone,
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/instance-type": "m7i.8xlarge",
        "failure-domain.beta.kubernetes.io/region": "eu-1",
        "failure-domain.beta.kubernetes.io/zone": zone,
        "karpenter.sh/nodepool": f"pool-{number % NODE_GROUPS}",
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.k8s.aws/instance-family": "m7i",
        "karpenter.k8s.aws/instance-cpu": "32",
        "example.com/team": f"team-{number % 4}",
    }
    amounts = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
        "spec": {
            "podCIDR": f"10.{number >> 8 & 255}.{number & 255}.0/24",
            "providerID": f"aws:///{zone}/i-{number:017x}",
        },
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [
                {
                    "type": type_,
                    "status": "True" if type_ == "Ready" else "False",
                    "reason": f"Kubelet{type_}",
                    "message": f"kubelet reports {type_}",
                    "lastHeartbeatTime": heartbeat,
                    "lastTransitionTime": CREATED,
                }
                for type_ in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
            ],
            "addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": ip(number)}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "machineID": f"{number:032x}",
                "systemUUID": f"{number:032x}",
                "bootID": f"{number:032x}",
                "kernelVersion": "6.12.40",
                "osImage": "Bottlerocket OS 1.40.0",
                "containerRuntimeVersion": "containerd://2.1.4",
                "kubeletVersion": "v1.36.3",
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
            "images": _IMAGES[number % NODE_GROUPS],
        },
    }


def csi_node(number: int) -> Object:
    name = node_name(number)
    driver = {"name": DRIVER, "nodeID": f"i-{number:017x}", "topologyKeys": [ZONE], "allocatable": {"count": 25}}
    return _named(name) | {"spec": {"drivers": [driver]}}


def service(app: int) -> Object:
    spec = {"clusterIP": "None", "selector": {"app": app_name(app)}, "ports": [{"port": 80}]}
    return _in_namespace(app, app_name(app)) | {"spec": spec}


def replica_set(app: int) -> Object:
    labels = {"app": app_name(app), "pod-template-hash": template_hash(app)}
    pod = pod_of(app, "", "")
    template = {"metadata": {"labels": labels}, "spec": pod["spec"]}
    spec = {"replicas": PODS_OF_AN_APP, "selector": {"matchLabels": labels}, "template": template}
    return _in_namespace(app, f"{app_name(app)}-{template_hash(app)}") | {"spec": spec}


def pod_of(app: int, suffix: str, on_node: str) -> Object:
    """A pod of an app, with two containers, on a node or waiting for one; 5 KiB of JSON with its status."""
    labels = {
        "app": app_name(app),
        "app.kubernetes.io/name": app_name(app),
        "app.kubernetes.io/part-of": "shop",
        "pod-template-hash": template_hash(app),
    }
    owner = f"{app_name(app)}-{template_hash(app)}"
    metadata = {
        "name": f"{owner}-{suffix}",
        "generateName": f"{owner}-",
        "namespace": namespace(app),
        "labels": labels,
        "annotations": {"prometheus.io/scrape": "true", "checksum/config": "4f" * 32},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": owner,
                "uid": uid("ReplicaSet", app),
                "controller": True,
            }
        ],
    }
    spec: Object = {"schedulerName": SCHEDULER, **_POD_SPEC, "containers": _containers(app), **_wishes(app)}
    if on_node:
        spec["nodeName"] = on_node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def template_hash(app: int) -> str:
    """As Kubernetes encodes it: no text that YAML takes for a number."""
    return "".join(SAFE[ord(digit) % len(SAFE)] for digit in f"{app * 2654435761 % (1 << 32):08x}")


def uid(kind: str, number: int) -> str:
    return f"{number:08x}-0000-4000-8000-{kind.encode().hex()[:12]:0<12}"


def ip(number: int) -> str:
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def _wishes(app: int) -> Object:
    """What pods of an app ask for in addition to amounts."""
    selector = {"matchLabels": {"app": app_name(app)}}
    match kind_of_app(app):
        case "spread":
            zone = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
            return {"topologySpreadConstraints": [zone]}
        case "affinity":
            term = {"topologyKey": HOSTNAME, "labelSelector": selector}
            preferred = [{"weight": 100, "podAffinityTerm": term}]
            return {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}
        case _:
            return {}


def _containers(app: int) -> list[Object]:
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10, "failureThreshold": 3}
    mount = {"name": "token", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    return [
        {
            "name": name,
            "image": f"registry.example.com/shop/{app_name(app)}-{name}:v1.{app % 40}.0",
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "env": [{"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(6)],
            "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
            "livenessProbe": probe,
            "readinessProbe": probe,
            "volumeMounts": [mount],
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        }
        for name, cpu, memory in _CONTAINERS
    ]


def _named(name: str) -> Object:
    return {"metadata": {"name": name}}


def _in_namespace(app: int, name: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace(app), "labels": {"app": app_name(app)}}}


def _image(number: int) -> Object:
    repository = f"registry.example.com/shop/service-{number:04d}"
    names = [
        f"{repository}@sha256:{number:08x}{'ab' * 28}",
        f"{repository}:v1.{number % 40}.0",
    ]
    return {"names": names, "sizeBytes": 50_000_000 + 1_000_003 * number}


_IMAGES: Final = [[_image(20 * group + number) for number in range(IMAGES_OF_A_NODE)] for group in range(NODE_GROUPS)]
"""Of each group; neighbours have most of them in common."""

_CONTAINERS: Final = (("main", "200m", "512Mi"), ("proxy", "50m", "64Mi"))
"""Name, cpu and memory."""

_POD_SPEC: Final[Object] = {
    "serviceAccountName": "default",
    "automountServiceAccountToken": False,
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
    "priority": 0,
    "preemptionPolicy": "PreemptLowerPriority",
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "tolerations": [
        {"key": f"node.kubernetes.io/{trouble}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for trouble in ("not-ready", "unreachable")
    ],
    "volumes": [{"name": "token", "emptyDir": {"sizeLimit": "1Mi"}}],
}

RUNNING: Final[Object] = {
    "phase": "Running",
    "conditions": [
        {"type": type_, "status": "True", "lastProbeTime": None, "lastTransitionTime": CREATED}
        for type_ in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ],
    "startTime": CREATED,
    "containerStatuses": [
        {
            "name": name,
            "state": {"running": {"startedAt": CREATED}},
            "lastState": {},
            "ready": True,
            "restartCount": 0,
            "started": True,
            "allocatedResources": {"cpu": cpu, "memory": memory},
            "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
            "image": f"registry.example.com/shop/{name}:v1",
            "imageID": f"registry.example.com/shop/{name}@sha256:{'ab' * 32}",
            "containerID": f"containerd://{'cd' * 32}",
        }
        for name, cpu, memory in _CONTAINERS
    ],
    "qosClass": "Burstable",
}

WATCHED: Final = tuple({PODS.name: (PODS, "Pod"), NODES.name: (NODES, "Node")}.values()) + tuple(
    (resource, name.rpartition("/")[2]) for name, resource in resources.KNOWN.items()
)
"""All resources that a scheduler may watch, with their kinds."""
