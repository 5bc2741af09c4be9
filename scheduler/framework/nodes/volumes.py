"""The claims and disks that pods on nodes use, as plugins see them."""

from collections.abc import Mapping
from typing import Protocol

from scheduler.api.storage.pod_storage import VolumeKey


class VolumeIndex(Protocol):
    """The claims and disks that pods on nodes use; also on rows that are not nodes (see `in_use` of NodeColumns)."""

    def users(self, key: VolumeKey) -> Mapping[int, int]:
        """Row → how many pods there use the claim or disk; also within a what-if. Read it, never keep it."""

    def most(self, row: int) -> int:
        """Return how many volumes the pods of a row have, one that two pods use counted twice; also in a what-if."""

    def has_odd_pods(self, row: int) -> bool:
        """Return whether a pod of a row has volumes that are not `regular` (PodStorage); also within a what-if."""
