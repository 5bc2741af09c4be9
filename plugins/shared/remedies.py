"""Obstacles and remedies that several plugins have in common."""

import re
from typing import Final

import msgspec

from scheduler import framework as fw
from scheduler.api.pods.tolerations import UNSCHEDULABLE_TAINT

_CONTROL_PLANE: Final = frozenset(f"node-role.kubernetes.io/{role}" for role in ("control-plane", "master", "etcd"))
_HARDWARE: Final = re.compile(r"gpu|tpu|nvidia|accelerator")


def cordoned(node_name: str) -> fw.Obstacle:
    """The one obstacle of a cordoned node, which two plugins see: `spec.unschedulable`, and its taint."""
    uncordon = fw.Remedy(f"uncordon {node_name}", (), f"kubectl uncordon {node_name}", uncordoned)
    return fw.Obstacle("cordoned", (uncordon,))


def uncordoned(node: fw.Node) -> fw.Node:
    """Return the node as it is after `kubectl uncordon`, and after the node controller has seen that."""
    spec = msgspec.structs.replace(node.spec, unschedulable=False)
    return without_taint(msgspec.structs.replace(node, spec=spec), UNSCHEDULABLE_TAINT)


def without_taint(node: fw.Node, taint: fw.Taint) -> fw.Node:
    """Return the node without this taint, whatever its value."""
    key = taint.key, taint.effect
    left = tuple(each for each in node.taints if (each.key, each.effect) != key)
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=left))


def labelled(node: fw.Node, key: str, value: str) -> fw.Node:
    """Return the node with this label."""
    metadata = msgspec.structs.replace(node.metadata, labels={**node.labels, key: value})
    return msgspec.structs.replace(node, metadata=metadata)


def spelled_taint(taint: fw.Taint) -> str:
    """Spell a taint as kubectl does."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def toleration_of(taint: fw.Taint) -> fw.Change:
    """Add a toleration that covers this taint and no other."""
    toleration = {"key": taint.key, "operator": "Equal" if taint.value else "Exists", "effect": taint.effect}
    return fw.Change("add", "/spec/tolerations/-", toleration | ({"value": taint.value} if taint.value else {}))


def wall_of(taint: fw.Taint, pod: fw.Pod, node: fw.NodeInfo) -> str:
    """Say whom a taint of a node keeps off on purpose; empty if the pod asks for what it guards."""
    if taint.key in pod.requests:
        return ""
    if taint.key in _CONTROL_PLANE:
        return "it keeps workloads off the control plane"
    if taint.key in node.allocatable or _HARDWARE.search(f"{taint.key}={taint.value}".lower()):
        return "it keeps special hardware for pods that use it"
    return "it keeps such nodes for certain pods"


def pointer(key: str) -> str:
    """Return a key as a part of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
