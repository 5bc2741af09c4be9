"""What the watches have reported so far: where pods are, since when, and at which rate they were bound.

Times are seconds of one monotonic clock, taken when an event arrived here. They are not the scheduler's own word.
"""

from bisect import bisect_left
from dataclasses import dataclass

from tests.controlplane.client import Object
from tests.controlplane.objects import is_ready


@dataclass(frozen=True, slots=True)
class Node:
    """A node as it is now."""

    name: str
    zone: str
    cpu: int
    """Millicores that pods may request."""
    ready: bool
    cordoned: bool
    joined: float


@dataclass(slots=True)
class Pod:
    """A pod and its way to a node."""

    app: str
    """The Deployment it belongs to."""
    cpu: int
    """Millicores that it requests."""
    seen: float
    """When it was created."""
    node: str = ""
    bound: float = 0.0
    """When it was bound, if it has a node."""
    refusal: str = ""
    """The last FailedScheduling message, kept after it is bound."""


class Model:
    """The state of the cluster. `apply` takes events in the order in which they arrived."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.bound: list[Pod] = []
        """The pods in the order in which they were bound, those that are gone since included."""

    def apply(self, at: float, kind: str, change: str, obj: Object) -> None:
        """Take in one event of a watch on nodes, pods or FailedScheduling Events that arrived at time `at`."""
        name = obj["metadata"].get("name", "")
        if kind == "Event":
            pod = self.pods.get(obj["involvedObject"]["name"])
            if pod and not pod.node and change != "DELETED":  # else it reports an attempt before the last
                pod.refusal = obj["message"]
        elif change == "DELETED":
            self.nodes.pop(name, None)
            self.pods.pop(name, None)
        elif kind == "Node" and change in ("ADDED", "MODIFIED"):
            self.nodes[name] = _node(name, obj, self.nodes[name].joined if name in self.nodes else at)
        elif kind == "Pod" and change in ("ADDED", "MODIFIED"):
            self._take_pod(at, name, obj)

    def _take_pod(self, at: float, name: str, obj: Object) -> None:
        pod = self.pods.get(name)
        if pod is None:
            requests = [each.get("resources", {}).get("requests", {}) for each in obj["spec"]["containers"]]
            cpu = sum(_millicores(amounts.get("cpu", "0")) for amounts in requests)
            pod = self.pods[name] = Pod(obj["metadata"].get("labels", {}).get("app", name), cpu, at)
        node = obj["spec"].get("nodeName", "")
        if node and not pod.node:
            pod.node, pod.bound = node, at
            self.bound.append(pod)

    def in_zones(self) -> dict[str, list[Node]]:
        """The nodes by zone, all in order of their names."""
        zones: dict[str, list[Node]] = {}
        for node in sorted(self.nodes.values(), key=lambda node: (node.zone, len(node.name), node.name)):
            zones.setdefault(node.zone, []).append(node)
        return zones

    def on_node(self, name: str) -> dict[str, list[Pod]]:
        """The pods of a node by Deployment."""
        apps: dict[str, list[Pod]] = {}
        for pod in self.pods.values():
            if pod.node == name:
                apps.setdefault(pod.app, []).append(pod)
        return apps

    def bound_of(self, app: str) -> tuple[int, int]:
        """How many pods of a Deployment are bound, and how many there are."""
        nodes = [pod.node for pod in self.pods.values() if pod.app == app]
        return sum(map(bool, nodes)), len(nodes)

    def waiting(self) -> list[Pod]:
        """The pods that were refused and have no node."""
        return [pod for pod in self.pods.values() if pod.refusal and not pod.node]

    def rate(self, now: float) -> int:
        """Pods bound in the last second."""
        return len(self.bound) - bisect_left([pod.bound for pod in self.bound], now - 1)

    def best_rate(self) -> int:
        """The most pods bound within a second."""
        times = [pod.bound for pod in self.bound]
        return max((index - bisect_left(times, time - 1) for index, time in enumerate(times, 1)), default=0)


def _node(name: str, obj: Object, joined: float) -> Node:
    cpu = _millicores(obj["status"]["allocatable"]["cpu"])
    zone = obj["metadata"]["labels"].get("topology.kubernetes.io/zone", "no zone")
    return Node(name, zone, cpu, is_ready(obj), obj["spec"].get("unschedulable", False), joined)


def _millicores(quantity: str) -> int:
    return int(quantity[:-1]) if quantity.endswith("m") else round(float(quantity) * 1000)
