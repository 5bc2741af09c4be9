"""Pods and nodes as written by hand, completed as the API server would.

Rule: pkg/apis/core/v1/defaults.go at v1.36.3 (SetDefaults_Pod, SetDefaults_PodSpec, SetDefaults_NodeStatus) and what
admission always does. Only what scheduling reads; what the struct defaults to already (protocol TCP, priority 0)
needs no line here.
"""

import uuid
from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from scheduler.api.decoding import reread
from scheduler.api.generated_uids import UIDS
from scheduler.api.objects import (
    Container,
    ContainerPort,
    Node,
    NodeMeta,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    ResourceList,
    ResourceRequirements,
    Wire,
    node_from_dict,
)
from scheduler.api.pod import Pod
from scheduler.simulate.apiserver.match_label_keys import with_own_labels

DEFAULT_SCHEDULER: Final = "default-scheduler"
"""What the API server writes into a pod that names no scheduler."""

M = TypeVar("M", bound=ObjectMeta)

_POD_LEVEL: Final = ("cpu", "memory", "hugepages-")


class WrittenNodeStatus(NodeStatus, frozen=True):
    capacity: ResourceList | None = None


class WrittenNode(Wire, frozen=True):
    """A node, including the fields from which other fields get their defaults."""

    metadata: NodeMeta = NodeMeta()
    spec: NodeSpec = NodeSpec()
    status: WrittenNodeStatus = WrittenNodeStatus()


def completed_pod(written: Pod) -> Pod:
    """Return the pod as the API server would store it."""
    spec = with_own_labels(written.spec, written.metadata.labels or {})
    containers = _completed(spec.containers, host_network=spec.host_network)
    return msgspec.structs.replace(
        written,
        metadata=_identified(written.metadata, written.metadata.namespace or "default"),
        spec=msgspec.structs.replace(
            spec,
            scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER,
            containers=containers,
            init_containers=_completed(spec.init_containers, host_network=spec.host_network),
            resources=_completed_pod_level(spec.resources, containers),
        ),
    )


def completed_node(written: WrittenNode) -> Node:
    """Return the node as the API server would store it: by default all its capacity is allocatable."""
    status = written.status
    if status.allocatable is None:
        status = msgspec.structs.replace(status, allocatable=status.capacity)
    completed = Node(metadata=_identified(written.metadata, ""), spec=written.spec, status=status)
    return node_from_dict(reread(completed, object))  # without the capacity, which a scheduler does not read


def _identified(metadata: M, namespace: str) -> M:
    """Give the same object the same UID in every run: choices among equal nodes depend on it."""
    uid = metadata.uid or str(uuid.uuid5(UIDS, f"{namespace}/{metadata.name}"))
    return msgspec.structs.replace(metadata, namespace=namespace, uid=uid)


def _completed(containers: Sequence[Container] | None, *, host_network: bool) -> tuple[Container, ...] | None:
    if containers is None:
        return None
    return tuple(
        msgspec.structs.replace(
            container,
            resources=_with_requests(container.resources),
            ports=_on_host(container.ports) if host_network else container.ports,
        )
        for container in containers
    )


def _with_requests(resources: ResourceRequirements | None) -> ResourceRequirements | None:
    """A container with a limit and no request asks for as much as the limit."""
    if resources is None or not resources.limits:
        return resources
    return msgspec.structs.replace(resources, requests={**resources.limits, **(resources.requests or {})})


def _on_host(ports: tuple[ContainerPort, ...] | None) -> tuple[ContainerPort, ...] | None:
    if ports is None:
        return None
    return tuple(msgspec.structs.replace(port, host_port=port.host_port or port.container_port) for port in ports)


def _completed_pod_level(
    resources: ResourceRequirements | None, containers: Sequence[Container] | None
) -> ResourceRequirements | None:
    """A limit of the whole pod is its request, unless a container asks for that resource: then their sum counts."""
    if resources is None or not resources.limits:
        return resources
    asked = {name for c in containers or () if c.resources is not None for name in c.resources.requests or ()}
    missing = {
        name: amount for name, amount in resources.limits.items() if name.startswith(_POD_LEVEL) and name not in asked
    }
    return msgspec.structs.replace(resources, requests={**missing, **(resources.requests or {})})
