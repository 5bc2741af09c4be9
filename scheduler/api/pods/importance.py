"""The more important of two pods: by priority, then the one that has run longer.

Rule: MoreImportantPod in pkg/scheduler/util/utils.go at v1.36.3.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from scheduler.api.pods.pod import Pod

NOT_STARTED: Final = 2**62
"""The start of a pod that has not started: it is taken to start now, later than all that have."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def importance(pod: Pod) -> tuple[int, int]:
    """Sort by this for the most important pod first."""
    return -pod.priority, started(pod)


def started(pod: Pod) -> int:
    """When a pod started, in microseconds since 1970."""
    start = pod.status.start_time
    return NOT_STARTED if start is None else (start - _EPOCH) // _MICROSECOND


def created(pod: Pod) -> int:
    """When a pod was created, in microseconds since 1970; 0 if that is not known."""
    text = pod.metadata.creation_timestamp
    try:
        return 0 if text is None else (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND
    except (TypeError, ValueError):  # from an unchecked file
        return 0
