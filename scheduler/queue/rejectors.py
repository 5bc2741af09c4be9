"""The number of waiting pods that each plugin has refused, for the gauge `unschedulable_pods`."""

from collections import Counter
from collections.abc import Iterable, Mapping

from scheduler.framework.queued import QueuedEntity


class RejectorCounts:
    """Counts by (plugin, profile) of the pods that wait in any of the queues; pods in flight do not count."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, queued: QueuedEntity) -> None:
        """Count a pod that begins to wait."""
        for plugin in queued.unschedulable_plugins | queued.pending_plugins:
            self._counts[plugin, queued.pod.spec.scheduler_name] += 1

    def blame(self, queued: QueuedEntity, plugin: str) -> None:
        """Record that a plugin refused a waiting pod, and count it."""
        if plugin not in queued.unschedulable_plugins:
            if plugin not in queued.pending_plugins:
                self._counts[plugin, queued.pod.spec.scheduler_name] += 1
            queued.unschedulable_plugins.add(plugin)

    def remove(self, queued: QueuedEntity) -> None:
        """Stop counting a pod."""
        for plugin in queued.unschedulable_plugins | queued.pending_plugins:
            key = (plugin, queued.pod.spec.scheduler_name)
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]

    def clear(self) -> None:
        self._counts.clear()

    def as_mapping(self) -> Mapping[tuple[str, str], int]:
        return dict(self._counts)

    def check_invariants(self, waiting: Iterable[QueuedEntity]) -> None:
        """The counts are those of the pods that wait."""
        expected = RejectorCounts()
        for queued in waiting:
            expected.add(queued)
        assert self._counts == expected._counts
