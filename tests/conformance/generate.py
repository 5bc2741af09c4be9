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
from tests.conformance.generators.images import Images
from tests.conformance.generators.ports import Ports
from tests.conformance.generators.profiles import configuration
from tests.conformance.generators.resize import Resize
from tests.conformance.generators.resources import Resources
from tests.conformance.generators.taints import Taints
from tests.conformance.generators.topic import Cluster, Draw, Json, Topic
from tests.conformance.generators.waiting import Waiting

ALWAYS: Final[Sequence[Topic]] = (Resources(),)
TOPICS: Final[Sequence[Topic]] = (Resize(), Affinity(), Taints(), Ports(), Images(), Waiting())
ZONES: Final = ("zone-a", "zone-b", "zone-c")


def generate(seed: int) -> Json:
    """The case of this seed: a name, a configuration and objects."""
    draw = Draw(seed)
    topics = [*ALWAYS, *(topic for topic in TOPICS if draw.chance(0.45))]
    config = configuration(draw, topics)
    schedulers = [profile["schedulerName"] for profile in config["profiles"]]
    cluster = Cluster(node_names=tuple(f"n{number:03}" for number in range(1, node_count(draw) + 1)))
    nodes = [node(draw, name, topics) for name in cluster.node_names]
    running = [
        pod(draw, f"running-{i}", schedulers, topics, cluster, on_node=True)
        for i in range(running_count(draw, cluster))
    ]
    waiting = [pod(draw, f"waiting-{i}", schedulers, topics, cluster, on_node=False) for i in range(draw.randint(1, 8))]
    return {"name": f"seed-{seed}", "config": config, "objects": [*nodes, *running, *waiting]}


def node_count(draw: Draw) -> int:
    """A dozen at most, with exceptions on both sides."""
    return draw.choices((draw.randint(3, 12), 0, 1, 2, 60, 150), weights=(180, 4, 6, 6, 3, 1))[0]


def running_count(draw: Draw, cluster: Cluster) -> int:
    """Up to three a node."""
    return draw.randint(0, min(3 * len(cluster.node_names), 60))


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
