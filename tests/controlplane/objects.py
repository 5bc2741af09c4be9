"""Nodes and pods for tests and benchmarks, as the dictionaries that the API server takes."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tests.controlplane.client import Object

KWOK = {"kwok.x-k8s.io/node": "fake"}
"""The annotation by which kwok takes a node as its own. Without kwok it means nothing."""


def a_node(
    name: str,
    cpu: str = "32",
    memory: str = "256Gi",
    pods: str = "110",
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    zone: str = "",
    resources: Mapping[str, str] | None = None,
    unschedulable: bool = False,
    annotations: Mapping[str, str] = KWOK,
) -> Object:
    """A node that is Ready; `resources` are extended ones. Without annotations kwok leaves it, and its pods, alone.

    One POST is enough: the API server keeps the status of a node that is created, unlike that of most kinds.
    """
    amounts = {"cpu": cpu, "memory": memory, "pods": pods, **(resources or {})}
    own_labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if zone:
        own_labels["topology.kubernetes.io/zone"] = zone
    spec: Object = {"taints": [dict(taint) for taint in taints]} if taints else {}
    if unschedulable:
        spec["unschedulable"] = True
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**own_labels, **(labels or {})}, "annotations": dict(annotations)},
        "spec": spec,
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def a_pod(
    name: str,
    namespace: str = "",
    *,
    cpu: str = "100m",
    memory: str = "500Mi",
    labels: Mapping[str, str] | None = None,
    resources: Mapping[str, str] | None = None,
    scheduler: str = "loadmaster",
    **spec: Any,
) -> Object:
    """A pod for Loadmaster; more of its spec by the API's own names: `a_pod("a", nodeName="n", tolerations=[...])`.

    Its grace period is 0, so that a deleted pod is gone at once where no kubelet runs. Without a namespace it goes
    where the client creates it.
    """
    requests = {"cpu": cpu, "memory": memory, **(resources or {})}
    limits = dict(resources or {})  # extended resources must be limited to what they request
    container: Object = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    container["resources"] = {"requests": requests} | ({"limits": limits} if limits else {})
    metadata: Object = {"name": name, "labels": dict(labels or {})}
    if namespace:
        metadata["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **spec,
        },
    }


def condition(obj: Object, kind: str) -> Object | None:
    """The condition of that type in an object's status, None if there is none."""
    conditions = obj.get("status", {}).get("conditions") or []
    return next((entry for entry in conditions if entry["type"] == kind), None)


def is_ready(node: Object) -> bool:
    """Whether pods may be bound to it: Ready, and without the taint that a node has until a controller saw that."""
    taints = {taint["key"] for taint in node["spec"].get("taints", [])}
    ready = condition(node, "Ready")
    return ready is not None and ready["status"] == "True" and "node.kubernetes.io/not-ready" not in taints
