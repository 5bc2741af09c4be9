"""Schedule pods in order of priority."""

from dataclasses import dataclass
from typing import ClassVar

from scheduler import framework as fw


@dataclass(frozen=True, slots=True)
class PrioritySort(fw.QueueSortPlugin):
    """Higher priority first; among equals, the one that has waited longer in activeQ.

    Rule: queuesort/priority_sort.go at v1.36.3.
    """

    name: ClassVar[str] = "PrioritySort"

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        """Return whether `a` is tried before `b`."""
        return self.sort_key(a) < self.sort_key(b)

    def sort_key(self, queued: fw.QueuedPod) -> tuple[int, float]:
        """The negated priority, and the time in seconds at which it entered activeQ."""
        return -queued.priority, queued.timestamp
