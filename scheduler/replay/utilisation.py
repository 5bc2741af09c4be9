"""How full nodes are, and how many pods wait: to compare what two configurations make of the same pods."""

from collections.abc import Container
from typing import Any, Final

import numpy as np

from scheduler.cycle.engine import Engine

RESOURCES: Final = ("cpu", "memory")


def utilisation(engine: Engine, profiles: Container[str]) -> dict[str, Any]:
    """Return {"pods", "pending", "nodes", "nodesUsed", "cpu": {"requested", "allocatable", "ofUsed"}, "memory": …}.

    cpu in thousandths of a core, memory in bytes; `ofUsed`: allocatable of nodes that have pods. `profiles`: whose pods
    are pending if they have no node.
    """
    table = engine.cache.table
    in_use = table.in_use
    used = in_use & (table.pod_count > 0)
    waiting = sum(
        pod.spec.scheduler_name in profiles and not pod.is_deleting and engine.cache.get(pod.uid) is None
        for pod in engine.pods.values()
    )
    told: dict[str, Any] = {
        "pods": int(table.pod_count[in_use].sum()),
        "pending": waiting,
        "nodes": table.count,
        "nodesUsed": int(np.count_nonzero(used)),
    }
    for resource in RESOURCES:
        allocatable = table.allocatable(resource)
        told[resource] = {
            "requested": int(table.requested(resource)[in_use].sum()),
            "allocatable": int(allocatable[in_use].sum()),
            "ofUsed": int(allocatable[used].sum()),
        }
    return told
