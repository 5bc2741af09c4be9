"""What the topics of generated clusters have in common.

A topic is one aspect of a cluster (resources, taints, ports …): how it shows on nodes, on pods and in the arguments of
plugins. A case mixes some of them, so that aspects meet without every pod failing on all of them.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Json = dict[str, Any]
T = TypeVar("T")


class Draw(random.Random):
    """Random choices, repeatable from a seed."""

    def chance(self, probability: float) -> bool:
        """True this often."""
        return self.random() < probability

    def some(self, items: Sequence[T], most: int) -> list[T]:
        """Between none and `most` different items."""
        return self.sample(items, self.randint(0, min(most, len(items))))

    def several(self, items: Sequence[T], most: int) -> list[T]:
        """Between one and `most` different items."""
        return self.sample(items, self.randint(1, min(most, len(items))))


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a topic may know about the case that it dresses."""

    node_names: Sequence[str]


class Topic:
    """One aspect of a cluster. Each method changes what it is given; by default nothing."""

    def objects(self, draw: Draw, cluster: Cluster) -> list[Json]:
        """Objects that are neither nodes nor pods."""
        return []

    def dress_node(self, draw: Draw, node: Json) -> None:
        """Show on a node."""

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        """Show on a pod, pending or assigned (`spec.nodeName` tells)."""

    def arguments(self, draw: Draw) -> dict[str, Json]:
        """Arguments of plugins in one profile, by plugin; none means their defaults."""
        return {}


def assigned(pod: Json) -> bool:
    """Whether the pod is on a node already."""
    return "nodeName" in pod["spec"]


def containers(pod: Json) -> list[Json]:
    """All containers, the init ones first."""
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
