"""The volumes of one node: how many of each CSI driver are attached to it, and how many it can have."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from plugins.volumes.limits.csi import Attached, CsiVolumes, Reference, VolumeError, unique_name
from scheduler import framework as fw
from scheduler.api.storage.pod_storage import PodStorage
from scheduler.api.storage.volumes import CSINode, PersistentVolume, VolumeAttachment


class _CountedPod(msgspec.Struct, frozen=True):
    """The attached volumes behind one pod on a node."""

    storage: PodStorage
    attached: tuple[tuple[str, str], ...]
    depends_on: tuple[Reference, ...]
    problem: str


class Excess(NamedTuple):
    """A driver whose limit on a node a pod's volumes would exceed."""

    driver: str
    limit: int
    used: int
    wanted: int
    """The number of the pod's volumes that are not attached yet."""


class NodeVolumes(msgspec.Struct, frozen=True):
    """The volumes that are attached to one node."""

    pods: Mapping[str, _CountedPod]
    """UID → pod with volumes."""

    attached: Attached
    """The volumes of the pods."""

    counts: Mapping[str, int]
    """Driver → volumes of pods, and those that are attached without a pod."""

    depends_on: frozenset[Reference]
    """The objects that were looked up."""

    problem: str
    """Why the volumes of a pod cannot be counted; empty if they can."""

    def exceeds(self, new: Attached, limits: Mapping[str, int]) -> bool:
        """Return whether a limit would be exceeded by the volumes of a pending pod.

        Raises VolumeError if that cannot be determined. Rule: nodevolumelimits/csi.go (Filter).
        """
        if not new or not limits:
            return False
        if self.problem:
            raise VolumeError(self.problem)
        return any(True for _ in self.excesses(new, limits))

    def excesses(self, new: Attached, limits: Mapping[str, int]) -> "Iterator[Excess]":
        """Yield the drivers whose limits would be exceeded, if the volumes of all pods can be counted."""
        wanted = Counter(driver for name, driver in new.items() if name not in self.attached)
        for driver, count in wanted.items():
            limit, used = limits.get(driver), self.counts.get(driver, 0)
            if limit is not None and used + count > limit:
                yield Excess(driver, limit, used, count)


NO_VOLUMES: Final = NodeVolumes({}, {}, {}, frozenset(), "")


class NodeCounter:
    """Counts the volumes of one node at a time."""

    def __init__(self, objects: fw.ObjectLister, volumes: CsiVolumes) -> None:
        self._objects = objects
        self._volumes = volumes

    def count(self, node: fw.NodeInfo, attachments: Collection[VolumeAttachment], before: NodeVolumes) -> NodeVolumes:
        """Count a node that has a CSINode by its current pods, also within a what-if.

        `before`: an earlier count of it, since which nothing that it depends on has changed. Only pods that are new
        since then are looked at.
        """
        pods: dict[str, _CountedPod] = {}
        attached: Attached = {}
        depends_on: set[Reference] = set()
        problem = ""
        for pod in node.pods:
            storage = pod.storage
            if not storage.volumes:
                continue
            found = before.pods.get(pod.uid)
            if found is None or (found.storage is not storage and found.storage != storage):
                found = self._of(pod)
            pods[pod.uid] = found
            attached.update(found.attached)
            depends_on.update(found.depends_on)
            problem = problem or found.problem
        counts = Counter(attached.values())
        counts.update(
            driver for name, driver in self._attached_by(attachments, depends_on).items() if name not in attached
        )
        return NodeVolumes(pods, attached, counts, frozenset(depends_on), problem)

    def _of(self, pod: fw.Pod) -> _CountedPod:
        attached: Attached = {}
        looked_up: set[Reference] = set()
        problem = ""
        try:
            self._volumes.of_running(pod, attached, looked_up)
        except VolumeError as error:
            problem = str(error)
        return _CountedPod(pod.storage, tuple(attached.items()), tuple(looked_up), problem)

    def _attached_by(self, attachments: Collection[VolumeAttachment], depends_on: set[Reference]) -> Attached:
        """The volumes of VolumeAttachments, whether or not a pod uses them."""
        found: Attached = {}
        for attachment in attachments:
            attacher, name = attachment.spec.attacher, attachment.spec.source.persistent_volume_name
            if not attacher or name is None:
                continue
            depends_on.add((fw.PERSISTENT_VOLUME, name, ""))
            volume: PersistentVolume | None = self._objects.get(fw.PERSISTENT_VOLUME, name)
            if volume is not None and volume.spec.csi is not None:
                found[unique_name(attacher, volume.spec.csi.volume_handle)] = attacher
        return found


def limits_of(csi_node: CSINode) -> dict[str, int]:
    """Driver → how many volumes the node can have. Drivers without a limit are left out."""
    return {driver.name: driver.limit for driver in csi_node.drivers if driver.limit is not None}
