"""The parts of Kubernetes objects that scheduling reads, as structs decoded once at the edge.

Field names are the API's in snake case; unknown fields are dropped while decoding, and with them most of an
object's memory. The structs are trees without cycles, so the garbage collector does not track them (`gc=False`).
Quantities stay strings here: `scheduler.api.quantity` reads them, and `scheduler.api.requests` adds them up.
"""

from typing import Any, TypeAlias

import msgspec

ResourceList: TypeAlias = dict[str, str | int | float]
"""Resource name → quantity as written. JSON numbers occur in files written by hand."""


class Wire(msgspec.Struct, frozen=True, gc=False, kw_only=True, rename="camel", omit_defaults=True):
    """Base of everything decoded from the API."""


class ObjectMeta(Wire, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None


class NodeMeta(ObjectMeta, frozen=True):
    """Annotations are kept for nodes only: nothing reads those of pods, and they can be most of a pod's bytes."""

    annotations: dict[str, str] | None = None


class ResourceRequirements(Wire, frozen=True):
    requests: ResourceList | None = None


class ContainerPort(Wire, frozen=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(Wire, frozen=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str | None = None

    @property
    def is_sidecar(self) -> bool:
        """Whether an init container with this policy goes on running beside the containers."""
        return self.restart_policy == "Always"


class Toleration(Wire, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class Taint(Wire, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSelectorRequirement(Wire, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(Wire, frozen=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] | None = None
    match_fields: tuple[NodeSelectorRequirement, ...] | None = None


class NodeSelector(Wire, frozen=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class PreferredSchedulingTerm(Wire, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Wire, frozen=True):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredSchedulingTerm, ...] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Wire, frozen=True):
    node_affinity: NodeAffinity | None = None


class PodSchedulingGate(Wire, frozen=True):
    name: str = ""


class ImageVolumeSource(Wire, frozen=True):
    reference: str = ""


class Volume(Wire, frozen=True):
    name: str = ""
    image: ImageVolumeSource | None = None


class PodSpec(Wire, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    overhead: ResourceList | None = None
    resources: ResourceRequirements | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    host_network: bool = False


class PodCondition(Wire, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None


class ContainerStatus(Wire, frozen=True):
    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None


class PodResourceClaimStatus(Wire, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class PodExtendedResourceClaimStatus(Wire, frozen=True):
    resource_claim_name: str = ""


class PodStatus(Wire, frozen=True):
    phase: str = ""
    conditions: tuple[PodCondition, ...] | None = None
    nominated_node_name: str = ""
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class NodeSpec(Wire, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class ContainerImage(Wire, frozen=True):
    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class NodeCondition(Wire, frozen=True):
    type: str = ""
    status: str = ""


class NodeStatus(Wire, frozen=True):
    allocatable: ResourceList | None = None
    conditions: tuple[NodeCondition, ...] | None = None
    images: tuple[ContainerImage, ...] | None = None
    declared_features: tuple[str, ...] | None = None


class Node(Wire, frozen=True):
    """A v1.Node, reduced to what scheduling reads."""

    metadata: NodeMeta = NodeMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels or {}

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.spec.taints or ()


def decode_node(data: bytes) -> Node:
    """Read a node from JSON. Raises msgspec.DecodeError (a ValueError) that names the offending field."""
    return _node_decoder.decode(data)


def node_from_dict(obj: Any) -> Node:
    """Read a node from parsed JSON or YAML. Raises msgspec.ValidationError that names the offending field."""
    return msgspec.convert(obj, Node)


_node_decoder = msgspec.json.Decoder(Node)
