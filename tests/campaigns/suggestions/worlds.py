"""A cluster as objects of a file, and what a fresh engine says of a pod in it."""

import copy
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

import plugins
from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.config.documents import Document
from scheduler.config.load import config_from_dict
from scheduler.config.types import Config
from scheduler.engine.engine import Engine
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.simulate.cluster import SimulatedCluster, cluster_of
from scheduler.simulate.engine import adopted, engine_of
from scheduler.simulate.what_if.added_nodes import with_nodes
from tests.campaigns.suggestions.clusters import NAMESPACE, Json

CONFIG: Final[Config] = config_from_dict(
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "loadmaster"}],
    },
    plugins.IN_TREE,
)


class Invalid(ValueError):
    """What would not be accepted: an object, a command, a patch."""


@dataclass(frozen=True)
class World:
    """The objects of a cluster. Nothing changes them: what differs is another world."""

    objects: Sequence[Json]

    def read(self) -> SimulatedCluster:
        """Return the cluster as `explain --from FILE` reads it. Raises Invalid."""
        problems: list[str] = []
        documents = [Document(f"{each['kind']}/{each['metadata']['name']}", each) for each in self.objects]
        cluster = cluster_of(documents, problems)
        if problems:
            raise Invalid("; ".join(problems))
        return replace(cluster, pods=tuple(adopted(cluster.pods, CONFIG)))

    def changed(self, kind: str, name: str, changed: Json) -> "World":
        """Return a world with another version of an object."""
        return World([changed if _is(each, kind, name) else each for each in self.objects])

    def without(self, kind: str, name: str) -> "World":
        return World([each for each in self.objects if not _is(each, kind, name)])

    def get(self, kind: str, name: str) -> Json:
        """Return a copy of an object. Raises Invalid if it is not there."""
        for each in self.objects:
            if _is(each, kind, name):
                return copy.deepcopy(each)
        raise Invalid(f"there is no {kind} {name}")

    def nodes(self) -> list[Json]:
        return [each for each in self.objects if each["kind"] == "Node"]

    def running(self) -> list[Json]:
        return [each for each in self.objects if each["kind"] == "Pod" and each["spec"].get("nodeName")]

    def pending(self) -> list[str]:
        """Return the names of the pods and Deployments whose pods have no node."""
        found = [
            each["metadata"]["name"]
            for each in self.objects
            if each["kind"] == "Deployment" or (each["kind"] == "Pod" and not each["spec"].get("nodeName"))
        ]
        return sorted(found)

    def source(self, name: str) -> tuple[Json, Json]:
        """Return a copy of the object in which a pending pod is written, and the spec of the pod in it."""
        for kind in ("Pod", "Deployment"):
            if any(_is(each, kind, name) for each in self.objects):
                obj = self.get(kind, name)
                return obj, obj["spec"] if kind == "Pod" else obj["spec"]["template"]["spec"]
        raise Invalid(f"there is no pod {name}")


class Judge:
    """A fresh engine over a world."""

    def __init__(self, world: World, *, one_more_like: str = "", of_new: str = "") -> None:
        """Raises Invalid. `one_more_like`: a node of which there is one more, as by `--add-nodes 1 --like`.

        `of_new`: a label with which it has a value of its own.
        """
        self._stack = ExitStack()
        self.cluster = world.read()
        self.added = ""
        if one_more_like:
            self.cluster, (self.added,) = with_nodes(self.cluster, 1, one_more_like)
            nodes = (labelled(each, of_new) if each.name == self.added else each for each in self.cluster.nodes)
            self.cluster = replace(self.cluster, nodes=tuple(nodes))
        self.engine: Engine = self._stack.enter_context(engine_of(self.cluster, CONFIG, plugins.IN_TREE))

    def __enter__(self) -> "Judge":
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def pod(self, name: str) -> Pod:
        """Return the pending pod that is written under this name."""
        return pending_pod(self.cluster, name)

    def fits(self, pod: Pod) -> set[str]:
        """Return the nodes on which the pod can run."""
        names = self.engine.cache.table.names()
        try:
            search = self.engine.algorithm.search(self.engine.frameworks["loadmaster"], CycleState(), pod)
        except PluginError:
            return set()
        return {names[row] for row in search.feasible.tolist()}


def labelled(node: Node, key: str) -> Node:
    """Return the node with its name as the value of a label, if there is a key."""
    labels = {**node.labels, key: node.name} if key else node.labels
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, labels=labels))


def pending_pod(cluster: SimulatedCluster, name: str) -> Pod:
    """Return the pod of this name, or of the Deployment of this name."""
    for pod in cluster.pods:
        if not pod.node_name and (pod.name == name or pod.name.startswith(f"{name}-")):
            return pod
    raise Invalid(f"there is no pending pod {name}")


def _is(obj: Json, kind: str, name: str) -> bool:
    metadata: dict[str, Any] = obj["metadata"]
    return (obj["kind"], metadata["name"]) == (kind, name) and metadata.get("namespace", NAMESPACE) == NAMESPACE
