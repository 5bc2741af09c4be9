"""The cluster and the pods of benchmarks, those of scheduler_perf: 32 cores and 256 GiB a node, in three zones.

Pods ask for 100m and 500Mi, unless a manifest says otherwise.
"""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from types import MappingProxyType
from typing import Any, Final

from scheduler.api.objects import Node, node_from_dict

Json = dict[str, Any]

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

POD: Final[Json] = {
    "metadata": {"name": "pod"},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "registry.k8s.io/pause:3.10",
                "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}},
            }
        ]
    },
}


def node_name(number: int) -> str:
    return f"node-{number:06d}"


def numbered_node(number: int, manifest: Mapping[str, Any] = MappingProxyType({})) -> Node:
    """A node with its own name; other fields of `manifest` are merged into it. Raises Unreadable."""
    name, metadata, status = node_name(number), manifest.get("metadata") or {}, manifest.get("status") or {}
    labels = {ZONE: f"zone-{number % 3}", **(metadata.get("labels") or {}), HOSTNAME: name}
    allocatable = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    return node_from_dict(
        {
            **manifest,
            "metadata": {**metadata, "name": name, "uid": "", "labels": labels},
            "status": {**status, "allocatable": {**allocatable, **(status.get("allocatable") or {})}},
        }
    )


def numbered_pod(manifest: Mapping[str, Any], number: int, scheduler_name: str, *, alike: bool) -> Json:
    """A pod as the manifest says, under a name of its own.

    If pods are not `alike`, it has a label of its own, and asks for an amount of cpu as few others do.
    """
    pod = deepcopy(dict(manifest))
    pod["metadata"] = metadata = {**pod.get("metadata", {})}
    metadata |= {"name": f"pod-{number}", "uid": f"uid-{number}"}
    pod["spec"] = spec = {**pod["spec"], "schedulerName": scheduler_name, "nodeName": ""}
    if not alike:
        metadata["labels"] = {**(metadata.get("labels") or {}), "example.com/number": str(number)}
        first, *others = spec["containers"]
        resources = first.get("resources") or {}
        requests = {**(resources.get("requests") or {}), "cpu": f"{100 + number % 1000}m"}
        spec["containers"] = [{**first, "resources": {**resources, "requests": requests}}, *others]
    return pod


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Keep the garbage collector from walking over the cluster, as the program does."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
