"""How long pods run: by a deadline that the kubelet enforces, or by a promise.

    spec.activeDeadlineSeconds      enforced: the kubelet ends the pod
    loadmaster.dev/expected-seconds a promise of the pod's owner; a pod that breaks it is not evicted

A pod that runs longer than promised is like one that promised nothing: its end is unknown. A promise of a PodGroup
object is one of its pods.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from scheduler.api.pods.pod import Pod
from scheduler.framework.groups.pod_groups import PodGroups
from scheduler.groups.apis.annotations import whole_number

NEVER: Final = float("inf")

FAR: Final = 86_400.0
"""An end in more seconds than this is as good as none: nothing is kept for so long for what comes after it."""

EVICTED_SECONDS: Final = 30.0
"""How long a pod takes to leave whose time is up, or that is being deleted: the usual grace period."""


@dataclass(frozen=True, slots=True)
class End:
    """When a pod leaves its node."""

    seconds: float
    """From now on, at least 0; infinite if unknown."""

    is_late: bool = False
    """Whether it has promised an earlier end."""


class RunTimes:
    """The run times of pods."""

    def __init__(self, groups: PodGroups, *, trusts_promises: bool) -> None:
        """`trusts_promises`: whether promises count, or deadlines only."""
        self._groups = groups
        self._trusts_promises = trusts_promises

    def longest(self, pod: Pod) -> float:
        """Return the seconds that a pod runs at most from its start on; infinite if unknown."""
        return min(_deadline(pod), self._promise(pod))

    def end(self, pod: Pod, now: float) -> End:
        """Return when a pod leaves its node. `now`: seconds since 1970. One that has not started starts now."""
        if pod.is_deleting:
            return End(EVICTED_SECONDS)
        deadline, promise = _deadline(pod), self._promise(pod)
        if deadline == NEVER and promise == NEVER:
            return _UNKNOWN
        started = pod.status.start_time
        run = 0.0 if started is None else max(0.0, now - _timestamp(started))
        is_late = promise < run
        if deadline < run:
            return End(EVICTED_SECONDS, is_late)
        left = min(deadline, NEVER if is_late else promise) - run
        return End(left if left <= FAR else NEVER, is_late)

    def _promise(self, pod: Pod) -> float:
        if not self._trusts_promises:
            return NEVER
        annotations = pod.group_annotations
        seconds = 0 if annotations is None else whole_number(annotations.expected_seconds)
        if not seconds and self._groups.key_of(pod) is not None:
            group = self._groups.of(pod)
            seconds = 0 if group is None else int(group.expected_seconds)
        return float(seconds) if seconds else NEVER


def _deadline(pod: Pod) -> float:
    seconds = pod.spec.active_deadline_seconds
    return float(seconds) if seconds is not None and seconds > 0 else NEVER


def _timestamp(at: datetime) -> float:
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()


_UNKNOWN: Final = End(NEVER)
