"""A pod in the queue, with the history of its attempts."""

from dataclasses import dataclass, field, fields
from typing import cast

from scheduler.api.pod import Pod
from scheduler.api.read_only import read_only_attribute


@dataclass(slots=True, eq=False)
class QueuedPod:
    """kube-scheduler's QueuedPodInfo. Times are seconds of the queue's clock."""

    pod: Pod
    timestamp: float
    """When it came, or came back from its last failed attempt: the order among equals."""

    attempts: int = 0
    initial_attempt_timestamp: float | None = None
    """When it first entered activeQ; the start of what `pod_scheduling_sli_duration_seconds` measures."""

    activation: int = 0
    """Number of its last entry into activeQ."""

    backoff_expiration: float = 0.0
    unschedulable_count: int = 0
    """Attempts in a row that ended unschedulable; the exponent of its backoff."""

    consecutive_errors_count: int = 0
    """Attempts in a row that ended in an error; the exponent of its backoff after errors."""

    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    gating_plugin: str = ""
    """The PreEnqueue plugin that keeps it out of activeQ; empty if none."""

    was_flushed: bool = False
    """Whether it left the unschedulable pods because of their age, not because of an event."""

    created: float = field(init=False)
    """When it came into the queue; its first `timestamp`."""

    attempt_began: float | None = None
    """When its latest attempt began; None before the first."""

    def __post_init__(self) -> None:
        self.created = self.timestamp

    @property
    def gated(self) -> bool:
        return bool(self.gating_plugin)


class _Shown:
    """The result of `shown`."""

    __slots__ = ("_queued",)

    def __init__(self, queued: QueuedPod) -> None:
        self._queued = queued

    gated = read_only_attribute("_queued.gated")

    @property
    def unschedulable_plugins(self) -> frozenset[str]:
        return frozenset(self._queued.unschedulable_plugins)

    @property
    def pending_plugins(self) -> frozenset[str]:
        return frozenset(self._queued.pending_plugins)


for _each in fields(QueuedPod):
    if not hasattr(_Shown, _each.name):
        setattr(_Shown, _each.name, read_only_attribute(f"_queued.{_each.name}"))


def shown(queued: QueuedPod) -> QueuedPod:
    """Return the pod as plugins see it that are not ours: always as it is now, and read-only."""
    return cast("QueuedPod", _Shown(queued))
