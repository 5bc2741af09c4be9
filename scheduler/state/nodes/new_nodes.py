"""New nodes like an existing one, as they join a cluster: with other names, and only what comes with every node.

With a node come the pods of DaemonSets, static pods, and the objects of `node_objects`.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

import msgspec

from scheduler.api.generated_uids import uid_of
from scheduler.api.groups.owners import is_of_daemon_set, is_static, node_of, pinned
from scheduler.api.labels import HOSTNAME
from scheduler.api.objects import Node, Taint
from scheduler.api.pods.pod import Pod

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


def new_names(like: str, taken: Collection[str]) -> Iterator[str]:
    """Yield names for nodes like one, other than those that are taken."""
    return (name for place in range(1, 1 << 62) if (name := f"{like}-added-{place}") not in taken)


def names_of(node: Node) -> tuple[str, str]:
    """Return the name of a node, and its name as a host."""
    return node.name, node.labels.get(HOSTNAME, node.name)


def own_labels(model: Node, nodes: Iterable[Node]) -> set[str]:
    """The labels whose value is the name of the node; not those that another node has, too: there it means more."""
    names = names_of(model)
    own = {key for key, value in model.labels.items() if value in names and key != HOSTNAME}
    for node in nodes if own else ():
        if node is not model:
            own = {key for key in own if node.labels.get(key) != model.labels[key]}
    return own | (model.labels.keys() & {HOSTNAME})


def lasting_taints(node: Node) -> tuple[Taint, ...]:
    """The taints that a new node has, too."""
    return tuple(taint for taint in node.taints if taint.key not in _PASSING and not taint.key.startswith(_STARTUP))


def node_like(model: Node, name: str, own: Collection[str]) -> Node:
    """Return a new node: neither cordoned nor in trouble, and without images. `own`: see `own_labels`."""
    metadata = msgspec.structs.replace(
        model.metadata,
        name=name,
        uid=uid_of("Node", "", name),
        resource_version="",
        labels={**model.labels} | dict.fromkeys(own, name),
    )
    conditions = tuple(
        msgspec.structs.replace(each, status="True") for each in model.status.conditions or () if each.type == "Ready"
    )
    return msgspec.structs.replace(
        model,
        metadata=metadata,
        spec=msgspec.structs.replace(model.spec, unschedulable=False, taints=lasting_taints(model)),
        status=msgspec.structs.replace(model.status, images=None, conditions=conditions),
    )


def comes_with(pod: Pod, node: str) -> bool:
    """Return whether a new node like this one has such a pod, too: one that runs there, or a daemon's that waits for
    it."""
    if pod.is_terminated or pod.is_deleting or node_of(pod) != node:
        return False
    return is_of_daemon_set(pod) or (bool(pod.node_name) and is_static(pod))


def pod_for(pod: Pod, node: str) -> Pod:
    """Return such a pod of a new node: one that runs there if this one runs, and else one that waits for it."""
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
