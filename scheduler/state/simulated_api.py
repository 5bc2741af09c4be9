"""Plugins' writes in a simulation, or in a test of a plugin: they change the objects in memory only.

Where a pod would wait for a controller, its part is played here: a claim gets its volume at once, and a volume that has
to be provisioned is made as a driver would make it, for the nodes that the class allows.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from scheduler.api.decoding import convert, reread
from scheduler.api.objects import AnnotatedMeta
from scheduler.api.storage.csi_translation import BY_NAME
from scheduler.api.storage.volumes import (
    BIND_COMPLETED,
    SELECTED_NODE,
    CSIPersistentVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    VolumeNodeAffinity,
)
from scheduler.api.unstructured import Unstructured, unstructured_hook
from scheduler.framework.errors import ApiError
from scheduler.framework.events import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, STORAGE_CLASS
from scheduler.framework.handle import ObjectLister
from scheduler.framework.nodes.resources import struct_of

BOUND: Final = "Bound"

FIRST_VERSION: Final = 10**20
"""The first version of simulated writes, newer than those of an API server, which have 64 bits."""


class WriteObserver(Protocol):
    """Called for each write, as if the watch had reported it."""

    def object_changed(self, resource: str, new: Any) -> None: ...
    def object_deleted(self, resource: str, old: Any) -> None: ...


class SimulatedApi:
    """framework.handle.ApiWriter over the objects of a simulation."""

    objects: ObjectLister
    observer: WriteObserver

    shows = True
    """Whether writes are visible from then on; if not, they are answered and dropped."""

    def __init__(self) -> None:
        self._version = FIRST_VERSION

    async def create(self, resource: str, content: Mapping[str, Any]) -> Any:
        """Create an object under the name that `content` has. Raises ApiError."""
        metadata = content["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace", "")
        if self.objects.get(resource, name, namespace) is not None:
            raise ApiError(409, f'{resource} "{name}" already exists')
        self._version += 1
        stamp = {"metadata": {"resourceVersion": f"{self._version}", "uid": f"{resource}-{namespace}-{name}"}}
        new = reread(merged(content, stamp), struct_of(resource), unstructured_hook)
        if self.shows:
            self.observer.object_changed(resource, new)
        return new

    async def delete(self, resource: str, name: str, namespace: str, uid: str) -> None:
        """Delete the object of that name if it has this UID."""
        current = self.objects.get(resource, name, namespace)
        if current is not None and current.metadata.uid == uid and self.shows:
            self.observer.object_deleted(resource, current)

    async def update(self, resource: str, content: Mapping[str, Any], subresource: str = "") -> Any:
        """Replace the object of that name by `content`. Raises ApiError."""
        metadata = content["metadata"]
        return self._write(resource, metadata["name"], metadata.get("namespace", ""), content, whole=True)

    async def patch(
        self, resource: str, name: str, namespace: str, patch: Mapping[str, Any], subresource: str = ""
    ) -> Any:
        """Apply a JSON merge patch; what goes into a pod's status is answered, and dropped. Raises ApiError."""
        if resource == POD:
            answer = merged(patch, {"metadata": {"name": name, "namespace": namespace}})
            return Unstructured.from_dict(_parsed(answer))
        return self._write(resource, name, namespace, patch, whole=False)

    def _write(self, resource: str, name: str, namespace: str, content: Mapping[str, Any], *, whole: bool) -> Any:
        current = self.objects.get(resource, name, namespace)
        if current is None:
            raise ApiError(404, f'{resource} "{name}" not found')
        expected = content.get("metadata", {}).get("resourceVersion", "")
        if expected and expected != current.metadata.resource_version:
            raise ApiError(409, f'{resource} "{name}": the object has been modified')
        before = current.content if isinstance(current, Unstructured) else _parsed(current)
        self._version += 1
        stamp = {"metadata": {"resourceVersion": f"{self._version}", "uid": current.metadata.uid}}
        written: dict[str, Any] = merged(content if whole else merged(before, content), stamp)
        new = reread(written, struct_of(resource), unstructured_hook)
        if not self.shows:
            return new
        self.observer.object_changed(resource, new)
        if resource == PERSISTENT_VOLUME:
            self._bind(new)
        elif resource == PERSISTENT_VOLUME_CLAIM and SELECTED_NODE in new.annotations and not new.spec.volume_name:
            self._make_volume(new)
        return new

    def _bind(self, volume: PersistentVolume) -> None:
        """Bind the claim that the volume names."""
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            return
        claim: PersistentVolumeClaim | None = self.objects.get(
            PERSISTENT_VOLUME_CLAIM, reference.name, reference.namespace
        )
        if claim is None or claim.metadata.uid != reference.uid:
            return
        self._show(PERSISTENT_VOLUME, volume, status={"phase": BOUND})
        spec, annotations = {"volumeName": volume.name}, {BIND_COMPLETED: "yes"}
        self._show(
            PERSISTENT_VOLUME_CLAIM, claim, metadata={"annotations": annotations}, spec=spec, status={"phase": BOUND}
        )

    def _make_volume(self, claim: PersistentVolumeClaim) -> None:
        metadata, spec = claim.metadata, claim.spec
        name = f"pvc-{metadata.uid}"
        reference = ObjectReference(namespace=metadata.namespace, name=metadata.name, uid=metadata.uid)
        volume = PersistentVolume(
            metadata=AnnotatedMeta(name=name, uid=name, resource_version="0"),
            spec=PersistentVolumeSpec(
                access_modes=spec.access_modes,
                capacity=None if spec.resources is None else spec.resources.requests,
                claim_ref=reference,
                csi=self._csi(claim.class_name, name),
                node_affinity=self._node_affinity(claim.class_name),
                storage_class_name=claim.class_name,
                volume_attributes_class_name=spec.volume_attributes_class_name,
                volume_mode=spec.volume_mode,
            ),
            status=PersistentVolumeStatus(phase="Available"),
        )
        self.observer.object_changed(PERSISTENT_VOLUME, volume)
        self._bind(volume)

    def _csi(self, class_name: str, name: str) -> CSIPersistentVolumeSource | None:
        """The fields by which the volume counts towards a node's limit of this driver."""
        storage_class: StorageClass | None = self.objects.get(STORAGE_CLASS, class_name)
        if storage_class is None or not storage_class.provisioner:
            return None
        in_tree = BY_NAME.get(storage_class.provisioner)
        driver = storage_class.provisioner if in_tree is None else in_tree.driver
        return CSIPersistentVolumeSource(driver=driver, volume_handle=name)

    def _node_affinity(self, class_name: str) -> VolumeNodeAffinity | None:
        storage_class: StorageClass | None = self.objects.get(STORAGE_CLASS, class_name)
        allowed = None if storage_class is None else storage_class.allowed_nodes
        return None if allowed is None else VolumeNodeAffinity(required=allowed)

    def _show(self, resource: str, obj: Any, **changes: Mapping[str, Any]) -> None:
        self._version += 1
        stamp = {"metadata": {"resourceVersion": f"{self._version}"}}
        content = merged(merged(_parsed(obj), changes), stamp)
        self.observer.object_changed(resource, convert(content, type(obj)))


def _parsed(obj: Any) -> Any:
    return reread(obj, object)


def merged(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386); the arguments stay unchanged."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
