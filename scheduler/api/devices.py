"""resource.k8s.io/v1, reduced to what scheduling reads: claims, slices of devices, classes.

Field names are the API's in snake case. Claims are also written back with these structs, so an allocation
has all of its fields. Quantities stay strings: `scheduler.api.quantities.quantity` reads them.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from scheduler.api.objects import (
    ApiObject,
    NodeSelector,
    ObjectMeta,
    PodResourceClaim,
    Quantity,
    Taint,
    Toleration,
    Wire,
)
from scheduler.api.pods.pod import Pod
from scheduler.api.wording.folding import unfolded

CLAIM_FINALIZER: Final = "resource.kubernetes.io/delete-protection"
EXTENDED_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
"""`"true"` on a claim that a scheduler made for the extended resources of a pod."""

IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""With the name of a DeviceClass: the implicit resource name of its devices."""

MAX_RESULTS: Final = 32
"""Devices that one claim can have."""

MAX_ALTERNATIVES: Final = 8
"""Entries of `firstAvailable`."""


class CELSelector(Wire, frozen=True):
    expression: str = ""


class DeviceSelector(Wire, frozen=True):
    cel: CELSelector | None = None


class CapacityRequirements(Wire, frozen=True):
    requests: Mapping[str, Quantity] | None = None


class DerivedAttribute(Wire, frozen=True):
    """An attribute for constraints, by an expression over the device."""

    name: str = ""
    expression: str = ""


class ExactRequest(Wire, frozen=True):
    """A request: `exactly` that, or an alternative in `firstAvailable`, which has a name of its own.

    Mode and count default as the API server fills them in.
    """

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] | None = None
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DerivedAttribute, ...] | None = None


class DeviceRequest(Wire, frozen=True):
    name: str = ""
    exactly: ExactRequest | None = None
    first_available: tuple[ExactRequest, ...] | None = None

    @property
    def alternatives(self) -> tuple[ExactRequest, ...]:
        """The requests of which one is to be fulfilled, the best first; none for a kind that is not known."""
        return self.first_available or ((self.exactly,) if self.exactly is not None else ())


class DeviceConstraint(Wire, frozen=True):
    requests: tuple[str, ...] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceConfiguration(Wire, frozen=True):
    """`opaque` goes from class or claim into the allocation as it is, byte by byte: it is the driver's."""

    opaque: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if isinstance(self.opaque, msgspec.Raw):
            # A copy of its own: what was decoded would keep the whole page in memory.
            msgspec.structs.force_setattr(self, "opaque", msgspec.Raw(unfolded(bytes(self.opaque))))


class ClaimConfiguration(DeviceConfiguration, frozen=True):
    requests: tuple[str, ...] | None = None


class DeviceClaim(Wire, frozen=True):
    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] | None = None
    config: tuple[ClaimConfiguration, ...] | None = None


class ClaimSpec(Wire, frozen=True):
    devices: DeviceClaim = DeviceClaim()


class DeviceResult(Wire, frozen=True):
    """A device that a claim has, for one of its requests."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: Mapping[str, Quantity] | None = None
    skip_node_operations: tuple[str, ...] | None = None


class AllocatedConfiguration(DeviceConfiguration, frozen=True):
    source: str = ""
    requests: tuple[str, ...] | None = None


class DeviceAllocation(Wire, frozen=True):
    results: tuple[DeviceResult, ...] | None = None
    config: tuple[AllocatedConfiguration, ...] | None = None


class Allocation(Wire, frozen=True):
    """The devices of a claim, and the nodes on which they can be used (None: on all)."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ConsumerReference(Wire, frozen=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Wire, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class DeviceStatus(Wire, frozen=True):
    """A driver's report about an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    conditions: tuple[DeviceCondition, ...] | None = None


class ClaimStatus(Wire, frozen=True):
    allocation: Allocation | None = None
    reserved_for: tuple[ConsumerReference, ...] | None = None
    devices: tuple[DeviceStatus, ...] | None = None


class ClaimAnnotations(Wire, frozen=True):
    """The one that is read."""

    for_extended_resources: str | None = msgspec.field(default=None, name=EXTENDED_CLAIM_ANNOTATION)


class ClaimMeta(ObjectMeta, frozen=True):
    finalizers: tuple[str, ...] | None = None
    read_annotations: ClaimAnnotations | None = msgspec.field(default=None, name="annotations")


class ResourceClaim(Wire, frozen=True):
    """A resource.k8s.io/v1 ResourceClaim."""

    metadata: ClaimMeta = ClaimMeta()
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def requests(self) -> tuple[DeviceRequest, ...]:
        return self.spec.devices.requests or ()

    @property
    def results(self) -> tuple[DeviceResult, ...]:
        """The devices that the claim has, if it is allocated."""
        return (self.status.allocation.devices.results if self.status.allocation is not None else None) or ()

    @property
    def is_for_extended_resources(self) -> bool:
        """Whether a scheduler made it for the extended resources of the pod that owns it."""
        annotations = self.metadata.read_annotations
        return annotations is not None and annotations.for_extended_resources == "true"

    def allocated(self, allocation: Allocation) -> "ResourceClaim":
        """This claim as it will be once the allocation is written."""
        return msgspec.structs.replace(self, status=msgspec.structs.replace(self.status, allocation=allocation))

    def __str__(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"


class ClassSpec(Wire, frozen=True):
    selectors: tuple[DeviceSelector, ...] | None = None
    config: tuple[DeviceConfiguration, ...] | None = None
    extended_resource_name: str | None = None


class DeviceClass(ApiObject, frozen=True):
    """A resource.k8s.io/v1 DeviceClass."""

    spec: ClassSpec = ClassSpec()


class Attribute(Wire, frozen=True):
    """An attribute: one of its values is set."""

    int_value: int | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string_value: str | None = msgspec.field(default=None, name="string")
    version_value: str | None = msgspec.field(default=None, name="version")
    int_values: tuple[int, ...] | None = msgspec.field(default=None, name="ints")
    bool_values: tuple[bool, ...] | None = msgspec.field(default=None, name="bools")
    string_values: tuple[str, ...] | None = msgspec.field(default=None, name="strings")
    version_values: tuple[str, ...] | None = msgspec.field(default=None, name="versions")


class CapacityRange(Wire, frozen=True):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityPolicy(Wire, frozen=True):
    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] | None = None
    valid_range: CapacityRange | None = None


class Capacity(Wire, frozen=True):
    value: Quantity = "0"
    request_policy: CapacityPolicy | None = None


class Counter(Wire, frozen=True):
    value: Quantity = "0"


class CounterSet(Wire, frozen=True):
    name: str = ""
    counters: Mapping[str, Counter] | None = None


class CounterConsumption(Wire, frozen=True):
    counter_set: str = ""
    counters: Mapping[str, Counter] | None = None
    compatibility_groups: tuple[str, ...] | None = None


class NodeMapping(Wire, frozen=True):
    """How much of a resource of its node a device stands for: for itself, or by how much is taken of a capacity."""

    capacity_key: str | None = None
    capacity_multiplier: Quantity | None = None
    device_multiplier: Quantity | None = None


class NodeOverhead(Wire, frozen=True):
    """The amount of a resource of its node that the use of a device costs."""

    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAmounts(Wire, frozen=True):
    mapping: NodeMapping | None = None
    overhead: NodeOverhead | None = None


class Device(Wire, frozen=True):
    name: str = ""
    attributes: Mapping[str, Attribute] | None = None
    capacity: Mapping[str, Capacity] | None = None
    consumes_counters: tuple[CounterConsumption, ...] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[Taint, ...] | None = None
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: Mapping[str, NodeAmounts] | None = None


class ResourcePool(Wire, frozen=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class SliceSpec(Wire, frozen=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] | None = None
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] | None = None
    skip_node_operations: tuple[str, ...] | None = None
    """Calls to the driver that a kubelet need not make; not every kubelet can leave them out."""


class ResourceSlice(ApiObject, frozen=True):
    """A resource.k8s.io/v1 ResourceSlice: some devices of a pool."""

    spec: SliceSpec = SliceSpec()


class DeviceTaintSelector(Wire, frozen=True):
    """The devices that have a taint; an absent field means any."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Wire, frozen=True):
    device_selector: DeviceTaintSelector | None = None
    taint: Taint = Taint()


class DeviceTaintRule(ApiObject, frozen=True):
    """A resource.k8s.io/v1 DeviceTaintRule."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


class ClaimProblem(Exception):
    """A claim of a pod is missing, or there is something wrong with it; the text is for the pod's owner."""


def claim_name_of(pod: Pod, written: PodResourceClaim) -> tuple[str | None, bool]:
    """Return the name of a pod's claim, None if there is none on purpose, and whether it must be the pod's own.

    Raises ClaimProblem. Rule: Name of k8s.io/dynamic-resource-allocation resourceclaim/resourceclaim.go at v0.36.3.
    """
    if written.resource_claim_name is not None:
        return written.resource_claim_name, False
    if written.resource_claim_template_name is None:
        unset = "none of the supported fields are set"
        raise ClaimProblem(f'pod "{pod}", spec.resourceClaim "{written.name}": {unset}')
    for status in pod.status.resource_claim_statuses or ():
        if status.name == written.name:
            return status.resource_claim_name, True
    raise ClaimProblem(f'pod "{pod}": ResourceClaim not created yet')
