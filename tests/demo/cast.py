"""Who plays: 20 nodes in 3 zones and five Deployments, as the API server takes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.controlplane.client import Object
from tests.controlplane.objects import a_node, a_pod

GPU: Final = "nvidia.com/gpu"
CORDONED: Final = "c-6"
BIG_NODE: Final = "c-7"
"""The node that comes last, and the only one that `huge` fits on."""

SMALL_CPUS: Final = 8
LARGE_CPUS: Final = 16
GPU_CPUS: Final = 32
BIG_CPUS: Final = 64
GIB_PER_CPU: Final = 4

LAST_OF_ZONE: Final = {"a": 7, "b": 7, "c": 6}
"""How many nodes each zone has. In `a` and `b` the last one has GPUs."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A Deployment of pods for Loadmaster."""

    name: str
    replicas: int
    cpu: str
    resources: Mapping[str, str] = field(default_factory=dict)
    """Extended resources of each pod."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """More of the pods' spec, by the API's own names."""

    def manifest(self) -> Object:
        """The object to create."""
        labels = {"app": self.name}
        pod = a_pod("", cpu=self.cpu, memory="256Mi", labels=labels, resources=self.resources, **self.spec)
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": self.name, "labels": labels},
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
            },
        }


def prefers_zone(zone: str) -> dict[str, Any]:
    """An affinity to the nodes of a zone that gives way when they are full."""
    in_zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    term = {"weight": 100, "preference": {"matchExpressions": [in_zone]}}
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


WEB: Final = Deployment("web", 30, cpu="500m")
API: Final = Deployment("api", 20, cpu="500m", spec=prefers_zone("zone-b"))
TRAIN: Final = Deployment(
    "train",
    4,
    cpu="6",
    resources={GPU: "1"},
    spec={"nodeSelector": {"accelerator": "gpu"}, "tolerations": [{"key": GPU, "operator": "Exists"}]},
)
BATCH: Final = Deployment("batch", 60, cpu="100m")
HUGE: Final = Deployment("huge", 1, cpu="48")
DEPLOYMENTS: Final = (WEB, API, TRAIN, BATCH, HUGE)


def nodes() -> list[Object]:
    """The nodes that are there from the start: two sizes, two with GPUs and a taint, one cordoned."""
    return [node(zone, number) for zone, last in LAST_OF_ZONE.items() for number in range(1, last + 1)]


def node(zone: str, number: int) -> Object:
    """Node `number` of a zone: the last of `a` and of `b` has GPUs, of the others every second one is large."""
    name = f"{zone}-{number}"
    if zone != "c" and number == LAST_OF_ZONE[zone]:
        return sized(
            name,
            GPU_CPUS,
            labels={"accelerator": "gpu"},
            taints=[{"key": GPU, "value": "present", "effect": "NoSchedule"}],
            resources={GPU: "2"},
        )
    return sized(name, SMALL_CPUS if number % 2 else LARGE_CPUS, unschedulable=name == CORDONED)


def big_node() -> Object:
    """The node that `huge` waits for."""
    return sized(BIG_NODE, BIG_CPUS)


def sized(name: str, cpus: int, **more: Any) -> Object:
    """A node of the zone that its name begins with."""
    return a_node(name, cpu=str(cpus), memory=f"{cpus * GIB_PER_CPU}Gi", zone=f"zone-{name[0]}", **more)
