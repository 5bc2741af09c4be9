"""The claims and disks that pods on nodes use, as plugins see them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from scheduler.api.storage.pod_storage import VolumeKey


class RowChanges(Protocol):
    """The rows in which something changed, in order."""

    @property
    def position(self) -> int:
        """The position of a reader who has seen everything."""

    def since(self, position: int) -> Sequence[int] | None:
        """Return the rows that changed after `position`, with repeats; None if it could be any."""


class VolumeIndex(Protocol):
    """The claims and disks that pods on nodes use; also on rows that are not nodes (see `in_use` of NodeColumns)."""

    @property
    def changes(self) -> RowChanges:
        """The rows on which a pod with volumes came or went, or the node itself. What-ifs are not in it."""

    def users(self, key: VolumeKey) -> Mapping[int, int]:
        """Row → how many pods there use the claim or disk; also within a what-if. Read it, never keep it."""

    def most(self, row: int) -> int:
        """Return how many volumes the pods of a row have, one that two pods use counted twice; also in a what-if."""

    def has_odd_pods(self, row: int) -> bool:
        """Return whether a pod of a row has volumes that are not `regular` (PodStorage); also within a what-if."""
