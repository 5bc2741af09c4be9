"""Try the pods with the earliest deadline first."""

import math
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from scheduler import framework as fw

DEADLINE: Final = "example.com/deadline"


class Deadline(fw.QueueSortPlugin):
    """By priority, as PrioritySort; of equal priority, by the time in the annotation `example.com/deadline`.

    Pods without a deadline, or with one that cannot be read, come last; among equals, the one that waited longer first.
    """

    name: ClassVar[str] = "Deadline"
    reads_raw_pods: ClassVar[bool] = True

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        return bool(self.sort_key(a) < self.sort_key(b))

    def sort_key(self, queued: fw.QueuedPod) -> Any:
        return -queued.pod.priority, _deadline(queued.pod), queued.timestamp


def _deadline(pod: fw.Pod) -> float:
    """Seconds since 1970. Users write the annotation, so it may hold anything."""
    text = pod.annotations.get(DEADLINE, "")
    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return math.inf
