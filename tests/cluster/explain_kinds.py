"""Pods that are pending, each for another reason: what there is in the cluster, and how many suggestions work.

Names are the same each time, since docs/explain-gallery.md shows them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.cluster.devices import a_claim as a_resource_claim
from tests.controlplane import a_node, a_pod
from tests.controlplane.client import Object

NAMESPACE: Final = "shop"
POD: Final = "web"
LOW, PATIENT = "low", "patient"
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
GPU: Final = "example.com/gpu"

PRIORITY_CLASSES: Final = [
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": policy,
    }
    for name, value, policy in ((LOW, 10, "PreemptLowerPriority"), (PATIENT, 1000, "Never"))
]


@dataclass(frozen=True)
class Kind:
    """One kind of pending pods."""

    title: str
    """Its heading on the page."""

    story: str
    """What there is, in a sentence."""

    pod: Object
    nodes: Sequence[Object] = ()
    others: Sequence[Object] = ()
    """Pods that run, and other objects."""

    helps: int = 0
    """How many suggestions there are; each is carried out."""

    is_woken: bool = True
    """Whether a new node wakes the pod; if not, it is tried again after five minutes, as kube-scheduler does it."""

    asked: str = POD
    """The name that is asked for."""

    @property
    def is_tried(self) -> bool:
        """Whether the scheduler takes the pod for its own."""
        scheduler: str = self.pod["spec"]["schedulerName"]
        return scheduler == "loadmaster"


def _web(cpu: str = "100m", memory: str = "100Mi", **spec: Any) -> Object:
    return a_pod(POD, NAMESPACE, cpu=cpu, memory=memory, labels={"app": "web"}, **spec)


def _node(place: int, cpu: str = "4", memory: str = "8Gi", **more: Any) -> Object:
    return a_node(f"node-{place}", cpu=cpu, memory=memory, annotations={}, **more)


def _runs(name: str, node: int, *, app: str = "batch", cpu: str = "100m", memory: str = "100Mi", **spec: Any) -> Object:
    return a_pod(name, NAMESPACE, cpu=cpu, memory=memory, labels={"app": app}, nodeName=f"node-{node}", **spec)


def _terms(kind: str, app: str, key: str) -> Object:
    terms = [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}]
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _node_affinity(**term: Any) -> Object:
    required = {"nodeSelectorTerms": [{kind: [requirement] for kind, requirement in term.items()}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _with_claim() -> Object:
    return _web(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])


def _claim(**spec: Any) -> Object:
    resources = {"requests": {"storage": "10Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": NAMESPACE},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec},
    }


def _class(name: str, mode: str) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": mode,
    }


def _with_port(pod: Object) -> Object:
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": 8080}]
    return pod


_TAINT: Final = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
_SPREAD: Final = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}

KINDS: Final = (
    Kind(
        "Too little cpu",
        "The pod asks for 2 cpu. One node is full of others' pods, one is too small.",
        _web(cpu="2"),
        [_node(1), _node(2, cpu="1")],
        [_runs("batch-1", 1, cpu="3")],
        helps=4,
    ),
    Kind(
        "Taint",
        "All nodes are kept for pods that need a GPU.",
        _web(),
        [_node(1, taints=[_TAINT]), _node(2, taints=[_TAINT])],
        helps=2,
    ),
    Kind("Cordoned node", "The only node is cordoned.", _web(), [_node(1, unschedulable=True)], helps=2),
    Kind(
        "Node selector",
        "The pod's nodeSelector wants disk=ssd.",
        _web(nodeSelector={"disk": "ssd"}),
        [_node(1, labels={"disk": "hdd"}), _node(2)],
        helps=3,
    ),
    Kind(
        "Node affinity",
        "The pod's node affinity wants one of two zones.",
        _web(affinity=_node_affinity(matchExpressions={"key": ZONE, "operator": "In", "values": ["b", "c"]})),
        [_node(1, zone="a")],
        helps=1,
    ),
    Kind(
        "Topology spread",
        "The pods of the app are to be spread over zones, and the zone whose turn it is has no free node.",
        _web(cpu="2", topologySpreadConstraints=[_SPREAD]),
        [_node(1, zone="a", cpu="8"), _node(2, zone="b")],
        [_runs("web-1", 1, app="web"), _runs("batch-1", 2, cpu="3")],
        helps=5,
    ),
    Kind(
        "Pod affinity",
        "The pod wants to be on the node of a cache, and there is none.",
        _web(affinity=_terms("podAffinity", "cache", HOSTNAME)),
        [_node(1), _node(2)],
        helps=1,
    ),
    Kind(
        "The pod's own anti-affinity",
        "No two pods of the app may share a node.",
        _web(affinity=_terms("podAntiAffinity", "web", HOSTNAME)),
        [_node(1), _node(2)],
        [_runs("web-1", 1, app="web"), _runs("web-2", 2, app="web")],
        helps=4,
    ),
    Kind(
        "Another pod's anti-affinity",
        "A pod on the only node does not want this one next to it.",
        _web(),
        [_node(1)],
        [_runs("db-0", 1, app="db", affinity=_terms("podAntiAffinity", "web", HOSTNAME))],
        helps=3,
        is_woken=False,
    ),
    Kind(
        "Host port",
        "The pod's host port is in use.",
        _with_port(_web()),
        [_node(1)],
        [_with_port(_runs("proxy", 1))],
        helps=4,
    ),
    Kind(
        "Scheduling gate",
        "A gate of a quota system keeps the pod out of the queue.",
        _web(schedulingGates=[{"name": "example.com/quota"}]),
        [_node(1), _node(2)],
    ),
    Kind(
        "Missing volume claim", "The pod names a PersistentVolumeClaim that does not exist.", _with_claim(), [_node(1)]
    ),
    Kind(
        "Unbound volume claim without a class",
        "The pod's PersistentVolumeClaim has no storage class, and is not bound.",
        _with_claim(),
        [_node(1)],
        [_claim(storageClassName="")],
    ),
    Kind(
        "No volume to bind",
        "The claim's class has volumes that are made by hand, and none is left.",
        _with_claim(),
        [_node(1), _node(2)],
        [_class("local", "WaitForFirstConsumer"), _claim(storageClassName="local")],
    ),
    Kind(
        "Extended resource that no node has",
        "The pod asks for a GPU.",
        _web(resources={GPU: "1"}),
        [_node(1), _node(2)],
        helps=1,
    ),
    Kind(
        "Too many pods",
        "The node may have two pods, and has them.",
        _web(),
        [_node(1, pods="2")],
        [_runs("batch-1", 1), _runs("batch-2", 1)],
        helps=3,
    ),
    Kind(
        "DaemonSet's pod for a node that is gone",
        "The pod's node affinity has the name of a node that was deleted.",
        _web(affinity=_node_affinity(matchFields={"key": "metadata.name", "operator": "In", "values": ["node-9"]})),
        [_node(1)],
        helps=1,
    ),
    Kind(
        "Pods of lower priority that it may not preempt",
        "The pod's priority is higher, but its preemptionPolicy is Never.",
        _web(cpu="3", priorityClassName=PATIENT),
        [_node(1), _node(2)],
        [_runs("batch-1", 1, cpu="2", priorityClassName=LOW), _runs("batch-2", 2, cpu="2")],
        helps=4,
    ),
    Kind(
        "Several obstacles at once",
        "A group of nodes has more than one obstacle; the nearest miss comes first.",
        _web(cpu="2", nodeSelector={"disk": "ssd"}),
        [
            _node(1, labels={"disk": "ssd"}, unschedulable=True),
            _node(2, labels={"disk": "hdd"}, taints=[_TAINT]),
            _node(3, cpu="1", labels={"disk": "ssd"}, taints=[_TAINT]),
        ],
        helps=7,
    ),
    Kind(
        "Missing ResourceClaim",
        "The pod names a ResourceClaim that does not exist.",
        _web(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]),
        [_node(1)],
    ),
    Kind(
        "No devices for a ResourceClaim",
        "The claim wants devices of a class, and no node has any.",
        _web(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]),
        [_node(1), _node(2)],
        [
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": "gpu"},
                "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
            },
            a_resource_claim(
                "gpu",
                {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
                namespace=NAMESPACE,
            ),
        ],
    ),
    Kind(
        "Pod of another scheduler",
        "The pod's schedulerName has a typo.",
        a_pod(POD, NAMESPACE, scheduler="loadmastr"),
        [_node(1)],
    ),
    Kind("No such pod", "The name has a typo.", _web(cpu="64"), [_node(1)], asked="wed"),
)
