"""The cast and the play: 20 nodes in 3 zones, five Deployments, and what happens to them in which order."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.controlplane.client import Object
from tests.controlplane.objects import a_node, a_pod, condition, is_ready
from tests.controlplane.sync import Client

BIG_NODE: Final = "c-7"
"""The node that comes last, and the only one that `huge` fits on."""

CORDONED: Final = "c-6"
GPU: Final = "nvidia.com/gpu"
NODES: Final = {"a": 7, "b": 7, "c": 6}
"""How many nodes each zone has. In `a` and `b` the last one has GPUs, of the others every second one is large."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Something is done to the cluster."""

    caption: str
    act: Callable[[Client], object]
    outcome: Callable[[Client], str]
    """Says what came of it; nothing until it has had its effect."""


def all_scenes() -> list[Scene]:
    """The play."""
    in_zone_b = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-b"]}
    term = {"weight": 100, "preference": {"matchExpressions": [in_zone_b]}}
    prefers_b = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    on_gpus = {"nodeSelector": {"accelerator": "gpu"}, "tolerations": [{"key": GPU, "operator": "Exists"}]}
    return [
        Scene(
            "20 nodes join: 3 zones, 2 sizes, 2 with GPUs and a taint, 1 cordoned.",
            lambda api: api.create_many(
                [a_fake_node(zone, n + 1) for zone, last in NODES.items() for n in range(last)]
            ),
            nodes_are_ready,
        ),
        Scene("web: 30 pods. They spread to where most is free.", create("web", 30, "500m"), bound("web", 30)),
        Scene("api: 20 pods that prefer zone-b.", create("api", 20, "500m", affinity=prefers_b), bound("api", 20)),
        Scene(
            "train: 4 pods that need a GPU. Only they tolerate the taint of the GPU nodes.",
            create("train", 4, "6", {GPU: "1"}, **on_gpus),
            bound("train", 4),
        ),
        Scene(
            "huge: 1 pod that asks for 48 cpus. No node has them: it waits, and is told why.",
            create("huge", 1, "48"),
            why_it_waits,
        ),
        Scene("batch: 60 small pods. They need not wait behind huge.", create("batch", 60, "100m"), bound("batch", 60)),
        Scene(
            "batch grows from 60 to 600 pods.",
            lambda api: scale(api, "batch", 600),
            bound("batch", 600),
        ),
        Scene(
            f"{CORDONED} is uncordoned, web grows to 50: the empty node gets them. huge does not fit.",
            uncordon_and_grow,
            bound("web", 50),
        ),
        Scene(
            f"{BIG_NODE} joins, a node with 64 cpus: huge is bound at once, nobody asked for it.",
            lambda api: api.create(sized(BIG_NODE, 64)),
            bound("huge", 1),
        ),
    ]


def a_fake_node(zone: str, number: int) -> Object:
    """Node `number` of a zone."""
    name = f"{zone}-{number}"
    if zone == "c" or number < NODES[zone]:
        return sized(name, 8 if number % 2 else 16, unschedulable=name == CORDONED)
    taint = {"key": GPU, "value": "present", "effect": "NoSchedule"}
    return sized(name, 32, labels={"accelerator": "gpu"}, taints=[taint], resources={GPU: "2"})


def sized(name: str, cpus: int, **more: Any) -> Object:
    """A node of the zone that its name begins with."""
    return a_node(name, cpu=f"{cpus}", memory=f"{cpus * 4}Gi", zone=f"zone-{name[0]}", **more)


def create(
    name: str, replicas: int, cpu: str, resources: Mapping[str, str] | None = None, **spec: Any
) -> Callable[[Client], object]:
    """Create a Deployment of pods for Loadmaster; `spec` is more of their spec."""
    labels = {"app": name}
    pod = a_pod("", cpu=cpu, memory="256Mi", labels=labels, resources=resources or {}, **spec)
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
        },
    }
    return lambda api: api.create(deployment)


def scale(api: Client, name: str, replicas: int) -> None:
    api.patch("apps/v1/Deployment", name, {"spec": {"replicas": replicas}}, "default")


def uncordon_and_grow(api: Client) -> None:
    api.patch("Node", CORDONED, {"spec": {"unschedulable": None}})
    scale(api, "web", 50)


def nodes_are_ready(api: Client) -> str:
    """Says how many, once all are."""
    ready = sum(map(is_ready, api.list("Node")))
    return f"{ready} nodes are ready" if ready == sum(NODES.values()) else ""


def bound(name: str, replicas: int) -> Callable[[Client], str]:
    """Says where the pods of a Deployment are, once so many have a node."""

    def outcome(api: Client) -> str:
        pods = api.list("Pod", "default", labels=f"app={name}")
        zones = Counter(f"zone-{pod['spec']['nodeName'][0]}" for pod in pods if "nodeName" in pod["spec"])
        if zones.total() < replicas:
            return ""
        places = ", ".join(f"{count} in {zone}" for zone, count in sorted(zones.items()))
        return f"all pods of {name} are bound: {places}"

    return outcome


def why_it_waits(api: Client) -> str:
    """Says what the pod of `huge` is told."""
    told = [condition(pod, "PodScheduled") for pod in api.list("Pod", "default", labels="app=huge")]
    return "".join(each["message"] for each in told if each is not None)
