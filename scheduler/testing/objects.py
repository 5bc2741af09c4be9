"""Pods, nodes and other objects in one line, by keyword.

Fields that are left out are as the API server fills them in, or empty.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from scheduler.api.decoding import reread
from scheduler.api.objects import (
    Affinity,
    AnnotatedMeta,
    Container,
    ContainerImage,
    ContainerPort,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
    PodMeta,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    PreferredSchedulingTerm,
    ResourceList,
    ResourceRequirements,
    SchedulingGroup,
    Taint,
    Toleration,
    Volume,
)
from scheduler.api.objects import node_from_dict as node_from_dict
from scheduler.api.pods import pod as pods
from scheduler.api.pods.pod import Pod, keep_raw_pod
from scheduler.api.read_only import plain
from scheduler.api.unstructured import Unstructured

Quantity = str | int


def pod_from_dict(manifest: Any) -> Pod:
    """Make a pod from a manifest, which is its `raw` too. Raises Unreadable, which names the offending field."""
    pod = pods.pod_from_dict(manifest)
    keep_raw_pod(pod, msgspec.json.encode(manifest, enc_hook=plain))
    return pod


def as_kept(pod: Pod, *, raw: bool) -> Pod:
    """The pod as the scheduler keeps it where plugins read raw pods, or where none does: without `raw`."""
    if bool(pod.raw_json) == raw:
        return pod
    kept: Pod = msgspec.structs.replace(pod, raw_json=b"")
    if raw:
        keep_raw_pod(kept, msgspec.json.encode({"metadata": pod.metadata, "spec": pod.spec, "status": pod.status}))
    return kept


def a_container(
    name: str = "main",
    *,
    image: str = "registry.example/app:1",
    requests: Mapping[str, Quantity] | None = None,
    ports: Iterable[ContainerPort] = (),
    sidecar: bool = False,
) -> Container:
    """Make a container; with `sidecar`, an init container that goes on running."""
    return Container(
        name=name,
        image=image,
        resources=_requirements(requests),
        ports=tuple(ports) or None,
        restart_policy="Always" if sidecar else None,
    )


def a_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, Quantity] | None = None,
    ports: Iterable[ContainerPort] = (),
    containers: Iterable[Container] = (),
    init_containers: Iterable[Container] = (),
    overhead: Mapping[str, Quantity] | None = None,
    pod_requests: Mapping[str, Quantity] | None = None,
    priority: int | None = None,
    node_name: str = "",
    node_selector: Mapping[str, str] | None = None,
    node_affinity: NodeAffinity | None = None,
    tolerations: Iterable[Toleration] = (),
    volumes: Iterable[Volume] = (),
    gates: Iterable[str] = (),
    scheduler_name: str = "default-scheduler",
    status: PodStatus | None = None,
    annotations: Mapping[str, str] | None = None,
    group: str = "",
) -> Pod:
    """Make a pod with one container that has `requests` and `ports`, or with `containers` instead.

    `pod_requests` are those of the pod as a whole. The UID is made from namespace and name unless given. Annotations
    are for plugins that read raw pods; for all else in `raw`, `pod_from_dict` takes a manifest. `group`: the name of
    the PodGroup with which it is scheduled.
    """
    pod = Pod(
        metadata=PodMeta(name=name, namespace=namespace, uid=uid or f"{namespace}/{name}", labels=dict(labels or {})),
        spec=PodSpec(
            node_name=node_name,
            scheduler_name=scheduler_name,
            priority=priority,
            node_selector=None if node_selector is None else dict(node_selector),
            affinity=None if node_affinity is None else Affinity(node_affinity=node_affinity),
            tolerations=tuple(tolerations) or None,
            containers=tuple(containers) or (a_container(requests=requests, ports=ports),),
            init_containers=tuple(init_containers) or None,
            overhead=_amounts(overhead),
            resources=_requirements(pod_requests),
            scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates) or None,
            volumes=tuple(volumes) or None,
            scheduling_group=SchedulingGroup(pod_group_name=group) if group else None,
        ),
        status=status or PodStatus(),
    )
    if annotations is None:
        return pod
    written: Any = reread({"metadata": pod.metadata, "spec": pod.spec, "status": pod.status}, object)
    written["metadata"]["annotations"] = dict(annotations)
    return pod_from_dict(written)


def a_node(
    name: str = "node",
    *,
    cpu: Quantity = "4",
    memory: Quantity = "16Gi",
    pods: Quantity = 110,
    allocatable: Mapping[str, Quantity] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Node:
    """Make a node. `allocatable` is laid over cpu, memory and pods; `images` are names with their bytes."""
    return Node(
        metadata=AnnotatedMeta(
            name=name,
            uid=name,
            labels=dict(labels or {}),
            annotations=dict(annotations or {}),
        ),
        spec=NodeSpec(unschedulable=unschedulable, taints=tuple(taints) or None),
        status=NodeStatus(
            allocatable={"cpu": cpu, "memory": memory, "pods": pods, **(allocatable or {})},
            images=tuple(ContainerImage(names=(image,), size_bytes=size) for image, size in (images or {}).items())
            or None,
        ),
    )


def a_requirement(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    """Make one requirement of a node selector term: `a_requirement("zone", "In", "a", "b")`."""
    return NodeSelectorRequirement(key=key, operator=operator, values=values or None)


def a_term(*expressions: NodeSelectorRequirement, fields: Iterable[NodeSelectorRequirement] = ()) -> NodeSelectorTerm:
    """Make a term of `matchExpressions` and, by keyword, `matchFields`."""
    return NodeSelectorTerm(match_expressions=expressions or None, match_fields=tuple(fields) or None)


def required(*terms: NodeSelectorTerm) -> NodeAffinity:
    """Make a node affinity that requires any of the terms."""
    return NodeAffinity(required=NodeSelector(node_selector_terms=terms))


def preferred(*weighted: tuple[int, NodeSelectorTerm]) -> NodeAffinity:
    """Make a node affinity that prefers each of the terms by its weight."""
    return NodeAffinity(
        preferred=tuple(PreferredSchedulingTerm(weight=weight, preference=term) for weight, term in weighted)
    )


def an_object(
    name: str,
    *,
    namespace: str = "",
    uid: str = "",
    version: int | None = None,
    labels: Mapping[str, str] | None = None,
    **content: Any,
) -> Unstructured:
    """Make an object of a custom resource: `an_object("shop", namespace="web", spec={"pool": "blue"})`.

    `version` is its resource version. The UID is made from namespace and name unless given.
    """
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": uid or f"{namespace}/{name}"}
    if version is not None:
        metadata["resourceVersion"] = str(version)
    if labels is not None:
        metadata["labels"] = dict(labels)
    return Unstructured.from_dict({**content, "metadata": metadata})


def _requirements(requests: Mapping[str, Quantity] | None) -> ResourceRequirements | None:
    return None if requests is None else ResourceRequirements(requests=_amounts(requests))


def _amounts(amounts: Mapping[str, Quantity] | None) -> ResourceList | None:
    return None if amounts is None else dict(amounts)
