"""The parts of Kubernetes objects that scheduling reads, as structs decoded once, on arrival.

Field names are the API's in snake case; unknown fields are dropped while decoding, and with them most of an
object's memory. The structs are trees without cycles, so the garbage collector does not track them (`gc=False`).
Quantities stay strings here: `quantities.quantity` reads them, and `pods.requests` adds them up.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from scheduler.api.decoding import convert
from scheduler.api.read_only import ReadOnlyStruct, unguarded

Quantity: TypeAlias = str | int | float
ResourceList: TypeAlias = Mapping[str, Quantity]
"""Resource name → quantity as written. JSON numbers occur in files written by hand."""

if TYPE_CHECKING:
    Strings: TypeAlias = Mapping[str, str]
else:
    Strings = Mapping[str, str] | None
"""Labels or annotations. Absent, or null in JSON, they read as empty: see ReadOnlyStruct."""

ABSENT: Any = None


class Wire(ReadOnlyStruct, frozen=True, gc=False, kw_only=True, rename="camel", omit_defaults=True):
    """Base of everything decoded from the API."""


class OwnerReference(Wire, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class LabelSelectorRequirement(Wire, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class LabelSelector(Wire, frozen=True):
    match_labels: Mapping[str, str] | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None


class ObjectMeta(Wire, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Strings = ABSENT
    owner_references: tuple[OwnerReference, ...] | None = None


labels_of: Final = unguarded(ObjectMeta, "labels")
"""The labels as they are stored, None for none, for the engine: they are read whenever a pod is counted."""


class AnnotatedMeta(ObjectMeta, frozen=True):
    """With all annotations. Not for pods, which have them in `Pod.raw`: they can be most of a pod's bytes."""

    annotations: Strings = ABSENT


class ApiObject(Wire, frozen=True):
    """An object with metadata."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.labels


class AnnotatedObject(ApiObject, frozen=True):
    """An object whose annotations are read."""

    metadata: AnnotatedMeta = AnnotatedMeta()

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.annotations


class GroupAnnotations(Wire, frozen=True):
    """The annotations that say with which pods one is scheduled, and how; others take no memory."""

    group: str = msgspec.field(default="", name="loadmaster.dev/pod-group")
    min_available: str = msgspec.field(default="", name="loadmaster.dev/pod-group-min-available")
    required_topology: str = msgspec.field(default="", name="loadmaster.dev/required-topology")
    preferred_topology: str = msgspec.field(default="", name="loadmaster.dev/preferred-topology")
    expected_seconds: str = msgspec.field(default="", name="loadmaster.dev/expected-seconds")
    gang: str = msgspec.field(default="", name="loadmaster.dev/gang")
    leader_worker_size: str = msgspec.field(default="", name="leaderworkerset.sigs.k8s.io/size")
    volcano_group: str = msgspec.field(default="", name="scheduling.k8s.io/group-name")
    koordinator_gang: str = msgspec.field(default="", name="gang.scheduling.koordinator.sh/name")
    koordinator_min_available: str = msgspec.field(default="", name="gang.scheduling.koordinator.sh/min-available")
    koordinator_waiting_time: str = msgspec.field(default="", name="gang.scheduling.koordinator.sh/waiting-time")
    kueue_required_topology: str = msgspec.field(default="", name="kueue.x-k8s.io/podset-required-topology")
    kueue_preferred_topology: str = msgspec.field(default="", name="kueue.x-k8s.io/podset-preferred-topology")


class GroupedMeta(ObjectMeta, frozen=True):
    """Of pods and of groups of them: of the annotations only those that are about groups."""

    group_annotations: GroupAnnotations | None = msgspec.field(default=None, name="annotations")


class PodMeta(GroupedMeta, frozen=True):
    """Of pods: also what says since when one is being deleted, and what holds it."""

    finalizers: tuple[str, ...] | None = None
    deletion_grace_period_seconds: int | None = None


class ContainerClaim(Wire, frozen=True):
    name: str = ""
    """Of an entry of the pod's `resourceClaims`."""


class ResourceRequirements(Wire, frozen=True):
    """Limits matter to pods with devices that stand for other resources; `/metrics/resources` shows them."""

    requests: ResourceList | None = None
    limits: ResourceList | None = None
    claims: tuple[ContainerClaim, ...] | None = None


class ContainerPort(Wire, frozen=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class ContainerRestartRule(Wire, frozen=True):
    action: str = ""


class VolumeMount(Wire, frozen=True):
    bind_mount_options: tuple[str, ...] | None = None


class Container(Wire, frozen=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] | None = None
    volume_mounts: tuple[VolumeMount, ...] | None = None

    @property
    def is_sidecar(self) -> bool:
        """Whether an init container with this policy goes on running alongside the containers."""
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


class PodAffinityTerm(Wire, frozen=True):
    """`matchLabelKeys` and `mismatchLabelKeys` are for the API server, which merges them into `labelSelector`."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class WeightedPodAffinityTerm(Wire, frozen=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Wire, frozen=True):
    required: tuple[PodAffinityTerm, ...] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAntiAffinity(PodAffinity, frozen=True):
    """The fields of PodAffinity, with the opposite meaning."""


class Affinity(Wire, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class TopologySpreadConstraint(Wire, frozen=True):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


class PodSchedulingGate(Wire, frozen=True):
    name: str = ""


class ImageVolumeSource(Wire, frozen=True):
    reference: str = ""


class PersistentVolumeClaimVolumeSource(Wire, frozen=True):
    claim_name: str = ""


class EphemeralVolumeSource(Wire, frozen=True):
    """A claim that is made for the pod from a template; only its presence matters here."""


class GCEPersistentDisk(Wire, frozen=True):
    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStore(Wire, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")


class AzureDisk(Wire, frozen=True):
    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str | None = None


class AzureFile(Wire, frozen=True):
    """Only its presence matters, as with VsphereVolume: only the other five count as their drivers' volumes."""


class Cinder(Wire, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")


class PortworxVolume(Wire, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")


class VsphereVolume(Wire, frozen=True):
    """See AzureFile."""


class ISCSI(Wire, frozen=True):
    iqn: str = ""
    read_only: bool = False


class RBD(Wire, frozen=True):
    monitors: tuple[str, ...] | None = None
    image: str = ""
    pool: str = ""
    read_only: bool = False


class CSIVolumeSource(Wire, frozen=True):
    driver: str = ""


class InTreeSources(Wire, frozen=True):
    """The disks that Kubernetes once mounted itself and CSI drivers serve now, in pods and in persistent volumes."""

    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    portworx_volume: PortworxVolume | None = None
    vsphere_volume: VsphereVolume | None = None


class Volume(InTreeSources, frozen=True):
    """A pod's volume. Sources that scheduling does not read are dropped; then only the name is left."""

    name: str = ""
    image: ImageVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    iscsi: ISCSI | None = None
    rbd: RBD | None = None
    csi: CSIVolumeSource | None = None
    """A volume that a driver makes for the pod alone, without a claim."""


class PodResourceClaim(Wire, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Wire, frozen=True):
    """The pods that are to be scheduled together with this one."""

    pod_group_name: str = ""


class PodSpec(Wire, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    active_deadline_seconds: int | None = None
    node_selector: Mapping[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    overhead: ResourceList | None = None
    resources: ResourceRequirements | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    host_network: bool = False
    host_users: bool | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    scheduling_group: SchedulingGroup | None = None


class Condition(Wire, frozen=True):
    """A metav1.Condition: with all of its fields, as it is also written."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


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


class MappedAmount(Wire, frozen=True):
    """An amount of its node's resource that devices stand for."""

    name: str = ""
    quantity: Quantity | None = None


class OverheadAmount(Wire, frozen=True):
    """An amount of its node's resource that devices cost."""

    name: str = ""
    per_pod: Quantity | None = None
    per_container: Quantity | None = None
    """For each container that names the claim."""


class ClaimAmounts(Wire, frozen=True):
    """The resources of its node that a pod takes by the devices of one ResourceClaim."""

    resource_claim_name: str = ""
    containers: tuple[str, ...] | None = None
    """Those that name the claim."""
    mapping: tuple[MappedAmount, ...] | None = None
    overhead: tuple[OverheadAmount, ...] | None = None


class PodStatus(Wire, frozen=True):
    phase: str = ""
    conditions: tuple[PodCondition, ...] | None = None
    nominated_node_name: str = ""
    start_time: datetime | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    node_allocatable_resource_claim_statuses: tuple[ClaimAmounts, ...] | None = None


class NodePodPreemptionPolicy(Wire, frozen=True):
    disable_resize_preemption: tuple[str, ...] | None = None
    """The owners that have disabled evictions for pods that are resized on the node."""


class NodeSpec(Wire, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None
    pod_preemption_policy: NodePodPreemptionPolicy | None = None


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


class Node(AnnotatedObject, frozen=True):
    """A v1.Node, reduced to what scheduling reads."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
    raw_json: bytes = msgspec.field(default=b"", name="(raw)")
    """The whole object as JSON, if extenders need it; empty if not. No API object has a field of this wire name."""

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.spec.taints or ()


def node_from_dict(obj: Any) -> Node:
    """Read a node from parsed JSON or YAML. Raises Unreadable, which names the offending field."""
    return convert(obj, Node)
