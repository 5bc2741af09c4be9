"""Random clusters, each from a seed: the same seed, the same case, on every machine.

    python -m tests.conformance.generate 42

prints case 42. What can show on a cluster is in `generators/`, a file a topic; a new topic is a class there and a word
in TOPICS here.
"""

import json
import sys
from collections.abc import Sequence
from typing import Final

from tests.conformance.generators.affinity import Affinity
from tests.conformance.generators.declared_features import DeclaredFeatures
from tests.conformance.generators.devices import Devices
from tests.conformance.generators.images import Images
from tests.conformance.generators.newer_devices import NewerDevices
from tests.conformance.generators.newer_storage import MountOptions, NewerStorage
from tests.conformance.generators.pod_affinity import PodAffinity
from tests.conformance.generators.ports import Ports
from tests.conformance.generators.preemption import Preemption
from tests.conformance.generators.profiles import configuration
from tests.conformance.generators.resize import Resize
from tests.conformance.generators.resources import Resources
from tests.conformance.generators.spread import Spread
from tests.conformance.generators.taints import Taints
from tests.conformance.generators.topic import Cluster, Draw, Json, Topic, containers
from tests.conformance.generators.volume_binding import VolumeBinding
from tests.conformance.generators.volumes import Volumes
from tests.conformance.generators.waiting import Waiting

ALWAYS: Final[Sequence[Topic]] = (Resources(),)
TOPICS: Final[Sequence[Topic]] = (
    Resize(),
    Affinity(),
    PodAffinity(),
    Spread(),
    Taints(),
    Ports(),
    Images(),
    Waiting(),
    Preemption(),
    DeclaredFeatures(),
    Devices(),
    Volumes(),
    VolumeBinding(),
    NewerDevices(),
    NewerStorage(),
    MountOptions(),
)

ZONES: Final = ("zone-a", "zone-b", "zone-c")


def generate(seed: int) -> Json:
    """The case of this seed: a name, a configuration and objects."""
    draw = Draw(seed)
    topics = some_topics(draw)
    config = configuration(draw, topics)
    cluster = cluster_of(node_count(draw))
    return {"name": f"seed-{seed}", "config": config, "objects": objects_of(draw, topics, config, cluster)}


def some_topics(draw: Draw) -> list[Topic]:
    """Many topics for how plugins get on with each other; few, so that the last plugins have nodes left to refuse."""
    share = draw.choice((0.45, 0.12))
    return [*ALWAYS, *(topic for topic in TOPICS if draw.chance(share))]


def cluster_of(count: int) -> Cluster:
    """A cluster of so many nodes."""
    return Cluster(node_names=tuple(f"n{number:03}" for number in range(1, count + 1)))


def objects_of(draw: Draw, topics: Sequence[Topic], config: Json, cluster: Cluster) -> list[Json]:
    """All objects of a cluster, the pods last."""
    schedulers = [profile["schedulerName"] for profile in config["profiles"]]
    nodes = [node(draw, name, topics) for name in cluster.node_names]
    running = [
        pod(draw, f"running-{i}", schedulers, topics, cluster, on_node=True)
        for i in range(running_count(draw, cluster))
    ]
    start(draw, running)
    part_ports(running)
    waiting = [pod(draw, f"waiting-{i}", schedulers, topics, cluster, on_node=False) for i in range(draw.randint(1, 8))]
    return [*others_of(draw, topics, cluster), *nodes, *running, *waiting]


def others_of(draw: Draw, topics: Sequence[Topic], cluster: Cluster) -> list[Json]:
    """The objects that are neither nodes nor pods."""
    return once([made for topic in topics for made in topic.objects(draw, cluster)])


def once(objects: Sequence[Json]) -> list[Json]:
    """Leave out what an earlier topic has made already, such as the CSINode of a node."""
    found: dict[tuple[str, str, str], Json] = {}
    for each in objects:
        metadata = each["metadata"]
        found.setdefault((each["kind"], metadata.get("namespace", ""), metadata["name"]), each)
    return list(found.values())


def node_count(draw: Draw) -> int:
    """A dozen at most, with exceptions on both sides."""
    return draw.choices((draw.randint(3, 12), 0, 1, 2, 60, 150), weights=(180, 4, 6, 6, 3, 1))[0]


def running_count(draw: Draw, cluster: Cluster) -> int:
    """Up to three a node."""
    return draw.randint(0, min(3 * len(cluster.node_names), 60))


def start(draw: Draw, running: Sequence[Json]) -> None:
    """Say when pods started, no two of a node at the same time: kube-scheduler has no rule which is more important."""
    on_node: dict[str, list[Json]] = {}
    for each in running:
        on_node.setdefault(each["spec"]["nodeName"], []).append(each)
    for pods in on_node.values():
        for minute, each in zip(draw.sample(range(len(pods) + 3), len(pods)), pods, strict=True):
            if minute:  # one at most may not have started yet
                each["status"]["startTime"] = f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00Z"


def part_ports(running: Sequence[Json]) -> None:
    """Let no two pods of a node hold the same port of an address: kube-scheduler would free it with the first to go."""
    held: set[tuple[str, str, str, int]] = set()
    for each in running:
        node_name, found = each["spec"]["nodeName"], set()
        for made in containers(each):
            ports = [port for port in made.get("ports", ()) if (node_name, *host_port(port)) not in held]
            found |= {(node_name, *host_port(port)) for port in ports if "hostPort" in port}
            if "ports" in made:
                made["ports"] = ports
        held |= found


def host_port(port: Json) -> tuple[str, str, int]:
    """Address, protocol and number of a host port."""
    return port.get("hostIP") or "0.0.0.0", port.get("protocol", "TCP"), port.get("hostPort", 0)


def node(draw: Draw, name: str, topics: Sequence[Topic]) -> Json:
    """A node, dressed by the topics."""
    labels = {"kubernetes.io/hostname": name}
    if draw.chance(0.8):
        labels["topology.kubernetes.io/zone"] = draw.choice(ZONES)
    made: Json = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {},
    }
    for topic in topics:
        topic.dress_node(draw, made)
    return made


def pod(
    draw: Draw, name: str, schedulers: Sequence[str], topics: Sequence[Topic], cluster: Cluster, *, on_node: bool
) -> Json:
    """A pod, dressed by the topics."""
    namespace = draw.choice(("default", "default", "team"))
    spec: Json = {
        "schedulerName": draw.choice(schedulers),
        "containers": [container(f"c{i}") for i in range(draw.choice((1, 1, 2, 3)))],
    }
    if draw.chance(0.25):
        spec["initContainers"] = [init_container(draw, f"i{i}") for i in range(draw.randint(1, 3))]
    if draw.chance(0.03):
        spec["schedulerName"] = "somebody-else"
    status: Json = {"phase": "Pending"}
    if on_node:
        spec["nodeName"] = draw.choice(cluster.node_names) if draw.chance(0.98) else "gone"
        status["phase"] = "Running"
    made: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-of-{name}"},
        "spec": spec,
        "status": status,
    }
    for topic in topics:
        topic.dress_pod(draw, made, cluster)
    return made


def container(name: str) -> Json:
    """A container that asks for nothing."""
    return {"name": name, "image": "app:v1"}


def init_container(draw: Draw, name: str) -> Json:
    """An init container, half of them sidecars."""
    return container(name) | ({"restartPolicy": "Always"} if draw.chance(0.5) else {})


if __name__ == "__main__":
    print(json.dumps(generate(int(sys.argv[1])), indent=2))
