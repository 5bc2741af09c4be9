"""The volumes of a pod that its node will attach, by CSI driver and unique name.

Rule: nodevolumelimits/csi.go (filterAttachableVolumes, getCSIDriverInfo, getCSIDriverInfoFromSC) at v1.36.3.
"""

from typing import Final, TypeAlias

from scheduler import framework as fw
from scheduler.api.objects import InTreeSources, Volume
from scheduler.api.storage.csi_translation import (
    BY_NAME,
    InTreePlugin,
    TranslationError,
    inline_handle,
    plugin_of,
    translated,
)
from scheduler.api.storage.volumes import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    claim_name_of,
    made_for_another,
)

Attached: TypeAlias = dict[str, str]
"""Unique name of a volume → its driver."""

Reference: TypeAlias = tuple[str, str, str]
"""Resource, name and namespace (empty for resources without) of an object, there or not."""

_NOT_MADE_YET: Final = "\0"
"""Begins the handle of a volume that is still to be provisioned: no driver can give one like it."""


class VolumeError(fw.AttemptFailed):
    """A pod's volume cannot be evaluated at all."""


class ClaimNotFound(LookupError):
    """A pending pod names a claim that is not there (yet)."""


def unique_name(driver: str, handle: str) -> str:
    """The name under which a volume is counted once, however many pods use it."""
    return f"{driver}/{handle}"


class CsiVolumes:
    """Looks up the volumes behind those of pods."""

    def __init__(self, handle: fw.Handle) -> None:
        self._handle = handle

    def of_pending(self, pod: fw.Pod, *, has_csi_node: bool) -> Attached:
        """Return what a node with or without a CSINode would attach for `pod`. Raises ClaimNotFound, VolumeError."""
        attached: Attached = {}
        for volume in pod.storage.volumes:
            self._add(attached, pod, volume, has_csi_node=has_csi_node, looked_up=set())
        return attached

    def of_running(self, pod: fw.Pod, into: Attached, looked_up: set[Reference]) -> None:
        """Add what the node of `pod`, which has a CSINode, attaches for it. Raises VolumeError.

        The objects that the answer depends on are added to `looked_up`. A claim that is not there is not counted:
        its driver is unknown.
        """
        for volume in pod.storage.volumes:
            try:
                self._add(into, pod, volume, has_csi_node=True, looked_up=looked_up)
            except ClaimNotFound:
                continue

    def _add(
        self,
        attached: Attached,
        pod: fw.Pod,
        volume: Volume,
        *,
        has_csi_node: bool,
        looked_up: set[Reference],
    ) -> None:
        name = claim_name_of(pod, volume)
        if name is None:
            plugin = _migrated(volume, has_csi_node=has_csi_node)
            if plugin is not None:
                attached[unique_name(plugin.driver, _inline_handle(volume))] = plugin.driver
            return
        if not name:
            raise VolumeError("PersistentVolumeClaim had no name")
        looked_up.add((fw.PERSISTENT_VOLUME_CLAIM, name, pod.namespace))
        claim: PersistentVolumeClaim | None = self._handle.objects.get(fw.PERSISTENT_VOLUME_CLAIM, name, pod.namespace)
        if claim is None:
            where = f"{pod.namespace}/{name}"
            raise ClaimNotFound(f'looking up PVC {where}: persistentvolumeclaim "{name}" not found')
        problem = None if volume.persistent_volume_claim is not None else made_for_another(claim, pod)
        if problem is not None:
            raise VolumeError(problem)
        driver, handle = self._driver_and_handle(claim, has_csi_node=has_csi_node, looked_up=looked_up)
        if driver and handle:
            attached[unique_name(driver, handle)] = driver

    def _driver_and_handle(
        self, claim: PersistentVolumeClaim, *, has_csi_node: bool, looked_up: set[Reference]
    ) -> tuple[str, str]:
        """Both are empty for a volume that is not counted."""
        volume: PersistentVolume | None = None
        if name := claim.spec.volume_name:
            looked_up.add((fw.PERSISTENT_VOLUME, name, ""))
            volume = self._handle.objects.get(fw.PERSISTENT_VOLUME, name)
        if volume is None:
            looked_up.add((fw.STORAGE_CLASS, claim.class_name, ""))
            return self._provisioner_and_handle(claim, has_csi_node=has_csi_node)
        source = volume.spec.csi
        if source is None:
            if _migrated(volume.spec, has_csi_node=has_csi_node) is None:
                return "", ""
            try:
                source = translated(volume).spec.csi
            except TranslationError:
                return "", ""
        return ("", "") if source is None else (source.driver, source.volume_handle)

    def _provisioner_and_handle(self, claim: PersistentVolumeClaim, *, has_csi_node: bool) -> tuple[str, str]:
        """A claim without a volume counts as one volume of its class."""
        name = claim.class_name
        attached: StorageClass | None = self._handle.objects.get(fw.STORAGE_CLASS, name) if name else None
        if attached is None:
            return "", ""
        handle = f"{_NOT_MADE_YET}{claim.namespace}/{claim.name}"
        plugin = BY_NAME.get(attached.provisioner)
        if plugin is None:
            return attached.provisioner, handle
        return (plugin.driver, handle) if plugin.migrated and has_csi_node else ("", "")


def _migrated(source: InTreeSources, *, has_csi_node: bool) -> InTreePlugin | None:
    """The plugin whose driver serves the volume now. Rule: nodevolumelimits/utils.go (isCSIMigrationOn)."""
    plugin = plugin_of(source) if has_csi_node else None
    return plugin if plugin is not None and plugin.migrated else None


def _inline_handle(volume: Volume) -> str:
    try:
        return inline_handle(volume)
    except TranslationError as error:
        raise VolumeError(f"converting volume({volume.name}) from inline to csi: {error}") from error
