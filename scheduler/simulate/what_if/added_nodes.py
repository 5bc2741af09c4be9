"""Nodes like one that is there, as they join the cluster: new names, and nothing on them but what each node has.

What comes with a node: the pods of DaemonSets and static pods, which are there before any other, its CSINode (how many
volumes it takes), its ResourceSlices (its devices) and its NodeResourceTopology (its NUMA nodes).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from scheduler.api.labels import HOSTNAME
from scheduler.api.objects import Node
from scheduler.api.pod import Pod
from scheduler.simulate.cluster import SimulatedCluster
from scheduler.simulate.daemon_sets import node_of, pinned
from scheduler.simulate.generated_names import uid_of
from scheduler.simulate.objects import OtherObject
from scheduler.simulate.what_if.owners import is_of_daemon_set, is_static

_TROUBLE: Final = "node.kubernetes.io/"
"""Taints that say how a node is doing begin so; a new one is doing well."""

_NAMED_BY_NODE: Final = ("CSINode (storage.k8s.io/v1)",)
_TOPOLOGY: Final = "NodeResourceTopology (topology.node.k8s.io/"
_SLICE: Final = "ResourceSlice (resource.k8s.io/v1)"


def with_nodes(cluster: SimulatedCluster, number: int, like: str) -> tuple[SimulatedCluster, list[str]]:
    """Return the cluster with so many more nodes, and their names. Their objects are added to its own.

    The node that they are like has to be there.
    """
    model = next(node for node in cluster.nodes if node.name == like)
    names = list(_names(like, number, {node.name for node in cluster.nodes}))
    there = [pod for pod in cluster.pods if _comes_with(pod, like)]
    pods = [_moved(pod, name) for name in names for pod in there]
    objects = [obj for obj in cluster.others if _is_of(obj, model)]
    cluster.others.add(_renamed(obj, like, name) for name in names for obj in objects)
    nodes = (*cluster.nodes, *(_copy(model, name) for name in names))
    return replace(cluster, nodes=nodes, pods=(*cluster.pods, *pods)), names


def _names(like: str, number: int, taken: set[str]) -> Iterator[str]:
    free = (name for place in range(1, number + len(taken) + 1) if (name := f"{like}-added-{place}") not in taken)
    for _ in range(number):
        yield next(free)


def _copy(model: Node, name: str) -> Node:
    """Neither cordoned nor in trouble, and without images. Labels with the name of the node have the new one."""
    old = model.name, model.labels.get(HOSTNAME, model.name)
    labels = {key: name if value in old else value for key, value in model.labels.items()}
    taints = tuple(taint for taint in model.taints if not taint.key.startswith(_TROUBLE))
    metadata = msgspec.structs.replace(
        model.metadata, name=name, uid=uid_of("Node", "", name), resource_version="", labels=labels
    )
    conditions = tuple(each for each in model.status.conditions or () if each.type == "Ready")
    return msgspec.structs.replace(
        model,
        metadata=metadata,
        spec=msgspec.structs.replace(model.spec, unschedulable=False, taints=taints),
        status=msgspec.structs.replace(model.status, images=None, conditions=conditions),
    )


def _comes_with(pod: Pod, node: str) -> bool:
    if pod.is_terminated or pod.is_deleting or node_of(pod) != node:
        return False
    return is_of_daemon_set(pod) or (bool(pod.node_name) and is_static(pod))


def _moved(pod: Pod, node: str) -> Pod:
    name = f"{pod.name}-{node}"
    metadata = msgspec.structs.replace(
        pod.metadata, name=name, uid=uid_of("Pod", pod.namespace, name), resource_version=""
    )
    spec = pod.spec
    if pod.node_name:
        spec = msgspec.structs.replace(spec, node_name=node)
    else:
        spec = msgspec.structs.replace(spec, affinity=pinned(spec.affinity, node))
    return type(pod)(metadata=metadata, spec=spec, status=pod.status)


def _is_of(obj: OtherObject, node: Node) -> bool:
    if obj.label in _NAMED_BY_NODE or obj.label.startswith(_TOPOLOGY):
        return _part(obj.content, "metadata").get("name") == node.name
    return obj.label == _SLICE and _part(obj.content, "spec").get("nodeName") == node.name


def _renamed(obj: OtherObject, like: str, name: str) -> OtherObject:
    metadata = dict(_part(obj.content, "metadata"))
    metadata.pop("uid", None)
    content: dict[str, Any] = {**obj.content, "metadata": {**metadata, "name": name}}
    if obj.label == _SLICE:
        spec = _part(content, "spec")
        pool = _part(spec, "pool")
        of_node = f"{pool.get('name') or like}-{name}"
        content["spec"] = {**spec, "nodeName": name, "pool": {**pool, "name": of_node}}
        content["metadata"]["name"] = f"{metadata.get('name')}-{name}"
    return obj._replace(content=content)


def _part(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = content.get(name)
    return found if isinstance(found, Mapping) else {}
