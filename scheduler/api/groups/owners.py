"""Owners of pods: they decide which pods come with a node, and what happens to pods when their node goes."""

import msgspec

from scheduler.api.objects import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    OwnerReference,
)
from scheduler.api.pods.pod import Pod


def controller_of(pod: Pod) -> OwnerReference | None:
    """Return the owner that makes another pod where this one goes."""
    return next((owner for owner in pod.metadata.owner_references or () if owner.controller), None)


def is_of_daemon_set(pod: Pod) -> bool:
    """Return whether it is bound to its node for ever."""
    owner = controller_of(pod)
    return owner is not None and owner.kind == "DaemonSet"


def is_static(pod: Pod) -> bool:
    """Return whether it is the image of a pod that its kubelet has from a file: deleting it changes nothing."""
    owner = controller_of(pod)
    return owner is not None and owner.kind == "Node"


def node_of(pod: Pod) -> str:
    """The node for which a daemon's pod was made: util.GetTargetNodeName."""
    if pod.node_name:
        return pod.node_name
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    for term in (required.node_selector_terms or ()) if required else ():
        for field in term.match_fields or ():
            if field.key == "metadata.name" and field.operator == "In" and field.values and len(field.values) == 1:
                return field.values[0]
    return ""


def pinned(affinity: Affinity | None, node: str) -> Affinity:
    """Return the affinity of a daemon's pod, made for another node."""
    own = affinity or Affinity()
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))
    towards_nodes = msgspec.structs.replace(own.node_affinity or NodeAffinity(), required=required)
    return msgspec.structs.replace(own, node_affinity=towards_nodes)
