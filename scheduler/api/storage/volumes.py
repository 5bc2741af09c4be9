"""The objects of storage that scheduling reads: persistent volumes, claims, classes, and what CSI drivers report.

As in `objects`: the API's field names in snake case, unknown fields dropped, quantities kept as written.
"""

from typing import Final

import msgspec

from scheduler.api.objects import (
    AnnotatedObject,
    ApiObject,
    InTreeSources,
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ResourceList,
    ResourceRequirements,
    Volume,
    Wire,
)
from scheduler.api.pods.pod import Pod

READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"

BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"


class ObjectReference(Wire, frozen=True):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class CSIPersistentVolumeSource(Wire, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Wire, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(InTreeSources, frozen=True):
    access_modes: tuple[str, ...] | None = None
    capacity: ResourceList | None = None
    claim_ref: ObjectReference | None = None
    csi: CSIPersistentVolumeSource | None = None
    node_affinity: VolumeNodeAffinity | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None


class PersistentVolumeStatus(Wire, frozen=True):
    phase: str = ""


class PersistentVolume(AnnotatedObject, frozen=True):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()

    @property
    def class_name(self) -> str:
        """Its class, empty for none. Rule: component-helpers, storage/volume (GetPersistentVolumeClass)."""
        return self.annotations.get(BETA_STORAGE_CLASS, self.spec.storage_class_name)


class PersistentVolumeClaimSpec(Wire, frozen=True):
    access_modes: tuple[str, ...] | None = None
    resources: ResourceRequirements | None = None
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str = ""


class PersistentVolumeClaimStatus(Wire, frozen=True):
    phase: str = ""


class PersistentVolumeClaim(AnnotatedObject, frozen=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def class_name(self) -> str:
        """Its class, empty for none. Rule: component-helpers, storage/volume (GetPersistentVolumeClaimClass)."""
        return self.annotations.get(BETA_STORAGE_CLASS, self.spec.storage_class_name or "")

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class TopologySelectorLabelRequirement(Wire, frozen=True):
    key: str = ""
    values: tuple[str, ...] | None = None


class TopologySelectorTerm(Wire, frozen=True):
    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] | None = None


class StorageClass(AnnotatedObject, frozen=True):
    provisioner: str = ""
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] | None = None

    @property
    def allowed_nodes(self) -> NodeSelector | None:
        """The nodes for which volumes of the class may be provisioned; None for all."""
        if not self.allowed_topologies:
            return None
        terms = tuple(
            NodeSelectorTerm(
                match_expressions=tuple(
                    NodeSelectorRequirement(key=label.key, operator="In", values=label.values)
                    for label in term.match_label_expressions or ()
                )
            )
            for term in self.allowed_topologies
        )
        return NodeSelector(node_selector_terms=terms)


class VolumeNodeResources(Wire, frozen=True):
    count: int | None = None
    """Limit on the driver's volumes of a node; None if unknown."""


class CSINodeDriver(Wire, frozen=True):
    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: tuple[str, ...] | None = None
    allocatable: VolumeNodeResources | None = None

    @property
    def limit(self) -> int | None:
        """Limit on the driver's volumes of the node, if known."""
        return self.allocatable.count if self.allocatable else None


class CSINodeSpec(Wire, frozen=True):
    drivers: tuple[CSINodeDriver, ...] | None = None


class CSINode(AnnotatedObject, frozen=True):
    """The reports of the CSI drivers on the node of the same name."""

    spec: CSINodeSpec = CSINodeSpec()

    @property
    def drivers(self) -> tuple[CSINodeDriver, ...]:
        return self.spec.drivers or ()


class CSIDriverSpec(Wire, frozen=True):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(ApiObject, frozen=True):
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(ApiObject, frozen=True):
    """The amount that a driver can still provision of a class, on nodes of `node_topology`."""

    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None


class VolumeAttachmentSource(Wire, frozen=True):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Wire, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(ApiObject, frozen=True):
    """A volume is attached to a node, or is to be."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


def claim_name_of(pod: Pod, volume: Volume) -> str | None:
    """Return the name of the claim behind a volume, including one made for the pod; None for other volumes.

    The name may be empty. Rule: component-helpers, storage/ephemeral (VolumeClaimName).
    """
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.name}-{volume.name}"
    return None


def made_for_another(claim: PersistentVolumeClaim, pod: Pod) -> str | None:
    """Return the problem if a claim with the name of the pod's ephemeral volume is not the pod's; None if it is.

    Rule: component-helpers, storage/ephemeral (VolumeIsForPod): the pod must be the claim's controller.
    """
    if claim.namespace == pod.namespace:
        # As in Go, the first owner that is a controller.
        controller = next((owner for owner in claim.metadata.owner_references or () if owner.controller), None)
        if controller is not None and controller.uid == pod.uid:
            return None
    return f"PVC {claim} was not created for pod {pod} (pod is not owner)"
