"""Node tables for tests, and all that they say."""

from typing import Any

import msgspec

from scheduler.api.objects import ContainerPort, Node, Taint
from scheduler.api.pods.pod import Pod
from scheduler.framework.nodes.nodes import Aspect
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_pod

GPU = "example.com/gpu"
RESOURCES = ("cpu", "memory", "pods", "ephemeral-storage", GPU)
LOCKED = Taint(key="locked", effect="NoSchedule")
SLOW = Taint(key="slow", effect="PreferNoSchedule")
MOST = 2**63 - 1


def a_table(*nodes: Node, capacity: int = 4) -> NodeTable:
    table = NodeTable(capacity)
    for node in nodes:
        table.set_node(node)
    return table


def with_ports(name: str, *ports: ContainerPort) -> Pod:
    return a_pod(name, ports=ports)


def positions(table: NodeTable) -> dict[Aspect, int]:
    return {aspect: table.change_log(aspect).position for aspect in Aspect}


def everything(table: NodeTable) -> dict[str, Any]:
    """All that a plugin can read, and where the change logs stand."""
    table.check_invariants()
    return {
        "names": list(table.names()),
        "in use": table.in_use.tolist(),
        "count": table.count,
        "pod count": table.pod_count.tolist(),
        "allowed": table.allowed_pods.tolist(),
        "unschedulable": table.unschedulable.tolist(),
        "allocatable": {name: table.allocatable(name).tolist() for name in RESOURCES},
        "requested": {name: table.requested(name).tolist() for name in RESOURCES},
        "non zero": {name: table.non_zero_requested(name).tolist() for name in ("cpu", "memory")},
        "taints": {taint: column.tolist() for taint, column in table.taints.items()},
        "ports": msgspec.json.decode(msgspec.json.encode({str(key): ips for key, ips in table.host_ports.items()})),
        "images": {name: (image.size, set(image.rows)) for name, image in table.images.items()},
        "pods": {name: set(table.pods_on(name)) for name in table.node_names()},
        "positions": positions(table),
    }
