"""Nodes that are avoided for a moment, because a kubelet has rejected a pod that should fit.

A node at rest has one more taint in the node table, so that TaintToleration and the messages to the pods' owners treat
it like any taint. It is ours alone: the API server never sees it.
"""

from typing import Final

import msgspec

from scheduler.api.objects import Node, Taint

REST: Final = Taint("loadmaster/rejected-a-pod", "", "NoSchedule")


def as_scheduled(node: Node, *, is_at_rest: bool) -> Node:
    """Return a node as it is to be scheduled: with our taint if it is at rest, otherwise without."""
    taints = tuple(taint for taint in node.taints if taint != REST)
    if is_at_rest:
        taints += (REST,)
    if taints == node.taints:
        return node
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=taints or None))
