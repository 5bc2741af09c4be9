"""Nodes like one that is there, as they join the cluster: new names, and nothing on them but what each node has.

What comes with a node: the pods of DaemonSets and static pods, and the objects of `node_objects`. Those that run on the
model run on the new node before anything else does; those that wait for the model wait for the new node, too.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from scheduler.api.labels import HOSTNAME
from scheduler.api.objects import Node
from scheduler.api.pod import Pod
from scheduler.framework.errors import ConfigError
from scheduler.simulate.cluster import SimulatedCluster
from scheduler.simulate.daemon_sets import node_of, pinned
from scheduler.simulate.generated_names import uid_of
from scheduler.simulate.what_if.node_objects import names_of, objects_of, renamed
from scheduler.simulate.what_if.owners import is_of_daemon_set, is_static

_PASSING: Final = frozenset(
    {
        *(
            f"node.kubernetes.io/{what}"
            for what in (
                "not-ready",
                "unreachable",
                "unschedulable",
                "memory-pressure",
                "disk-pressure",
                "pid-pressure",
                "network-unavailable",
                "out-of-service",
            )
        ),
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
        "ToBeDeletedByClusterAutoscaler",
        "DeletionCandidateOfClusterAutoscaler",
        "karpenter.sh/disrupted",
        "karpenter.sh/unregistered",
    }
)
"""Taints that say how a node is doing, or that it comes or goes. What they do not have in common is a prefix."""

_STARTUP: Final = ("startup-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/")
"""How taints begin that are gone once a node has started, by the conventions of cluster-autoscaler."""


MAX_PODS: Final = 1_000_000
"""Pods that come with all added nodes together: they take 1.4 GB."""


def with_nodes(cluster: SimulatedCluster, number: int, like: str) -> tuple[SimulatedCluster, list[str]]:
    """Return the cluster with so many more nodes, and their names. Their objects are added to its own.

    The node that they are like has to be there. Raises ConfigError if more comes with them than a simulation takes.
    """
    model = next(node for node in cluster.nodes if node.name == like)
    names = list(_names(like, number, {node.name for node in cluster.nodes}))
    there = [pod for pod in cluster.pods if _comes_with(pod, like)]
    if number * len(there) > MAX_PODS:
        problem = f"{len(there)} pods come with each, and a simulation takes {MAX_PODS:,} of them"
        raise ConfigError([f"--add-nodes {number}: {problem}"])
    pods = [_moved(pod, name) for name in names for pod in there]
    objects = objects_of(model, cluster.others)
    cluster.others.add(renamed(obj, like, name) for name in names for obj in objects)
    own = _own_labels(model, cluster.nodes)
    nodes = (*cluster.nodes, *(_copy(model, name, own) for name in names))
    return replace(cluster, nodes=nodes, pods=(*cluster.pods, *pods)), names


def _names(like: str, number: int, taken: set[str]) -> Iterator[str]:
    free = (name for place in range(1, number + len(taken) + 1) if (name := f"{like}-added-{place}") not in taken)
    for _ in range(number):
        yield next(free)


def _own_labels(model: Node, nodes: Sequence[Node]) -> set[str]:
    """The labels whose value is the name of the node; not those that another node has, too: there it means more."""
    names = names_of(model)
    own = {key for key, value in model.labels.items() if value in names}
    for node in nodes:
        if node is not model:
            own = {key for key in own if node.labels.get(key) != model.labels[key]}
    return own | {HOSTNAME} if HOSTNAME in model.labels else own


def _copy(model: Node, name: str, own_labels: Collection[str]) -> Node:
    """Neither cordoned nor in trouble, and without images."""
    labels = model.labels | dict.fromkeys(own_labels, name)
    taints = tuple(taint for taint in model.taints if taint.key not in _PASSING and not taint.key.startswith(_STARTUP))
    metadata = msgspec.structs.replace(
        model.metadata, name=name, uid=uid_of("Node", "", name), resource_version="", labels=labels
    )
    conditions = tuple(
        msgspec.structs.replace(each, status="True") for each in model.status.conditions or () if each.type == "Ready"
    )
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
