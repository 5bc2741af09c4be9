"""New nodes like an existing one, as they join the cluster: see `scheduler.state.nodes.new_nodes`.

The pods of DaemonSets that run on the model run on the new node before anything else does; those that wait for the
model wait for the new node, too.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from scheduler.api.objects import Node
from scheduler.framework.errors import ConfigError
from scheduler.simulate.cluster import SimulatedCluster
from scheduler.simulate.other_objects import OtherObject, resource_of_label
from scheduler.state.nodes.new_nodes import comes_with, names_of, new_names, node_like, own_labels, pod_for
from scheduler.state.nodes.node_objects import is_of_node, listed, part, renamed

_VOLUME: Final = "PersistentVolume"
_CAPACITY: Final = "CSIStorageCapacity (storage.k8s.io/v1)"
MAX_PODS: Final = 1_000_000
"""Pods that come with all added nodes together: they take 1.4 GB."""


def with_nodes(cluster: SimulatedCluster, number: int, like: str) -> tuple[SimulatedCluster, list[str]]:
    """Return the cluster with so many more nodes, and their names. Their objects are added to its own.

    The node that they are like has to be there. Raises ConfigError if more comes with them than a simulation takes.
    """
    model = next(node for node in cluster.nodes if node.name == like)
    names = list(islice(new_names(like, {node.name for node in cluster.nodes}), number))
    there = [pod for pod in cluster.pods if comes_with(pod, like)]
    if number * len(there) > MAX_PODS:
        problem = f"{len(there)} pods come with each, and a simulation takes {MAX_PODS:,} of them"
        raise ConfigError([f"--add-nodes {number}: {problem}"])
    pods = [pod_for(pod, name) for name in names for pod in there]
    objects = [obj for obj in cluster.others if is_of_node(resource_of_label(obj.label), obj.content, like)]
    cluster.others.add(_renamed(obj, like, name) for name in names for obj in objects)
    own = own_labels(model, cluster.nodes)
    nodes = (*cluster.nodes, *(node_like(model, name, own) for name in names))
    return replace(cluster, nodes=nodes, pods=(*cluster.pods, *pods)), names


def on_it_alone(node: Node, others: Iterable[OtherObject]) -> Counter[str]:
    """Return the number of objects that are storage on this node only, by kind."""
    names = names_of(node)
    return Counter(obj.label.partition(" ")[0] for obj in others if _is_storage_on(obj, names))


def _renamed(obj: OtherObject, like: str, name: str) -> OtherObject:
    return obj._replace(content=renamed(resource_of_label(obj.label), obj.content, like, name))


def _is_storage_on(obj: OtherObject, names: tuple[str, str]) -> bool:
    if obj.label == _CAPACITY:
        labels = part(part(obj.content, "nodeTopology"), "matchLabels")
        return any(value in names for value in labels.values())
    if obj.label != _VOLUME:
        return False
    required = part(part(part(obj.content, "spec"), "nodeAffinity"), "required")
    terms = listed(required.get("nodeSelectorTerms"))
    return bool(terms) and all(any(_is_for(each, names) for each in _requirements(term)) for term in terms)


def _requirements(term: Any) -> Iterator[Any]:
    if isinstance(term, Mapping):
        for name in ("matchExpressions", "matchFields"):
            yield from listed(term.get(name))


def _is_for(requirement: Any, names: tuple[str, str]) -> bool:
    if not isinstance(requirement, Mapping) or requirement.get("operator") != "In":
        return False
    values = listed(requirement.get("values"))
    return len(values) == 1 and values[0] in names
