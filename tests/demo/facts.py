"""What a watch event says, in our words: parsed once, here. Pure."""

from dataclasses import dataclass

from tests.controlplane.client import Object
from tests.controlplane.objects import is_ready

ZONE_LABEL = "topology.kubernetes.io/zone"
REFUSED = "FailedScheduling"


@dataclass(frozen=True, slots=True)
class Node:
    """A node as it is now."""

    name: str
    zone: str
    cpu: int
    """Millicores that pods may request."""
    ready: bool = True
    cordoned: bool = False
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod as it is now; `node` is empty until it is bound."""

    name: str
    app: str
    """The Deployment it belongs to."""
    cpu: int
    """Millicores that it requests."""
    node: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An Event: no node is right for this pod."""

    pod: str
    message: str


@dataclass(frozen=True, slots=True)
class Gone:
    """A node or a pod that is deleted."""

    kind: str
    name: str


Fact = Node | Pod | Refusal | Gone


def read(kind: str, change: str, obj: Object) -> Fact | None:
    """The fact in one event of a watch on `kind`; None if it says nothing that is shown."""
    if change not in ("ADDED", "MODIFIED", "DELETED"):
        return None
    if kind == "Event":
        return read_event(obj) if change != "DELETED" else None
    if change == "DELETED":
        return Gone(kind, obj["metadata"]["name"])
    return read_node(obj) if kind == "Node" else read_pod(obj)


def read_node(obj: Object) -> Node:
    """Parse a node."""
    allocatable = obj["status"]["allocatable"]
    return Node(
        name=obj["metadata"]["name"],
        zone=obj["metadata"]["labels"].get(ZONE_LABEL, "no zone"),
        cpu=millicores(allocatable["cpu"]),
        ready=is_ready(obj),
        cordoned=obj["spec"].get("unschedulable", False),
        gpus=int(allocatable.get("nvidia.com/gpu", "0")),
    )


def read_pod(obj: Object) -> Pod:
    """Parse a pod."""
    requests = (container.get("resources", {}).get("requests", {}) for container in obj["spec"]["containers"])
    metadata = obj["metadata"]
    return Pod(
        name=metadata["name"],
        app=metadata.get("labels", {}).get("app", metadata["name"]),
        cpu=sum(millicores(amounts.get("cpu", "0")) for amounts in requests),
        node=obj["spec"].get("nodeName", ""),
    )


def read_event(obj: Object) -> Refusal | None:
    """Parse an Event of the core group."""
    if obj["reason"] != REFUSED or obj["involvedObject"]["kind"] != "Pod":
        return None
    return Refusal(obj["involvedObject"]["name"], obj["message"])


def millicores(quantity: str) -> int:
    """Parse an amount of cpu.

    >>> millicores("500m"), millicores("16"), millicores("0.5")
    (500, 16000, 500)
    """
    return int(quantity[:-1]) if quantity.endswith("m") else round(float(quantity) * 1000)
