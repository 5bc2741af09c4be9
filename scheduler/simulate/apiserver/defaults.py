"""Objects as written by hand, completed as the API server would.

Rules at v1.36.3: pkg/apis/core/v1/defaults.go (SetDefaults_Pod, SetDefaults_PodSpec, SetDefaults_NodeStatus) and what
admission always does; pkg/registry/core/pod/strategy.go (mutatePodAffinity, mutateTopologySpreadConstraints);
pkg/apis/storage/v1/defaults.go (SetDefaults_StorageClass). A volume without a claim is available once the controller
has seen it. Only what scheduling reads; what the struct defaults to already (protocol TCP, priority 0) needs no line.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from scheduler.api.decoding import reread
from scheduler.api.generated_uids import UIDS
from scheduler.api.label_selectors import IN, NOT_IN
from scheduler.api.objects import (
    Affinity,
    AnnotatedMeta,
    Container,
    ContainerPort,
    EphemeralVolumeSource,
    GroupAnnotations,
    LabelSelector,
    LabelSelectorRequirement,
    Node,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    OwnerReference,
    PodAffinity,
    PodAffinityTerm,
    PodMeta,
    PodSpec,
    ResourceList,
    ResourceRequirements,
    Volume,
    Wire,
    node_from_dict,
)
from scheduler.api.pods.pod import Pod, keep_raw_pod
from scheduler.simulate.files.objects import decoded
from scheduler.state.nodes.node_objects import part


class ServerAnnotations(GroupAnnotations, frozen=True):
    mirror: str | None = msgspec.field(default=None, name="kubernetes.io/config.mirror")


class ServerMeta(PodMeta, frozen=True):
    group_annotations: ServerAnnotations | None = msgspec.field(default=None, name="annotations")


class ServerEphemeral(EphemeralVolumeSource, frozen=True):
    volume_claim_template: Mapping[str, Any] | None = None


class ServerVolume(Volume, frozen=True):
    ephemeral: ServerEphemeral | None = None
    empty_dir: Wire | None = None


class ServerSpec(PodSpec, frozen=True):
    active_deadline_seconds: int | None = None
    runtime_class_name: str | None = None
    volumes: tuple[ServerVolume, ...] | None = None


class ServerPod(Pod, frozen=True, eq=False):
    metadata: ServerMeta = ServerMeta()
    spec: ServerSpec = ServerSpec()


def server_pod(raw: msgspec.Raw, *, keeps_raw: bool) -> ServerPod:
    """Decode a pod. `keeps_raw`: for plugins that read it as JSON, too. Raises Unreadable."""
    pod = decoded(raw, ServerPod)
    if keeps_raw:
        keep_raw_pod(pod, raw)
    return pod


DEFAULT_SCHEDULER: Final = "default-scheduler"
"""The API server's default for a pod's schedulerName."""

A = TypeVar("A", bound=PodAffinity)
M = TypeVar("M", bound=ObjectMeta)
S = TypeVar("S", bound=PodSpec)

_POD_LEVEL: Final = ("cpu", "memory", "hugepages-")


class WrittenNodeStatus(NodeStatus, frozen=True):
    capacity: ResourceList | None = None


class WrittenNode(Wire, frozen=True):
    """A node, including the fields from which other fields get their defaults."""

    metadata: AnnotatedMeta = AnnotatedMeta()
    spec: NodeSpec = NodeSpec()
    status: WrittenNodeStatus = WrittenNodeStatus()


def completed_pod(written: ServerPod) -> ServerPod:
    """Return the pod as the API server would store it."""
    spec = _with_own_labels(written.spec, written.metadata.labels or {})
    containers = _completed(spec.containers, host_network=spec.host_network)
    return replace(
        written,
        metadata=_owned(_identified(written.metadata, written.metadata.namespace or "default"), written.node_name),
        spec=replace(
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
        status = replace(status, allocatable=status.capacity)
    completed = Node(metadata=_identified(written.metadata, ""), spec=written.spec, status=status)
    return node_from_dict(reread(completed, object))  # without the capacity, which a scheduler does not read


def with_storage_defaults(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object with its defaults, if it is of one of these kinds; else as it is."""
    match content.get("kind"):
        case "StorageClass" if not content.get("volumeBindingMode"):
            return {**content, "volumeBindingMode": "Immediate"}
        case "PersistentVolume" if not part(content, "status").get("phase"):
            phase = "Bound" if part(content, "spec").get("claimRef") else "Available"
            return {**content, "status": {**part(content, "status"), "phase": phase}}
        case _:
            return content


def _identified(metadata: M, namespace: str) -> M:
    """Give the same object the same UID in every run: choices among equal nodes depend on it."""
    uid = metadata.uid or str(uuid.uuid5(UIDS, f"{namespace}/{metadata.name}"))
    return replace(metadata, namespace=namespace, uid=uid)


def _owned(metadata: ServerMeta, node: str) -> ServerMeta:
    """The image of a static pod belongs to its node, which old kubelets say in an annotation alone."""
    annotations = metadata.group_annotations
    if metadata.owner_references or annotations is None or annotations.mirror is None:
        return metadata
    owner = OwnerReference(api_version="v1", kind="Node", name=node, controller=True)
    return replace(metadata, owner_references=(owner,))


def _completed(containers: Sequence[Container] | None, *, host_network: bool) -> tuple[Container, ...] | None:
    if containers is None:
        return None
    return tuple(
        replace(
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
    return replace(resources, requests={**resources.limits, **(resources.requests or {})})


def _on_host(ports: tuple[ContainerPort, ...] | None) -> tuple[ContainerPort, ...] | None:
    if ports is None:
        return None
    return tuple(replace(port, host_port=port.host_port or port.container_port) for port in ports)


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
    return replace(resources, requests={**missing, **(resources.requests or {})})


def _with_own_labels(spec: S, labels: Mapping[str, str]) -> S:
    """Return the spec of a pod with `labels`, its label selectors narrowed by the label keys next to them."""
    affinity = spec.affinity
    if affinity is not None:
        spec = replace(spec, affinity=_affinity(affinity, labels))
    if spec.topology_spread_constraints:
        constraints = tuple(
            replace(spread, label_selector=_narrowed(spread.label_selector, IN, spread.match_label_keys, labels))
            for spread in spec.topology_spread_constraints
        )
        spec = replace(spec, topology_spread_constraints=constraints)
    return spec


def _affinity(affinity: Affinity, labels: Mapping[str, str]) -> Affinity:
    return replace(
        affinity,
        pod_affinity=_towards_pods(affinity.pod_affinity, labels),
        pod_anti_affinity=_towards_pods(affinity.pod_anti_affinity, labels),
    )


def _towards_pods(affinity: A | None, labels: Mapping[str, str]) -> A | None:
    if affinity is None:
        return None
    return replace(
        affinity,
        required=affinity.required and tuple(_term(term, labels) for term in affinity.required),
        preferred=affinity.preferred
        and tuple(
            replace(weighted, pod_affinity_term=_term(weighted.pod_affinity_term, labels))
            for weighted in affinity.preferred
        ),
    )


def _term(term: PodAffinityTerm, labels: Mapping[str, str]) -> PodAffinityTerm:
    selector = _narrowed(term.label_selector, IN, term.match_label_keys, labels)
    selector = _narrowed(selector, NOT_IN, term.mismatch_label_keys, labels)
    return term if selector is term.label_selector else replace(term, label_selector=selector)


def _narrowed(
    selector: LabelSelector | None, operator: str, keys: tuple[str, ...] | None, labels: Mapping[str, str]
) -> LabelSelector | None:
    """An absent selector matches nothing, and stays absent; a key that the pod lacks has no effect."""
    own = tuple(
        LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))
        for key in keys or ()
        if key in labels
    )
    if selector is None or not own:
        return selector
    return replace(selector, match_expressions=(*(selector.match_expressions or ()), *own))
